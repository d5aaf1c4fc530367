//! Tests of the installed prefix, and of `--bare`. A test that finds a tool absent is reported as
//! ignored, with the reason.

mod bare;
mod man_pages;
mod packages;
mod support;

fn main() -> std::process::ExitCode {
    testkit::run(
        [bare::tests(), man_pages::tests(), packages::tests()]
            .into_iter()
            .flatten()
            .collect(),
    )
}
