//! This PE's segments, as peers address them.
#![allow(unsafe_code)]

use crate::proto::Violation;
use rushmem_transport::{LocalBuf, RemoteAddr, Segment};
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
    /// `base` is valid for reads and writes of `nbytes` bytes for as long as peers are served.
    pub(crate) unsafe fn open(&self, segment: Segment, base: *mut u8, nbytes: usize) -> bool {
        self.areas[segment as usize].set(Area { base, nbytes: nbytes as u64 }).is_ok()
    }

    /// The memory at an address, if so many bytes of it are in the segment.
    pub(crate) fn range(&self, at: RemoteAddr, nbytes: usize) -> Result<LocalBuf, Violation> {
        let area = self.areas[at.segment as usize].get().ok_or(Violation::Address(at.offset))?;
        match at.offset.checked_add(nbytes as u64) {
            Some(end) if end <= area.nbytes => {
                Ok(LocalBuf { base: area.base.wrapping_add(at.offset as usize), nbytes })
            }
            _ => Err(Violation::Address(at.offset)),
        }
    }

    /// The word at an address, which must be aligned.
    pub(crate) fn word(&self, at: RemoteAddr, nbytes: usize) -> Result<*mut u8, Violation> {
        let word = self.range(at, nbytes)?.base;
        match word.addr().is_multiple_of(nbytes) {
            true => Ok(word),
            false => Err(Violation::Address(at.offset)),
        }
    }
}
