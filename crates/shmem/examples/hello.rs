//! Every PE says hello: what each program begins and ends with.

fn main() {
    let shmem = shmem::init();
    println!("Hello from PE {} of {}", shmem.my_pe(), shmem.n_pes());
    // Dropping `shmem` finalizes the library, which waits for all PEs.
}
