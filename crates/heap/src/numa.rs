//! Selects the NUMA node for the pages of a range.
#![allow(unsafe_code)]

use rustix::io::Errno;
use std::ffi::{c_long, c_ulong};
use std::ptr::NonNull;

/// Bits of a word of the kernel's node masks.
const WORD: u32 = c_ulong::BITS;

/// Makes the kernel take new pages of a mapped range from the memory of NUMA node `node`, whichever
/// process touches them first, and from other nodes if that is full. Pages that exist already do
/// not move.
///
/// # Errors
/// Kernels without NUMA and many containers refuse it.
pub(crate) fn prefer(start: NonNull<u8>, nbytes: usize, node: u32) -> Result<(), Errno> {
    let word = (node / WORD) as usize;
    let mut mask: Vec<c_ulong> = vec![0; word + 1];
    mask[word] = 1 << (node % WORD);

    // The kernel uses one bit less than the number that it is passed.
    let bits = mask.len() as c_ulong * c_ulong::from(WORD) + 1;
    // SAFETY: the call changes no contents of the range, only from which node new pages are taken.
    // The mask has the bits that the call reads.
    let status: c_long = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start.as_ptr(),
            nbytes,
            libc::MPOL_PREFERRED,
            mask.as_ptr(),
            bits,
            0,
        )
    };
    if status != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    Ok(())
}
