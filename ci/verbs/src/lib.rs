//! `cargo xtask verbs`: the networks over real verbs, in virtual machines with a NIC made of
//! software (Soft-RoCE).
//!
//! The guest's kernel is Debian's and its files are this machine's, so what runs there is what was
//! built here. The suite of the networks runs over UCX's `rc_verbs` and libfabric's
//! `verbs;ofi_rxm`, and some programs do, a few also over `ud_verbs`; in one guest, and across two
//! with a wire between them. Every job has a limit, and every guest; what they print stays under
//! `target/verbs`. Where there is no QEMU or no kernel, the task says so.
#![forbid(unsafe_code)]

mod guest;
mod jobs;
mod kernel;
mod table;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use task_support::needs::{
    BUSYBOX, C_COMPILER, CPIO, HYDRA, IBVERBS, IPROUTE, KMOD, LIBFABRIC, Need, QEMU, UCX,
};
use task_support::workspace::{Install, Workspace};
use task_support::{needs, process};

use guest::Bed;
use jobs::{GuestJob, Libraries};

/// No guest takes longer: its jobs seldom take all of their time.
const LONGEST: Duration = Duration::from_secs(5400);

/// Programs without which no guest starts.
pub const NEEDS: &[&Need] =
    &[&QEMU, &BUSYBOX, &KMOD, &CPIO, &IBVERBS, &IPROUTE, &C_COMPILER, &UCX, &LIBFABRIC];

/// Flags of the task.
#[derive(clap::Args)]
pub struct VerbsFlags {
    /// The jobs whose names begin so
    #[arg(long, value_name = "START")]
    only: Vec<String>,
    /// Print the names of the jobs
    #[arg(long)]
    list: bool,
}

/// Runs the task.
pub fn run(VerbsFlags { only, list }: VerbsFlags, install: Install) -> Result<()> {
    let workspace = Workspace::open()?;
    if list {
        let places = jobs::Places::at(&workspace, PathBuf::new(), PathBuf::new());
        jobs::all(&places, &Libraries::all()?).iter().for_each(|job| println!("{}", job.name));
        return Ok(());
    }
    match bed(&workspace)? {
        Ok(bed) => check(&workspace, &bed, &only, install),
        Err(why) => {
            println!("skipped: {why}");
            Ok(())
        }
    }
}

/// Runs the jobs as a step of the tests. Returns the reason if it cannot be run.
pub fn step(workspace: &Workspace, install: Install) -> Result<Result<(), String>> {
    match bed(workspace)? {
        Ok(bed) => check(workspace, &bed, &[], install).map(Ok),
        Err(why) => Ok(Err(why)),
    }
}

/// Returns the files from which guests are started, or why there are none.
fn bed(workspace: &Workspace) -> Result<Result<Bed, String>> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(Err("the guests are x86-64 machines, and run this machine's programs".into()));
    }
    if let Err(error) = needs::ensure(NEEDS) {
        return Ok(Err(format!("{error:#}")));
    }
    // Without it no program runs across two guests.
    if let Err(error) = needs::ensure(&[&HYDRA]) {
        println!("{error:#}");
    }
    let dir = workspace.target.join("verbs");
    fs::create_dir_all(&dir)?;
    match kernel::tree(&dir) {
        Ok(kernel) => Bed::new(workspace, &dir, kernel).map(Ok),
        Err(error) => Ok(Err(format!("no kernel for a guest: {error:#}"))),
    }
}

fn check(workspace: &Workspace, bed: &Bed, only: &[String], install: Install) -> Result<()> {
    let places = build(workspace, install)?;
    let mut jobs = jobs::all(&places, &Libraries::all()?);
    if let Some(unknown) =
        only.iter().find(|start| !jobs.iter().any(|job| job.name.starts_with(*start)))
    {
        bail!("no job starts with `{unknown}`: see --list");
    }
    jobs.retain(|job| match only {
        [] => !job.measures,
        only => only.iter().any(|start| job.name.starts_with(start)),
    });
    let mut reports = Vec::new();
    for pair in [false, true] {
        let here: Vec<&GuestJob> = jobs.iter().filter(|job| job.pair == pair).collect();
        if here.is_empty() {
            continue;
        }
        let limit = Duration::from_secs(300) + here.iter().map(|job| job.limit).sum::<Duration>();
        reports.extend(bed.run(&here, pair, limit.min(LONGEST))?);
    }
    print!("{}", table::table(&reports));
    for job in jobs.iter().filter(|job| job.measures) {
        let measured = reports.iter().filter(|report| report.name == job.name);
        measured.for_each(|report| print!("\n{}\n{}", report.name, report.text()));
    }
    match reports.iter().find(|report| report.failed()) {
        None => Ok(()),
        Some(first) => bail!("{} failed first: see {}", first.name, first.log.display()),
    }
}

/// Builds what the guests run: the suite of both networks, an installed prefix, and the programs.
fn build(workspace: &Workspace, install: Install) -> Result<jobs::Places> {
    let suite = |package: &str| -> Result<PathBuf> {
        let made = workspace.build(&[
            "test",
            "--release",
            "--no-run",
            "-p",
            package,
            "--test",
            "conformance",
        ])?;
        let is_suite = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("conformance-"))
        };
        made.into_iter().find(is_suite).with_context(|| format!("{package} has no suite"))
    };
    let places = jobs::Places::at(
        workspace,
        suite("rushmem-transport-ucx")?,
        suite("rushmem-transport-ofi")?,
    );
    install(workspace, &places.prefix)?;
    fs::create_dir_all(&places.programs)?;
    let builders: Vec<_> = jobs::PROGRAMS
        .into_iter()
        .map(|(name, source)| {
            let mut oshcc = Command::new(places.prefix.join("bin/oshcc"));
            oshcc.current_dir(&workspace.root).arg(source).arg("-O1").arg("-w");
            oshcc.arg("-o").arg(places.programs.join(name));
            thread::spawn(move || process::run(&mut oshcc))
        })
        .collect();
    for builder in builders {
        builder.join().expect("no thread panics")?;
    }
    Ok(places)
}
