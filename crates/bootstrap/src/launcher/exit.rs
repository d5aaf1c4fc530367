//! Describes how a process ended, in the words and numbers of a shell.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The end of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The process exited with this status, 0..=255.
    Status(i32),
    /// The process was killed by this signal.
    Signal(i32),
    /// The connection to the process has ended, and how the process ended is not known.
    Unknown,
}

impl Exit {
    /// Returns the status that a shell shows: the exit status, or 128 + signal; 1 if it is not
    /// known.
    pub fn status(self) -> i32 {
        match self {
            Exit::Status(status) => status,
            Exit::Signal(signal) => 128 + signal,
            Exit::Unknown => 1,
        }
    }
}

impl Exit {
    /// Returns how the process has ended, for parentheses: `killed by SIGKILL`; `None` if it is not
    /// known.
    pub fn manner(self) -> Option<String> {
        match self {
            Exit::Status(status) => Some(format!("exited with status {status}")),
            Exit::Signal(signal) => Some(format!("killed by {}", signal_name(signal))),
            Exit::Unknown => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Status(status) => write!(f, "exited with status {status}"),
            Exit::Signal(signal) => write!(f, "was killed by {}", signal_name(*signal)),
            Exit::Unknown => f.write_str("ended, or its host is gone,"),
        }
    }
}

/// The signals 1 to 31 as Linux numbers them on x86-64 and aarch64.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// Returns the name of a signal, such as `SIGKILL`; `signal 40` if it has none.
pub fn signal_name(signal: i32) -> String {
    let index = usize::try_from(signal - 1).ok();
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_like_a_shell() {
        assert_eq!(Exit::Signal(9).to_string(), "was killed by SIGKILL");
        assert_eq!(Exit::Signal(11).status(), 139);
        assert_eq!(Exit::Signal(40).to_string(), "was killed by signal 40");
        assert_eq!(Exit::Signal(31).to_string(), "was killed by SIGSYS");
        assert_eq!(Exit::Status(3).to_string(), "exited with status 3");
        assert_eq!(
            Exit::Signal(15).manner().as_deref(),
            Some("killed by SIGTERM")
        );
        assert_eq!(signal_name(0), "signal 0");
    }
}
