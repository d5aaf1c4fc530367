//! Which thread calls: one of the system's, unless the program has registered a function that
//! numbers its threads. A program whose threads move between those of the system does that.
#![allow(unsafe_code)]

use crate::base::call::{Call, fail};
use crate::base::process;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// A function of the program that returns a number which no other thread has, or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct GetThread(Option<unsafe extern "C" fn() -> u64>);

/// A thread that calls the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    OfSystem(ThreadId),
    OfProgram(u64),
}

static REGISTERED: Mutex<GetThread> = Mutex::new(GetThread(None));

/// `shmemx_register_gettid`: have a function of the program number threads.
///
/// # Safety
/// The function can be called by any thread that calls the library, as long as the process lives.
pub unsafe fn register(call: Call, function: GetThread) {
    if process::inits() > 0 {
        // Cause: `shmemx_register_gettid` behind `shmem_init`.
        fail!(
            call,
            "called after the initialization of the library, which knows the program's threads by other numbers; call it \
             before shmem_init_thread"
        );
    }
    *process::lock(&REGISTERED) = function;
}

/// The calling thread.
pub(crate) fn current() -> Caller {
    let registered = *process::lock(&REGISTERED);
    match registered.0 {
        // SAFETY: `register` requires that any thread can call it.
        Some(number) => Caller::OfProgram(unsafe { number() }),
        None => Caller::OfSystem(thread::current().id()),
    }
}
