//! How long to poll before letting others run, and before sleeping.

use crate::peers::Peers;
use crate::ucp::Worker;
use std::thread;
use std::time::{Duration, Instant};

/// Polls without a pause: some tens of microseconds.
const POLLS: u32 = 200;
/// Polls after which others may run.
const YIELDS: u32 = 100;
/// As above where PEs outnumber the CPUs.
const YIELDS_OVERSUBSCRIBED: u32 = 5;
/// Every so many polls peers are served too.
const SERVE_EVERY: u32 = 4;
/// Longest sleep: whatever may end the wait wakes it.
const SLEEP: Duration = Duration::from_millis(10);

/// Longest sleep while others wait and look. Whoever has waited for longer hands over, so that this is how
/// late the thread may be after many short waits.
pub(crate) const LONGEST: Duration = Duration::from_millis(2);

/// One wait.
#[derive(Default)]
pub(crate) struct Backoff {
    polls: u32,
    /// When it began to sleep.
    asleep: Option<Instant>,
}

impl Backoff {
    /// Between two polls at a worker.
    pub(crate) fn pause(&mut self, shared: &impl Peers, worker: &Worker) {
        self.polls += 1;
        let (polls, yields) = match shared.oversubscribed() {
            true => (0, YIELDS_OVERSUBSCRIBED),
            false => (POLLS, YIELDS),
        };
        let yielding = self.polls > polls;
        if (yielding || self.polls.is_multiple_of(SERVE_EVERY)) && shared.serve() {
            self.polls = 0;
        } else if self.polls > polls + yields {
            self.asleep.get_or_insert_with(Instant::now);
            shared.sleep(Some(worker), SLEEP);
        } else if yielding {
            thread::yield_now();
        }
    }

    /// What was waited for is here: after a long wait the service thread, which slept meanwhile, is told
    /// that nobody polls.
    pub(crate) fn end(&self, shared: &impl Peers) {
        if self.asleep.is_some_and(|since| since.elapsed() > LONGEST) {
            shared.hand_over();
        }
    }

    /// There was work: poll on.
    pub(crate) fn renew(&mut self) {
        self.polls = 0;
    }
}
