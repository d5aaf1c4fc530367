//! Blocks at a constant distance, in memory that is not mapped here (OpenSHMEM 1.6, §9.6.1.3 and
//! §9.6.1.7).
//!
//! Blocks that are contiguous at the peer are packed into one transfer, since a message costs more
//! than copying some thousand bytes. Others are left to the endpoint.
#![allow(unsafe_code)]

use crate::net::remote::{Access, Completion, RemoteBytes};
use crate::net::{endpoints, network};
use crate::observers::{self, AccessKind, ByteBlocks, Effect, Event};
use core::mem::MaybeUninit;
use rushmem_transport::{LocalBuf, StridedBlocks, mem};

/// Bytes of blocks that are copied here to travel together.
const PACKED: usize = 8 << 10;

/// Blocks of one length, `n` of them: where the first one is at the PE and here, and the bytes from
/// one block to the next.
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
    /// Puts blocks of `nbytes` bytes to `dest`, their starts `dst` and `sst` bytes apart.
    ///
    /// # Safety
    /// `source` is valid for reads of every block.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn put_strided(
        self,
        dest: usize,
        source: *const u8,
        (dst, sst): (usize, usize),
        nbytes: usize,
        n: usize,
    ) {
        let (remote, local) = (dest, source.cast_mut());
        let (remote_stride, local_stride) = (dst, sst);
        let blocks = Blocks { remote, local, remote_stride, local_stride, nbytes, n };
        // SAFETY: the same contract.
        unsafe { self.transfer_strided::<true>(blocks) }
    }

    /// Gets blocks of `nbytes` bytes from `source`, their starts `dst` and `sst` bytes apart.
    ///
    /// # Safety
    /// `dest` is valid for writes of every block.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn get_strided(
        self,
        dest: *mut u8,
        source: usize,
        (dst, sst): (usize, usize),
        nbytes: usize,
        n: usize,
    ) {
        let (remote, local) = (source, dest);
        let (remote_stride, local_stride) = (sst, dst);
        let blocks = Blocks { remote, local, remote_stride, local_stride, nbytes, n };
        // SAFETY: the same contract.
        unsafe { self.transfer_strided::<false>(blocks) }
    }

    /// # Safety
    /// Every block here is valid for reads of a put, and for writes of a get.
    unsafe fn transfer_strided<const IS_PUT: bool>(self, blocks: Blocks) {
        let Blocks { remote, local, remote_stride, local_stride, nbytes, n } = blocks;
        let describe = move || {
            let (kind, effect) = match IS_PUT {
                true => (AccessKind::PutStrided, Effect::Writes),
                false => (AccessKind::GetStrided, Effect::Reads),
            };
            let [remote, local] = [(remote, remote_stride), (local.addr(), local_stride)]
                .map(|(addr, stride)| ByteBlocks { addr, nbytes, stride, n });
            Event { remote, local, ..self.event(kind, effect, 0, 0) }
        };
        observers::access(describe, false, move |_| {
            if remote_stride == nbytes && is_packed(local_stride, nbytes) {
                // SAFETY: the same contract.
                unsafe { self.transfer_packed::<IS_PUT>(blocks) }
            } else {
                // SAFETY: the same contract.
                unsafe { self.transfer_spread::<IS_PUT>(blocks) }
            }
        });
    }

    /// Transfers blocks one by one, or as one strided operation of the network: those that have
    /// gaps at the PE, or are too long to be packed.
    ///
    /// # Safety
    /// As [`transfer_strided`](Access::transfer_strided).
    unsafe fn transfer_spread<const IS_PUT: bool>(self, blocks: Blocks) {
        let Blocks { remote, local, remote_stride, local_stride, nbytes, n } = blocks;
        let span = span(remote_stride, nbytes, n);
        match self.resolve(remote, span) {
            RemoteBytes::Network(remote) => {
                let local = LocalBuf { base: local, nbytes };
                let blocks = StridedBlocks { remote, local, remote_stride, local_stride, n };
                // SAFETY: the same contract.
                unsafe { self.send_strided::<IS_PUT>(blocks) }
            }
            RemoteBytes::Cpu(mapped) => {
                for i in 0..n {
                    let (at, local) = (i * remote_stride, local.wrapping_add(i * local_stride));
                    let mapped = mapped.wrapping_add(at);
                    if IS_PUT {
                        // SAFETY: a block, valid by contract, and one of the span, which is mapped.
                        unsafe { mem::copy_bytes::<mem::VolatileLoads>(mapped, local, nbytes) }
                    } else {
                        // SAFETY: the same.
                        unsafe { mem::copy_bytes::<mem::AtomicLoads>(local, mapped, nbytes) }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`transfer_strided`](Access::transfer_strided).
    unsafe fn send_strided<const IS_PUT: bool>(self, blocks: StridedBlocks) {
        let pe = network::pe(self.pe);
        let done = endpoints::on(self.call, self.ctx, |endpoint| {
            if IS_PUT {
                // SAFETY: the same contract.
                return unsafe { endpoint.put_strided(pe, blocks) };
            }
            // SAFETY: the same contract; the quiet below completes them.
            unsafe { endpoint.get_strided_nbi(pe, blocks) }?;
            endpoint.pe_quiet(pe)
        });
        network::or_fail(self.call, done);
    }

    /// Transfers blocks that are side by side at the PE.
    ///
    /// # Safety
    /// As [`transfer_strided`](Access::transfer_strided).
    unsafe fn transfer_packed<const IS_PUT: bool>(self, blocks: Blocks) {
        let Blocks { remote, local, local_stride, nbytes, n, .. } = blocks;
        let transfer = |remote, local: *mut u8, nbytes| {
            let remote = self.resolve(remote, nbytes);
            if IS_PUT {
                // SAFETY: pieces of what is valid by contract, or of the pack below.
                unsafe { self.put_bytes(remote, local, nbytes, Completion::Now) }
            } else {
                // SAFETY: the same.
                unsafe { self.get_bytes(local, remote, nbytes, Completion::Now) }
            }
        };
        let whole = span(nbytes, nbytes, n);
        if local_stride == nbytes {
            return transfer(remote, local, whole);
        }
        // Checks the whole range, so that an error in it ends the job before any piece is sent.
        self.resolve(remote, whole);
        let mut pack = [MaybeUninit::<u8>::uninit(); PACKED];
        let pack = pack.as_mut_ptr().cast::<u8>();
        // The pack has room for the blocks of a piece.
        let each = |first, n| {
            (0..n).map(move |i| {
                (pack.wrapping_add(i * nbytes), local.wrapping_add((first + i) * local_stride))
            })
        };
        for (first, n) in pieces(nbytes, n) {
            if IS_PUT {
                for (packed, local) in each(first, n) {
                    // SAFETY: a block of the source, and one of the pack.
                    unsafe { mem::copy_bytes::<mem::VolatileLoads>(packed, local, nbytes) }
                }
            }
            transfer(remote + first * nbytes, pack, n * nbytes);
            if !IS_PUT {
                for (packed, local) in each(first, n) {
                    // SAFETY: a block of the destination, and one that the get has written.
                    unsafe { mem::copy_bytes::<mem::VolatileLoads>(local, packed, nbytes) }
                }
            }
        }
    }
}

/// Returns true if blocks that are side by side at the peer, and at this distance here, travel
/// together.
fn is_packed(stride: usize, block: usize) -> bool {
    stride == block || block <= PACKED / 4
}

/// Returns the first block of each piece, and its number of blocks, which fit into the pack.
fn pieces(block: usize, nblocks: usize) -> impl Iterator<Item = (usize, usize)> {
    let at_once = PACKED / block;
    (0..nblocks).step_by(at_once).map(move |first| (first, at_once.min(nblocks - first)))
}

/// Returns the bytes from the first to the end of the last block; what overflows fits no segment.
fn span(stride: usize, block: usize, nblocks: usize) -> usize {
    stride.saturating_mul(nblocks - 1).saturating_add(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_as_long_as_fit() {
        let blocks = PACKED / 24;
        let of = |nblocks| pieces(24, nblocks).collect::<Vec<_>>();
        assert_eq!(of(1), [(0, 1)]);
        assert_eq!(of(blocks), [(0, blocks)]);
        assert_eq!(of(2 * blocks + 1), [(0, blocks), (blocks, blocks), (2 * blocks, 1)]);
        assert!(is_packed(PACKED, PACKED) && !is_packed(PACKED + 8, PACKED) && is_packed(99, 24));
    }
}
