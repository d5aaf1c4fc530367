//! A copy of the static data for a child process.
//!
//! The copy contains all pages that are in use, and is complete before the fork. A private mapping
//! of the shared memory would not do: until the child has written to a page, it would still see
//! what peers and NICs write to it. The fork waits for the copy, so the copy must be fast. Most of
//! its time would be spent in page faults, which huge pages reduce.
#![allow(unsafe_code)]

use super::program::{ProgramPart, Statics};
use crate::huge_pages::{self, HUGE};
use crate::mapping::Mapping;
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};
use rustix::mm::{Advice, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) struct CopySource<'a> {
    pub(super) statics: &'a Statics,
    /// The file that contains the static data; `None` if it is not open any more. It is then
    /// unknown which pages are in use, and all are copied.
    pub(super) memory: Option<BorrowedFd<'a>>,
    /// The offset of the static data in the file.
    pub(super) offset: u64,
}

impl CopySource<'_> {
    /// Returns the first run of pages that are in use among `pages`, as offsets from the start of
    /// the static data; `None` if none is in use.
    fn pages_in_use(&self, pages: Range<usize>) -> Result<Option<Range<usize>>, Errno> {
        if pages.is_empty() {
            return Ok(None);
        }
        let Some(memory) = self.memory else {
            return Ok(Some(pages));
        };

        let end = self.offset + pages.end as u64;
        let start = match seek(memory, SeekFrom::Data(self.offset + pages.start as u64)) {
            Ok(start) if start < end => start,
            // No further page is in use.
            Ok(_) | Err(Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(errno),
        };

        let end = seek(memory, SeekFrom::Hole(start))?.min(end);
        let run = (start - self.offset) as usize..(end - self.offset) as usize;
        Ok(Some(run))
    }
}

/// Private memory with the layout of the static data. Its drop unmaps the parts that were not
/// moved.
pub(super) struct StaticsCopy {
    /// The memory of the copy, with room to align it.
    _reserved: Mapping,
    /// The start of the copy. It differs from the start of the static data by a multiple of the
    /// size of huge pages, so that the kernel can move huge pages as they are.
    start: *mut c_void,
}

impl StaticsCopy {
    /// Returns a copy of all pages that are in use.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn of(from: &CopySource<'_>) -> Result<StaticsCopy, Errno> {
        let statics = from.statics;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let reserved = Mapping::new(statics.nbytes() + HUGE, protection)?;
        let start = reserved.start();
        let padding = statics.start().wrapping_sub(start.addr()) % HUGE;
        let copy = StaticsCopy {
            _reserved: reserved,
            start: start.wrapping_byte_add(padding),
        };

        for ProgramPart { pages, .. } in &statics.parts {
            copy.advise(pages, Advice::LinuxNoHugepage);

            let mut next = pages.start;
            while let Some(run) = from.pages_in_use(next..pages.end)? {
                next = run.end;
                copy.fill(from, pages, run)?;
            }
        }
        Ok(copy)
    }

    /// Copies a run of pages of a part, into huge pages where these lie wholly in the run: others
    /// would need memory for pages that are not in use. The advice always covers the whole part,
    /// because kernels before 6.17 do not move a range with different advice.
    fn fill(
        &self,
        from: &CopySource<'_>,
        part: &Range<usize>,
        run: Range<usize>,
    ) -> Result<(), Errno> {
        let start = from.statics.start();
        let huge = huge_pages::whole(&(start + run.start..start + run.end));
        let huge = huge.start - start..huge.end - start;

        self.populate(run.start..huge.start);
        self.copy(from, run.start..huge.start)?;

        if !huge.is_empty() {
            self.advise(part, Advice::LinuxHugepage);
            self.copy(from, huge.clone())?;
            self.advise(part, Advice::LinuxNoHugepage);
        }

        self.populate(huge.end..run.end);
        self.copy(from, huge.end..run.end)
    }

    /// Advises the kernel on huge pages in a part of the copy, if one fits there.
    fn advise(&self, part: &Range<usize>, advice: Advice) {
        if part.len() < HUGE {
            return;
        }

        let start = self.start.wrapping_byte_add(part.start);
        // A kernel without huge pages refuses this, and needs no advice.
        // SAFETY: the range is a part of the copy, and the advice changes no contents.
        let _ = unsafe { rustix::mm::madvise(start, part.len(), advice) };
    }

    /// Makes the kernel create many pages at once, instead of one at each fault.
    fn populate(&self, run: Range<usize>) {
        if run.is_empty() {
            return;
        }

        let to = self.start.wrapping_byte_add(run.start);
        // Kernels before 5.14 refuse this; then faults make the pages.
        // SAFETY: the range is a part of the copy, and the advice changes no contents.
        let _ = unsafe { rustix::mm::madvise(to, run.len(), Advice::LinuxPopulateWrite) };
    }

    /// Copies a run of pages. If the file is open, the kernel reads it: AddressSanitizer would
    /// report reads by this process of the guards that it has put between variables.
    fn copy(&self, from: &CopySource<'_>, mut run: Range<usize>) -> Result<(), Errno> {
        let Some(memory) = from.memory else {
            let source = from.statics.start() + run.start;
            let source: *mut u64 = std::ptr::with_exposed_provenance_mut(source);
            let to: *mut u64 = self.start.wrapping_byte_add(run.start).cast();
            // SAFETY: whole pages of the static data, and as many of the copy, which no other
            // thread uses.
            unsafe { copy_words(to, source, run.len() / size_of::<u64>()) };
            return Ok(());
        };

        while !run.is_empty() {
            let to = self.start.wrapping_byte_add(run.start).cast();
            // SAFETY: `to` has `run.len()` bytes, which are a part of the copy. They are
            // initialized, since a new mapping has zeros, and no other thread uses the copy.
            let to: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(to, run.len()) };
            let nbytes = pread(memory, to, from.offset + run.start as u64)?;
            if nbytes == 0 {
                // The file has become shorter, which its seals prevent.
                return Err(Errno::IO);
            }
            run.start += nbytes;
        }
        Ok(())
    }

    /// Moves the copy to the addresses of the static data. Makes only system calls, since variables
    /// of the C library may be among the static data.
    ///
    /// # Errors
    /// When the kernel refuses. Then the process must end.
    pub(super) fn take_the_place_of(self, statics: &Statics) -> Result<(), Errno> {
        for ProgramPart {
            pages, executable, ..
        } in &statics.parts
        {
            let from = self.start.wrapping_byte_add(pages.start);
            let to = std::ptr::with_exposed_provenance_mut(statics.start() + pages.start);

            if *executable {
                let protection = rustix::mm::MprotectFlags::READ
                    | rustix::mm::MprotectFlags::WRITE
                    | rustix::mm::MprotectFlags::EXEC;
                // SAFETY: the range is whole pages of the copy, whose code runs only after they
                // have taken the place of the program's pages.
                unsafe { rustix::mm::mprotect(from, pages.len(), protection) }?;
            }

            let nbytes = pages.len();
            // SAFETY: `from` is whole pages of the copy, which this call consumes. They replace the
            // pages at `to`, of which they are a copy, so no variable of the program changes.
            unsafe { rustix::mm::mremap_fixed(from, nbytes, nbytes, MremapFlags::MAYMOVE, to) }?;
        }
        Ok(())
    }
}

/// Copies words that peers may change meanwhile. Each is copied whole, as it was before or after
/// the change.
///
/// # Safety
/// `from` is valid for atomic reads, `to` for writes of `n` words, and both are aligned.
unsafe fn copy_words(to: *mut u64, from: *mut u64, n: usize) {
    for i in 0..n {
        // SAFETY: the address is one of the `n` words at `from`, valid and aligned by contract.
        // Relaxed: peers change single words, and the copy promises no order among them.
        let word = unsafe { AtomicU64::from_ptr(from.wrapping_add(i)) }.load(Relaxed);
        // SAFETY: one of the words at `to`, valid and aligned by contract.
        unsafe { to.wrapping_add(i).write(word) };
    }
}
