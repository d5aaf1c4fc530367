//! Where the program calls the library, for messages: file and line by the debug information.
//!
//! Nothing is noted before: the stack is read when a message needs it. A program without debug
//! information, or a library built by a compiler that leaves out unwind tables, has no location.

use std::backtrace::Backtrace;
use std::sync::mpsc;
use std::time::Duration;

/// How long it may take to read the debug information, of which large programs have gigabytes.
const LIMIT: Duration = Duration::from_secs(2);

/// What the names of functions of the library begin with: the profiling names of what it exports,
/// those of its crates, of which `shmem` is the Rust interface, and of those of Rust that it uses.
/// A library without symbols has only the names that it exports.
const OURS: [&str; 8] =
    ["pshmem", "pstart_pes", "rushmem", "shmem::", "std::", "core::", "alloc::", "unknown>"];

/// File and line from which the program has called the library on this thread, if they are known.
///
/// Another thread reads the debug information: the caller may be a signal handler that has
/// interrupted whatever the reading needs.
fn of_caller() -> Option<String> {
    let stack = Backtrace::force_capture();
    let (found, receiver) = mpsc::channel();
    let find = move || {
        // The caller waits no longer when it took too long.
        let _ = found.send(first_outside(&stack.to_string()));
    };
    std::thread::Builder::new().spawn(find).ok()?;
    receiver.recv_timeout(LIMIT).ok()?
}

/// The clause of a message that says it; empty where it is not known.
pub(crate) fn clause() -> String {
    of_caller().map_or_else(String::new, |place| format!(" (called at {place})"))
}

/// The location of the innermost frame outside the library, in the text of a backtrace.
fn first_outside(stack: &str) -> Option<String> {
    let frames = frames(stack);
    let is_ours = |name: &str| {
        let name = name.trim_start_matches(['<', '&', '[']);
        OURS.iter().any(|start| name.starts_with(start))
    };
    let place = frames.iter().find(|(name, _)| !is_ours(name))?.1?;
    Some(without_column(place.strip_prefix("./").unwrap_or(place)).to_owned())
}

/// The frames of a backtrace, innermost first: the function, and `FILE:LINE:COLUMN` where that is
/// known. A function that was inlined has no number.
fn frames(stack: &str) -> Vec<(&str, Option<&str>)> {
    let mut frames: Vec<(&str, Option<&str>)> = Vec::new();
    for line in stack.lines().map(str::trim_start) {
        match (line.strip_prefix("at "), frames.last_mut()) {
            (Some(place), Some(frame)) => frame.1 = Some(place),
            _ => {
                let number = |c: char| c.is_ascii_digit();
                let name = line.trim_start_matches(number).strip_prefix(": ").unwrap_or(line);
                frames.push((name, None));
            }
        }
    }
    frames
}

/// `FILE:LINE` of `FILE:LINE:COLUMN`; not all compilers write columns.
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
        let in_c = "   0: rushmem_runtime::base::call::Call::fail
             at ./crates/runtime/src/base/call.rs:20:9
      rushmem_runtime::api::rma::put
             at ./crates/runtime/src/api/rma.rs:7:5
   1: pshmem_int_put
             at ./crates/shmem-c/src/export.rs:30:9
   2: write_all
             at ./write.c:42:9
   3: main
             at /home/user/program.c:12:5
   4: __libc_start_main
";
        assert_eq!(first_outside(in_c).as_deref(), Some("write.c:42"));
        let in_rust = "   0: rushmem_runtime::base::call::Call::fail
      <shmem::rma::Put as shmem::Call>::put
             at /a/shmem/src/rma.rs:9:5
   1: core::ops::function::FnOnce::call_once
   2: program::main
             at src/main.rs:30
";
        assert_eq!(first_outside(in_rust).as_deref(), Some("src/main.rs:30"));
    }

    #[test]
    fn without_debug_information_nothing_is_said() {
        assert_eq!(first_outside("   0: pshmem_quiet\n   1: main\n"), None);
        assert_eq!(first_outside("   0: rushmem_runtime::f\n   1: <unknown>\n"), None);
        assert_eq!(first_outside("disabled backtrace"), None);
        assert_eq!(first_outside(""), None);
    }

    #[test]
    fn this_thread_has_no_caller_but_the_test() {
        let place = of_caller().expect("tests have debug information");
        assert!(place.contains("location.rs:") || place.contains("/test"), "{place}");
    }
}
