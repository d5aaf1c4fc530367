//! Memory of huge pages that the administrator has reserved (hugetlb), for the heaps of a node.
//!
//! The first PE of a node creates a file, and reserves pages for all heaps, so that no access fails
//! later for lack of a page. The others open the file through /proc, by the numbers of that process
//! and of its descriptor. This fails if they do not see that process.
#![allow(unsafe_code)]

use crate::huge_pages::PageSize;
use crate::layout::Layout;
use rushmem_system::limits::getrlimit;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::Resource;
use std::ffi::c_void;
use std::os::fd::{AsRawFd, OwnedFd};

/// Reserved pages for all heaps of a node.
#[derive(Debug)]
pub struct ReservedPages {
    file: OwnedFd,
    /// Bytes of the pages of one heap.
    of_heap: usize,
}

/// The data by which other processes open reserved pages: the number of a process, that of its
/// descriptor, and the inode number of the file.
pub type ReservedAt = (u32, i32, u64);

impl ReservedPages {
    /// Reserves pages for the heaps of a node of `n_local` PEs.
    ///
    /// # Errors
    /// When too few pages of this size are free, or the limit of file sizes is too low.
    pub fn reserve(layout: &Layout, n_local: u32) -> Result<ReservedPages, Errno> {
        let of_heap = layout.heap_bytes().next_multiple_of(layout.page().nbytes());
        let nbytes = of_heap.checked_mul(n_local as usize).ok_or(Errno::NOMEM)?;
        // Above this limit the kernel would end the process by a signal.
        if let Some(limit) = getrlimit(Resource::Fsize).current
            && limit < nbytes as u64
        {
            return Err(Errno::FBIG);
        }

        let of_this_size = match layout.page() {
            PageSize::Mib2 => MemfdFlags::HUGE_2MB,
            PageSize::Gib1 => MemfdFlags::HUGE_1GB,
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        let file = rustix::fs::memfd_create("rushmem", flags | of_this_size)?;
        rustix::fs::ftruncate(&file, nbytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;

        // The kernel reserves the pages when they are mapped, without touching them. They stay
        // reserved for the file, so the mapping itself is not needed.
        let anywhere = std::ptr::null_mut();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the call maps a new range at an address of the kernel's choice, so no mapping is
        // replaced.
        let start = unsafe { mmap(anywhere, nbytes, protection, MapFlags::SHARED, &file, 0) }?;
        // SAFETY: the range is exactly the one that was just mapped, and nothing has used it.
        unsafe { munmap(start, nbytes) }?;

        Ok(ReservedPages { file, of_heap })
    }

    /// Returns the data by which other processes open these pages, as long as this object exists.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn location(&self) -> Result<ReservedAt, Errno> {
        let inode = rustix::fs::fstat(&self.file)?.st_ino;
        Ok((std::process::id(), self.file.as_raw_fd(), inode))
    }

    /// Opens the pages that the first PE of the node has reserved.
    ///
    /// # Errors
    /// When the file cannot be opened, or is another one than the inode number says.
    pub fn open(layout: &Layout, (pid, number, inode): ReservedAt) -> Result<ReservedPages, Errno> {
        let path = format!("/proc/{pid}/fd/{number}");
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // In another PID namespace the number may be that of another process.
        if rustix::fs::fstat(&file)?.st_ino != inode {
            return Err(Errno::STALE);
        }

        let of_heap = layout.heap_bytes().next_multiple_of(layout.page().nbytes());
        Ok(ReservedPages { file, of_heap })
    }

    /// Maps the pages of the heap of the node's PE number `local` at `start`, and replaces what is
    /// mapped there.
    ///
    /// # Errors
    /// When the kernel refuses.
    ///
    /// # Safety
    /// The range is the caller's, and nobody uses it.
    pub(crate) unsafe fn map(&self, start: *mut c_void, local: u32) -> Result<(), Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let offset = u64::from(local) * self.of_heap as u64;
        // SAFETY: by contract the range is the caller's and may be replaced.
        unsafe { mmap(start, self.of_heap, protection, flags, &self.file, offset) }?;
        Ok(())
    }
}
