//! Assigns the static data of PEs their slots in a node's memory.
//!
//! Each PE takes its slot when the program is loaded, before it knows the other PEs and the size of
//! their heaps, so the slots are behind all heaps. Slots of one size are adjacent, so that one
//! mapping contains those of all PEs. Slots of different sizes do not overlap, so that PEs that run
//! different programs by mistake can still report this. Unused slots take no memory.

use super::program::Statics;
use crate::huge_pages::HUGE;
use crate::layout::STATICS_OFFSET;

/// Bytes for all slots of one size. No process can map as many, so the limit refuses no program
/// that could run. The regions of all sizes together are below the largest offset of a file.
const REGION: u64 = 1 << 48;

/// The slots for the static data of one program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticSlots {
    first: u64,
    nbytes: u64,
}

impl StaticSlots {
    /// Returns the slots for a program; `None` if its static data are too large.
    pub(crate) fn of(statics: &Statics) -> Option<StaticSlots> {
        let needed = (statics.nbytes() + room(statics)) as u64;
        let nbytes = needed.checked_next_power_of_two()?;
        if nbytes > REGION {
            return None;
        }

        // One region for each size, so that slots of different sizes cannot overlap.
        let first = STATICS_OFFSET + u64::from(nbytes.trailing_zeros()) * REGION;
        Some(StaticSlots { first, nbytes })
    }

    /// Returns the offset of the first slot in the node's memory.
    pub(crate) fn first(self) -> u64 {
        self.first
    }

    /// Returns the bytes of a slot.
    pub(crate) fn nbytes(self) -> u64 {
        self.nbytes
    }

    /// Returns the offset of the slot of the node's PE number `local`; `None` if there are too few
    /// slots.
    pub(crate) fn start(self, local: u32) -> Option<u64> {
        let offset = u64::from(local) * self.nbytes;
        if offset >= REGION {
            return None;
        }
        Some(self.first + offset)
    }

    /// Returns the offset of the static data in their slot. For huge pages, the position of the
    /// static data in a huge page must be the same in the file as in memory.
    pub(crate) fn shift(statics: &Statics) -> u64 {
        (statics.start() & room(statics).saturating_sub(1)) as u64
    }

    /// Returns true if the `nbytes` bytes at this offset in the node's memory are in the slot of
    /// the PE number `local`.
    pub(crate) fn contains(self, local: u32, offset: u64, nbytes: u64) -> bool {
        let Some(start) = self.start(local) else {
            return false;
        };
        nbytes <= self.nbytes && offset >= start && offset - start <= self.nbytes - nbytes
    }
}

/// Returns the number of bytes that a slot has beyond the static data, so that these may begin
/// anywhere in a huge page; 0 if they are smaller than a huge page.
fn room(statics: &Statics) -> usize {
    if statics.nbytes() < HUGE { 0 } else { HUGE }
}
