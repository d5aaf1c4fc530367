//! A team does not outlive the handle.

fn main() {
    let team = {
        let shmem = shmem::init();
        shmem.world() //~ E0597
    };
    team.sync();
}
