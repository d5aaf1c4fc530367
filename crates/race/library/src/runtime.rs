//! The functions that the runtime calls, and the library's part in the start and exit of a process:
//! at the start it sets `SHMEM_CHECK` for a program that is linked with it, unless the user has set
//! it; at the exit it replaces a status of 0 if a race was reported, unless the settings keep it.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use rushmem_race::areas::{SegmentSizes, SharedAreas};
use rushmem_race::own_memory;
use rushmem_race::process::{self, ProcessDetector, active};
use rushmem_race::shared;
use rushmem_race_interface::{
    BufferPlace, ByteBlocks, CheckedAccess, CollectiveEvent, Detector, DetectorOpening, Order,
    Text, VERSION,
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
    writes,
    lock,
    block,
    buffers,
    close,
};

fn segment_sizes(opening: &DetectorOpening) -> SegmentSizes {
    SegmentSizes {
        heap_bytes: opening.heap_bytes,
        static_bytes: opening.static_bytes,
    }
}

extern "C" fn create(opening: &DetectorOpening) -> c_int {
    let n_words = SharedAreas::n_words(opening.n_pes, segment_sizes(opening));
    match shared::create(n_words) {
        // The descriptor stays open as long as this process.
        Ok(file) => file.into_raw_fd(),
        Err(error) => -error.raw_os_error(),
    }
}

extern "C" fn attach(opening: &DetectorOpening, pid: u32, fd: c_int) -> c_int {
    if process::resume() {
        return 0;
    }

    let segments = segment_sizes(opening);
    let n_words = SharedAreas::n_words(opening.n_pes, segments);
    let words = match shared::attach(n_words, pid, fd) {
        Ok(words) => words,
        Err(error) => return error.raw_os_error(),
    };

    let n = opening.n_pes as usize;
    // SAFETY: the runtime passes an array with an address for each of the `n` PEs, which is valid
    // during the call.
    let heaps = unsafe { std::slice::from_raw_parts(opening.heaps, n) };
    // SAFETY: as for the heaps.
    let statics = unsafe { std::slice::from_raw_parts(opening.statics, n) };
    ProcessDetector::start(SharedAreas::new(words, segments), opening, heaps, statics);

    watch_exit();
    // If memory for the handler is lacking, a forked child goes on checking, and may be killed
    // while it holds a lock of the shared memory.
    // SAFETY: the function exists until the process ends, since the library is never unloaded.
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

extern "C" fn seen(addr: usize, has_surplus: bool) {
    if let Some(process) = active() {
        process.seen(addr, has_surplus);
    }
}

extern "C" fn enter(collective: &CollectiveEvent) {
    if let Some(process) = active() {
        process.enter(collective);
    }
}

extern "C" fn leave(collective: &CollectiveEvent) {
    if let Some(process) = active() {
        // SAFETY: the blocks are valid during the call.
        let source = unsafe { collective.source.get() };
        // SAFETY: the same.
        let dest = unsafe { collective.dest.get() };
        process.leave(collective, source, dest);
    }
}

extern "C" fn writes(call: Text, dest: ByteBlocks, pe: u32) {
    if let Some(process) = active() {
        process.write_result(call.get(), dest, pe);
    }
}

extern "C" fn lock(addr: usize, is_taken: bool) {
    let Some(process) = active() else { return };
    if is_taken {
        process.acquire_lock(addr);
    } else {
        process.release_lock(addr);
    }
}

extern "C" fn block(call: Text, addr: usize, nbytes: usize, is_allocated: bool) {
    let Some(process) = active() else { return };
    if is_allocated {
        process.allocate_block(call.get(), addr, nbytes);
    } else {
        process.free_block(call.get(), addr, nbytes);
    }
}

extern "C" fn buffers(first: *const BufferPlace, n: usize) {
    if n == 0 {
        return own_memory::set_buffers(Vec::new());
    }
    // SAFETY: the runtime passes an array of `n` buffers, which is valid during the call.
    let buffers = unsafe { std::slice::from_raw_parts(first, n) };
    own_memory::set_buffers(buffers.to_vec());
}

extern "C" fn close() {
    if let Some(process) = active() {
        process.close();
    }
}

/// The environment variable that starts the detector, and its value.
const VARIABLE: &str = "SHMEM_CHECK";
const VALUE: &str = "races";

extern "C" fn at_load() {
    // A value that the user has set stays. If the runtime has opened this library, there is one.
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: the program is linked with this library, so the loader runs this before `main`,
        // on the only thread.
        unsafe { std::env::set_var(VARIABLE, VALUE) };
    }
    // Functions run in the reverse order of their registration, so this one runs after those that
    // the program registers.
    watch_exit();
}

/// Called by the dynamic linker when it loads the library.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Registers, at the first call, the function that replaces the exit status 0 of a PE if a race was
/// reported.
fn watch_exit() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    // Relaxed: the swap decides which call registers, and publishes nothing.
    if !IS_REGISTERED.swap(true, Relaxed) {
        // If memory is lacking, the exit status stays that of the program.
        // SAFETY: the function exists until the process ends, since the library is never unloaded.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    if status != 0 {
        return;
    }
    let Some(status) = process::status() else {
        return;
    };

    // What cannot be written is lost, as at any exit.
    // SAFETY: with null this writes the buffers of all streams, as `exit` would do next.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: `_exit` has no preconditions; it ends the process.
    unsafe { libc::_exit(status) }
}
