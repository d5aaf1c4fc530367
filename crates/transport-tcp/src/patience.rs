//! How long to poll before letting others run, and before sleeping.

use crate::shared::Shared;
use std::thread;
use std::time::Duration;

/// Looks without a pause: a hundred microseconds or so, since each is a system call or two.
const LOOKS: u32 = 200;
/// Looks after which others may run.
const YIELDS: u32 = 100;
/// As above where PEs outnumber the CPUs.
const YIELDS_IN_A_CROWD: u32 = 5;
/// Longest sleep: what is waited for may be taken by another thread.
const NAP: Duration = Duration::from_millis(1);

/// One wait.
#[derive(Default)]
pub(crate) struct Patience {
    looks: u32,
}

impl Patience {
    /// Between two looks.
    pub(crate) fn pause(&mut self, shared: &Shared) {
        self.looks += 1;
        let (looks, yields) = match shared.crowded {
            true => (0, YIELDS_IN_A_CROWD),
            false => (LOOKS, YIELDS),
        };
        if self.looks > looks + yields {
            shared.sleep(NAP);
        } else if self.looks > looks {
            thread::yield_now();
        }
    }

    /// There was work: look on.
    pub(crate) fn renew(&mut self) {
        self.looks = 0;
    }
}
