//! Lets stores of other threads to pages wait until the pages were replaced, so that none is lost.
//!
//! The kernel does so by the write protection of `userfaultfd`, for which a process needs no
//! privilege here, as only stores of the program wait (Linux 5.11, on pages of shared memory 5.19).
//! Where it refuses that, as in many containers, [`faults`](super::faults) does.
#![allow(unsafe_code)]

use super::faults::ReadOnly;
use super::{PAGE, last_error};
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::with_exposed_provenance;

/// Pages to which stores wait. Its drop lets the stores go on.
pub(super) enum WaitingStores {
    /// No other thread could store.
    None,
    /// The kernel stops stores until the descriptor is closed.
    ByKernel { _uffd: OwnedFd },
    /// A handler of faults does.
    ByFaults(ReadOnly),
}

impl WaitingStores {
    /// Makes stores to these pages wait.
    ///
    /// # Errors
    /// When neither the kernel nor a handler of faults can do it.
    pub(super) fn of(pages: &Range<usize>) -> Result<WaitingStores, Errno> {
        if has_one_thread() {
            return Ok(WaitingStores::None);
        }
        match write_protect(pages) {
            Ok(_uffd) => Ok(WaitingStores::ByKernel { _uffd }),
            Err(_) => ReadOnly::make(pages).map(WaitingStores::ByFaults),
        }
    }

    /// Lets the stores go on, after the pages were replaced by others if `are_replaced` is set.
    pub(super) fn end(self, are_replaced: bool) {
        match self {
            WaitingStores::ByFaults(read_only) => read_only.end(are_replaced),
            WaitingStores::None | WaitingStores::ByKernel { .. } => {}
        }
    }
}

fn has_one_thread() -> bool {
    // The directory has two links, and another one for each thread.
    rustix::fs::stat("/proc/self/task").is_ok_and(|task| task.st_nlink <= 3)
}

/// The structures of `linux/userfaultfd.h`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    nbytes: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    start: u64,
    nbytes: u64,
    mode: u64,
}

const USER_MODE_ONLY: libc::c_int = 1;
const API: u64 = 0xaa;
const FEATURE_WRITE_PROTECT: u64 = 1;
const MODE_WRITE_PROTECT: u64 = 2;
const PROTECT: u64 = 1;

/// The number of a request with a structure of this size that the kernel reads and writes.
const fn request<T>(number: u64) -> u64 {
    3 << 30 | (size_of::<T>() as u64) << 16 | API << 8 | number
}

/// Write-protects pages until the returned descriptor is closed.
fn write_protect(pages: &Range<usize>) -> Result<OwnedFd, Errno> {
    // The protection of a page that was never touched would be none.
    for page in pages.clone().step_by(PAGE) {
        // SAFETY: the page is mapped for reads, as the callers of this module ensure.
        unsafe { with_exposed_provenance::<u8>(page).read_volatile() };
    }

    let flags = libc::O_CLOEXEC | USER_MODE_ONLY;
    // SAFETY: the call has no preconditions.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let uffd = unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) };

    let mut api = Api {
        api: API,
        features: FEATURE_WRITE_PROTECT,
        ioctls: 0,
    };
    control(&uffd, request::<Api>(0x3f), &mut api)?;
    let [start, nbytes] = [pages.start as u64, pages.len() as u64];
    let mut register = Register {
        start,
        nbytes,
        mode: MODE_WRITE_PROTECT,
        ioctls: 0,
    };
    control(&uffd, request::<Register>(0), &mut register)?;
    let mut protect = WriteProtect {
        start,
        nbytes,
        mode: PROTECT,
    };
    control(&uffd, request::<WriteProtect>(6), &mut protect)?;
    Ok(uffd)
}

fn control<T>(uffd: &OwnedFd, request: u64, argument: &mut T) -> Result<(), Errno> {
    // SAFETY: each request gets the structure that it takes, which lives during the call.
    let code = unsafe { libc::ioctl(uffd.as_raw_fd(), request as _, &raw mut *argument) };
    if code < 0 { Err(last_error()) } else { Ok(()) }
}
