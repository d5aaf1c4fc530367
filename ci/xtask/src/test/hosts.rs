//! Jobs that `oshrun` starts over ssh, between hosts that are network namespaces.
//!
//! Where there is no sshd it is unpacked from its package and not installed, since an installed one
//! would be started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::needs::SSH;
use task_support::workspace::TestProgram;
use task_support::{needs, process};

use super::session::TestSession;
use super::steps::SHMEM_C;
use super::tools::StepOutcome;

/// Packages of Debian and its kin that bring sshd.
const PACKAGES: [&str; 2] = ["openssh-server", "libwrap0"];

pub fn over_ssh(session: &TestSession) -> Result<StepOutcome> {
    let sshd = needs::ensure(&[&SSH]).and_then(|()| sshd(&session.workspace.target.join("sshd")));
    let (sshd, libraries) = match sshd {
        Ok(found) => found,
        Err(why) => return Ok(StepOutcome::Skipped(format!("{why:#}"))),
    };
    let wanted = |program: &TestProgram| program.is(SHMEM_C, "sites");
    let mut run = session.suites.choose(&session.workspace, wanted)?;
    run = run.args(["ssh::", "--include-ignored", "--test-threads=1", "--show-output"]);
    run = run.env("RUSHMEM_PREFIX", &session.prefix).env("SSHD", sshd);
    if let Some(libraries) = libraries {
        run = run.env("SSHD_LIBRARIES", libraries);
    }
    run.run()
}

/// Returns the system's sshd, or one in `dir`, with the directory of its libraries.
fn sshd(dir: &Path) -> Result<(PathBuf, Option<PathBuf>)> {
    let system = ["/usr/sbin/sshd", "/sbin/sshd"].map(PathBuf::from);
    if let Some(sshd) = system.into_iter().find(|file| file.exists()) {
        return Ok((sshd, None));
    }
    if !dir.is_dir() {
        unpack(dir)?;
    }
    let library = fs::read_dir(dir.join("usr/lib"))?.filter_map(|entry| Some(entry.ok()?.path()));
    let library = library.into_iter().find(|path| path.join("libwrap.so.0").exists());
    Ok((dir.join("usr/sbin/sshd"), library))
}

fn unpack(dir: &Path) -> Result<()> {
    if process::on_path("apt-get").is_none() {
        bail!("there is no sshd; install OpenSSH's server");
    }
    println!("Downloading {} for the hosts", PACKAGES.join(" and "));
    let work = dir.with_extension("new");
    if work.is_dir() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let mut download = process::limited(Duration::from_secs(300), "apt-get");
    process::run(download.args(["download", "-q"]).args(PACKAGES).current_dir(&work))?;
    for entry in fs::read_dir(&work)?.collect::<Result<Vec<_>, _>>()? {
        process::run(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(&work))?;
        fs::remove_file(entry.path())?;
    }
    fs::rename(&work, dir).with_context(|| format!("making {}", dir.display()))
}
