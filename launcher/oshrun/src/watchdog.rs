//! Failures after which oshrun can decide nothing any more: it ends with one message, and its guard
//! ends the job.
//!
//! This file must never know a job.

use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::failure::complain;

/// How long it may take to start one process, on a file system that hangs for a while.
const LIMIT: Duration = Duration::from_secs(30);

/// Has a panic end oshrun with one message. The event loop panics if the kernel refuses to wait for
/// events.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("an unknown error");
        let place = panic
            .location()
            .map_or_else(String::new, |at| format!(" ({}:{})", at.file(), at.line()));
        complain(&format!("oshrun: cannot continue: {text}{place}"));
        exit(1)
    }));
}

/// The longest single wait for a start, and most that it counts: time in which oshrun was stopped
/// does not.
const TICK: Duration = Duration::from_millis(250);

/// Ends oshrun unless it is dropped in time. The standard library waits for the end of a process of
/// which the kernel does not report whether it has executed its program, and a process that waits
/// for oshrun never ends.
#[derive(Debug)]
pub struct StartLimit {
    _started: Sender<()>,
}

impl StartLimit {
    /// For the start of `n` processes.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn of(n: u32) -> std::io::Result<StartLimit> {
        let (_started, over) = channel();
        let limit = LIMIT + Duration::from_secs(n.into());
        std::thread::Builder::new().spawn(move || {
            if is_late(&over, limit) {
                let seconds = limit.as_secs();
                complain(&format!(
                    "oshrun: cannot start the job: the kernel has not reported within {seconds} seconds that a new process \
                     runs its program"
                ));
                exit(1)
            }
        })?;
        Ok(StartLimit { _started })
    }
}

/// Waits for the end of the start. Returns whether the limit has passed before.
fn is_late(over: &Receiver<()>, limit: Duration) -> bool {
    let n_ticks = limit.as_millis().div_ceil(TICK.as_millis());
    (0..n_ticks).all(|_| over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout))
}
