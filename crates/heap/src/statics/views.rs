//! The static data of the node's other PEs, as this process sees them.
#![allow(unsafe_code)]

use super::{Part, Statics};
use crate::node::Error;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Mappings of peers' static data: a place for each PE, side by side, filled where a PE's are shared memory.
#[derive(Debug)]
pub(crate) struct Views {
    base: *mut c_void,
    filled: Vec<bool>,
    start: usize,
    span: usize,
}

impl Views {
    /// Map the static data of the PEs with numbers `0..at.len()` on this node, but not of `own`; `at` says
    /// where each has them in `memory`, if there.
    pub(crate) fn map(
        memory: BorrowedFd<'_>,
        statics: &Statics,
        at: &[Option<u64>],
        own: u32,
    ) -> Result<Views, Error> {
        let refused = |e| Error::Refused("mapping peers' static data", e);
        let (start, span) = (statics.start(), statics.nbytes());
        let wanted: Vec<Option<u64>> =
            (0..).zip(at).map(|(local, at)| at.filter(|_| local != own && span > 0)).collect();
        let mut views = Views { base: null_mut(), filled: vec![false; at.len()], start, span };
        if wanted.iter().all(Option::is_none) {
            return Ok(views);
        }
        let nbytes = span.checked_mul(at.len()).ok_or(Error::TooLarge)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new range at an address of the kernel's choice.
        views.base = unsafe { mmap_anonymous(null_mut(), nbytes, ProtFlags::empty(), flags) }
            .map_err(refused)?;
        for (local, at) in wanted.into_iter().enumerate() {
            if let Some(at) = at {
                views.fill(memory, statics, local, at).map_err(refused)?;
            }
        }
        // SAFETY: the range that was just mapped; the advice changes no contents.
        unsafe { madvise(views.base, nbytes, Advice::LinuxDontDump) }.map_err(refused)?;
        Ok(views)
    }

    /// Map one PE's in its place; holes stay inaccessible.
    fn fill(
        &mut self,
        memory: BorrowedFd<'_>,
        statics: &Statics,
        local: usize,
        at: u64,
    ) -> Result<(), Errno> {
        let base = self.base.wrapping_byte_add(local * self.span);
        for Part { pages, .. } in &statics.parts {
            // SAFETY: a part of the range that was reserved for this PE, which nobody uses.
            unsafe {
                mmap(
                    base.wrapping_byte_add(pages.start),
                    pages.len(),
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE,
                    memory,
                    at + pages.start as u64,
                )
            }?;
        }
        self.filled[local] = true;
        Ok(())
    }

    /// What to add to the address of an own static variable to get that of the PE with this number.
    pub(crate) fn delta(&self, local: u32) -> Option<isize> {
        let local = local as usize;
        let is_filled = *self.filled.get(local)?;
        let there = self.base.addr() + local * self.span;
        is_filled.then(|| there.wrapping_sub(self.start) as isize)
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        if !self.base.is_null() {
            // SAFETY: exactly the range that `map` reserved. An error would leave it mapped: harmless.
            let _ = unsafe { munmap(self.base, self.span * self.filled.len()) };
        }
    }
}
