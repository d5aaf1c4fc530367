//! Detects that a signal handler calls the library, and ends the process if the message about it
//! cannot be composed.
//!
//! The frame that the kernel has pushed is on the stack of a handler, but to read the stack takes
//! microseconds. So it is read only if the thread blocks other signals than when it was last found
//! outside of handlers: the kernel blocks a signal while its handler runs. A handler that was
//! registered with `SA_NODEFER` and an empty `sa_mask` is not noticed, nor one of a signal that the
//! thread itself blocked when it was last found outside. To ask for the blocked signals is a system
//! call, which a loop of accesses makes once: a handler runs below a frame of the kernel, so its
//! calls are elsewhere on the stack than the last calls outside.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::call::{location, stack};
use core::ffi::c_int;
use rushmem_transport::Pe;
use std::cell::Cell;
use std::io::{Cursor, Write};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The signals that a thread blocks, of which there are 64.
type Blocked = u64;

/// The number of stack addresses that are remembered.
const PLACES: usize = 256;
/// Bits of an address that are alike in threads which call at the same depth.
const STACK_BITS: u32 = 16;
/// The alignment of frames on the stack, in bytes.
const FRAME_ALIGNMENT: usize = 16;

thread_local! {
    /// The signals that this thread blocked when it was last found outside of handlers.
    static OUTSIDE: Cell<Option<Blocked>> = const { Cell::new(None) };
}

/// The stack addresses at which threads were found outside of handlers, each in its place: the
/// routines of a loop differ, and no two threads have the same stack.
static CALLED_AT: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// A place on the stack of the calling thread.
#[derive(Clone, Copy)]
pub(crate) struct StackPlace(usize);

impl StackPlace {
    /// Returns the place of a local of the caller, in an initialization of the library by this
    /// number.
    #[inline(always)]
    pub(crate) fn of<T>(local: &T, initialization: u32) -> StackPlace {
        // The place of a local in its frame differs by function, and is of no matter.
        let frame = std::hint::black_box(std::ptr::from_ref(local)).addr() / FRAME_ALIGNMENT;
        StackPlace(frame ^ (initialization as usize) << 48)
    }

    #[inline(always)]
    fn index(self) -> usize {
        (self.0 ^ (self.0 >> STACK_BITS)) % PLACES
    }

    /// Returns true if the thread has called there outside of handlers and was not to be warned.
    #[inline(always)]
    pub(crate) fn is_known(self) -> bool {
        CALLED_AT[self.index()].load(Relaxed) == self.0
    }

    /// Remembers that the thread calls there outside of handlers, and is not to be warned.
    pub(crate) fn remember(self) {
        CALLED_AT[self.index()].store(self.0, Relaxed);
    }
}

/// Returns true if this thread runs a signal handler.
pub(crate) fn calls() -> bool {
    let blocked = blocked();
    let is_handler = OUTSIDE.get() != Some(blocked) && is_on_stack();
    if !is_handler {
        OUTSIDE.set(Some(blocked));
    }
    is_handler
}

fn blocked() -> Blocked {
    let mut blocked: MaybeUninit<libc::sigset_t> = MaybeUninit::zeroed();
    // SAFETY: without a new set it only fills in the old one, which is valid for a write.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: a set has at least the bits of all signals at its start, and every value is valid.
    unsafe { blocked.as_ptr().cast::<Blocked>().read() }
}

/// Returns true if the frame of a signal is on the stack.
fn is_on_stack() -> bool {
    let mut found = false;
    stack::visit(|_, is_interrupted| {
        found = is_interrupted;
        !found
    });
    found
}

/// The call of a handler, and the PE.
static CALL: OnceLock<(Call, Pe)> = OnceLock::new();

/// Ends the process with a short message if the one of the caller does not end it: the handler may
/// have interrupted `malloc`, whose lock that message needs. The one of the caller has twice the
/// time that its slowest part may take.
pub(crate) fn ends_in_time(call: Call, me: Pe) {
    extern "C" fn end(_: c_int) {
        let mut message = Cursor::new([0u8; 256]);
        if let Some((call, me)) = CALL.get() {
            // Text that does not fit is left out.
            let _ = writeln!(
                message,
                "PE {me}: {call}: called by a signal handler, which may have interrupted malloc; set a flag \
                 there, and call where the program sees the flag"
            );
        }
        let (nbytes, message) = (message.position() as usize, message.into_inner());
        // SAFETY: as many bytes of a local.
        unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), nbytes) };
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(1) }
    }
    let _ = CALL.set((call, me));
    let mut alarm: MaybeUninit<libc::sigset_t> = MaybeUninit::zeroed();
    // SAFETY: a set that is valid for a write.
    unsafe { libc::sigaddset(alarm.as_mut_ptr(), libc::SIGALRM) };
    // SAFETY: a handler that makes only calls which handlers may make. The program needs its own no
    // more, since the process ends.
    unsafe { libc::signal(libc::SIGALRM, end as extern "C" fn(c_int) as usize) };
    // SAFETY: a set, which was just written; the old one is not wanted.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, alarm.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: the handler is in place.
    unsafe { libc::alarm(2 * location::LIMIT.as_secs() as u32) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    static IN_HANDLER: AtomicBool = AtomicBool::new(false);

    extern "C" fn handler(_: c_int) {
        IN_HANDLER.store(calls(), Relaxed);
    }

    #[test]
    fn a_handler_is_recognized_and_blocked_signals_are_none() {
        assert!(!calls());
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
        assert!(!calls());
    }
}
