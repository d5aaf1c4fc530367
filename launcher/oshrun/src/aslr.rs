//! Switches address space layout randomization (ASLR) off for the processes that this one starts.
#![allow(unsafe_code)]

use std::io;

use crate::failure::{Failure, reason};

/// Makes the kernel load programs that this process starts from now on at the same addresses each
/// time. This process itself stays as it is.
///
/// # Errors
/// When the kernel refuses, as in some containers.
pub fn disable() -> Result<(), Failure> {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: asks for a number of this process.
    let now = unsafe { libc::personality(QUERY) };
    let wanted = now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: it adds a flag that takes effect when a process executes a program.
    if now != -1 && unsafe { libc::personality(wanted) } != -1 {
        return Ok(());
    }
    Err(Failure::general(format!(
        "--no-aslr is refused by the kernel, as in some containers ({}); start the job without it",
        reason(&io::Error::last_os_error())
    )))
}
