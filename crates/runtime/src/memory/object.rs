//! Finds the loaded object that contains an address: the program or one of its libraries.
//!
//! Objects are loaded at different addresses in every process, but offsets within an object are the
//! same in all of them.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

/// An address as object and offset.
pub(crate) struct ObjectOffset {
    /// The object's file name as the dynamic linker has it; empty for the program, whose name there
    /// is what its process was called and may differ from PE to PE.
    pub(crate) name: Vec<u8>,
    /// Bytes from its load address.
    pub(crate) offset: usize,
}

/// Returns the location of `address`; `None` if no object contains it.
pub(crate) fn holding(address: *const c_void) -> Option<ObjectOffset> {
    let info = info(address)?;
    let offset = address.addr() - info.dli_fbase.addr();
    // SAFETY: asks for a number that the kernel gave this process at its start.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    let program = self::info(std::ptr::without_provenance(headers as usize));
    if program.is_some_and(|program| program.dli_fbase == info.dli_fbase) {
        return Some(ObjectOffset { name: Vec::new(), offset });
    }
    // SAFETY: the name of a loaded object is a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(ObjectOffset { name: name.to_bytes().to_owned(), offset })
}

fn info(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be queried; `info` is valid for a write.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: dladdr filled it in, and zeroes are valid values before.
    let info = unsafe { info.assume_init() };
    (found != 0 && !info.dli_fname.is_null()).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    static HERE: [u64; 4] = [1, 2, 3, 4];

    #[test]
    fn a_static_is_in_this_program() {
        let at = |i: usize| holding((&raw const HERE[i]).cast()).expect("a static");
        assert_eq!(at(3).offset - at(0).offset, 24);
        assert!(at(0).name.is_empty(), "a static of the program");
        let library = holding(libc::malloc as *const c_void).expect("a function of a library");
        assert!(!library.name.is_empty());
    }

    #[test]
    fn the_stack_is_in_none() {
        let local = 5u64;
        assert!(holding((&raw const local).cast()).is_none());
    }
}
