//! Completion: quiet, quiet towards one PE, and the end of an endpoint.

use super::member::{Member, TestAmo, word};
use super::pattern::{Random, bytes};
use rushmem_transport::AmoOp::Add;
use std::ops::Range;

const ROOM: usize = 1 << 20;

pub(crate) fn quiet(member: &Member) {
    let own_room = member.me() * ROOM;
    let mut random = Random::new(8);
    for round in 0..6u64 {
        // All PEs use the same ranges.
        let ranges = consecutive_ranges(&mut random);
        let nbytes = ranges.last().map_or(0, |last| last.end);
        let data = |origin: usize| bytes(round * 10 + origin as u64, nbytes);
        let own_data = data(member.me());

        let mut end = member.endpoint();
        for range in &ranges {
            for peer in member.peers() {
                end.put_nbi(peer, own_room + range.start, &own_data[range.clone()]);
            }
        }
        if round % 2 == 0 {
            end.quiet();
        } else {
            end.poll_until_quiet();
        }
        member.barrier();

        for origin in member.peers() {
            let seen = member.read(origin * ROOM, nbytes);
            assert!(seen == data(origin), "round {round} from PE {origin}");
        }

        for peer in member.peers() {
            let mut copy = vec![0; nbytes];
            let mut end = member.endpoint();
            let mut rest = &mut copy[..];
            for range in &ranges {
                let (part, tail) = rest.split_at_mut(range.len());
                rest = tail;
                end.get_nbi(peer, own_room + range.start, part);
            }
            end.quiet();
            drop(end);
            assert!(copy == own_data, "round {round} back from {peer}");
        }
        member.barrier();
    }
}

/// Returns up to 300 ranges of a room, of random sizes, each of which begins where the one before
/// ends.
fn consecutive_ranges(random: &mut Random) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while ranges.len() < 300 {
        let nbytes = match random.below(30) {
            0 => 50_000 + random.below(100_000),
            1..8 => random.below(5_000),
            _ => 1 + random.below(32),
        };
        let end = start + nbytes;
        if end > ROOM {
            break;
        }
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// The send of a fetch's request may complete later than the fetch, and only when it is polled.
pub(crate) fn quiet_after_fetches(member: &Member) {
    let mut end = member.endpoint();
    for round in 0..200 {
        for peer in member.peers() {
            let old = end.amo(word(peer, 8 * member.me()), TestAmo::new(Add, 1));
            assert_eq!(old, round, "of PE {peer}");
            end.poll_until_quiet();
        }
    }
    member.barrier();
}

pub(crate) fn pe_quiet(member: &Member) {
    const NBYTES: usize = 30_000;
    const COUNTER: usize = 7 << 20;
    let data: Vec<Vec<u8>> = (0..20).map(|i| bytes(i, NBYTES)).collect();
    let peers: Vec<usize> = member.peers().collect();
    let mut end = member.endpoint();
    for (i, data) in data.iter().enumerate() {
        let place = member.me() * ROOM + i * NBYTES;
        for &peer in &peers {
            end.put_nbi(peer, place, data);
            end.update(word(peer, COUNTER), TestAmo::new(Add, 1));
        }

        let only = peers[i % peers.len()];
        end.pe_quiet(only);
        // The put is complete, so another endpoint reads its data from PE `only`.
        let seen = member.endpoint().get(only, place, NBYTES);
        assert!(seen == *data, "put {i}");
    }

    // With nothing in flight, `pe_quiet` has nothing to wait for.
    end.quiet();
    for peer in member.peers() {
        end.pe_quiet(peer);
    }
    member.barrier();
    let n_updates = (data.len() * peers.len()) as u64;
    assert_eq!(member.fetch::<u64>(COUNTER), n_updates);
}

pub(crate) fn drop_completes(member: &Member) {
    let data: Vec<Vec<u8>> = (0..50)
        .map(|i| bytes(i, 1 + (i as usize * 997) % 9_000))
        .collect();
    for (i, data) in data.iter().enumerate() {
        let mut end = member.endpoint();
        end.put_nbi(member.right(), 64, data);
        end.update(word(member.right(), 0), TestAmo::new(Add, 1));
        drop(end);
        member.barrier();
        assert_eq!(member.fetch::<u64>(0), i as u64 + 1);
        assert!(member.read(64, data.len()) == *data);
        member.barrier();
    }
}
