//! The static data of the node's other PEs, as this process sees them.
#![allow(unsafe_code)]

use super::program::{ProgramPart, Statics, page};
use crate::core_files;
use crate::error::Error;
use crate::layout::{STATICS_AT, STATICS_STRIDE};
use crate::mapping::Mapping;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::ffi::c_void;

/// Mappings of peers' static data: a place for each PE, side by side, filled where a PE's are
/// shared memory.
#[derive(Debug)]
pub(crate) struct Views {
    /// None where nobody's are shared memory.
    places: Option<Mapping>,
    filled: Vec<bool>,
    start: usize,
    span: usize,
}

impl Views {
    /// Map the static data of the PEs with numbers `0..at.len()` on this node, but not of `own`;
    /// `at` says where each has them in `memory`, which comes with its size, if there.
    ///
    /// # Errors
    /// When the kernel refuses, or a PE's cannot be where it says.
    pub(crate) fn map(
        (memory, size): (BorrowedFd<'_>, u64),
        statics: &Statics,
        at: &[Option<u64>],
        own: u32,
    ) -> Result<Views, Error> {
        let refused = |e| Error::Refused("mapping peers' static data", e);
        let (start, span) = (statics.start(), statics.nbytes());
        let wanted = (0..).zip(at).filter_map(|(local, at)| at.map(|at| (local, at)));
        let wanted: Vec<(u32, u64)> =
            wanted.filter(|&(local, _)| local != own && span > 0).collect();
        let mut views = Views { places: None, filled: vec![false; at.len()], start, span };
        if wanted.is_empty() {
            return Ok(views);
        }
        let nbytes = span.checked_mul(at.len()).ok_or(Error::TooLarge)?;
        let places = Mapping::new(nbytes, ProtFlags::empty()).map_err(refused)?;
        for (local, at) in wanted {
            if !is_place(local, at, span as u64, size) {
                return Err(Error::Misplaced(local));
            }
            let place = places.start().wrapping_byte_add(local as usize * span);
            fill(place, memory, statics, at).map_err(refused)?;
            views.filled[local as usize] = true;
        }
        core_files::omit(places.start(), nbytes);
        views.places = Some(places);
        Ok(views)
    }

    /// What to add to the address of an own static variable to get that of the PE with this number.
    pub(crate) fn delta(&self, local: u32) -> Option<isize> {
        let local = local as usize;
        let is_filled = *self.filled.get(local)?;
        let there = self.places.as_ref()?.start().addr() + local * self.span;
        is_filled.then(|| there.wrapping_sub(self.start) as isize)
    }
}

/// Whether `at` is where the static data of PE `local` of a node may begin, in a file of `size`
/// bytes: in its slot, at whole pages, with all of them in the file, since others would be lost at
/// the first access.
fn is_place(local: u32, at: u64, nbytes: u64, size: u64) -> bool {
    let slot = STATICS_AT + u64::from(local) * STATICS_STRIDE;
    let end = at.saturating_add(nbytes);
    at >= slot && end <= slot + STATICS_STRIDE && end <= size && at.is_multiple_of(page() as u64)
}

/// Map the static data of one PE at `place`; holes stay inaccessible.
fn fill(
    place: *mut c_void,
    memory: BorrowedFd<'_>,
    statics: &Statics,
    at: u64,
) -> Result<(), Errno> {
    for ProgramPart { pages, .. } in &statics.parts {
        // SAFETY: a part of the range that was reserved for this PE, which nobody uses.
        unsafe {
            mmap(
                place.wrapping_byte_add(pages.start),
                pages.len(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE,
                memory,
                at + pages.start as u64,
            )
        }?;
    }
    Ok(())
}
