//! The call that uses the network, for the status of a PE whose thread waits there.
//!
//! Operations set it, which is one store, and only where no two threads are in the library at
//! once: otherwise the calls of threads could not be distinguished, and all would write to one
//! cache line.
#![allow(unsafe_code)]

use crate::call::thread;
use crate::call::{Call, CallName, call};
use crate::net::contexts;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

static CALL: AtomicPtr<CallName> = AtomicPtr::new(null_mut());

/// Sets the call that is about to use the network.
#[inline(always)]
pub(crate) fn set(call: Call) {
    CALL.store(from_ref(call.0).cast_mut(), Relaxed);
}

/// Returns the call that waits for the network.
pub(crate) fn current() -> Call {
    if let Some(call) = thread::carries_out() {
        return call;
    }
    // SAFETY: null, or the address of a name that lives as long as the process.
    let call = unsafe { CALL.load(Relaxed).cast_const().as_ref() };
    let call = call.filter(|_| !contexts::are_threads_at_once());
    call.map_or(call!("an operation over the network"), Call)
}
