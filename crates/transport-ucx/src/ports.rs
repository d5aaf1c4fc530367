//! The ports at which UCX's sockets listen: those of the user's range, of which UCX is given one
//! at a time.

use crate::settings::PORT_RANGE;
use rushmem_system::interfaces::{PORTS, PortRange};
use rushmem_system::lock::lock;
use rushmem_system::setting::{environment, set, set_default};
use rushmem_transport::Host;
use std::sync::Mutex;
use ucx_sys::{UCS_ERR_BUSY, ucs_status_t};

/// Makes UCX's sockets listen at the ports that the user names, unless UCX's own variable is set.
pub(crate) fn set_ports(host: &dyn Host) -> Result<(), String> {
    if let Some((first, last)) = PortRange::parse(host.variable(PORTS).as_deref())?.bounds() {
        set_default(PORT_RANGE, &format!("{first}-{last}"));
    }
    Ok(())
}

/// Locked while UCX's variable is one port of the range. UCX reads it when it makes a worker.
static CHANGING: Mutex<()> = Mutex::new(());

/// Calls `create`, which makes a worker with sockets, so that they listen at a free port of the
/// range of UCX's variable. Returns the status that `create` returns.
///
/// UCX (1.13, 1.20) tries random ports of a range until one is free, for ever if none is. At a
/// range of one port that is taken it returns an error.
///
/// # Errors
/// If all ports are taken.
pub(crate) fn at_free_port(
    mut create: impl FnMut() -> ucs_status_t,
) -> Result<ucs_status_t, String> {
    let Some(range) = environment(PORT_RANGE) else {
        return Ok(create());
    };
    // UCX refuses a value that is no range.
    let ports = PortRange::parse(Some(&range)).unwrap_or(PortRange::ANY);
    if ports == PortRange::ANY {
        return Ok(create());
    }

    let _changing = lock(&CHANGING);
    let created = ports.find(|port| {
        set(PORT_RANGE, &format!("{port}-{port}"));
        match create() {
            UCS_ERR_BUSY => None,
            status => Some(status),
        }
    });
    // Set again to the whole range, since children of the process inherit the variable.
    set(PORT_RANGE, &range);

    created.ok_or_else(|| {
        format!(
            "all ports of the range {range} ({PORTS}, {PORT_RANGE}) are taken: give a wider one, \
             or end what listens there (`ss -tlnp`)"
        )
    })
}
