//! Puts and gets: many sizes and alignments, both segments, borders of heap blocks, and offsets
//! beyond 4 GiB.

use super::member::{INTERNAL_BYTES, Member, TestAmo, TestEndpoint, TestSignal, internal, word};
use super::pattern::bytes;
use rushmem_transport::AmoOp;

/// The bytes around a transfer, which must stay as they were.
const GUARD: usize = 16;

/// The offsets of a transfer from an aligned address.
#[derive(Clone, Copy)]
struct Shifts {
    target: usize,
    source: usize,
}

const SHIFTS: [Shifts; 4] = [
    Shifts {
        target: 0,
        source: 0,
    },
    Shifts {
        target: 1,
        source: 2,
    },
    Shifts {
        target: 4,
        source: 0,
    },
    Shifts {
        target: 0,
        source: 3,
    },
];

pub(crate) fn sizes(member: &Member) {
    let around_powers = (7..17).flat_map(|power| {
        let n = 1 << power;
        [n - 1, n, n + 1]
    });
    let mut end = member.endpoint();
    let mut start = 0;
    for nbytes in (1..=70).chain(around_powers).chain([(1 << 20) + 3]) {
        // All shifts for lengths of a few words, and two for longer ones.
        let n_shifts = if nbytes <= 24 { 4 } else { 2 };
        for &shifts in &SHIFTS[..n_shifts] {
            let room = nbytes + 2 * GUARD + 8;
            // Each transfer has a room at each of up to 4 PEs, until the heap is full.
            if start + 4 * room > member.heap_bytes() {
                start = 0;
            }
            let transfer = Transfer {
                nbytes,
                shifts,
                start,
                room,
            };
            put_and_get(member, &mut end, transfer);
            start += 4 * room;
        }
    }
}

/// A put from each PE to all others, which is got back.
#[derive(Clone, Copy)]
struct Transfer {
    nbytes: usize,
    shifts: Shifts,
    /// The offset of PE 0's room. Each origin has one, so that all may put to one PE at once.
    start: usize,
    /// The size of a room.
    room: usize,
}

impl Transfer {
    /// Returns the offset to which an origin puts.
    fn place(self, origin: usize) -> usize {
        self.start + origin * self.room + GUARD + self.shifts.target
    }

    fn data(self, origin: usize) -> Vec<u8> {
        bytes((origin * 1_000 + self.nbytes) as u64, self.nbytes)
    }
}

/// Puts bytes to all peers, and gets them back.
fn put_and_get(member: &Member, end: &mut TestEndpoint<'_>, transfer: Transfer) {
    let nbytes = transfer.nbytes;
    let own_place = transfer.place(member.me());
    let own_data = transfer.data(member.me());
    let source_shift = transfer.shifts.source;
    let shifted = [&vec![0; source_shift], &own_data[..]].concat();
    let rooms = vec![0x5A; member.n_pes() * transfer.room];
    member.write(transfer.start, &rooms);
    member.barrier();

    for peer in member.peers() {
        end.put(peer, own_place, &shifted[source_shift..]);
    }
    end.quiet();
    member.barrier();

    for origin in member.peers() {
        let seen = member.read(transfer.place(origin) - GUARD, nbytes + 2 * GUARD);
        let (before, rest) = seen.split_at(GUARD);
        let (found, after) = rest.split_at(nbytes);
        assert_eq!(found, transfer.data(origin), "{nbytes} from PE {origin}");
        assert!(
            before.iter().chain(after).all(|&byte| byte == 0x5A),
            "{nbytes} bytes from PE {origin}, no more"
        );
        let got = end.get(origin, own_place, nbytes);
        assert_eq!(got, own_data, "get of {nbytes}");
    }
    member.barrier();
}

pub(crate) fn zero_length(member: &Member) {
    let mut end = member.endpoint();
    for peer in member.peers() {
        for offset in [0, 1, 1 << 20] {
            end.put(peer, offset, &[]);
            end.put_nbi(peer, offset, &[]);
            end.get_nbi(peer, offset, &mut []);
            assert!(end.get(peer, offset, 0).is_empty());
        }
        // The signal of an empty put is sent.
        let signal = TestSignal {
            offset: 64,
            op: AmoOp::Add,
            value: 1,
        };
        end.put_signal(peer, 0, &[], signal);
    }
    end.fence();
    end.quiet();
    member.barrier();
    assert_eq!(member.fetch::<u64>(64), member.peers().count() as u64);
    assert!(member.read(0, 64).iter().all(|&byte| byte == 0));
}

pub(crate) fn segments(member: &Member) {
    let mut end = member.endpoint();
    let in_heap = bytes(1, 100);
    let in_internal = bytes(2, 100);

    // The same offset in both segments: that of the last bytes of the internal one.
    let last = INTERNAL_BYTES - 100;
    end.put(member.right(), last, &in_heap);
    end.put_at(member.right(), internal(last), &in_internal);
    end.quiet();
    member.barrier();

    assert_eq!(member.read(last, 100), in_heap);
    assert_eq!(member.read_internal(last, 100), in_internal);
}

pub(crate) fn large(member: &Member) {
    let nbytes = member.heap_bytes();
    let right = member.right();
    let source = bytes(member.me() as u64, nbytes);
    for (shift, is_nbi) in [(1, false), (0, true)] {
        let part = nbytes - shift;
        let mut copy = vec![0; part];
        let mut end = member.endpoint();
        member.barrier();

        if is_nbi {
            end.put_nbi(right, shift, &source[..part]);
        } else {
            end.put(right, shift, &source[..part]);
        }
        end.quiet();
        member.barrier();
        assert!(
            member.read(shift, part) == bytes(member.left() as u64, part),
            "put of {part}"
        );

        if is_nbi {
            end.get_nbi(right, shift, &mut copy);
        } else {
            copy = end.get(right, shift, part);
        }
        drop(end);
        assert!(copy == source[..part], "get of {part}");
    }
}

pub(crate) fn block_borders(member: &Member) {
    const MIB: usize = 1 << 20;
    // The first block of a heap has 64 MiB, and the next ones 16 MiB.
    for border in (64 * MIB..member.heap_bytes()).step_by(16 * MIB) {
        transfer_across(member, border);
        update_beside(member, border);
    }
}

/// Puts and gets ranges whose middle is a border.
fn transfer_across(member: &Member, border: usize) {
    const NBYTES: usize = 70_000;
    let right = member.right();
    for (nbytes, is_nbi) in [(12, false), (NBYTES, false), (NBYTES, true)] {
        let start = border - nbytes / 2;
        let data = bytes((border + member.me()) as u64, nbytes);
        let mut end = member.endpoint();
        if is_nbi {
            end.put_nbi(right, start, &data);
        } else {
            end.put(right, start, &data);
        }
        end.quiet();
        member.barrier();

        let expected = bytes((border + member.left()) as u64, nbytes);
        assert_eq!(member.read(start, nbytes), expected);
        assert_eq!(end.get(right, start, nbytes), data);
        member.barrier();

        member.write(border - NBYTES / 2, &[0; NBYTES]);
        member.barrier();
    }
}

/// Adds 1 to the last word before a border of blocks and to the first one after it, on all peers.
fn update_beside(member: &Member, border: usize) {
    let mut end = member.endpoint();
    for pe in member.peers() {
        for offset in [border - 8, border] {
            end.update(word(pe, offset), TestAmo::new(AmoOp::Add, 1));
        }
    }
    end.quiet();
    member.barrier();

    let n_origins = member.peers().count() as u64;
    for offset in [border - 8, border] {
        assert_eq!(member.read(offset, 8), n_origins.to_ne_bytes());
    }
}

pub(crate) fn far_offsets(member: &Member) {
    const FAR: usize = 4 << 30;
    let mut end = member.endpoint();
    let right = member.right();
    let data = bytes(member.me() as u64, 70_000);
    for offset in [FAR - 35_000, FAR + 8, FAR + (16 << 20) - 70_000] {
        end.put(right, offset, &data);
        end.quiet();
        assert_eq!(end.get(right, offset, data.len()), data);
        member.barrier();

        assert_eq!(
            member.read(offset, 70_000),
            bytes(member.left() as u64, 70_000)
        );
        if offset >= FAR {
            // Nothing was put to the offset of the lower 32 bits.
            assert!(member.read(offset % FAR, 100).iter().all(|&b| b == 0));
        }
        member.barrier();
    }

    let offset = FAR + (1 << 20);
    end.put_word(right, offset + 8, 43);
    end.quiet();
    end.update(word(right, offset), TestAmo::new(AmoOp::Set, 41));
    end.fence();
    let old = end.amo(word(right, offset), TestAmo::new(AmoOp::Add, 1));
    assert_eq!(old, 41);
    member.barrier();
    assert_eq!(member.fetch::<u64>(offset), 42);
    assert_eq!(member.fetch::<u64>(offset + 8), 43);
}
