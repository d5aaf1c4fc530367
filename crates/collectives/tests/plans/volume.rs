//! Counts the parts that a member puts and gets, and compares them with the documentation of the
//! algorithms.

use crate::call::Call::{self, *};
use crate::call::{Gathering, Reduction};
use rushmem_collectives::{Buffer, DirectWork, Receivers, Step};

/// Numbers of parts that members move.
#[derive(Debug, Default, PartialEq, Eq)]
struct Volume {
    put: u32,
    got: u32,
}

/// Returns the maximum numbers of parts that a member puts, and gets.
fn max_volume(n: u32, call: Call) -> Volume {
    let mut max = Volume::default();
    for me in 0..n {
        let mut moved = Volume::default();
        for step in call.plan(n, me) {
            match step {
                Step::Put { count, .. } | Step::PutDirect { count, .. } => moved.put += count,
                Step::PutToOthers { .. } => moved.put += n - 1,
                Step::Get { count, .. } => moved.got += count,
                Step::Direct(DirectWork::Reduce { count, to, .. }) => {
                    moved.got += (n - 1) * count;
                    moved.put += count * others(to, n, me);
                }
                _ => {}
            }
        }
        max.put = max.put.max(moved.put);
        max.got = max.got.max(moved.got);
    }
    max
}

/// Returns the number of other members in whose destination a direct reduction of `me` is stored.
fn others(to: Receivers, n: u32, me: u32) -> u32 {
    match to {
        Receivers::All => n - 1,
        Receivers::One { member, .. } => (member != me).into(),
        Receivers::Each => unreachable!("the last to arrive at a counter moves all parts"),
    }
}

#[test]
fn one_member_sends_and_receives_as_little_as_possible() {
    for n in 2..=64_u32 {
        let parts = 6 * n;
        let reduction = DirectReduceTo { root: 1, parts };
        let expected = Volume {
            put: parts / n,
            got: parts - parts / n,
        };
        assert_eq!(max_volume(n, reduction), expected, "n = {n}");

        let expected = Volume { put: 0, got: n - 1 };
        assert_eq!(max_volume(n, DirectReduceScatter), expected, "n = {n}");
        assert_eq!(max_volume(n, ReduceTo { root: 0 }).put, 1, "n = {n}");

        let root = n / 2;
        let moved = |put, got| Volume { put, got };
        assert_eq!(max_volume(n, GatherTo { root }), moved(1, 0), "n = {n}");
        assert_eq!(max_volume(n, DirectGatherTo { root }), moved(1, 0));
        assert_eq!(max_volume(n, Scatter { root }), moved(n - 1, 0), "n = {n}");
        assert_eq!(max_volume(n, DirectScatter { root }), moved(0, 1));
    }
}

#[test]
fn long_vectors_are_moved_as_rarely_as_documented() {
    for n in 2..=130_u32 {
        // All shares have equal sizes.
        let parts = n * n.next_power_of_two();

        let by_ring = max_volume(n, Call::reduce(Reduction::Ring, parts));
        let others = parts - parts / n;
        let expected = Volume {
            put: others,
            got: others,
        };
        assert_eq!(by_ring, expected, "n = {n}");

        let by_halving = max_volume(n, Call::reduce(Reduction::Rabenseifner, parts));
        let core = 1 << n.ilog2();
        let fold = if n == core { 0 } else { parts };
        let others = parts - parts / core;
        let expected = Volume {
            put: others + fold,
            got: others + fold,
        };
        assert_eq!(by_halving, expected, "n = {n}");

        let broadcast = max_volume(n, LongBroadcast { root: 1, parts });
        assert!(broadcast.put < 2 * parts, "n = {n}");
    }
}

#[test]
fn blocks_are_moved_as_rarely_as_documented() {
    for n in 2..=130_u32 {
        let only_puts = |put| Volume { put, got: 0 };
        assert_eq!(max_volume(n, Bruck).put, n - 1, "n = {n}");

        if n.is_power_of_two() {
            let gather = max_volume(n, Gather(Gathering::RecursiveDoubling));
            assert_eq!(gather, only_puts(n - 1), "n = {n}");
            let all_to_all = max_volume(n, BruckAllToAll);
            assert_eq!(all_to_all, only_puts(n / 2 * n.ilog2()), "n = {n}");
        }
        if n.is_multiple_of(2) {
            let gather = max_volume(n, Gather(Gathering::NeighborExchange));
            assert_eq!(gather, only_puts(n - 1), "n = {n}");
        }
    }
}

/// Blocks of different sizes are delivered by the plan of an all-to-all, which is too large here to
/// simulate. In closed form: the k-th of its n - 1 puts goes k members ahead, so that at no time
/// two members put to one, and all blocks arrive where as many signals are awaited.
#[test]
fn each_block_of_4096_members_is_put_once() {
    for n in (1..=64).chain([257, 4096]) {
        for me in 0..n {
            let mut distance = 0;
            let mut n_waits = 0;
            for step in AllToAll.plan(n, me) {
                match step {
                    Step::Copy { from, to, count } => {
                        let own = [Buffer::Source.at(me), Buffer::Dest.at(me)];
                        assert_eq!((from, to, count), (own[0], own[1], 1), "{me} of {n}");
                    }
                    Step::Put {
                        peer,
                        from,
                        to,
                        count,
                    } => {
                        distance += 1;
                        let receiver = (me + distance) % n;
                        assert_eq!(peer.index, receiver, "{me} of {n}");
                        assert_eq!(from, Buffer::Source.at(receiver), "{me} of {n}");
                        assert_eq!((to, count), (Buffer::Dest.at(me), 1), "{me} of {n}");
                    }
                    Step::Wait { .. } => n_waits += 1,
                    step => panic!("{step:?} of {me} among {n}"),
                }
            }
            assert_eq!([distance, n_waits], [n - 1; 2], "{me} of {n}");
        }
    }
}
