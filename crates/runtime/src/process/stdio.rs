//! Output of the program that its languages buffer. Under a launcher, C's standard output is
//! buffered by line. Before the library ends the process, because of an error or a global exit, all
//! buffers are written: those of C here, those of other languages by functions that their
//! interfaces register.
#![allow(unsafe_code)]

use crate::process;
use std::sync::OnceLock;
use std::time::Duration;

/// The time that writing the buffers may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Writes the buffers of another language.
static MORE: OnceLock<fn()> = OnceLock::new();

/// Makes the library call `flush` before it ends the process, beside C's `fflush`, from its own
/// thread.
pub fn also_flush(flush: fn()) {
    // Each initialization of the library registers the same function.
    let _ = MORE.set(flush);
}

/// Makes the C library buffer standard output by line: under a launcher it is a pipe, and buffered
/// output is lost if another PE ends the job.
pub(crate) fn print_line_by_line() {
    unsafe extern "C" {
        #[link_name = "stdout"]
        static mut STDOUT: *mut libc::FILE;
    }
    // SAFETY: the C library sets this variable before `main` runs and never changes it.
    let stream = unsafe { STDOUT };
    // SAFETY: the stream is open, and the call locks it. If it fails, output is written later.
    unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

/// Writes the buffered output. A stream is locked while a thread reads from it, perhaps forever,
/// and the caller itself may have locked one. So another thread writes, and the caller waits for it
/// for [`LIMIT`] at most. In a child of the PE nothing is written: its buffers are copies of those
/// of the PE.
pub(crate) fn flush() {
    if process::is_child() {
        return;
    }
    let (done, flushed) = std::sync::mpsc::channel();
    let flush = move || {
        MORE.get().inspect(|flush| flush());
        // SAFETY: null stands for all streams of the C library.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // After the limit the caller is gone.
        let _ = done.send(());
    };
    // If no thread can be started, nothing is written.
    if std::thread::Builder::new().spawn(flush).is_ok() {
        let _ = flushed.recv_timeout(LIMIT);
    }
}
