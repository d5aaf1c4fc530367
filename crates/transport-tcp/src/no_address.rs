//! Says why an interface of this machine gives a job no address, with the remedy.
//!
//! The interfaces are those of the network namespace of this process, not those of
//! `/sys/class/net`, which may belong to another namespace.
#![allow(unsafe_code)]

use if_addrs::Interface;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_uint};

/// Returns the interfaces of this machine, and those in `all`, which have addresses.
pub(crate) fn names(all: &[Interface]) -> Vec<String> {
    let mut names = flags();
    names.extend(all.iter().map(|interface| (interface.name.clone(), 0)));
    names.into_keys().collect()
}

/// Returns the interfaces of this machine that are down.
pub(crate) fn down() -> Vec<String> {
    flags().into_iter().filter(|(_, flags)| !is_up(*flags)).map(|(name, _)| name).collect()
}

/// Returns the reason why `all` has no usable address of interface `name`.
pub(crate) fn why(all: &[Interface], name: &str) -> String {
    let own: Vec<String> = all
        .iter()
        .filter(|interface| interface.name == name)
        .map(|interface| interface.ip().to_string())
        .collect();
    if !names(all).iter().any(|there| there == name) {
        format!("there is no {name} here")
    } else if flags().get(name).is_some_and(|flags| !is_up(*flags)) {
        format!("{name} is down (`ip link set {name} up`)")
    } else if own.is_empty() {
        format!("{name} has no address")
    } else {
        format!("{name} has only the link-local {}: give it another address", own.join(" and "))
    }
}

fn is_up(flags: c_uint) -> bool {
    flags & libc::IFF_UP as c_uint != 0
}

/// Returns the flags of each interface, also of those without addresses. Returns none if the kernel
/// does not list them.
fn flags() -> BTreeMap<String, c_uint> {
    let mut first = std::ptr::null_mut();
    // SAFETY: on success it makes a list and stores its first entry.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return BTreeMap::new();
    }
    let mut flags = BTreeMap::new();
    let mut next = first.cast_const();
    // SAFETY: null at the end of the list, else an entry of it, until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: every entry has a name, which ends with a zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        flags.insert(name.to_string_lossy().into_owned(), entry.ifa_flags);
        next = entry.ifa_next;
    }
    // SAFETY: the list, once; nothing refers to it.
    unsafe { libc::freeifaddrs(first) };
    flags
}
