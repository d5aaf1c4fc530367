//! Tests of the installed `shmem-perf`.

mod floors;
mod jobs;
mod open_mpi;

fn main() -> std::process::ExitCode {
    testkit::run(
        [floors::tests(), jobs::tests(), open_mpi::tests()]
            .into_iter()
            .flatten()
            .collect(),
    )
}
