//! Ends oshrun with one message if it panics or hangs. Its guard then ends the job.

use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::report::failure::complain;

/// Maximum time for starting one process, on a file system that hangs for a while.
const LIMIT: Duration = Duration::from_secs(30);

/// Makes a panic end oshrun with one message. The event loop panics if polling fails.
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

/// The limit is counted in these ticks, so that the time while oshrun is stopped counts at most
/// once.
const TICK: Duration = Duration::from_millis(250);

/// Ends oshrun unless it is dropped in time. Spawning blocks until the kernel reports that the
/// child has executed its program or has failed.
#[derive(Debug)]
pub struct StartLimit {
    _started: Sender<()>,
}

impl StartLimit {
    /// Sets a limit for the start of `n` processes.
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

/// Waits until the start is over. Returns whether the limit expired first.
fn is_late(over: &Receiver<()>, limit: Duration) -> bool {
    let n_ticks = limit.as_millis().div_ceil(TICK.as_millis());
    (0..n_ticks).all(|_| over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout))
}
