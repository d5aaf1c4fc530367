//! The registered segments of this PE, and the accesses of this CPU to them on behalf of peers.
//!
//! A peer sends an offset in a segment. It is converted to an address here, after a check that the
//! bytes lie within the segment. The safe functions of this file rely on this check, so that no
//! message of a peer can access memory outside the segments.
#![allow(unsafe_code)]

pub mod heap_blocks;
pub mod heap_probe;

use crate::{AmoRequest, AmoWidth, Error, LocalBuf, RemoteAddr, Segment, SourceBuf, mem};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

/// A registered segment, with the provider's data on it.
struct RegisteredSegment<T> {
    memory: LocalBuf,
    extra: T,
}

// SAFETY: `memory` is a plain address range, which no safe code dereferences. The functions of this
// file access it through `mem`, which allows for concurrent accesses to the same bytes.
unsafe impl<T: Sync> Sync for RegisteredSegment<T> {}

/// The table of registered segments.
pub struct Segments<T = ()>([OnceLock<RegisteredSegment<T>>; Segment::COUNT]);

impl<T> Default for Segments<T> {
    fn default() -> Segments<T> {
        Segments([const { OnceLock::new() }; Segment::COUNT])
    }
}

impl<T> Segments<T> {
    /// Registers a segment.
    ///
    /// # Safety
    /// The memory is valid for reads and writes as long as this table, or what it returns, is used.
    ///
    /// # Errors
    /// When the segment is registered already.
    pub unsafe fn register(
        &self,
        segment: Segment,
        memory: LocalBuf,
        extra: T,
    ) -> Result<(), Error> {
        self.0[segment as usize]
            .set(RegisteredSegment { memory, extra })
            .map_err(|_| Error::Invalid(format!("segment {segment:?} is registered already")))
    }

    /// Returns the size of a segment in bytes; 0 before it is registered.
    pub fn nbytes(&self, segment: Segment) -> u64 {
        match self.0[segment as usize].get() {
            Some(registered) => registered.memory.nbytes as u64,
            None => 0,
        }
    }

    /// Returns the `nbytes` bytes at an address, which are valid for reads and writes; `None` if
    /// they do not lie within the segment.
    #[inline]
    pub fn bytes(&self, addr: RemoteAddr, nbytes: usize) -> Option<LocalBuf> {
        let memory = self.0[addr.segment as usize].get()?.memory;
        let end = addr.offset.checked_add(nbytes as u64)?;
        if end > memory.nbytes as u64 {
            return None;
        }
        Some(memory.skip(addr.offset as usize).first(nbytes))
    }

    /// Returns the `nbytes` bytes at an address as the source of an operation; `None` if they do
    /// not lie within the segment.
    #[inline]
    pub fn source(&self, addr: RemoteAddr, nbytes: usize) -> Option<SourceBuf> {
        let LocalBuf { base, nbytes } = self.bytes(addr, nbytes)?;
        // SAFETY: `bytes` has checked that the range is a part of a segment, whose memory is valid
        // for reads as long as what this table returns is used, by the contract of `register`.
        Some(unsafe { SourceBuf::new(base, nbytes) })
    }

    /// Returns the word at an address, which is valid for atomic accesses; `None` if the word does
    /// not lie within the segment or is not aligned.
    #[inline]
    pub fn word(&self, addr: RemoteAddr, width: AmoWidth) -> Option<*mut u8> {
        let word = self.bytes(addr, width.nbytes())?.base;
        if !word.addr().is_multiple_of(width.nbytes()) {
            return None;
        }
        Some(word)
    }

    /// Returns the symmetric address of local memory and the provider's data on its segment, if the
    /// memory is part of a segment.
    pub fn holding(&self, memory: LocalBuf) -> Option<(RemoteAddr, &T)> {
        for segment in Segment::ALL {
            let Some(registered) = self.0[segment as usize].get() else {
                continue;
            };
            if let Some(offset) = memory.offset_in(registered.memory) {
                let addr = RemoteAddr {
                    segment,
                    offset: offset as u64,
                };
                return Some((addr, &registered.extra));
            }
        }
        None
    }

    /// Writes bytes with release order, that is, after all earlier writes of this thread. Returns
    /// false if the destination is not within the segment.
    #[inline]
    pub fn write(&self, dest: RemoteAddr, bytes: &[u8]) -> bool {
        let Some(to) = self.bytes(dest, bytes.len()) else {
            return false;
        };

        // The bytes may be a flag for which a thread of this PE waits, with an acquire load. The
        // stores of the copy are relaxed, so it is the fence that makes visible to that thread what
        // this one has written before.
        fence(Ordering::Release);
        // SAFETY: a slice is valid for reads of its length. `to` has the same length, and is a part
        // of a segment, whose memory is valid for writes by the contract of `register`.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(to.base, bytes.as_ptr(), bytes.len()) };
        true
    }

    /// Appends bytes of a segment to `bytes`. Returns false if the source is not within the
    /// segment.
    #[inline]
    pub fn append_to(&self, bytes: &mut Vec<u8>, source: RemoteAddr, nbytes: usize) -> bool {
        match self.source(source, nbytes) {
            Some(from) => {
                from.append_to::<mem::AtomicLoads>(bytes);
                true
            }
            None => false,
        }
    }

    /// Carries out an atomic operation by this CPU, after all earlier writes of this thread.
    /// Returns the old value, zero-extended; `None` if the word does not lie within the segment or
    /// is not aligned.
    #[inline]
    pub fn apply(&self, request: &AmoRequest) -> Option<u64> {
        let &AmoRequest {
            dest,
            width,
            op,
            operand,
            condition,
        } = request;
        let word = self.word(dest, width)?;

        // No fence as in `write`: each operation that writes the word has release order itself.
        // SAFETY: `word` has checked that the word is aligned and a part of a segment, whose memory
        // is valid for reads and writes by the contract of `register`.
        Some(unsafe { mem::apply(op, width, word, operand, condition) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AmoOp;

    fn at(offset: u64) -> RemoteAddr {
        RemoteAddr {
            segment: Segment::Heap,
            offset,
        }
    }

    #[test]
    fn only_what_lies_within_has_an_address() {
        let mut memory = [0u64; 4];
        let whole = LocalBuf {
            base: memory.as_mut_ptr().cast(),
            nbytes: 32,
        };
        let segments = Segments::default();
        let unregistered = segments.bytes(at(0), 0);
        assert!(unregistered.is_none());

        // SAFETY: the memory outlives the table.
        let registered = unsafe { segments.register(Segment::Heap, whole, 'a') };
        assert_eq!(registered, Ok(()));
        // SAFETY: the memory outlives the table.
        let again = unsafe { segments.register(Segment::Heap, whole, 'b') };
        assert!(again.is_err());

        assert!(segments.bytes(at(31), 1).is_some());
        assert!(segments.bytes(at(31), 2).is_none());
        assert!(segments.bytes(at(u64::MAX), 2).is_none());

        assert!(segments.word(at(24), AmoWidth::Eight).is_some());
        assert!(segments.word(at(20), AmoWidth::Eight).is_none());
        assert!(segments.word(at(20), AmoWidth::Four).is_some());

        let longer = LocalBuf {
            nbytes: 33,
            ..whole
        };
        assert_eq!(segments.holding(whole.skip(8)), Some((at(8), &'a')));
        assert_eq!(segments.holding(longer), None);
    }

    #[test]
    fn what_peers_ask_happens_within_the_segment_alone() {
        let mut memory = [1u64, 2, 3];
        let whole = LocalBuf {
            base: memory.as_mut_ptr().cast(),
            nbytes: 16,
        };
        let segments = Segments::default();
        // SAFETY: the memory outlives the table.
        unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");

        let add = |offset| AmoRequest::of_word(at(offset), AmoOp::Add, 5);
        assert_eq!(segments.apply(&add(8)), Some(2));
        assert_eq!(segments.apply(&add(16)), None);
        assert_eq!(segments.apply(&add(4)), None);

        assert!(segments.write(at(0), &9u64.to_ne_bytes()));
        assert!(!segments.write(at(9), &[0; 8]));

        let mut found = Vec::new();
        assert!(segments.append_to(&mut found, at(8), 8));
        assert!(!segments.append_to(&mut found, at(9), 8));
        assert_eq!(found, 7u64.to_ne_bytes());

        assert_eq!(memory, [9, 7, 3]);
    }
}
