//! The step `fuzz`: runs libFuzzer for half a minute on each decoder of data from other processes,
//! hosts and users.
//!
//! The targets are a workspace of their own, since a nightly compiler builds them, with coverage.
//! The address sanitizer is used for decoders with unsafe code; without it, the others read some
//! fifty times as many inputs. The corpus stays in the build directory, so that the next run
//! continues with it. An input on which a target fails is kept there, too, and its name is printed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use task_support::needs::CXX_COMPILER;
use task_support::process;

use crate::runner::{StepOutcome, TestSession, fetch_crates};

/// The directory of the targets, relative to the root of the repository.
const DIR: &str = "ci/fuzz";

/// A decoder to fuzz.
struct FuzzTarget {
    name: &'static str,
    /// Maximum number of bytes of an input.
    nbytes: u32,
}

const fn target(name: &'static str, nbytes: u32) -> FuzzTarget {
    FuzzTarget { name, nbytes }
}

/// Targets that are built with the same flags.
struct FuzzBuild {
    /// The name of their build directory.
    name: &'static str,
    /// A further flag of the compiler, which is appended to [`FLAGS`]: a space and the flag, or
    /// empty.
    flag: &'static str,
    targets: &'static [FuzzTarget],
}

const BUILDS: [FuzzBuild; 2] = [
    FuzzBuild {
        name: "addresses",
        flag: " -Zsanitizer=address",
        targets: &[target("tcp", 4096), target("requests", 512)],
    },
    FuzzBuild {
        name: "safe",
        flag: "",
        targets: &[
            target("job", 512),
            target("status", 512),
            target("text", 128),
            target("trace", 512),
            target("settings", 64),
            target("records", 256),
            target("sealed", 512),
        ],
    },
];
const MACHINE: &str = "x86_64-unknown-linux-gnu";
/// The flags of the compiler that libFuzzer needs.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Ccodegen-units=1";
/// The time limit of each build and of each run.
const LIMIT: Duration = Duration::from_secs(900);
/// The duration of the run of a target in seconds.
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
    if let Err(error) = fetch_crates(&dir, &[])? {
        return skipped(&format!("{error:#}"));
    }
    for build in BUILDS {
        let built = session.workspace.target.join("fuzz").join(build.name);
        build.run(&dir, &built)?;
        for target in build.targets {
            target.fuzz(&built)?;
        }
    }
    Ok(StepOutcome::Passed)
}

impl FuzzBuild {
    /// Builds the targets of the workspace `dir` into the directory `built`.
    fn run(&self, dir: &Path, built: &Path) -> Result<()> {
        let mut cargo = process::limited(LIMIT, "rustup");
        cargo.args(["run", "nightly", "cargo", "build", "--locked", "--release"]);
        cargo.args(["--target", MACHINE]);
        for target in self.targets {
            cargo.args(["--bin", target.name]);
        }
        cargo
            .current_dir(dir)
            .env("CARGO_TARGET_DIR", built)
            .env("RUSTFLAGS", format!("{FLAGS}{}", self.flag));
        process::run(&mut cargo)
    }
}

impl FuzzTarget {
    /// Runs the target on the corpus of earlier runs, and on new inputs.
    fn fuzz(&self, built: &Path) -> Result<()> {
        let corpus = built.join("corpus").join(self.name);
        std::fs::create_dir_all(&corpus).with_context(|| format!("making {}", corpus.display()))?;

        let program = built.join(MACHINE).join("release").join(self.name);
        let failed = format!("{}/{}-", built.display(), self.name);
        process::run(
            process::limited(LIMIT, program)
                .arg(format!("-max_total_time={SECONDS}"))
                .arg(format!("-max_len={}", self.nbytes))
                .args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"])
                .arg(format!("-artifact_prefix={failed}"))
                .arg(corpus),
        )
    }
}
