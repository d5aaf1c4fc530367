//! The signals that oshrun handles on behalf of the job.
//!
//! `job` decides what to do. Before [`Signals::listen`] the signals have their default actions;
//! those that end oshrun do so before it has started a PE or daemon. Afterwards the event loop
//! records them, so that none is lost while oshrun starts processes.
//!
//! A signal that would end oshrun is forwarded to the PEs, which end or handle it, so that the job
//! does not end without a message. `job` explains a job that hangs before it forwards one that
//! requests the end. The exceptions are SIGQUIT, SIGPIPE (which the runtime of Rust
//! ignores), SIGXFSZ, the signals of errors in oshrun itself such as SIGSEGV, and real-time
//! signals.
#![allow(unsafe_code)]

use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time after a signal within which another one counts as the same: timeout(1) and others signal
/// oshrun, and then the process group to which it belongs.
const REPETITION: Duration = Duration::from_millis(200);

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// Forward this signal to the PEs.
    Forward(i32),
    /// Explain what the PEs do (Ctrl-\).
    Explain,
    /// Stop the PEs, then oshrun (Ctrl-Z).
    Stop,
    /// Continue the PEs (fg).
    Continue,
}

impl SignalRequest {
    /// Returns true if the signal requests the end of the job, which PEs may ignore.
    pub fn is_end(self) -> bool {
        matches!(
            self,
            SignalRequest::Forward(libc::SIGINT | libc::SIGTERM | libc::SIGHUP)
        )
    }
}

/// The signals that are forwarded to the PEs.
const FORWARDED: [Signal; 12] = [
    Signal::HUP,
    Signal::INT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    // A process may set a timer and then execute oshrun, which gets the signal of that timer.
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    // Batch systems announce limits by these, or by those above.
    Signal::XCPU,
    Signal::POWER,
    Signal::IO,
    Signal::STKFLT,
];

/// Decides which signal is the second one, after which the job is killed: the first one asks PEs to
/// end, and they may ignore it. SIGHUP does not count, since a terminal that is closed may send it
/// several times.
#[derive(Debug, Default)]
pub struct Interrupts {
    /// When the first SIGINT arrived.
    first_int: Option<Instant>,
    /// When the first SIGTERM arrived.
    first_term: Option<Instant>,
}

impl Interrupts {
    /// Records a signal that arrived at `now`. Returns true if the job is to be killed.
    pub fn is_second(&mut self, number: i32, now: Instant) -> bool {
        let first = match number {
            libc::SIGINT => &mut self.first_int,
            libc::SIGTERM => &mut self.first_term,
            _ => return false,
        };
        now > *first.get_or_insert(now) + REPETITION
    }
}

/// Receives the signals.
#[derive(Debug)]
pub struct Signals {
    requests: mpsc::UnboundedReceiver<SignalRequest>,
}

impl Signals {
    /// Unblocks the signals and installs the handlers. Signals that oshrun inherited as ignored,
    /// for example from nohup, stay ignored, also in PEs.
    pub fn listen() -> std::io::Result<Signals> {
        // The process that started oshrun may have blocked them.
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the pointer is valid for writes of a set.
        unsafe { libc::sigemptyset(none.as_mut_ptr()) };
        // SAFETY: the set was initialized above, and the pointer for the previous set may be null.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };

        let mut handled = vec![
            (libc::SIGTSTP, SignalRequest::Stop),
            (libc::SIGCONT, SignalRequest::Continue),
            (libc::SIGQUIT, SignalRequest::Explain),
        ];
        for number in FORWARDED.map(Signal::as_raw) {
            handled.push((number, SignalRequest::Forward(number)));
        }

        let (sender, requests) = mpsc::unbounded_channel();
        for (number, request) in handled {
            if is_ignored(number) {
                continue;
            }
            let mut arrivals = signal(SignalKind::from_raw(number))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arrivals.recv().await.is_some() && sender.send(request).is_ok() {}
            });
        }

        // With a handler, writing to a file that has reached the limit fails with an error, which
        // is reported. PEs have the default action again.
        if !is_ignored(libc::SIGXFSZ) {
            drop(signal(SignalKind::from_raw(libc::SIGXFSZ))?);
        }
        Ok(Signals { requests })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalRequest {
        match self.requests.recv().await {
            Some(request) => request,
            // All signals are ignored.
            None => std::future::pending().await,
        }
    }
}

fn is_ignored(number: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the new action may be null, and the pointer is valid for writes of an action.
    let outcome = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the action is initialized: by the call, or with zeros, which are a valid action.
    let action = unsafe { action.assume_init() };
    outcome == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_is_neither_the_same_nor_another_one() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut interrupts = Interrupts::default();
        for (number, elapsed, is_second) in [
            (libc::SIGINT, 0, false),
            (libc::SIGINT, 1, false),
            (libc::SIGTERM, 300, false),
            (libc::SIGHUP, 310, false),
            (libc::SIGHUP, 900, false),
            (libc::SIGINT, 400, true),
            (libc::SIGTERM, 500, false),
            (libc::SIGTERM, 501, true),
        ] {
            assert_eq!(
                interrupts.is_second(number, after(elapsed)),
                is_second,
                "{elapsed}"
            );
        }
    }
}
