//! Progress without calls of the library: a target that computes, and an origin that computes.

use super::member::{Member, TestAmo, TestSignal, short_word, word};
use super::pattern::bytes;
use rushmem_transport::AmoOp::{Add, Set, Swap};

const ROOM: usize = 1 << 20;
const COUNTER: usize = 4 << 20;

/// The offset of the words of PE 0 that one origin changes.
fn words(origin: usize) -> usize {
    COUNTER + 64 * origin
}

fn seed(round: u64, origin: usize) -> u64 {
    round * 8 + origin as u64
}

/// PE 0 computes and makes no call until the others, which use its memory meanwhile, have reached
/// the barrier.
pub(crate) fn target(member: &Member) {
    for round in 0..5u64 {
        if member.me() == 0 {
            member.compute_until_barrier();
            // All operations that have completed are in memory, although PE 0 has made no call.
            check_target(member, round);
        } else {
            use_target(member, round);
            member.barrier();
        }
        member.barrier();
    }
}

/// Issues operations of all kinds on PE 0, and completes them.
fn use_target(member: &Member, round: u64) {
    let mut endpoint = member.endpoint();
    let room = member.me() * ROOM;
    let seed = seed(round, member.me());
    for nbytes in [1, 8, 1_000, 100_000, ROOM] {
        endpoint.put(0, room, &bytes(seed, nbytes));
        endpoint.quiet();
        assert!(endpoint.get(0, room, nbytes) == bytes(seed, nbytes));
    }

    endpoint.update(word(0, COUNTER), TestAmo::new(Add, 1));
    let own = short_word(0, words(member.me()));
    endpoint.update(own, TestAmo::new(Set, 5));
    endpoint.fence();
    assert_eq!(endpoint.amo(own, TestAmo::compare_swap(5, 6)), 5);
    assert_eq!(endpoint.amo(own, TestAmo::new(Swap, 7)), 6);
    assert_eq!(endpoint.amo(own, TestAmo::fetch()), 7);

    let signal = TestSignal {
        offset: words(member.me()) + 8,
        op: Add,
        value: 1,
    };
    endpoint.put_signal(0, room, &bytes(seed, 10), signal);
    endpoint.quiet();
}

/// Checks on PE 0 what the others have done to its memory.
fn check_target(member: &Member, round: u64) {
    let n_others = member.n_pes() as u64 - 1;
    assert_eq!(member.fetch::<u64>(COUNTER), n_others * (round + 1));
    for origin in 1..member.n_pes() {
        // The put with the signal has overwritten the first bytes.
        let room = member.read(origin * ROOM, ROOM);
        assert!(room[10..] == bytes(seed(round, origin), ROOM)[10..]);
        assert_eq!(member.fetch::<u64>(words(origin) + 8), round + 1);
    }
}

/// Every PE issues operations without completing them, and then computes until its neighbor has
/// seen all of them.
pub(crate) fn origin(member: &Member) {
    const SMALL: usize = 500;
    const LARGE: usize = 3 * ROOM;
    // Offsets of what the left neighbor changes: two counters, a word between them, and two puts.
    const FIRST: usize = 0;
    const ROUND: usize = 8;
    const LAST: usize = 16;
    const SMALL_PUT: usize = 64;
    const LARGE_PUT: usize = ROOM;

    let right = member.right();
    for round in 1..=5u64 {
        let small = bytes(seed(round, member.me()), SMALL);
        let large = bytes(seed(round, member.me()), LARGE);
        let mut endpoint = member.endpoint();
        endpoint.update(word(right, FIRST), TestAmo::new(Add, 1));
        endpoint.put_nbi(right, LARGE_PUT, &large);
        // The last operations are small ones, which a provider may batch.
        endpoint.put(right, SMALL_PUT, &small);
        endpoint.put_word(right, ROUND, round);
        endpoint.update(word(right, LAST), TestAmo::new(Add, 1));

        // Without a further call, the neighbor's memory must change.
        for offset in [FIRST, ROUND, LAST] {
            while member.fetch::<u64>(offset) < round {
                std::thread::yield_now();
            }
        }
        let from_left = seed(round, member.left());
        while member.read(SMALL_PUT, SMALL) != bytes(from_left, SMALL) {
            std::thread::yield_now();
        }
        while member.read(LARGE_PUT, LARGE) != bytes(from_left, LARGE) {
            std::thread::yield_now();
        }

        member.compute_until_barrier();
        endpoint.quiet();
        member.barrier();
    }
}
