//! Errors of oshrun: a sentence and an exit status. A panic of oshrun, or a start that hangs, also
//! ends it with one sentence; its guard then ends the job.

use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rushmem_system::refused_calls;
use rushmem_system::stderr::print_line;

/// Time limit for the start of processes, to which one second is added for each PE. It leaves time
/// for a file system that hangs for a while.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Duration of a single wait. If oshrun is stopped during a wait, the wait counts as no longer than
/// this.
const TICK: Duration = Duration::from_millis(250);

/// Why a job could not be started.
#[derive(Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Exit status of oshrun.
    pub status: i32,
    /// The text to print after `oshrun: `.
    pub sentence: String,
}

impl StartFailure {
    /// Returns a failure that has no exit status of its own.
    pub fn general(sentence: String) -> StartFailure {
        StartFailure {
            status: 1,
            sentence,
        }
    }

    /// Returns the failure of an invalid command line, with status 2 as in shells.
    pub fn usage(sentence: String) -> StartFailure {
        StartFailure {
            status: 2,
            sentence,
        }
    }
}

/// Returns the failure of an operation, which `what` names by a verb: "cannot start a thread: ..".
pub fn cannot(what: &str, error: &std::io::Error) -> StartFailure {
    StartFailure::general(format!("cannot {what}: {}", reason(error)))
}

/// Returns the text of an error without its number, with a remedy if a limit or a filter of system
/// calls may be the cause.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let remedy = match error.raw_os_error() {
        // `refused_calls::remedy` tries the calls that a filter may refuse. It cannot try `clone3`,
        // which starts a thread, so it is told to name that if it finds no other.
        Some(libc::EPERM) => return format!("{text} ({})", refused_calls::remedy("clone3")),
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

/// Makes a panic end oshrun with one message. The event loop panics if polling fails.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        // The payload is a String or a &str, as the panic has formatted its text or not.
        let payload = panic.payload();
        let text = if let Some(text) = payload.downcast_ref::<String>() {
            text
        } else if let Some(text) = payload.downcast_ref::<&str>() {
            text
        } else {
            "an unknown error"
        };

        let place = match panic.location() {
            Some(place) => format!(" ({}:{})", place.file(), place.line()),
            None => String::new(),
        };
        print_line(format_args!("oshrun: cannot continue: {text}{place}"));
        exit(1)
    }));
}

/// Ends oshrun unless this value is dropped in time. It guards the start of processes, which blocks
/// until the kernel reports that the child has executed its program or has failed.
#[derive(Debug)]
pub struct StartLimit {
    _started: Sender<()>,
}

impl StartLimit {
    /// Starts the time limit for a job of `n` PEs.
    pub fn new(n: u32) -> std::io::Result<StartLimit> {
        let (_started, over) = channel();
        let limit = START_LIMIT + Duration::from_secs(n.into());
        std::thread::Builder::new().spawn(move || {
            if !ends_within(limit, &over) {
                let seconds = limit.as_secs();
                print_line(format_args!(
                    "oshrun: cannot start the job: the kernel has not reported within {seconds} seconds that a new process \
                     runs its program"
                ));
                exit(1)
            }
        })?;
        Ok(StartLimit { _started })
    }
}

/// Waits until the start is over. Returns false if the limit expired first.
fn ends_within(limit: Duration, over: &Receiver<()>) -> bool {
    let n_ticks = limit.as_millis().div_ceil(TICK.as_millis());
    for _ in 0..n_ticks {
        // The sender is dropped at the end of the start.
        if over.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected) {
            return true;
        }
    }
    false
}
