//! Local memory that an operation names but this process cannot access: a mistake of the program,
//! not the loss of a PE.
//!
//! A provider reports it where its network or the kernel finds it, which may be after the call.
#![allow(unsafe_code)]

use crate::LocalBuf;
use std::{fmt, io};

/// The access of an operation to its local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAccess {
    /// It reads the source of a put.
    Read,
    /// It writes the destination of a get.
    Write,
}

impl LocalAccess {
    /// Returns what the standard calls the argument.
    pub fn argument(self) -> &'static str {
        match self {
            LocalAccess::Read => "source",
            LocalAccess::Write => "dest",
        }
    }
}

/// Memory that cannot be accessed, as the argument of the call that it was passed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    access: LocalAccess,
    base: usize,
    nbytes: usize,
}

/// The size in bytes of the smallest unit in which the kernel protects memory.
const PAGE: usize = 4096;

impl Fault {
    /// A transfer of more bytes takes some tens of microseconds where CPUs move the data, and
    /// [`at_ends`](Fault::at_ends) less than one.
    pub const LONG: usize = 64 << 10;

    /// Returns memory that the kernel or a library could not access.
    pub fn new(access: LocalAccess, memory: LocalBuf) -> Fault {
        Fault { access, base: memory.base.addr(), nbytes: memory.nbytes }
    }

    /// Returns the fault of this memory if its first or last byte cannot be accessed. It takes a
    /// short system call for each page of the two, and changes nothing.
    pub fn at_ends(access: LocalAccess, memory: LocalBuf) -> Option<Fault> {
        let (first, last) = (memory.base, memory.base.wrapping_add(memory.nbytes.checked_sub(1)?));
        let on_one_page = first.addr() / PAGE == last.addr() / PAGE;
        let fails = is_refused(access, first) || !on_one_page && is_refused(access, last);
        fails.then(|| Fault::new(access, memory))
    }

    /// Returns the fault of this memory if any of it cannot be accessed: for an operation that has
    /// failed, since it takes a system call for each page, and puts memory behind each page that is
    /// to be written.
    pub fn within(access: LocalAccess, memory: LocalBuf) -> Option<Fault> {
        let pages = || {
            let mut pages = (0..memory.nbytes).step_by(PAGE);
            let fails = pages.any(|at| is_refused(access, memory.base.wrapping_add(at)));
            fails.then(|| Fault::new(access, memory))
        };
        Fault::at_ends(access, memory).or_else(pages)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let able = match self.access {
            LocalAccess::Read => "readable",
            LocalAccess::Write => "writable",
        };
        let Fault { access, base, nbytes } = self;
        let argument = access.argument();
        // Cause: private memory is not mapped, or a constant is the destination of a get. Remedy:
        // check the pointer and the count.
        write!(f, "argument {argument} ({base:#x}, {nbytes} bytes) is not {able}")
    }
}

/// Returns true if the kernel refuses to access a byte. If it does not try for another reason, the
/// byte counts as accessible.
fn is_refused(access: LocalAccess, at: *const u8) -> bool {
    // The aligned word that contains the byte is on the same page.
    let word = at.map_addr(|at| at & !3);
    let result = match access {
        LocalAccess::Read => read(word),
        LocalAccess::Write => write(word),
    };
    result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// Has the kernel compare a word with 0, and wake or requeue no thread if it is equal. It does not
/// wait, as `FUTEX_WAIT` does even for no time.
fn read(word: *const u8) -> libc::c_long {
    let op = libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
    // No thread waits on it.
    let own = 0u32;
    // SAFETY: the kernel checks the address of the word; the local word lives.
    unsafe { libc::syscall(libc::SYS_futex, word, op, 0u32, 0usize, &raw const own, 0u32) }
}

/// Has the kernel combine a word with 0 by an atomic `or`, which leaves it as it is.
fn write(word: *const u8) -> libc::c_long {
    const OR_ZERO: u32 = (libc::FUTEX_OP_OR as u32) << 28;
    let op = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    // No thread waits on it.
    let own = 0u32;
    // SAFETY: the kernel checks the address of the word, which keeps its value; the local word
    // lives.
    unsafe { libc::syscall(libc::SYS_futex, &raw const own, op, 0u32, 0u32, word, OR_ZERO) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

    /// Returns three pages: one that can be written, one that can be read, and one of neither.
    fn pages() -> *mut u8 {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let (nowhere, nbytes) = (std::ptr::null_mut(), 3 * PAGE);
        // SAFETY: a new mapping.
        let base = unsafe { mmap_anonymous(nowhere, nbytes, protection, MapFlags::PRIVATE) };
        let base = base.expect("memory");
        for (page, protection) in [(1, MprotectFlags::READ), (2, MprotectFlags::empty())] {
            // SAFETY: a page of the mapping, which nothing uses.
            unsafe { mprotect(base.wrapping_byte_add(page * PAGE), PAGE, protection) }
                .expect("a page");
        }
        base.cast()
    }

    #[test]
    fn a_fault_is_found_at_either_end_and_nothing_changes() {
        let base = pages();
        let memory = |at, nbytes| LocalBuf { base: base.wrapping_add(at), nbytes };
        // SAFETY: the first page.
        unsafe { base.wrapping_add(PAGE - 1).write(7) };
        let fails = |access, memory| Fault::at_ends(access, memory).is_some();
        for nbytes in [0, 1, 2, 3, PAGE] {
            assert!(!fails(LocalAccess::Read, memory(PAGE - nbytes, nbytes)), "{nbytes}");
            assert!(!fails(LocalAccess::Write, memory(PAGE - nbytes, nbytes)), "{nbytes}");
        }
        assert!(!fails(LocalAccess::Read, memory(0, 2 * PAGE)));
        assert!(fails(LocalAccess::Read, memory(0, 2 * PAGE + 1)));
        assert!(fails(LocalAccess::Write, memory(PAGE - 1, 2)));
        let holed = memory(0, 3 * PAGE);
        assert!(Fault::within(LocalAccess::Read, holed).is_some());
        assert!(Fault::within(LocalAccess::Read, holed.first(2 * PAGE)).is_none());
        assert!(Fault::within(LocalAccess::Write, holed.first(PAGE + 1)).is_some());
        assert!(Fault::within(LocalAccess::Write, holed.first(PAGE)).is_none());
        assert!(fails(LocalAccess::Write, LocalBuf { base: 0x1000 as *mut u8, nbytes: 8 }));
        assert!(fails(LocalAccess::Read, LocalBuf { base: 0x1000 as *mut u8, nbytes: 8 }));
        // SAFETY: the first page.
        assert_eq!(unsafe { base.wrapping_add(PAGE - 1).read() }, 7);
    }

    #[test]
    fn the_argument_is_named() {
        let memory = LocalBuf { base: 0x1000 as *mut u8, nbytes: 100_000 };
        let source = Fault::new(LocalAccess::Read, memory).to_string();
        assert_eq!(source, "argument source (0x1000, 100000 bytes) is not readable");
        let dest = Fault::new(LocalAccess::Write, memory).to_string();
        assert_eq!(dest, "argument dest (0x1000, 100000 bytes) is not writable");
    }
}
