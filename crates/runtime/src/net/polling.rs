//! Polls: calls by which a program may wait without a routine that waits.
//!
//! A program may test a word or a lock again and again, read a word by a get or an atomic
//! operation, or call a quiet between loads of a variable. When PEs outnumber the usable CPUs, such
//! a loop keeps the CPU from the PE that would end it. So a thread counts these calls, whether they
//! poll or not, and after some microseconds of them makes the network progress and yields.

use crate::memory::address;
use crate::net::network;
use std::cell::Cell;

/// Reads after which a thread yields: some 10 us.
const READS_PER_YIELD: u32 = 1024;
/// A call that looks at more than one word takes as long as this number of reads.
const READS_PER_CALL: u32 = 4;
/// A test that makes the network progress takes as long as this number of reads.
const READS_PER_PROGRESS: u32 = 128;

thread_local! {
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Counts a get or an atomic operation that returns a value.
#[inline(always)]
pub(crate) fn read() {
    if address::are_polls_counted() {
        count(1);
    }
}

/// Counts a call that completes or orders operations.
#[inline(always)]
pub(crate) fn called() {
    if address::are_polls_counted() {
        count(READS_PER_CALL);
    }
}

/// Counts a test that was not successful.
#[inline(always)]
pub(crate) fn tested(is_successful: bool) {
    if address::are_polls_counted() && !is_successful {
        count(if network::is_open() { READS_PER_PROGRESS } else { READS_PER_CALL });
    }
}

#[inline(never)]
fn count(reads: u32) {
    let all = READS.get() + reads;
    READS.set(if all < READS_PER_YIELD { all } else { 0 });
    if all >= READS_PER_YIELD {
        if network::is_open() {
            network::progress();
        }
        std::thread::yield_now();
    }
}
