//! The signals that users and systems send to oshrun on behalf of the job.
//!
//! It only distinguishes them; `job` decides what to do. Until [`Signals::listen`] they have their
//! default action, which ends oshrun: it has started nothing by then. No signal is lost from then
//! on, since the event loop keeps those that come while it starts processes.
#![allow(unsafe_code)]

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Pass this one on to the PEs, whose default action is to end.
    Forward(i32),
    /// Stop the PEs, then oshrun (Ctrl-Z).
    Stop,
    /// Let the PEs continue (fg).
    Continue,
}

impl Request {
    /// Whether the sender wants the job to end.
    pub fn is_end(self) -> bool {
        matches!(
            self,
            Request::Forward(libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT)
        )
    }
}

const FORWARDED: [i32; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// The signals that arrive from now on.
#[derive(Debug)]
pub struct Signals {
    requests: mpsc::UnboundedReceiver<Request>,
}

impl Signals {
    /// Starts to listen. Signals that were ignored when oshrun started, for example by nohup, stay ignored, also by PEs.
    ///
    /// # Errors
    /// When the event loop has no room for signals.
    pub fn listen() -> std::io::Result<Signals> {
        unblock();
        let (sender, requests) = mpsc::unbounded_channel();
        let others = [(libc::SIGTSTP, Request::Stop), (libc::SIGCONT, Request::Continue)];
        for (number, request) in
            FORWARDED.map(|number| (number, Request::Forward(number))).into_iter().chain(others)
        {
            if is_ignored(number) {
                continue;
            }
            let mut arrivals = signal(SignalKind::from_raw(number))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arrivals.recv().await.is_some() && sender.send(request).is_ok() {}
            });
        }
        Ok(Signals { requests })
    }

    /// The next request of a user.
    pub async fn request(&mut self) -> Request {
        match self.requests.recv().await {
            Some(request) => request,
            // All signals are ignored.
            None => std::future::pending().await,
        }
    }
}

/// Unblocks the signals, since the process that started oshrun may have blocked them.
fn unblock() {
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the call writes a whole set to the place it is given.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set is initialised, and nobody wants the former one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
}

fn is_ignored(number: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one to the place it is given.
    let outcome = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid action, whether the call has overwritten them or failed.
    let action = unsafe { action.assume_init() };
    outcome == 0 && action.sa_sigaction == libc::SIG_IGN
}
