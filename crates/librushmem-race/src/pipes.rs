//! Orders the threads of a program by pipes and eventfds.
//!
//! These functions stand before those of the C library for the whole process, since a program may
//! have functions of its own with such names, which the linker's `--wrap` would mistake for them.
#![allow(unsafe_code)]

use crate::next::around_next;
use crate::objects::{Tag, acquire, object, release};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use rushmem_race::process::active;
use rushmem_race::{known, sites};

around_next! {
    reads(0): read readv eventfd_read __read_chk;
    writes(0): write writev eventfd_write;
}

fn reads(fd: usize, next: impl FnOnce() -> usize) -> usize {
    let result = next();
    if result as c_int != -1
        && let Some(pipe) = pipe_of(fd)
    {
        acquire(pipe);
    }
    result
}

fn writes(fd: usize, next: impl FnOnce() -> usize) -> usize {
    if let Some(pipe) = pipe_of(fd) {
        release(pipe);
    }
    next()
}

/// Returns the object of a pipe or eventfd that the program reads or writes. Both ends of a pipe are
/// one file, and so are all eventfds.
fn pipe_of(fd: usize) -> Option<usize> {
    // A handler of a signal may write while its thread is in the detector.
    if active().is_none() || known::is_recording() {
        return None;
    }
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: writes the status if it returns 0.
    if unsafe { libc::fstat(fd as c_int, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: written above.
    let status = unsafe { status.assume_init() };
    // An eventfd has no type.
    let is_one = matches!(status.st_mode & libc::S_IFMT, 0 | libc::S_IFIFO);
    (is_one && !sites::library_calls()).then(|| object(Tag::Pipe, status.st_ino as usize))
}
