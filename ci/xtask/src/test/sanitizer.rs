//! The step `thread-sanitizer`: runs programs with threads under ThreadSanitizer, with an
//! instrumented library and an instrumented standard library of Rust.
//!
//! It needs the nightly toolchain with its sources, and compiles the standard library. Code that
//! rustc instruments calls the runtime of rustc's LLVM, so the programs are linked with this
//! runtime, which also works for the instrumentation of the C compiler.
//!
//! In such a build the library has no inline assembly (`crates/transport/build.rs`), so that
//! ThreadSanitizer sees its accesses.
//!
//! The tests of several PEs in one process run under ThreadSanitizer, too: there it sees the
//! accesses of all PEs of a job.
//!
//! In the programs ThreadSanitizer sees one process only. A counter of the TCP provider (`SENDS`)
//! tells it the order that messages of peers create; this also orders some accesses that no message
//! orders. It sees neither accesses of the kernel nor the order that fences create, so none of
//! these programs may wait for a word that a peer puts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::installation::{self, libraries};
use task_support::process;

use crate::runner::{StepOutcome, TestSession, fetch_crates, install_miri};

/// The directory of the programs.
const TESTS: &str = "crates/shmem-c/tests";
/// The programs that must be free of races.
const CLEAN: &[&str] = &[
    "programs/stress",
    "programs/threads",
    "programs/lock",
    "programs/contexts",
    "programs/threads_overlap",
    "programs/by_way_of_peers",
    "programs/nonblocking",
];
/// The examples of the Rust interface that must be free of races. They contain the library.
const CLEAN_IN_RUST: &[&str] = &["threads", "pipeline"];
/// The numbers of PEs of each program.
const PES: &[&str] = &["1", "3"];
/// The program whose race must be found, to show that races are found at all.
const CONTROL: &str = "scenarios/race";

/// The unit tests that do not run under ThreadSanitizer.
const LEFT_OUT: [&str; 5] = [
    // It counts the mappings of the process, of which ThreadSanitizer has many.
    "nothing_is_left",
    // A reader of a status copies it while its PE may write it, and discards what was torn.
    "wakes::",
    "finalize::",
    "a_status_shows",
    // In a child of fork, which has one thread of many, ThreadSanitizer may wait for ever.
    "crash::",
];

/// What ThreadSanitizer does when it finds a race.
const OPTIONS: &str = "halt_on_error=1 exitcode=66";

const BUILD_LIMIT: Duration = Duration::from_secs(1800);
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub fn thread_sanitizer(session: &TestSession) -> Result<StepOutcome> {
    // Miri comes with the sources of the standard library.
    if let Err(error) = install_miri() {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }
    if let Err(error) = fetch_crates(&session.workspace.root, &["-Zbuild-std"])? {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Ok(StepOutcome::Skipped(format!("{error:#}"))),
    };

    let prefix = make_prefix(session)?;
    let mut programs = build_examples(session)?;
    for name in CLEAN {
        programs.push(compile(session, &prefix, &runtime, name)?);
    }
    for program in programs {
        for onnode in ["on", "off"] {
            for n in PES {
                process::run(&mut job(&prefix, &program, onnode, n))?;
            }
        }
    }

    let control = compile(session, &prefix, &runtime, CONTROL)?;
    if process::succeeds(&mut job(&prefix, &control, "on", "1")) {
        bail!("the race of {CONTROL}.c was not seen, so nothing else can be believed");
    }
    test_several_pes(session)?;
    Ok(StepOutcome::Passed)
}

/// Returns the runtime of ThreadSanitizer that code of the nightly toolchain calls.
fn runtime() -> Result<PathBuf> {
    let rustc = ["run", "nightly", "rustc", "--print"];
    let sysroot = process::capture(Command::new("rustup").args(rustc).arg("sysroot"))?;
    let dir = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(target())
        .join("lib");
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

/// Makes a copy of the prefix of the step `install` with an instrumented library. Returns its path.
fn make_prefix(session: &TestSession) -> Result<PathBuf> {
    let built = build(session, &["-p", "librushmem"])?;
    let prefix = dir(session).join("prefix");
    installation::copy_tree(&session.prefix, &prefix)?;
    libraries::link(
        &built.join("librushmem.a"),
        &prefix.join("lib/librushmem.so.1"),
        "cc",
    )?;
    Ok(prefix)
}

/// Builds the instrumented examples in Rust. Returns their paths.
fn build_examples(session: &TestSession) -> Result<Vec<PathBuf>> {
    let mut arguments = vec!["-p", "rushmem"];
    for name in CLEAN_IN_RUST {
        arguments.extend(["--example", name]);
    }
    let examples = build(session, &arguments)?.join("examples");
    Ok(CLEAN_IN_RUST
        .iter()
        .map(|name| examples.join(name))
        .collect())
}

/// Builds packages and the standard library, all instrumented. Returns the directory of the
/// results.
fn build(session: &TestSession, arguments: &[&str]) -> Result<PathBuf> {
    process::run(cargo(session, "build").args(arguments))?;
    Ok(dir(session).join(target()).join("debug"))
}

/// Runs the tests of jobs whose PEs are in one process, so that ThreadSanitizer sees the accesses
/// of all PEs.
fn test_several_pes(session: &TestSession) -> Result<()> {
    let mut test = cargo(session, "test");
    // One test at a time: the memory of a job may be where that of another test's job was, and
    // ThreadSanitizer does not see the system call that has unmapped it.
    test.args(["-p", "rushmem-runtime", "--lib", "tests::", "--"])
        .arg("--test-threads=1")
        .env("RUSHMEM_TEST_SLOWDOWN", "10")
        .env("TSAN_OPTIONS", OPTIONS);
    for name in LEFT_OUT {
        test.args(["--skip", name]);
    }
    process::run(&mut test)
}

/// Returns a command of cargo that instruments packages and the standard library.
fn cargo(session: &TestSession, command: &str) -> Command {
    let mut cargo = process::limited(BUILD_LIMIT, "rustup");
    cargo
        .args(["run", "nightly", "cargo", command, "-Zbuild-std"])
        .args(["--target", &target()])
        .current_dir(&session.workspace.root)
        .env(
            "RUSTFLAGS",
            "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer",
        )
        .env("CARGO_TARGET_DIR", dir(session));
    cargo
}

fn dir(session: &TestSession) -> PathBuf {
    session.workspace.target.join("thread-sanitizer")
}

/// Compiles a C program of [`TESTS`] with ThreadSanitizer, and links rustc's runtime. Returns its
/// path.
fn compile(session: &TestSession, prefix: &Path, runtime: &Path, name: &str) -> Result<PathBuf> {
    let source = session
        .workspace
        .root
        .join(TESTS)
        .join(name)
        .with_extension("c");
    let program = prefix.join(source.file_stem().context("it has a name")?);
    let object = program.with_extension("o");
    let oshcc = prefix.join("bin/oshcc");

    let mut compiler = Command::new(&oshcc);
    compiler
        .args(["-O1", "-g", "-pthread", "-fsanitize=thread", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&object);
    process::run(&mut compiler)?;

    // Linked without -fsanitize, which would add the C compiler's own runtime. The libraries after
    // the runtime are those that it uses.
    let mut linker = Command::new(&oshcc);
    linker
        .arg(&object)
        .args(["-rdynamic", "-pthread", "-Wl,--whole-archive"])
        .arg(runtime)
        .args(["-Wl,--no-whole-archive", "-ldl", "-lrt", "-lm", "-lstdc++"])
        .arg("-o")
        .arg(&program);
    process::run(&mut linker)?;
    fs::remove_file(&object).context("the object file")?;
    Ok(program)
}

/// Returns a command that runs a program as a job. The state of ThreadSanitizer is static data of
/// the program, which the library must not remap: a limit of file sizes prevents that
/// (docs/extensions.md).
fn job(prefix: &Path, program: &Path, onnode: &str, n: &str) -> Command {
    let mut command = process::limited(RUN_LIMIT, "prlimit");
    command
        .arg("--fsize=1073741824")
        .arg(prefix.join("bin/oshrun"))
        .args(["-n", n])
        .arg(program)
        .env("SHMEM_ONNODE", onnode)
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .env("TSAN_OPTIONS", OPTIONS);
    command
}
