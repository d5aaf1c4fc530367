//! Symmetric memory: the routines for Cray pointers, which are integers of the size of an address.
//!
//! Lengths are in words of 4 bytes. An error ends the job if the argument `abort` is not 0;
//! otherwise the routine writes a negative code.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use rushmem_runtime::Call;
use rushmem_runtime::heap::{self, NotABlock};

use super::export::In;

/// The number of bytes of a word.
const WORD: usize = 4;

/// The status of SHPCLMOVE if the block was moved.
const MOVED: c_int = 1;

/// A Cray pointer.
type Pointer = *mut *mut c_void;

fortran! {
    [shpalloc](addr: Pointer, length: In<c_int>, errcode: *mut c_int, abort: In<c_int>) = |call| {
        let block = allocate(call, length);
        addr.write_unaligned(block.unwrap_or(core::ptr::null_mut()));
        errcode.write_unaligned(code(call, abort, block.map(|_| 0)))
    };
    [shpdeallc](addr: Pointer, errcode: *mut c_int, abort: In<c_int>)
        = |call| errcode.write_unaligned(code(call, abort, free(call, addr.read_unaligned())));
    // The name of SHPDEALLC in other libraries.
    [shpdealloc](addr: Pointer, errcode: *mut c_int, abort: In<c_int>)
        = |call| errcode.write_unaligned(code(call, abort, free(call, addr.read_unaligned())));
    [shpclmove](addr: Pointer, length: In<c_int>, status: *mut c_int, abort: In<c_int>) = |call| {
        let old = addr.read_unaligned();
        let block = resize(call, old, length);
        addr.write_unaligned(block.unwrap_or(old));
        let moved = block.map(|block| if block == old { 0 } else { MOVED });
        status.write_unaligned(code(call, abort, moved))
    };
}

/// The errors, whose codes are those of the standard.
#[derive(Clone, Copy)]
enum Error {
    /// The length is less than 1.
    Length(c_int),
    /// The heap has no room for this number of bytes.
    NoMemory(usize),
    /// The address is not in the symmetric heap.
    Outside(*mut c_void),
    /// The block at the address is free.
    Free(*mut c_void),
    /// The address is within a block.
    Inside(*mut c_void),
}

impl Error {
    fn code(self) -> c_int {
        match self {
            Error::Length(_) => -1,
            Error::NoMemory(_) => -2,
            Error::Outside(_) => -3,
            Error::Free(_) => -4,
            Error::Inside(_) => -5,
        }
    }

    /// Ends the job.
    fn fail(self, call: Call) -> ! {
        match self {
            Error::Length(length) => call.fail(format_args!(
                "argument length is {length}, but a length is at least 1"
            )),
            Error::NoMemory(nbytes) => call.fail(format_args!(
                "the symmetric heap has no room for {nbytes} bytes; make SHMEM_SYMMETRIC_SIZE larger"
            )),
            Error::Outside(addr) => call.fail(format_args!(
                "argument addr: {addr:p} is not in the symmetric heap"
            )),
            Error::Free(addr) => call.fail(format_args!(
                "argument addr: the block at {addr:p} is free already"
            )),
            Error::Inside(addr) => call.fail(format_args!(
                "argument addr: {addr:p} is within a block, not its beginning"
            )),
        }
    }
}

/// Returns the code of a result. Ends the job for an error if `abort` is not 0.
fn code(call: Call, abort: c_int, result: Result<c_int, Error>) -> c_int {
    match result {
        Ok(code) => code,
        Err(error) if abort != 0 => error.fail(call),
        Err(error) => error.code(),
    }
}

/// Returns the number of bytes of `length` words; an error if `length` is below 1.
fn nbytes(length: c_int) -> Result<usize, Error> {
    match usize::try_from(length) {
        Ok(words @ 1..) => Ok(words * WORD),
        _ => Err(Error::Length(length)),
    }
}

fn allocate(call: Call, length: c_int) -> Result<*mut c_void, Error> {
    let nbytes = nbytes(length)?;
    present(heap::malloc(call, nbytes), nbytes)
}

fn resize(call: Call, addr: *mut c_void, length: c_int) -> Result<*mut c_void, Error> {
    let nbytes = nbytes(length)?;
    check_block(call, addr)?;
    // SAFETY: the caller keeps the standard's contract of SHPCLMOVE, and `addr` is a block.
    present(unsafe { heap::realloc(call, addr, nbytes) }, nbytes)
}

fn free(call: Call, addr: *mut c_void) -> Result<c_int, Error> {
    check_block(call, addr)?;
    // SAFETY: the caller keeps the standard's contract of SHPDEALLC, and `addr` is a block.
    unsafe { heap::free(call, addr) };
    Ok(0)
}

fn present(block: *mut c_void, nbytes: usize) -> Result<*mut c_void, Error> {
    if block.is_null() {
        Err(Error::NoMemory(nbytes))
    } else {
        Ok(block)
    }
}

fn check_block(call: Call, addr: *mut c_void) -> Result<(), Error> {
    heap::check_block(call, addr).map_err(|error| match error {
        NotABlock::Outside => Error::Outside(addr),
        NotABlock::Free => Error::Free(addr),
        NotABlock::Inside => Error::Inside(addr),
    })
}
