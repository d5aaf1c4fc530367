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
    fn _Unwind_GetIPInfo(frame: *mut UnwindFrame, is_interrupted: *mut c_int) -> usize;
    fn _Unwind_GetCFA(frame: *mut UnwindFrame) -> usize;
}

/// Return codes of a visit: go on with the next frame, and stop.
const CONTINUE: c_int = 0;
const STOP: c_int = 4;

/// A frame of the stack of the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct VisitedFrame {
    /// The address of an instruction of the frame: the one behind its call of the next frame, or
    /// the one that a signal has interrupted.
    pub address: usize,
    /// True if a signal has interrupted the frame there.
    pub is_interrupted: bool,
    /// The lowest address of the frame's own part of the stack when it made its last call. On
    /// processors that push the return address of a call, such as x86-64, that address is in the
    /// word below.
    pub start: usize,
}

/// Calls `visit` for each frame, innermost first, until it returns false.
pub fn visit(mut visit: impl FnMut(VisitedFrame) -> bool) {
    extern "C" fn next<V: FnMut(VisitedFrame) -> bool>(
        frame: *mut UnwindFrame,
        visitor: *mut c_void,
    ) -> c_int {
        let mut is_interrupted = 0;
        // SAFETY: the unwinder passes a valid frame for the time of the call.
        let address = unsafe { _Unwind_GetIPInfo(frame, &raw mut is_interrupted) };
        // SAFETY: the same frame, which is still valid.
        let start = unsafe { _Unwind_GetCFA(frame) };
        // SAFETY: `start` has passed a pointer to a `V`, which it does not use until the unwinder
        // returns.
        let visitor = unsafe { &mut *visitor.cast::<V>() };

        let visited = VisitedFrame {
            address,
            is_interrupted: is_interrupted != 0,
            start,
        };
        if visitor(visited) { CONTINUE } else { STOP }
    }

    // A function, since only a generic parameter names the type of a closure.
    fn start<V: FnMut(VisitedFrame) -> bool>(visit: &mut V) {
        // The result only says why the visit has ended.
        // SAFETY: `next` has the signature that the unwinder requires, and gets a pointer to a `V`.
        unsafe { _Unwind_Backtrace(next::<V>, std::ptr::from_mut(visit).cast()) };
    }
    start(&mut visit);
}

impl VisitedFrame {
    /// Returns an address within the instruction that the frame executes: the return address of a
    /// call is behind it, perhaps in another function.
    pub fn instruction(&self) -> usize {
        self.address - usize::from(!self.is_interrupted && self.address > 0)
    }
}

/// The addresses of the frames of a stack, innermost first. Each is within the instruction that the
/// frame executes: the call of the next frame, or the instruction that a signal has interrupted.
#[derive(Clone, Debug)]
pub struct Stack(Box<[usize]>);

impl Stack {
    /// Captures the stack of the calling thread.
    pub fn capture() -> Stack {
        let mut addresses = Vec::new();
        visit(|frame| {
            addresses.push(frame.instruction());
            true
        });
        Stack(addresses.into())
    }

    /// Captures the stack of the function that a signal has interrupted, from the handler of this
    /// signal. It is empty outside a handler.
    pub fn capture_interrupted() -> Stack {
        let mut addresses = Vec::new();
        visit(|frame| {
            if frame.is_interrupted || !addresses.is_empty() {
                addresses.push(frame.instruction());
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
