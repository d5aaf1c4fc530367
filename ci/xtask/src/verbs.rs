//! `cargo xtask verbs`: tests of the networks over the kernel's verbs, in virtual machines with a
//! NIC in software (Soft-RoCE).
//!
//! A guest runs Debian's kernel with the files of this machine, so the programs that were built
//! here run there. The conformance suite and some programs run over UCX's `rc_verbs` and
//! libfabric's `verbs;ofi_rxm`, in one guest and across two that are connected; a few programs also
//! run over `ud_verbs` in one guest. Every job and every guest has a time limit. Their output is
//! stored under `target/verbs`. Without QEMU or a kernel, the task fails with the reason.

mod guest;
mod jobs;
mod kernel;
mod table;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Result, bail};
use task_support::needs::HYDRA;
use task_support::task::Absent;
use task_support::workspace::Workspace;
use task_support::{installation, needs, process};

use guest::{Bed, GuestRun};
use jobs::{GuestJob, Libraries};

/// Maximum time of a guest. The sum of the limits of its jobs may be longer, but jobs seldom reach
/// their limits.
const LONGEST: Duration = Duration::from_secs(5400);
/// The part of a guest's time in which no job runs.
const START_AND_END: Duration = Duration::from_secs(300);

#[derive(Default, clap::Args)]
pub struct VerbsFlags {
    /// Run only the jobs whose names begin with START, also those that measure
    #[arg(long, value_name = "START")]
    only: Vec<String>,
    /// Print the names of the jobs
    #[arg(long)]
    list: bool,
}

/// Runs the jobs that the flags select, or lists them.
pub fn run(VerbsFlags { only, list }: VerbsFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    if list {
        // The names do not depend on the paths.
        let paths = jobs::GuestPaths::new(&workspace, PathBuf::new(), PathBuf::new());
        for job in jobs::all(&paths, &Libraries::all()?) {
            println!("{}", job.name);
        }
        return Ok(());
    }
    check(&workspace, &bed(&workspace)?, &only)
}

/// Returns the files from which guests are started.
///
/// # Errors
/// [`Absent`] if guests cannot be started here.
fn bed(workspace: &Workspace) -> Result<Bed> {
    if !cfg!(target_arch = "x86_64") {
        let why = "the guests are x86-64 machines, and run this machine's programs";
        return Err(Absent(why.to_owned()).into());
    }
    needs::ensure(needs::OF_VERBS).map_err(|error| Absent(format!("{error:#}")))?;
    // Without this launcher, programs fail across two guests; other jobs run.
    if let Err(error) = needs::ensure(&[&HYDRA]) {
        println!("{error:#}");
    }

    let dir = workspace.target.join("verbs");
    fs::create_dir_all(&dir)?;
    let kernel =
        kernel::tree(&dir).map_err(|error| Absent(format!("no kernel for a guest: {error:#}")))?;
    Bed::new(workspace, &dir, kernel)
}

fn check(workspace: &Workspace, bed: &Bed, only: &[String]) -> Result<()> {
    let paths = build(workspace)?;
    let mut jobs = jobs::all(&paths, &Libraries::all()?);
    for start in only {
        if !jobs.iter().any(|job| job.name.starts_with(start)) {
            bail!("no job starts with `{start}`: see --list");
        }
    }
    if only.is_empty() {
        jobs.retain(|job| !job.measures);
    } else {
        jobs.retain(|job| only.iter().any(|start| job.name.starts_with(start)));
    }

    let mut reports = Vec::new();
    for pair in [false, true] {
        let jobs: Vec<&GuestJob> = jobs.iter().filter(|job| job.pair == pair).collect();
        if jobs.is_empty() {
            continue;
        }
        let of_jobs: Duration = jobs.iter().map(|job| job.limit).sum();
        let limit = (START_AND_END + of_jobs).min(LONGEST);
        reports.extend(bed.run(&GuestRun { jobs, pair, limit })?);
    }

    print!("{}", table::table(&reports));
    for report in &reports {
        let has_measured = jobs
            .iter()
            .any(|job| job.measures && job.name == report.name);
        if has_measured {
            print!("\n{}\n{}", report.name, report.text());
        }
    }
    match reports.iter().find(|report| report.has_failed()) {
        None => Ok(()),
        Some(first) => bail!("{} failed first: see {}", first.name, first.log.display()),
    }
}

/// Builds the files that the guests run: the suites of both networks, an installed prefix, and the
/// programs.
fn build(workspace: &Workspace) -> Result<jobs::GuestPaths> {
    let ucx = build_suite(workspace, "rushmem-transport-ucx")?;
    let ofi = build_suite(workspace, "rushmem-transport-ofi")?;
    let paths = jobs::GuestPaths::new(workspace, ucx, ofi);
    installation::into(workspace, &paths.prefix)?;
    fs::create_dir_all(&paths.programs)?;

    let mut compilers = Vec::new();
    for (name, source) in jobs::PROGRAMS {
        let mut oshcc = Command::new(paths.prefix.join("bin/oshcc"));
        oshcc
            .current_dir(&workspace.root)
            .args([source, "-O1", "-w", "-o"])
            .arg(paths.programs.join(name));
        compilers.push(thread::spawn(move || process::run(&mut oshcc)));
    }
    for compiler in compilers {
        compiler.join().expect("no thread panics")?;
    }
    Ok(paths)
}

/// Builds the suite of a network. Returns its path.
fn build_suite(workspace: &Workspace, package: &str) -> Result<PathBuf> {
    let made = workspace.build(&[
        "test",
        "--release",
        "--no-run",
        "-p",
        package,
        "--test",
        "conformance",
    ])?;
    for path in made {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Cargo adds a hash to the name of the test.
        if name.starts_with("conformance-") {
            return Ok(path);
        }
    }
    bail!("{package} has no suite")
}
