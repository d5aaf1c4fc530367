//! libFuzzer on what is read from other processes, hosts and users, for half a minute each.
//!
//! The targets are a workspace of their own, since a nightly compiler builds them, with coverage,
//! and with the address sanitizer where the decoder has unsafe code: the others take some fifty
//! times as many inputs without it. The corpus stays in the build directory, so that the next run
//! goes on with it; an input on which a target fails is kept there, too, and named.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use task_support::needs::CXX_COMPILER;
use task_support::process;

use super::suites::TestSession;
use super::tools::{self, StepOutcome};

/// The directory of the targets, from the root.
const DIR: &str = "ci/fuzz";
/// Targets that are built alike, in a directory of this name.
struct FuzzBuild {
    name: &'static str,
    /// The flag of the compiler beside [`FLAGS`].
    flag: &'static str,
    /// Their names, and the most bytes of an input.
    targets: &'static [(&'static str, u32)],
}

const BUILDS: [FuzzBuild; 2] = [
    FuzzBuild {
        name: "addresses",
        flag: " -Zsanitizer=address",
        targets: &[("tcp", 4096), ("requests", 512)],
    },
    FuzzBuild {
        name: "safe",
        flag: "",
        targets: &[
            ("job", 512),
            ("status", 512),
            ("text", 128),
            ("trace", 512),
            ("settings", 64),
            ("records", 256),
        ],
    },
];
const MACHINE: &str = "x86_64-unknown-linux-gnu";
/// The flags of the compiler that libFuzzer needs.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Ccodegen-units=1";
/// The limit of a build and of a run.
const LIMIT: Duration = Duration::from_secs(900);
/// The duration of one target's run.
const SECONDS: u32 = 30;

pub fn decoders(session: &TestSession) -> Result<StepOutcome> {
    let skipped = |why: &str| Ok(StepOutcome::Skipped(why.into()));
    if !cfg!(target_arch = "x86_64") {
        return skipped("the fuzz targets are built for x86-64 alone");
    }
    if !process::succeeds(Command::new(CXX_COMPILER.program).arg("--version")) {
        return skipped("there is no C++ compiler, which libFuzzer is built with");
    }
    if !process::succeeds(Command::new("rustup").args(["run", "nightly", "rustc", "-V"])) {
        return skipped(
            "there is no nightly Rust; rustup toolchain install nightly --profile minimal",
        );
    }
    let dir = session.workspace.root.join(DIR);
    if let Err(error) = tools::crates(&dir, &[])? {
        return skipped(&format!("{error:#}"));
    }
    for FuzzBuild { name, flag, targets } in BUILDS {
        let built = session.workspace.target.join("fuzz").join(name);
        let mut build = process::limited(LIMIT, "rustup");
        build.args(["run", "nightly", "cargo", "build", "--locked", "--release"]);
        build.args(["--target", MACHINE]);
        build.args(targets.iter().flat_map(|&(target, _)| ["--bin", target]));
        build.current_dir(&dir).env_remove("RUSTUP_TOOLCHAIN");
        build.env("CARGO_TARGET_DIR", &built).env("RUSTFLAGS", format!("{FLAGS}{flag}"));
        process::run(&mut build)?;
        for &(target, nbytes) in targets {
            fuzz(&built, target, nbytes)?;
        }
    }
    Ok(StepOutcome::Passed)
}

/// Runs a target on the corpus of earlier runs, and on new inputs.
fn fuzz(built: &Path, target: &str, nbytes: u32) -> Result<()> {
    let corpus = built.join("corpus").join(target);
    std::fs::create_dir_all(&corpus).with_context(|| format!("making {}", corpus.display()))?;
    process::run(
        process::limited(LIMIT, built.join(MACHINE).join("release").join(target))
            .args([format!("-max_total_time={SECONDS}"), format!("-max_len={nbytes}")])
            .args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"])
            .arg(format!("-artifact_prefix={}/{target}-", built.display()))
            .arg(corpus),
    )
}
