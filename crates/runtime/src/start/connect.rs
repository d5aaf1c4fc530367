//! Negotiates the transport of the job, and connects this PE with the PEs that it reaches.
//!
//! All PEs exchange their findings and try the same candidates in the same order. A candidate
//! is chosen if every PE can open it and transfer data over it. Every step ends with an exchange of
//! its result, so that all PEs take the same next step.

mod attempt;
pub(super) mod candidates;
pub(crate) mod path;
mod probe;

use attempt::{Connected, exchange};
use candidates::{
    AmoExecutor, Availability, Candidate, Findings, Verdict, agree, executors, refusals,
};
use path::Chosen;
use rushmem_communication::access::endpoints::endpoints;
use rushmem_communication::host::ProcessHost;
use rushmem_communication::net::network;
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::memory::{address, statics};
use rushmem_pe::settings::Settings;
use rushmem_system::devices;
use rushmem_transport::{Amos, Found, Pe, Provider};

/// Connects this PE with all PEs some of whose memory is not mapped here, if the job has such PEs.
pub(crate) fn connect(call: Call, job: &'static Job, providers: &[Provider]) {
    let providers = usable_providers(call, &job.settings, providers);

    // The network of an earlier init may have carried out atomic operations.
    address::set_atomics_by_network(false);
    if job.nodes.n_nodes() == 1 && !job.has_statics_apart {
        path::record(job, None);
        return;
    }

    let own = own_findings(&job.settings, &providers);
    let findings: Vec<Findings> = exchange(call, job, &own).iter().cloned().collect();
    let candidates = agree(&providers, &findings).unwrap_or_else(|why| fail!(call, "{why}"));
    let mut negotiation = Negotiation {
        call,
        job,
        findings,
        candidates,
    };
    let connected = negotiation.connect();

    address::set_atomics_by_network(!connected.transport.caps().amos_compose_with_cpu);
    endpoints().set_of_library(connected.endpoint);
    network::of_process().open(connected.transport);
    path::record(job, Some(negotiation.chosen(&connected.executor)));

    if job.me == Pe(0) {
        negotiation.warn_of_failures();
        negotiation.warn_of_unused_devices();
        negotiation.log();
    }
}

/// Returns the providers that this program can open. Ends the job with an error if the settings
/// request another one.
fn usable_providers<'a>(
    call: Call,
    settings: &Settings,
    providers: &'a [Provider],
) -> Vec<&'a Provider> {
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
        fail!(
            call,
            "SHMEM_TRANSPORT is {requested}, but a program that cannot open libraries, since it is statically linked or has loaded \
             this one by dlmopen, has: auto, {}",
            names.join(", ")
        );
    }
    usable
}

/// The choice of the transport of a job. All PEs have the same findings and candidates, so each
/// makes the same choice.
struct Negotiation<'a> {
    call: Call,
    job: &'static Job,
    /// What each PE has found out about the transports that it can use, in the order of PEs.
    findings: Vec<Findings>,
    candidates: Vec<Candidate<'a>>,
}

impl Negotiation<'_> {
    /// Tries the candidates in their order until one works on all PEs. Ends the job with an error
    /// if none does.
    fn connect(&mut self) -> Connected {
        for i in 0..self.candidates.len() {
            let candidate = &self.candidates[i];
            if candidate.verdict != Verdict::Untried {
                continue;
            }

            let provider = candidate.provider;
            match self.connect_over(provider) {
                Ok(connected) => {
                    self.candidates[i].verdict = Verdict::Chosen;
                    return connected;
                }
                Err(why) if self.job.settings.transport.is_some() => fail!(
                    self.call,
                    "SHMEM_TRANSPORT is {}, which cannot be used here ({why}); fix that, or set \
                     SHMEM_TRANSPORT to another transport or to auto",
                    provider.name
                ),
                Err(why) => self.candidates[i].verdict = Verdict::Failed(why),
            }
        }
        fail!(
            self.call,
            "PEs that share no memory need a transport, and none works: {}",
            refusals(self.candidates.iter())
        )
    }

    /// Connects the job over one provider.
    ///
    /// # Errors
    /// The reason why it does not work, which is the same on all PEs.
    fn connect_over(&self, provider: &Provider) -> Result<Connected, String> {
        let is_in_hardware = self
            .findings
            .iter()
            .all(|found| found.hardware_amos.iter().any(|name| name == provider.name));
        let executors = executors(self.job.settings.amos, provider, is_in_hardware)?;
        attempt::connect_over(self.call, self.job, provider, executors)
    }

    /// Returns the chosen candidate.
    fn winner(&self) -> &Candidate<'_> {
        self.candidates
            .iter()
            .find(|candidate| candidate.verdict == Verdict::Chosen)
            .expect("`connect` has chosen one")
    }

    /// Returns the chosen transport and why it was chosen.
    fn chosen<'a>(&'a self, executor: &'a AmoExecutor) -> Chosen<'a> {
        let mut refused = Vec::new();
        for candidate in &self.candidates {
            if let Some(why) = candidate.refusal() {
                refused.push(format!("{} is not chosen: {why}", candidate.provider.name));
            }
        }

        let reason = match &self.job.settings.transport {
            Some(requested) => format!("SHMEM_TRANSPORT is {requested}"),
            None if refused.is_empty() => "every PE has it".to_owned(),
            None => refused.join("; "),
        };
        Chosen {
            name: self.winner().provider.name,
            reason,
            executor,
        }
    }

    /// Warns of transports that were tried and do not work, since the chosen one may be slower.
    fn warn_of_failures(&self) {
        for candidate in &self.candidates {
            if let Verdict::Failed(why) = &candidate.verdict {
                let name = candidate.provider.name;
                warning!("the transport {name} does not work here and is passed over: {why}");
            }
        }
    }

    /// Warns if the chosen transport uses no RDMA device although a PE has one: for example,
    /// because another PE has none, or because a library is not installed.
    fn warn_of_unused_devices(&self) {
        let winner = self.winner();
        // A PE whose settings request a transport has looked for no other.
        let is_over_devices = self
            .findings
            .iter()
            .all(|found| found.seen.is_empty() || found.has_rdma(winner.rank));
        if is_over_devices {
            return;
        }

        let excluded: Vec<&Candidate<'_>> = self
            .candidates
            .iter()
            .filter(|candidate| candidate.is_excluded())
            .collect();
        let is_found = excluded
            .iter()
            .any(|other| self.findings.iter().any(|found| found.has_rdma(other.rank)));
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
    fn log(&self) {
        if !rushmem_system::log::is_on(rushmem_system::log::Level::DEBUG) {
            return;
        }

        let mut candidates: Vec<&Candidate<'_>> = self.candidates.iter().collect();
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
