//! The table of peers: an entry for each PE, made at the first use of that PE from what it has
//! published in the job's directory. Also the checks of remote addresses.

pub(crate) mod directory;
pub mod loss;

use crate::segments::heap_blocks::{Covered, FoundBlock, HeapBlocks};
use crate::{AmoWidth, Directory, Error, Pe, PeRecord, RemoteAddr, Segment, SharedPeMap};
use rushmem_system::codec::{decode, encode};
use rushmem_system::lock::lock;
use std::sync::{Arc, Mutex, OnceLock};

/// The address of a PE, as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeAddress {
    /// The name of the host of the PE, for messages to users.
    pub host: String,
    /// The address, in the encoding of the provider.
    pub of_provider: Vec<u8>,
}

impl PeAddress {
    /// Returns the bytes that the PE publishes.
    pub fn encode(&self) -> Vec<u8> {
        encode(&(&self.host, &self.of_provider))
    }
}

impl PeRecord<'_> {
    /// Returns the address in this record, which PE `pe` has published.
    ///
    /// # Errors
    /// When the record is damaged.
    pub fn address(&self, pe: Pe) -> Result<PeAddress, Error> {
        let (host, of_provider) =
            decode(self.address).map_err(|_| Error::damaged(pe, "address"))?;
        Ok(PeAddress { host, of_provider })
    }
}

/// What a PE publishes of one of its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Bytes of the segment.
    pub nbytes: u64,
    /// Bytes from the start that the key covers: all, or the first block of a heap in blocks.
    pub covered: u64,
    /// The key, in the encoding of the provider.
    pub key: Vec<u8>,
}

impl Published {
    /// Returns the bytes that the PE publishes.
    pub fn encode(&self) -> Vec<u8> {
        encode(&(self.nbytes, self.covered, &self.key))
    }

    /// Decodes what PE `pe` has published; `None` if its segment is empty or not registered.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn decode(pe: Pe, bytes: &[u8]) -> Result<Option<Published>, Error> {
        if bytes.is_empty() {
            return Ok(None);
        }

        let damaged = || Error::damaged(pe, "key");
        let (nbytes, covered, key) = decode(bytes).map_err(|_| damaged())?;
        if covered > nbytes {
            return Err(damaged());
        }
        Ok(Some(Published {
            nbytes,
            covered,
            key,
        }))
    }
}

/// A PE that this PE has used. `P` is the provider's data on it, and `K` the provider's form of a
/// key.
pub struct Peer<P, K> {
    /// The provider's data.
    pub of_provider: P,
    segments: [PeerSegment<K>; Segment::COUNT],
    /// The keys of the further blocks of its heap that this PE has looked up.
    pub(crate) blocks: HeapBlocks<K>,
}

pub(crate) struct PeerSegment<K> {
    pub(crate) nbytes: u64,
    /// Bytes from the start that the key covers.
    pub(crate) covered: u64,
    /// `None` if the segment is empty or not registered.
    pub(crate) key: Option<K>,
}

impl<K> Default for PeerSegment<K> {
    fn default() -> PeerSegment<K> {
        PeerSegment {
            nbytes: 0,
            covered: 0,
            key: None,
        }
    }
}

impl<P, K> Peer<P, K> {
    /// Returns PE `pe` with these segments.
    ///
    /// # Errors
    /// When the first block of its heap has no size that a block may have.
    pub(crate) fn new(
        pe: Pe,
        of_provider: P,
        segments: [PeerSegment<K>; Segment::COUNT],
    ) -> Result<Peer<P, K>, Error> {
        let heap = &segments[Segment::Heap as usize];
        // A key that does not cover the whole heap is that of its first block.
        let blocks = if heap.covered == heap.nbytes {
            HeapBlocks::default()
        } else {
            HeapBlocks::after(heap.covered).ok_or_else(|| Error::damaged(pe, "key"))?
        };

        Ok(Peer {
            of_provider,
            segments,
            blocks,
        })
    }

    /// Returns the number of bytes of a segment.
    #[inline]
    pub fn nbytes(&self, segment: Segment) -> u64 {
        self.segments[segment as usize].nbytes
    }

    /// Returns the key of a range, if one known key covers it.
    #[inline(always)]
    pub fn key(&self, addr: RemoteAddr, nbytes: usize) -> Option<&K> {
        let segment = &self.segments[addr.segment as usize];
        let end = addr.offset.checked_add(nbytes as u64)?;
        if end <= segment.covered {
            segment.key.as_ref()
        } else {
            self.key_of_block(addr, end)
        }
    }

    /// Returns the key of a further block of the heap, if it is known and covers the range from
    /// `addr` to `end`.
    #[cold]
    #[inline(never)]
    fn key_of_block(&self, addr: RemoteAddr, end: u64) -> Option<&K> {
        if addr.segment != Segment::Heap {
            return None;
        }

        let FoundBlock { block, data } = self.blocks.find(addr.offset);
        // The last block may end beyond the heap.
        let end_of_block = block.end.min(self.nbytes(Segment::Heap));
        if end > end_of_block {
            return None;
        }
        data
    }

    /// Returns how many bytes from this address on one key covers, or the block of the heap whose
    /// key is missing. The address lies within its segment.
    #[cold]
    pub(crate) fn covered(&self, addr: RemoteAddr) -> Covered {
        let covered = self.segments[addr.segment as usize].covered;
        match covered.checked_sub(addr.offset) {
            Some(left @ 1..) => Covered::Bytes(left as usize),
            _ => self.blocks.covered(addr.offset),
        }
    }

    /// Returns the first segment of which a key covers at least one byte, and the key.
    pub fn any_memory(&self) -> Option<(Segment, &K)> {
        for segment in Segment::ALL {
            let PeerSegment { covered, key, .. } = &self.segments[segment as usize];
            if let Some(key) = key
                && *covered > 0
            {
                return Some((segment, key));
            }
        }
        None
    }
}

/// A table with one entry for each PE of the job that was used.
///
/// An entry is made under a lock, so the function that makes it must not wait for another lock.
pub struct Peers<P, K> {
    entries: SharedPeMap<Peer<P, K>>,
    /// The directory, once the transport is connected.
    directory: OnceLock<Arc<Directory>>,
    /// The lock under which an entry is made.
    making: Mutex<()>,
}

impl<P: Send + Sync, K: Send + Sync> Peers<P, K> {
    /// Returns a table without entries for a job of `n_pes` PEs.
    pub fn new(n_pes: u32) -> Peers<P, K> {
        Peers {
            entries: SharedPeMap::new(n_pes as usize),
            directory: OnceLock::new(),
            making: Mutex::default(),
        }
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.entries.n_pes()
    }

    /// Sets the directory.
    ///
    /// # Errors
    /// If the peers are connected already.
    pub fn connect(&self, directory: Arc<Directory>) -> Result<(), Error> {
        self.directory
            .set(directory)
            .map_err(|_| Error::Invalid("the transport is connected already".to_owned()))
    }

    /// Returns the address that a PE has published.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if it has no record, or before the transport is connected; when the
    /// address is damaged.
    pub fn address(&self, pe: Pe) -> Result<PeAddress, Error> {
        self.record(pe)?.address(pe)
    }

    /// Returns the name of the host of a PE, if it is known.
    pub fn host_of(&self, pe: Pe) -> Option<String> {
        self.address(pe).ok().map(|address| address.host)
    }

    fn record(&self, pe: Pe) -> Result<PeRecord<'_>, Error> {
        let record = self.directory.get().and_then(|directory| directory.of(pe));
        record.ok_or(Error::Unreachable(pe))
    }

    /// Returns the entry of a PE, if the PE was used.
    #[inline]
    pub fn known(&self, pe: Pe) -> Option<&Peer<P, K>> {
        self.entries.get(pe)
    }

    /// Returns the entry of a PE. If there is none yet, makes it from the record of the PE.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for a PE without a record, or before the transport is connected; the
    /// errors of `make`.
    pub(crate) fn get_or_make(
        &self,
        pe: Pe,
        make: impl FnOnce(PeRecord<'_>) -> Result<Peer<P, K>, Error>,
    ) -> Result<&Peer<P, K>, Error> {
        let _making = lock(&self.making);
        if let Some(peer) = self.known(pe) {
            return Ok(peer);
        }

        // Made before the table is changed: a PE whose record is damaged gets no entry, and is
        // tried again at the next call.
        let made = make(self.record(pe)?)?;
        rushmem_system::log::debug!(peer = pe.0, "a peer is used for the first time");
        let entry = self.entries.get_or_insert_with(pe, || made);
        entry.ok_or(Error::Unreachable(pe))
    }

    /// Returns the PEs that were used, with their entries.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &Peer<P, K>)> {
        self.entries.iter()
    }
}

/// Checks that `nbytes` bytes at an address lie within a segment of PE `pe` of `segment_bytes`
/// bytes.
///
/// # Errors
/// [`Error::Invalid`] when they do not.
#[inline]
pub fn check_range(
    pe: Pe,
    addr: RemoteAddr,
    nbytes: usize,
    segment_bytes: u64,
) -> Result<(), Error> {
    match addr.offset.checked_add(nbytes as u64) {
        Some(end) if end <= segment_bytes => Ok(()),
        _ => Err(beyond(pe, addr, nbytes, segment_bytes)),
    }
}

#[cold]
#[inline(never)]
fn beyond(pe: Pe, addr: RemoteAddr, nbytes: usize, segment_bytes: u64) -> Error {
    Error::Invalid(format!(
        "{nbytes} bytes at offset {} reach beyond the {segment_bytes} bytes of segment {:?} of PE {pe}",
        addr.offset, addr.segment
    ))
}

/// Checks that the word of an atomic operation is aligned.
///
/// # Errors
/// [`Error::Invalid`] when it is not.
#[inline]
pub fn check_aligned(pe: Pe, addr: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
    if !addr.offset.is_multiple_of(width.nbytes() as u64) {
        return Err(misaligned(pe, addr, width));
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn misaligned(pe: Pe, addr: RemoteAddr, width: AmoWidth) -> Error {
    Error::Invalid(format!(
        "offset {} of an atomic operation at PE {pe} is not a multiple of {}",
        addr.offset,
        width.nbytes()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;

    type TestPeer = Peer<Vec<u8>, u8>;

    /// Makes a peer whose heap has 100 bytes, of which a key covers the first 64.
    fn made(pe: Pe, record: PeRecord<'_>) -> Result<TestPeer, Error> {
        let mut segments: [PeerSegment<u8>; Segment::COUNT] = Default::default();
        segments[Segment::Heap as usize] = PeerSegment {
            nbytes: 100,
            covered: 64,
            key: Some(7),
        };
        Peer::new(pe, record.address.to_vec(), segments)
    }

    fn directory(addresses: [&[u8]; 2]) -> Arc<Directory> {
        let records = addresses.map(|address| PeRecord {
            address,
            ..PeRecord::default()
        });
        Arc::new(Directory::new(Directory::encode(records.into_iter())))
    }

    #[test]
    fn a_pe_is_known_once_it_is_used() {
        let peers: Peers<Vec<u8>, u8> = Peers::new(3);
        let get = |pe| peers.get_or_make(pe, |record| made(pe, record)).map(|_| ());
        assert_eq!(get(Pe(1)), Err(Error::Unreachable(Pe(1))), "not connected");

        let directory = directory([b"a", b"b"]);
        peers
            .connect(Arc::clone(&directory))
            .expect("the first time");
        assert!(peers.connect(directory).is_err(), "again");
        assert!(peers.known(Pe(1)).is_none());
        assert_eq!(peers.iter().count(), 0);

        assert_eq!(get(Pe(1)), Ok(()));
        let again = peers.get_or_make(Pe(1), |_| unreachable!("it is known"));
        assert_eq!(again.map(|peer| &*peer.of_provider), Ok(&b"b"[..]));
        let used: Vec<Pe> = peers.iter().map(|(pe, _)| pe).collect();
        assert_eq!(used, [Pe(1)]);

        for pe in [Pe(2), Pe(3)] {
            assert_eq!(get(pe), Err(Error::Unreachable(pe)), "it published nothing");
        }
    }

    #[test]
    fn what_cannot_be_used_is_tried_again() {
        let peers: Peers<Vec<u8>, u8> = Peers::new(2);
        peers
            .connect(directory([b"a", b"b"]))
            .expect("the first time");
        for _ in 0..2 {
            let refused = peers.get_or_make(Pe(0), |_| Err(Error::damaged(Pe(0), "key")));
            assert!(matches!(refused, Err(Error::Invalid(_))));
        }
        assert!(peers.known(Pe(0)).is_none());
    }

    #[test]
    fn a_key_covers_what_its_owner_has_published() {
        let peer = made(Pe(1), PeRecord::default()).expect("a block may have 64 bytes");
        let heap = |offset| RemoteAddr {
            segment: Segment::Heap,
            offset,
        };
        let unregistered = RemoteAddr {
            segment: Segment::Static,
            offset: 0,
        };

        assert_eq!(peer.key(heap(56), 8), Some(&7));
        assert_eq!(peer.key(heap(60), 8), None, "the next block is not known");
        assert_eq!(peer.key(heap(u64::MAX), 8), None);
        assert_eq!(peer.key(unregistered, 8), None);

        assert!(matches!(peer.covered(heap(60)), Covered::Bytes(4)));
        let Covered::Unknown(block) = peer.covered(heap(64)) else {
            panic!("its key was not read")
        };
        assert_eq!((block.index, block.start), (1, 64));
    }

    #[test]
    fn what_is_published_is_read() {
        let published = Published {
            nbytes: 100,
            covered: 64,
            key: vec![1, 2],
        };
        let bytes = published.encode();
        assert_eq!(Published::decode(Pe(1), &bytes), Ok(Some(published)));
        assert_eq!(Published::decode(Pe(1), &[]), Ok(None));
        let cut = &bytes[..bytes.len() - 1];
        assert!(Published::decode(Pe(1), cut).is_err());

        let too_much = Published {
            nbytes: 1,
            covered: 2,
            key: Vec::new(),
        };
        assert!(Published::decode(Pe(1), &too_much.encode()).is_err());
    }

    #[test]
    fn only_what_lies_within_passes() {
        let heap = |offset| RemoteAddr {
            segment: Segment::Heap,
            offset,
        };

        assert_eq!(check_range(Pe(1), heap(31), 1, 32), Ok(()));
        for (offset, nbytes) in [(31, 2), (u64::MAX, 2), (33, 0)] {
            let error = check_range(Pe(1), heap(offset), nbytes, 32).expect_err("beyond");
            let text = error.to_string();
            assert!(text.contains("32 bytes of segment Heap of PE 1"), "{text}");
        }

        assert_eq!(check_aligned(Pe(1), heap(20), AmoWidth::Four), Ok(()));
        assert!(check_aligned(Pe(1), heap(20), AmoWidth::Eight).is_err());
    }
}
