//! Defaults of a C library that only variables of the environment set; those of the user prevail.
//!
//! They stay in the environment of the process: libraries read some of them again for each
//! endpoint, when the program may have threads that read or set variables. They are added while the
//! library is initialized, and later only if the program has removed them. For threads that read
//! the environment then, nothing of it is changed or freed: a longer one takes its place.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Sets variables that the user has not set. Each of `ours` is `NAME=value`.
pub fn set(ours: &[&'static CStr]) {
    let environ = &raw mut libc::environ;
    // SAFETY: libc's variable is aligned, and lives as long as the process.
    let environ = unsafe { AtomicPtr::from_ptr(environ) };
    let mut before = environ.load(Ordering::Acquire);
    loop {
        // SAFETY: the process's environment.
        let Some(longer) = (unsafe { with_ours(before, ours) }) else { return };
        // It is never freed: a thread may go on reading it.
        let longer = Box::leak(longer.into_boxed_slice()).as_mut_ptr();
        match environ.compare_exchange(before, longer, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            // A thread has set a variable meanwhile.
            Err(now) => before = now,
        }
    }
}

/// Returns the entries of an environment and those of ours whose names are not in it, with a null
/// at the end; `None` if all names are.
///
/// # Safety
/// `environ` is null or such a list of strings.
unsafe fn with_ours(environ: *mut *mut c_char, ours: &[&'static CStr]) -> Option<Vec<*mut c_char>> {
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
    let n = entries.len();
    let missing = ours.iter().filter(|&ours| !names.contains(&name(ours)));
    entries.extend(missing.map(|ours| ours.as_ptr().cast_mut()));
    let is_longer = entries.len() > n;
    entries.push(null_mut());
    is_longer.then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_stays() {
        let ours = [c"ONE=1", c"TWO=2"];
        let mut environ = [c"A=b".as_ptr().cast_mut(), c"TWO=7".as_ptr().cast_mut(), null_mut()];
        // SAFETY: a list of strings with a null at the end.
        let entries = unsafe { with_ours(environ.as_mut_ptr(), &ours) }.expect("ONE is missing");
        assert_eq!(entries, [environ[0], environ[1], ours[0].as_ptr().cast_mut(), null_mut()]);
        // SAFETY: null.
        let entries = unsafe { with_ours(null_mut(), &ours) }.expect("both are missing");
        assert_eq!(entries, [ours[0].as_ptr().cast_mut(), ours[1].as_ptr().cast_mut(), null_mut()]);
        // SAFETY: the list above.
        assert_eq!(unsafe { with_ours(environ.as_mut_ptr(), &ours[1..]) }, None);
    }

    #[test]
    fn they_stay() {
        const NAME: &str = "RUSHMEM_TEST_OF_VARIABLES";
        assert_eq!(std::env::var(NAME).ok(), None, "a variable that this test needs unset");
        set(&[c"RUSHMEM_TEST_OF_VARIABLES=7"]);
        set(&[c"RUSHMEM_TEST_OF_VARIABLES=8"]);
        assert_eq!(std::env::var(NAME).as_deref(), Ok("7"));
    }
}
