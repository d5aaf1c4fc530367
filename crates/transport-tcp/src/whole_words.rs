//! Writes the body of a transfer to memory in whole words, wherever the stream is cut.
//!
//! Other threads and PEs may read symmetric memory while it is written. A word of 1, 2, 4 or 8 aligned
//! bytes must therefore be written at once: bytes that do not reach the end of their aligned 8 bytes
//! are held until the rest has come. This file must never know what the bytes mean.
#![allow(unsafe_code)]

use rushmem_transport::LocalBuf;
use rushmem_transport::mem::{self, Volatile};

/// The longest word, and its alignment.
const WORD: usize = 8;

/// The state between two parts of a body.
#[derive(Default)]
pub(crate) struct WholeWords {
    /// Held bytes, each at its place within the aligned 8 bytes of the destination.
    held: [u8; WORD],
    n_held: usize,
}

impl WholeWords {
    /// Takes the next bytes of a body. `rest` is where they go: the destination from the first byte that was not given yet to its
    /// end. The body is complete when the bytes fill it; then nothing is held any more.
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
            // SAFETY: the bytes before `rest`, valid by contract.
            unsafe { copy(rest.base.wrapping_sub(n_held), from) };
        }
        let end = rest.base.addr().wrapping_add(bytes.len());
        let cut = if is_last { 0 } else { bytes.len().min(end % WORD) };
        let (whole, cut) = bytes.split_at(bytes.len() - cut);
        // SAFETY: the start of `rest`, valid by contract.
        unsafe { copy(rest.base, whole) };
        self.hold((end - cut.len()) % WORD, cut);
    }

    fn hold(&mut self, place: usize, bytes: &[u8]) {
        self.held[place..place + bytes.len()].copy_from_slice(bytes);
        self.n_held += bytes.len();
    }
}

/// Copies bytes, each word of them at once. What lies before the first and behind the last aligned 8 bytes is copied in words of the
/// size that the address allows; a copy of all of it could write a part of the next word first.
///
/// # Safety
/// `to` is valid for writes of as many bytes.
unsafe fn copy(to: *mut u8, bytes: &[u8]) {
    let (mut to, mut rest) = (to, bytes);
    while !rest.is_empty() {
        let aligned = 1 << to.addr().trailing_zeros().min(WORD.trailing_zeros());
        let longest = 1 << rest.len().ilog2().min(WORD.trailing_zeros());
        let nbytes = match aligned.min(longest) {
            WORD => rest.len() - rest.len() % WORD,
            short => short,
        };
        let (now, later) = rest.split_at(nbytes);
        // SAFETY: a slice is valid for reads, the destination by contract.
        unsafe { copy_aligned(to, now) };
        (to, rest) = (to.wrapping_add(nbytes), later);
    }
}

/// # Safety
/// `to` is valid for writes of as many bytes, and aligned to them or to 8.
unsafe fn copy_aligned(to: *mut u8, bytes: &[u8]) {
    match *bytes {
        // SAFETY: valid by contract.
        [a] => unsafe { mem::store(to, a) },
        // SAFETY: valid by contract.
        [a, b] => unsafe { mem::store(to.cast(), u16::from_ne_bytes([a, b])) },
        // SAFETY: valid by contract.
        [a, b, c, d] => unsafe { mem::store(to.cast(), u32::from_ne_bytes([a, b, c, d])) },
        // SAFETY: valid by contract.
        [a, b, c, d, e, f, g, h] => unsafe {
            mem::store(to.cast(), u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
        },
        // SAFETY: a slice is valid for reads, the destination by contract.
        _ => unsafe { mem::copy_bytes::<Volatile>(to, bytes.as_ptr(), bytes.len()) },
    }
}

#[cfg(test)]
mod tests;
