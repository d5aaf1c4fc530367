//! The handler that the run time of Rust has installed for SIGSEGV and SIGBUS in each program in
//! Rust. It says that a stack has overflowed, and knows no PE and no place. Ours runs before it.
#![allow(unsafe_code)]

use super::signal::{Handler, action, handle};
use core::ffi::c_int;
use rushmem_locate::Symbols;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The signals for which the run time of Rust has a handler.
const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// A part of the name of its handler.
const NAME: &str = "stack_overflow";

/// The flags with which it installs its handler.
const FLAGS: c_int = libc::SA_SIGINFO | libc::SA_ONSTACK;
/// A flag that the C library adds, and for which the crate `libc` has no name.
const SA_RESTORER: c_int = 0x0400_0000;

/// The action of both signals that was replaced.
static REPLACED: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs `handler` for the signals that the run time of Rust handles. Has no effect if another
/// handler than that of the run time is known to be installed: the run time has one handler for
/// both signals, with [`FLAGS`].
pub(super) fn replace(handler: Handler) {
    let [Some(of_segv), Some(of_bus)] = SIGNALS.map(action) else {
        return;
    };
    for action in [of_segv, of_bus] {
        if action.sa_flags & !SA_RESTORER != FLAGS {
            return;
        }
    }

    if of_segv.sa_sigaction == of_bus.sa_sigaction && REPLACED.set(of_segv).is_ok() {
        for signal in SIGNALS {
            handle(signal, handler);
        }
    }
}

/// Sets the action that a signal had before [`replace`]; the default action, if it was not
/// replaced.
pub(super) fn restore(signal: c_int) {
    match REPLACED.get().filter(|_| SIGNALS.contains(&signal)) {
        // SAFETY: `action` was in force before `replace`, so its handler is one of the program.
        Some(action) => unsafe { libc::sigaction(signal, action, null_mut()) },
        // SAFETY: the default action is valid for every signal.
        None => unsafe { libc::signal(signal, libc::SIG_DFL) as c_int },
    };
}

/// Returns false if the replaced handler of a signal has the name of another function than that of
/// the run time: the program may go on after such a signal. Reads the symbol table of the program.
pub(super) fn is_of_rust(signal: c_int) -> bool {
    let replaced = REPLACED.get().filter(|_| SIGNALS.contains(&signal));
    let name = replaced.and_then(|action| Symbols::default().name_at(action.sa_sigaction));
    name.is_none_or(|name| name.contains(NAME))
}
