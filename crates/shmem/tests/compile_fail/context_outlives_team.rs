//! A context does not outlive its team.

fn main() {
    let shmem = shmem::init();
    let context = {
        let team = shmem.world().split(Some(0), 0).unwrap().unwrap();
        team.context() //~ E0597
    };
    context.quiet();
}
