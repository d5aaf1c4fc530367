//! Unit tests of `areas`.

use super::*;
use std::ops::Range;

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

fn part(start: usize, nbytes: usize) -> Range<usize> {
    start..start + nbytes
}

/// Returns the words of two counters.
fn words_of(counters: CounterPair) -> [Range<usize>; 2] {
    [part(counters.by_cpu, WORD), part(counters.by_network, WORD)]
}

/// Returns the parts of the areas of a job of `n` PEs, of the slots only the first and the last
/// ones.
fn parts(areas: &Areas, n: u32, sets: u8) -> Vec<Range<usize>> {
    let mut parts = vec![part(0, WORD), part(areas.table(), n as usize * WORD)];
    parts.extend(words_of(areas.exits()));

    for pe in (0..n).map(Pe) {
        parts.push(part(areas.mailbox(pe), LINE));
        parts.push(part(areas.acknowledged(pe), WORD));
        parts.push(part(areas.pair_flag(pe), WORD));
        parts.push(part(areas.contribution(pe), SHORT));
        let short = |parity| short_beside(areas.pair_flag(pe), parity);
        parts.extend([0, 1].map(|parity| part(short(parity), SHORT)));
    }
    for pe in (0..n.min(LINE_PES as u32)).map(Pe) {
        parts.extend([0, 1].map(|turn| part(areas.line(pe, turn), LINE)));
    }

    for slot in (0..TEAM_SLOTS as u16).filter(|slot| *slot < 9 || *slot > 1010) {
        parts.extend(edges(n).map(|(edge, nbytes)| part(areas.slot_flag(slot, edge), nbytes)));
        parts.push(part(areas.counter(slot), WORD));
        parts.push(part(areas.release_flag(slot), WORD));
        parts.push(part(areas.combined(slot), SHORT));
        for parity in 0..2 {
            parts.push(part(areas.shown(slot, parity), WORD));
            parts.extend(words_of(areas.counted(slot, parity)));
        }
    }

    let nbytes = areas.receive_buffer_bytes();
    for buffer in 0..receive_buffer::count(n) as u8 {
        for set in 0..sets {
            for copy in 0..2 {
                parts.push(part(areas.receive_buffer(set, buffer, copy), nbytes));
                parts.push(part(areas.receive_buffer_of_job(set, buffer, copy), nbytes));
            }
        }
    }

    parts.extend([0, 1].map(|parity| part(areas.step(parity), MESSAGE * WORD)));
    parts.push(part(areas.progress(), WORD));
    parts.push(part(areas.status(), STATUS_BYTES));
    parts.push(part(areas.writes(), RING_BYTES));
    parts
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
        let areas = Areas::new(n, sets);
        let mut parts = parts(&areas, n, sets as u8);
        if n > 1 {
            // The memory in which this PE packs is a receive buffer for collectives among all PEs.
            for set in 0..sets as u8 {
                let packed = part(areas.packed(set), areas.receive_buffer_bytes());
                assert!(parts.contains(&packed), "{n} PEs");
            }
        }

        parts.sort_by_key(|part| part.start);
        for pair in parts.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{pair:?} for {n} PEs");
        }
        assert!(parts.iter().all(|part| part.start.is_multiple_of(WORD)));
        assert!(areas.line(Pe(0), 0).is_multiple_of(LINE));
        assert!(parts[parts.len() - 1].end <= areas.nbytes());
    }
}

#[test]
fn short_vectors_lie_beside_their_flags() {
    for n in [2, 100] {
        let areas = Areas::new(n, 1);
        for slot in [0, 3, 4, 1000] {
            for (edge, nbytes) in edges(n) {
                let first = areas.slot_flag(slot, edge);
                let last = first + nbytes - 1;
                assert_eq!(first / LINE, last / LINE, "{edge:?} of slot {slot}");
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
