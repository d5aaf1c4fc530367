//! Unit tests of `areas`.

use super::*;

/// Returns all edges of a team of `n` members that have a flag in its slot, and the bytes of the
/// flag and of the short vectors beside it.
fn edges(n: u32) -> impl Iterator<Item = (Edge, usize)> {
    (0..(Edge::count(n) / 3) as u8).flat_map(|k| {
        let exchange = WORD + 2 * SHORT;
        [
            (Edge::Ahead(k), WORD),
            (Edge::Behind(k), WORD),
            (Edge::Exchange(k), exchange),
        ]
    })
}

#[test]
fn nothing_overlaps() {
    for (n, sets) in [
        (1u32, 1),
        (2, 1),
        (3, 2),
        (64, 1),
        (65, RECEIVE_BUFFER_SETS),
        (512, 3),
    ] {
        let a = Areas::new(n, sets);
        let mut ends = vec![(0, WORD), (a.table(), n as usize * WORD)];
        ends.extend(a.exits().map(|at| (at, WORD)));
        ends.extend((0..n).map(|p| (a.mailbox(Pe(p)), LINE)));
        ends.extend((0..n).map(|p| (a.acknowledged(Pe(p)), WORD)));
        for p in (0..n).map(Pe) {
            ends.extend([(a.pair_flag(p), WORD), (a.contribution(p), SHORT)]);
            ends.extend([0, 1].map(|parity| (a.pair_short(p, parity), SHORT)));
        }
        for p in (0..n.min(LINE_PES as u32)).map(Pe) {
            ends.extend([0, 1].map(|turn| (a.line(p, turn), LINE)));
        }
        for slot in (0..TEAM_SLOTS as u16).filter(|slot| *slot < 9 || *slot > 1010) {
            ends.extend(edges(n).map(|(edge, nbytes)| (a.slot_flags(slot).flag(edge), nbytes)));
            ends.extend([(a.counter(slot), 2 * WORD), (a.combined(slot), SHORT)]);
            for parity in 0..2 {
                ends.push((a.shown(slot, parity), WORD));
                ends.extend([false, true].map(|net| (a.counted(slot, parity, net), WORD)));
            }
        }
        for k in 0..receive_buffer::count(n) as u8 {
            for set in 0..sets as u8 {
                ends.extend(
                    [0, 1].map(|copy| (a.receive_buffer(set, k, copy), a.receive_buffer_bytes())),
                );
                ends.extend([0, 1].map(|parity| {
                    (
                        a.receive_buffer_of_job(set, k, parity),
                        a.receive_buffer_bytes(),
                    )
                }));
            }
        }
        ends.extend([0, 1].map(|parity| (a.step(parity), MESSAGE * WORD)));
        ends.push((a.progress(), WORD));
        ends.extend([(a.status(), STATUS_BYTES), (a.writes(), RING_BYTES)]);
        if n > 1 {
            // The memory in which this PE packs is a receive buffer for collectives among all PEs.
            let packed = (0..sets as u8).map(|set| a.packed(set));
            assert!(
                packed
                    .clone()
                    .all(|at| ends.contains(&(at, a.receive_buffer_bytes()))),
                "{n} PEs"
            );
        }
        ends.sort();
        for pair in ends.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} for {n} PEs");
        }
        assert!(ends.iter().all(|(at, _)| at.is_multiple_of(WORD)));
        assert!(a.line(Pe(0), 0).is_multiple_of(LINE));
        let (last, length) = ends[ends.len() - 1];
        assert!(last + length <= a.nbytes());
    }
}

#[test]
fn short_vectors_lie_beside_their_flags() {
    for n in [2, 100] {
        let a = Areas::new(n, 1);
        for slot in [0, 3, 4, 1000] {
            for (edge, nbytes) in edges(n) {
                let at = a.slot_flags(slot).flag(edge);
                assert_eq!(
                    at / LINE,
                    (at + nbytes - 1) / LINE,
                    "{edge:?} of slot {slot}"
                );
            }
        }
    }
}

#[test]
fn a_job_of_any_size_registers_no_more_than_is_allowed() {
    let around = (0..=22).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]);
    for n in around.filter(|n| *n > 0) {
        let nbytes = Areas::new(n, 1).nbytes();
        let allowed = (1 << 20) + heap_blocks::TABLE + 200 * n as usize;
        assert!(
            nbytes <= allowed,
            "{nbytes} bytes for {n} PEs, of {allowed}"
        );
    }
}
