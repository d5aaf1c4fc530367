//! The name and the kernel of this host, from /proc: a filter of system calls may refuse `uname`.

/// Returns the name of this host, for messages.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// Returns the release of the kernel, such as `6.1.0-13-amd64`; an empty text if it is not known.
pub fn kernel_release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| String::new(), |release| release.trim().to_owned())
}
