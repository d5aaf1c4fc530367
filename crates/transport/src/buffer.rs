//! The program's memory that operations read and write. Its validity is promised once, where a
//! [`SourceBuf`] or a [`DestBuf`] is made: the operation that takes it owns it until it is over, so
//! that engine, wires and endpoints are safe functions.
#![allow(unsafe_code)]

use crate::amo::AmoWidth;
use crate::mem;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// A range of addresses of this process, which promises nothing.
#[derive(Clone, Copy, Debug)]
pub struct LocalBuf {
    /// The start of the range.
    pub base: *mut u8,
    /// The length of the range in bytes.
    pub nbytes: usize,
}

// SAFETY: a plain address, which safe code cannot dereference. Unsafe code that does so proves that
// the memory is valid, on whatever thread it runs.
unsafe impl Send for LocalBuf {}

impl LocalBuf {
    /// An empty range.
    pub const EMPTY: LocalBuf = LocalBuf {
        base: null_mut(),
        nbytes: 0,
    };

    /// Returns a range of which the caller only reads.
    #[inline]
    pub fn source(base: *const u8, nbytes: usize) -> LocalBuf {
        LocalBuf {
            base: base.cast_mut(),
            nbytes,
        }
    }

    /// Returns the range without its first `nbytes` bytes.
    #[inline]
    pub fn skip(self, nbytes: usize) -> LocalBuf {
        debug_assert!(nbytes <= self.nbytes, "a part of the range");
        LocalBuf {
            base: self.base.wrapping_add(nbytes),
            nbytes: self.nbytes - nbytes,
        }
    }

    /// Returns the first bytes of the range, at most `max_bytes`.
    #[inline]
    pub fn first(self, max_bytes: usize) -> LocalBuf {
        LocalBuf {
            nbytes: self.nbytes.min(max_bytes),
            ..self
        }
    }

    /// Returns the offset of the range in `whole`; `None` if it is not a part of that.
    #[inline]
    pub(crate) fn offset_in(self, whole: LocalBuf) -> Option<usize> {
        let offset = self.base.addr().checked_sub(whole.base.addr())?;
        let end = offset.checked_add(self.nbytes)?;
        if end > whole.nbytes {
            return None;
        }
        Some(offset)
    }
}

/// Memory that an operation reads.
pub type SourceBuf = Buffer<Source>;
/// Memory that an operation writes.
pub type DestBuf = Buffer<Dest>;

/// The operation reads the memory.
#[derive(Debug)]
pub enum Source {}
/// The operation writes the memory.
#[derive(Debug)]
pub enum Dest {}

/// The direction of a transfer: to a PE by a put, from it by a get. The code of transfers, strided
/// blocks and batches is generic over it.
pub(crate) trait Way: Sized {
    /// The transfer is a put.
    const IS_PUT: bool;

    /// Returns the memory as a source or a destination, for code that differs between put and get.
    fn local(buffer: &mut Buffer<Self>) -> Local<'_>;
}

/// The local memory of a put or a get.
pub(crate) enum Local<'a> {
    Source(&'a mut SourceBuf),
    Dest(&'a mut DestBuf),
}

impl Way for Source {
    const IS_PUT: bool = true;

    #[inline(always)]
    fn local(buffer: &mut SourceBuf) -> Local<'_> {
        Local::Source(buffer)
    }
}

impl Way for Dest {
    const IS_PUT: bool = false;

    #[inline(always)]
    fn local(buffer: &mut DestBuf) -> Local<'_> {
        Local::Dest(buffer)
    }
}

/// Memory that an operation owns until it is over: a [`SourceBuf`] or a [`DestBuf`]. Whoever made
/// it has promised that it is valid for so long.
#[derive(Debug)]
pub struct Buffer<A> {
    range: LocalBuf,
    way: PhantomData<A>,
}

// SAFETY: the promise of whoever made the buffer holds for every thread.
unsafe impl<A> Send for Buffer<A> {}

impl<A> Default for Buffer<A> {
    /// Returns a buffer without bytes.
    fn default() -> Buffer<A> {
        Buffer::EMPTY
    }
}

impl<A> Buffer<A> {
    /// A buffer without bytes.
    pub const EMPTY: Buffer<A> = Buffer::of(LocalBuf::EMPTY);

    #[inline]
    const fn of(range: LocalBuf) -> Buffer<A> {
        Buffer {
            range,
            way: PhantomData,
        }
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.range.nbytes
    }

    /// Returns the addresses of the bytes.
    #[inline]
    pub fn range(&self) -> LocalBuf {
        self.range
    }

    /// Removes and returns the first `nbytes` bytes.
    #[inline]
    pub fn take_first(&mut self, nbytes: usize) -> Buffer<A> {
        let first = Buffer::of(self.range.first(nbytes));
        self.range = self.range.skip(nbytes);
        first
    }

    /// Returns the block of `nbytes` bytes at an offset. The caller gives away no byte twice.
    #[inline]
    pub(crate) fn block(&self, offset: usize, nbytes: usize) -> Buffer<A> {
        let base = self.range.base.wrapping_add(offset);
        Buffer::of(LocalBuf { base, nbytes })
    }
}

impl Buffer<Source> {
    /// Returns the source of an operation.
    ///
    /// # Safety
    /// Until the operation is over, the bytes that it reads are valid for reads: all `nbytes` bytes
    /// or, of strided blocks, the blocks among them. Others may change them meanwhile only as
    /// OpenSHMEM permits.
    #[inline]
    pub unsafe fn new(base: *const u8, nbytes: usize) -> SourceBuf {
        Buffer::of(LocalBuf::source(base, nbytes))
    }

    /// Appends a copy of the bytes, read as `L` says.
    #[inline]
    pub fn append_to<L: mem::Loads>(&self, bytes: &mut Vec<u8>) {
        self.append_first_to::<L>(self.nbytes(), bytes);
    }

    /// Appends a copy of the first bytes, at most `max_bytes`, read as `L` says.
    #[inline]
    pub fn append_first_to<L: mem::Loads>(&self, max_bytes: usize, bytes: &mut Vec<u8>) {
        let LocalBuf { base, nbytes } = self.range.first(max_bytes);
        let start = bytes.len();
        bytes.reserve(nbytes);

        let to = bytes.as_mut_ptr().wrapping_add(start);
        // SAFETY: `base` points to at least `nbytes` bytes of the source, which the operation may
        // read since it is not over. `to` points to as many bytes, which were just reserved.
        unsafe { mem::copy_bytes::<L>(to, base, nbytes) };
        // SAFETY: the vector has room for `nbytes` more bytes, which the copy has initialized.
        unsafe { bytes.set_len(start + nbytes) };
    }
}

impl Buffer<Dest> {
    /// Returns the destination of an operation.
    ///
    /// # Safety
    /// Until the operation is over, the bytes that it writes are valid for writes: all `nbytes`
    /// bytes or, of strided blocks, the blocks among them.
    #[inline]
    pub unsafe fn new(base: *mut u8, nbytes: usize) -> DestBuf {
        Buffer::of(LocalBuf { base, nbytes })
    }

    /// Stores bytes from this offset on.
    ///
    /// # Panics
    /// If the buffer has no room for them.
    #[inline]
    pub fn store_at(&self, offset: usize, bytes: &[u8]) {
        let room = self.nbytes().checked_sub(offset);
        assert!(
            room.is_some_and(|room| bytes.len() <= room),
            "room for the bytes"
        );

        let to = self.range.base.wrapping_add(offset);
        // SAFETY: by the assertion, `to` points to at least as many bytes of the destination, which
        // the operation may write since it is not over. A slice is valid for reads of its length.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, bytes.as_ptr(), bytes.len()) };
    }

    /// Stores the old value of an atomic operation on a word of this width, zero-extended.
    ///
    /// # Panics
    /// If the buffer has no room for the word.
    #[inline]
    pub fn store_word(&self, width: AmoWidth, old: u64) {
        assert!(width.nbytes() <= self.nbytes(), "room for the word");
        // SAFETY: by the assertion, `base` points to at least a word of the destination, which the
        // operation may write since it is not over.
        unsafe { width.write(self.range.base, old) };
    }
}
