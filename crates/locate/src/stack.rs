//! The stack of the calling thread. The frames are visited by the unwinder that Rust's standard
//! library uses for its backtraces, which takes a fraction of a microsecond for each frame.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

/// A frame of the unwinder, whose contents only the unwinder knows.
#[repr(C)]
struct UnwindFrame(c_void);

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut UnwindFrame, *mut c_void) -> c_int,
        visitor: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(frame: *mut UnwindFrame, at_instruction: *mut c_int) -> usize;
}

/// Return codes of a visit: go on with the next frame, and stop.
const CONTINUE: c_int = 0;
const STOP: c_int = 4;

/// Calls `visit` for each frame, innermost first, until it returns false. Its arguments are the
/// address of an instruction of the frame, and true if a signal has interrupted the frame there.
pub fn visit(mut visit: impl FnMut(usize, bool) -> bool) {
    extern "C" fn next<V: FnMut(usize, bool) -> bool>(
        frame: *mut UnwindFrame,
        visitor: *mut c_void,
    ) -> c_int {
        let mut at_instruction = 0;
        // SAFETY: the unwinder passes a valid frame for the time of the call.
        let address = unsafe { _Unwind_GetIPInfo(frame, &raw mut at_instruction) };
        // SAFETY: `start` has passed a pointer to a `V`, which it does not use until the unwinder
        // returns.
        let visitor = unsafe { &mut *visitor.cast::<V>() };
        // A frame that a signal has interrupted continues at its address; one that has made a call
        // continues behind the call.
        if visitor(address, at_instruction != 0) {
            CONTINUE
        } else {
            STOP
        }
    }
    fn start<V: FnMut(usize, bool) -> bool>(visit: &mut V) {
        // SAFETY: `next` has the signature that the unwinder requires, and gets a pointer to a `V`.
        unsafe { _Unwind_Backtrace(next::<V>, std::ptr::from_mut(visit).cast()) };
    }
    start(&mut visit);
}

/// The addresses of the frames of a stack, innermost first. Each is within the instruction that the
/// frame executes: the call of the next frame, or the instruction that a signal has interrupted.
#[derive(Clone, Debug)]
pub struct Stack(Box<[usize]>);

impl Stack {
    /// Captures the stack of the calling thread.
    pub fn capture() -> Stack {
        let mut addresses = Vec::new();
        visit(|address, is_interrupted| {
            addresses.push(within_instruction(address, is_interrupted));
            true
        });
        Stack(addresses.into())
    }

    /// Captures the stack of the function that a signal has interrupted, from the handler of this
    /// signal. It is empty outside a handler.
    pub fn capture_interrupted() -> Stack {
        let mut addresses = Vec::new();
        visit(|address, is_interrupted| {
            if is_interrupted || !addresses.is_empty() {
                addresses.push(within_instruction(address, is_interrupted));
            }
            true
        });
        Stack(addresses.into())
    }

    /// Returns the addresses, innermost first.
    pub fn addresses(&self) -> &[usize] {
        &self.0
    }
}

/// Returns an address within the instruction of a frame: the return address of a call is behind it,
/// perhaps in another function.
fn within_instruction(address: usize, is_interrupted: bool) -> usize {
    address - usize::from(!is_interrupted && address > 0)
}
