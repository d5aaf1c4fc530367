//! No harness finds a test inside a function.

fn main() {
    shmem::test!(nobody_runs_this, pes = 1, |shmem| shmem.barrier_all()); //~ E0425
}
