//! Constants of the program, which each PE has in read-only memory of its own.
//!
//! They are static variables, so they are symmetric (OpenSHMEM 1.6, §6), but no PE can change them.
//! An access that only reads a constant of another PE reads this PE's copy, which is equal: the
//! executable is the same on all PEs, and a constant that contains addresses is refused.

use crate::call::Call;
use crate::job::{self, Job};
use crate::memory::{address, statics};
use core::ffi::c_int;
use rushmem_heap::statics::ConstantMemory;

/// The name of the argument by which routines read a symmetric object.
pub(super) const SOURCE: &str = "source";

/// Returns true if the `nbytes` bytes at `addr` are constant, and equal on all PEs.
pub(crate) fn are_equal(job: &Job, addr: usize, nbytes: usize) -> bool {
    job.has_equal_constants
        && statics::own().constant_at(addr, nbytes) == Some(ConstantMemory::Equal)
}

/// Returns true if `argument` of `call` is read only, and names a constant that `pe` has, too.
pub fn can_read(call: Call, argument: &str, addr: usize, nbytes: usize, pe: c_int) -> bool {
    argument == SOURCE && address::is_pe(pe) && are_equal(job::require(call), addr, nbytes)
}

/// Returns the reason why an access to `argument` cannot be made, if `addr` is in read-only memory
/// of the program or in a shared library. The text completes a sentence that begins with "`addr`".
pub fn refusal(
    call: Call,
    job: &Job,
    argument: &str,
    addr: usize,
    nbytes: usize,
) -> Option<String> {
    let Some(memory) = statics::own().constant_at(addr, 1) else {
        return in_library(addr);
    };

    let remove = if call.is_fortran() {
        "remove PARAMETER and give it the attribute SAVE"
    } else {
        "remove const"
    };
    Some(if argument == SOURCE {
        why_not_read(job, memory, nbytes, remove)
    } else {
        why_not_written(call, addr, remove)
    })
}

/// Returns the reason why constants of another PE cannot be read; `remove` names the remedy.
fn why_not_read(job: &Job, memory: ConstantMemory, nbytes: usize, remove: &str) -> String {
    if memory == ConstantMemory::Relocated {
        return format!("is constant and contains addresses, which differ from PE to PE; {remove}");
    }
    if !job.has_equal_constants {
        return format!(
            "is constant, and the PEs run different builds of the program; start all PEs with the same \
             executable, or {remove}"
        );
    }
    // `can_read` accepts equal constants, so the bytes reach beyond them.
    format!("is followed by fewer than {nbytes} bytes of constants; check the count")
}

/// Returns the reason why a constant cannot be written; `remove` names the remedy.
fn why_not_written(call: Call, addr: usize, remove: &str) -> String {
    // The constants of Fortran need not have names.
    let is_variable = call.is_fortran() || statics::is_named(addr) != Some(false);
    if is_variable {
        return format!("is constant; {remove}");
    }
    "is in a string or a function of the program, which no PE can write; pass a variable, or \
     memory of shmem_malloc"
        .to_owned()
}

/// Returns the reason why an access cannot be made, if `addr` is in a shared library.
fn in_library(addr: usize) -> Option<String> {
    let object = statics::object_holding(std::ptr::without_provenance(addr))?;
    let library = String::from_utf8_lossy(&object.name);
    if library.is_empty() {
        // The program itself.
        return None;
    }
    Some(format!(
        "is in the shared library {library}, whose variables are not symmetric; use shmem_malloc, or \
         define the variable in the program"
    ))
}
