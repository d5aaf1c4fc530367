//! Blocks at a constant distance, in memory that is not mapped here (OpenSHMEM 1.6, §9.6.1.3 and
//! §9.6.1.7).
//!
//! Blocks that are contiguous at the peer are packed into one transfer, since a message costs more
//! than copying some thousand bytes. Others are left to the endpoint.
#![allow(unsafe_code)]

use crate::base::counters::AccessKind;
use crate::base::observe::{self, ObservedAccess};
use crate::net::remote::{Access, Completion, RemoteBytes};
use crate::net::{endpoints, network};
use core::mem::MaybeUninit;
use rushmem_race_interface::ByteBlocks;
use rushmem_transport::{LocalBuf, StridedBlocks, mem};

/// Bytes of blocks that are copied here to travel together.
const PACKED: usize = 8 << 10;

impl Access {
    /// Blocks of `block` bytes to `dest`, their starts `dst` and `sst` bytes apart.
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
        block: usize,
        nblocks: usize,
    ) {
        let nbytes = span(block, block, nblocks);
        if observe::any() {
            let describe = move || {
                let observed = self.observed(AccessKind::PutStrided, dest, nbytes);
                let [remote, local] = [(dest, dst), (source.addr(), sst)]
                    .map(|(addr, stride)| ByteBlocks { addr, nbytes: block, stride, n: nblocks });
                ObservedAccess { remote, local, ..observed }
            };
            // SAFETY: the same contract.
            let again =
                move || unsafe { self.put_strided(dest, source, (dst, sst), block, nblocks) };
            if observe::access(describe, again).is_some() {
                return;
            }
        }
        if dst == block && is_packed(sst, block) {
            // SAFETY: the same contract.
            return unsafe { self.put_packed(dest, source, sst, block, nblocks) };
        }
        let local = (source, span(sst, block, nblocks));
        let target = self.target(dest, span(dst, block, nblocks), local);
        let blocks = (0..nblocks).map(|i| (i * dst, source.wrapping_add(i * sst)));
        let dest = match target {
            RemoteBytes::Network(at) => at,
            RemoteBytes::Kernel(path) => {
                for (at, source) in blocks {
                    // SAFETY: a block of the source.
                    unsafe { path.further(at).put(self.ctx, source, block) }
                }
                return;
            }
            RemoteBytes::Cpu(to) => {
                for (at, source) in blocks {
                    // SAFETY: a block of the source, and of the span, which is mapped.
                    unsafe {
                        mem::copy_bytes::<mem::VolatileLoads>(to.wrapping_add(at), source, block)
                    }
                }
                return;
            }
        };
        let pe = network::pe(self.pe);
        let blocks = StridedBlocks {
            remote: dest,
            local: LocalBuf::source(source, block),
            remote_stride: dst,
            local_stride: sst,
            n: nblocks,
        };
        let done = endpoints::on(self.call, self.ctx, |endpoint| {
            // SAFETY: the same contract.
            unsafe { endpoint.put_strided(pe, blocks) }
        });
        network::or_fail(self.call, done);
    }

    /// Blocks of `block` bytes from `source`, their starts `dst` and `sst` bytes apart.
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
        block: usize,
        nblocks: usize,
    ) {
        let nbytes = span(block, block, nblocks);
        if observe::any() {
            let describe = move || {
                let observed = self.observed(AccessKind::GetStrided, source, nbytes);
                let [remote, local] = [(source, sst), (dest.addr(), dst)]
                    .map(|(addr, stride)| ByteBlocks { addr, nbytes: block, stride, n: nblocks });
                ObservedAccess { remote, local, ..observed }
            };
            // SAFETY: the same contract.
            let again =
                move || unsafe { self.get_strided(dest, source, (dst, sst), block, nblocks) };
            if observe::access(describe, again).is_some() {
                return;
            }
        }
        if sst == block && is_packed(dst, block) {
            // SAFETY: the same contract.
            return unsafe { self.get_packed(dest, source, dst, block, nblocks) };
        }
        let local = (dest.cast_const(), span(dst, block, nblocks));
        let target = self.target(source, span(sst, block, nblocks), local);
        let blocks = (0..nblocks).map(|i| (i * sst, dest.wrapping_add(i * dst)));
        let source = match target {
            RemoteBytes::Network(at) => at,
            RemoteBytes::Kernel(path) => {
                for (at, dest) in blocks {
                    // SAFETY: a block of the destination.
                    unsafe { path.further(at).get(self.ctx, dest, block) }
                }
                return;
            }
            RemoteBytes::Cpu(from) => {
                for (at, dest) in blocks {
                    // SAFETY: a block of the destination, and of the span, which is mapped.
                    unsafe {
                        mem::copy_bytes::<mem::AtomicLoads>(dest, from.wrapping_add(at), block)
                    }
                }
                return;
            }
        };
        let pe = network::pe(self.pe);
        let blocks = StridedBlocks {
            remote: source,
            local: LocalBuf { base: dest, nbytes: block },
            remote_stride: sst,
            local_stride: dst,
            n: nblocks,
        };
        let done = endpoints::on(self.call, self.ctx, |endpoint| {
            // SAFETY: the same contract; the quiet below completes them.
            unsafe { endpoint.get_strided_nbi(pe, blocks) }?;
            endpoint.pe_quiet(pe)
        });
        network::or_fail(self.call, done);
    }

    /// Blocks that are side by side there, and `sst` bytes apart here.
    ///
    /// # Safety
    /// As [`put_strided`](Access::put_strided).
    unsafe fn put_packed(
        self,
        dest: usize,
        source: *const u8,
        sst: usize,
        block: usize,
        nblocks: usize,
    ) {
        let whole = span(block, block, nblocks);
        if sst == block {
            // SAFETY: the blocks are one piece.
            return unsafe { self.put(dest, source, whole, Completion::Now) };
        }
        // Before the first piece goes.
        self.target(dest, whole, (source, span(sst, block, nblocks)));
        let mut pack = [MaybeUninit::<u8>::uninit(); PACKED];
        let pack = pack.as_mut_ptr().cast::<u8>();
        for (first, n) in pieces(block, nblocks) {
            for i in 0..n {
                let from = source.wrapping_add((first + i) * sst);
                // SAFETY: a block of the source; the pack has room for `n` blocks.
                unsafe {
                    mem::copy_bytes::<mem::VolatileLoads>(pack.wrapping_add(i * block), from, block)
                };
            }
            // SAFETY: written above, and reusable when the put returns.
            unsafe { self.put(dest + first * block, pack, n * block, Completion::Now) };
        }
    }

    /// Blocks that are side by side there, and `dst` bytes apart here.
    ///
    /// # Safety
    /// As [`get_strided`](Access::get_strided).
    unsafe fn get_packed(
        self,
        dest: *mut u8,
        source: usize,
        dst: usize,
        block: usize,
        nblocks: usize,
    ) {
        let whole = span(block, block, nblocks);
        if dst == block {
            // SAFETY: the blocks are one piece.
            return unsafe { self.get(dest, source, whole, Completion::Now) };
        }
        // Before the first piece comes.
        self.target(source, whole, (dest, span(dst, block, nblocks)));
        let mut pack = [MaybeUninit::<u8>::uninit(); PACKED];
        let pack = pack.as_mut_ptr().cast::<u8>();
        for (first, n) in pieces(block, nblocks) {
            // SAFETY: the pack has room for `n` blocks.
            unsafe { self.get(pack, source + first * block, n * block, Completion::Now) };
            for i in 0..n {
                let to = dest.wrapping_add((first + i) * dst);
                // SAFETY: a block of the destination, and one of the `n` that the get has written.
                unsafe {
                    mem::copy_bytes::<mem::VolatileLoads>(to, pack.wrapping_add(i * block), block)
                };
            }
        }
    }
}

/// Whether blocks that are side by side at the peer, and at this distance here, travel together.
fn is_packed(stride: usize, block: usize) -> bool {
    stride == block || block <= PACKED / 4
}

/// The first block of each piece, and its number of blocks, which fit into the pack.
fn pieces(block: usize, nblocks: usize) -> impl Iterator<Item = (usize, usize)> {
    let at_once = PACKED / block;
    (0..nblocks).step_by(at_once).map(move |first| (first, at_once.min(nblocks - first)))
}

/// Bytes from the first to the end of the last block; what overflows fits no segment.
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
