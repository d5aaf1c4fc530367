//! Finds the file and line in which the program calls the library, for messages.
//!
//! Nothing is recorded in advance: the stack and the debug information are read when a message
//! needs them. Without debug information, or without unwind tables, there is no location.

use super::backtrace::{frames, library_test, relative_path};
use super::python::{self, PythonLine};
use rushmem_transport::thread::without_signals;
use std::backtrace::Backtrace;
use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

/// The time after which a message is printed without a location: the debug information of a large
/// program has gigabytes.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// A place in the program.
pub(crate) struct Location {
    /// `FILE:LINE`.
    line: String,
    function: String,
}

/// The stack of a call of the library, captured before its location is searched for.
pub(crate) struct CapturedCall {
    stack: Backtrace,
    in_python: Option<PythonLine>,
}

impl CapturedCall {
    /// Captures the stack of this thread and, in a Python program, the line.
    pub(crate) fn capture() -> CapturedCall {
        CapturedCall {
            stack: Backtrace::force_capture(),
            in_python: python::line_of_caller(),
        }
    }

    /// Returns true if this process has a Python interpreter. A Python program may then have made
    /// the call, whose line the native stack does not show.
    pub(crate) fn may_be_in_python(&self) -> bool {
        self.in_python.is_some()
    }

    /// Returns where the program has called the library. Reads the debug information, which may
    /// take long, or waits for the lock of the Python interpreter.
    pub(crate) fn locate(self) -> Option<Location> {
        let in_python = self.in_python.and_then(PythonLine::get).map(Location::new);
        in_python.or_else(|| locate_on_stack(&self.stack))
    }
}

/// Calls `search`, which reads debug information, in another thread: this thread may be in a signal
/// handler that has interrupted a function which the reading needs. If no thread can be started,
/// `search` is not called.
pub(crate) fn in_other_thread(search: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("rushmem-place".into());
    let _ = without_signals(|| thread.spawn(search));
}

/// Finds where the program has called the library on this thread. Another thread then calls
/// `found`.
pub(crate) fn find(found: impl FnOnce(Option<Location>) + Send + 'static) {
    let call = CapturedCall::capture();
    in_other_thread(move || found(call.locate()));
}

/// Returns where the program has called the library, from the stack of the call. Reads the debug
/// information, which may take long.
pub(crate) fn locate_on_stack(stack: &Backtrace) -> Option<Location> {
    // The alternate form has whole paths, by which the sources of the library are recognized.
    first_outside(&format!("{stack:#}"))
}

impl Location {
    fn new((line, function): python::Line) -> Location {
        Location {
            line: relative_path(&line),
            function,
        }
    }

    /// Returns `FILE:LINE` without the directory.
    pub(crate) fn short(&self) -> &str {
        self.line.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns `FILE:LINE` of the call, if that is found within [`LIMIT`].
fn locate_caller() -> Option<String> {
    let (found, receiver) = mpsc::channel();
    // After the limit the receiver is gone, which does not matter.
    find(move |place| drop(found.send(place)));
    Some(receiver.recv_timeout(LIMIT).ok()??.line)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.line, self.function)
    }
}

/// Returns the clause of a message that names the place of the call; empty if the place is not
/// known, or if `message` has it already.
pub(crate) fn clause(message: fmt::Arguments<'_>) -> String {
    let is_new = |place: &String| {
        let file = place.rsplit('/').next();
        file.is_some_and(|file| !message.to_string().contains(file))
    };
    let place = locate_caller().filter(is_new);
    place.map_or_else(String::new, |place| format!(" (called at {place})"))
}

/// Returns the location of the innermost frame outside the library, in the text of a backtrace.
fn first_outside(stack: &str) -> Option<Location> {
    let frames = frames(stack);
    let is_ours = library_test(&frames);
    // A frame without a place does not count: a frame of ours may follow it.
    let outside = frames
        .iter()
        .position(|frame| frame.place.is_some() && !is_ours(frame))?;
    let follows_ours = is_ours(frames.get(outside.checked_sub(1)?)?);
    let frame = Some(frames[outside]).filter(|frame| follows_ours && !frame.is_outermost())?;
    Some(Location {
        line: frame.line()?,
        function: frame.function(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_the_first_frame_outside() {
        let in_c = "   0:     0x7f01 - find
             at /a/crates/runtime/src/call/location.rs:20:9
   1:     0x7f02 - put
             at /a/crates/librushmem/../shmem-c/src/export.rs:30:9
   2:     0x7f03 - poll
   3:     0x7f03 - pshmem_int_put
   4:     0x5501 - write_all
             at /b/write.c:42:9
   5:     0x5502 - main
             at /b/program.c:12:5
   6:     0x7f04 - __libc_start_call_main
             at ./nptl/libc_start_call_main.h:58:16
";
        let found = |text| first_outside(text).map(|place| place.to_string());
        assert_eq!(found(in_c).as_deref(), Some("/b/write.c:42 in write_all"));
        let in_rust = "   0:     0x5501 - rushmem_runtime::call::location::find::h0123456789abcdef
             at /a/crates/runtime/src/call/location.rs:20:9
                   <shmem::rma::Put as shmem::Call>::put
   1:     0x5502 - call_once
             at /rustc/0123/library/core/src/ops/function.rs:250:5
   2:     0x5503 - put
             at /a/crates/shmem/src/rma.rs:9:5
   3:     0x5504 - main
             at /a/crates/shmem/examples/ring.rs:30
";
        let place = "/a/crates/shmem/examples/ring.rs:30 in main";
        assert_eq!(found(in_rust).as_deref(), Some(place));
    }

    #[test]
    fn without_debug_information_nothing_is_said() {
        let first_outside = |text| super::first_outside(text).map(|place| place.to_string());
        let stripped = "   0:     0x01 - pshmem_quiet\n   1:     0x02 - main\n";
        assert_eq!(first_outside(stripped), None);
        assert_eq!(
            first_outside("   0:     0x01 - rushmem_runtime::f\n   1: <unknown>\n"),
            None
        );
        let partly = "   0:     0x01 - pshmem_quiet\n   1:     0x02 - f\n   2:     0x03 - main\n    at /a.c:3\n";
        assert_eq!(first_outside(partly), None);
        let thread = "   0:     0x01 - std::f\n   1:     0x02 - start_thread\n             at ./nptl/pthread.c:442:8\n";
        assert_eq!(first_outside(thread), None);
        assert_eq!(first_outside("disabled backtrace"), None);
        assert_eq!(first_outside(""), None);
    }
}
