//! Lets stores of other threads to pages wait until the pages were replaced, so that none is lost.
//!
//! The kernel does so by the write protection of `userfaultfd`, for which a process needs no
//! privilege here, as only stores of the program wait (Linux 5.11, on pages of shared memory 5.19).
//! Where it refuses that, as in many containers, [`faults`](super::faults) does.
#![allow(unsafe_code)]

use super::PAGE;
use super::faults::ReadOnly;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};
use std::ops::Range;
use std::os::fd::OwnedFd;
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

/// `UFFD_USER_MODE_ONLY`: stores of the program itself wait, and one by a system call fails.
const USER_MODE_ONLY: u32 = 1;
/// The version of the interface, which is also the group of its requests.
const API: u8 = 0xaa;
const FEATURE_WRITE_PROTECT: u64 = 1;
const MODE_WRITE_PROTECT: u64 = 2;
const PROTECT: u64 = 1;

const SET_API: Opcode = opcode::read_write::<Api>(API, 0x3f);
const REGISTER: Opcode = opcode::read_write::<Register>(API, 0);
const WRITE_PROTECT: Opcode = opcode::read_write::<WriteProtect>(API, 6);

/// Write-protects pages until the returned descriptor is closed.
pub(super) fn write_protect(pages: &Range<usize>) -> Result<OwnedFd, Errno> {
    // The protection of a page that was never touched would be none.
    for page in pages.clone().step_by(PAGE) {
        // SAFETY: the page is mapped for reads, as the callers of this module ensure.
        unsafe { with_exposed_provenance::<u8>(page).read_volatile() };
    }

    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
    // SAFETY: the descriptor is used for the requests below alone.
    let uffd = unsafe { userfaultfd(flags) }?;

    let mut api = Api {
        api: API.into(),
        features: FEATURE_WRITE_PROTECT,
        ioctls: 0,
    };
    request::<SET_API, _>(&uffd, &mut api)?;

    let [start, nbytes] = [pages.start as u64, pages.len() as u64];
    let mut register = Register {
        start,
        nbytes,
        mode: MODE_WRITE_PROTECT,
        ioctls: 0,
    };
    request::<REGISTER, _>(&uffd, &mut register)?;

    let mut protect = WriteProtect {
        start,
        nbytes,
        mode: PROTECT,
    };
    request::<WRITE_PROTECT, _>(&uffd, &mut protect)?;
    Ok(uffd)
}

/// Makes a request, for which the kernel reads and writes `argument`.
fn request<const REQUEST: Opcode, T>(uffd: &OwnedFd, argument: &mut T) -> Result<(), Errno> {
    // SAFETY: each caller passes the structure of its request.
    let updater = unsafe { Updater::<REQUEST, T>::new(argument) };
    // SAFETY: the requests of this module decide which stores wait, and nothing more.
    unsafe { ioctl(uffd, updater) }
}
