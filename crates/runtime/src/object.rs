//! Which loaded object holds an address: the program or one of its libraries.
//!
//! Objects are loaded at other addresses in every process; the offset within one is the same in all.

use core::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

/// An address as object and offset.
pub(crate) struct Place {
    /// The object's file name as the dynamic linker has it.
    pub(crate) name: Vec<u8>,
    /// Bytes from its load address.
    pub(crate) offset: usize,
}

/// Where `address` is; `None` when no object holds it.
pub(crate) fn holding(address: *const c_void) -> Option<Place> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; `info` is valid for a write.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: dladdr filled it in, and zeroes are valid values before.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a loaded object is a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let offset = address.addr() - info.dli_fbase.addr();
    Some(Place { name: name.to_bytes().to_owned(), offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    static HERE: [u64; 4] = [1, 2, 3, 4];

    #[test]
    fn a_static_is_in_this_program() {
        let at = |i: usize| holding((&raw const HERE[i]).cast()).expect("a static");
        assert_eq!(at(3).offset - at(0).offset, 24);
        assert_eq!(at(3).name, at(0).name);
    }

    #[test]
    fn the_stack_is_in_none() {
        let local = 5u64;
        assert!(holding((&raw const local).cast()).is_none());
    }
}
