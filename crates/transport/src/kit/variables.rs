//! Defaults of a C library that only variables of the environment set; those of the user prevail.
//!
//! A program may have threads that read the environment meanwhile: nothing of it is changed or
//! freed, a longer one takes its place as long as the library reads it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Calls `read`, in which a library reads its variables. Each of `ours` is `NAME=value`. Where the
/// user sets a variable, the library reads the user's value.
pub fn with<R>(ours: &[&'static CStr], read: impl FnOnce() -> R) -> R {
    let environ = &raw mut libc::environ;
    // SAFETY: libc's variable is aligned, and lives as long as the process.
    let environ = unsafe { AtomicPtr::from_ptr(environ) };
    let before = environ.load(Ordering::Acquire);
    // SAFETY: the process's environment.
    let longer = unsafe { with_ours(before, ours) };
    // It is never freed: a thread may go on reading it.
    let longer = Box::leak(longer.into_boxed_slice()).as_mut_ptr();
    environ.store(longer, Ordering::Release);
    let answer = read();
    // Unless a thread has set a variable meanwhile, which made yet another one.
    let _ = environ.compare_exchange(longer, before, Ordering::AcqRel, Ordering::Relaxed);
    answer
}

/// The entries of an environment and those of ours whose names are not in it, with a null at the
/// end.
///
/// # Safety
/// `environ` is null or such a list of strings.
unsafe fn with_ours(environ: *mut *mut c_char, ours: &[&'static CStr]) -> Vec<*mut c_char> {
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
    // SAFETY: entries are strings that are never freed.
    let names: Vec<_> =
        entries.iter().map(|&entry| name(unsafe { CStr::from_ptr(entry) })).collect();
    let missing = ours.iter().filter(|&ours| !names.contains(&name(ours)));
    entries.extend(missing.map(|ours| ours.as_ptr().cast_mut()));
    entries.push(null_mut());
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_stays() {
        let ours = [c"ONE=1", c"TWO=2"];
        let mut said = [c"A=b".as_ptr().cast_mut(), c"TWO=7".as_ptr().cast_mut(), null_mut()];
        // SAFETY: a list of strings with a null at the end.
        let entries = unsafe { with_ours(said.as_mut_ptr(), &ours) };
        assert_eq!(entries, [said[0], said[1], ours[0].as_ptr().cast_mut(), null_mut()]);
        // SAFETY: null.
        let entries = unsafe { with_ours(null_mut(), &ours) };
        assert_eq!(entries, [ours[0].as_ptr().cast_mut(), ours[1].as_ptr().cast_mut(), null_mut()]);
    }

    #[test]
    fn it_is_set_only_during_the_call() {
        const NAME: &str = "RUSHMEM_TEST_OF_VARIABLES";
        assert_eq!(std::env::var(NAME).ok(), None, "a variable that this test needs unset");
        let value = with(&[c"RUSHMEM_TEST_OF_VARIABLES=7"], || std::env::var(NAME).ok());
        assert_eq!(value.as_deref(), Some("7"));
        assert_eq!(std::env::var(NAME).ok(), None);
    }
}
