//! Finds where the program calls the library, for messages: file and line by the debug information.
//!
//! Nothing is recorded before: the stack is read when a message needs it. A program without debug
//! information, or a library built by a compiler that leaves out unwind tables, has no location.

use rushmem_transport::thread::without_signals;
use std::backtrace::Backtrace;
use std::fmt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// The time for which it may take to read the debug information, of which large programs have
/// gigabytes.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// The prefixes of the names of the library's functions: the profiling names of what it exports,
/// those of its crates, of which `shmem` is the Rust interface, and those of Rust that it uses. A
/// library without symbols has only the names that it exports.
const OURS: [&str; 12] = [
    "psh",
    "pstart_pes",
    "p_my_pe",
    "p_num_pes",
    "pmy_pe_",
    "pnum_pes_",
    "rushmem",
    "shmem::",
    "std::",
    "core::",
    "alloc::",
    "unknown>",
];
/// The functions in which the C library calls threads and `main`, which end a stack.
const OUTERMOST: [&str; 2] = ["start_thread", "__libc_start_call_main"];
/// The directory of the sources of Rust's own libraries.
const OF_RUST: &str = "/rustc/";
/// This file in the directory of its crate.
const THIS_FILE: &str = "/src/call/location.rs";

/// A place in the program.
pub(crate) struct Location {
    /// `FILE:LINE`.
    line: String,
    function: String,
}

/// Finds out from where the program has called the library on this thread. Another thread reads the
/// debug information, and passes on what is known: the caller may be a signal handler that has
/// interrupted whatever the reading needs.
pub(crate) fn find(found: impl FnOnce(Option<Location>) + Send + 'static) {
    let stack = Backtrace::force_capture();
    // With whole paths, since those of one directory are ours.
    let find = move || found(of_stack(&stack));
    let thread = std::thread::Builder::new().name("rushmem-place".into());
    // Without a thread, nothing is found.
    let _ = without_signals(|| thread.spawn(find));
}

/// Returns from where the program has called the library on a stack, which takes as long as to read
/// the debug information.
pub(crate) fn of_stack(stack: &Backtrace) -> Option<Location> {
    first_outside(&format!("{stack:#}"))
}

impl Location {
    /// Returns `FILE:LINE` without the directory.
    pub(crate) fn short(&self) -> &str {
        self.line.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns the place of the call, where it is known in time.
fn of_caller() -> Option<String> {
    let (found, receiver) = mpsc::channel();
    // The caller waits no longer when it took too long.
    find(move |place| drop(found.send(place)));
    Some(receiver.recv_timeout(LIMIT).ok()??.line)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.line, self.function)
    }
}

/// Returns the clause of a message that says it; empty where it is not known, or `message` has it.
pub(crate) fn clause(message: fmt::Arguments<'_>) -> String {
    let is_new = |place: &String| {
        let file = place.rsplit('/').next();
        file.is_some_and(|file| !message.to_string().contains(file))
    };
    let place = of_caller().filter(is_new);
    place.map_or_else(String::new, |place| format!(" (called at {place})"))
}

/// Returns where a signal has interrupted this thread: the innermost function of the program, with
/// file and line. `address` is that of the interrupted frame.
pub(crate) fn of_crash(address: usize) -> Option<String> {
    let stack = Backtrace::force_capture();
    interrupted(&format!("{stack:#}"), address)
}

/// Returns the innermost function of the program, with file and line, among the frames of a
/// backtrace from the one at `address` on. The C library has places without a directory of the
/// machine.
fn interrupted(stack: &str, address: usize) -> Option<String> {
    let first = stack.find(&format!(" {address:#x} - "))?;
    let frames = frames(&stack[first..]);
    let is_source = |place: &str| {
        let file = place.split(':').next().unwrap_or_default();
        !place.starts_with(OF_RUST) && (place.starts_with('/') || Path::new(file).exists())
    };
    let is_program = |(name, place): &&(&str, Option<&str>)| {
        place.is_some_and(is_source) && !OURS.iter().any(|start| name.starts_with(start))
    };
    let (name, place) = frames.iter().find(is_program)?;
    let how = if frames[0].0 == *name { "in" } else { "in a call from" };
    Some(format!("{how} {name} ({})", from_here(without_column(place.as_ref()?))))
}

/// Returns the location of the innermost frame outside the library, in the text of a backtrace.
fn first_outside(stack: &str) -> Option<Location> {
    let frames = frames(stack);
    // Debug information may have short names of functions, so the directory of our crates counts
    // too.
    let own = frames.iter().find_map(|(_, place)| Some(place.as_ref()?.split_once(THIS_FILE)?.0));
    let dir = own.and_then(|own| own.rsplit_once('/')).map(|(dir, _)| dir);
    let is_source = |place: &str| {
        let rest = dir.and_then(|dir| place.strip_prefix(dir));
        rest.is_some_and(|rest| rest.contains("/src/"))
    };
    let is_ours = |(name, place): &(&str, Option<&str>)| {
        let name = name.trim_start_matches(['<', '&', '[']);
        let by_place = |place: &str| is_source(place) || place.starts_with(OF_RUST);
        OURS.iter().any(|start| name.starts_with(start)) || place.is_some_and(by_place)
    };
    // A frame without a place is ours if we are behind it, too.
    let outside = frames.iter().position(|frame| frame.1.is_some() && !is_ours(frame))?;
    let (name, place) = frames[outside];
    let follows_ours = is_ours(frames.get(outside.checked_sub(1)?)?);
    let place = place.filter(|_| follows_ours && !OUTERMOST.contains(&name))?;
    Some(Location { line: from_here(without_column(place)), function: name.to_owned() })
}

/// Returns the frames of a backtrace, innermost first: the function, and `FILE:LINE:COLUMN` where
/// that is known. A function that was inlined has no number and address.
fn frames(stack: &str) -> Vec<(&str, Option<&str>)> {
    let mut frames: Vec<(&str, Option<&str>)> = Vec::new();
    for line in stack.lines().map(str::trim_start) {
        match (line.strip_prefix("at "), frames.last_mut()) {
            (Some(place), Some(frame)) => frame.1 = Some(place),
            _ => frames.push((line.split_once(" - ").map_or(line, |(_, name)| name), None)),
        }
    }
    frames
}

/// Returns a path from the directory of this process, if it is in there.
fn from_here(place: &str) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| Some(Path::new(place).strip_prefix(here).ok()?.to_owned()));
    inside.map_or_else(|| place.to_owned(), |inside| inside.display().to_string())
}

/// Returns `FILE:LINE` of `FILE:LINE:COLUMN`; not all compilers write columns.
fn without_column(place: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match place.rsplit_once(':') {
        Some((rest, _)) if rest.rsplit_once(':').is_some_and(|(_, line)| is_number(line)) => rest,
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_the_first_frame_outside() {
        let in_c = "   0:     0x7f01 - of_caller
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
        let in_rust =
            "   0:     0x5501 - rushmem_runtime::call::location::of_caller::h0123456789abcdef
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
    fn a_crash_is_in_the_program_or_in_what_it_calls() {
        let stack = "   0:     0x7f01 - of_crash
             at /a/crates/runtime/src/call/location.rs:20:9
   1:     0x7f02 - __restore_rt
   2:     0x7f03 - memcpy
             at ./string/absent.c:44:76
   3:     0x7f04 - pshmem_int_put
   4:     0x5501 - work
             at /b/work.c:42:9
";
        let place = |address| interrupted(stack, address);
        assert_eq!(place(0x7f03).as_deref(), Some("in a call from work (/b/work.c:42)"));
        assert_eq!(place(0x5501).as_deref(), Some("in work (/b/work.c:42)"));
        assert_eq!(place(0x1234), None);
    }

    #[test]
    fn without_debug_information_nothing_is_said() {
        let first_outside = |text| super::first_outside(text).map(|place| place.to_string());
        let stripped = "   0:     0x01 - pshmem_quiet\n   1:     0x02 - main\n";
        assert_eq!(first_outside(stripped), None);
        assert_eq!(first_outside("   0:     0x01 - rushmem_runtime::f\n   1: <unknown>\n"), None);
        let partly = "   0:     0x01 - pshmem_quiet\n   1:     0x02 - f\n   2:     0x03 - main\n    at /a.c:3\n";
        assert_eq!(first_outside(partly), None);
        let thread = "   0:     0x01 - std::f\n   1:     0x02 - start_thread\n             at ./nptl/pthread.c:442:8\n";
        assert_eq!(first_outside(thread), None);
        assert_eq!(first_outside("disabled backtrace"), None);
        assert_eq!(first_outside(""), None);
    }
}
