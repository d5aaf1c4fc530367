//! How long to poll before letting others run, and before sleeping.

use crate::shared::Shared;
use crate::ucp::Worker;
use std::thread;
use std::time::Duration;

/// Looks without a pause: some tens of microseconds.
const LOOKS: u32 = 200;
/// Looks after which others may run.
const YIELDS: u32 = 100;
/// As above where PEs outnumber the CPUs.
const YIELDS_IN_A_CROWD: u32 = 5;
/// Every so many looks peers are served too.
const SERVE_EVERY: u32 = 4;
/// Longest sleep: what is waited for may be taken by another thread.
const NAP: Duration = Duration::from_millis(1);

/// One wait.
#[derive(Default)]
pub(crate) struct Patience {
    looks: u32,
}

impl Patience {
    /// Between two looks at a worker.
    pub(crate) fn pause(&mut self, shared: &Shared, worker: &Worker) {
        self.looks += 1;
        let (looks, yields) = match shared.crowded {
            true => (0, YIELDS_IN_A_CROWD),
            false => (LOOKS, YIELDS),
        };
        let patient = self.looks > looks;
        if (patient || self.looks.is_multiple_of(SERVE_EVERY)) && shared.serve() {
            self.looks = 0;
        } else if self.looks > looks + yields {
            shared.sleep(Some(worker), NAP);
        } else if patient {
            thread::yield_now();
        }
    }

    /// There was work: look on.
    pub(crate) fn renew(&mut self) {
        self.looks = 0;
    }
}
