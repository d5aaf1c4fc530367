//! Signals belong to the program, so the threads of the library block all but those of faults.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The signals of a fault of the thread itself. If a thread blocks them, a fault ends the process
/// without a call of its handler.
pub const OF_FAULTS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The signals that a thread blocks.
pub struct SignalMask(libc::sigset_t);

impl SignalMask {
    /// Blocks all signals but those of faults in this thread. Returns the signals that it blocked
    /// before.
    pub fn block() -> SignalMask {
        let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the call writes a whole set to `blocked`, which has room for one.
        unsafe { libc::sigfillset(blocked.as_mut_ptr()) };
        for signal in OF_FAULTS {
            // SAFETY: the set was written above.
            unsafe { libc::sigdelset(blocked.as_mut_ptr(), signal) };
        }

        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // This cannot fail, nor can the other calls of this file: their arguments are valid.
        // SAFETY: the first set was written above, the second has room for one.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: written by the call, which cannot fail for a valid request.
        SignalMask(unsafe { before.assume_init() })
    }

    /// Makes this thread block these signals, and no others.
    pub fn restore(&self) {
        // SAFETY: the kernel has written the set of `self`; null says that the one before is not
        // wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, null_mut()) };
    }
}

/// Calls `act` with all signals but those of faults blocked in this thread. Threads that `act`
/// starts keep them blocked.
pub fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let before = SignalMask::block();
    let done = act();
    before.restore();
    done
}
