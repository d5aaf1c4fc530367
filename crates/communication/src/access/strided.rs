//! Strided puts and gets (OpenSHMEM 1.6, §9.6.1.3 and §9.6.1.7) off the fast path: of memory that
//! is not mapped here, or while they are observed.
//!
//! Blocks that are contiguous at the peer are transferred together. If they have gaps here and are
//! small, they are packed first, since a message costs more than copying some thousand bytes. All
//! other blocks of unmapped memory are one strided operation of the endpoint.
#![allow(unsafe_code)]

use crate::access::{Access, Completion, RemoteBytes};
use crate::net::network;
use crate::observers::{AccessKind, ByteBlocks, Effect, Event, ObservedAccess};
use core::mem::MaybeUninit;
use rushmem_transport::{Buffer, DestBuf, RemoteAddr, SourceBuf, StridedBlocks, mem};

/// The size of the buffer in which blocks are packed, in bytes. It is on the stack, of which
/// threads of the program may have little.
const PACKED: usize = 8 << 10;

/// `n` blocks of `nbytes` bytes each: the address of the first block at the PE and here, and the
/// distance in bytes from the start of one block to the start of the next.
#[derive(Clone, Copy)]
struct Blocks {
    remote: usize,
    local: *mut u8,
    remote_stride: usize,
    local_stride: usize,
    nbytes: usize,
    n: usize,
}

impl Access {
    /// Puts `n` blocks of `nbytes` bytes to `dest`. The starts of successive blocks are `dst` bytes
    /// apart there and `sst` bytes apart in `source`.
    ///
    /// # Safety
    /// `source` is valid for reads of every block.
    #[cold]
    #[inline(never)]
    pub unsafe fn put_strided(
        self,
        dest: usize,
        source: *const u8,
        dst: usize,
        sst: usize,
        nbytes: usize,
        n: usize,
    ) {
        let blocks = Blocks {
            remote: self.in_heap(dest, span(dst, nbytes, n)),
            local: source.cast_mut(),
            remote_stride: dst,
            local_stride: sst,
            nbytes,
            n,
        };
        // SAFETY: the caller promises that `source` is valid for reads of every block.
        unsafe { self.transfer_strided::<true>(blocks) }
    }

    /// Gets `n` blocks of `nbytes` bytes from `source`. The starts of successive blocks are `sst`
    /// bytes apart there and `dst` bytes apart in `dest`.
    ///
    /// # Safety
    /// `dest` is valid for writes of every block.
    #[cold]
    #[inline(never)]
    pub unsafe fn get_strided(
        self,
        dest: *mut u8,
        source: usize,
        dst: usize,
        sst: usize,
        nbytes: usize,
        n: usize,
    ) {
        let blocks = Blocks {
            remote: self.in_heap(source, span(sst, nbytes, n)),
            local: dest,
            remote_stride: sst,
            local_stride: dst,
            nbytes,
            n,
        };
        // SAFETY: the caller promises that `dest` is valid for writes of every block.
        unsafe { self.transfer_strided::<false>(blocks) }
    }

    /// Puts or gets blocks, and shows the access to observers.
    ///
    /// # Safety
    /// Every local block is valid, for reads if this is a put, for writes if this is a get.
    unsafe fn transfer_strided<const IS_PUT: bool>(self, blocks: Blocks) {
        let mut observed = ObservedAccess::none();
        observed.begin(
            move || {
                let event = if IS_PUT {
                    self.event(AccessKind::PutStrided, Effect::Writes, 0, 0)
                } else {
                    self.event(AccessKind::GetStrided, Effect::Reads, 0, 0)
                };
                Event {
                    remote: blocks.bytes(blocks.remote, blocks.remote_stride),
                    local: blocks.bytes(blocks.local.addr(), blocks.local_stride),
                    ..event
                }
            },
            // Not known yet: the memory is resolved below.
            false,
        );

        let are_contiguous_there = blocks.remote_stride == blocks.nbytes;
        if are_contiguous_there && is_packed(blocks.local_stride, blocks.nbytes) {
            // SAFETY: by contract, every local block is valid for what the transfer does with it.
            unsafe { self.transfer_packed::<IS_PUT>(blocks) }
        } else {
            // SAFETY: by contract, every local block is valid for what the transfer does with it.
            unsafe { self.transfer_spread::<IS_PUT>(blocks) }
        }
    }

    /// Transfers blocks that have gaps at the PE, or are too long to be packed: by one strided
    /// operation of the network, or one by one if they are mapped here.
    ///
    /// # Safety
    /// As [`transfer_strided`](Access::transfer_strided).
    unsafe fn transfer_spread<const IS_PUT: bool>(self, blocks: Blocks) {
        let Blocks {
            remote,
            local,
            remote_stride,
            local_stride,
            nbytes,
            n,
        } = blocks;

        match self.resolve(remote, span(remote_stride, nbytes, n)) {
            RemoteBytes::Network(remote) => {
                let pe = network::pe(self.pe);
                let local_span = span(local_stride, nbytes, n);
                let mut endpoint = self.endpoint();

                let done = if IS_PUT {
                    // SAFETY: by contract, every block of the span is valid for reads, and the put
                    // accesses no other bytes; it has read them when it returns.
                    let local = unsafe { SourceBuf::new(local, local_span) };
                    endpoint.put_strided(pe, over_network(remote, local, blocks))
                } else {
                    // SAFETY: by contract, every block of the span is valid for writes, and the
                    // gets access no other bytes; the quiet completes them, or the job ends.
                    let local = unsafe { DestBuf::new(local, local_span) };
                    endpoint
                        .get_strided_nbi(pe, over_network(remote, local, blocks))
                        .and_then(|()| endpoint.pe_quiet(pe))
                };

                // A failure ends the job, which must not wait for the lock of this endpoint.
                drop(endpoint);
                network::or_fail(self.call, done);
            }
            RemoteBytes::Cpu(mapped) => {
                for i in 0..n {
                    let mapped = mapped.wrapping_add(i * remote_stride);
                    let local = local.wrapping_add(i * local_stride);
                    if IS_PUT {
                        // SAFETY: the local block is valid for reads by contract, and the block of
                        // the span is mapped, as `resolve` found.
                        unsafe { mem::copy_bytes::<mem::VolatileLoads>(mapped, local, nbytes) }
                    } else {
                        // SAFETY: the local block is valid for writes by contract, and the block of
                        // the span is mapped, as `resolve` found.
                        unsafe { mem::copy_bytes::<mem::AtomicLoads>(local, mapped, nbytes) }
                    }
                }
            }
        }
    }

    /// Transfers blocks that are contiguous at the PE.
    ///
    /// # Safety
    /// As [`transfer_strided`](Access::transfer_strided).
    unsafe fn transfer_packed<const IS_PUT: bool>(self, blocks: Blocks) {
        let Blocks {
            remote,
            local,
            local_stride,
            nbytes,
            n,
            ..
        } = blocks;

        let whole = span(nbytes, nbytes, n);
        if local_stride == nbytes {
            // SAFETY: the local blocks are contiguous, so the range has no bytes besides theirs,
            // which are valid by contract.
            return unsafe { self.transfer_range::<IS_PUT>(remote, local, whole) };
        }

        // Checks the whole range, so that an error ends the job before any piece is transferred.
        self.resolve(remote, whole);

        let mut pack = [MaybeUninit::<u8>::uninit(); PACKED];
        let pack = pack.as_mut_ptr().cast::<u8>();
        for Piece { first, n } in pieces(nbytes, n) {
            let local = local.wrapping_add(first * local_stride);
            if IS_PUT {
                for i in 0..n {
                    let packed = pack.wrapping_add(i * nbytes);
                    let block = local.wrapping_add(i * local_stride);
                    // SAFETY: the block is one of the source, valid for reads by contract, and the
                    // pack has room for `n` blocks.
                    unsafe { mem::copy_bytes::<mem::VolatileLoads>(packed, block, nbytes) }
                }
            }

            // SAFETY: the pack has room for `n` blocks, all of which are written if this is a put.
            unsafe { self.transfer_range::<IS_PUT>(remote + first * nbytes, pack, n * nbytes) };

            if !IS_PUT {
                for i in 0..n {
                    let packed = pack.wrapping_add(i * nbytes);
                    let block = local.wrapping_add(i * local_stride);
                    // SAFETY: the block is one of the destination, valid for writes by contract,
                    // and the get has written `n` blocks of the pack.
                    unsafe { mem::copy_bytes::<mem::VolatileLoads>(block, packed, nbytes) }
                }
            }
        }
    }

    /// Puts or gets one range, and waits until the local memory is read or written.
    ///
    /// # Safety
    /// The local range is valid, for reads if this is a put, for writes if this is a get.
    unsafe fn transfer_range<const IS_PUT: bool>(
        self,
        remote: usize,
        local: *mut u8,
        nbytes: usize,
    ) {
        let remote = self.resolve(remote, nbytes);
        if IS_PUT {
            // SAFETY: by contract, the local range is valid for reads; the put has read it when it
            // returns.
            unsafe { self.issue_put(remote, local, nbytes, Completion::Now) }
        } else {
            // SAFETY: by contract, the local range is valid for writes; the get has written it when
            // it returns.
            unsafe { self.issue_get(local, remote, nbytes, Completion::Now) }
        }
    }
}

impl Blocks {
    /// Returns the bytes of the blocks at the PE or here, for observers.
    fn bytes(&self, addr: usize, stride: usize) -> ByteBlocks {
        ByteBlocks {
            addr,
            nbytes: self.nbytes,
            stride,
            n: self.n,
        }
    }
}

/// Returns blocks as the network transfers them, between `remote` and `local`.
fn over_network<Way>(remote: RemoteAddr, local: Buffer<Way>, blocks: Blocks) -> StridedBlocks<Way> {
    StridedBlocks {
        remote,
        local,
        nbytes: blocks.nbytes,
        remote_stride: blocks.remote_stride,
        local_stride: blocks.local_stride,
        n: blocks.n,
    }
}

/// Returns true if blocks of `block` bytes that are contiguous at the peer are transferred
/// together. Their starts are `stride` bytes apart here. Blocks with gaps are packed if at least
/// four fit into the pack. The number was chosen without a measurement.
fn is_packed(stride: usize, block: usize) -> bool {
    stride == block || block <= PACKED / 4
}

/// Blocks that are transferred together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The index of the first block.
    first: usize,
    /// The number of blocks.
    n: usize,
}

/// Divides blocks into pieces that fit into the pack.
fn pieces(block: usize, nblocks: usize) -> impl Iterator<Item = Piece> {
    let at_once = PACKED / block;
    (0..nblocks).step_by(at_once).map(move |first| Piece {
        first,
        n: at_once.min(nblocks - first),
    })
}

/// Returns the number of bytes from the first block to the end of the last one, or `usize::MAX`,
/// which fits no segment, if it overflows.
fn span(stride: usize, block: usize, nblocks: usize) -> usize {
    stride.saturating_mul(nblocks - 1).saturating_add(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_as_long_as_fit() {
        let fit = PACKED / 24;
        let of = |nblocks| pieces(24, nblocks).collect::<Vec<_>>();
        let piece = |first, n| Piece { first, n };
        assert_eq!(of(1), [piece(0, 1)]);
        assert_eq!(of(fit), [piece(0, fit)]);
        assert_eq!(
            of(2 * fit + 1),
            [piece(0, fit), piece(fit, fit), piece(2 * fit, 1)]
        );
    }

    #[test]
    fn small_blocks_with_gaps_are_packed_and_long_ones_are_not() {
        assert!(is_packed(99, 24));
        assert!(is_packed(PACKED, PACKED), "no gaps");
        assert!(!is_packed(PACKED + 8, PACKED));
    }
}
