//! Tests of the installed `shmem-perf`.

mod support;

testkit::test_modules! {
    failures,
    floors,
    measurements,
    open_mpi,
}
