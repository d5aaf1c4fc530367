//! The call of the program that messages name, and how a call ends the job.
//!
//! An error of the user or of the machine is one sentence with the PE, the call, the argument and
//! the remedy. It always ends the job, since most routines of the standard cannot return an error.
#![allow(unsafe_code)]

pub mod location;
pub mod stack;
pub mod thread;
pub mod warning;

use crate::{process, settings};
use core::ffi::c_int;
use rushmem_explain::writes::{NameWords, name_words};
use rushmem_system::stderr::print_line;
use std::fmt;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time that a PE gives another PE of its node to print the same message. Until then its own
/// end must not have the launcher end that PE.
const OTHER_PRINTS: Duration = Duration::from_secs(1);

/// A function that the user has called: a reference, so that it is passed in one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(pub &'static CallName);

/// A function that the user calls: its name in messages, reports and traces, how it counts PEs, and
/// how the record of writes names it.
#[derive(Debug, PartialEq, Eq)]
pub struct CallName {
    /// The name, such as `shmem_long_put`.
    pub name: &'static str,
    /// True if numbers and counts of PEs are unsigned, as in Rust; they are signed in C and
    /// Fortran.
    pub is_unsigned: bool,
    /// The start of the name, in the form of the record of writes.
    pub start: NameWords,
}

impl CallName {
    /// Describes the function of this name.
    pub const fn new(name: &'static str, is_unsigned: bool) -> CallName {
        CallName {
            name,
            is_unsigned,
            start: name_words(name),
        }
    }
}

/// Makes the `Call` of a function of C or Fortran, or with `unsigned` of Rust, from its name.
#[macro_export]
macro_rules! call {
    (unsigned $name:expr) => {
        $crate::Call(const { &$crate::CallName::new($name, true) })
    };
    ($name:expr) => {
        $crate::Call(const { &$crate::CallName::new($name, false) })
    };
}

impl Call {
    /// Returns the name of the function, such as `shmem_long_put`.
    #[inline]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns true for a function of the Rust interface.
    pub fn is_rust(self) -> bool {
        self.0.is_unsigned
    }

    /// Returns the words of a message for the interface that the program has called.
    pub fn words(self, in_c: &'static str, in_rust: &'static str) -> &'static str {
        if self.is_rust() { in_rust } else { in_c }
    }

    /// Returns true for a routine of Fortran, which messages name in capitals.
    pub(crate) fn is_fortran(self) -> bool {
        !self
            .0
            .name
            .contains(|letter: char| letter.is_ascii_lowercase())
    }

    /// Ends the job with status 1 and one message: PE, call, `why`. Output of the program that is
    /// still buffered is written first. In a child process of a PE, ends only that process. If
    /// another thread is already ending the job, blocks so that only one message is printed.
    #[cold]
    #[inline(never)]
    pub fn fail(self, why: fmt::Arguments<'_>) -> ! {
        static FAILS: AtomicBool = AtomicBool::new(false);
        // Relaxed: the first thread prints, and the others only wait for the end of the process.
        if FAILS.swap(true, Ordering::Relaxed) {
            // The other thread may take this long to find where the program calls.
            std::thread::sleep(location::LIMIT);
            leave(true, 1);
        }

        // The reason why the library cannot start is not in the program, and all PEs of a large job
        // would read the debug information at once. It may be in a file of settings.
        let place = if process::is_starting() {
            settings::places_in(&why.to_string())
        } else {
            location::clause(why)
        };
        let message = format!("{}{self}: {why}{place}", process::pe_for_messages());
        process::flush_output();

        let aborter = process::aborter().cloned();
        if let Some(aborter) = &aborter
            && !aborter.is_oshrun()
            && !warning::claim(&format!("{self}{place}"))
        {
            // Another PE of this node prints the message.
            std::thread::sleep(OTHER_PRINTS);
            leave(aborter.global_exit(1), 1);
        }

        match aborter.or_else(rushmem_bootstrap::aborter_without_joining) {
            Some(aborter) => leave(aborter.abort(1, &message), 1),
            None => {
                let has_peers = rushmem_bootstrap::has_process_manager() && !process::is_child();
                if !has_peers || warning::claim_by_socket(parent_id(), &message) {
                    print_line(message);
                }
                if has_peers {
                    // The other PEs see meanwhile that this one has printed the message.
                    std::thread::sleep(OTHER_PRINTS);
                }
                leave(false, 1)
            }
        }
    }
}

impl Call {
    /// Ends the job with a message if all PEs are at their exit: then the network is closed.
    pub fn require_no_exit(self) {
        if process::job_has_ended() {
            self.fail(format_args!(
                "called by a thread while the program exits; join all threads that call the library before main returns"
            ));
        }
    }

    /// Returns a number or count of PEs as the user has written it.
    #[inline]
    pub fn written(self, argument: c_int) -> i64 {
        if self.0.is_unsigned {
            (argument as u32).into()
        } else {
            argument.into()
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Exits without running exit handlers of the program. If `launcher_ends_us`, first gives the
/// launcher 5 s to end this process, and exits only if the launcher is gone or slower.
pub fn leave(launcher_ends_us: bool, status: i32) -> ! {
    // A launcher ends processes within a second, unless the machine is busy.
    if launcher_ends_us {
        std::thread::sleep(Duration::from_secs(5));
    }
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(status) }
}

/// Ends the job with an error message: `fail!(call, "argument pe is {pe}")`.
#[macro_export]
macro_rules! fail {
    ($call:expr, $($why:tt)*) => {
        $call.fail(format_args!($($why)*))
    };
}
pub use {call, fail};
