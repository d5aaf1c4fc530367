//! Finds where a signal has interrupted the program, for the message of a crash.

use super::backtrace::{Frame, file_of, frames, library_test};
use rushmem_transport::thread::is_service;
use std::backtrace::Backtrace;
use std::fmt;
use std::path::Path;

/// The functions of the C library that crash if the heap is damaged.
const HEAP_FUNCTIONS: [&str; 5] = ["malloc", "calloc", "realloc", "free", "cfree"];
/// The prefixes of names within the C library.
const LIBC_PREFIXES: [&str; 2] = ["__GI_", "__libc_"];

/// The place of a crash.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CrashPlace {
    /// A function of the program.
    In {
        function: String,
        /// The function of the program that has called it.
        caller: Option<String>,
    },
    /// A function outside the program, which the program has called.
    Below { function: String, callee: Callee },
    /// In a service thread of the library, outside any call of the program.
    InService,
    /// No function of the program is found, usually for lack of debug information.
    Unknown,
}

/// A function outside the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// A routine of the library.
    Routine(String),
    /// A function that manages the C library's heap, or one that has called such a function.
    OfHeap(String),
    Other(String),
    Unknown,
}

impl CrashPlace {
    /// Finds where a signal has interrupted this thread. `frame` is the code address of the
    /// interrupted frame.
    pub(crate) fn find(frame: usize) -> CrashPlace {
        if is_service() {
            return CrashPlace::InService;
        }
        interrupted(&format!("{:#}", Backtrace::force_capture()), frame)
            .unwrap_or(CrashPlace::Unknown)
    }

    /// Returns what the user can do to find the cause. `checks` says whether `SHMEM_CHECK` is set.
    pub(crate) fn remedy(&self, checks: bool) -> &'static str {
        match self {
            CrashPlace::Below {
                callee: Callee::Routine(_),
                ..
            }
            | CrashPlace::InService
                if !checks =>
            {
                "to find the cause, set SHMEM_CHECK=1, or run oshrun --gdb"
            }
            CrashPlace::Below {
                callee: Callee::OfHeap(_),
                ..
            } => "the heap is damaged; to find the cause, compile with -fsanitize=address",
            _ => "to find the cause, run oshrun --gdb",
        }
    }
}

impl fmt::Display for CrashPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrashPlace::In { function, caller: Some(caller) } => {
                write!(f, "in {function}, called by {caller}")
            }
            CrashPlace::In { function, caller: None } => write!(f, "in {function}"),
            CrashPlace::Below { function, callee: Callee::Unknown } => {
                write!(f, "in a call from {function}")
            }
            CrashPlace::Below {
                function,
                callee: Callee::Routine(name) | Callee::OfHeap(name) | Callee::Other(name),
            } => write!(f, "in {name}, called by {function}"),
            CrashPlace::InService => f.write_str(
                "in a service thread of the library, which moves data for operations of the program",
            ),
            CrashPlace::Unknown => f.write_str("(compile with -g to see where)"),
        }
    }
}

/// Returns the place of a crash from the text of a backtrace: the innermost function of the program
/// among the frames from `address` outward. A relative path to a file that does not exist belongs
/// to the C library.
fn interrupted(stack: &str, address: usize) -> Option<CrashPlace> {
    let first = stack.find(&format!(" {address:#x} - "))?;
    let is_ours = library_test(&frames(stack));
    let frames = frames(&stack[first..]);
    let exists = |place: &str| place.starts_with('/') || Path::new(file_of(place)).exists();
    let is_program = |frame: &&Frame| frame.place.is_some_and(exists) && !is_ours(frame);
    let at = frames.iter().position(|frame| is_program(&frame))?;
    let (below, outer) = (&frames[..at], &frames[at + 1..]);
    let is_of_heap = below
        .iter()
        .any(|frame| HEAP_FUNCTIONS.contains(&public_name(frame.name)));
    let name = |frame: &Frame| {
        let frame = Frame {
            name: public_name(frame.name),
            ..*frame
        };
        // The C++ library demangles by `malloc`, which would use the damaged heap.
        if is_of_heap {
            frame.name.to_owned()
        } else {
            frame.function()
        }
    };
    let with_line = |frame: &Frame| Some(format!("{} ({})", name(frame), frame.line()?));
    let function = with_line(&frames[at])?;
    // The program has called the outermost of the frames below. Inline functions of our headers do
    // not count.
    let Some(called) = below.iter().rfind(|frame| !frame.is_overload()) else {
        let other = |frame: &&Frame| is_program(frame) && frame.name != frames[at].name;
        return Some(CrashPlace::In {
            function,
            caller: outer.iter().find(other).and_then(with_line),
        });
    };
    let callee = match called.name {
        "<unknown>" => Callee::Unknown,
        name if name.starts_with("psh") || name.starts_with("pstart_pes") => {
            Callee::Routine(name[1..].to_owned())
        }
        _ if is_of_heap => Callee::OfHeap(name(called)),
        _ if is_ours(called) => Callee::Unknown,
        _ => Callee::Other(name(called)),
    };
    Some(CrashPlace::Below { function, callee })
}

/// Returns the name by which programs know a function of the C library.
fn public_name(name: &str) -> &str {
    LIBC_PREFIXES.iter().fold(name, |name, prefix| {
        name.strip_prefix(prefix).unwrap_or(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: &str = "   0:     0x7f01 - find
             at /a/crates/runtime/src/call/crash_place.rs:20:9
   1:     0x7f02 - __restore_rt
   2:     0x7f03 - memcpy
             at ./string/absent.c:44:76
   3:     0x7f04 - pshmem_int_put
   4:     0x5501 - work
             at /b/work.c:42:9
   5:     0x5502 - work
             at /b/work.c:43:9
   6:     0x5503 - main
             at /b/work.c:50:9
";

    #[test]
    fn a_crash_is_in_the_program_or_in_what_it_calls() {
        let place = |address| interrupted(STACK, address).map(|place| place.to_string());
        let in_put = "in shmem_int_put, called by work (/b/work.c:42)";
        assert_eq!(place(0x7f03).as_deref(), Some(in_put));
        let in_work = "in work (/b/work.c:42), called by main (/b/work.c:50)";
        assert_eq!(place(0x5501).as_deref(), Some(in_work));
        assert_eq!(place(0x5503).as_deref(), Some("in main (/b/work.c:50)"));
        assert_eq!(place(0x1234), None);
    }

    /// Debug information has short names.
    #[test]
    fn the_sources_of_the_library_are_not_the_program() {
        let with_debug = STACK.replace(
            "memcpy\n             at ./string/absent.c:44:76",
            "copy_word<u64>\n             at /a/crates/transport/src/mem/copy.rs:29:9",
        );
        assert_ne!(with_debug, STACK);
        let place = |stack| interrupted(stack, 0x7f03).map(|place| place.to_string());
        assert_eq!(place(&with_debug), place(STACK));
        let in_put = "put<i32>\n             at /a/crates/shmem-c/src/rma.rs:9:5";
        let unnamed = with_debug.replace("pshmem_int_put", in_put);
        assert_eq!(
            place(&unnamed).as_deref(),
            Some("in a call from work (/b/work.c:42)")
        );
    }

    #[test]
    fn the_remedy_depends_on_what_the_program_has_called() {
        let remedy = |stack: &str, checks| {
            let place = interrupted(stack, 0x7f03).expect("it is there");
            place.remedy(checks)
        };
        assert!(remedy(STACK, false).contains("SHMEM_CHECK=1"));
        assert!(!remedy(STACK, true).contains("SHMEM_CHECK=1"));
        let in_free = STACK.replace("pshmem_int_put", "__libc_free");
        assert!(remedy(&in_free, false).contains("-fsanitize=address"));
        let in_other = STACK.replace("pshmem_int_put", "qsort");
        assert_eq!(
            remedy(&in_other, false),
            "to find the cause, run oshrun --gdb"
        );
    }
}
