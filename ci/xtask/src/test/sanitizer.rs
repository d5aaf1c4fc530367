//! The step `thread-sanitizer`: programs with threads, and the library with all of Rust's,
//! instrumented.
//!
//! Needs the nightly toolchain with its sources, and compiles the standard library. What rustc
//! instruments calls the runtime of its own LLVM, so that programs are linked with that one; the C
//! compiler's instrumentation gets along with it.
//!
//! In such a build the library has no inline assembly (`crates/transport/build.rs`), so that the
//! detector sees what it accesses.
//!
//! The detector sees one process. What peers order, the TCP provider reports to it (`order`), which
//! is more order than there is. It sees neither what the kernel reads nor what fences order, so
//! that none of these programs may wait for a word that a peer puts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;

use super::suites::TestSession;
use super::tools::{self, StepOutcome};
use crate::{install, libraries};

const PROGRAMS: &str = "crates/shmem-c/tests/programs";
/// The programs that must be free of races, and their numbers of PEs.
const CLEAN: &[&str] =
    &["stress", "threads", "lock", "contexts", "threads_overlap", "by_way_of_peers", "nonblocking"];
/// The examples of the Rust interface that must be free of races: they contain the library.
const CLEAN_IN_RUST: &[&str] = &["threads", "pipeline"];
const PES: &[&str] = &["1", "3"];
/// The program that must have a race: it shows that races are found.
const CONTROL: &str = "race";

const BUILD_LIMIT: Duration = Duration::from_secs(1800);
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub fn thread_sanitizer(session: &TestSession) -> Result<StepOutcome> {
    // Miri comes with the sources of the standard library.
    if let Err(error) = tools::miri() {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }
    if let Err(error) = tools::crates(&session.workspace.root, &["-Zbuild-std"])? {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Ok(StepOutcome::Skipped(format!("{error:#}"))),
    };
    let prefix = prefix(session)?;
    let program = |name: &str| compile(session, &prefix, &runtime, name);
    let in_c: Result<Vec<PathBuf>> = CLEAN.iter().map(|name| program(name)).collect();
    for program in in_c?.into_iter().chain(examples(session)?) {
        for onnode in ["on", "off"] {
            for n in PES {
                process::run(&mut job(&prefix, &program, onnode, n))?;
            }
        }
    }
    if process::succeeds(&mut job(&prefix, &program(CONTROL)?, "on", "1")) {
        bail!("the race of {CONTROL}.c was not seen, so nothing else can be believed");
    }
    Ok(StepOutcome::Passed)
}

/// Returns the runtime that the nightly toolchain's code calls.
fn runtime() -> Result<PathBuf> {
    let rustc = ["run", "nightly", "rustc", "--print"];
    let sysroot = process::capture(Command::new("rustup").args(rustc).arg("sysroot"))?;
    let dir = Path::new(sysroot.trim()).join("lib/rustlib").join(target()).join("lib");
    let name = "librustc-nightly_rt.tsan.a";
    let runtime = dir.join(name);
    if !runtime.exists() {
        bail!("the nightly toolchain has no {name} for {}", target());
    }
    Ok(runtime)
}

pub fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Returns the prefix of the step `install` with an instrumented library in place of its own.
fn prefix(session: &TestSession) -> Result<PathBuf> {
    let built = build(session, &["-p", "librushmem"])?;
    let prefix = dir(session).join("prefix");
    install::copy_tree(&session.prefix, &prefix)?;
    libraries::link(&built.join("librushmem.a"), &prefix.join("lib/librushmem.so.1"), "cc")?;
    Ok(prefix)
}

/// Returns the instrumented examples in Rust.
fn examples(session: &TestSession) -> Result<Vec<PathBuf>> {
    let named = CLEAN_IN_RUST.iter().flat_map(|name| ["--example", name]);
    let built = build(session, &["-p", "rushmem"].into_iter().chain(named).collect::<Vec<_>>())?;
    Ok(CLEAN_IN_RUST.iter().map(|name| built.join("examples").join(name)).collect())
}

/// Builds with the standard library, all instrumented; the directory of what was built.
fn build(session: &TestSession, arguments: &[&str]) -> Result<PathBuf> {
    let dir = dir(session);
    process::run(
        process::limited(BUILD_LIMIT, "rustup")
            .args(["run", "nightly", "cargo", "build", "-Zbuild-std", "--target", &target()])
            .args(arguments)
            .current_dir(&session.workspace.root)
            .env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer")
            .env("CARGO_TARGET_DIR", &dir)
            .env_remove("RUSTUP_TOOLCHAIN"),
    )?;
    Ok(dir.join(target()).join("debug"))
}

fn dir(session: &TestSession) -> PathBuf {
    session.workspace.target.join("thread-sanitizer")
}

/// Compiles with the sanitizer of the C compiler, and links rustc's runtime.
fn compile(session: &TestSession, prefix: &Path, runtime: &Path, name: &str) -> Result<PathBuf> {
    let program = prefix.join(name);
    let object = prefix.join(format!("{name}.o"));
    let oshcc = || Command::new(prefix.join("bin/oshcc"));
    let source = session.workspace.root.join(PROGRAMS).join(format!("{name}.c"));
    process::run(
        oshcc()
            .args(["-O1", "-g", "-pthread", "-fsanitize=thread", "-c"])
            .arg(source)
            .arg("-o")
            .arg(&object),
    )?;
    process::run(
        oshcc()
            .arg(&object)
            .args(["-rdynamic", "-pthread", "-Wl,--whole-archive"])
            .arg(runtime)
            .args(["-Wl,--no-whole-archive", "-ldl", "-lrt", "-lm", "-lstdc++", "-o"])
            .arg(&program),
    )?;
    fs::remove_file(&object).context("the object file")?;
    Ok(program)
}

/// The detector's own state is static data of the program, which the library must not move while
/// the detector runs: a limit of file sizes keeps it from that (docs/extensions.md).
fn job(prefix: &Path, program: &Path, onnode: &str, n: &str) -> Command {
    let mut command = process::limited(RUN_LIMIT, "prlimit");
    command.arg("--fsize=1073741824").arg(prefix.join("bin/oshrun")).args(["-n", n]).arg(program);
    command.env("SHMEM_ONNODE", onnode).env("SHMEM_SYMMETRIC_SIZE", "16m");
    command.env("TSAN_OPTIONS", "halt_on_error=1 exitcode=66");
    command
}
