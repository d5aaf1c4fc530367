//! Counts the calls by which a program may poll a word.
//!
//! A program may wait without a routine that waits: it tests a word or a lock again and again,
//! reads a word by a get or an atomic operation, or calls a quiet between loads of a variable. When
//! PEs outnumber the usable CPUs, such a loop keeps the CPU from the PE that would end it. So a
//! thread counts these calls, whether they poll or not, and after some microseconds of them makes
//! the network progress and yields the CPU.
//!
//! If a report of a hang asks for it, the calls are also counted by word, and `status::polls`
//! publishes the one that is repeated. While calls are counted, accesses take the cold path.

use crate::net::network;
use crate::status;
use rushmem_explain::status::PolledObject;
use rushmem_pe::call::Call;
use rushmem_pe::job;
use rushmem_pe::memory::address;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The number of reads after which a thread yields. They take about 10 us.
const READS_PER_YIELD: u32 = 1024;
/// The number of reads that take as long as a call which completes or orders operations.
const READS_PER_CALL: u32 = 4;
/// The number of reads that take as long as a test which makes the network progress.
const READS_PER_PROGRESS: u32 = 128;

thread_local! {
    /// The calls of this thread since it last yielded, as a number of reads.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Counts a get or an atomic operation that returns a value, in a job that counts polls.
#[inline(always)]
pub fn count_read() {
    if address::are_polls_counted() {
        count_reads(1);
    }
}

/// Counts a call that completes or orders operations, in a job that counts polls.
#[inline(always)]
pub(crate) fn count_call() {
    if address::are_polls_counted() {
        count_reads(READS_PER_CALL);
    }
}

/// Counts a test of a word or a lock, unless it was successful, in a job that counts polls.
#[inline(always)]
pub fn count_test(is_successful: bool) {
    if address::are_polls_counted() && !is_successful {
        count_reads(if network::is_open() {
            READS_PER_PROGRESS
        } else {
            READS_PER_CALL
        });
    }
}

#[inline(never)]
fn count_reads(reads: u32) {
    let all = READS.get() + reads;
    READS.set(if all < READS_PER_YIELD { all } else { 0 });
    if all >= READS_PER_YIELD {
        if network::is_open() {
            network::progress();
        }
        std::thread::yield_now();
    }
}

/// The number of equal calls from which on they count as a loop.
const REPEATS: u32 = 100;
/// Maximum number of different calls that are counted. A program that makes more does not poll.
const DIFFERENT: usize = 64;

/// True while calls are counted.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// A call by which a program may poll.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PolledCall {
    pub call: Call,
    /// The address of the word in this PE.
    pub word: usize,
    pub of: PolledObject,
}

/// The calls since [`COUNTS`] was set, each with their number.
static CALLS: Mutex<Vec<(PolledCall, u32)>> = Mutex::new(Vec::new());

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
            status::polls::publish(polled);
        }
    }
}
