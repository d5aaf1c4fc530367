//! The steps of the tiers, one function each. The lists at the top are what grows.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use task_support::needs::{
    AUTOMAKE, BINUTILS, C_COMPILER, CLANG, CMAKE, CXX_COMPILER, FORTRAN_COMPILER, GDB, HWLOC,
    HYDRA, IPROUTE, LIBFABRIC, MANDOC, MESON, MPIRUN, Need, PKG_CONFIG, SLURM, SSH, STRACE, UCX,
    VALGRIND,
};
use task_support::workspace::TestProgram;
use task_support::{needs, process};

use super::sanitizer;
use super::session::{TestSession, Tier};
use super::suites::Run;
use super::tools::{self, StepOutcome};
use crate::{bindings, book, codegen, counts, install, symbols, tidy};

/// Tests of unsafe code that need no process, as arguments of `cargo miri test`. Miri finds nothing
/// in safe code that the tests themselves do not.
const MIRI: &[&[&str]] = &[
    &["-p", "rushmem-runtime", "--lib", "combine::"],
    &["-p", "rushmem-transport", "--lib", "mem::"],
    &["-p", "rushmem", "--lib"],
];

/// The time limits of each line of [`MIRI`], and of one with every size.
const MIRI_LIMITS: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(3600)];

/// Programs without which nothing can be tested.
const FOR_ALL: &[&Need] = &[&C_COMPILER, &CXX_COMPILER, &BINUTILS];

/// Programs without which some tests of each tier are skipped.
const FOR_SOME: &[&Need] = &[
    &VALGRIND,
    &FORTRAN_COMPILER,
    &CLANG,
    &GDB,
    &STRACE,
    &IPROUTE,
    &HWLOC,
    &CMAKE,
    &MESON,
    &AUTOMAKE,
    &PKG_CONFIG,
    &MANDOC,
];

/// What `--providers` needs besides.
const FOR_PROVIDERS: &[&Need] = &[&UCX, &LIBFABRIC, &HYDRA, &MPIRUN];

/// What `--full` needs besides that, apart from its virtual machines.
const FOR_FULL: &[&Need] = &[&SLURM, &SSH];

/// With this variable, tests run at every size.
const EVERY_SIZE: &str = "RUSHMEM_EVERY_SIZE";

/// Directories of other versions of UCX than the one that the linker finds.
const UCX_DIRS: &str = "RUSHMEM_UCX_DIR";

/// Installs what the steps of the tier call, all at once.
pub fn needs(session: &TestSession) -> Result<StepOutcome> {
    let [providers, full] = [session.tier != Tier::Usual, session.tier == Tier::Full];
    let more =
        [(true, FOR_SOME), (providers, FOR_PROVIDERS), (full, FOR_FULL), (full, verbs::NEEDS)];
    let more = more.into_iter().filter(|(is_wanted, _)| *is_wanted).flat_map(|(_, needs)| needs);
    let installed = needs::ensure(&FOR_ALL.iter().chain(more).copied().collect::<Vec<_>>());
    match installed {
        Err(error) if !needs::missing(FOR_ALL).is_empty() => Err(error),
        // A developer who is not root can do with that.
        installed => in_part(installed),
    }
}

pub fn format(session: &TestSession) -> Result<StepOutcome> {
    passed(session.workspace.cargo().args(["fmt", "--all", "--check"]))
}

pub fn clippy(session: &TestSession) -> Result<StepOutcome> {
    let mut cargo = session.workspace.cargo();
    // The sources of librushmem are those of rushmem-c.
    let packages = ["--workspace", "--exclude", "librushmem", "--all-targets"];
    passed(cargo.arg("clippy").args(packages).args(["--", "-D", "warnings"]))
}

pub fn docs(session: &TestSession) -> Result<StepOutcome> {
    let mut cargo = session.workspace.cargo();
    passed(cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

pub fn tidy(_: &TestSession) -> Result<StepOutcome> {
    tidy::run().map(|()| StepOutcome::Passed)
}

pub fn generated(_: &TestSession) -> Result<StepOutcome> {
    codegen::run(true).map(|()| StepOutcome::Passed)
}

pub fn install(session: &TestSession) -> Result<StepOutcome> {
    install::quickly_into(&session.workspace, &session.prefix)?;
    println!("{}", session.prefix.display());
    Ok(StepOutcome::Passed)
}

/// Packages whose programs of tests steps name, by their directories.
pub const SHMEM_C: &str = "crates/shmem-c";
const SHMEM: &str = "crates/shmem";
const SHMEM_PERF: &str = "benches/shmem-perf";
const TRANSPORT_UCX: &str = "crates/transport-ucx";
const TRANSPORT_OFI: &str = "crates/transport-ofi";
const FAULTS: &str = "ci/faults";

/// The packages whose suites take minutes and have steps of their own in `--providers`; here their
/// unit tests run.
const WITH_LONG_SUITES: [&str; 2] = [TRANSPORT_UCX, TRANSPORT_OFI];

pub fn tests(session: &TestSession) -> Result<StepOutcome> {
    let is_long = |program: &TestProgram| {
        program.is_integration && WITH_LONG_SUITES.contains(&program.dir.as_str())
    };
    suites(session, |program| !is_long(program))?.run()
}

/// Runs the programs in the documentation of the Rust interface, each as a job of 2 PEs.
pub fn doc_tests(session: &TestSession) -> Result<StepOutcome> {
    let oshrun = oshrun(session);
    let runner =
        format!("CARGO_TARGET_{}_RUNNER", sanitizer::target().to_uppercase().replace('-', "_"));
    let mut cargo = session.workspace.cargo();
    tools::tally(
        cargo
            .args(["test", "--doc", "--workspace"])
            .env(runner, format!("{} -n 2", oshrun.display()))
            .env("OSHRUN", oshrun),
    )?
    .outcome()
}

pub fn symbols(session: &TestSession) -> Result<StepOutcome> {
    symbols::check(&session.workspace, &session.prefix, false).map(|()| StepOutcome::Passed)
}

pub fn counts(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(VALGRIND.program).is_none() {
        return Ok(StepOutcome::Skipped("valgrind is not here".into()));
    }
    counts::check(&session.workspace).map(|()| StepOutcome::Passed)
}

pub fn miri(session: &TestSession) -> Result<StepOutcome> {
    if let Err(error) = tools::miri() {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }
    for arguments in MIRI {
        let limit = MIRI_LIMITS[usize::from(session.tier == Tier::Full)];
        let mut cargo = process::limited(limit, "rustup");
        cargo
            .args(["run", "nightly", "cargo", "miri", "test"])
            .args(*arguments)
            .current_dir(&session.workspace.root)
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env_remove("RUSTUP_TOOLCHAIN");
        if session.tier == Tier::Full {
            cargo.env(EVERY_SIZE, "1");
        }
        tools::tally(&mut cargo)?.outcome()?;
    }
    Ok(StepOutcome::Passed)
}

pub fn bindings(session: &TestSession) -> Result<StepOutcome> {
    match bindings::each(&session.workspace, true)?.as_slice() {
        [] => Ok(StepOutcome::Passed),
        skipped => Ok(StepOutcome::Skipped(skipped.join("; "))),
    }
}

/// Runs the suite of the networks with other versions of their libraries, those in the directories
/// that a variable names, separated by colons.
pub fn other_versions(session: &TestSession) -> Result<StepOutcome> {
    let dirs = std::env::var_os(UCX_DIRS).unwrap_or_default();
    let dirs = std::env::split_paths(&dirs).filter(|dir| !dir.as_os_str().is_empty());
    let mut outcome = StepOutcome::Skipped(format!("{UCX_DIRS} names no other UCX"));
    for dir in dirs {
        let run = suites(session, |program| program.dir == TRANSPORT_UCX)?;
        outcome = run.env("UCX_MODULE_DIR", dir.join("ucx")).env("LD_LIBRARY_PATH", dir).run()?;
    }
    Ok(outcome)
}

/// Jobs in which one system call fails, each call in one.
pub fn faults_sample(session: &TestSession) -> Result<StepOutcome> {
    faulty(session, "faults_sample::")
}

/// Jobs in which one system call fails, each call with each of its errors at many turns.
pub fn faults(session: &TestSession) -> Result<StepOutcome> {
    faulty(session, "faults_at_every_turn::")
}

fn faulty(session: &TestSession, which: &str) -> Result<StepOutcome> {
    suites(session, |program| program.dir == FAULTS)?.args([which, "--ignored"]).run()
}

/// Runs the programs over TCP, each in one of several jobs.
pub fn tcp_sample(session: &TestSession) -> Result<StepOutcome> {
    programs(session, "tcp_sample::")
}

/// Runs the programs over TCP, each at every number of PEs.
pub fn tcp_programs(session: &TestSession) -> Result<StepOutcome> {
    programs(session, "tcp_at_every_size::")
}

/// Runs the suite of the networks over the provider of libfabric that is always tested.
pub fn ofi(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(LIBFABRIC.program).is_none() {
        return Ok(StepOutcome::Skipped("libfabric is not here".into()));
    }
    suites(session, |program| program.dir == TRANSPORT_OFI)?.run()
}

/// Runs the programs over libfabric, each in one of several jobs.
pub fn ofi_sample(session: &TestSession) -> Result<StepOutcome> {
    over(session, &LIBFABRIC, "ofi_sample::")
}

/// Runs the programs over libfabric, each at every number of PEs.
pub fn ofi_programs(session: &TestSession) -> Result<StepOutcome> {
    over(session, &LIBFABRIC, "ofi_at_every_size::")
}

/// Runs each program over libfabric with the rules of one fabric that is not here.
pub fn strict_sample(session: &TestSession) -> Result<StepOutcome> {
    over(session, &LIBFABRIC, "strict_sample::")
}

/// Runs each program over libfabric with the rules of all fabrics that are not here.
pub fn strict_programs(session: &TestSession) -> Result<StepOutcome> {
    over(session, &LIBFABRIC, "strict_at_every_profile::")
}

/// Runs the suite over every provider of libfabric that is here, also those of the library in the
/// directory that RUSHMEM_OFI_DIR may name, which has its providers in `libfabric` below.
pub fn ofi_providers(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(LIBFABRIC.program).is_none() {
        return Ok(StepOutcome::Skipped("libfabric is not here".into()));
    }
    let other = std::env::var_os("RUSHMEM_OFI_DIR").map(PathBuf::from);
    for dir in [None, other.as_deref()].into_iter().collect::<BTreeSet<_>>() {
        let run = suites(session, |program| program.is(TRANSPORT_OFI, "conformance"))?;
        let mut run = run.args(["--test-threads=2"]).env("RUSHMEM_PROVIDERS", "all");
        if let Some(dir) = dir {
            run = run.env("FI_PROVIDER_PATH", dir.join("libfabric"));
            run = run.env("LD_LIBRARY_PATH", dir);
        }
        run.run()?;
    }
    Ok(StepOutcome::Passed)
}

/// Runs the suite of the networks over UCX.
pub fn ucx(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(UCX.program).is_none() {
        return Ok(StepOutcome::Skipped("UCX is not here".into()));
    }
    suites(session, |program| program.dir == TRANSPORT_UCX)?.run()
}

/// Runs the programs over UCX, each once.
pub fn ucx_sample(session: &TestSession) -> Result<StepOutcome> {
    over(session, &UCX, "ucx_sample::")
}

/// Runs the programs over UCX, each at every number of PEs.
pub fn ucx_programs(session: &TestSession) -> Result<StepOutcome> {
    over(session, &UCX, "ucx_at_every_size::")
}

fn over(session: &TestSession, library: &Need, setting: &str) -> Result<StepOutcome> {
    match process::on_path(library.program) {
        Some(_) => programs(session, setting),
        None => Ok(StepOutcome::Skipped(format!("{} is not here", library.program))),
    }
}

/// Tests the networks over verbs, in virtual machines.
pub fn verbs(session: &TestSession) -> Result<StepOutcome> {
    Ok(match verbs::step(&session.workspace, install::into)? {
        Ok(()) => StepOutcome::Passed,
        Err(why) => StepOutcome::Skipped(why),
    })
}

/// Programs under the launchers of others, apart from Slurm. Those that are not here are skipped.
pub fn launchers(session: &TestSession) -> Result<StepOutcome> {
    let needs = needs::ensure(&[&HYDRA, &MPIRUN, &PKG_CONFIG]);
    let library = suites(session, |program| program.is(SHMEM_C, "sites"))?;
    let library = library.args(["launchers::", "--skip", "slurm::"]);
    let perf = suites(session, |program| program.is(SHMEM_PERF, "installed"))?;
    launched(needs, library.and(perf.args(["open_mpi::"])))
}

/// Programs under a private Slurm.
pub fn slurm(session: &TestSession) -> Result<StepOutcome> {
    let needs = needs::ensure(&[&HYDRA, &MPIRUN, &PKG_CONFIG, &SLURM]);
    let run = suites(session, |program| program.is(SHMEM_C, "sites"))?;
    launched(needs, run.args(["slurm::"]))
}

/// Runs the chosen tests, also those that other steps ignore.
fn launched(needs: Result<()>, run: Run) -> Result<StepOutcome> {
    match run.args(["--include-ignored"]).run()? {
        StepOutcome::Passed => in_part(needs),
        skipped => Ok(skipped),
    }
}

/// Passed as far as what was needed could be had.
fn in_part(needs: Result<()>) -> Result<StepOutcome> {
    match needs {
        Ok(()) => Ok(StepOutcome::Passed),
        Err(error) => Ok(StepOutcome::Skipped(format!("in part: {error:#}"))),
    }
}

/// Runs the test programs in a setting that the plain tier leaves out.
fn programs(session: &TestSession, setting: &str) -> Result<StepOutcome> {
    let run = suites(session, |program| {
        program.is(SHMEM_C, "programs")
            || program.is(SHMEM, "examples")
            || program.is(SHMEM_PERF, "installed")
    })?;
    run.args([setting, "--ignored"]).run()
}

/// Programs of tests, which find the installed prefix, and those of the Rust interface its
/// launcher.
fn suites(session: &TestSession, wanted: impl Fn(&TestProgram) -> bool) -> Result<Run> {
    let run = session.suites.choose(&session.workspace, wanted)?;
    let run = run.env("RUSHMEM_PREFIX", &session.prefix).env("OSHRUN", oshrun(session));
    Ok(if session.tier == Tier::Full { run.env(EVERY_SIZE, "1") } else { run })
}

/// Returns the programs of the C interface alone.
pub fn emulated(session: &TestSession) -> Result<Run> {
    suites(session, |program| program.is(SHMEM_C, "programs"))
}

/// Checks the packages that are depended on: their licenses, versions and sources. Advisories
/// are not looked at, as their database would have to be fetched.
pub fn dependencies(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path("cargo-deny").is_none() {
        return Ok(StepOutcome::Skipped(
            "cargo-deny is not here: cargo install --locked cargo-deny".into(),
        ));
    }
    let mut deny = session.workspace.cargo();
    deny.args(["deny", "--offline", "--config", "ci/packaging/deny.toml", "check"]);
    passed(deny.args(["licenses", "bans", "sources"]))
}

/// Builds the documentation as a site, all of whose links lead somewhere.
pub fn book(session: &TestSession) -> Result<StepOutcome> {
    match book::missing() {
        Some(missing) => Ok(StepOutcome::Skipped(missing.into())),
        None => book::make(&session.workspace).map(|_| StepOutcome::Passed),
    }
}

pub fn oshrun(session: &TestSession) -> PathBuf {
    session.prefix.join("bin/oshrun")
}

/// Modules of ignored tests that other steps of the tier run.
const STEPS_OF_THEIR_OWN: &[&str] = &[
    "slurm::",
    "hydra::",
    "mpirun::",
    "prterun",
    "over_ssh_",
    "_sample::",
    "_at_every_",
    "emulated::",
];

pub fn soak(session: &TestSession) -> Result<StepOutcome> {
    let others = STEPS_OF_THEIR_OWN.iter().flat_map(|module| ["--skip", module]);
    suites(session, |_| true)?.args(["--ignored"]).args(others).run()
}

pub fn oldest_rust(session: &TestSession) -> Result<StepOutcome> {
    let version = session.workspace.rust_version()?;
    if let Err(error) = tools::toolchain(version) {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }
    let mut cargo = session.workspace.cargo_of(version);
    passed(
        cargo
            // Its sources are those of rushmem-c, whose tests need what it does not depend on.
            .args(["check", "--workspace", "--all-targets", "--exclude", "librushmem"])
            .env("CARGO_TARGET_DIR", session.workspace.target.join("oldest-rust")),
    )
}

fn passed(command: &mut Command) -> Result<StepOutcome> {
    process::run(command).map(|()| StepOutcome::Passed)
}
