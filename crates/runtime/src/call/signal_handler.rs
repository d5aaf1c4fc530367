//! Ends the process if a signal handler calls the library: with `SHMEM_CHECK`, in calls that
//! synchronize.
//!
//! On the stack of a handler is a frame that the kernel has pushed. Since unwinding the stack takes
//! microseconds, it is unwound only if the thread blocks other signals than when it was last found
//! outside of handlers: the kernel blocks a signal while its handler runs. So a handler that was
//! registered with `SA_NODEFER` and an empty `sa_mask` is not noticed, nor one of a signal that the
//! thread itself blocked when it was last found outside.
#![allow(unsafe_code)]

use crate::call::{Call, stack};
use rushmem_transport::Pe;
use std::cell::Cell;
use std::io::{Cursor, Write};
use std::mem::MaybeUninit;

/// A mask of the 64 signals.
type Blocked = u64;

thread_local! {
    /// The signals that this thread blocked when it was last found outside of handlers.
    static OUTSIDE: Cell<Option<Blocked>> = const { Cell::new(None) };
}

/// Ends the process with a message if this thread runs a signal handler. The handler may have
/// interrupted `malloc`, so the message is composed without memory of the heap, and has no line of
/// the program.
pub(crate) fn refuse(call: Call, me: Pe) {
    if !is_running() {
        return;
    }
    let mut message = Cursor::new([0u8; 256]);
    // Text that does not fit is left out.
    let _ = writeln!(
        message,
        "PE {me}: {call}: called by a signal handler, which may have interrupted another call of the \
         library or malloc; set a flag there, and call where the program sees the flag"
    );
    let (nbytes, message) = (message.position() as usize, message.into_inner());
    // SAFETY: as many bytes of a local.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), nbytes) };
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(1) }
}

/// Returns true if this thread runs a signal handler.
fn is_running() -> bool {
    let mut blocked: MaybeUninit<libc::sigset_t> = MaybeUninit::zeroed();
    // SAFETY: without a new set it only fills in the old one, which is valid for a write.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: a set has at least the bits of all signals at its start, and every value is valid.
    let blocked = unsafe { blocked.as_ptr().cast::<Blocked>().read() };
    if OUTSIDE.get() == Some(blocked) {
        return false;
    }
    let mut is_handler = false;
    stack::visit(|_, is_interrupted| {
        is_handler = is_interrupted;
        !is_handler
    });
    if !is_handler {
        OUTSIDE.set(Some(blocked));
    }
    is_handler
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::c_int;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static IN_HANDLER: AtomicBool = AtomicBool::new(false);

    extern "C" fn handler(_: c_int) {
        IN_HANDLER.store(is_running(), Relaxed);
    }

    #[test]
    fn a_handler_is_recognized_and_blocked_signals_are_none() {
        assert!(!is_running());
        // SAFETY: a handler that makes a store, for a signal that this process alone sends itself.
        unsafe { libc::signal(libc::SIGUSR2, handler as extern "C" fn(c_int) as usize) };
        // SAFETY: the handler is in place.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert!(IN_HANDLER.load(Relaxed));
        let mut set: MaybeUninit<libc::sigset_t> = MaybeUninit::zeroed();
        // SAFETY: a set that is valid for a write.
        unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR1) };
        // SAFETY: a set, which the last call has changed; the old one is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
        assert!(!is_running());
    }
}
