//! Finds the call by which a program polls a word, and publishes it in the status with its place in
//! the program.
//!
//! Calls are counted by word only while a report of a hang asks for it. Meanwhile accesses take the
//! cold path.

use crate::links;
use crate::status;
use rushmem_explain::status::{Poll, PolledObject};
use rushmem_pe::call::Call;
use rushmem_pe::call::location::{self, CapturedCall};
use rushmem_pe::job;
use rushmem_pe::memory::{address, symmetric_location};
use rushmem_pe::process::time::nanoseconds;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The number of equal calls from which on they count as a loop: more than a program makes in a row
/// for another reason, and few microseconds of a loop.
const REPEATS: u32 = 100;
/// Maximum number of different calls that are counted. A program that makes more does not poll.
const DIFFERENT: usize = 64;

/// True while calls are counted. Relaxed: a thread that misses a change counts a few calls later,
/// and the mutex below orders the rest.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// A call by which a program may poll.
#[derive(Clone, Copy, PartialEq)]
struct PolledCall {
    call: Call,
    /// The address of the word in this PE.
    word: usize,
    of: PolledObject,
}

/// Equal calls, and their number.
struct CountedCall {
    polled: PolledCall,
    n: u32,
}

/// The calls since [`COUNTS`] was set.
static CALLS: Mutex<Vec<CountedCall>> = Mutex::new(Vec::new());

/// Begins to count. May be called in the handler of a signal.
pub fn start_counting() {
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
pub fn count(call: Call, word: usize, of: PolledObject) {
    if COUNTS.load(Relaxed) {
        count_word(PolledCall { call, word, of });
    }
}

#[cold]
#[inline(never)]
fn count_word(polled: PolledCall) {
    // Another thread may count now, or this is a signal handler that has interrupted it.
    let Ok(mut calls) = CALLS.try_lock() else {
        return;
    };

    let mut is_loop = false;
    if let Some(known) = calls.iter_mut().find(|known| known.polled == polled) {
        known.n += 1;
        is_loop = known.n >= REPEATS;
    } else {
        calls.push(CountedCall { polled, n: 1 });
    }

    if is_loop || calls.len() > DIFFERENT {
        // The next report of a hang counts anew.
        calls.clear();
        drop(calls);
        stop_counting();
    }
    if is_loop {
        publish(polled);
    }
}

/// Publishes a call that is repeated. Another thread adds its place in the program.
fn publish(PolledCall { call, word, of }: PolledCall) {
    let Some(links) = links::known() else { return };
    let captured = CapturedCall::capture();
    let found_at = nanoseconds();
    let address = std::ptr::with_exposed_provenance::<u8>(word);
    let poll = Poll {
        call: call.to_string(),
        called_at: None,
        is_searched: false,
        at: found_at,
        word: symmetric_location::of_word(&links.job, address, 1),
        of,
    };
    status::set_poll(links, poll);

    location::in_other_thread(move || {
        let place = captured.locate().map(|place| place.to_string());
        status::add_place_of_poll(links, found_at, place);
    });
}
