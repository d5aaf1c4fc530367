//! Errors of oshrun: one sentence and an exit status.

use std::io::Write;

/// Why a job could not be started.
#[derive(Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Exit status of oshrun.
    pub status: i32,
    /// The text to print after `oshrun: `.
    pub sentence: String,
}

impl StartFailure {
    /// Returns an error that is not caused by the command line or the program.
    pub fn general(sentence: String) -> StartFailure {
        StartFailure { status: 1, sentence }
    }

    /// Returns an invalid command line; status 2, as in shells.
    pub fn usage(sentence: String) -> StartFailure {
        StartFailure { status: 2, sentence }
    }
}

/// Prints a message on stderr. If that fails, the exit status has to suffice.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns the failure of an operation of oshrun itself.
pub fn cannot(what: &str, error: &std::io::Error) -> StartFailure {
    // Cause: the kernel refused a request of oshrun. Remedy: correct what it names.
    StartFailure::general(format!("cannot {what}: {}", reason(error)))
}

/// Returns the error without its number, with the remedy if a limit or a filter is the cause.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM) => {
            " (a sandbox or container refuses it: permit clone3 and memfd_create in its filter of system calls, or update \
             its runtime)"
        }
        Some(libc::EMFILE) => " (raise ulimit -n)",
        Some(libc::ENFILE) => " (raise the sysctl fs.file-max)",
        Some(libc::EAGAIN) => {
            " (the limit of processes or of memory is reached: see ulimit -u and -v, and pids.max of the control group)"
        }
        Some(libc::ENOMEM | libc::ENOBUFS) => " (the host is short of memory)",
        _ => "",
    };
    format!("{text}{remedy}")
}
