//! The peers as the engine addresses them: what a PE has published, decoded at its first use, and
//! the keys of its memory.
//!
//! Whether a known key covers a range is checked here, once for all networks, before a wire is
//! called. The key of a block of a peer's heap is read at the first access to the block.

use super::wire::{Remote, WireNetwork};
use crate::peers::{Peer, PeerSegment, Published, check_range};
use crate::segments::heap_blocks::HeapBlock;
use crate::{Error, Pe, PeRecord, RemoteAddr, Segment};

/// Returns a range of a PE with its key; `None` if the PE was not used, or no known key covers the
/// whole range. Over a wire without keys, one covers each segment.
#[inline(always)]
pub fn find<N: WireNetwork>(
    network: &N,
    pe: Pe,
    at: RemoteAddr,
    nbytes: usize,
) -> Option<Remote<'_, N>> {
    let peer = network.peers().known(pe)?;
    let key = peer.key(at, nbytes)?;
    Some(Remote {
        pe,
        at,
        peer: &peer.of_provider,
        key,
    })
}

/// Returns a range of a PE, whose key was found before.
pub(super) fn require<N: WireNetwork>(
    network: &N,
    pe: Pe,
    at: RemoteAddr,
    nbytes: usize,
) -> Result<Remote<'_, N>, Error> {
    find(network, pe, at, nbytes).ok_or_else(|| Error::damaged(pe, "key"))
}

/// Returns a peer, which is made of what it has published at its first use.
///
/// # Errors
/// [`Error::Unreachable`] for a PE without a record, or before the transport is connected; the
/// errors of the provider.
#[inline]
pub fn peer<N: WireNetwork>(network: &N, pe: Pe) -> Result<&Peer<N::Peer, N::Key>, Error> {
    match network.peers().known(pe) {
        Some(peer) => Ok(peer),
        None => first_used(network, pe),
    }
}

#[cold]
#[inline(never)]
fn first_used<N: WireNetwork>(network: &N, pe: Pe) -> Result<&Peer<N::Peer, N::Key>, Error> {
    network.peers().get_or_make(pe, |record| {
        let (of_provider, published) = read_record(network, pe, record)?;

        let mut segments: [PeerSegment<N::Key>; Segment::COUNT] = Default::default();
        for ((segment, published), number) in segments.iter_mut().zip(published).zip(Segment::ALL) {
            let Some(Published {
                nbytes,
                covered,
                key,
            }) = published
            else {
                continue;
            };
            *segment = PeerSegment {
                nbytes,
                covered,
                key: Some(network.key(pe, number, HeapBlock::first(covered), &key)?),
            };
        }

        Peer::new(pe, of_provider, segments)
    })
}

/// Checks what a PE has published, as far as this is possible without keeping anything of the PE.
pub(crate) fn check_record<N: WireNetwork>(
    network: &N,
    pe: Pe,
    record: Option<PeRecord<'_>>,
) -> Result<(), Error> {
    let record = record.ok_or(Error::Unreachable(pe))?;
    read_record(network, pe, record).map(|_| ())
}

/// What a PE has published of its segments, by their numbers; `None` for one that is empty or not
/// registered.
type PublishedSegments = [Option<Published>; Segment::COUNT];

/// Reads what a PE has published.
fn read_record<N: WireNetwork>(
    network: &N,
    pe: Pe,
    record: PeRecord<'_>,
) -> Result<(N::Peer, PublishedSegments), Error> {
    let address = record.address(pe)?;

    let mut published: PublishedSegments = Default::default();
    for (published, key) in published.iter_mut().zip(record.keys) {
        *published = Published::decode(pe, key)?;
    }

    Ok((network.peer(pe, &address.of_provider)?, published))
}

/// Checks that a range lies within a PE's segment.
///
/// # Errors
/// When it does not, or the PE cannot be reached.
#[inline]
pub fn check_in_segment<N: WireNetwork>(
    network: &N,
    pe: Pe,
    at: RemoteAddr,
    nbytes: usize,
) -> Result<(), Error> {
    check_range(pe, at, nbytes, peer(network, pe)?.nbytes(at.segment))
}
