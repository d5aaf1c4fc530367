//! Counts the calls by which a program may poll one word, if a report of a hang asks for them: the
//! accesses then take the cold path. `diagnosis::polls` publishes the one that is repeated.

use crate::call::Call;
use crate::job;
use crate::memory::address;
use rushmem_explain::status::PolledObject;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// The number of equal calls from which on they count as a loop.
const REPEATS: u32 = 100;
/// Maximum number of different calls that are counted. A program that makes more does not poll.
const DIFFERENT: usize = 64;

/// True while calls are counted.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// Publishes a call that is repeated.
static PUBLISH: OnceLock<fn(PolledCall)> = OnceLock::new();

/// A call by which a program may poll.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PolledCall {
    pub(crate) call: Call,
    /// The address of the word in this PE.
    pub(crate) word: usize,
    pub(crate) of: PolledObject,
}

/// The calls since [`COUNTS`] was set, each with their number.
static CALLS: Mutex<Vec<(PolledCall, u32)>> = Mutex::new(Vec::new());

/// Prepares for counting. `publish` is called with a call that is repeated.
pub(crate) fn prepare(publish: fn(PolledCall)) {
    address::prepare_to_count_polls();
    // It is set once: each initialization passes the same function.
    let _ = PUBLISH.set(publish);
}

/// Begins to count. May be called in the handler of a signal.
pub(crate) fn start_counting() {
    address::set_polls_counted(true);
    COUNTS.store(true, Relaxed);
}

fn stop_counting() {
    COUNTS.store(false, Relaxed);
    let job = job::known();
    address::set_polls_counted(job.is_some_and(|job| job.is_oversubscribed));
}

/// Counts a call by which a program may poll the word at an address of this PE.
#[inline(always)]
pub(crate) fn count(call: Call, word: usize, of: PolledObject) {
    if COUNTS.load(Relaxed) {
        count_call(PolledCall { call, word, of });
    }
}

#[cold]
#[inline(never)]
fn count_call(polled: PolledCall) {
    // Another thread may count now, or this is a signal handler that has interrupted it.
    let Ok(mut calls) = CALLS.try_lock() else {
        return;
    };
    let is_over = match calls.iter().position(|(other, _)| *other == polled) {
        Some(i) => {
            calls[i].1 += 1;
            calls[i].1 >= REPEATS
        }
        None => {
            calls.push((polled, 1));
            calls.len() > DIFFERENT
        }
    };
    if is_over {
        let is_loop = calls.iter().any(|(_, n)| *n >= REPEATS);
        calls.clear();
        drop(calls);
        stop_counting();
        if is_loop {
            PUBLISH.get().inspect(|publish| publish(polled));
        }
    }
}
