//! The seventh step of a start, which every init after the last finalize repeats: the PE is
//! connected with all PEs some of whose memory is not mapped here.
//!
//! All PEs exchange their findings and try the same candidates in the same order
//! ([`negotiation`]). A candidate is chosen if every PE can open it and transfer data over it
//! ([`attempt`]). Every step ends with an exchange of its result, so that all PEs take the same
//! next step. How the PEs reach each other, and why, is kept as a line for `SHMEM_DEBUG` and for
//! tools.

pub(super) mod attempt;
pub(super) mod negotiation;
pub(super) mod trial;

use super::error::StartError;
use super::exchange::exchange_values;
use super::join::Joined;
use crate::diagnosis::crash;
use crate::own_pe::OwnPe;
use attempt::{ConnectedTransport, Ended, attempt, exchange_parts};
use negotiation::{Availability, Candidate, Findings, Negotiation, Verdict, refusals};
use rushmem_communication::host::ProcessHost;
use rushmem_communication::links::Links;
use rushmem_pe::call::Call;
use rushmem_pe::call::warning::warning;
use rushmem_pe::job::{self, Job};
use rushmem_pe::memory::{address, statics};
use rushmem_pe::settings::Settings;
use rushmem_system::devices;
use rushmem_system::lock::{read, write};
use rushmem_transport::{Amos, Found, Pe, Provider};
use std::ffi::{CStr, CString};
use std::sync::RwLock;
use trial::{AmoExecutor, Next};

/// A PE that reaches all PEs of its job.
pub(super) struct Connected {
    pub(super) pe: &'static OwnPe,
}

impl Joined {
    /// Connects this PE.
    ///
    /// # Errors
    /// If no transport works on all PEs.
    pub(super) fn connect(
        self,
        call: Call,
        providers: &[Provider],
    ) -> Result<Connected, StartError> {
        let pe = self.pe;
        let job = pe.job();
        let providers = usable_providers(&job.settings, providers)?;
        if job.needs_transport {
            connect_by_network(call, pe.links, &providers)?;
        } else {
            record_path(job, None);
        }

        // After the libraries of transports have installed their handlers.
        crash::install_handler(pe.links, call);
        Ok(Connected { pe })
    }
}

/// Chooses the transport of the job, and opens it.
fn connect_by_network(
    call: Call,
    links: &Links,
    providers: &[&Provider],
) -> Result<(), StartError> {
    let job = &links.job;
    let own = own_findings(&job.settings, providers);
    let findings = exchange_values(&mut job.membership(), &own)?;
    let mut negotiation = Negotiation::new(providers, findings.iter().cloned().collect())?;
    let connected = negotiate(call, links, &mut negotiation)?;
    negotiation.chosen();

    address::set_atomics_by_network(!connected.transport.caps().amos_compose_with_cpu);
    links.endpoints.set_of_library(connected.endpoint);
    links.network.open(connected.transport);
    record_path(job, Some((&negotiation, &connected.executor)));

    if job.me == Pe(0) {
        warn_of_failures(&negotiation);
        warn_of_unused_devices(&negotiation);
        log(&negotiation);
    }
    Ok(())
}

/// Returns the providers that this program can open.
///
/// # Errors
/// If the settings request another one.
fn usable_providers<'a>(
    settings: &Settings,
    providers: &'a [Provider],
) -> Result<Vec<&'a Provider>, StartError> {
    // A statically linked program cannot open libraries. One that has loaded this library by
    // dlmopen is taken for such a program: its executable is not among the objects that the library
    // sees.
    let is_static = statics::own().of_static_program();
    let usable: Vec<&Provider> = providers
        .iter()
        .filter(|provider| !(is_static && provider.opens_libraries))
        .collect();

    if let Some(requested) = settings.transport.as_deref()
        && !usable.iter().any(|provider| provider.name == requested)
    {
        let names: Vec<&str> = usable.iter().map(|provider| provider.name).collect();
        return Err(StartError::Invalid(format!(
            "SHMEM_TRANSPORT is {requested}, but a program that cannot open libraries, since it is statically linked or has loaded \
             this one by dlmopen, has: auto, {}",
            names.join(", ")
        )));
    }
    Ok(usable)
}

/// Returns the findings of this PE that matter for the choice.
fn own_findings(settings: &Settings, providers: &[&Provider]) -> Findings {
    let requested = settings.transport.clone().unwrap_or_default();
    let amos = settings.amos.map_or("", Amos::name).to_owned();
    let mut findings = Findings {
        requested,
        amos,
        ..Findings::default()
    };

    let host = ProcessHost::default();
    let has_device = !devices::active().is_empty();
    for provider in providers {
        if !findings.requested.is_empty() && findings.requested != provider.name {
            continue;
        }

        // A library that cannot be chosen is not opened, since opening it has side effects.
        let mut found = None;
        if has_device || !provider.opens_libraries {
            found = Some((provider.available)(&host));
        }

        if let Some(Ok(found)) = &found
            && found.hardware_amos
        {
            findings.hardware_amos.push(provider.name.to_owned());
        }
        if findings.requested.is_empty() {
            findings.seen.push(match found {
                Some(Ok(Found { rdma: true, .. })) => Availability::Rdma,
                Some(Ok(_)) | None => Availability::Plain,
                Some(Err(why)) => Availability::Absent(why.to_string()),
            });
        }
    }
    findings
}

/// Tries what the negotiation names until something works on all PEs.
fn negotiate(
    call: Call,
    links: &Links,
    negotiation: &mut Negotiation<'_>,
) -> Result<ConnectedTransport, StartError> {
    loop {
        match negotiation.next()? {
            Next::List(provider, executors) => {
                let offers: Vec<_> = exchange_parts(&links.job, provider, &executors)?;
                negotiation.listed(&offers)?;
            }
            Next::Attempt(route, executor) => match attempt(call, links, &route, executor) {
                Ok(connected) => return Ok(connected),
                Err(Ended::Failed(why)) => negotiation.failed(why),
                Err(Ended::Refused(error)) => return Err(error),
            },
        }
    }
}

/// The path, from the first init on.
static PATH: RwLock<Option<&'static CStr>> = RwLock::new(None);

/// Stores the path for [`transport`], and logs it on PE 0. `chosen` has the transport and the
/// executor of atomic operations; it is `None` in a job without a transport, where the CPU carries
/// them out.
fn record_path(job: &Job, chosen: Option<(&Negotiation<'_>, &AmoExecutor)>) {
    let n_pes = job.n_pes;
    let n_nodes = job.nodes.n_nodes();
    let mut path = within_one_node(n_pes).to_owned();
    let mut amos = "by the CPU".to_owned();
    if let Some((negotiation, executor)) = chosen {
        let scope = scope(negotiation.winner().provider.name, n_pes, n_nodes);
        path = format!("{scope}: {}", reason(negotiation));
        amos = executor.describe();
    }

    if job.me == Pe(0) {
        rushmem_system::log::info!(
            n_pes,
            n_nodes,
            "{path}; atomic operations are carried out {amos}"
        );
    }

    let mut kept = write(&PATH);
    if kept.is_none_or(|kept| kept.to_bytes() != path.as_bytes()) {
        // Only a text from another PE can contain a null byte: the texts of the library have none,
        // and texts from outside are read as strings of C. The path is then empty.
        let path = CString::new(path).unwrap_or_default();
        // Leaked, since a program may keep the pointer. A later init finds the same path unless a
        // network has failed.
        *kept = Some(Box::leak(path.into_boxed_c_str()));
    }
}

/// `shmemx_transport`: how the PEs of the job reach each other, a colon, and the reason. The text
/// stays valid for the life of the process.
pub fn transport(call: Call) -> &'static CStr {
    job::require(call);
    read(&PATH).unwrap_or_default()
}

/// Returns the reason for the choice, as a clause.
fn reason(negotiation: &Negotiation<'_>) -> String {
    if let Some(requested) = negotiation.requested() {
        return format!("SHMEM_TRANSPORT is {requested}");
    }

    let mut refused = Vec::new();
    for candidate in &negotiation.candidates {
        if let Some(why) = candidate.refusal() {
            refused.push(format!("{} is not chosen: {why}", candidate.provider.name));
        }
    }
    if refused.is_empty() {
        "every PE has it".to_owned()
    } else {
        refused.join("; ")
    }
}

fn within_one_node(n_pes: u32) -> &'static str {
    match n_pes {
        1 => "shared memory: the job has one PE",
        _ => "shared memory: all PEs are on one node",
    }
}

/// Says between which PEs the transport `name` is used.
fn scope(name: &str, n_pes: u32, n_nodes: u32) -> String {
    match n_nodes {
        1 => format!("shared memory, with {name} for static data"),
        n if n == n_pes => name.to_owned(),
        _ => format!("shared memory on a node, {name} between nodes"),
    }
}

/// Warns of parts and transports that were tried and do not work, since the chosen one may be
/// slower.
fn warn_of_failures(negotiation: &Negotiation<'_>) {
    let chosen = negotiation.winner().provider.name;
    for part in negotiation.parts_passed_over() {
        warning!("of the transport {chosen}, {part}; the next one is used");
    }
    for candidate in &negotiation.candidates {
        if let Verdict::Failed(why) = &candidate.verdict {
            let name = candidate.provider.name;
            warning!("the transport {name} does not work here and is passed over: {why}");
        }
    }
}

/// Warns if the chosen transport uses no RDMA device although a PE has one: for example, because
/// another PE has none, or because a library is not installed.
fn warn_of_unused_devices(negotiation: &Negotiation<'_>) {
    let winner = negotiation.winner();
    let findings = &negotiation.findings;
    // A PE whose settings request a transport has looked for no other.
    let is_over_devices = findings
        .iter()
        .all(|found| found.seen.is_empty() || found.has_rdma(winner.rank));
    if is_over_devices {
        return;
    }

    let excluded: Vec<&Candidate<'_>> = negotiation
        .candidates
        .iter()
        .filter(|candidate| candidate.is_excluded())
        .collect();
    let is_found = excluded
        .iter()
        .any(|other| findings.iter().any(|found| found.has_rdma(other.rank)));
    // The devices of this machine are read only if no excluded provider has found one.
    if !is_found && (excluded.is_empty() || devices::active().is_empty()) {
        return;
    }

    warning!(
        "the job uses {}, and no RDMA device, although there are some ({}); `oshrun --doctor` examines all hosts",
        winner.provider.name,
        refusals(excluded.into_iter())
    );
}

/// Logs, for `SHMEM_DEBUG=2`, why each provider was chosen or not, in the order of preference.
fn log(negotiation: &Negotiation<'_>) {
    if !rushmem_system::log::is_on(rushmem_system::log::Level::DEBUG) {
        return;
    }

    let mut candidates: Vec<&Candidate<'_>> = negotiation.candidates.iter().collect();
    candidates.sort_by_key(|candidate| candidate.rank);

    let host = ProcessHost::default();
    let has_device = !devices::active().is_empty();
    for candidate in candidates {
        let provider = candidate.provider;
        let verdict = &candidate.verdict;

        // Like `own_findings`, this opens no library that cannot be chosen.
        let is_opened = has_device || !provider.opens_libraries || *verdict == Verdict::Chosen;
        let found = if is_opened {
            match (provider.available)(&host) {
                Ok(found) => found.to_string(),
                Err(why) => why.to_string(),
            }
        } else {
            "not opened, since this machine has no RDMA device".to_owned()
        };

        let fate = match verdict {
            Verdict::Chosen => "chosen, and every PE moved data over it",
            Verdict::Untried => "not chosen: a preferred transport works",
            Verdict::Excluded(why) | Verdict::Failed(why) => &format!("not chosen: {why}"),
        };
        rushmem_system::log::debug!("transport {}: {found}; {fate}", provider.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_what_lies_between_which_pes() {
        assert_eq!(within_one_node(1), "shared memory: the job has one PE");
        assert_eq!(within_one_node(4), "shared memory: all PEs are on one node");
        assert_eq!(scope("tcp", 4, 4), "tcp");
        assert_eq!(
            scope("ucx", 4, 2),
            "shared memory on a node, ucx between nodes"
        );
        assert_eq!(
            scope("tcp", 4, 1),
            "shared memory, with tcp for static data"
        );
    }
}
