//! Writes the body of a transfer to memory in whole words, although it arrives in parts of any
//! length.
//!
//! Other threads and PEs may read symmetric memory while it is written, so a word of 1, 2, 4 or 8
//! aligned bytes must be written at once. Bytes that do not reach the end of their aligned 8 bytes
//! are held until the rest has arrived.
#![allow(unsafe_code)]

use rushmem_transport::LocalBuf;
use rushmem_transport::mem::{self, VolatileLoads};

/// The longest word, and its alignment.
const WORD: usize = 8;

/// The state between two parts of a body.
#[derive(Default)]
pub(crate) struct WholeWords {
    /// Held bytes, each at its offset in the aligned 8 bytes of the destination.
    held: [u8; WORD],
    n_held: usize,
}

impl WholeWords {
    /// Writes the next bytes of a body to `rest`, the part of its destination that was not passed
    /// before. If the bytes fill `rest`, the body is complete, and no bytes are held afterwards.
    ///
    /// # Safety
    /// The destination of the whole body is valid for writes.
    pub(crate) unsafe fn write(&mut self, rest: LocalBuf, bytes: &[u8]) {
        assert!(bytes.len() <= rest.nbytes, "a body is no longer than its destination");
        let is_last = bytes.len() == rest.nbytes;
        let (mut rest, mut bytes) = (rest, bytes);
        if self.n_held > 0 {
            let place = rest.base.addr() % WORD;
            let (word, after) = bytes.split_at(bytes.len().min(WORD - place));
            self.hold(place, word);
            (rest, bytes) = (rest.skip(word.len()), after);
            let is_whole = place + word.len() == WORD;
            if !is_whole && !is_last {
                return;
            }
            let n_held = std::mem::take(&mut self.n_held);
            let from = &self.held[place + word.len() - n_held..][..n_held];
            let to = rest.base.wrapping_sub(n_held);
            // SAFETY: the bytes before `rest`, valid by contract; a slice is valid for reads.
            unsafe { mem::copy_bytes::<VolatileLoads>(to, from.as_ptr(), n_held) };
        }
        let end = rest.base.addr().wrapping_add(bytes.len());
        let cut = if is_last { 0 } else { bytes.len().min(end % WORD) };
        let (whole, cut) = bytes.split_at(bytes.len() - cut);
        // SAFETY: the start of `rest`, valid by contract; a slice is valid for reads.
        unsafe { mem::copy_bytes::<VolatileLoads>(rest.base, whole.as_ptr(), whole.len()) };
        self.hold((end - cut.len()) % WORD, cut);
    }

    fn hold(&mut self, place: usize, bytes: &[u8]) {
        self.held[place..place + bytes.len()].copy_from_slice(bytes);
        self.n_held += bytes.len();
    }
}

#[cfg(test)]
mod tests;
