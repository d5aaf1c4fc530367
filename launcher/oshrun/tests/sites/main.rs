//! Tests that need what a machine may lack: limits that a user may set, a terminal, several CPUs. A
//! test that finds it absent is reported as ignored, with the reason.

mod capacity;
mod comfort;
mod descendants;
mod placement;
mod start;

#[path = "../support/mod.rs"]
mod support;

fn main() -> std::process::ExitCode {
    testkit::run(
        [
            capacity::tests(),
            comfort::tests(),
            descendants::tests(),
            placement::tests(),
            start::tests(),
        ]
        .into_iter()
        .flatten()
        .collect(),
    )
}
