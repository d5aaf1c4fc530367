//! Yields the CPU in a loop of calls by which a program may poll a word.
//!
//! A program may wait without a routine that waits: it tests a word or a lock again and again,
//! reads a word by a get or an atomic operation, or calls a quiet between loads of a variable. When
//! PEs outnumber the usable CPUs, such a loop keeps the CPU from the PE that would end it. So a
//! thread counts these calls, whether they poll or not, and after some microseconds of them makes
//! the network progress and yields the CPU.

use crate::net::network;
use rushmem_pe::memory::address;
use std::cell::Cell;

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
        let reads = if network::is_open() {
            READS_PER_PROGRESS
        } else {
            READS_PER_CALL
        };
        count_reads(reads);
    }
}

#[inline(never)]
fn count_reads(reads: u32) {
    let all = READS.get() + reads;
    if all < READS_PER_YIELD {
        READS.set(all);
        return;
    }

    READS.set(0);
    if network::is_open() {
        network::of_process().progress();
    }
    std::thread::yield_now();
}
