//! Running other programs: with their output passed through, captured or discarded, and optionally
//! under a time limit.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The status of coreutils' `timeout` when it had to end the program.
const TIMED_OUT: i32 = 124;

/// Runs `command` with its output passed through. Fails if the status is not 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("could not start {}", shown(command)))?;
    decide(command, status)
}

/// Runs `command` and returns its standard output. Fails if the status is not 0.
pub fn capture(command: &mut Command) -> Result<String> {
    let Output { status, stdout, .. } = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("could not start {}", shown(command)))?;
    decide(command, status)?;
    String::from_utf8(stdout).with_context(|| format!("{} printed no UTF-8", shown(command)))
}

/// Runs `command` without showing its output. Returns true if it ends with status 0.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns a command that runs `program` and ends it, with its process group, after `limit`, of
/// which only whole seconds count; less than one is no limit. Its standard input is empty.
pub fn limited(limit: Duration, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", &limit.as_secs().to_string()])
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// Returns the file that the shell would run for `program`, without a look at its permissions; a
/// name with a slash is that of the file.
pub fn on_path(program: impl AsRef<Path>) -> Option<PathBuf> {
    let program = program.as_ref();
    if program.components().count() > 1 {
        return if program.is_file() {
            Some(program.to_owned())
        } else {
            None
        };
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}

/// Returns the command as a user would type it in a shell.
pub fn shown(command: &Command) -> String {
    let mut text = word(command.get_program());
    for argument in command.get_args() {
        let _ = write!(text, " {}", word(argument));
    }
    text
}

fn word(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Fails if `command` ended with another status than 0.
pub fn decide(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    if command.get_program() == "timeout" && status.code() == Some(TIMED_OUT) {
        bail!("{} did not end in time", shown(command));
    }
    bail!("{} failed ({status})", shown(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("cc");
        command.args(["-I/a b", "it's", "", "-o", "x"]);
        assert_eq!(shown(&command), r"cc '-I/a b' 'it'\''s' '' -o x");
    }

    #[test]
    fn a_status_other_than_zero_is_an_error_that_names_the_command() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh -c 'exit 3' failed (exit status: 3)");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let error = run(limited(Duration::from_secs(1), "sleep").arg("60")).unwrap_err();
        assert!(
            error.to_string().ends_with("did not end in time"),
            "{error}"
        );
    }

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        assert!(on_path("sh").is_some());
        assert!(on_path("/bin/sh").is_some());
        assert!(on_path("no-such-program-anywhere").is_none());
    }
}
