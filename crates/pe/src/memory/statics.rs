//! The program's static data, which are symmetric like the heap. If a launcher started the process,
//! they are moved to shared memory when the library is loaded, before `main`: to the node's memory,
//! which `oshrun` provides, or under another launcher to memory of this PE that the other PEs of
//! the node map in `shmem_init`. Without a launcher, the first call with a unique id moves them.
//! The move keeps all values and addresses, so the process may do anything before `shmem_init`. If
//! it fails, the static data stay private, and peers reach them through a network.
//!
//! `variable_holding` bounds accesses for `SHMEM_CHECK`. The sizes of variables are those of the
//! symbols in the executable file, which is read when the first access to static data is checked.
//! Nothing is known of the variables of a program without a symbol table (`strip`).
//!
//! [`object_holding`] finds the program or library that contains an address. Each process may load
//! it at another address, but the offset of a variable in it is the same in all of them.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use rushmem_heap::Statics;
pub use rushmem_heap::statics::are_shared;
use rushmem_heap::statics::{NotRemapped, Remapped};
use rushmem_locate::{Variables, names};
use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of the move; empty if none was attempted, as before a process without a launcher uses
/// a unique id.
static OUTCOME: OnceLock<Result<Remapped, NotRemapped>> = OnceLock::new();
/// True if `oshrun` has started the process and offered memory for the static data. Relaxed: it is
/// stored before `main`, while the process has one thread.
static BY_OSHRUN: AtomicBool = AtomicBool::new(false);

/// The entry by which the dynamic linker calls the function, or the C library in a static program.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    let outcome = if let Some((memory, local)) = rushmem_bootstrap::node_memory() {
        BY_OSHRUN.store(true, Ordering::Relaxed);
        own().remap(memory, local)
    } else if rushmem_bootstrap::has_process_manager() {
        own().remap_alone()
    } else {
        return;
    };
    OUTCOME.get_or_init(|| outcome);
}

/// Moves the static data, unless this was attempted before, in a process that joins a job by a
/// unique id. The move is refused if the process has other threads.
pub fn move_now() {
    OUTCOME.get_or_init(|| own().remap_alone());
}

/// Returns the static data of this program.
pub fn own() -> &'static Statics {
    static OWN: OnceLock<Statics> = OnceLock::new();
    OWN.get_or_init(Statics::of_program)
}

/// Returns where the static data are in shared memory; `None` if they are not in shared memory, as
/// in a child of the process that the launcher has started.
pub fn remapped() -> Option<&'static Remapped> {
    let remapped = OUTCOME.get()?.as_ref().ok()?;
    let is_reachable = remapped.in_node_memory.is_some() || remapped.file().is_some();
    if are_shared() && is_reachable {
        Some(remapped)
    } else {
        None
    }
}

/// Returns true if `oshrun` has started this process and offered memory for the static data.
pub fn have_node_memory() -> bool {
    BY_OSHRUN.load(Ordering::Relaxed)
}

/// Returns the reason why the move of the static data has failed; `None` if it has succeeded, or
/// none was attempted.
pub fn refusal() -> Option<&'static NotRemapped> {
    OUTCOME.get()?.as_ref().err()
}

/// Returns the bounds of the static variable that contains the `nbytes` bytes at `addr`, of which
/// there is at least one; `None` if no variable is known at `addr`.
///
/// # Errors
/// If the variable contains the first byte but not the last one. The text completes a sentence that
/// begins with "`nbytes` bytes at `addr`".
pub(crate) fn variable_holding(addr: usize, nbytes: usize) -> Option<Result<Range<usize>, String>> {
    let load_address = own().load_address();
    let variable = variables()?.holding(addr.wrapping_sub(load_address) as u64, nbytes as u64)?;

    let start = load_address.wrapping_add(variable.address as usize);
    let end = start + variable.nbytes as usize;
    if nbytes <= end - addr {
        return Some(Ok(start..end));
    }

    let excess = nbytes - (end - addr);
    let name = names::in_source(variable.name);
    Some(Err(format!(
        "reach {excess} bytes past the end of the static variable {name} ({} bytes at {start:#x}), \
         which ends at {end:#x}",
        variable.nbytes
    )))
}

/// Returns true if a variable or a named constant of the program contains the byte at `addr`, false
/// if none does, as in a string or a function; `None` if the program has no symbol table.
pub(super) fn is_named(addr: usize) -> Option<bool> {
    let variables = variables()?;
    if !variables.are_complete() {
        return None;
    }
    let address = addr.wrapping_sub(own().load_address()) as u64;
    Some(variables.holding(address, 1).is_some())
}

/// Returns the variables of the program, which are read once.
fn variables() -> Option<&'static Variables> {
    static OF_PROGRAM: OnceLock<Option<Variables>> = OnceLock::new();
    OF_PROGRAM.get_or_init(variables_of_program).as_ref()
}

/// Reads the variables of the program that this process runs. Returns `None` if its file cannot be
/// read or is that of another program.
fn variables_of_program() -> Option<Variables> {
    let variables = Variables::of(File::open("/proc/self/exe").ok()?);

    // SAFETY: the call only reads a value that the kernel has passed to this process.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
    // The file is not this program if another one has loaded it: the dynamic linker, when a user
    // starts the linker with the program as an argument.
    if entry.wrapping_sub(own().load_address()) as u64 == variables.entry() {
        Some(variables)
    } else {
        None
    }
}

/// An address in a program or library (an object), as its name and an offset.
pub struct ObjectOffset {
    /// The file name of the object, from the dynamic linker. Empty for the program itself, which
    /// the linker names as it was started, perhaps differently on each PE.
    pub name: Vec<u8>,
    /// The distance in bytes from the load address of the object.
    pub offset: usize,
}

/// Returns the object and the offset of an address; `None` if no object contains it.
pub fn object_holding(address: *const c_void) -> Option<ObjectOffset> {
    let info = object_info(address.addr())?;
    let offset = address.addr() - info.dli_fbase.addr();

    if program_info().is_some_and(|program| program.dli_fbase == info.dli_fbase) {
        return Some(ObjectOffset {
            name: Vec::new(),
            offset,
        });
    }

    // SAFETY: `dladdr` returns a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(ObjectOffset {
        name: name.to_bytes().to_owned(),
        offset,
    })
}

/// Returns the linker's name and the load address of the program or library that contains an
/// address; `None` if no object does.
pub fn object_info(address: usize) -> Option<libc::Dl_info> {
    let address = std::ptr::without_provenance(address);
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` accepts any address and writes only to `info`.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }

    // SAFETY: `info` was zeroed, and null is valid for each of its fields.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    Some(info)
}

/// Returns the linker's name and the load address of the program itself; `None` if the linker does
/// not know them.
pub(crate) fn program_info() -> Option<libc::Dl_info> {
    // The program headers are in the program's file.
    // SAFETY: the call only reads a value that the kernel has passed to this process.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    object_info(headers as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    static HERE: [u64; 4] = [1, 2, 3, 4];

    #[test]
    fn a_static_is_in_this_program() {
        let object = |i: usize| object_holding((&raw const HERE[i]).cast()).expect("a static");
        assert_eq!(object(3).offset - object(0).offset, 24);
        assert!(object(0).name.is_empty(), "a static of the program");

        let library =
            object_holding(libc::malloc as *const c_void).expect("a function of a library");
        assert!(!library.name.is_empty());
    }

    #[test]
    fn the_stack_is_in_none() {
        let local = 5u64;
        assert!(object_holding((&raw const local).cast()).is_none());
    }
}
