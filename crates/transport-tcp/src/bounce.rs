//! Buffers into which long transfers are received before they are copied to symmetric memory.
//!
//! The kernel fills memory in pieces that may begin and end within words, so it never receives into
//! memory that others read. A buffer fits into the cache of a CPU, so the second copy is cheap. A
//! thread borrows a buffer while it receives, so there are as many buffers as threads that receive
//! at once.

use rushmem_transport::thread::lock;
use std::mem::MaybeUninit;
use std::sync::Mutex;

/// Bytes of a buffer.
const BYTES: usize = 128 << 10;

type Bytes = Box<[MaybeUninit<u8>]>;

/// The buffers that no thread is using.
#[derive(Default)]
pub(crate) struct BounceBuffers(Mutex<Vec<Bytes>>);

impl BounceBuffers {
    /// Borrows a buffer until the result is dropped.
    pub(crate) fn borrow(&self) -> BounceBuffer<'_> {
        let unused = lock(&self.0).pop();
        let bytes = unused.unwrap_or_else(|| Box::new_uninit_slice(BYTES));
        BounceBuffer { bytes, of: self }
    }
}

/// A buffer in use.
pub(crate) struct BounceBuffer<'a> {
    pub(crate) bytes: Bytes,
    of: &'a BounceBuffers,
}

impl Drop for BounceBuffer<'_> {
    fn drop(&mut self) {
        lock(&self.of.0).push(std::mem::take(&mut self.bytes));
    }
}
