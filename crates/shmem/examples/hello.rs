//! Every PE prints a line: the begin and the end of each program.

fn main() {
    let shmem = shmem::init();
    println!("Hello from PE {} of {}", shmem.my_pe(), shmem.n_pes());
    // Dropping `shmem` finalizes the library, which waits for all PEs.
}
