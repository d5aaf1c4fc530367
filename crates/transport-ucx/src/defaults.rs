//! Values of UCX's own variables that Rushmem passes where the user has set none.
//!
//! UCX takes signals of the process when it is opened: SIGHUP, which then switches its log on
//! instead of ending the process, and those of crashes, for which it prints a backtrace of its own.
//! Signals belong to the program.

use rushmem_interfaces::{PORTS, PortRange};
use rushmem_transport::{Host, setting};
use std::ffi::CStr;
use std::sync::OnceLock;
use ucx_sys::Ucp;

/// `NAME=value`.
const OURS: [&CStr; 2] = [c"UCX_DEBUG_SIGNO=0", c"UCX_HANDLE_ERRORS=none"];

/// UCX, opened once. It reads these variables when it is loaded.
pub(crate) fn library() -> Result<&'static Ucp, String> {
    static LIBRARY: OnceLock<Result<&'static Ucp, String>> = OnceLock::new();
    let open = || {
        setting::set_defaults(&OURS);
        ucx_sys::open()
    };
    LIBRARY.get_or_init(open).clone()
}

/// Has UCX's sockets listen at the ports that the user names.
pub(crate) fn set_ports(host: &dyn Host) -> Result<(), String> {
    if let Some((first, last)) = PortRange::parse(host.variable(PORTS).as_deref())?.bounds() {
        setting::set_default("UCX_TCP_PORT_RANGE", &format!("{first}-{last}"));
    }
    Ok(())
}
