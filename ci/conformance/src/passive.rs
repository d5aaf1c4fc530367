//! Progress without calls of the library: a target that computes, and an origin that computes.

use super::member::Member;
use super::pattern::bytes;
use rushmem_transport::AmoOp::{Add, CompareSwap, Fetch, Set, Swap};
use rushmem_transport::AmoWidth::{Eight, Four};

const ROOM: usize = 1 << 20;
const COUNTER: usize = 4 << 20;

/// PE 0 computes and makes no call until the others, which use its memory meanwhile, have reached
/// the barrier.
pub(crate) fn target(member: &Member) {
    for round in 0..5u64 {
        if member.me() == 0 {
            member.compute_until_barrier();
        } else {
            let mut end = member.endpoint();
            let (room, seed) = (member.me() * ROOM, round * 8 + member.me() as u64);
            for nbytes in [1, 8, 1_000, 100_000, ROOM] {
                end.put(0, room, &bytes(seed, nbytes));
                end.quiet();
                assert!(end.get(0, room, nbytes) == bytes(seed, nbytes));
            }
            end.update(0, COUNTER, Eight, Add, 1);
            let word = COUNTER + 64 * member.me();
            end.update(0, word, Four, Set, 5);
            end.fence();
            assert_eq!(end.amo(0, word, Four, CompareSwap, 6, 5), 5);
            assert_eq!(end.amo(0, word, Four, Swap, 7, 0), 6);
            assert_eq!(end.amo(0, word, Four, Fetch, 0, 0), 7);
            end.put_signal(0, room, &bytes(seed, 10), word + 8, 1, Add);
            end.quiet();
            member.barrier();
        }
        // All operations that have completed are in memory, although PE 0 has made no call.
        if member.me() == 0 {
            let others = member.n_pes() as u64 - 1;
            assert_eq!(member.fetch::<u64>(COUNTER), others * (round + 1));
            for origin in 1..member.n_pes() {
                let seed = round * 8 + origin as u64;
                assert!(member.read(origin * ROOM, ROOM)[10..] == bytes(seed, ROOM)[10..]);
                assert_eq!(member.fetch::<u64>(COUNTER + 64 * origin + 8), round + 1);
            }
        }
        member.barrier();
    }
}

/// Every PE issues operations without completing them, and then computes until its neighbor has
/// seen all of them.
pub(crate) fn origin(member: &Member) {
    for round in 1..=5u64 {
        let seed = |origin: usize| round * 8 + origin as u64;
        let (small, large) = (
            bytes(seed(member.me()), 500),
            bytes(seed(member.me()), 3 * ROOM),
        );
        let mut end = member.endpoint();
        end.update(member.right(), 0, Eight, Add, 1);
        end.put_nbi(member.right(), ROOM, &large);
        // The last operations are small ones, which a provider may batch.
        end.put(member.right(), 64, &small);
        end.put_word(member.right(), 8, round);
        end.update(member.right(), 16, Eight, Add, 1);
        // Without a further call, the neighbor's memory must change.
        for counter in [0, 8, 16] {
            while member.fetch::<u64>(counter) < round {
                std::thread::yield_now();
            }
        }
        let left = seed(member.left());
        while member.read(64, 500) != bytes(left, 500) {
            std::thread::yield_now();
        }
        while member.read(ROOM, 3 * ROOM) != bytes(left, 3 * ROOM) {
            std::thread::yield_now();
        }
        member.compute_until_barrier();
        end.quiet();
        member.barrier();
    }
}
