//! A range of addresses that this process has mapped or reserved. Its drop unmaps it, so that an
//! operation that fails halfway leaves nothing mapped.
#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{null_mut, without_provenance_mut};

/// The range. Its drop also unmaps everything that was mapped inside it later.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut c_void,
    nbytes: usize,
}

impl Mapping {
    /// Maps private memory, of which no page is allocated until it is accessed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn new(nbytes: usize, protection: ProtFlags) -> Result<Mapping, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the call maps a new range at an address of the kernel's choice, so no mapping is
        // replaced.
        let start = unsafe { mmap_anonymous(null_mut(), nbytes, protection, flags) }?;
        Ok(Mapping { start, nbytes })
    }

    /// Reserves the range that starts at an address, without access, if nothing is mapped in it.
    ///
    /// # Errors
    /// When something is mapped in it, or the kernel refuses.
    pub(crate) fn reserve(address: usize, nbytes: usize) -> Result<Mapping, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        let wanted = without_provenance_mut(address);
        // SAFETY: the call maps a new range: with `FIXED_NOREPLACE` the kernel replaces no mapping.
        let start = unsafe { mmap_anonymous(wanted, nbytes, ProtFlags::empty(), flags) }?;
        let mapping = Mapping { start, nbytes };

        // Kernels before 4.17 and valgrind take the address for a suggestion. The drop of the
        // mapping then unmaps what they have chosen.
        if start.addr() != address {
            return Err(Errno::EXIST);
        }
        Ok(mapping)
    }

    /// Maps a range of shared memory, at an address of the kernel's choice.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn shared(
        memory: BorrowedFd<'_>,
        offset: u64,
        nbytes: usize,
        protection: ProtFlags,
    ) -> Result<Mapping, Errno> {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: the call maps a new range at an address of the kernel's choice, so no mapping is
        // replaced.
        let start = unsafe { mmap(null_mut(), nbytes, protection, flags, memory, offset) }?;
        Ok(Mapping { start, nbytes })
    }

    pub(crate) fn start(&self) -> *mut c_void {
        self.start
    }

    pub(crate) fn nbytes(&self) -> usize {
        self.nbytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the one that was mapped. Users of its addresses keep this
        // mapping alive, so none is used afterwards.
        // An error would leave the range mapped, which is harmless.
        let _ = unsafe { munmap(self.start, self.nbytes) };
    }
}

/// Leaves a range out of core files. If the kernel or a sandbox refuses this, core files are larger
/// and nothing else changes, so this is no error.
pub(crate) fn omit_from_core_files(start: *mut c_void, nbytes: usize) {
    // SAFETY: this advice changes no contents, whatever is mapped in the range.
    let _ = unsafe { madvise(start, nbytes, Advice::LinuxDontDump) };
}
