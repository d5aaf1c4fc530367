//! Elements are copied.

#[derive(shmem::Element)]
#[repr(C)]
struct Particle { //~ E0277
    //~| consider annotating `Particle` with `#[derive(Copy)]`
    mass: f64,
}

fn main() {
    let shmem = shmem::init();
    shmem.array::<Particle>(1);
}
