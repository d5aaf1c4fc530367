//! This PE's segments, as peers address them in requests and as this PE addresses itself.
#![allow(unsafe_code)]

use rushmem_transport::{RemoteAddr, Segment};
use std::sync::OnceLock;

#[derive(Clone, Copy)]
struct Area {
    base: *mut u8,
    nbytes: u64,
}

// SAFETY: an address range that stays valid; who accesses it decides how.
unsafe impl Send for Area {}
// SAFETY: as above; it holds an address, not data.
unsafe impl Sync for Area {}

/// Memory that peers may use.
#[derive(Default)]
pub(crate) struct Areas {
    areas: [OnceLock<Area>; Segment::COUNT],
}

impl Areas {
    /// Open a segment; false when it is open already.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `nbytes` bytes for as long as the transport lives.
    pub(crate) unsafe fn open(&self, segment: Segment, base: *mut u8, nbytes: usize) -> bool {
        self.areas[segment as usize].set(Area { base, nbytes: nbytes as u64 }).is_ok()
    }

    /// The address of so many bytes, if they are in the segment: valid for reads and writes.
    pub(crate) fn bytes(&self, at: RemoteAddr, nbytes: usize) -> Option<*mut u8> {
        let area = self.areas[at.segment as usize].get()?;
        let end = at.offset.checked_add(nbytes as u64)?;
        (end <= area.nbytes).then(|| area.base.wrapping_add(at.offset as usize))
    }

    /// The address of a word, which must be aligned.
    pub(crate) fn word(&self, at: RemoteAddr, nbytes: usize) -> Option<*mut u8> {
        self.bytes(at, nbytes).filter(|word| word.addr().is_multiple_of(nbytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_within_has_an_address() {
        let mut memory = [0u64; 4];
        let areas = Areas::default();
        let at = |offset| RemoteAddr { segment: Segment::Heap, offset };
        assert!(areas.bytes(at(0), 0).is_none(), "nothing is open yet");
        // SAFETY: the memory outlives its use, which is none.
        assert!(unsafe { areas.open(Segment::Heap, memory.as_mut_ptr().cast(), 32) });
        // SAFETY: it is refused.
        assert!(!unsafe { areas.open(Segment::Heap, memory.as_mut_ptr().cast(), 32) });
        assert!(areas.bytes(at(31), 1).is_some());
        assert!(areas.bytes(at(31), 2).is_none());
        assert!(areas.bytes(at(u64::MAX), 2).is_none());
        assert!(areas.word(at(24), 8).is_some());
        assert!(areas.word(at(20), 8).is_none());
        assert!(areas.word(at(20), 4).is_some());
    }
}
