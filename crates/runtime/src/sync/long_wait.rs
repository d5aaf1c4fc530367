//! One line for each node about a wait that lasts so long that its reason may be wanted.

use crate::call::Call;
use crate::call::warning::warning;
use crate::job;
use crate::process;
use crate::sync::flags;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The time after which a wait is reported.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Prints the line, unless a PE of this node has, or the watchdog explains waits.
pub(super) fn print(call: impl FnOnce() -> Call) {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    let Some(job) = job::known().filter(|_| !PRINTED.swap(true, Relaxed)) else { return };
    let area = flags::area();
    if job.settings.watchdog.is_some()
        || !area.is_first_at(area.first_of_node(job.n_pes), area.areas().long_waits())
    {
        return;
    }
    let how = match process::aborter().is_some_and(|aborter| aborter.is_oshrun()) {
        true => "press Ctrl-\\ in oshrun, or send it SIGUSR1, to see who waits for whom",
        false => "set SHMEM_WATCHDOG=30s to see who waits for whom",
    };
    let (me, call, limit) = (job.me(), call(), LIMIT.as_secs());
    // Cause: a deadlock, or a PE that computes for long. Remedy: the message ends with it.
    warning!("PE {me} has waited {limit} s in {call}; {how}");
}
