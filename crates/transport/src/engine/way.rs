//! The two ways of the bytes of a transfer: to the PE by a put, from it by a get. What differs
//! between them is here, so that transfers, strided blocks and batches are written once.

use super::replies::ReplyDestinations;
use super::wire::{PostOutcome, Remote, Wire, WireCaps, WriteEnd};
use crate::{Buffer, Dest, DestBuf, Error, Source, SourceBuf, mem};

/// The way of the bytes of a transfer.
pub(super) trait Way: Sized {
    /// The transfer is a put.
    const IS_PUT: bool;

    /// Returns the maximum number of bytes of a transfer that the wire starts as a whole.
    fn longest(caps: &WireCaps) -> usize;

    /// Starts the transfer on a wire, which owns the memory from then on unless it has no room.
    fn post<W: Wire>(
        wire: &mut W,
        network: &W::Network,
        remote: Remote<'_, W::Network>,
        local: &mut Buffer<Self>,
        end: WriteEnd,
    ) -> Result<PostOutcome<W::Token>, Error>;

    /// Copies the data of a put behind the head of its entry, or expects the results of a get.
    fn add_local(local: Buffer<Self>, entries: &mut Vec<u8>, results: &mut ReplyDestinations);
}

impl Way for Source {
    const IS_PUT: bool = true;

    #[inline]
    fn longest(caps: &WireCaps) -> usize {
        caps.longest_write
    }

    #[inline(always)]
    fn post<W: Wire>(
        wire: &mut W,
        network: &W::Network,
        to: Remote<'_, W::Network>,
        source: &mut SourceBuf,
        end: WriteEnd,
    ) -> Result<PostOutcome<W::Token>, Error> {
        wire.write(network, to, source, end)
    }

    #[inline]
    fn add_local(source: SourceBuf, entries: &mut Vec<u8>, _: &mut ReplyDestinations) {
        source.append_to::<mem::VolatileLoads>(entries);
    }
}

impl Way for Dest {
    const IS_PUT: bool = false;

    #[inline]
    fn longest(caps: &WireCaps) -> usize {
        caps.longest_read
    }

    #[inline(always)]
    fn post<W: Wire>(
        wire: &mut W,
        network: &W::Network,
        from: Remote<'_, W::Network>,
        dest: &mut DestBuf,
        end: WriteEnd,
    ) -> Result<PostOutcome<W::Token>, Error> {
        wire.read(network, from, dest, end.awaited)
    }

    #[inline]
    fn add_local(dest: DestBuf, _: &mut Vec<u8>, results: &mut ReplyDestinations) {
        results.expect(dest);
    }
}
