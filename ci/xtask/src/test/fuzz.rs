//! libFuzzer on the wire format of the TCP provider, for a minute.
//!
//! The target is a workspace of its own beside the crate, since a nightly compiler builds it, with
//! coverage and the address sanitizer. What it learns stays in the build folder, so that the next
//! run goes on there; an input that it fails on is kept there too and named.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use workbench::needs::CXX_COMPILER;
use workbench::process;

use super::outcome::StepOutcome;
use super::session::TestSession;
use super::tools;

/// Where the fuzz target is, from the root.
const FOLDER: &str = "crates/transport-tcp/fuzz";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What libFuzzer needs of the compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Cdebug-assertions \
    -Ccodegen-units=1";
/// Of the build and of the run together.
const LIMIT: Duration = Duration::from_secs(900);
const SECONDS: u32 = 60;

pub fn wire(session: &TestSession) -> Result<StepOutcome> {
    let skipped = |why: &str| Ok(StepOutcome::Skipped(why.into()));
    if !cfg!(target_arch = "x86_64") {
        return skipped("the fuzz target is built for x86-64 alone");
    }
    if !process::succeeds(Command::new(CXX_COMPILER.program).arg("--version")) {
        return skipped("there is no C++ compiler, which libFuzzer is built with");
    }
    if !process::succeeds(Command::new("rustup").args(["run", "nightly", "rustc", "-V"])) {
        return skipped(
            "there is no nightly Rust; rustup toolchain install nightly --profile minimal",
        );
    }
    let folder = session.workspace.root.join(FOLDER);
    if let Err(error) = tools::crates(&folder, &[])? {
        return skipped(&format!("{error:#}"));
    }
    let built = session.workspace.target.join("fuzz");
    process::run(
        process::limited(LIMIT, "rustup")
            .args(["run", "nightly", "cargo", "build", "--locked", "--release", "--target", TARGET])
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", &built)
            .env("RUSTFLAGS", FLAGS)
            .env_remove("RUSTUP_TOOLCHAIN"),
    )?;
    let corpus = built.join("corpus");
    std::fs::create_dir_all(&corpus).with_context(|| format!("making {}", corpus.display()))?;
    process::run(&mut fuzzer(&built, &corpus))?;
    Ok(StepOutcome::Passed)
}

fn fuzzer(built: &Path, corpus: &Path) -> Command {
    let mut fuzzer = process::limited(LIMIT, built.join(TARGET).join("release/wire"));
    fuzzer
        .arg(format!("-max_total_time={SECONDS}"))
        .args(["-max_len=4096", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", built.display()))
        .arg(corpus);
    fuzzer
}
