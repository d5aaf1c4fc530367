//! The addresses and keys that PEs publish, their encoding, and the check that two PEs fit
//! together.

use crate::fabric::{Fabric, RawKey};
use crate::probe;
use libfabric_sys as fi;
use rushmem_system::formats::{OFI_ADDRESS, OFI_KEY, decode, encode};
use rushmem_transport::segments::heap_blocks::{ENTRY, HeapBlock, HeapBlocks};
use rushmem_transport::{Error, Key, Pe, PeRecord, Segment};

/// The address of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The provider, which must be the same on both PEs.
    pub(crate) provider: String,
    pub(crate) host: String,
    /// The service endpoint's name, in the provider's format.
    pub(crate) name: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(OFI_ADDRESS, &(&self.provider, &self.host, &self.name))
    }

    /// Returns the service endpoint's name as a user can read it: a socket address, a text, or the
    /// bytes in hexadecimal.
    pub(crate) fn shown(&self) -> String {
        let text = self.name.strip_suffix(&[0]).unwrap_or(&self.name);
        match probe::socket(&self.name) {
            Some(socket) => socket.to_string(),
            None if text.iter().all(u8::is_ascii_graphic) => text.escape_ascii().to_string(),
            None => self.name.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, rushmem_system::formats::Error> {
        let (provider, host, name) = decode(OFI_ADDRESS, bytes)?;
        Ok(Address {
            provider,
            host,
            name,
        })
    }
}

/// The address and the key of a segment of a PE, or of a block of its heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    /// The value to which offsets in the segment are added.
    pub(crate) base: u64,
    pub(crate) nbytes: u64,
    /// The key that operations pass; unused in a published segment with a raw key.
    pub(crate) key: u64,
}

/// What a PE publishes of one of its segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublishedSegment {
    /// The registered part: the whole segment, or a block of the heap.
    pub(crate) segment: SegmentKey,
    pub(crate) raw: Option<RawKey>,
    /// Bytes of the whole segment, of which the key may cover only the first ones.
    pub(crate) whole: u64,
}

impl PublishedSegment {
    pub(crate) fn encode(self) -> Key {
        let SegmentKey { base, nbytes, key } = self.segment;
        let raw = self.raw.map(|raw| (raw.base, raw.bytes));
        Key(encode(OFI_KEY, &(base, nbytes, key, raw, self.whole)))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<PublishedSegment, rushmem_system::formats::Error> {
        let (base, nbytes, key, raw, whole) = decode::<(_, _, _, Option<_>, _)>(OFI_KEY, bytes)?;
        let raw = raw.map(|(base, bytes)| RawKey { base, bytes });
        Ok(PublishedSegment {
            segment: SegmentKey { base, nbytes, key },
            raw,
            whole,
        })
    }

    /// Returns the key that operations of this PE use. Maps a raw key.
    fn usable(self, fabric: &Fabric) -> Result<SegmentKey, i32> {
        let key = self
            .raw
            .map_or(Ok(self.segment.key), |raw| fabric.map(&raw))?;
        Ok(SegmentKey {
            key,
            ..self.segment
        })
    }
}

/// A peer that this PE has used, as operations address it.
pub(crate) struct Peer {
    /// The number of the peer in the address vector.
    pub(crate) fi_addr: fi::fi_addr_t,
    /// The keys of the segments; that of a heap in blocks covers the first block.
    pub(crate) keys: [SegmentKey; Segment::COUNT],
    pub(crate) heap_bytes: u64,
    /// The keys of the further blocks of its heap that this PE has looked up.
    pub(crate) blocks: HeapBlocks<SegmentKey>,
}

fn invalid(pe: Pe) -> impl Fn(rushmem_system::formats::Error) -> Error {
    move |error| Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
}

/// Decodes the address of `pe` from its record.
pub(crate) fn address(pe: Pe, record: PeRecord<'_>) -> Result<Address, Error> {
    Address::decode(record.address).map_err(invalid(pe))
}

/// Decodes the segments of `pe` from its record.
fn published(pe: Pe, record: PeRecord<'_>) -> Result<[PublishedSegment; Segment::COUNT], Error> {
    let mut published: [PublishedSegment; Segment::COUNT] = Default::default();
    for (published, bytes) in published
        .iter_mut()
        .zip(record.keys)
        .filter(|(_, bytes)| !bytes.is_empty())
    {
        *published = PublishedSegment::decode(bytes).map_err(invalid(pe))?;
    }
    Ok(published)
}

/// Checks the record of `pe`, and that PE `me`, whose address is `own`, can use `pe`.
///
/// # Errors
/// If the record is absent or malformed, or the two PEs use different providers.
pub(crate) fn check(
    (me, own): (Pe, &Address),
    pe: Pe,
    record: Option<PeRecord<'_>>,
) -> Result<(), Error> {
    let record = record.ok_or(Error::Unreachable(pe))?;
    let address = address(pe, record)?;
    if address.provider != own.provider {
        return Err(Error::Invalid(format!(
            "PE {pe} uses libfabric's provider {}, PE {me} {}: set SHMEM_OFI_PROVIDER to one that both have",
            address.provider, own.provider
        )));
    }
    published(pe, record).map(|_| ())
}

impl Peer {
    /// Inserts the address of `pe` and maps its keys, from its record, which was checked.
    pub(crate) fn new(fabric: &Fabric, pe: Pe, record: PeRecord<'_>) -> Result<Peer, Error> {
        let address = address(pe, record)?;
        let fi_addr = fabric
            .insert(&address.name)
            .map_err(refused(fabric, "the address", pe))?;
        rushmem_system::log::debug!(
            peer = pe.0,
            host = address.host,
            "has its address, {}",
            address.shown()
        );
        let mut keys = [SegmentKey::default(); Segment::COUNT];
        let published = published(pe, record)?;
        let heap_bytes = published[Segment::Heap as usize].whole;
        for (key, published) in keys.iter_mut().zip(published) {
            *key = published
                .usable(fabric)
                .map_err(refused(fabric, "a key", pe))?;
        }
        Ok(Peer {
            fi_addr,
            keys,
            heap_bytes,
            blocks: HeapBlocks::default(),
        })
    }

    /// Returns the number of bytes of a segment.
    pub(crate) fn nbytes(&self, segment: Segment) -> u64 {
        match segment {
            Segment::Heap => self.heap_bytes,
            _ => self.keys[segment as usize].nbytes,
        }
    }

    /// Records a block of the heap of this peer, PE `pe`, from the entry in the peer's table of
    /// keys.
    ///
    /// # Errors
    /// If the block is not allocated, the entry is malformed, or libfabric refuses the key.
    pub(crate) fn learn(
        &self,
        fabric: &Fabric,
        pe: Pe,
        block: HeapBlock,
        entry: &[u8; ENTRY],
    ) -> Result<(), Error> {
        self.blocks.learn(pe, block, entry, |key| {
            let published = PublishedSegment::decode(key).map_err(invalid(pe))?;
            let key = published
                .usable(fabric)
                .map_err(refused(fabric, "a key", pe))?;
            // Operations add offsets in the heap, not in the block, to the base.
            Ok(SegmentKey {
                base: key.base.wrapping_sub(block.start),
                ..key
            })
        })
    }
}

/// Returns a function that makes the error for libfabric's code when it refused an address or a key
/// of a PE, named by `what`.
fn refused(fabric: &Fabric, what: &'static str, pe: Pe) -> impl Fn(i32) -> Error {
    move |code| {
        let (own, why) = (&fabric.info.provider, fabric.library.strerror(code));
        Error::Unavailable(format!(
            "libfabric ({own}) refused {what} of PE {pe}: {why}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let address = Address {
            provider: "tcp".into(),
            host: "h".into(),
            name: vec![1, 2, 3],
        };
        let bytes = address.encode();
        assert_eq!(Address::decode(&bytes), Ok(address));
        assert!(Address::decode(&bytes[..bytes.len() - 1]).is_err());
        let segment = SegmentKey {
            base: 1 << 47,
            nbytes: 5,
            key: u64::MAX,
        };
        for raw in [
            None,
            Some(RawKey {
                base: 7,
                bytes: vec![1; 32],
            }),
        ] {
            let published = PublishedSegment {
                segment,
                raw,
                whole: 7,
            };
            assert_eq!(
                PublishedSegment::decode(&published.clone().encode().0),
                Ok(published)
            );
        }
        assert!(PublishedSegment::decode(&[0; 23]).is_err());
    }
}
