//! Output that the libraries of the program's languages buffer. Under a launcher, little is
//! buffered; before the library ends the process, because of a misuse or a global exit, all of it
//! is written.
//!
//! This file knows the streams of C; the interfaces of other languages register what else must be
//! written.
#![allow(unsafe_code)]

use crate::process;
use std::sync::OnceLock;
use std::time::Duration;

/// The time for which it may take to write what is held back.
const LIMIT: Duration = Duration::from_secs(1);

/// Writes what another language holds back.
static MORE: OnceLock<fn()> = OnceLock::new();

/// Makes the library call `flush` before it ends the process, beside C's `fflush`, from its own
/// thread.
pub fn also_flush(flush: fn()) {
    // It is the same one whenever the program initializes the library.
    let _ = MORE.set(flush);
}

/// Makes the C library print line by line into the pipe of a launcher: what it holds back is lost
/// if another PE ends the job.
pub(crate) fn print_line_by_line() {
    unsafe extern "C" {
        #[link_name = "stdout"]
        static mut STDOUT: *mut libc::FILE;
    }
    // SAFETY: the C library's stream, which it sets before the program's main runs.
    let stream = unsafe { STDOUT };
    // SAFETY: an open stream, which the call locks; it takes a buffer of its own. Where it refuses,
    // lines leave later.
    unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

/// Writes what is held back. A stream is locked while a thread reads from it, forever if nothing
/// comes, and the caller itself may have locked one; so this is done in a thread of its own and
/// waited for no longer than [`LIMIT`]. In a child of the PE nothing is written: what it holds back
/// is a copy of what the PE will write.
pub(crate) fn flush() {
    if process::is_child() {
        return;
    }
    let (done, flushed) = std::sync::mpsc::channel();
    let flush = move || {
        MORE.get().inspect(|flush| flush());
        // SAFETY: null means every stream of the C library.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // The caller waits no longer when it took too long.
        let _ = done.send(());
    };
    // Without memory for a thread the sender is dropped, and there is nothing to wait for.
    if std::thread::Builder::new().spawn(flush).is_ok() {
        let _ = flushed.recv_timeout(LIMIT);
    }
}
