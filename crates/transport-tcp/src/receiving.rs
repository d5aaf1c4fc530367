//! The state with which this PE receives the bodies of frames: segments and replies, buffers for
//! long transfers, and the writing of received bytes in whole words.
//!
//! The kernel fills memory in pieces that may begin and end within words, so it must not write to
//! memory that other threads or PEs may read meanwhile. Long transfers to such memory are received
//! into a buffer that fits into the cache of a CPU, so the second copy is cheap.
#![allow(unsafe_code)]

use crate::settings::LIMITS;
use rushmem_system::lock::lock;
use rushmem_transport::engine::{NetworkPe, ReplyTable};
use rushmem_transport::mem::{self, VolatileLoads};
use rushmem_transport::{Amos, LocalBuf, Open};
use std::io;
use std::mem::MaybeUninit;
use std::sync::Mutex;

/// The segments and acknowledgments of this PE, the replies to its requests, and buffers to receive
/// into.
pub(crate) struct ReceivingPe {
    pub(crate) local: NetworkPe,
    /// The replies to the requests of this PE's origins.
    pub(crate) replies: ReplyTable,
    pub(crate) buffers: BounceBuffers,
}

impl ReceivingPe {
    /// Returns the state of a PE that is opened with these arguments, on host `own_host`.
    pub(crate) fn new(open: &Open, own_host: String) -> io::Result<ReceivingPe> {
        // This CPU carries out the operations of peers.
        let open = Open {
            amos: Amos::Software,
            ..open.clone()
        };
        Ok(ReceivingPe {
            local: NetworkPe::new(&open, own_host, &LIMITS)?,
            replies: ReplyTable::default(),
            buffers: BounceBuffers::default(),
        })
    }

    /// Returns PE 0 of a job of two, without registered memory.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn for_tests() -> ReceivingPe {
        struct LoneHost;
        impl rushmem_transport::Host for LoneHost {}
        let open = Open {
            pe: rushmem_transport::Pe(0),
            n_pes: 2,
            secret: [0; 32],
            one_machine: true,
            cpus_per_pe: 1,
            amos: Amos::Software,
            part: None,
            host: std::sync::Arc::new(LoneHost),
        };
        ReceivingPe::new(&open, "here".to_owned()).expect("a timer")
    }
}

/// Bytes of a buffer for long transfers: few reads fill it, and a cache of a CPU has more.
const BUFFER_BYTES: usize = 128 << 10;

/// The buffers that no thread is using. A thread borrows one to receive long bodies, and a new one
/// is made if all are in use, so there are at most as many as threads have received at once.
#[derive(Default)]
pub(crate) struct BounceBuffers(Mutex<Vec<Box<[MaybeUninit<u8>]>>>);

impl BounceBuffers {
    /// Borrows a buffer until the result is dropped.
    pub(crate) fn borrow(&self) -> BounceBuffer<'_> {
        let unused = lock(&self.0).pop();
        let bytes = unused.unwrap_or_else(|| Box::new_uninit_slice(BUFFER_BYTES));
        BounceBuffer { bytes, of: self }
    }
}

/// A buffer in use.
pub(crate) struct BounceBuffer<'a> {
    pub(crate) bytes: Box<[MaybeUninit<u8>]>,
    of: &'a BounceBuffers,
}

impl Drop for BounceBuffer<'_> {
    fn drop(&mut self) {
        lock(&self.of.0).push(std::mem::take(&mut self.bytes));
    }
}

/// The longest word, and its alignment.
const WORD: usize = 8;

/// Writes the body of a transfer to memory in whole words, although it arrives in parts of any
/// length.
///
/// Other threads and PEs may read symmetric memory while it is written, so a word of 1, 2, 4 or 8
/// aligned bytes must be written at once. Bytes that do not reach the end of their aligned 8 bytes
/// are held until the rest has arrived.
#[derive(Default)]
pub(crate) struct WholeWords {
    /// Held bytes, each at its offset in the aligned 8 bytes of the destination.
    held: [u8; WORD],
    n_held: usize,
}

impl WholeWords {
    /// Writes the next bytes of a body to the start of `rest`, the part of its destination after
    /// the bytes of earlier calls. If the bytes fill `rest`, the body is complete, and no bytes are
    /// held afterwards.
    ///
    /// # Safety
    /// The destination of the whole body is valid for writes.
    pub(crate) unsafe fn write(&mut self, mut rest: LocalBuf, mut bytes: &[u8]) {
        assert!(
            bytes.len() <= rest.nbytes,
            "a body is no longer than its destination"
        );
        let is_last = bytes.len() == rest.nbytes;

        if self.n_held > 0 {
            let offset = rest.base.addr() % WORD;
            let (word, after) = bytes.split_at(bytes.len().min(WORD - offset));
            self.hold(offset, word);
            rest = rest.skip(word.len());
            bytes = after;

            // The end of the body is written even if it is not the end of a word.
            let is_whole = offset + word.len() == WORD;
            if !is_whole && !is_last {
                return;
            }

            let n_held = std::mem::take(&mut self.n_held);
            let from = &self.held[offset + word.len() - n_held..][..n_held];
            let to = rest.base.wrapping_sub(n_held);
            // SAFETY: `from` is a slice, so valid for reads. `to` points to the `n_held` bytes of
            // the destination before `rest`, which are valid for writes by contract.
            unsafe { mem::copy_bytes::<VolatileLoads>(to, from.as_ptr(), n_held) };
        }

        // The bytes of a last word whose rest will follow.
        let end = rest.base.addr().wrapping_add(bytes.len());
        let n_cut = if is_last {
            0
        } else {
            bytes.len().min(end % WORD)
        };
        let (whole, cut) = bytes.split_at(bytes.len() - n_cut);

        // SAFETY: `whole` is a slice, so valid for reads. It fits into `rest`, which is valid for
        // writes by contract.
        unsafe { mem::copy_bytes::<VolatileLoads>(rest.base, whole.as_ptr(), whole.len()) };
        self.hold((end - n_cut) % WORD, cut);
    }

    /// Holds bytes at this offset in an aligned word.
    fn hold(&mut self, offset: usize, bytes: &[u8]) {
        self.held[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.n_held += bytes.len();
    }
}

/// Collects a body that is used as a whole: a message with a batch, or a reply with its results.
/// Uses no memory between two bodies.
#[derive(Default)]
pub(crate) struct WholeBody(Vec<u8>);

impl WholeBody {
    /// Adds the next bytes of a body of `nbytes` bytes. Passes the body to `whole` once it is
    /// complete.
    pub(crate) fn take<T>(
        &mut self,
        nbytes: usize,
        bytes: &[u8],
        whole: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        if bytes.len() == nbytes {
            return Some(whole(bytes));
        }

        self.0.extend_from_slice(bytes);
        if self.0.len() != nbytes {
            return None;
        }
        Some(whole(&std::mem::take(&mut self.0)))
    }
}

#[cfg(test)]
mod tests;
