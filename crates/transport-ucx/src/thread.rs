//! The service thread: progress while nobody waits in the library.
//!
//! It sleeps in the kernel until a worker has something to do or the timer rings. While threads of the
//! PE wait in the library and poll, waking for every message would only disturb them: then it looks just
//! at the timer, and every now and then whether they still poll.

use crate::shared::{SOON, Shared};
use crate::sys;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// Looks of others within [`SOON`] from which on they count as waiting, not just passing by.
const MANY: u64 = 10;
/// Longest sleep while others wait and look.
const LONGEST: Duration = Duration::from_micros(200);
/// Sleep while others wait and sleep until something arrives.
const WHILE_ASLEEP: Duration = Duration::from_millis(1);
/// Longest sleep of all: UCX has times of its own to keep.
const ROUND: Duration = Duration::from_secs(1);

/// Start it; it ends when `closing` is set and the timer rings.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    sys::spawn_quietly("rushmem-ucx", move || run(&shared))
}

fn run(shared: &Shared) {
    let mut seen = 0;
    let mut nap = SOON;
    while !shared.closing.load(Ordering::Acquire) {
        let polls = shared.polls.load(Ordering::Relaxed);
        let looks = polls.wrapping_sub(seen);
        seen = polls;
        let asleep = shared.sleepers.load(Ordering::Relaxed) > 0;
        if (looks > 0 || asleep) && shared.may_nap() {
            // Others serve.
            nap = match (asleep, looks > MANY) {
                (true, _) => WHILE_ASLEEP,
                (false, true) => LONGEST.min(nap * 2),
                (false, false) => SOON,
            };
            shared.attend();
            shared.rest(true, nap);
            shared.napping.store(false, Ordering::Relaxed);
            shared.look_after(true);
            continue;
        }
        nap = SOON;
        shared.napping.store(false, Ordering::Relaxed);
        while shared.serve_uncounted() {}
        if !shared.may_stop_attending() {
            shared.rest(true, SOON);
            continue;
        }
        match shared.arm() {
            Some(true) => shared.rest(false, ROUND),
            Some(false) => {}
            // Somebody else serves, and may stop doing so.
            None => shared.rest(true, SOON),
        }
    }
}
