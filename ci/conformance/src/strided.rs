//! Strided blocks, short and long ones, ordered among other operations on the same memory.

use super::member::{Member, TestStrides};
use super::pattern::bytes;

/// The bytes around blocks, which must stay as they were.
const BEFORE: u8 = 0x5A;
/// The length in bytes of a put that is too long to be batched with others.
const LARGE: usize = 1000;

/// Bytes of a block, number of blocks, and bytes from the start of a block to the next, at the
/// target and at the origin.
const SHAPES: [(usize, usize, usize, usize); 8] = [
    (1, 5, 3, 2),
    (8, 1, 8, 8),
    (8, 2, 16, 8),
    (8, 1500, 24, 16),
    (3, 700, 3, 5),
    (256, 40, 300, 256),
    (257, 4, 600, 300),
    (5000, 3, 7000, 5001),
];

pub(crate) fn blocks(member: &Member) {
    let mut end = member.endpoint();
    for (nbytes, n, there, here) in SHAPES {
        let room = (n - 1) * there + nbytes + LARGE;
        // A range per origin, so that all may put to one PE at once.
        let place = |origin: usize| origin * room;
        let data = |origin: usize| bytes((1000 * origin + n) as u64, (n - 1) * here + nbytes);
        let last = bytes(7, LARGE);
        member.write(0, &vec![BEFORE; member.n_pes() * room]);
        member.barrier();
        let (source, at) = (data(member.me()), place(member.me()));
        let strides = TestStrides {
            nbytes,
            n,
            remote: there,
            local: here,
        };
        for peer in member.peers() {
            // The blocks overwrite the two bytes that are put first. Between the two puts of the
            // blocks is a large put to the memory behind them.
            end.put(peer, at, &[0xFF]);
            end.put(peer, at + (n - 1) * there, &[0xFF]);
            end.fence();
            end.put_strided(peer, at, &source, strides);
            end.fence();
            end.put(peer, at + room - LARGE, &last);
            end.fence();
            end.put_strided(peer, at, &source, strides);
        }
        end.quiet();
        member.barrier();
        for origin in member.peers() {
            let mut expected = vec![BEFORE; room];
            expected[room - LARGE..].copy_from_slice(&last);
            let source = data(origin);
            for i in 0..n {
                expected[i * there..][..nbytes].copy_from_slice(&source[i * here..][..nbytes]);
            }
            assert_eq!(
                member.read(place(origin), room),
                expected,
                "{strides:?} from PE {origin}"
            );
        }
        for peer in member.peers() {
            let mut found = vec![BEFORE; (n - 1) * here + nbytes];
            end.get_strided(peer, place(member.me()), &mut found, strides);
            let source = data(member.me());
            for i in 0..n {
                let block = i * here..i * here + nbytes;
                assert_eq!(
                    found[block.clone()],
                    source[block],
                    "{strides:?} from PE {peer}"
                );
                let gap = &found[i * here + nbytes..found.len().min((i + 1) * here)];
                assert!(
                    gap.iter().all(|&byte| byte == BEFORE),
                    "{strides:?}: no more than blocks"
                );
            }
        }
        member.barrier();
    }
}
