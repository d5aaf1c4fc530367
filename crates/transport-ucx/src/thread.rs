//! The service thread: progress while nobody waits in the library.
//!
//! It sleeps in the kernel until a worker has something to do or the timer rings. While threads of the
//! PE wait in the library and poll, waking for every message would only disturb them: then it looks just
//! at the timer, and every now and then whether they still poll.

use crate::backoff::LONGEST;
use crate::shared::{SOON, Shared, Until};
use rushmem_transport::thread::spawn_service;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// Looks of others within [`SOON`] from which on they count as waiting, not just passing by; within longer
/// times a quarter as many in proportion.
const MANY: u64 = 10;
/// Longest sleep while others sleep all the time until something arrives: they too hand over.
const LONGEST_WHILE_ASLEEP: Duration = Duration::from_millis(20);
/// Longest sleep of either kind while data that nobody waits for is in flight.
const LONGEST_OF_DATA: Duration = Duration::from_micros(200);
/// Longest sleep of all: UCX has times of its own to keep.
const ROUND: Duration = Duration::from_secs(1);

/// Start it; it ends when `closing` is set and the timer rings.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    spawn_service("rushmem-ucx", move || run(&shared))
}

fn run(shared: &Shared) {
    let mut seen = 0;
    let mut nap = SOON;
    let mut pause = SOON;
    while !shared.closing.load(Ordering::Acquire) {
        let polls = shared.polls.load(Ordering::Relaxed);
        let looks = polls.wrapping_sub(seen);
        seen = polls;
        let asleep = shared.sleepers.load(Ordering::Relaxed) > 0;
        let longest = if shared.moves_data() { LONGEST_OF_DATA } else { LONGEST_WHILE_ASLEEP };
        if (looks > 0 || asleep) && shared.may_nap() {
            // Others serve.
            let many = MANY.max(MANY * nap.div_duration_f32(SOON) as u64 / 4);
            nap = match (asleep, looks > many) {
                (true, _) if looks == 0 => longest.min(nap * 2),
                (true, _) | (false, true) => LONGEST.min(longest).min(nap * 2),
                (false, false) => SOON,
            };
            shared.attend();
            shared.rest(Until::Timer, nap);
            shared.napping.store(false, Ordering::Relaxed);
            shared.look_after(true);
            continue;
        }
        nap = SOON;
        shared.napping.store(false, Ordering::Relaxed);
        while shared.serve_uncounted() {}
        let idle = shared.may_stop_attending();
        let longer = LONGEST.min(longest).min(pause * 2);
        match shared.arm() {
            Some(true) if idle => {
                pause = SOON;
                shared.rest(Until::Anything, ROUND);
            }
            // Owners are at their workers, perhaps without a CPU.
            Some(true) => {
                pause = longer;
                shared.rest(Until::Request, pause);
            }
            Some(false) => {}
            // Somebody else serves, and may stop doing so.
            None => {
                pause = longer;
                shared.rest(Until::Timer, pause);
            }
        }
    }
}
