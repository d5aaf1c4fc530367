//! Counts the parts that a member puts and gets, and compares them with the documentation of the
//! algorithms.

use crate::call::Call::{self, *};
use crate::call::{Gathering, Reduction};
use rushmem_collectives::Step;

/// Returns the maximum numbers of parts that a member puts, and gets.
fn volume(n: u32, call: Call) -> (u32, u32) {
    let of = |me| {
        call.plan(n, me)
            .fold((0, 0), |(put, got), step| match step {
                Step::Put { count, .. } => (put + count, got),
                Step::Get { count, .. } => (put, got + count),
                _ => (put, got),
            })
    };
    (0..n)
        .map(of)
        .fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
}

#[test]
fn long_vectors_are_moved_as_rarely_as_documented() {
    for n in 2..=130_u32 {
        // All shares have equal sizes.
        let parts = n * n.next_power_of_two();
        let once = parts - parts / n;
        assert_eq!(
            volume(n, Call::reduce(Reduction::Ring, parts)),
            (once, once)
        );
        let reduced = volume(n, Call::reduce(Reduction::Rabenseifner, parts));
        let core = 1 << n.ilog2();
        let fold = if n == core { 0 } else { parts };
        let once = parts - parts / core;
        assert_eq!(reduced, (once + fold, once + fold), "n = {n}");

        assert!(volume(n, LongBroadcast { root: 1, parts }).0 < 2 * parts);
    }
}

#[test]
fn blocks_are_moved_as_rarely_as_documented() {
    for n in 2..=130_u32 {
        assert_eq!(volume(n, Bruck).0, n - 1);
        if n.is_power_of_two() {
            assert_eq!(volume(n, Gather(Gathering::RecursiveDoubling)), (n - 1, 0));
            assert_eq!(volume(n, BruckAllToAll), (n / 2 * n.ilog2(), 0));
        }
        if n.is_multiple_of(2) {
            assert_eq!(volume(n, Gather(Gathering::NeighborExchange)), (n - 1, 0));
        }
    }
}
