//! Finds the file and line in which the program calls the library, for messages.
//!
//! Nothing is recorded in advance: the stack and the debug information are read when a message
//! needs them. Without debug information, or without unwind tables, there is no location.

use rushmem_locate::{Frame, Owner, PythonLine, PythonThread, Stack, Symbols, from_here};
use rushmem_system::lock::lock;
use rushmem_system::signals::without_signals;
use std::fmt;
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::Duration;

/// The time after which a message is printed without a location: the debug information of a large
/// program has gigabytes.
pub const LIMIT: Duration = Duration::from_secs(10);

/// What was read of the files of this process.
static SYMBOLS: LazyLock<Mutex<Symbols>> = LazyLock::new(Mutex::default);

/// A place in the program.
pub struct Location {
    /// `FILE:LINE`.
    line: String,
    function: String,
}

/// The stack of a call of the library, captured before its location is searched for.
pub struct CapturedCall {
    stack: Stack,
    in_python: Option<PythonThread>,
}

impl CapturedCall {
    /// Captures the stack of this thread and, in a Python program, the line.
    pub fn capture() -> CapturedCall {
        CapturedCall {
            stack: Stack::capture(),
            in_python: PythonThread::current(),
        }
    }

    /// Returns true if this process has a Python interpreter. A Python program may then have made
    /// the call, whose line the native stack does not show.
    pub fn may_be_in_python(&self) -> bool {
        self.in_python.is_some()
    }

    /// Returns where the program has called the library; `None` if that is not found. Reads the
    /// debug information, which may take long, or waits for the lock of the Python interpreter.
    pub fn locate(self) -> Option<Location> {
        if let Some(line) = self.in_python.and_then(PythonThread::line) {
            return Some(Location::of_python(line));
        }
        locate_on_stack(&self.stack)
    }
}

/// Calls `search`, which reads debug information, in another thread: this thread may be in a signal
/// handler that has interrupted a function which the reading needs. If no thread can be started,
/// `search` is not called.
pub fn in_other_thread(search: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("rushmem-place".into());
    // The handle is dropped, since nothing waits for the search. Without a thread, the caller goes
    // on without a place.
    let _ = without_signals(|| thread.spawn(search));
}

/// Finds where the program has called the library on this thread. Another thread then calls
/// `found`.
pub fn find(found: impl FnOnce(Option<Location>) + Send + 'static) {
    let call = CapturedCall::capture();
    in_other_thread(move || found(call.locate()));
}

/// Returns where the program has called the library, from the stack of the call; `None` if that is
/// not found. Reads the debug information, which may take long.
pub fn locate_on_stack(stack: &Stack) -> Option<Location> {
    let frames = lock(&SYMBOLS).frames(stack);
    caller(&frames)
}

impl Location {
    fn of_python(found: PythonLine) -> Location {
        Location {
            line: from_here(&found.line),
            function: found.function,
        }
    }

    /// Returns `FILE:LINE` without the directory.
    pub fn short(&self) -> &str {
        self.line.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns `FILE:LINE` of the call, if that is found within [`LIMIT`].
fn locate_caller() -> Option<String> {
    let call = CapturedCall::capture();
    line_of(|| call.locate())
}

/// Returns `FILE:LINE` of an earlier call from its stack, if that is found within [`LIMIT`].
pub fn line_on_stack(stack: &Stack) -> Option<String> {
    let stack = stack.clone();
    line_of(move || locate_on_stack(&stack))
}

/// Returns `FILE:LINE` of what `search` finds within [`LIMIT`]; `None` if it finds nothing by then.
fn line_of(search: impl FnOnce() -> Option<Location> + Send + 'static) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    in_other_thread(move || {
        // This fails after the limit, when the receiver does not exist any more.
        let _ = sender.send(search());
    });

    let found = receiver.recv_timeout(LIMIT).ok()?;
    Some(found?.line)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.line, self.function)
    }
}

/// Returns the clause of a message that names the place of the call; empty if the place is not
/// known, or if `message` has it already.
pub fn clause(message: fmt::Arguments<'_>) -> String {
    let Some(place) = locate_caller() else {
        return String::new();
    };

    let file = place.rsplit('/').next().unwrap_or_default();
    if message.to_string().contains(file) {
        String::new()
    } else {
        format!(" (called at {place})")
    }
}

/// Returns the location of the innermost function of the program, if it has called the library.
fn caller(frames: &[Frame]) -> Option<Location> {
    // A function of the program without a line does not count: one of the library may follow it,
    // which a program without names of functions contains.
    let outside = frames.iter().position(Frame::is_located)?;
    let callee = &frames[outside.checked_sub(1)?];
    if matches!(callee.owner, Owner::Program | Owner::System) {
        return None;
    }

    let frame = &frames[outside];
    Some(Location {
        line: frame.line.as_ref()?.to_string(),
        function: frame.function()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_locate::Line;

    /// Returns a frame without a line.
    fn frame(name: &str, owner: Owner) -> Frame {
        Frame {
            name: Some(name.to_owned()),
            symbol: Some(name.to_owned()),
            line: None,
            owner,
        }
    }

    /// Returns a frame of the program.
    fn located(name: &str, file: &str, number: u32) -> Frame {
        let file = file.to_owned();
        Frame {
            line: Some(Line { file, number }),
            ..frame(name, Owner::Program)
        }
    }

    #[test]
    fn the_caller_is_the_innermost_function_of_the_program() {
        let stack = [
            frame("find", Owner::Library),
            frame("poll", Owner::System),
            frame("pshmem_int_put", Owner::Library),
            frame("std::for_each", Owner::Language),
            located("write_all", "/b/write.c", 42),
            located("main", "/b/program.c", 12),
            frame("__libc_start_call_main", Owner::System),
        ];
        let found = caller(&stack).expect("the program has called the library");
        assert_eq!(found.to_string(), "/b/write.c:42 in write_all");
    }

    #[test]
    fn without_debug_information_nothing_is_said() {
        let put = || frame("pshmem_int_put", Owner::Library);
        let main = || located("main", "/a.c", 3);
        for stack in [
            vec![],
            vec![put(), frame("main", Owner::Program)],
            vec![put(), frame("f", Owner::Program), main()],
            vec![put(), frame("exit", Owner::System), main()],
            vec![put(), frame("start_thread", Owner::System)],
        ] {
            assert!(caller(&stack).is_none(), "{stack:?}");
        }
    }
}
