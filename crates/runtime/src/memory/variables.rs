//! The static variables of the program, by which `SHMEM_CHECK` bounds accesses to them. Their sizes
//! are those of the symbols in the executable file, which is read when the first access is checked.
//! Nothing is known of the variables of a program without a symbol table (`strip`).
#![allow(unsafe_code)]

use crate::call::demangled;
use crate::memory::statics;
use rushmem_explain::symbols::Variables;
use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;

/// Returns the bounds of the static variable that has `nbytes` bytes at `addr`, at least one;
/// `None` if no variable is known there.
///
/// # Errors
/// If it has the first of them but not the last one; the message continues a sentence about them.
pub(crate) fn hold(addr: usize, nbytes: usize) -> Option<Result<Range<usize>, String>> {
    static OF_PROGRAM: OnceLock<Option<Variables>> = OnceLock::new();
    let variables = OF_PROGRAM.get_or_init(of_program).as_ref()?;
    let load_address = statics::own().load_address();
    let variable = variables.holding(addr.wrapping_sub(load_address) as u64, nbytes as u64)?;
    let start = load_address.wrapping_add(variable.address as usize);
    let end = start + variable.nbytes as usize;
    if nbytes <= end - addr {
        return Some(Ok(start..end));
    }
    let (by, variable_bytes) = (nbytes - (end - addr), variable.nbytes);
    let name = demangled(variable.name).unwrap_or_else(|| variable.name.to_owned());
    Some(Err(format!(
        "reach {by} bytes past the end of the static variable {name} ({variable_bytes} bytes at {start:#x}), \
         which ends at {end:#x}"
    )))
}

/// Reads the variables of the program that this process runs.
fn of_program() -> Option<Variables> {
    let variables = Variables::of(File::open("/proc/self/exe").ok()?);
    // SAFETY: only reads a value that the kernel has passed to this process.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
    // The file is another program if that has loaded this one, as the dynamic linker does when it is
    // called by its name.
    let is_this = entry.wrapping_sub(statics::own().load_address()) as u64 == variables.entry();
    is_this.then_some(variables)
}
