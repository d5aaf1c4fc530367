//! Completion: quiet, quiet towards one PE, and the end of an endpoint.

use super::member::Member;
use super::pattern::{Random, bytes};
use rushmem_transport::AmoOp::Add;
use rushmem_transport::AmoWidth::Eight;

const ROOM: usize = 1 << 20;

pub(crate) fn quiet(member: &Member) {
    let mut random = Random::new(8);
    for round in 0..6u64 {
        // All PEs use the same ranges, of random sizes and without overlap.
        let mut places = Vec::new();
        let mut start = 0;
        while places.len() < 300 {
            let nbytes = match random.below(30) {
                0 => 50_000 + random.below(100_000),
                1..8 => random.below(5_000),
                _ => 1 + random.below(32),
            };
            if start + nbytes > ROOM {
                break;
            }
            places.push((start, nbytes));
            start += nbytes;
        }
        let seed = |origin: usize| round * 10 + origin as u64;
        let data = bytes(seed(member.me()), start);
        let mut end = member.endpoint();
        for &(at, nbytes) in &places {
            for peer in member.peers() {
                end.put_nbi(peer, member.me() * ROOM + at, &data[at..at + nbytes]);
            }
        }
        if round % 2 == 0 {
            end.quiet();
        } else {
            end.poll_until_quiet();
        }
        member.barrier();
        for origin in member.peers() {
            let seen = member.read(origin * ROOM, start);
            assert!(
                seen == bytes(seed(origin), start),
                "round {round} from PE {origin}"
            );
        }
        for peer in member.peers() {
            let mut copy = vec![0; start];
            let mut end = member.endpoint();
            let mut rest = &mut copy[..];
            for &(at, nbytes) in &places {
                let (part, tail) = rest.split_at_mut(nbytes);
                rest = tail;
                end.get_nbi(peer, member.me() * ROOM + at, part);
            }
            end.quiet();
            drop(end);
            assert!(copy == data, "round {round} back from {peer}");
        }
        member.barrier();
    }
}

/// The send of a fetch's request may complete later than the fetch, and only when it is polled.
pub(crate) fn quiet_after_fetches(member: &Member) {
    let mut end = member.endpoint();
    for round in 0..200 {
        for peer in member.peers() {
            let old = end.amo(peer, 8 * member.me(), Eight, Add, 1, 0);
            assert_eq!(old, round, "of PE {peer}");
            end.poll_until_quiet();
        }
    }
    member.barrier();
}

pub(crate) fn pe_quiet(member: &Member) {
    let data: Vec<Vec<u8>> = (0..20).map(|i| bytes(i, 30_000)).collect();
    let peers: Vec<usize> = member.peers().collect();
    let mut end = member.endpoint();
    for (i, data) in data.iter().enumerate() {
        for peer in member.peers() {
            end.put_nbi(peer, member.me() * ROOM + i * 30_000, data);
            end.update(peer, 7 << 20, Eight, Add, 1);
        }
        let only = peers[i % peers.len()];
        end.pe_quiet(only);
        // The put is complete, so another endpoint reads its data from PE `only`.
        let seen = member
            .endpoint()
            .get(only, member.me() * ROOM + i * 30_000, 30_000);
        assert!(seen == *data, "put {i}");
    }
    // With nothing in flight, `pe_quiet` has nothing to wait for.
    end.quiet();
    for peer in member.peers() {
        end.pe_quiet(peer);
    }
    member.barrier();
    assert_eq!(
        member.fetch::<u64>(7 << 20),
        20 * member.peers().count() as u64
    );
}

pub(crate) fn drop_completes(member: &Member) {
    let data: Vec<Vec<u8>> = (0..50)
        .map(|i| bytes(i, 1 + (i as usize * 997) % 9_000))
        .collect();
    for (i, data) in data.iter().enumerate() {
        let mut end = member.endpoint();
        end.put_nbi(member.right(), 64, data);
        end.update(member.right(), 0, Eight, Add, 1);
        drop(end);
        member.barrier();
        assert_eq!(member.fetch::<u64>(0), i as u64 + 1);
        assert!(member.read(64, data.len()) == *data);
        member.barrier();
    }
}
