//! Polls: calls by which a program waits without a routine that waits.
//!
//! A program may test a word or a lock again and again, read a word by a get or an atomic
//! operation, or call a quiet between loads of a variable. When PEs outnumber the usable CPUs, such
//! a loop keeps the CPU from the PE that would end it. So a thread that has polled many times in a
//! row makes the network progress and yields. An access is a poll if the thread has found the same
//! value at the same place before. Accesses of the fast path are not seen, and do not end a row.
#![allow(unsafe_code)]

use crate::memory::address;
use crate::net::network;
use core::ffi::c_int;
use rushmem_transport::mem;
use std::cell::Cell;

/// Polls in a row after which a thread yields: some microseconds.
const POLLS_PER_YIELD: u32 = 256;
/// A poll that has the network progress takes as long as this number of loads.
const POLLS_PER_PROGRESS: u32 = 32;
/// The number of places that a thread knows the values of.
const SLOTS: usize = 64;
/// The most bytes of a get that may be a poll: a cache line.
const LINE: usize = 64;

/// The polls of a thread.
struct Polls {
    in_a_row: Cell<u32>,
    /// Digests of places and of what was last found there.
    found: [Cell<u64>; SLOTS],
}

thread_local! {
    static POLLS: Polls =
        const { Polls { in_a_row: Cell::new(0), found: [const { Cell::new(0) }; SLOTS] } };
}

/// Counts a call that may be a poll and does not know.
#[inline(always)]
pub(crate) fn called() {
    if address::are_polls_counted() {
        count(1);
    }
}

/// Counts a test that was not successful; a successful one ends the row.
#[inline(always)]
pub(crate) fn tested(successful: bool) {
    if address::are_polls_counted() {
        match successful {
            true => end_row(),
            false => count(if network::is_open() { POLLS_PER_PROGRESS } else { 1 }),
        }
    }
}

/// Counts an access that found `value` at `addr` on `pe`, unless another one was there before.
#[inline(always)]
pub(crate) fn found(addr: usize, pe: c_int, value: u64) {
    if address::are_polls_counted() {
        count_found(addr, pe, value);
    }
}

/// Works as [`found`], of the `nbytes` bytes that a get has copied to `dest`.
///
/// # Safety
/// They are valid for reads.
#[inline(always)]
pub(crate) unsafe fn got(addr: usize, pe: c_int, dest: *const u8, nbytes: usize) {
    if address::are_polls_counted() && nbytes <= LINE {
        // SAFETY: the same contract, and short enough.
        unsafe { count_got(addr, pe, dest, nbytes) };
    }
}

/// # Safety
/// The bytes at `dest` are valid for reads, and [`LINE`] at most.
#[inline(never)]
unsafe fn count_got(addr: usize, pe: c_int, dest: *const u8, nbytes: usize) {
    let mut words = [0u64; LINE / 8];
    // SAFETY: valid by contract, and a local that is long enough.
    unsafe { mem::copy_bytes::<mem::AtomicLoads>(words.as_mut_ptr().cast(), dest, nbytes) };
    let words = &words[..nbytes.div_ceil(8)];
    count_found(addr, pe, words.iter().fold(0, |sum, &word| mixed(sum ^ word)));
}

#[inline(never)]
fn count_found(addr: usize, pe: c_int, value: u64) {
    let place = mixed(addr as u64 ^ u64::from(pe as u32).rotate_right(16));
    let digest = mixed(place ^ value);
    let known = |polls: &Polls| polls.found[(place >> 32) as usize % SLOTS].replace(digest);
    match POLLS.with(known) == digest {
        true => count(1),
        false => end_row(),
    }
}

/// Spreads the bits of a number (the golden ratio, and a fold of the upper half).
fn mixed(number: u64) -> u64 {
    let product = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 29
}

fn end_row() {
    POLLS.with(|polls| polls.in_a_row.set(0));
}

#[inline(never)]
fn count(polls: u32) {
    let in_a_row = POLLS.with(|all| {
        all.in_a_row.set(all.in_a_row.get() + polls);
        all.in_a_row.get()
    });
    if in_a_row >= POLLS_PER_YIELD {
        end_row();
        if network::is_open() {
            network::progress();
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_what_finds_the_same_value_at_the_same_place() {
        let in_a_row = || POLLS.with(|polls| polls.in_a_row.get());
        let find = |addr, value| {
            count_found(addr, 0, value);
            in_a_row()
        };
        let places = [0x1000, 0x1008, 0x1010];
        assert_eq!(places.map(|at| find(at, 0)), [0; 3], "nothing was known of them");
        assert_eq!(places.map(|at| find(at, 0)), [1, 2, 3]);
        assert_eq!(find(0x1008, 1), 0, "another value");
        assert_eq!([find(0x1008, 1), find(0x1010, 0)], [1, 2]);
        for _ in in_a_row()..POLLS_PER_YIELD {
            find(0x1000, 0);
        }
        assert_eq!(in_a_row(), 0, "the thread has yielded");
    }
}
