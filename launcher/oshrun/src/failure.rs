//! Why a job could not be started: one sentence and the exit status of oshrun.

use std::io::Write;

/// A reason to start nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit status of oshrun.
    pub status: i32,
    /// What to print after `oshrun: `.
    pub sentence: String,
}

impl Failure {
    /// Something that is neither the command line's nor the program's fault.
    pub fn general(sentence: String) -> Failure {
        Failure { status: 1, sentence }
    }

    /// A command line that cannot be understood; 2, as shells and most programs have it.
    pub fn usage(sentence: String) -> Failure {
        Failure { status: 2, sentence }
    }
}

/// Prints a message of oshrun on stderr, if that takes it: where it does not, the exit status speaks.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// oshrun itself could not do something.
pub fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::general(format!("cannot {what}: {}", reason(error)))
}

/// The error without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
