//! The frames of the calling thread, by the unwinder that Rust's standard library is linked with
//! for its own backtraces. To visit one takes a fraction of a microsecond.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

/// A frame, of which the unwinder alone knows the form.
#[repr(C)]
struct Frame(c_void);

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut Frame, *mut c_void) -> c_int,
        visitor: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(frame: *mut Frame, at_instruction: *mut c_int) -> usize;
}

/// Go on with the next frame, and do not: codes of the unwinder.
const CONTINUE: c_int = 0;
const STOP: c_int = 4;

/// Visits frames, innermost first, until `visit` returns false: it gets the address in the code,
/// and whether a signal has interrupted the frame there.
pub(super) fn visit(mut visit: impl FnMut(usize, bool) -> bool) {
    extern "C" fn next<V: FnMut(usize, bool) -> bool>(
        frame: *mut Frame,
        visitor: *mut c_void,
    ) -> c_int {
        let mut at_instruction = 0;
        // SAFETY: the frame is that of the unwinder's visit.
        let address = unsafe { _Unwind_GetIPInfo(frame, &raw mut at_instruction) };
        // SAFETY: it is that of `visit`, which waits for the unwinder and uses it nowhere else.
        let visitor = unsafe { &mut *visitor.cast::<V>() };
        // A signal interrupts before an instruction; a call returns behind one.
        if visitor(address, at_instruction != 0) { CONTINUE } else { STOP }
    }
    fn start<V: FnMut(usize, bool) -> bool>(visit: &mut V) {
        // SAFETY: `next` has the form that the unwinder asks for, and its argument is a `V`.
        unsafe { _Unwind_Backtrace(next::<V>, std::ptr::from_mut(visit).cast()) };
    }
    start(&mut visit);
}

/// Returns a number of the calls that this thread is in, which differs from that of other calls.
pub(crate) fn digest() -> u64 {
    let mut digest = 0u64;
    visit(|address, _| {
        digest = (digest.rotate_left(5) ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        true
    });
    digest
}
