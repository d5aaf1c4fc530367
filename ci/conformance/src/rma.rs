//! Puts and gets: many sizes and alignments, both segments, borders of heap blocks, and offsets
//! beyond 4 GiB.

use super::member::{INTERNAL_BYTES, Member, internal};
use super::pattern::bytes;
use rushmem_transport::AmoOp;
use rushmem_transport::AmoWidth::Eight;

/// The bytes around a transfer, which must stay as they were.
const GUARD: usize = 16;

pub(crate) fn sizes(member: &Member) {
    let around = |n: usize| n - 1..n + 2;
    let powers = (7..17).flat_map(|power| around(1 << power));
    let mut start = 0;
    let mut end = member.endpoint();
    for nbytes in (1..=70).chain(powers).chain([(1 << 20) + 3]) {
        let shifts = [(0, 0), (1, 2), (4, 0), (0, 3)];
        // All shifts for lengths of a few words, and two for longer ones.
        let n_shifts = if nbytes <= 24 { 4 } else { 2 };
        for (to_shift, from_shift) in shifts.into_iter().take(n_shifts) {
            let room = nbytes + 2 * GUARD + 8;
            start = if start + 4 * room > 8 << 20 { 0 } else { start };
            // A range per origin, so that all may put to one PE at once.
            let place = |origin: usize| start + origin * room + GUARD + to_shift;
            member.write(start, &vec![0x5A; member.n_pes() * room]);
            let data = |origin: usize| bytes((origin * 1_000 + nbytes) as u64, nbytes);
            let mut shifted = vec![0; from_shift];
            shifted.extend(data(member.me()));
            member.barrier();
            for peer in member.peers() {
                end.put(peer, place(member.me()), &shifted[from_shift..]);
            }
            end.quiet();
            member.barrier();
            for origin in member.peers() {
                let seen = member.read(place(origin) - GUARD, nbytes + 2 * GUARD);
                assert_eq!(
                    seen[GUARD..GUARD + nbytes],
                    data(origin),
                    "{nbytes} from PE {origin}"
                );
                let guards = seen[..GUARD].iter().chain(&seen[GUARD + nbytes..]);
                assert!(
                    guards.eq(&[0x5A; 2 * GUARD]),
                    "{nbytes} bytes from PE {origin}, no more"
                );
                assert_eq!(
                    end.get(origin, place(member.me()), nbytes),
                    data(member.me()),
                    "get of {nbytes}"
                );
            }
            member.barrier();
            start += 4 * room;
        }
    }
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
        end.put_signal(peer, 0, &[], 64, 1, AmoOp::Add);
    }
    end.fence();
    end.quiet();
    member.barrier();
    assert_eq!(member.fetch::<u64>(64), member.peers().count() as u64);
    assert!(member.read(0, 64).iter().all(|&byte| byte == 0));
}

pub(crate) fn segments(member: &Member) {
    let mut end = member.endpoint();
    let (in_heap, in_internal) = (bytes(1, 100), bytes(2, 100));
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
    let (me, right, left) = (member.me() as u64, member.right(), member.left());
    let source = bytes(me, nbytes);
    for (shift, nbi) in [(1, false), (0, true)] {
        let part = nbytes - shift;
        let mut copy = vec![0; part];
        let mut end = member.endpoint();
        member.barrier();
        match nbi {
            true => end.put_nbi(right, shift, &source[..part]),
            false => end.put(right, shift, &source[..part]),
        }
        end.quiet();
        member.barrier();
        assert!(
            member.read(shift, part) == bytes(left as u64, part),
            "put of {part}"
        );
        match nbi {
            true => end.get_nbi(right, shift, &mut copy),
            false => copy = end.get(right, shift, part),
        }
        drop(end);
        assert!(copy == source[..part], "get of {part}");
    }
}

pub(crate) fn block_borders(member: &Member) {
    const NBYTES: usize = 70_000;
    let (me, right, left) = (member.me(), member.right(), member.left());
    for border in (64..member.heap_bytes() >> 20)
        .step_by(16)
        .map(|mib| mib << 20)
    {
        let start = border - NBYTES / 2;
        for (nbytes, nbi) in [(12, false), (NBYTES, false), (NBYTES, true)] {
            let (at, data) = (border - nbytes / 2, bytes((border + me) as u64, nbytes));
            let mut end = member.endpoint();
            match nbi {
                true => end.put_nbi(right, at, &data),
                false => end.put(right, at, &data),
            }
            end.quiet();
            member.barrier();
            assert_eq!(
                member.read(at, nbytes),
                bytes((border + left) as u64, nbytes)
            );
            assert_eq!(end.get(right, at, nbytes), data);
            member.barrier();
            member.write(start, &[0; NBYTES]);
            member.barrier();
        }
        let mut end = member.endpoint();
        for (pe, word) in member
            .peers()
            .flat_map(|pe| [(pe, border - 8), (pe, border)])
        {
            end.update(pe, word, Eight, AmoOp::Add, 1);
        }
        end.quiet();
        member.barrier();
        for word in [border - 8, border] {
            assert_eq!(
                member.read(word, 8),
                (member.peers().count() as u64).to_ne_bytes()
            );
        }
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
        assert!(member.read(offset % FAR, 100).iter().all(|&b| b == 0) || offset < FAR);
        member.barrier();
    }
    let word = FAR + (1 << 20);
    end.put_word(right, word + 8, 43);
    end.quiet();
    end.update(right, word, Eight, AmoOp::Set, 41);
    end.fence();
    assert_eq!(end.amo(right, word, Eight, AmoOp::Add, 1, 0), 41);
    member.barrier();
    assert_eq!(member.fetch::<u64>(word), 42);
    assert_eq!(member.fetch::<u64>(word + 8), 43);
}
