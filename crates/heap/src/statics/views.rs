//! The static data of the node's other PEs, as this process sees them.

use super::{Part, Statics};
use crate::node::Error;
use rustix::fd::BorrowedFd;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Mappings of peers' static data, one per PE whose are shared memory.
#[derive(Debug, Default)]
pub(crate) struct Views {
    views: Vec<Option<*mut c_void>>,
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
        let span = statics.nbytes();
        let mut views = Views { views: Vec::new(), start: statics.start(), span };
        for (local, at) in at.iter().enumerate() {
            let wanted = at.filter(|_| local != own as usize && span > 0);
            let view = wanted.map(|at| view(memory, statics, span, at)).transpose();
            views.views.push(view.map_err(|e| Error::Refused("mapping peers' static data", e))?);
        }
        Ok(views)
    }

    /// What to add to the address of an own static variable to get that of the PE with this number.
    pub(crate) fn delta(&self, local: u32) -> Option<isize> {
        let view = (*self.views.get(local as usize)?)?;
        Some(view.addr().wrapping_sub(self.start) as isize)
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        for view in self.views.iter().flatten() {
            // SAFETY: exactly the range that `view` reserved. An error would leave it mapped: harmless.
            let _ = unsafe { munmap(*view, self.span) };
        }
    }
}

/// Map one PE's; holes stay inaccessible.
fn view(
    memory: BorrowedFd<'_>,
    statics: &Statics,
    span: usize,
    at: u64,
) -> Result<*mut c_void, rustix::io::Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new range at an address of the kernel's choice.
    let base = unsafe { mmap_anonymous(null_mut(), span, ProtFlags::empty(), flags) }?;
    for Part { pages, .. } in &statics.parts {
        let start = base.wrapping_byte_add(pages.start);
        // SAFETY: a part of the range just reserved, which nobody uses.
        unsafe {
            mmap(
                start,
                pages.len(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE,
                memory,
                at + pages.start as u64,
            )
        }?;
        // SAFETY: the range that was just mapped; the advice changes no contents.
        unsafe { madvise(start, pages.len(), Advice::LinuxDontDump) }?;
    }
    Ok(base)
}
