//! Disables address space layout randomization (ASLR) for the processes that this one starts.
#![allow(unsafe_code)]

use std::io;

use crate::report::failure::{StartFailure, reason};

/// Disables ASLR for programs that this process executes from now on.
pub fn disable() -> Result<(), StartFailure> {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: the call only returns a value.
    let now = unsafe { libc::personality(QUERY) };
    let wanted = now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: the added flag takes effect only in execve.
    if now != -1 && unsafe { libc::personality(wanted) } != -1 {
        return Ok(());
    }
    // Cause: the container forbids `personality`.
    Err(StartFailure::general(format!(
        "--no-aslr is refused by the kernel, as in some containers ({}); start the job without it",
        reason(&io::Error::last_os_error())
    )))
}
