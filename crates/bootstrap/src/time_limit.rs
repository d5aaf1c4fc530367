//! Time limits: parses those that users write in variables and in options of `oshrun`, and counts
//! the time that is left for one step of a protocol.
//!
//! A step waits in slices of at most `SLICE`, and no slice counts as longer than that. So a job
//! that was suspended, or that shares its processors with many others, does not fail for that
//! reason.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

/// The accepted texts, for messages.
pub const EXPECTED: &str = "a time above 0 such as 30s or 5m";

/// A longer limit counts as this one, about 30 years, so that sums with it do not overflow.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The default of [`env::HOST_LIMIT`](crate::env::HOST_LIMIT).
pub const DEFAULT_HOST_LIMIT: &str = "10s";

/// Maximum time that another PE of the node or the process manager may take for one step.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);

/// Maximum duration of a single wait. If the process is stopped during a wait, the wait counts as
/// no longer than this.
pub(crate) const SLICE: Duration = Duration::from_millis(250);

/// Parses a number of seconds (`s` or no unit), minutes (`m`) or hours (`h`); `None` if the text is
/// not [`EXPECTED`].
pub fn parse(text: &str) -> Option<Duration> {
    let (number, factor) = match text.as_bytes().last()? {
        b's' => (text.strip_suffix('s')?, 1.0),
        b'm' => (text.strip_suffix('m')?, 60.0),
        b'h' => (text.strip_suffix('h')?, 3600.0),
        _ => (text, 1.0),
    };

    let seconds = number.parse::<f64>().ok()? * factor;
    let limit = Duration::try_from_secs_f64(seconds).ok()?;
    if limit.is_zero() {
        None
    } else {
        Some(limit.min(LONGEST))
    }
}

/// The time left for one step.
#[derive(Debug)]
pub(crate) struct TimeLeft {
    left: Duration,
}

impl TimeLeft {
    pub(crate) fn new(whole: Duration) -> TimeLeft {
        TimeLeft { left: whole }
    }

    /// Calls `wait` with the maximum time that it may take, and subtracts the time that it took.
    /// Returns `None` without a call when no time is left.
    pub(crate) fn spend<T>(&mut self, wait: impl FnOnce(Duration) -> T) -> Option<T> {
        let slice = self.left.min(SLICE);
        if slice.is_zero() {
            return None;
        }

        let start = Instant::now();
        let value = wait(slice);
        // The wait counts as no longer than its slice, also if the process was stopped meanwhile.
        self.left -= start.elapsed().min(slice);
        Some(value)
    }

    /// Waits until `fd` has data or is at its end.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] when the time is over, and those of poll.
    pub(crate) fn readable(&mut self, fd: impl AsFd) -> io::Result<()> {
        loop {
            match self.spend(|slice| is_readable(&fd, slice)) {
                Some(Ok(true)) => return Ok(()),
                Some(Ok(false)) => {}
                Some(Err(error)) => return Err(error),
                None => return Err(ErrorKind::TimedOut.into()),
            }
        }
    }
}

/// Waits for at most `wait`, which must be short enough for a `Timespec`, until `fd` has data or is
/// at its end. Returns false if that time has passed, or a signal has interrupted the wait.
pub(crate) fn is_readable(fd: impl AsFd, wait: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(wait).expect("a slice is short");
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&wait)) {
        Ok(n) => Ok(n > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn limits_have_units() {
        for (text, seconds) in [("30s", 30.0), ("0.5", 0.5), ("5m", 300.0), ("2h", 7200.0)] {
            assert_eq!(
                parse(text),
                Some(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        assert_eq!(parse("1e15h"), Some(LONGEST));
        assert!(
            ["0", "-1s", "s", "soon", "nan", ""]
                .into_iter()
                .all(|text| parse(text).is_none())
        );
    }

    #[test]
    fn a_step_that_takes_too_long_is_over() {
        let (read, mut write) = UnixStream::pair().expect("a pair");
        let mut limit = TimeLeft::new(Duration::from_millis(30));
        let error = limit.readable(&read).expect_err("nothing was written");
        assert_eq!(error.kind(), ErrorKind::TimedOut);

        write.write_all(b"late").expect("room");
        assert!(limit.spend(|_| ()).is_none(), "no time is left");
        TimeLeft::new(ANSWER)
            .readable(&read)
            .expect("it can be read");
    }

    #[test]
    fn time_without_a_processor_does_not_count() {
        let mut limit = TimeLeft::new(2 * SLICE);
        limit
            .spend(|slice| std::thread::sleep(4 * slice))
            .expect("time is left");
        limit.spend(|_| ()).expect("half of the time is left");
    }
}
