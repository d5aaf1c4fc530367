//! The functions that the runtime calls.
#![allow(unsafe_code)]

use core::ffi::c_int;
use rushmem_race::areas::SharedAreas;
use rushmem_race::process::{self, ProcessDetector, active};
use rushmem_race::shared;
use rushmem_race_interface::{
    CheckedAccess, CollectiveEvent, Detector, DetectorOpening, Order, Text, VERSION,
};
use std::os::fd::IntoRawFd;

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
    crate::at_exit::register();
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
