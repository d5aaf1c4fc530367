//! The addresses and keys that PEs publish, in the encoding of this provider. The address of a peer
//! is decoded again at each attempt to connect, so that it takes no memory.

use rushmem_system::codec::{decode, encode};
use rushmem_transport::segments::heap_blocks::HeapBlock;
use rushmem_transport::{Error, Pe, Segment};

/// Encodes the address of the service worker of this PE, which UCX has encoded.
pub(crate) fn encode_address(worker: &[u8]) -> Vec<u8> {
    encode(&worker)
}

/// Decodes the address of the service worker of `pe`.
pub(crate) fn decode_address(pe: Pe, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    decode(bytes).map_err(|_| Error::damaged(pe, "address"))
}

/// Encodes a key: the start of the memory in the address space of its owner, and the packed key.
pub(crate) fn encode_key(base: *mut u8, packed: &[u8]) -> Vec<u8> {
    encode(&(base.addr() as u64, packed))
}

/// A key of the memory of a peer, which each endpoint unpacks at its first use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UcxKey {
    /// The value to which offsets in the segment are added.
    base: u64,
    /// The number of the key among those of the peer.
    pub(crate) number: usize,
    pub(crate) packed: Vec<u8>,
}

impl UcxKey {
    /// Decodes the key of a block of a segment of `pe`.
    pub(crate) fn decode(
        pe: Pe,
        segment: Segment,
        block: HeapBlock,
        bytes: &[u8],
    ) -> Result<UcxKey, Error> {
        let (base, packed): (u64, Vec<u8>) =
            decode(bytes).map_err(|_| Error::damaged(pe, "key"))?;
        // The first blocks are numbered by their segments, the further blocks of the heap after
        // these.
        let number = match block.index {
            0 => segment as usize,
            further => Segment::COUNT + further - 1,
        };

        Ok(UcxKey {
            base: base.wrapping_sub(block.start),
            number,
            packed,
        })
    }

    /// Returns the address in the peer's process of an offset in the segment.
    #[inline]
    pub(crate) fn address(&self, offset: u64) -> u64 {
        self.base.wrapping_add(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PE: Pe = Pe(1);

    #[test]
    fn an_address_comes_as_it_was_sent() {
        let worker = vec![7; 99];
        let bytes = encode_address(&worker);
        assert_eq!(decode_address(PE, &bytes), Ok(worker));
        assert!(decode_address(PE, &bytes[..7]).is_err());
        assert!(decode_address(PE, &[]).is_err());
    }

    #[test]
    fn a_key_comes_as_it_was_sent_and_is_added_to_offsets_in_the_segment() {
        let base = std::ptr::without_provenance_mut(4096);
        let bytes = encode_key(base, &[1, 2, 3]);
        let block = |index, start| HeapBlock {
            index,
            start,
            end: start + 100,
        };
        let key = |block| UcxKey::decode(PE, Segment::Heap, block, &bytes).expect("a key");

        let first = key(block(0, 0));
        assert_eq!((first.address(8), first.number), (4104, 0));
        assert_eq!(first.packed, [1, 2, 3]);
        let second = key(block(1, 1000));
        assert_eq!(
            (second.address(1008), second.number),
            (4104, Segment::COUNT)
        );
        assert!(UcxKey::decode(PE, Segment::Heap, block(0, 0), &[0; 15]).is_err());
    }
}
