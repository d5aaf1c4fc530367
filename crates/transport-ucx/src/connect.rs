//! The addresses and keys that PEs publish, and their encoding. All records are checked when the
//! transport connects; a peer's record is decoded again at its first use, so that unused peers take
//! no memory.

use rushmem_system::formats::{UCX_ADDRESS, UCX_KEY, decode, encode};
use rushmem_transport::peers::check_range;
use rushmem_transport::{Error, Pe, PeRecord, RemoteAddr, Segment};

/// The address of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The name of its host, for messages to users.
    pub(crate) host: String,
    /// The address of its service worker, in UCX's encoding.
    pub(crate) worker: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(UCX_ADDRESS, &(&self.host, &self.worker))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, rushmem_system::formats::Error> {
        let (host, worker) = decode(UCX_ADDRESS, bytes)?;
        Ok(Address { host, worker })
    }
}

/// The address and the key of a registered segment, or of a block of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryKey {
    /// The start of the memory in the address space of its owner.
    pub(crate) base: u64,
    /// The size of the memory in bytes.
    pub(crate) nbytes: u64,
    /// The packed key, which a peer unpacks to access the memory.
    pub(crate) packed: Vec<u8>,
    /// The number of bytes from the start that the key covers.
    pub(crate) covered: u64,
}

impl MemoryKey {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(
            UCX_KEY,
            &(self.base, self.nbytes, &self.packed, self.covered),
        )
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<MemoryKey, rushmem_system::formats::Error> {
        let (base, nbytes, packed, covered): (u64, u64, _, _) = decode(UCX_KEY, bytes)?;
        base.checked_add(nbytes)
            .ok_or(rushmem_system::formats::Error::Damaged(UCX_KEY))?;
        Ok(MemoryKey {
            base,
            nbytes,
            packed,
            covered,
        })
    }
}

/// The segments of a peer that was used.
pub(crate) struct Peer([Option<PeerSegment>; Segment::COUNT]);

/// The address of a segment in its owner's process, and the part that the key covers.
#[derive(Clone, Copy)]
struct PeerSegment {
    base: u64,
    nbytes: u64,
    /// The number of bytes from the start that the published key covers: the first block of a heap
    /// in blocks, otherwise all.
    covered: u64,
}

fn invalid(pe: Pe) -> impl Fn(rushmem_system::formats::Error) -> Error {
    move |error| Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
}

fn no_segment(pe: Pe, segment: Segment) -> Error {
    Error::Invalid(format!(
        "PE {pe} has no segment {segment:?} that others may use"
    ))
}

/// Decodes the address of `pe` from its record.
pub(crate) fn address(pe: Pe, record: PeRecord<'_>) -> Result<Address, Error> {
    Address::decode(record.address).map_err(invalid(pe))
}

/// Decodes the key of a segment of `pe` from its record.
pub(crate) fn key(pe: Pe, record: PeRecord<'_>, segment: Segment) -> Result<MemoryKey, Error> {
    match record.keys[segment as usize] {
        [] => Err(no_segment(pe, segment)),
        key => MemoryKey::decode(key).map_err(invalid(pe)),
    }
}

impl Peer {
    /// Returns a peer from its record.
    pub(crate) fn new(pe: Pe, record: PeRecord<'_>) -> Result<Peer, Error> {
        let mut segments = [None; Segment::COUNT];
        for (segment, key) in segments
            .iter_mut()
            .zip(record.keys)
            .filter(|(_, key)| !key.is_empty())
        {
            let MemoryKey {
                base,
                nbytes,
                covered,
                ..
            } = MemoryKey::decode(key).map_err(invalid(pe))?;
            *segment = Some(PeerSegment {
                base,
                nbytes,
                covered,
            });
        }
        Ok(Peer(segments))
    }

    /// Returns the address of a range in the process of this peer, which is PE `pe`. Fails if the
    /// range does not lie within the segment.
    #[inline]
    pub(crate) fn address(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<u64, Error> {
        let segment = self.0[at.segment as usize].ok_or_else(|| no_segment(pe, at.segment))?;
        check_range(pe, at, nbytes, segment.nbytes)?;
        Ok(segment.base + at.offset)
    }

    /// Returns true if the published key covers a range, which lies within the segment.
    #[inline]
    pub(crate) fn is_covered(&self, at: RemoteAddr, nbytes: usize) -> bool {
        self.0[at.segment as usize]
            .is_some_and(|segment| at.offset + nbytes as u64 <= segment.covered)
    }

    /// Returns the number of bytes of a segment.
    pub(crate) fn nbytes(&self, segment: Segment) -> u64 {
        self.0[segment as usize].map_or(0, |segment| segment.nbytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_as_it_was_sent() {
        let address = Address {
            host: "a-host".into(),
            worker: vec![7; 99],
        };
        let bytes = address.encode();
        assert_eq!(Address::decode(&bytes), Ok(address));
        assert!(Address::decode(&bytes[..7]).is_err());
        assert!(Address::decode(&[]).is_err());
    }

    #[test]
    fn a_key_comes_as_it_was_sent() {
        let key = MemoryKey {
            base: 4096,
            nbytes: 100,
            packed: vec![1, 2, 3],
            covered: 64,
        };
        assert_eq!(MemoryKey::decode(&key.encode()), Ok(key.clone()));
        assert!(MemoryKey::decode(&[0; 15]).is_err());
        let beyond = MemoryKey {
            base: u64::MAX,
            nbytes: 2,
            packed: Vec::new(),
            covered: 2,
        };
        assert_eq!(
            MemoryKey::decode(&beyond.encode()),
            Err(rushmem_system::formats::Error::Damaged(UCX_KEY))
        );
    }
}
