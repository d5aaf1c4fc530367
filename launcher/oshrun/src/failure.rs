//! Errors of oshrun: one sentence and an exit status.

use std::io::Write;

/// Why a job could not be started.
#[derive(Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Exit status of oshrun.
    pub status: i32,
    /// What to print after `oshrun: `.
    pub sentence: String,
}

impl StartFailure {
    /// An error that is not caused by the command line or the program.
    pub fn general(sentence: String) -> StartFailure {
        StartFailure { status: 1, sentence }
    }

    /// An invalid command line; status 2, as in shells.
    pub fn usage(sentence: String) -> StartFailure {
        StartFailure { status: 2, sentence }
    }
}

/// Prints a message on stderr. If that fails, the exit status has to suffice.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The failure of an operation of oshrun itself.
pub fn cannot(what: &str, error: &std::io::Error) -> StartFailure {
    // Cause: the kernel refused a request of oshrun. Remedy: correct what it names.
    StartFailure::general(format!("cannot {what}: {}", reason(error)))
}

/// The error without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
