//! Setup, exit and query, under the present and the deprecated names.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_void};

use rushmem_providers::ALL;
use rushmem_runtime::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_runtime::{also_flush, setup, start};

use super::export::In;

fortran! {
    [shmem_init]() = |call| {
        also_flush(flush_units);
        start::init(call, ALL)
    };
    [start_pes](_npes: *const c_int) = |call| {
        also_flush(flush_units);
        start::start_pes(call, ALL)
    };
    [shmem_finalize]() = |call| setup::finalize(call);
    [shmem_global_exit](status: In<c_int>) -> ! = |call| setup::global_exit(call, status);

    [shmem_my_pe]() -> c_int = |call| setup::my_pe(call);
    [my_pe]() -> c_int = |call| setup::my_pe(call);
    [shmem_n_pes]() -> c_int = |call| setup::n_pes(call);
    [num_pes]() -> c_int = |call| setup::n_pes(call);

    [shmem_ptr](dest: *const c_void, pe: In<c_int>) -> *mut c_void
        = |call| setup::ptr(call, dest, pe);
    [shmem_addr_accessible](addr: *const c_void, pe: In<c_int>) -> c_int
        = |call| setup::addr_accessible(call, addr, pe);
    [shmem_pe_accessible](pe: In<c_int>) -> c_int = |call| setup::pe_accessible(call, pe);

    [shmem_info_get_version](major: *mut c_int, minor: *mut c_int) = |_call| {
        major.write_unaligned(SHMEM_MAJOR_VERSION);
        minor.write_unaligned(SHMEM_MINOR_VERSION)
    };
    [shmem_info_get_name](name: *mut c_char, length: usize) = |_call| vendor(name, length);
}

unsafe extern "C" {
    /// See `units.c`.
    fn rushmem_flush_units();
}

/// Writes the buffers of Fortran units before the library ends the process.
pub(super) fn flush_units() {
    // SAFETY: the function may be called at any time, from any thread.
    unsafe { rushmem_flush_units() };
}

/// Writes the vendor string, padded with blanks as Fortran requires.
///
/// # Safety
/// `name` has room for `length` characters.
unsafe fn vendor(name: *mut c_char, length: usize) {
    let text = SHMEM_VENDOR_STRING.as_bytes();
    let text = &text[..text.len().min(length)];
    // SAFETY: `name` has room for `length` characters, as this function requires.
    unsafe { name.cast::<u8>().write_bytes(b' ', length) };
    // SAFETY: the text has at most `length` bytes, and is a constant, so it does not overlap the
    // caller's buffer.
    unsafe {
        name.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len())
    };
}
