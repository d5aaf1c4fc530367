//! Lists the interfaces of the network namespace of this process, including those without
//! addresses. Asks the kernel by `getifaddrs`, since `/sys/class/net` may show those of another
//! namespace.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_uint};

/// Returns the names of all interfaces.
pub(crate) fn names() -> Vec<String> {
    flags().into_keys().collect()
}

/// Returns the names of the interfaces that are down.
pub fn down() -> Vec<String> {
    flags()
        .into_iter()
        .filter(|(_, flags)| flags & libc::IFF_UP as c_uint == 0)
        .map(|(name, _)| name)
        .collect()
}

/// Returns the flags of each interface by its name. Returns none if the kernel does not list them.
fn flags() -> BTreeMap<String, c_uint> {
    let mut first = std::ptr::null_mut();
    // SAFETY: on success the call makes a list and stores the address of its first entry.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return BTreeMap::new();
    }

    let mut flags = BTreeMap::new();
    let mut next = first.cast_const();
    // SAFETY: the pointer is null at the end of the list, and otherwise to an entry of the list,
    // which is freed only below.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: every entry has a name, which ends with a zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        flags.insert(name.to_string_lossy().into_owned(), entry.ifa_flags);
        next = entry.ifa_next;
    }

    // SAFETY: `first` is the list that the call above has made. It is freed once, and nothing
    // refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    flags
}
