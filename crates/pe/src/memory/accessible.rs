//! The check that this process can access the local memory of an operation.
//!
//! A bad pointer or count is a mistake of the program. A network reports it late, by an error that
//! names no argument and may look like the loss of a peer. So the memory is probed after an
//! operation has failed, and with `SHMEM_CHECK` also before one, unless its pages are known.
#![allow(unsafe_code)]

use crate::call::{Call, fail};
use rushmem_transport::LocalBuf;
use std::io;

/// The reason why an access to more than `isize::MAX` bytes cannot be made: the number is usually
/// that of a negative count, converted to an unsigned type.
pub(super) const TOO_MANY_ELEMENTS: &str =
    "no memory has that many elements; the count is negative or too large";

/// The access of an operation to its local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAccess {
    /// A put reads its source.
    Read,
    /// A get writes its destination.
    Write,
}

impl LocalAccess {
    /// Returns what the standard calls the argument.
    pub(crate) fn argument_name(self) -> &'static str {
        match self {
            LocalAccess::Read => "source",
            LocalAccess::Write => "dest",
        }
    }
}

/// Ends the job with an error if this process cannot access the first or the last byte of `memory`.
/// Makes up to two system calls.
pub fn require_accessible(call: Call, access: LocalAccess, memory: LocalBuf) {
    if !are_ends_accessible(access, memory) {
        let argument = access.argument_name();
        let nbytes = memory.nbytes;
        if nbytes > isize::MAX as usize {
            fail!(call, "argument {argument}: {TOO_MANY_ELEMENTS}");
        }
        let able = if access == LocalAccess::Read {
            "readable"
        } else {
            "writable"
        };
        fail!(
            call,
            "argument {argument} ({:#x}, {nbytes} bytes) is not {able}; check the pointer and the count",
            memory.base.addr()
        );
    }
}

/// Returns true if this process can read the byte at an address. Makes a system call.
pub(super) fn is_mapped(addr: usize) -> bool {
    is_accessible(LocalAccess::Read, std::ptr::without_provenance(addr))
}

fn are_ends_accessible(access: LocalAccess, memory: LocalBuf) -> bool {
    if memory.nbytes == 0 {
        return true;
    }
    let last = memory.base.wrapping_add(memory.nbytes - 1);
    is_accessible(access, memory.base) && is_accessible(access, last)
}

/// Returns false if the kernel answers EFAULT when it accesses a byte. The call is one on a futex
/// that wakes no thread: the kernel compares the aligned word around the byte with 0, or combines
/// it with 0 by an atomic `or`. So the word does not change. It is on the same page as the byte.
fn is_accessible(access: LocalAccess, byte: *const u8) -> bool {
    // An operation of FUTEX_WAKE_OP has its kind in the highest four bits, and its operand 0 below.
    const OR_ZERO: u32 = (libc::FUTEX_OP_OR as u32) << 28;
    let word = byte.map_addr(|addr| addr & !3);
    let own = 0u32;
    let own = &raw const own;
    let call = libc::SYS_futex;

    let code = match access {
        LocalAccess::Read => {
            let op = libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the kernel checks the address of the word; `own` lives during the call.
            unsafe { libc::syscall(call, word, op, 0u32, 0usize, own, 0u32) }
        }
        LocalAccess::Write => {
            let op = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the kernel checks the address of the word, which keeps its value; `own` lives
            // during the call.
            unsafe { libc::syscall(call, own, op, 0u32, 0u32, word, OR_ZERO) }
        }
    };
    code >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

    const PAGE: usize = 4096;

    /// Returns three pages: one that can be written, one that can be read, and one of neither.
    fn pages() -> *mut u8 {
        let anywhere = std::ptr::null_mut();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the call makes a new mapping.
        let base = unsafe { mmap_anonymous(anywhere, 3 * PAGE, protection, MapFlags::PRIVATE) };
        let base = base.expect("memory");

        for (page, protection) in [(1, MprotectFlags::READ), (2, MprotectFlags::empty())] {
            // SAFETY: a page of the mapping, which nothing uses.
            unsafe { mprotect(base.wrapping_byte_add(page * PAGE), PAGE, protection) }
                .expect("a page");
        }
        base.cast()
    }

    #[test]
    fn either_end_is_probed_and_nothing_changes() {
        let base = pages();
        let memory = |offset, nbytes| LocalBuf {
            base: base.wrapping_add(offset),
            nbytes,
        };
        let can_read = |memory| are_ends_accessible(LocalAccess::Read, memory);
        let can_write = |memory| are_ends_accessible(LocalAccess::Write, memory);
        // SAFETY: the first page.
        unsafe { base.wrapping_add(PAGE - 1).write(7) };

        for nbytes in [0, 1, 2, 3, PAGE] {
            let end_of_first_page = memory(PAGE - nbytes, nbytes);
            assert!(can_read(end_of_first_page) && can_write(end_of_first_page));
        }
        assert!(can_read(memory(0, 2 * PAGE)));
        assert!(!can_read(memory(0, 2 * PAGE + 1)));
        assert!(!can_write(memory(PAGE - 1, 2)));

        let nowhere = LocalBuf {
            base: 0x1000 as *mut u8,
            nbytes: 8,
        };
        assert!(!can_write(nowhere) && !can_read(nowhere));
        // SAFETY: the first page.
        assert_eq!(unsafe { base.wrapping_add(PAGE - 1).read() }, 7);
    }
}
