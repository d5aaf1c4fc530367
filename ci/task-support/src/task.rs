//! The end of a program that is a task: its message and its exit status.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Error, Result};

/// The exit status of a task that needs what this machine lacks, by the custom of automake's tests.
pub const ABSENT: u8 = 77;

/// The error of a task that needs what this machine lacks. The text says what is missing, and how
/// to get it.
#[derive(Debug)]
pub struct Absent(pub String);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Absent {}

/// Returns the exit status of a program whose task has this result. Prints an error.
pub fn end(result: Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    eprintln!("xtask: {error:#}");
    status(&error)
}

fn status(error: &Error) -> ExitCode {
    match error.downcast_ref() {
        Some(Absent(_)) => ExitCode::from(ABSENT),
        None => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_has_a_status_of_its_own() {
        assert_eq!(status(&Error::msg("broken")), ExitCode::FAILURE);
        let absent = Error::new(Absent("no QEMU".to_owned()));
        assert_eq!(status(&absent), ExitCode::from(ABSENT));
        assert_eq!(end(Ok(())), ExitCode::SUCCESS);
    }
}
