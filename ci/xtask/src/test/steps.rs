//! The steps of the tiers, one function for each, except those that have a file of their own. The
//! lists at the top name the tools that they need.
//!
//! A new step also has a row in `test.rs`. A program that it needs is in
//! `ci/task-support/src/needs.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::installation::{self, Release, Toolchain};
use task_support::needs::{
    AUTOMAKE, BINUTILS, C_COMPILER, CLANG, CMAKE, CXX_COMPILER, FORTRAN_COMPILER, GDB, HWLOC,
    HYDRA, IPROUTE, LIBFABRIC, MANDOC, MESON, MPIRUN, NUMPY, Need, PKG_CONFIG, PODMAN, PYTEST,
    SLURM, SSH, STRACE, UCX, VALGRIND,
};
use task_support::workspace::{APART, Packages, TestProgram};
use task_support::{needs, process};

use super::first::FIRST;
use super::sanitizer;
use crate::mutants::{self, MutantsFlags};
use crate::runner::{
    Run, SHMEM_C, StepOutcome, TestSession, Tier, XTASK, install_miri, install_rust,
    install_target, of_task, passed, tally, tests_the_prefix,
};
use crate::verbs::{self, VerbsFlags};
use crate::{benches, bindings, book, symbols};

/// The package of the copies and atomics by which all others access symmetric memory. In
/// `--providers` Miri runs only tests of this package.
const OF_COPIES: &str = "rushmem-transport";
/// The further packages with unsafe code whose tests Miri runs, in `--full` alone: to build them
/// takes longer than to run all of these tests.
const WITH_UNSAFE_CODE: [&str; 2] = ["rushmem-runtime", "rushmem"];

/// Parts of the names of the tests that Miri runs: those of unsafe code that start no process. In
/// safe code Miri finds nothing that the tests themselves do not. All packages get all parts: each
/// is the name of a module in one package alone.
const OF_UNSAFE_CODE: &[&str] = &[
    // In rushmem-transport.
    "mem::",
    // In rushmem-runtime.
    "combine::",
    // In rushmem.
    "symmetric::",
    "pending::",
];

/// The time limit of Miri's tests.
const MIRI_LIMIT: Duration = Duration::from_secs(1200);
/// The same in `--full`, where tests run with all sizes.
const FULL_MIRI_LIMIT: Duration = Duration::from_secs(3600);

/// The tools without which nothing can be tested.
const FOR_ALL: &[&Need] = &[&C_COMPILER, &CXX_COMPILER, &BINUTILS];

/// The tools without which some tests of all tiers but the first are skipped.
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
    &PYTEST,
    &NUMPY,
];

/// The further tools of `--providers`.
const FOR_PROVIDERS: &[&Need] = &[&UCX, &LIBFABRIC, &HYDRA, &MPIRUN];

/// The further tools of `--full`, without those of its virtual machines.
const FOR_FULL: &[&Need] = &[&SLURM, &SSH, &PODMAN];

/// The variable with which tests run with all numbers of PEs.
const EVERY_SIZE: &str = "RUSHMEM_EVERY_SIZE";

/// The variable that lists the directories of other versions of UCX than the one that the linker
/// finds.
const UCX_DIRS: &str = "RUSHMEM_UCX_DIR";

/// Installs the missing tools that the steps of the tier need. Fails only if one of [`FOR_ALL`] is
/// still missing.
pub fn needs(session: &TestSession) -> Result<StepOutcome> {
    let mut needs = FOR_ALL.to_vec();
    if session.tier != Tier::First {
        needs.extend(FOR_SOME);
    }
    if matches!(session.tier, Tier::Providers | Tier::Full) {
        needs.extend(FOR_PROVIDERS);
    }
    if session.tier == Tier::Full {
        needs.extend(FOR_FULL);
        needs.extend(needs::OF_VERBS);
    }

    if needs::missing(&needs).is_empty() {
        println!("All programs that the tests use are here.");
    }
    match needs::ensure(&needs) {
        Err(error) if !needs::missing(FOR_ALL).is_empty() => Err(error),
        // A developer who is not root can run the other tests.
        installed => in_part(installed),
    }
}

/// Makes the packages that would be published. They are not built, which would take as long as a
/// build of the workspace, whose crates are the same sources.
pub fn crates(session: &TestSession) -> Result<StepOutcome> {
    let help = process::capture(session.workspace.cargo().args(["publish", "--help"]))?;
    if !help.contains("--workspace") {
        return Ok(StepOutcome::Skipped("cargo is older than 1.90".into()));
    }
    passed(session.workspace.cargo().args([
        "publish",
        "--workspace",
        "--dry-run",
        "--no-verify",
        "--allow-dirty",
    ]))
}

pub fn install(session: &TestSession) -> Result<StepOutcome> {
    let install = match session.tier {
        Tier::First => installation::first_into,
        _ => installation::quickly_into,
    };
    install(&session.workspace, &session.prefix)?;
    println!("{}", session.prefix.display());
    Ok(StepOutcome::Passed)
}

/// The directories of packages whose test programs steps name.
const SHMEM: &str = "crates/shmem";
const SHMEM_PERF: &str = "launcher/shmem-perf";
const TRANSPORT_UCX: &str = "crates/transport-ucx";
const TRANSPORT_OFI: &str = "crates/transport-ofi";
const FAULTS: &str = "ci/faults";

/// The packages whose integration tests take minutes. These have steps of their own in
/// `--providers`; the step `tests` runs only the unit tests of these packages.
const WITH_LONG_SUITES: [&str; 2] = [TRANSPORT_UCX, TRANSPORT_OFI];

/// Builds the test programs of users' packages.
pub fn build(session: &TestSession) -> Result<StepOutcome> {
    if session.tier == Tier::First {
        // The jobs of oshrun run it. Among chosen targets, cargo would build an example as a test.
        let mut pe = session.workspace.cargo();
        passed(pe.args(["build", "--package", "oshrun", "--example", "pe"]))?;
    }
    suites(session, |_| false)?;
    Ok(StepOutcome::Passed)
}

/// Runs the tests of users' packages: in the first tier the unit tests and [`FIRST`].
pub fn tests(session: &TestSession) -> Result<StepOutcome> {
    if session.tier == Tier::First {
        let mut run = Run::default();
        for part in FIRST {
            let programs = suites(session, |program| program.is(part.dir, part.program))?;
            run = run.and(programs.args([part.name]));
        }
        let units = suites(session, |program| !program.is_integration)?;
        return run.and(units).run();
    }

    let is_long = |program: &TestProgram| {
        program.is_integration && WITH_LONG_SUITES.contains(&program.dir.as_str())
    };
    suites(session, |program| !is_long(program))?
        .and(suites_of(session, Packages::Tools, tests_the_prefix)?)
        .and(suites_of(session, Packages::Apart, |_| true)?)
        .run()
}

/// Runs the examples in the documentation of all crates, mostly of the Rust interface, as jobs of 2
/// PEs. rustdoc merges those of a crate into one program, except those marked `standalone_crate`.
/// Under a runner this program calls them in its own process, so it is one job: by one test thread,
/// PEs call them in the same order. The output is not captured, since a PE that panics ends the job
/// before the harness would show it.
pub fn doc_tests(session: &TestSession) -> Result<StepOutcome> {
    let oshrun = oshrun(session);
    // The variable of cargo that names the program by which it runs tests of this target.
    let target = sanitizer::target().to_uppercase().replace('-', "_");
    let runner = format!("CARGO_TARGET_{target}_RUNNER");

    let mut cargo = session.workspace.cargo();
    cargo
        .args(["test", "--doc", "--workspace", "--exclude", APART, "--"])
        .args(["--test-threads=1", "--nocapture"])
        .env(runner, format!("{} -n 2", oshrun.display()))
        .env("OSHRUN", oshrun);
    tally(&mut cargo)?.outcome()
}

pub fn symbols(session: &TestSession) -> Result<StepOutcome> {
    symbols::check(&session.workspace, &session.prefix, false).map(|()| StepOutcome::Passed)
}

pub fn counts(session: &TestSession) -> Result<StepOutcome> {
    let prefix = session.prefix.display().to_string();
    benches::step(session, "counts", &["--prefix", &prefix])
}

pub fn miri(session: &TestSession) -> Result<StepOutcome> {
    if let Err(error) = install_miri() {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }

    let is_full = session.tier == Tier::Full;
    let limit = if is_full { FULL_MIRI_LIMIT } else { MIRI_LIMIT };
    let mut cargo = process::limited(limit, "rustup");
    cargo
        .args(["run", "nightly", "cargo", "miri", "test", "--lib"])
        .args(["-p", OF_COPIES])
        .current_dir(&session.workspace.root)
        // Tests in isolation do not see variables, such as `EVERY_SIZE`.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation");
    if is_full {
        for package in WITH_UNSAFE_CODE {
            cargo.args(["-p", package]);
        }
        cargo.env(EVERY_SIZE, "1");
    }
    cargo.arg("--").args(OF_UNSAFE_CODE);
    tally(&mut cargo)?.outcome()
}

pub fn bindings(session: &TestSession) -> Result<StepOutcome> {
    match bindings::make_all(&session.workspace, true)?.as_slice() {
        [] => Ok(StepOutcome::Passed),
        skipped => Ok(StepOutcome::Skipped(skipped.join("; "))),
    }
}

/// Runs the tests of the provider of UCX with other versions of UCX: those in the directories that
/// [`UCX_DIRS`] lists, separated by colons.
pub fn other_versions(session: &TestSession) -> Result<StepOutcome> {
    let list = std::env::var_os(UCX_DIRS).unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&list).collect();
    // An empty list has one empty part.
    dirs.retain(|dir| !dir.as_os_str().is_empty());
    if dirs.is_empty() {
        let why = format!("{UCX_DIRS} names no other UCX");
        return Ok(StepOutcome::Skipped(why));
    }

    let mut outcome = StepOutcome::Passed;
    for dir in dirs {
        let run = suites(session, |program| program.dir == TRANSPORT_UCX)?
            .env("UCX_MODULE_DIR", dir.join("ucx"))
            .env("LD_LIBRARY_PATH", dir);
        outcome = outcome.and(run.run()?);
    }
    Ok(outcome)
}

/// Runs jobs in which one system call fails: one job for each call.
pub fn faults_sample(session: &TestSession) -> Result<StepOutcome> {
    faulty(session, "faults_sample::")
}

/// Runs jobs in which one system call fails: for each call with each of its errors, jobs in which
/// it fails at different times.
pub fn faults(session: &TestSession) -> Result<StepOutcome> {
    faulty(session, "faults_at_every_turn::")
}

fn faulty(session: &TestSession, which: &str) -> Result<StepOutcome> {
    suites_of(session, Packages::Tools, |program| program.dir == FAULTS)?
        .args([which, "--ignored"])
        .run()
}

/// Runs each program with operations of its own over TCP, UCX, libfabric or the strict fabric, in
/// one of the network's sample jobs, and the examples in Rust over TCP. If the library of its
/// network is absent, a program is skipped.
pub fn samples(session: &TestSession) -> Result<StepOutcome> {
    let mut arguments = vec!["_sample::", "--ignored"];
    let mut absent = Vec::new();
    if process::on_path(UCX.program).is_none() {
        arguments.extend(["--skip", "ucx_sample::"]);
        absent.push(UCX.program);
    }
    if process::on_path(LIBFABRIC.program).is_none() {
        arguments.extend(["--skip", "ofi_sample::", "--skip", "strict_sample::"]);
        absent.push(LIBFABRIC.program);
    }

    match programs(session)?.args(arguments).run()? {
        StepOutcome::Passed if !absent.is_empty() => Ok(StepOutcome::Skipped(format!(
            "in part: no {}",
            absent.join(", no ")
        ))),
        outcome => Ok(outcome),
    }
}

/// Runs the commands and examples of the documentation, except those of its first pages, which are
/// among the ordinary tests.
pub fn pages(session: &TestSession) -> Result<StepOutcome> {
    let mut arguments = vec!["pages::", "manual::", "--ignored"];
    if session.tier != Tier::Full {
        // They take minutes.
        arguments.extend(["--skip", "pages::measuring", "--skip", "pages::rust"]);
    }
    suites(session, |program| program.is(SHMEM_C, "jobs"))?
        .args(arguments)
        .run()
}

/// Runs each program over TCP with all numbers of PEs.
pub fn tcp_programs(session: &TestSession) -> Result<StepOutcome> {
    programs(session)?
        .args(["tcp_at_every_size::", "--ignored"])
        .run()
}

/// Runs the tests of the provider of libfabric, with the conformance suite over the provider of
/// libfabric that is always tested.
pub fn ofi(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(LIBFABRIC.program).is_none() {
        return Ok(StepOutcome::Skipped("libfabric is not here".into()));
    }
    suites(session, |program| program.dir == TRANSPORT_OFI)?.run()
}

/// Runs each program over libfabric with all numbers of PEs.
pub fn ofi_programs(session: &TestSession) -> Result<StepOutcome> {
    over(session, &LIBFABRIC, "ofi_at_every_size::")
}

/// Runs each program over five profiles of the strict fabric, such as `cxi`.
pub fn strict_programs(session: &TestSession) -> Result<StepOutcome> {
    over(session, &LIBFABRIC, "strict_at_every_profile::")
}

/// Runs the conformance suite over every provider of the installed libfabric, and of the one in the
/// directory that RUSHMEM_OFI_DIR may name, whose providers are in its subdirectory `libfabric`.
pub fn ofi_providers(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(LIBFABRIC.program).is_none() {
        return Ok(StepOutcome::Skipped("libfabric is not here".into()));
    }

    let outcome = all_providers(session)?.run()?;
    let Some(dir) = std::env::var_os("RUSHMEM_OFI_DIR").map(PathBuf::from) else {
        return Ok(outcome);
    };
    let other = all_providers(session)?
        .env("FI_PROVIDER_PATH", dir.join("libfabric"))
        .env("LD_LIBRARY_PATH", dir);
    Ok(outcome.and(other.run()?))
}

/// Returns a run of the conformance suite over every provider of libfabric.
fn all_providers(session: &TestSession) -> Result<Run> {
    let run = suites(session, |program| program.is(TRANSPORT_OFI, "conformance"))?;
    Ok(run
        .args(["--test-threads=2"])
        .env("RUSHMEM_PROVIDERS", "all"))
}

/// Runs the tests of the provider of UCX, with the conformance suite.
pub fn ucx(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path(UCX.program).is_none() {
        return Ok(StepOutcome::Skipped("UCX is not here".into()));
    }
    suites(session, |program| program.dir == TRANSPORT_UCX)?.run()
}

/// Runs each program over UCX with all numbers of PEs.
pub fn ucx_programs(session: &TestSession) -> Result<StepOutcome> {
    over(session, &UCX, "ucx_at_every_size::")
}

/// Runs each program over the network of a library, if the library is here.
fn over(session: &TestSession, library: &Need, module: &str) -> Result<StepOutcome> {
    if process::on_path(library.program).is_none() {
        let why = format!("{} is not here", library.program);
        return Ok(StepOutcome::Skipped(why));
    }
    programs(session)?.args([module, "--ignored"]).run()
}

/// Shows that tests find faults.
pub fn mutants(_: &TestSession) -> Result<StepOutcome> {
    of_task(mutants::run(&MutantsFlags::default()))
}

/// Tests the networks over verbs, in virtual machines.
pub fn verbs(_: &TestSession) -> Result<StepOutcome> {
    of_task(verbs::run(VerbsFlags::default()))
}

/// Makes the files of a release, and tests those that can be used here.
pub fn release(session: &TestSession) -> Result<StepOutcome> {
    suites_of(session, Packages::Tools, |program| {
        program.is(XTASK, "release")
    })?
    .args(["--ignored"])
    .run()
}

/// Runs programs under other launchers than oshrun, except Slurm. Installs missing launchers if it
/// can; without one, its tests are skipped.
pub fn launchers(session: &TestSession) -> Result<StepOutcome> {
    let needs = needs::ensure(&[&HYDRA, &MPIRUN, &PKG_CONFIG]);
    let library = suites(session, |program| program.is(SHMEM_C, "sites"))?.args(["launchers::"]);
    let perf = suites(session, |program| program.is(SHMEM_PERF, "installed"))?;
    launched(needs, library.and(perf.args(["open_mpi::"])))
}

/// Runs programs under a Slurm that the tests start.
pub fn slurm(session: &TestSession) -> Result<StepOutcome> {
    let needs = needs::ensure(&[&HYDRA, &MPIRUN, &PKG_CONFIG, &SLURM]);
    let run = suites(session, |program| program.is(SHMEM_C, "sites"))?;
    launched(needs, run.args(["slurm::"]))
}

/// The packages of Debian and its derivatives that contain sshd and its library.
const SSHD_PACKAGES: [&str; 2] = ["openssh-server", "libwrap0"];

/// Runs jobs that `oshrun` starts over ssh, between hosts that are network namespaces.
pub fn hosts(session: &TestSession) -> Result<StepOutcome> {
    let sshd = needs::ensure(&[&SSH]).and_then(|()| Sshd::find(session));
    let sshd = match sshd {
        Ok(sshd) => sshd,
        Err(why) => return Ok(StepOutcome::Skipped(format!("{why:#}"))),
    };

    let wanted = |program: &TestProgram| program.is(SHMEM_C, "sites");
    let mut run = session
        .suites
        .choose(&session.workspace, Packages::Users, wanted)?
        .args([
            "ssh::",
            "--include-ignored",
            "--test-threads=1",
            "--show-output",
        ])
        .env("RUSHMEM_PREFIX", &session.prefix)
        .env("SSHD", sshd.program);
    if let Some(libraries) = sshd.libraries {
        run = run.env("SSHD_LIBRARIES", libraries);
    }
    run.run()
}

/// The server of ssh.
struct Sshd {
    program: PathBuf,
    /// The directory of its libraries, if the system does not know it.
    libraries: Option<PathBuf>,
}

impl Sshd {
    /// Finds the system's sshd, or one in the build directory, which is unpacked from its package,
    /// since the installation of the package would start it.
    fn find(session: &TestSession) -> Result<Sshd> {
        for program in ["/usr/sbin/sshd", "/sbin/sshd"].map(PathBuf::from) {
            if program.exists() {
                return Ok(Sshd {
                    program,
                    libraries: None,
                });
            }
        }

        let dir = session.workspace.target.join("sshd");
        if !dir.is_dir() {
            unpack_sshd(&dir)?;
        }
        // The directory has the name of the processor.
        let libraries = fs::read_dir(dir.join("usr/lib"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.join("libwrap.so.0").exists());
        Ok(Sshd {
            program: dir.join("usr/sbin/sshd"),
            libraries,
        })
    }
}

fn unpack_sshd(dir: &Path) -> Result<()> {
    if process::on_path("apt-get").is_none() {
        bail!("there is no sshd; install OpenSSH's server");
    }

    println!("Downloading {} for the hosts", SSHD_PACKAGES.join(" and "));
    let work = dir.with_extension("new");
    if work.is_dir() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;

    let mut download = process::limited(Duration::from_secs(300), "apt-get");
    download.args(["download", "-q"]).args(SSHD_PACKAGES);
    process::run(download.current_dir(&work))?;

    // All entries first, since unpacking adds further ones.
    for entry in fs::read_dir(&work)?.collect::<Result<Vec<_>, _>>()? {
        process::run(
            Command::new("dpkg-deb")
                .arg("-x")
                .arg(entry.path())
                .arg(&work),
        )?;
        fs::remove_file(entry.path())?;
    }

    // The directory gets its name when it is complete.
    fs::rename(&work, dir).with_context(|| format!("making {}", dir.display()))
}

/// Runs tests, including ignored ones. `needs` is an error if a tool could not be installed, so
/// that some tests are skipped.
fn launched(needs: Result<()>, run: Run) -> Result<StepOutcome> {
    match run.args(["--include-ignored"]).run()? {
        StepOutcome::Passed => in_part(needs),
        skipped => Ok(skipped),
    }
}

/// Returns the outcome of a step that passed: skipped in part if a tool could not be installed.
fn in_part(needs: Result<()>) -> Result<StepOutcome> {
    match needs {
        Ok(()) => Ok(StepOutcome::Passed),
        Err(error) => Ok(StepOutcome::Skipped(format!("in part: {error:#}"))),
    }
}

/// Returns a run of the test programs whose ignored tests belong to `--providers` and `--full`.
fn programs(session: &TestSession) -> Result<Run> {
    suites(session, |program| {
        program.is(SHMEM_C, "programs")
            || program.is(SHMEM, "examples")
            || program.is(SHMEM_PERF, "installed")
    })
}

/// Returns a run of the test programs of users' packages for which `wanted` is true.
fn suites(session: &TestSession, wanted: impl Fn(&TestProgram) -> bool) -> Result<Run> {
    suites_of(session, Packages::Users, wanted)
}

/// Returns a run of the test programs of `packages` for which `wanted` is true, with the variables
/// by which they find the installed prefix and its launcher, and in `--full` the one that makes
/// them run with all sizes.
fn suites_of(
    session: &TestSession,
    packages: Packages,
    wanted: impl Fn(&TestProgram) -> bool,
) -> Result<Run> {
    let run = session
        .suites
        .choose(&session.workspace, packages, wanted)?
        .env("RUSHMEM_PREFIX", &session.prefix)
        .env("OSHRUN", oshrun(session));
    if session.tier == Tier::Full {
        return Ok(run.env(EVERY_SIZE, "1"));
    }
    Ok(run)
}

/// The target of the step `aarch64`.
const AARCH64: &str = "aarch64-unknown-linux-gnu";
const AARCH64_BINUTILS: &str = "aarch64-linux-gnu-";
/// The command that runs programs of that processor.
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Builds the release for aarch64, and runs the programs of the C interface under an emulator, on 2
/// and 3 PEs. The emulator does not show the weaker order of loads and stores of aarch64.
pub fn aarch64(session: &TestSession) -> Result<StepOutcome> {
    let gcc = format!("{AARCH64_BINUTILS}gcc");
    let gxx = format!("{AARCH64_BINUTILS}g++");
    for (tool, package) in [
        ("qemu-aarch64", "qemu-user"),
        (&gcc, "gcc-aarch64-linux-gnu"),
        (&gxx, "g++-aarch64-linux-gnu"),
    ] {
        if process::on_path(tool).is_none() {
            let why = format!("{tool} is not here (the package {package})");
            return Ok(StepOutcome::Skipped(why));
        }
    }
    if let Err(error) = install_target(AARCH64) {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }

    let tools = Toolchain {
        compiler: gcc.clone(),
        binutils: AARCH64_BINUTILS.to_owned(),
        runner: EMULATOR.to_owned(),
        keeps_debug_information: false,
        epoch: None,
    };
    let prefix = session.workspace.target.join("aarch64-prefix");
    let linker = format!("target.{AARCH64}.linker=\"{}\"", tools.compiler);
    let build = [
        "build",
        "--release",
        "--target",
        AARCH64,
        "--config",
        &linker,
    ];
    let release = Release::build(&session.workspace, &build)?;
    installation::install_release(&session.workspace, &release, &prefix, &tools)?;

    let run = suites(session, |program| program.is(SHMEM_C, "programs"))?;
    run.env("RUSHMEM_PREFIX", &prefix)
        .env("RUSHMEM_LAUNCHER", oshrun(session))
        .env("RUSHMEM_EMULATOR", EMULATOR)
        .env("OSHCC_CC", gcc)
        .env("OSHCXX_CXX", format!("{AARCH64_BINUTILS}g++"))
        .env("OSHFORT_FC", format!("{AARCH64_BINUTILS}gfortran"))
        .args(["emulated::", "--ignored"])
        .run()
}

/// Checks the licenses, versions and sources of all dependencies. Advisories are not checked, since
/// their database would have to be downloaded.
pub fn dependencies(session: &TestSession) -> Result<StepOutcome> {
    if process::on_path("cargo-deny").is_none() {
        return Ok(StepOutcome::Skipped(
            "cargo-deny is not here: cargo install --locked cargo-deny".into(),
        ));
    }
    let mut deny = session.workspace.cargo();
    deny.args([
        "deny",
        "--offline",
        "--config",
        "ci/packaging/deny.toml",
        "check",
    ]);
    passed(deny.args(["licenses", "bans", "sources"]))
}

/// Builds the documentation as a site, and checks its links.
pub fn book(_: &TestSession) -> Result<StepOutcome> {
    of_task(book::run())
}

pub fn oshrun(session: &TestSession) -> PathBuf {
    session.prefix.join("bin/oshrun")
}

/// Parts of the names of ignored tests that other steps of `--full` run.
const STEPS_OF_THEIR_OWN: &[&str] = &[
    "slurm::",
    "hydra::",
    "mpirun::",
    "prterun",
    "over_ssh_",
    "_sample::",
    "_at_every_",
    "emulated::",
    "files_of_a_release",
    "pages::",
    "manual::",
];

pub fn soak(session: &TestSession) -> Result<StepOutcome> {
    let mut arguments = vec!["--ignored"];
    for part in STEPS_OF_THEIR_OWN {
        arguments.extend(["--skip", part]);
    }
    suites(session, |_| true)?
        .and(suites_of(session, Packages::Apart, |_| true)?)
        .args(arguments)
        .run()
}

pub fn oldest_rust(session: &TestSession) -> Result<StepOutcome> {
    let version = session.workspace.rust_version()?;
    if let Err(error) = install_rust(version) {
        return Ok(StepOutcome::Skipped(format!("{error:#}")));
    }

    let mut cargo = session.workspace.cargo_of(version);
    cargo.args(["check", "--workspace", "--all-targets"]);
    let target = session.workspace.target.join("oldest-rust");
    passed(cargo.env("CARGO_TARGET_DIR", target))
}
