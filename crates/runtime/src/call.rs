//! The call to which a message refers, and how a call ends the job.
//!
//! An error of the user or of the machine is one sentence with the PE, the call, the argument and
//! the remedy. It always ends the job, since most functions of the standard cannot report an error.
#![allow(unsafe_code)]

mod backtrace;
pub(crate) mod crash_place;
pub(crate) mod location;
mod python;
pub(crate) mod signal_handler;
pub(crate) mod stack;
pub mod thread;
pub(crate) mod warning;

pub(crate) use backtrace::demangled;

use crate::process;
use crate::process::stdio;
use core::ffi::c_int;
use rushmem_explain::writes::{NameWords, name_words};
use std::fmt;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time for which a PE waits whose message another PE of its node prints.
const OTHER_PRINTS: Duration = Duration::from_secs(1);

/// A function as the user called it: the address of what is known of it, so that it passes in one
/// register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(pub &'static CallName);

/// The facts about a function that messages need.
#[derive(Debug, PartialEq, Eq)]
pub struct CallName {
    /// Its name, such as `shmem_long_put`.
    pub name: &'static str,
    /// True if numbers and counts of PEs are unsigned there, as in Rust, signed in C and Fortran.
    pub is_unsigned: bool,
    /// The start of its name, as the record of writes has it.
    pub start: NameWords,
}

impl CallName {
    /// Returns the facts about a function of this name.
    pub const fn new(name: &'static str, is_unsigned: bool) -> CallName {
        CallName { name, is_unsigned, start: name_words(name) }
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
    /// Returns the name of the function.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns true for a routine of Fortran, which messages name in capitals.
    pub(crate) fn is_fortran(self) -> bool {
        !self.0.name.contains(|letter: char| letter.is_ascii_lowercase())
    }

    /// Ends the job with status 1 and one message: PE, call, `why`. What the program has printed
    /// comes before it. In a child process of a PE it ends that process alone. A thread that comes
    /// while another one does this waits for the end, since one message is enough.
    #[cold]
    #[inline(never)]
    pub fn fail(self, why: fmt::Arguments<'_>) -> ! {
        static FAILS: AtomicBool = AtomicBool::new(false);
        if FAILS.swap(true, Ordering::AcqRel) {
            // The other one may look for the place of its call first.
            std::thread::sleep(location::LIMIT);
            leave(true, 1);
        }
        // Why the library does not start is no matter of the place in the program, and all PEs of a
        // large job would look for it at once.
        let place = if process::starts() { String::new() } else { location::clause(why) };
        let message = format!("{}{self}: {why}{place}", process::pe_for_messages());
        stdio::flush();
        let aborter = process::aborter().cloned();
        if let Some(aborter) = &aborter
            && !aborter.is_oshrun()
            && !warning::is_first(&format!("{self}{place}"))
        {
            // Another PE of this node prints the message.
            std::thread::sleep(OTHER_PRINTS);
            leave(aborter.global_exit(1), 1);
        }
        match aborter.or_else(rushmem_bootstrap::aborter_without_session) {
            Some(aborter) => leave(aborter.abort(1, &message), 1),
            None => {
                let has_peers = rushmem_bootstrap::is_managed() && !process::is_child();
                if !has_peers || warning::is_first_of_launcher(parent_id(), &message) {
                    warning::print(format_args!("{message}"));
                }
                if has_peers {
                    // They find the claim meanwhile, and no launcher ends the claimant.
                    std::thread::sleep(OTHER_PRINTS);
                }
                leave(false, 1)
            }
        }
    }
}

impl Call {
    /// Ends the process with a message if this PE and all others are at their exit, so that the
    /// network is closed.
    pub(crate) fn require_no_exit(self) {
        if process::job_has_ended() {
            self.fail(format_args!(
                "called by a thread while the program exits; join all threads that call the library before main returns"
            ));
        }
    }

    /// Returns an argument as the user wrote it, a number or count of PEs.
    pub(crate) fn written(self, argument: c_int) -> i64 {
        if self.0.is_unsigned { (argument as u32).into() } else { argument.into() }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Exits without running code of the program in the middle of a failed call. A launcher that was
/// requested to end the job ends this process; the time limit covers a launcher that is gone.
pub(crate) fn leave(launcher_ends_us: bool, status: i32) -> ! {
    if launcher_ends_us {
        std::thread::sleep(Duration::from_secs(5));
    }
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(status) }
}

/// End the job from any function that has a `Call`: `fail!(call, "argument pe is {pe}")`.
macro_rules! fail {
    ($call:expr, $($why:tt)*) => {
        $call.fail(format_args!($($why)*))
    };
}
pub(crate) use {call, fail};
