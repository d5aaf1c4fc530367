//! Why an interface of this machine gives a job no address, with the remedy.

use if_addrs::Interface;
use std::fs;
use std::path::Path;

/// The kernel's directories of the interfaces.
const INTERFACES: &str = "/sys/class/net";
/// The flag of an interface that is up (`IFF_UP`).
const UP: u32 = 1;

/// Returns the interfaces of this machine, and those that `all` has besides: those with addresses.
pub(crate) fn names(all: &[Interface]) -> Vec<String> {
    let entries = fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("flags").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .chain(all.iter().map(|interface| interface.name.clone()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns those of this machine that are down.
pub(crate) fn down() -> Vec<String> {
    names(&[]).into_iter().filter(|name| is_down(name)).collect()
}

/// Returns the reason why none of the addresses in `all` is a usable one of interface `name`.
pub(crate) fn why(all: &[Interface], name: &str) -> String {
    let own: Vec<String> = all
        .iter()
        .filter(|interface| interface.name == name)
        .map(|interface| interface.ip().to_string())
        .collect();
    if !names(all).iter().any(|there| there == name) {
        format!("there is no {name} here")
    } else if is_down(name) {
        format!("{name} is down (`ip link set {name} up`)")
    } else if own.is_empty() {
        format!("{name} has no address")
    } else {
        format!("{name} has only the link-local {}: give it another address", own.join(" and "))
    }
}

fn is_down(name: &str) -> bool {
    let flags = fs::read_to_string(Path::new(INTERFACES).join(name).join("flags"));
    let flags =
        flags.ok().and_then(|hex| u32::from_str_radix(hex.trim().strip_prefix("0x")?, 16).ok());
    flags.is_some_and(|flags| flags & UP == 0)
}
