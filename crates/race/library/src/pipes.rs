//! Orders the threads of a program by pipes, eventfds and sockets.
//!
//! These functions interpose those of the C library for the whole process. The linker's `--wrap` is
//! not used for them: it would also replace the program's own functions of the same names. They may
//! run in a signal handler. So after the first call of each, which looks up the original function,
//! they take no lock and allocate nothing unless the file is one of these.
#![allow(unsafe_code)]

use crate::synchronization::{Tag, acquire, object, release};
use crate::tsan::with_return_address;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use rushmem_race::known;
use rushmem_race::process::active;
use std::io::Write as _;

/// Defines functions of at most five arguments that interpose those of their names. Each row has a
/// function of this file, which gets the first argument, the return address, and a closure that
/// calls the original function.
macro_rules! around_next_with_return_address {
    ($($around:ident: $($name:ident)+;)*) => {$($(
        mod $name {
            pub extern "C" fn call(
                fd: usize, b: usize, c: usize, d: usize, e: usize, return_address: usize,
            ) -> usize {
                static NEXT: std::sync::OnceLock<crate::next::Next> = std::sync::OnceLock::new();
                const NAME: &str = concat!(stringify!($name), "\0");
                // SAFETY: the function has such arguments.
                let next = unsafe { crate::next::next_once(&NEXT, NAME) };
                // SAFETY: the caller keeps the contract of the function of this name.
                super::$around(fd, return_address, || unsafe { next(fd, b, c, d, e, 0, 0, 0) })
            }
        }
        with_return_address! { $name => $name::call; }
    )+)*};
}

around_next_with_return_address! {
    read_pipe: read readv eventfd_read __read_chk recv recvmsg recvmmsg __recv_chk;
    write_pipe: write writev eventfd_write send sendmsg sendmmsg;
}

fn read_pipe(fd: usize, return_address: usize, next: impl FnOnce() -> usize) -> usize {
    let result = next();
    if result as c_int != -1
        && let Some(pipe) = pipe_of(fd, return_address)
    {
        acquire(pipe);
    }
    result
}

fn write_pipe(fd: usize, return_address: usize, next: impl FnOnce() -> usize) -> usize {
    if let Some(pipe) = pipe_of(fd, return_address) {
        release(pipe);
    }
    next()
}

/// Returns the object of a pipe, eventfd or socket that the program reads or writes. Both ends of a
/// pipe have one inode; all eventfds share one; sockets do not tell which other one they are
/// connected to, so all are one object. Standard input, output and error have no object, since the
/// threads of a program do not synchronize by them.
fn pipe_of(fd: usize, return_address: usize) -> Option<usize> {
    let fd = fd as c_int;
    if fd <= libc::STDERR_FILENO || active().is_none() || known::is_recording() {
        return None;
    }

    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: writes the status to the variable above, if it returns 0.
    if unsafe { libc::fstat(fd, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call above has returned 0, so it has written the status.
    let status = unsafe { status.assume_init() };

    let object = match status.st_mode & libc::S_IFMT {
        libc::S_IFIFO => object(Tag::Pipe, status.st_ino as usize),
        libc::S_IFSOCK => object(Tag::Socket, 0),
        // The kernel reports no file type for an eventfd, nor for a timerfd and the like.
        0 if is_eventfd(fd) => object(Tag::Pipe, status.st_ino as usize),
        _ => return None,
    };
    // Asked last: to find the file of the caller takes a lock of the loader.
    if !is_of_program(return_address) {
        return None;
    }
    Some(object)
}

/// Returns true if a file without a type is an eventfd. No thread writes the others, such as a
/// timerfd. Without /proc they cannot be told apart, so that each counts as an eventfd.
fn is_eventfd(fd: c_int) -> bool {
    let mut link = [0; 32];
    let is_written = write!(&mut link[..], "/proc/self/fd/{fd}\0");
    is_written.expect("a number has 10 digits");

    let mut target = [0; 32];
    // SAFETY: a path that ends with a null byte, and a buffer with its length.
    let nbytes = unsafe {
        libc::readlink(
            link.as_ptr().cast(),
            target.as_mut_ptr().cast(),
            target.len(),
        )
    };

    match usize::try_from(nbytes) {
        Ok(n) => &target[..n] == b"anon_inode:[eventfd]",
        // There is no /proc.
        Err(_) => true,
    }
}

/// Returns true unless Rushmem, UCX or libfabric makes the call, or code that is of no loaded file.
fn is_of_program(return_address: usize) -> bool {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: writes the description of the address to the variable above, if it does not return 0.
    if unsafe {
        libc::dladdr(
            std::ptr::with_exposed_provenance(return_address),
            found.as_mut_ptr(),
        )
    } == 0
    {
        return false;
    }
    // SAFETY: the call above has not returned 0, so it has written the description.
    let file = unsafe { found.assume_init() }.dli_fname;
    // SAFETY: the loader's string for the path of a loaded file, which ends with a null byte.
    let path = unsafe { CStr::from_ptr(file) }.to_bytes();

    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    !["librushmem", "libuc", "libfabric"]
        .iter()
        .any(|start| name.starts_with(start.as_bytes()))
}
