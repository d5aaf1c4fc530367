//! How long to poll before letting others run, and before sleeping.

use crate::shared::Shared;
use crate::thread::LONGEST;
use std::thread;
use std::time::{Duration, Instant};

/// Looks without a pause: a hundred microseconds or so, since each is a system call or two.
const LOOKS: u32 = 200;
/// Looks after which others may run.
const YIELDS: u32 = 100;
/// As above where PEs outnumber the CPUs.
const YIELDS_IN_A_CROWD: u32 = 5;
/// Longest sleep: whatever may end the wait wakes it.
const NAP: Duration = Duration::from_millis(10);

/// One wait.
#[derive(Default)]
pub(crate) struct Patience {
    looks: u32,
    /// When it began to sleep.
    asleep: Option<Instant>,
}

impl Patience {
    /// Between two looks, before the first of which there was `news`.
    pub(crate) fn pause(&mut self, shared: &Shared, news: u64) {
        self.looks += 1;
        let (looks, yields) = match shared.oversubscribed {
            true => (0, YIELDS_IN_A_CROWD),
            false => (LOOKS, YIELDS),
        };
        if self.looks > looks + yields {
            self.asleep.get_or_insert_with(Instant::now);
            shared.sleep(news, NAP);
        } else if self.looks > looks {
            thread::yield_now();
        }
    }

    /// What was waited for is here: after a long wait the service thread, which slept meanwhile, is told
    /// that nobody polls.
    pub(crate) fn end(&self, shared: &Shared) {
        if self.asleep.is_some_and(|since| since.elapsed() > LONGEST) {
            shared.hand_over();
        }
    }

    /// There was work: look on.
    pub(crate) fn renew(&mut self) {
        self.looks = 0;
    }
}
