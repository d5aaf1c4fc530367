//! The signals that oshrun handles on behalf of the job.
//!
//! `job` decides what to do. Before [`Signals::listen`] the signals have their default actions;
//! those that end oshrun do so before it has started a PE or daemon. Afterwards the event loop
//! records them, so that none is lost while oshrun starts processes.
#![allow(unsafe_code)]

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

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

const FORWARDED: [i32; 5] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

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
        let (sender, requests) = mpsc::unbounded_channel();
        let others = [
            (libc::SIGTSTP, SignalRequest::Stop),
            (libc::SIGCONT, SignalRequest::Continue),
            (libc::SIGQUIT, SignalRequest::Explain),
        ];
        for (number, request) in FORWARDED
            .map(|number| (number, SignalRequest::Forward(number)))
            .into_iter()
            .chain(others)
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
