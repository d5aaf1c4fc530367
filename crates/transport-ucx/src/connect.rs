//! A peer as the origins that use it see it. What it published is decoded when it is needed.

use crate::proto::{Address, MemoryKey};
use rushmem_transport::kit::peers::check_range;
use rushmem_transport::{Error, Pe, PeRecord, RemoteAddr, Segment};

/// The places of the segments of a PE in its process.
pub(crate) struct Peer([Option<PeerSegment>; Segment::COUNT]);

/// A segment.
#[derive(Clone, Copy)]
struct PeerSegment {
    base: u64,
    nbytes: u64,
    /// Bytes of the beginning for which the published key is: of a heap in blocks, the first.
    covered: u64,
}

fn invalid(pe: Pe) -> impl Fn(rushmem_wire::Error) -> Error {
    move |error| Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
}

fn no_segment(pe: Pe, segment: Segment) -> Error {
    Error::Invalid(format!("PE {pe} has no segment {segment:?} that others may use"))
}

/// Returns how to reach `pe`, from its record.
///
/// # Errors
/// When no PE of this build would publish that.
pub(crate) fn address(pe: Pe, record: PeRecord<'_>) -> Result<Address, Error> {
    Address::decode(record.address).map_err(invalid(pe))
}

/// Returns the key to a segment of `pe`, from its record.
///
/// # Errors
/// When there is none, or no PE of this build would publish that.
pub(crate) fn key(pe: Pe, record: PeRecord<'_>, segment: Segment) -> Result<MemoryKey, Error> {
    match record.keys[segment as usize] {
        [] => Err(no_segment(pe, segment)),
        key => MemoryKey::decode(key).map_err(invalid(pe)),
    }
}

impl Peer {
    /// Returns a peer from its record.
    ///
    /// # Errors
    /// When no PE of this build would publish that.
    pub(crate) fn new(pe: Pe, record: PeRecord<'_>) -> Result<Peer, Error> {
        let mut places = [None; Segment::COUNT];
        for (place, key) in places.iter_mut().zip(record.keys).filter(|(_, key)| !key.is_empty()) {
            let MemoryKey { base, nbytes, covered, .. } =
                MemoryKey::decode(key).map_err(invalid(pe))?;
            *place = Some(PeerSegment { base, nbytes, covered });
        }
        Ok(Peer(places))
    }

    /// Returns the address of a range in the process of `pe`, which this is.
    #[inline]
    pub(crate) fn address(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<u64, Error> {
        let place = self.0[at.segment as usize].ok_or_else(|| no_segment(pe, at.segment))?;
        check_range(pe, at, nbytes, place.nbytes)?;
        Ok(place.base + at.offset)
    }

    /// Returns true if the published key is for a range, which lies in the segment.
    #[inline]
    pub(crate) fn is_covered(&self, at: RemoteAddr, nbytes: usize) -> bool {
        self.0[at.segment as usize].is_some_and(|of| at.offset + nbytes as u64 <= of.covered)
    }

    /// Returns the number of bytes of a segment.
    pub(crate) fn nbytes(&self, segment: Segment) -> u64 {
        self.0[segment as usize].map_or(0, |place| place.nbytes)
    }
}
