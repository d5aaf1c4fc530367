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
/// whole range. Over a wire that needs no keys, each segment has a key that covers all of it.
#[inline(always)]
pub fn find<N: WireNetwork>(
    network: &N,
    pe: Pe,
    addr: RemoteAddr,
    nbytes: usize,
) -> Option<Remote<'_, N>> {
    let peer = network.peers().known(pe)?;
    let key = peer.key(addr, nbytes)?;
    Some(Remote {
        pe,
        addr,
        peer: &peer.of_provider,
        key,
    })
}

/// Returns a range of a PE, whose key was found before.
pub(super) fn require<N: WireNetwork>(
    network: &N,
    pe: Pe,
    addr: RemoteAddr,
    nbytes: usize,
) -> Result<Remote<'_, N>, Error> {
    find(network, pe, addr, nbytes).ok_or_else(|| Error::damaged(pe, "key"))
}

/// Returns the entry of a PE. If there is none yet, makes it from what the PE has published.
///
/// # Errors
/// [`Error::Unreachable`] for a PE without a record, or before the transport is connected; the
/// errors of the provider.
#[inline]
pub fn peer<N: WireNetwork>(network: &N, pe: Pe) -> Result<&Peer<N::Peer, N::Key>, Error> {
    match network.peers().known(pe) {
        Some(peer) => Ok(peer),
        None => make_peer(network, pe),
    }
}

#[cold]
#[inline(never)]
fn make_peer<N: WireNetwork>(network: &N, pe: Pe) -> Result<&Peer<N::Peer, N::Key>, Error> {
    network.peers().get_or_make(pe, |record| {
        let (of_provider, published) = read_record(network, pe, record)?;

        let mut segments: [PeerSegment<N::Key>; Segment::COUNT] = Default::default();
        for (segment, published) in Segment::ALL.into_iter().zip(published) {
            let Some(published) = published else {
                continue;
            };

            let block = HeapBlock::first(published.covered);
            segments[segment as usize] = PeerSegment {
                nbytes: published.nbytes,
                covered: published.covered,
                key: Some(network.key(pe, segment, block, &published.key)?),
            };
        }

        Peer::new(pe, of_provider, segments)
    })
}

/// Checks what a PE has published, as far as this is possible without making an entry for the PE.
pub(crate) fn check_record<N: WireNetwork>(
    network: &N,
    pe: Pe,
    record: Option<PeRecord<'_>>,
) -> Result<(), Error> {
    let record = record.ok_or(Error::Unreachable(pe))?;
    read_record(network, pe, record)?;
    Ok(())
}

/// What a PE has published of its segments, in the order of [`Segment::ALL`]; `None` for one that
/// is empty or not registered.
type PublishedSegments = [Option<Published>; Segment::COUNT];

/// Decodes what a PE has published. Returns the provider's data on the PE, and its segments.
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
    addr: RemoteAddr,
    nbytes: usize,
) -> Result<(), Error> {
    check_range(pe, addr, nbytes, peer(network, pe)?.nbytes(addr.segment))
}
