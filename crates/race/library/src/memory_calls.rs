//! Functions of the C library by which a program loads and stores. `oshcc --race` links the
//! program's own calls of them to these (the linker's `--wrap`); code that clang has compiled calls
//! those whose names begin with `__tsan_`.
//!
//! The functions that free memory interpose those of the C library for the whole process. Another
//! thread may get the memory next, and the allocator or the kernel orders the two threads.
#![allow(unsafe_code)]

use crate::next::{around_next, next};
use crate::synchronization::with;
use crate::tsan::with_return_address;
use core::ffi::{c_char, c_int, c_void};
use rushmem_race::access::ShadowKind;
use rushmem_race::private;
use rushmem_race::process::accesses::access_range;
use rushmem_race::process::active;
use rushmem_race::process::freed::UsedMemory;
use std::ops::Range;
use std::sync::OnceLock;

/// A parameter that only fills a place: the stubs of `with_return_address` pass the return address
/// as the sixth argument.
type Unused = usize;

fn access(addr: *const c_void, nbytes: usize, kind: ShadowKind, return_address: usize) {
    access_range(addr.addr(), nbytes, kind, return_address.wrapping_sub(1));
}

extern "C" fn copy(
    dest: *mut c_void,
    source: *const c_void,
    nbytes: usize,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_void {
    access(source, nbytes, ShadowKind::LOAD, return_address);
    access(dest, nbytes, ShadowKind::STORE, return_address);
    // SAFETY: the program keeps the contract of memcpy.
    unsafe { libc::memcpy(dest, source, nbytes) }
}

extern "C" fn copy_overlapping(
    dest: *mut c_void,
    source: *const c_void,
    nbytes: usize,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_void {
    access(source, nbytes, ShadowKind::LOAD, return_address);
    access(dest, nbytes, ShadowKind::STORE, return_address);
    // SAFETY: the program keeps the contract of memmove.
    unsafe { libc::memmove(dest, source, nbytes) }
}

extern "C" fn set(
    dest: *mut c_void,
    byte: c_int,
    nbytes: usize,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_void {
    access(dest, nbytes, ShadowKind::STORE, return_address);
    // SAFETY: the program keeps the contract of memset.
    unsafe { libc::memset(dest, byte, nbytes) }
}

extern "C" fn compare(
    a: *const c_void,
    b: *const c_void,
    nbytes: usize,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> c_int {
    access(a, nbytes, ShadowKind::LOAD, return_address);
    access(b, nbytes, ShadowKind::LOAD, return_address);
    // SAFETY: the program keeps the contract of memcmp.
    unsafe { libc::memcmp(a, b, nbytes) }
}

extern "C" fn length(
    text: *const c_char,
    _: Unused,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> usize {
    // SAFETY: the program keeps the contract of strlen.
    let nbytes = unsafe { libc::strlen(text) };
    access(text.cast(), nbytes + 1, ShadowKind::LOAD, return_address);
    nbytes
}

extern "C" fn copy_to_end(
    dest: *mut c_void,
    source: *const c_void,
    nbytes: usize,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_void {
    copy(dest, source, nbytes, 0, 0, return_address).wrapping_byte_add(nbytes)
}

extern "C" fn copy_text(
    dest: *mut c_char,
    source: *const c_char,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_char {
    copy_text_to_end(dest, source, 0, 0, 0, return_address);
    dest
}

extern "C" fn copy_text_to_end(
    dest: *mut c_char,
    source: *const c_char,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_char {
    // SAFETY: the program keeps the contract of strcpy, whose source is a string.
    let nbytes = unsafe { libc::strlen(source) } + 1;
    access(source.cast(), nbytes, ShadowKind::LOAD, return_address);
    access(dest.cast(), nbytes, ShadowKind::STORE, return_address);
    // SAFETY: the program keeps the contract of stpcpy, which is also that of strcpy.
    unsafe { libc::stpcpy(dest, source) }
}

/// Carries out strncpy.
extern "C" fn copy_text_of_length(
    dest: *mut c_char,
    source: *const c_char,
    nbytes: usize,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_char {
    // SAFETY: the program keeps the contract of strncpy, whose source ends after `nbytes` bytes or
    // with a null byte.
    let n_read = (unsafe { libc::strnlen(source, nbytes) } + 1).min(nbytes);
    access(source.cast(), n_read, ShadowKind::LOAD, return_address);
    access(dest.cast(), nbytes, ShadowKind::STORE, return_address);
    // SAFETY: the program keeps the contract of strncpy.
    unsafe { libc::strncpy(dest, source, nbytes) }
}

extern "C" fn append_text(
    dest: *mut c_char,
    source: *const c_char,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) -> *mut c_char {
    let end = dest.wrapping_add(length(dest, 0, 0, 0, 0, return_address));
    copy_text_to_end(end, source, 0, 0, 0, return_address);
    dest
}

with_return_address! {
    __tsan_memcpy => copy;
    __tsan_memmove => copy_overlapping;
    __tsan_memset => set;
    __wrap_memcpy => copy;
    __wrap_memmove => copy_overlapping;
    __wrap_memset => set;
    __wrap_memcmp => compare;
    __wrap_strlen => length;
    __wrap_strcpy => copy_text;
    __wrap_mempcpy => copy_to_end;
    __wrap_stpcpy => copy_text_to_end;
    __wrap_strncpy => copy_text_of_length;
    __wrap_strcat => append_text;
}

around_next! {
    free_block(0): free;
    move_block(0): realloc reallocarray;
}

fn free_block(block: usize, next: impl FnOnce() -> usize) -> usize {
    free_memory("free", bytes_of_block(block));
    next()
}

/// Frees a block if `next` returns another one.
fn move_block(block: usize, next: impl FnOnce() -> usize) -> usize {
    let used = forget_freed(bytes_of_block(block));
    let moved = next();
    if moved != 0
        && moved != block
        && let Some(used) = used
    {
        with(|process| process.report_freed("realloc", used));
    }
    moved
}

/// Returns the bytes of a block of the allocator; no bytes if it is null, or if no private memory
/// is watched.
fn bytes_of_block(block: usize) -> Range<usize> {
    if block == 0 || !private::is_watched() {
        return block..block;
    }
    let start = std::ptr::with_exposed_provenance_mut(block);
    // SAFETY: the caller frees or moves the block, so it is one of the allocator.
    let nbytes = unsafe { libc::malloc_usable_size(start) };
    block..block + nbytes
}

/// Forgets the accesses to memory that `call` frees, and reports an operation in flight that uses
/// it.
fn free_memory(call: &'static str, memory: Range<usize>) {
    if let Some(used) = forget_freed(memory) {
        with(|process| process.report_freed(call, used));
    }
}

fn forget_freed(memory: Range<usize>) -> Option<UsedMemory> {
    if memory.is_empty() {
        return None;
    }
    active()?.forget_freed(memory)
}

/// Interposes the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(start: *mut c_void, nbytes: usize) -> c_int {
    type Unmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;
    static NEXT: OnceLock<Unmap> = OnceLock::new();
    if private::is_watched() {
        free_memory("munmap", start.addr()..start.addr().saturating_add(nbytes));
    }
    // SAFETY: munmap of the C library has the type of `NEXT`.
    let next = *NEXT.get_or_init(|| unsafe { next(c"munmap") });
    // SAFETY: the caller keeps the contract of this function.
    unsafe { next(start, nbytes) }
}
