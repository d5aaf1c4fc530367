//! A team that was split off does not outlive the handle.

fn main() {
    let team = {
        let shmem = shmem::init();
        let world = shmem.world(); //~ E0597
        world.split(Some(0), 0)
    };
    drop(team);
}
