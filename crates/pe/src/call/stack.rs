//! The stack of the calling thread: a hash of its frames, and the check for signal handlers.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::digest::Digest;
use crate::memory::statics::{object_info, program_info};
use core::ffi::CStr;
use rushmem_locate::visit;
use rushmem_transport::Pe;
use std::cell::Cell;
use std::io::{Cursor, Write};
use std::mem::MaybeUninit;

/// Returns a hash of the addresses of the frames: equal for equal chains of calls, and different
/// for others with high probability.
pub fn digest() -> u64 {
    let mut digest = Digest::EMPTY;
    visit(|frame| {
        digest.add(frame.address.to_le_bytes());
        true
    });
    digest.value()
}

/// Returns a digest of the calls of this thread that is equal in processes that are at the same
/// place of the same program, though the program may be loaded at different addresses: of each
/// return address, the name of its file and the offset in the file are added. If the library is a
/// file of its own, its frames are left out: PEs in the same call wait at different places in it.
pub fn digest_of_program() -> u64 {
    let library = object_info(digest_of_program as *const () as usize).map(|file| file.dli_fbase);
    let program = program_info().map(|file| file.dli_fbase);
    let is_file_of_its_own = library != program;

    let mut digest = Digest::EMPTY;
    visit(|frame| {
        let address = frame.address;
        let Some(file) = object_info(address) else {
            digest.add(address.to_le_bytes());
            return true;
        };
        if is_file_of_its_own && Some(file.dli_fbase) == library {
            return true;
        }

        // SAFETY: the name is a string of the dynamic linker that exists as long as the file is
        // loaded, and the file stays loaded since its code is on the stack.
        let name = unsafe { CStr::from_ptr(file.dli_fname) }.to_bytes();
        digest.add(name.iter().copied());
        digest.add(address.wrapping_sub(file.dli_fbase.addr()).to_le_bytes());
        true
    });
    digest.value()
}

thread_local! {
    /// The mask of the signals that this thread blocked when the last unwinding found no handler.
    static BLOCKED_OUTSIDE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Ends the process with a message if this thread runs a signal handler. The handler may have
/// interrupted `malloc`, so the message is composed without an allocation, and does not contain the
/// line of the call.
pub(crate) fn refuse_signal_handler(call: Call, me: Pe) {
    if !is_in_signal_handler() {
        return;
    }

    let mut message = Cursor::new([0u8; 256]);
    // The only possible error is that the text does not fit: then its start is printed.
    let _ = writeln!(
        message,
        "PE {me}: {call}: called by a signal handler, which may have interrupted another call of the \
         library or malloc; set a flag there, and call where the program sees the flag"
    );

    let nbytes = message.position() as usize;
    let message = message.into_inner();
    // The result is ignored, since the process ends anyway.
    // SAFETY: the local array has at least `nbytes` initialized bytes.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), nbytes) };
    // Exit handlers must not run, since this thread may be inside `malloc`.
    // SAFETY: `_exit` has no preconditions, and may be called by a signal handler.
    unsafe { libc::_exit(1) }
}

/// Returns true if this thread runs a signal handler.
///
/// The kernel pushes a frame on the stack before it calls a handler. Unwinding takes microseconds,
/// so the stack is unwound only if the thread blocks other signals than after the last unwinding
/// that found no handler: the kernel blocks a signal while its handler runs. Therefore two kinds of
/// handlers are not detected: one registered with `SA_NODEFER` and an empty `sa_mask`, and one of a
/// signal that the thread itself blocked at that time.
fn is_in_signal_handler() -> bool {
    let mut blocked: MaybeUninit<libc::sigset_t> = MaybeUninit::zeroed();
    // This cannot fail with these arguments.
    // SAFETY: without a new set, the call only writes the present one to `blocked`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: a set begins with the 64 bits of all signals, is aligned for them, and was zeroed, so
    // that they are initialized.
    let blocked = unsafe { blocked.as_ptr().cast::<u64>().read() };
    if BLOCKED_OUTSIDE.get() == Some(blocked) {
        return false;
    }

    let mut is_handler = false;
    visit(|frame| {
        is_handler = frame.is_interrupted;
        !is_handler
    });

    if !is_handler {
        BLOCKED_OUTSIDE.set(Some(blocked));
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
        IN_HANDLER.store(is_in_signal_handler(), Relaxed);
    }

    #[test]
    fn a_handler_is_recognized_and_blocked_signals_are_none() {
        assert!(!is_in_signal_handler());

        // SAFETY: the handler has the type that a handler must have, and only this test sends the
        // signal.
        unsafe { libc::signal(libc::SIGUSR2, handler as extern "C" fn(c_int) as usize) };
        // SAFETY: the signal has a handler, so it does not end the process.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert!(IN_HANDLER.load(Relaxed));

        let mut set: MaybeUninit<libc::sigset_t> = MaybeUninit::zeroed();
        // SAFETY: the set is valid for a write, and all zero bits are a valid, empty set.
        unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR1) };
        // SAFETY: the set is initialized, and the call accepts null for the old one.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
        assert!(!is_in_signal_handler());
    }
}
