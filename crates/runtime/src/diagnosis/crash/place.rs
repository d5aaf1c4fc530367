//! Finds where a signal has interrupted the program, for the message of a crash.

use rushmem_locate::{Frame, Owner, Stack, Symbols};
use rushmem_system::thread::is_service;
use std::fmt;

/// The functions of the C library that crash if the heap is damaged.
const HEAP_FUNCTIONS: [&str; 5] = ["malloc", "calloc", "realloc", "free", "cfree"];
/// Those among them that crash also if the memory is not from `malloc`, as that of `shmem_malloc`.
const RELEASING: [&str; 3] = ["realloc", "free", "cfree"];
/// The prefixes of names within the C library.
const LIBC_PREFIXES: [&str; 2] = ["__GI_", "__libc_"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CrashPlace {
    /// A function of the program.
    In {
        function: String,
        /// The function of the program that has called it; `None` if it is not known.
        caller: Option<String>,
    },
    /// Outside the program: its `function` has called `callee`, and the crash is in `callee` or
    /// below it.
    Below { function: String, callee: Callee },
    /// In a service thread of the library, outside any call of the program.
    InService,
    /// No function of the program is found, usually for lack of debug information.
    Unknown {
        /// The routine of the library that the program has called; `None` if it is not known.
        routine: Option<String>,
    },
}

/// A function outside the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// A routine of the library; `None` if its name is not known.
    Routine(Option<String>),
    /// A function that manages the C library's heap, or one that has called such a function.
    OfHeap(String),
    Other(Option<String>),
}

impl CrashPlace {
    /// Finds where a signal has interrupted this thread, whose handler calls this.
    pub(super) fn find() -> CrashPlace {
        if is_service() {
            return CrashPlace::InService;
        }
        let stack = Stack::capture_interrupted();
        // The files are read anew: another thread may have held the lock of those that were read.
        let frames = Symbols::default().frames(&stack);
        CrashPlace::of_stack(&frames)
    }

    /// Returns the place of a crash in the innermost function of a stack.
    fn of_stack(frames: &[Frame]) -> CrashPlace {
        CrashPlace::in_program(frames).unwrap_or_else(|| {
            let routine = frames.iter().rev().find_map(Frame::routine);
            CrashPlace::Unknown {
                routine: routine.map(str::to_owned),
            }
        })
    }

    /// Returns the place of a crash in the program; `None` if no function of it has a line.
    fn in_program(frames: &[Frame]) -> Option<CrashPlace> {
        let innermost = frames.iter().position(Frame::is_located)?;
        let function = with_line(&frames[innermost])?;
        let below = &frames[..innermost];

        // The program has called the outermost of the frames below. Code of the language between
        // both does not count.
        let Some(called) = below
            .iter()
            .rfind(|frame| frame.owner != Owner::Language && frame.owner != Owner::Unknown)
        else {
            // A function that calls itself has several frames. The caller is the next other one.
            let caller = frames[innermost + 1..]
                .iter()
                .find(|frame| frame.is_located() && frame.name != frames[innermost].name);
            return Some(CrashPlace::In {
                function,
                caller: caller.and_then(with_line),
            });
        };

        let is_of_heap = below
            .iter()
            .filter_map(|frame| frame.name.as_deref())
            .any(|name| HEAP_FUNCTIONS.contains(&public_name(name)));
        let name = called.function().map(|name| public_name(&name).to_owned());
        let callee = match name {
            name if called.owner == Owner::Library => {
                Callee::Routine(called.routine().map(str::to_owned).or(name))
            }
            Some(name) if is_of_heap => Callee::OfHeap(name),
            name => Callee::Other(name),
        };
        Some(CrashPlace::Below { function, callee })
    }

    /// Returns what the user can do to find the cause. `checks` says whether `SHMEM_CHECK` is set.
    pub(super) fn remedy(&self, checks: bool) -> &'static str {
        match self {
            CrashPlace::Below {
                callee: Callee::Routine(_),
                ..
            }
            | CrashPlace::Unknown { routine: Some(_) }
            | CrashPlace::InService
                if !checks =>
            {
                "to find the cause, set SHMEM_CHECK=1, or run oshrun --gdb"
            }
            CrashPlace::Below {
                callee: Callee::OfHeap(name),
                ..
            } if RELEASING.contains(&name.as_str()) => {
                "either the memory is not from malloc (free memory of shmem_malloc by shmem_free), or the heap is \
                 damaged; to find the cause, compile with -fsanitize=address"
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
            CrashPlace::Below { function, callee: Callee::Routine(None) } => {
                write!(f, "in a routine of the library, called by {function}")
            }
            CrashPlace::Below { function, callee: Callee::Other(None) } => {
                write!(f, "in a call from {function}")
            }
            CrashPlace::Below {
                function,
                callee: Callee::Routine(Some(name)) | Callee::OfHeap(name) | Callee::Other(Some(name)),
            } => write!(f, "in {name}, called by {function}"),
            CrashPlace::InService => f.write_str(
                "in a service thread of the library, which moves data for operations of the program",
            ),
            CrashPlace::Unknown { routine: Some(name) } => {
                write!(f, "in {name} (compile with -g to see where it is called)")
            }
            CrashPlace::Unknown { routine: None } => f.write_str("(compile with -g to see where)"),
        }
    }
}

/// Returns the name and the line of a function; `None` if the debug information lacks one of them.
fn with_line(frame: &Frame) -> Option<String> {
    let function = frame.function()?;
    let line = frame.line.as_ref()?;
    Some(format!("{function} ({line})"))
}

/// Returns the name by which programs know a function of the C library.
fn public_name(mut name: &str) -> &str {
    for prefix in LIBC_PREFIXES {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    name
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

    /// Returns the stack of a crash in `memcpy`, which `called` has called for the program.
    fn crash_below(called: Frame) -> Vec<Frame> {
        vec![
            frame("memcpy", Owner::System),
            called,
            located("work", "/b/work.c", 42),
            located("work", "/b/work.c", 43),
            located("main", "/b/work.c", 50),
        ]
    }

    fn text(stack: &[Frame]) -> String {
        CrashPlace::of_stack(stack).to_string()
    }

    #[test]
    fn a_crash_is_in_the_program_or_in_what_it_calls() {
        let stack = crash_below(frame("pshmem_int_put", Owner::Library));
        let in_put = "in shmem_int_put, called by work (/b/work.c:42)";
        assert_eq!(text(&stack), in_put);

        let in_work = "in work (/b/work.c:42), called by main (/b/work.c:50)";
        assert_eq!(text(&stack[2..]), in_work);
        assert_eq!(text(&stack[4..]), "in main (/b/work.c:50)");

        let unknown = "in shmem_int_put (compile with -g to see where it is called)";
        assert_eq!(text(&stack[..2]), unknown);
        assert_eq!(text(&stack[..1]), "(compile with -g to see where)");
    }

    /// The debug information has another name for the routine than the symbol table.
    #[test]
    fn a_routine_has_its_exported_name() {
        let body = Frame {
            name: Some("body".to_owned()),
            ..frame("pshmem_int_put", Owner::Library)
        };
        let in_put = "in shmem_int_put, called by work (/b/work.c:42)";
        assert_eq!(text(&crash_below(body)), in_put);

        let nameless = Frame {
            name: None,
            symbol: None,
            ..frame("", Owner::Library)
        };
        let in_library = "in a routine of the library, called by work (/b/work.c:42)";
        assert_eq!(text(&crash_below(nameless)), in_library);
    }

    #[test]
    fn code_of_the_language_is_not_what_the_program_calls() {
        let stack = [
            frame("core::ptr::write_volatile", Owner::Language),
            located("act", "/b/crash.rs", 16),
        ];
        assert_eq!(text(&stack), "in act (/b/crash.rs:16)");
    }

    #[test]
    fn the_remedy_depends_on_what_the_program_has_called() {
        let in_put = CrashPlace::of_stack(&crash_below(frame("pshmem_int_put", Owner::Library)));
        assert!(in_put.remedy(false).contains("SHMEM_CHECK=1"));
        assert!(!in_put.remedy(true).contains("SHMEM_CHECK=1"));

        let in_free = CrashPlace::of_stack(&crash_below(frame("__libc_free", Owner::System)));
        assert!(in_free.remedy(false).contains("-fsanitize=address"));
        assert!(in_free.remedy(false).contains("shmem_free"));
        let in_malloc = CrashPlace::of_stack(&crash_below(frame("malloc", Owner::System)));
        assert!(in_malloc.remedy(false).contains("-fsanitize=address"));
        assert!(!in_malloc.remedy(false).contains("shmem_free"));

        let in_other = CrashPlace::of_stack(&crash_below(frame("qsort", Owner::System)));
        let by_gdb = "to find the cause, run oshrun --gdb";
        assert_eq!(in_other.remedy(false), by_gdb);
    }
}
