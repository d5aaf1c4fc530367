//! The functions that the runtime calls, and the start and the exit of the process: a program that
//! is linked with this library asks for the detector, and ends with a status of its own if a race
//! was found.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use rushmem_race::areas::SharedAreas;
use rushmem_race::process::{self, ProcessDetector, active};
use rushmem_race::shared;
use rushmem_race_interface::{
    CheckedAccess, CollectiveEvent, Detector, DetectorOpening, Order, Text, VERSION,
};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The functions of the detector, for the runtime.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static rushmem_race_detector: Detector = Detector {
    version: VERSION,
    create,
    attach,
    begin,
    end,
    order,
    seen,
    enter,
    leave,
    lock,
    block,
    close,
};

fn n_words(opening: &DetectorOpening) -> usize {
    SharedAreas::n_words(opening.n_pes, [opening.heap_bytes, opening.static_bytes])
}

extern "C" fn create(opening: &DetectorOpening) -> c_int {
    match shared::create(n_words(opening)) {
        // It lasts as long as this process.
        Ok(file) => file.into_raw_fd(),
        Err(error) => -error.raw_os_error(),
    }
}

extern "C" fn attach(opening: &DetectorOpening, pid: u32, fd: c_int) -> c_int {
    if process::resume() {
        return 0;
    }
    let segments = [opening.heap_bytes, opening.static_bytes];
    let words = match shared::attach(n_words(opening), pid, fd) {
        Ok(words) => words,
        Err(error) => return error.raw_os_error(),
    };
    let n = opening.n_pes as usize;
    // SAFETY: the runtime passes an address for each PE.
    let heaps = unsafe { std::slice::from_raw_parts(opening.heaps, n) };
    // SAFETY: the same.
    let statics = unsafe { std::slice::from_raw_parts(opening.statics, n) };
    ProcessDetector::start(SharedAreas::new(words, segments), opening, heaps, statics);
    watch_exit();
    // SAFETY: the library stays loaded.
    unsafe { libc::pthread_atfork(None, None, Some(process::end_in_child)) };
    0
}

extern "C" fn begin(access: &CheckedAccess) {
    if let Some(process) = active() {
        process.begin(access);
    }
}

extern "C" fn end(access: &CheckedAccess) {
    if let Some(process) = active() {
        process.end(access);
    }
}

extern "C" fn order(order: Order, ctx: u64, pe: u32) {
    if let Some(process) = active() {
        process.order(order, ctx, pe);
    }
}

extern "C" fn seen(addr: usize) {
    if let Some(process) = active() {
        process.seen(addr);
    }
}

extern "C" fn enter(collective: &CollectiveEvent) {
    if let Some(process) = active() {
        process.enter(collective);
    }
}

extern "C" fn leave(collective: &CollectiveEvent) {
    if let Some(process) = active() {
        process.leave(collective);
    }
}

extern "C" fn lock(addr: usize, is_taken: bool) {
    if let Some(process) = active() {
        process.lock(addr, is_taken);
    }
}

extern "C" fn block(call: Text, addr: usize, nbytes: usize, is_allocated: bool) {
    if let Some(process) = active() {
        process.block(call.get(), addr, nbytes, is_allocated);
    }
}

extern "C" fn close() {
    if let Some(process) = active() {
        process.close();
    }
}

/// The variable that asks for the detector, and the value.
const VARIABLE: &str = "SHMEM_CHECK";
const VALUE: &str = "races";

extern "C" fn ask() {
    // The runtime opens the library for programs that run with another value.
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: the loader runs this before `main`, on the only thread.
        unsafe { std::env::set_var(VARIABLE, VALUE) };
    }
    // The function that is registered first runs last.
    watch_exit();
}

#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = ask;

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Gives a PE that would end well although a race was found another exit status.
fn watch_exit() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.swap(true, Relaxed) {
        // SAFETY: the library stays loaded.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    if status == 0
        && let Some(status) = rushmem_race::process::status()
    {
        // SAFETY: writes what the program has printed, as its exit would.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // SAFETY: ends the process.
        unsafe { libc::_exit(status) }
    }
}
