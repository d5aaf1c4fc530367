//! Finds out whether UCX has an RDMA device on this machine, and derives the changes of UCX's
//! configuration for a job.

use crate::ports::set_ports;
use crate::settings::{TLS, library};
use crate::ucp::{ConfigChange, UcpContext, UcpResource, Worker};
use rushmem_system::devices;
use rushmem_system::interfaces::{INTERFACES, Selection, interface_names};
use rushmem_transport::{Found, Host};
use std::sync::Arc;

/// The families of UCX's transports that read and write a target's memory without its CPU: reliable
/// and dynamic connections of InfiniBand and RoCE. Datagrams (`ud`) are not among them, since the
/// target's CPU unpacks them.
const ONE_SIDED: [&str; 3] = ["rc", "dc", "gga"];

/// Returns true if a transport belongs to one of the families [`ONE_SIDED`].
pub(crate) fn is_one_sided(transport: &str) -> bool {
    ONE_SIDED.contains(&transport.split('_').next().unwrap_or(transport))
}

/// Devices of Omni-Path, which look like those of InfiniBand although their driver does the work on
/// a CPU. They do not count as RDMA devices of UCX, since libfabric uses them better.
const IMITATIONS: [&str; 1] = ["hfi1"];

/// Returns the version of UCX, and the RDMA transports that it would use. Initializes UCX only if
/// the kernel shows an RDMA device.
pub(crate) fn found(host: &dyn Host) -> Result<Found, String> {
    let (major, minor, release) = ucx_sys::version(library()?);
    let version = format!("UCX {major}.{minor}.{release}");
    let devices = devices::active();
    if devices.is_empty() {
        return Ok(decide(&version, &[], &[], &devices));
    }

    set_ports(host)?;
    let context = Arc::new(UcpContext::open(1, &changes(host, false)?)?);
    let atomics = Worker::new(&context)?.atomics();
    Ok(decide(&version, &context.resources(), &atomics, &devices))
}

/// The version of UCX, with any release, whose sockets do not reach each other over the loopback
/// interface.
const LOOPBACK_UNREACHED: (u32, u32) = (1, 20);

/// UCX's transports without those of shared memory. With a network, all endpoints report failures
/// of peers, and UCX does not use shared memory for such endpoints. But each worker would allocate
/// megabytes for it, and files that remain when the process is killed.
const WITHOUT_SHARED_MEMORY: &str = "^sm";
/// The oldest version whose list of transports may begin with `^`.
const ACCEPTS_EXCLUSION: (u32, u32) = (1, 12);

/// Returns the changes of UCX's configuration that the variables of Rushmem, the preferred NIC of
/// this PE, or a job on one machine require. UCX's own variables have precedence.
///
/// UCX listens on every device that it may use, and authenticates no peer. So it gets the preferred
/// NIC alone, if its port is known. Without one, its sockets are restricted to the interfaces that
/// the user names, or to loopback for a job on one machine.
///
/// # Errors
/// If no interface fits the list of the user.
pub(crate) fn changes(host: &dyn Host, one_machine: bool) -> Result<Vec<ConfigChange>, String> {
    let (major, minor, _) = library().map_or((0, 0, 0), ucx_sys::version);
    let mut changes = Vec::new();

    if host.variable("UCX_TLS").is_none() {
        if let Some(value) = host.variable(TLS) {
            changes.push(ConfigChange { name: "TLS", value });
        } else if (major, minor) >= ACCEPTS_EXCLUSION {
            changes.push(ConfigChange {
                name: "TLS",
                value: WITHOUT_SHARED_MEMORY.to_owned(),
            });
        }
    }

    // An invalid list of interfaces is an error also where UCX's own variable is set.
    let selection = Selection::parse(&host.variable(INTERFACES).unwrap_or_default())?;
    let sockets = match selection {
        Some(selection) => Some(interface_names(&selection)?.join(",")),
        None if one_machine && (major, minor) != LOOPBACK_UNREACHED => Some("lo".to_owned()),
        None => None,
    };
    if host.variable("UCX_NET_DEVICES").is_some() {
        return Ok(changes);
    }

    // A NIC whose port is unknown is no device name of UCX, which then chooses by itself.
    let preferred = host
        .nic()
        .and_then(|nic| Some(format!("{}:{}", nic.name, nic.port?)));
    let devices = match (preferred, sockets) {
        (Some(preferred), _) => preferred,
        (None, Some(sockets)) => {
            // The list restricts NICs, too, so it names all of them.
            let mut devices = devices::active_ports();
            devices.push(sockets);
            devices.join(",")
        }
        (None, None) => return Ok(changes),
    };
    changes.push(ConfigChange {
        name: "NET_DEVICES",
        value: devices,
    });
    Ok(changes)
}

/// Returns true if a resource is a one-sided transport over one of `devices`, the active RDMA
/// devices.
fn is_rdma(resource: &UcpResource, devices: &[String]) -> bool {
    let port = &resource.device;
    let device = port.split(':').next().unwrap_or(port);
    is_one_sided(&resource.transport)
        && devices.iter().any(|active| active == device)
        && !IMITATIONS
            .iter()
            .any(|imitation| device.starts_with(imitation))
}

/// Describes UCX from the resources that it may use. `atomics` are those by which UCX carries out
/// atomic operations; NICs do so only if all of these are NICs. `devices` are the active RDMA
/// devices.
fn decide(
    version: &str,
    resources: &[UcpResource],
    atomics: &[UcpResource],
    devices: &[String],
) -> Found {
    let rdma: Vec<String> = resources
        .iter()
        .filter(|resource| is_rdma(resource, devices))
        .map(|UcpResource { transport, device }| format!("{transport} on {device}"))
        .collect();
    let hardware_amos =
        !atomics.is_empty() && atomics.iter().all(|resource| is_rdma(resource, devices));

    let description = if !rdma.is_empty() {
        format!("{version}: {}", rdma.join(", "))
    } else if resources.is_empty() {
        format!("{version}: no RDMA device")
    } else {
        let mut others: Vec<&str> = resources.iter().map(|one| &*one.transport).collect();
        others.dedup();
        format!("{version}: no RDMA device for it; {}", others.join(", "))
    };

    Found {
        rdma: !rdma.is_empty(),
        hardware_amos,
        description,
    }
}

#[cfg(test)]
mod tests;
