//! What libfabric is told by its own variables, where the user says nothing.
//!
//! libfabric reads its variables once, when it is opened and first asked what it has, and nothing else sets these.
//! Its layer above connections, rxm, takes buffers for some 5,000 messages of 16 KiB for every endpoint, 85 MiB,
//! whatever is asked of it; the messages here have 48 bytes. A library below its provider psm takes the
//! process's signals, so that one that crashes would end with status 1 instead.
//!
//! rxm also makes each endpoint's ring of completions long enough for 1024 processes: 12 MiB, of which every
//! operation touches 48 bytes more, as if it left them behind. Over TCP a ring that is full goes on in a list.
//! A NIC's would be too short for its connections, and Slingshot makes more of the same variable: where there
//! is a NIC, nothing is said of it.
//!
//! A program may have threads that read the environment meanwhile: nothing of it is changed or freed, a
//! longer one takes its place as long as libfabric reads it.
#![allow(unsafe_code)]

use rushmem_transport::device;
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `NAME=value`.
const OURS: [&CStr; 3] =
    [c"FI_OFI_RXM_BUFFER_SIZE=1024", c"FI_OFI_RXM_MSG_RX_SIZE=512", c"IPATH_NO_BACKTRACE=1"];
/// As above, where there is no NIC.
const WITHOUT_CARDS: &CStr = c"FI_UNIVERSE_SIZE=4";

/// Lets libfabric read its variables: `ask` makes it do so.
pub(crate) fn told<R>(ask: impl FnOnce() -> R) -> R {
    let environ = &raw mut libc::environ;
    // SAFETY: libc's variable is aligned, and lives as long as the process.
    let environ = unsafe { AtomicPtr::from_ptr(environ) };
    let before = environ.load(Ordering::Acquire);
    // SAFETY: the process's environment.
    let longer = unsafe { with_ours(before, !device::any()) };
    // It is never freed: somebody may go on reading it.
    let longer = Box::leak(longer.into_boxed_slice()).as_mut_ptr();
    environ.store(longer, Ordering::Release);
    let answer = ask();
    // Unless somebody has set a variable meanwhile, which made yet another one.
    let _ = environ.compare_exchange(longer, before, Ordering::AcqRel, Ordering::Relaxed);
    answer
}

/// The entries of an environment and those of ours whose names are not in it, with a null at the end; of ours
/// also that for machines without NICs where `no_nics`.
///
/// # Safety
/// `environ` is null or such a list of strings.
unsafe fn with_ours(environ: *mut *mut c_char, no_nics: bool) -> Vec<*mut c_char> {
    let mut entries = Vec::new();
    let mut at = environ;
    // SAFETY: not beyond the null at the end.
    while let Some(&entry) = unsafe { at.as_ref() }
        && !entry.is_null()
    {
        entries.push(entry);
        at = at.wrapping_add(1);
    }
    let name =
        |entry: &CStr| entry.to_bytes().split(|&byte| byte == b'=').next().map(<[u8]>::to_vec);
    // SAFETY: entries are strings that nobody frees.
    let names: Vec<_> =
        entries.iter().map(|&entry| name(unsafe { CStr::from_ptr(entry) })).collect();
    let ours = OURS.into_iter().chain(no_nics.then_some(WITHOUT_CARDS));
    let missing = ours.filter(|ours| !names.contains(&name(ours)));
    entries.extend(missing.map(|ours| ours.as_ptr().cast_mut()));
    entries.push(null_mut());
    entries
}

#[cfg(test)]
mod tests;
