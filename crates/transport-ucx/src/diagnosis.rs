//! Opens UCX for a job, and explains to users which transports UCX can use on this machine, or
//! which restriction keeps it from using any.

use crate::found::{changes, is_one_sided};
use crate::ports::set_ports;
use crate::settings::{TLS, library};
use crate::ucp::{ConfigChange, UcpContext, UcpResource, Worker};
use rushmem_system::interfaces::{Need, addresses};
use rushmem_transport::{Diagnosis, Host, Open, Verdict};
use std::net::IpAddr;
use std::sync::Arc;

/// A restriction of what UCX may use.
struct Restriction {
    /// The name in UCX's configuration.
    name: &'static str,
    /// The variables that set it, in the order of precedence.
    variables: &'static [&'static str],
}

/// The restrictions of UCX. Devices are checked before transports: without a restriction of
/// transports UCX has shared memory, whatever the devices.
const RESTRICTIONS: [Restriction; 2] = [
    Restriction {
        name: "NET_DEVICES",
        variables: &["UCX_NET_DEVICES", "SHMEM_NIC", "SHMEM_TCP_INTERFACE"],
    },
    Restriction {
        name: "TLS",
        variables: &["UCX_TLS", TLS],
    },
];

/// The families of UCX's transports that exchange data without a connection of each pair of PEs.
const CONNECTIONLESS: [&str; 5] = ["dc", "ud", "posix", "sysv", "cma"];

/// The transport that reaches only the process itself.
pub(crate) const ITSELF: &str = "self";

/// Describes each transport that UCX may use here; or UCX alone, with the reason, if it is absent
/// or cannot be used.
pub(crate) fn diagnose(args: &Open) -> Vec<Diagnosis> {
    let ucp = match library() {
        Ok(ucp) => ucp,
        Err(why) => return vec![Diagnosis::new("UCX", Verdict::Absent, why)],
    };
    let (major, minor, release) = ucx_sys::version(ucp);
    let name = format!("UCX {major}.{minor}.{release}");

    let context = match open(args.n_pes, &*args.host, args.one_machine) {
        Ok(context) => Arc::new(context),
        Err(why) => return vec![Diagnosis::new(name, Verdict::Refused, why)],
    };
    // A context may open although no worker can be made, for example without a free port.
    if let Err(why) = Worker::new(&context) {
        return vec![Diagnosis::new(name, Verdict::Refused, why)];
    }

    let mut found: Vec<Diagnosis> = Vec::new();
    for UcpResource { transport, device } in context.resources() {
        if transport == ITSELF {
            continue;
        }
        if let Some(known) = found.iter_mut().find(|known| known.name == transport) {
            known.reason += &format!(", {device}");
            continue;
        }

        let family = transport.split('_').next().unwrap_or(&transport);
        let peers = if CONNECTIONLESS.contains(&family) {
            "connectionless"
        } else {
            "connects each pair of PEs"
        };
        let rdma = if is_one_sided(&transport) {
            ", by the NIC alone"
        } else {
            ""
        };
        let reason = format!("{name}, {peers}{rdma}; {device}");
        found.push(Diagnosis::new(transport, Verdict::Usable, reason));
    }
    found
}

/// Opens UCX for a job of `n_pes` PEs.
///
/// # Errors
/// The text says why UCX cannot be used, and without which restriction it could, if there is one.
pub(crate) fn open(n_pes: u32, host: &dyn Host, one_machine: bool) -> Result<UcpContext, String> {
    library()?;
    set_ports(host)?;
    let changes = changes(host, one_machine)?;

    let refused = match UcpContext::open(n_pes, &changes) {
        Ok(context) if reaches_others(&context) => return Ok(context),
        Ok(_) => "UCX has no transport to another process".to_owned(),
        Err(refused) => refused,
    };
    let remedy = match restriction_to_lift(n_pes, host, &changes) {
        Some(restriction) => format!("{restriction}: change or unset that"),
        None if has_only_ipv6(one_machine) => {
            let (major, minor, _) = library().map_or((0, 0, 0), ucx_sys::version);
            format!(
                "UCX {major}.{minor} may need IPv4, and this host has IPv6 addresses alone: give an interface an IPv4 \
                 address, or set SHMEM_TRANSPORT=tcp"
            )
        }
        None => {
            "UCX_LOG_LEVEL=info shows UCX's own reasons, and `ucx_info -d` what it has".to_owned()
        }
    };
    Err(format!("{refused}; {remedy}"))
}

/// Returns true if all addresses at which sockets of a job would listen are those of IPv6.
fn has_only_ipv6(one_machine: bool) -> bool {
    let need = if one_machine {
        Need::ThisMachine
    } else {
        Need::Others
    };
    addresses(need, None, None).is_ok_and(|found| found.iter().all(IpAddr::is_ipv6))
}

fn reaches_others(context: &UcpContext) -> bool {
    context
        .resources()
        .iter()
        .any(|one| one.transport != ITSELF)
}

/// Returns the first restriction without which UCX can be used, and what it would have then.
fn restriction_to_lift(n_pes: u32, host: &dyn Host, changes: &[ConfigChange]) -> Option<String> {
    for Restriction { name, variables } in RESTRICTIONS {
        // UCX takes the last change of a name.
        let mut unrestricted = changes.to_vec();
        unrestricted.push(ConfigChange {
            name,
            value: "all".to_owned(),
        });
        let Ok(context) = UcpContext::open(n_pes, &unrestricted) else {
            continue;
        };
        if !reaches_others(&context) {
            continue;
        }

        let set = variables
            .iter()
            .find_map(|variable| Some((variable, host.variable(variable)?)));
        let restriction = if let Some((variable, value)) = set {
            format!("{variable} is {value}")
        } else if name == "TLS" {
            // Rushmem leaves out shared memory, which reaches only the PEs that need no network.
            continue;
        } else if let Some(change) = changes.iter().rev().find(|change| change.name == name) {
            format!("Rushmem asks for {name}={}", change.value)
        } else {
            continue;
        };

        let others = names_of(name, &context);
        return Some(format!("{restriction}, but UCX has {others}"));
    }
    None
}

/// Returns what UCX has where the restriction `name` applies: transports if it is `TLS`, otherwise
/// devices, separated by commas.
fn names_of(name: &str, context: &UcpContext) -> String {
    let mut names: Vec<String> = Vec::new();
    for UcpResource { transport, device } in context.resources() {
        if transport != ITSELF {
            names.push(if name == "TLS" { transport } else { device });
        }
    }
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
