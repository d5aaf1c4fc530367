//! Strided blocks, short and long ones, ordered among other operations on the same memory.

use super::member::{Member, TestStrides};
use super::pattern::bytes;

/// The bytes around blocks, which must stay as they were.
const BEFORE: u8 = 0x5A;
/// The length in bytes of a put that is too long to be batched with others.
const LARGE: usize = 1000;

const SHAPES: [TestStrides; 8] = [
    shape(1, 5, 3, 2),
    shape(8, 1, 8, 8),
    shape(8, 2, 16, 8),
    shape(8, 1500, 24, 16),
    shape(3, 700, 3, 5),
    shape(256, 40, 300, 256),
    shape(257, 4, 600, 300),
    shape(5000, 3, 7000, 5001),
];

const fn shape(nbytes: usize, n: usize, remote: usize, local: usize) -> TestStrides {
    TestStrides {
        nbytes,
        n,
        remote,
        local,
    }
}

pub(crate) fn blocks(member: &Member) {
    for strides in SHAPES {
        put_and_get(member, strides);
    }
}

/// Puts blocks to all peers and gets them back.
fn put_and_get(member: &Member, strides: TestStrides) {
    let room = strides.remote_nbytes() + LARGE;
    // A range per origin, so that all may put to one PE at once.
    let own = member.me() * room;
    let source = source(member.me(), strides);
    let behind = bytes(7, LARGE);
    let mut end = member.endpoint();
    member.write(0, &vec![BEFORE; member.n_pes() * room]);
    member.barrier();

    for peer in member.peers() {
        // The blocks overwrite the two bytes that are put first. Between the two puts of the
        // blocks is a large put to the memory behind them.
        end.put(peer, own, &[0xFF]);
        end.put(peer, own + (strides.n - 1) * strides.remote, &[0xFF]);
        end.fence();
        end.put_strided(peer, own, &source, strides);
        end.fence();
        end.put(peer, own + strides.remote_nbytes(), &behind);
        end.fence();
        end.put_strided(peer, own, &source, strides);
    }
    end.quiet();
    member.barrier();

    for origin in member.peers() {
        let found = member.read(origin * room, room);
        let expected = [put(origin, strides), behind.clone()].concat();
        assert_eq!(found, expected, "{strides:?} from PE {origin}");
    }

    for peer in member.peers() {
        let mut found = vec![BEFORE; strides.local_nbytes()];
        end.get_strided(peer, own, &mut found, strides);
        check_got(&found, &source, strides, peer);
    }
    member.barrier();
}

/// Returns the memory that contains an origin's blocks.
fn source(origin: usize, strides: TestStrides) -> Vec<u8> {
    bytes((1000 * origin + strides.n) as u64, strides.local_nbytes())
}

/// Returns a peer's memory after an origin has put its blocks.
fn put(origin: usize, strides: TestStrides) -> Vec<u8> {
    let source = source(origin, strides);
    let mut memory = vec![BEFORE; strides.remote_nbytes()];
    for i in 0..strides.n {
        let block = &source[i * strides.local..][..strides.nbytes];
        memory[i * strides.remote..][..strides.nbytes].copy_from_slice(block);
    }
    memory
}

/// Checks that a get has stored the blocks of the source, and nothing between them.
fn check_got(found: &[u8], source: &[u8], strides: TestStrides, peer: usize) {
    for i in 0..strides.n {
        let start = i * strides.local;
        let end = start + strides.nbytes;
        assert_eq!(
            found[start..end],
            source[start..end],
            "{strides:?} from PE {peer}"
        );
        let gap = &found[end..found.len().min(start + strides.local)];
        assert!(
            gap.iter().all(|&byte| byte == BEFORE),
            "{strides:?}: no more than blocks"
        );
    }
}
