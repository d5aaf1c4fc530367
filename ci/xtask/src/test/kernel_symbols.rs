//! Hides /proc/kallsyms from the tests of `--providers`.
//!
//! libfabric's provider of verbs looks there for two functions of the kernel, and each process that
//! loads libfabric reads all of the 120,000 lines twice. That takes more time than most jobs of the
//! tests. Where the functions are absent, as in an empty file, the provider does without them.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};
use task_support::process;

const SYMBOLS: &str = "/proc/kallsyms";

/// A shell script whose arguments are a command, which it runs with an empty file of symbols.
const COVER: &str = r#"mount --bind /dev/null /proc/kallsyms && exec "$@""#;

/// Replaces this process by the same program in a mount namespace in which the file is empty.
/// Returns `Ok` only if it is already, or if this user may not hide it, which only takes time.
pub fn hide() -> Result<()> {
    if is_hidden() || !process::succeeds(hiding().arg("true")) {
        return Ok(());
    }

    let mut this = hiding();
    this.arg(env::current_exe()?).args(env::args_os().skip(1));
    // It returns only if it fails.
    Err(this.exec()).context("could not start unshare")
}

fn is_hidden() -> bool {
    fs::metadata(SYMBOLS).is_ok_and(|file| file.file_type().is_char_device())
}

/// Returns a command whose further arguments are another command.
fn hiding() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", COVER, "sh"]);
    command
}
