//! The step `ordinary-user`: runs the examples as an ordinary user, without privileges, with 1,024
//! descriptors and 64 KiB of locked memory.
//!
//! The installed prefix is copied to a directory that this user can read. The oshcc and the oshrun
//! of the copy compile and run the examples.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use task_support::{installation, needs, process};

use crate::demo::{EXAMPLES, Example, SOURCES};
use crate::runner::{StepOutcome, TestSession};

/// The ID of the user `nobody` on every Linux, as whom root runs the examples.
const NOBODY: &str = "65534";
const LIMITS: &str = "ulimit -n 1024 && ulimit -l 64 && exec \"$@\"";
const LIMIT: Duration = Duration::from_secs(60);

pub fn user(session: &TestSession) -> Result<StepOutcome> {
    let place = PublicDir::make()?;
    let prefix = place.path.join("prefix");
    installation::copy_tree(&session.prefix, &prefix)?;
    let sources = place.path.join("examples");
    installation::copy_tree(&session.workspace.root.join(SOURCES), &sources)?;
    // The output of the step says as whom the examples run.
    place.command(LIMIT, "id").status()?;

    for Example { name, pes } in EXAMPLES {
        let program = place.path.join("tmp").join(name);
        process::run(
            place
                .command(LIMIT, prefix.join("bin/oshcc"))
                .arg(sources.join(name).with_extension("c"))
                .arg("-o")
                .arg(&program),
        )?;
        process::run(
            place
                .command(LIMIT, prefix.join("bin/oshrun"))
                .args(["-n", &pes.to_string()])
                .arg(&program),
        )?;
    }
    Ok(StepOutcome::Passed)
}

/// A directory that all users may read, with a directory `tmp` in which all may write. Dropping it
/// deletes the directory.
struct PublicDir {
    path: PathBuf,
}

impl PublicDir {
    fn make() -> Result<Self> {
        let name = format!("rushmem-ordinary-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("could not make {}", path.display()))?;
        let place = Self { path };
        let tmp = place.path.join("tmp");
        fs::create_dir(&tmp)?;
        fs::set_permissions(&place.path, fs::Permissions::from_mode(0o755))?;
        fs::set_permissions(&tmp, fs::Permissions::from_mode(0o777))?;
        Ok(place)
    }

    /// Returns a command that runs `program` as the ordinary user: as `nobody` if this process is
    /// root's, otherwise as the user of this process.
    fn command(&self, limit: Duration, program: impl AsRef<OsStr>) -> Command {
        let mut command = if needs::is_root() {
            let mut command = process::limited(limit, "setpriv");
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
            command.args(["--inh-caps=-all", "sh"]);
            command
        } else {
            process::limited(limit, "sh")
        };
        command
            .args(["-c", LIMITS, "sh"])
            .arg(program)
            .current_dir(&self.path)
            .env("HOME", self.path.join("tmp"))
            .env("TMPDIR", self.path.join("tmp"));
        command
    }
}

impl Drop for PublicDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} was left behind: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_and_nothing_is_left_behind() {
        let place = PublicDir::make().unwrap();
        let path = place.path.clone();
        let printed = process::capture(
            place
                .command(LIMIT, "sh")
                .args(["-c", "ulimit -n; ulimit -l"]),
        );
        assert_eq!(printed.unwrap(), "1024\n64\n");
        drop(place);
        assert!(!path.exists());
    }
}
