//! Opens UCX for a job, and explains to users which transports UCX can use on this machine, or
//! which restriction keeps it from using any.

use crate::found::{changes, is_one_sided};
use crate::ports::set_ports;
use crate::settings::{TLS, library};
use crate::ucp::{UcpContext, Worker};
use rushmem_transport::{Diagnosis, Host, Open, Verdict};
use std::sync::Arc;

/// The restrictions of UCX: the name in its configuration, and the variables that set it, in the
/// order of precedence. Devices are checked before transports: without a restriction of transports
/// UCX has shared memory, whatever the devices.
const RESTRICTIONS: &[(&str, &[&str])] = &[
    (
        "NET_DEVICES",
        &["UCX_NET_DEVICES", "SHMEM_NIC", "SHMEM_TCP_INTERFACE"],
    ),
    ("TLS", &["UCX_TLS", TLS]),
];

/// The families of UCX's transports that exchange data without a connection of each pair of PEs.
const CONNECTIONLESS: [&str; 5] = ["dc", "ud", "posix", "sysv", "cma"];

/// The transport that reaches only the process itself.
pub(crate) const ITSELF: &str = "self";

/// Describes each transport that UCX may use here; or UCX alone, with the reason, if it is absent
/// or cannot be used.
pub(crate) fn diagnose(args: &Open) -> Vec<Diagnosis> {
    let version = match library() {
        Ok(ucp) => ucx_sys::version(ucp),
        Err(why) => return vec![Diagnosis::new("UCX", Verdict::Absent, why)],
    };
    let (major, minor, release) = version;
    let name = format!("UCX {major}.{minor}.{release}");
    let opened = open(args.n_pes, &*args.host, args.one_machine).map(Arc::new);
    let context = match opened.and_then(|context| Worker::new(&context).map(|_| context)) {
        Ok(context) => context,
        Err(why) => return vec![Diagnosis::new(name, Verdict::Refused, why)],
    };
    let mut found: Vec<Diagnosis> = Vec::new();
    let to_others = context
        .resources()
        .into_iter()
        .filter(|(transport, _)| transport != ITSELF);
    for (transport, device) in to_others {
        if let Some(known) = found.iter_mut().find(|known| known.name == transport) {
            known.reason += &format!(", {device}");
            continue;
        }
        let family = transport.split('_').next().unwrap_or(&transport);
        let peers = match CONNECTIONLESS.contains(&family) {
            true => "connectionless",
            false => "connects each pair of PEs",
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
    let reaches = |context: &UcpContext| context.resources().iter().any(|(name, _)| name != ITSELF);
    let refused = match UcpContext::open(n_pes, &changes) {
        Ok(context) if reaches(&context) => return Ok(context),
        Ok(_) => "UCX has no transport to another process".to_owned(),
        Err(refused) => refused,
    };
    let culprit = RESTRICTIONS.iter().find_map(|(name, variables)| {
        let all = [changes.as_slice(), &[(*name, "all".to_owned())]].concat();
        let context = UcpContext::open(n_pes, &all).ok().filter(reaches)?;
        let variable = variables
            .iter()
            .find_map(|name| Some((name, host.variable(name)?)));
        let ours = || changes.iter().rev().find(|(changed, _)| changed == name);
        let restriction = match variable {
            Some((variable, value)) => format!("{variable} is {value}"),
            None => format!("Rushmem asks for {name}={}", ours()?.1),
        };
        Some(format!(
            "{restriction}, but UCX has {}",
            names_of(name, &context)
        ))
    });
    let remedy = match culprit {
        Some(culprit) => format!("{culprit}: change or unset that"),
        None => {
            "UCX_LOG_LEVEL=info shows UCX's own reasons, and `ucx_info -d` what it has".to_owned()
        }
    };
    Err(format!("{refused}; {remedy}"))
}

/// Returns what UCX has where the restriction `name` applies: transports if it is `TLS`, otherwise
/// devices, separated by commas.
fn names_of(name: &str, context: &UcpContext) -> String {
    let resources = context.resources().into_iter();
    let mut names: Vec<String> = resources
        .filter(|(transport, _)| transport != ITSELF)
        .map(|(transport, device)| if name == "TLS" { transport } else { device })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
