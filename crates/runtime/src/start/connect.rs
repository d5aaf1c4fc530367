//! The choice of a transport, and the connections to the PEs that it reaches.
//!
//! All PEs exchange what they have found and try the same candidates in the same order. A candidate
//! is chosen if every PE can open it and transfer data over it. Every step ends with an exchange of
//! its result, so that all PEs take the same next step.
#![allow(unsafe_code)]

pub(crate) mod path;
mod probe;
mod transport_choice;

use path::{AmoPath, Chosen, ways};
use transport_choice::{Availability, Offer, Selection, agree, complaint};

use crate::call::warning::warning;
use crate::call::{Call, fail};
use crate::diagnosis::status;
use crate::job::Job;
use crate::memory::address;
use crate::memory::locked::{self, RegisteredSizes};
use crate::memory::statics;
use crate::net::endpoints;
use crate::net::flags;
use crate::net::network;
use crate::net::process_host::{Callbacks, ProcessHost};
use crate::settings::Settings;
use rushmem_bootstrap::Records;
use rushmem_transport::machine::devices;
use rushmem_transport::thread::without_signals;
use rushmem_transport::{
    Amos, Directory, Endpoint, Error, Found, Open, Pe, PeRecord, Provider, Segment, Transport,
};
use rushmem_wire::{ANNOUNCED, Format, OFFER, PARTS, STEP, decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The state of a transport on this machine, for messages.
pub struct OnThisMachine {
    /// The result of the search.
    pub found: Found,
    /// The executor of atomic operations in a job whose machines are all like this one.
    pub amos: String,
}

/// Finds whether a transport is available on this machine.
///
/// # Errors
/// If it is not available; the reason.
pub fn on_this_machine(settings: &Settings, provider: &Provider) -> Result<OnThisMachine, Error> {
    let found = (provider.available)(&ProcessHost::default())?;
    let amos = match ways(settings.amos, provider, found.hardware_amos) {
        Ok(ways) => ways[0].describe(),
        Err(why) => why,
    };
    Ok(OnThisMachine { found, amos })
}

/// The functions that a transport calls in this process.
const CALLBACKS: Callbacks = Callbacks {
    arrived: flags::ring_own,
    arrived_at: |pe| flags::area().ring(pe),
    waits: status::waits_for_operations,
    ends_wait: status::ends_wait_for_operations,
};

/// Connects this PE with all PEs whose memory it does not share, if there are any.
pub(crate) fn connect(call: Call, job: &'static Job, providers: &[Provider]) {
    let providers: Vec<&Provider> = possible(providers).collect();
    let requested = job.settings.transport.as_deref();
    if let Some(requested) = requested
        && !providers.iter().any(|provider| provider.name == requested)
    {
        let names: Vec<&str> = providers.iter().map(|provider| provider.name).collect();
        let whose = match statics::own().of_static_program() {
            true => "a statically linked program, which cannot open libraries,",
            false => "this build",
        };
        fail!(call, "SHMEM_TRANSPORT is {requested}, but {whose} has: auto, {}", names.join(", "));
    }
    address::set_atomics_by_network(false);
    if job.nodes.n_nodes() == 1 && !job.statics_apart {
        path::record(job, None);
        return;
    }
    let offer = offer(&job.settings, &providers);
    let offers: Vec<Offer> = exchange(call, job, OFFER, &offer).iter().cloned().collect();
    let agreed = agree(&providers, &offers).unwrap_or_else(|why| fail!(call, "{why}"));
    let Selection { candidates, mut passed_over } = agreed;
    let (mut candidates, not_tried) = (candidates.into_iter(), passed_over.len());
    for place in candidates.by_ref() {
        let provider = providers[place];
        let has = |offer: &Offer| offer.hardware_amos.iter().any(|name| name == provider.name);
        let ways = ways(job.settings.amos, provider, offers.iter().all(has));
        match ways.and_then(|ways| first_that_works(call, job, provider, ways)) {
            Ok((Tried { endpoint, transport }, way)) => {
                address::set_atomics_by_network(!transport.caps().amos_compose_with_cpu);
                endpoints::set_library(endpoint);
                network::open(transport);
                let why = why_chosen(requested, &providers, &passed_over);
                path::record(job, Some(Chosen { name: provider.name, why, way: &way }));
                warn(job, &providers, &passed_over[not_tried..]);
                warn_of_unused_devices(job, &offers, place, &passed_over[..not_tried], &providers);
                let later = "what comes before it works".to_owned();
                passed_over.extend(candidates.map(|place| (place, later.clone())));
                report(job, &providers, provider, &passed_over);
                return;
            }
            Err(why) if requested.is_some() => call.fail(format_args!(
                "SHMEM_TRANSPORT is {}, which cannot be used here ({why}); fix that, or set \
                 SHMEM_TRANSPORT to another transport or to auto",
                provider.name
            )),
            Err(why) => passed_over.push((place, why)),
        }
    }
    let whys = passed_over.iter().map(|(place, why)| format!("{}: {why}", providers[*place].name));
    let whys: Vec<String> = whys.collect();
    call.fail(format_args!(
        "PEs that share no memory need a transport, and none works: {}",
        whys.join("; ")
    ))
}

/// Explains why a provider was chosen, given the providers that are preferred to it and why these
/// were not chosen.
fn why_chosen(
    requested: Option<&str>,
    providers: &[&Provider],
    passed_over: &[(usize, String)],
) -> String {
    if let Some(requested) = requested {
        return format!("SHMEM_TRANSPORT is {requested}");
    }
    if passed_over.is_empty() {
        return "every PE has it".to_owned();
    }
    let reason =
        |(index, why): &(usize, String)| format!("{} is not chosen: {why}", providers[*index].name);
    passed_over.iter().map(reason).collect::<Vec<String>>().join("; ")
}

/// Returns the providers that this program can use.
fn possible(providers: &[Provider]) -> impl Iterator<Item = &Provider> {
    let is_static = statics::own().of_static_program();
    providers.iter().filter(move |provider| !(is_static && provider.opens_libraries))
}

/// Returns the findings of this PE that matter for the choice.
fn offer(settings: &Settings, providers: &[&Provider]) -> Offer {
    let requested = settings.transport.clone().unwrap_or_default();
    let amos = settings.amos.map_or("", Amos::name).to_owned();
    let mut offer = Offer { requested, amos, ..Offer::default() };
    let host = ProcessHost::default();
    let any_device = !devices::active().is_empty();
    for provider in providers {
        if !offer.requested.is_empty() && offer.requested != provider.name {
            continue;
        }
        // A library that cannot be chosen is not opened, since opening it has side effects.
        let found = (any_device || !provider.opens_libraries).then(|| (provider.available)(&host));
        if matches!(found, Some(Ok(Found { hardware_amos: true, .. }))) {
            offer.hardware_amos.push(provider.name.to_owned());
        }
        if offer.requested.is_empty() {
            offer.seen.push(match found {
                Some(Ok(Found { rdma: true, .. })) => Availability::Rdma,
                Some(Ok(_)) | None => Availability::Plain,
                Some(Err(why)) => Availability::Absent(why.to_string()),
            });
        }
    }
    offer
}

/// Sends data of this PE to all PEs, and returns the data of all.
fn exchange<T: Serialize + DeserializeOwned>(
    call: Call,
    job: &Job,
    format: Format,
    own: &T,
) -> Records<T> {
    match job.session().exchange(&encode(format, own)) {
        Ok(records) => decoded(call, format, records),
        Err(error) => fail!(call, "{error}"),
    }
}

/// Decodes the data of all PEs. Ends the job with an error if a PE has another version.
fn decoded<T: DeserializeOwned>(call: Call, format: Format, records: Records) -> Records<T> {
    match records.try_map(|bytes| decode(format, &bytes)) {
        Ok(records) => records,
        Err((pe, error)) => fail!(call, "the data of PE {pe} cannot be read: {error}"),
    }
}

/// The result of a step on one PE; the error is the reason.
type StepResult = Result<(), String>;

/// Ends a step on all PEs. Returns the result of this PE if the step has succeeded on all of them.
///
/// # Errors
/// If the step has failed on some PEs: which ones, and why. The text is the same on all PEs.
fn on_all<T>(call: Call, job: &Job, own: Result<T, String>) -> Result<T, String> {
    let (has, own): (_, StepResult) = match own {
        Ok(has) => (Some(has), Ok(())),
        Err(why) => (None, Err(why)),
    };
    let outcomes = exchange(call, job, STEP, &own);
    if outcomes.position(StepResult::is_err).is_some() {
        let each: Vec<StepResult> = outcomes.iter().cloned().collect();
        complaint(&each).map_or(Ok(()), Err)?;
    }
    Ok(has.expect("a failure here was returned above"))
}

/// A transport over which every PE has transferred data, and the endpoint of the library, which is
/// dropped before the transport.
struct Tried {
    endpoint: Box<dyn Endpoint>,
    transport: Box<dyn Transport>,
}

/// Returns the transport of a provider over the first of its parts that works on all PEs.
///
/// # Errors
/// If none does; the reason for each.
fn first_that_works(
    call: Call,
    job: &Job,
    provider: &Provider,
    ways: Vec<AmoPath>,
) -> Result<(Tried, AmoPath), String> {
    let mut failures: Vec<(Vec<String>, String)> = Vec::new();
    for Candidate { part, ways } in agreed_parts(call, job, provider, ways)? {
        match with_first_way(call, job, (provider, part.as_deref()), ways) {
            Ok(tried) => {
                for why in failures.iter().filter(|_| job.me == Pe(0)).map(failure) {
                    warning!("of the transport {}, {why}; the next one is used", provider.name);
                }
                return Ok(tried);
            }
            Err(why) => match failures.iter_mut().find(|(_, known)| *known == why) {
                Some((parts, _)) => parts.extend(part),
                None => failures.push((part.into_iter().collect(), why)),
            },
        }
    }
    Err(failures.iter().map(failure).collect::<Vec<_>>().join("; "))
}

/// Names the parts of a provider that do not work for the same reason, and the reason.
fn failure((parts, why): &(Vec<String>, String)) -> String {
    match parts.as_slice() {
        [] => why.clone(),
        [part] => format!("{part} does not work here ({why})"),
        parts => format!("{} do not work here ({why})", parts.join(", ")),
    }
}

/// A part of a provider, and the candidates for carrying out atomic operations over it.
struct Candidate {
    /// `None` for a provider without parts.
    part: Option<String>,
    ways: Vec<AmoPath>,
}

/// Returns the parts of a provider that all PEs have, best first, with the candidates for atomic
/// operations over each.
///
/// # Errors
/// If there is none; the reason for each candidate. The text is the same on all PEs.
fn agreed_parts(
    call: Call,
    job: &Job,
    provider: &Provider,
    ways: Vec<AmoPath>,
) -> Result<Vec<Candidate>, String> {
    let Some(parts) = provider.parts else { return Ok(vec![Candidate { part: None, ways }]) };
    let host = Arc::new(ProcessHost::with(job.me, job.settings.host_limit, CALLBACKS));
    let of = |way: &AmoPath| {
        let with = arguments(job, way.amos, None, &host);
        without_signals(|| parts(&with)).map_err(|error| error.to_string())
    };
    job.session().opens(Some(&described(provider, None)));
    let own: Vec<Result<Vec<String>, String>> = ways.iter().map(of).collect();
    job.session().opens(None);
    let all: Vec<_> = exchange(call, job, PARTS, &own).iter().cloned().collect();
    let agreed = transport_choice::parts(ways.len(), &all)?;
    let candidate = |(part, of): (String, Vec<usize>)| Candidate {
        part: Some(part),
        ways: of.into_iter().map(|way| ways[way].clone()).collect(),
    };
    Ok(agreed.into_iter().map(candidate).collect())
}

/// Returns a transport and its part, as messages name them.
fn described(provider: &Provider, part: Option<&str>) -> String {
    let part = part.map(|part| format!(" ({part})")).unwrap_or_default();
    format!("the transport {}{part}", provider.name)
}

/// Returns the transport of a part with the first candidate for atomic operations that works on all
/// PEs.
///
/// # Errors
/// If none does; the reason for each.
fn with_first_way(
    call: Call,
    job: &Job,
    (provider, part): (&Provider, Option<&str>),
    ways: Vec<AmoPath>,
) -> Result<(Tried, AmoPath), String> {
    let mut whys: Vec<String> = Vec::new();
    for mut way in ways {
        match attempt(call, job, (provider, part), way.amos) {
            Ok(tried) => {
                if let Some(why) = whys.first() {
                    way.why = format!("{}: {why}", way.why);
                }
                return Ok((tried, way));
            }
            Err(why) => whys.push(why),
        }
    }
    // A reason that applies to all of them is printed once.
    whys.dedup();
    Err(whys.join("; with atomic operations by the CPU of the target: "))
}

/// Opens the transport of a provider, connects it and runs the probe.
///
/// # Errors
/// If one of these has failed on some PEs: which ones, and why. The text is the same on all PEs.
fn attempt(
    call: Call,
    job: &Job,
    (provider, part): (&Provider, Option<&str>),
    amos: Amos,
) -> Result<Tried, String> {
    let host = Arc::new(ProcessHost::with(job.me, job.settings.host_limit, CALLBACKS));
    let with = arguments(job, amos, part, &host);
    if provider.opens_libraries {
        job.session().opens(Some(&described(provider, part)));
    }
    let prepared = prepare(job, provider, &with).map_err(|error| error.to_string());
    if provider.opens_libraries {
        job.session().opens(None);
    }
    let OpenTransport { mut transport, announced } = on_all(call, job, prepared)?;
    // One PE of a machine keeps it for all.
    match job.session().exchange_to_first(&encode(ANNOUNCED, &announced)) {
        Ok(Some(records)) => {
            let records: Records<Announced> = decoded(call, ANNOUNCED, records);
            let bytes = Directory::encode((0..job.n_pes).map(|pe| records[pe].record()));
            // SAFETY: transports that read what was published before are closed on all PEs at this
            // step.
            unsafe { job.memory.publish(&bytes) };
        }
        Ok(None) => {}
        Err(error) => fail!(call, "{error}"),
    }
    let directory = Arc::new(Directory::new(job.memory.published()));
    let endpoint = on_all(call, job, connected(&mut *transport, directory))?;
    let endpoint = on_all(call, job, probed(call, job, &*transport, endpoint))?;
    host.set_chosen();
    Ok(Tried { endpoint, transport })
}

/// What a PE sends to its peers: its address, and the keys of its segments by number.
#[derive(Serialize, Deserialize)]
struct Announced {
    address: Vec<u8>,
    keys: [Vec<u8>; Segment::COUNT],
}

impl Announced {
    fn record(&self) -> PeRecord<'_> {
        PeRecord { address: &self.address, keys: self.keys.each_ref().map(Vec::as_slice) }
    }
}

/// A transport that this PE has opened, and what its peers need to know.
struct OpenTransport {
    transport: Box<dyn Transport>,
    announced: Announced,
}

/// Returns the arguments with which a provider is opened.
fn arguments(job: &Job, amos: Amos, part: Option<&str>, host: &Arc<ProcessHost>) -> Open {
    Open {
        pe: job.me,
        n_pes: job.n_pes,
        secret: job.secret,
        one_machine: job.one_stack,
        cpus_per_pe: job.cpus_per_pe,
        amos,
        part: part.map(str::to_owned),
        host: Arc::clone(host) as _,
    }
}

/// Opens the transport of a provider and registers the segments of this PE.
fn prepare(job: &Job, provider: &Provider, with: &Open) -> Result<OpenTransport, Error> {
    let mut transport = without_signals(|| (provider.open)(with))?;
    let layout = job.memory.layout();
    let statics = statics::own();
    let start = std::ptr::with_exposed_provenance_mut(statics.start());
    let segments = [
        (Segment::Heap, job.memory.heap(), layout.heap_bytes()),
        (Segment::Internal, job.memory.internal(), layout.internal_bytes()),
        (Segment::Static, start, statics.nbytes()),
    ];
    let caps = transport.caps();
    let (locks, at_init) = (caps.locks_memory, caps.registered_at_init(layout.heap_bytes()));
    let registered = RegisteredSizes::new(job, at_init);
    let [heap, own, static_data] = registered.nbytes;
    let of_node = registered.of_node();
    rushmem_log::debug!(
        transport = provider.name,
        heap,
        static_data,
        own,
        of_node,
        locked = locks,
        "registers memory"
    );
    if locks {
        locked::prepare(job, at_init)?;
    }
    let mut announced = Announced { address: transport.address(), keys: Default::default() };
    for (segment, base, nbytes) in segments {
        // SAFETY: the segment is mapped for the life of the process, except for holes in the static
        // data. All PEs have the same holes, so no peer accesses them.
        let key = unsafe { transport.register(segment, base, nbytes) }?;
        announced.keys[segment as usize] = key.0;
    }
    Ok(OpenTransport { transport, announced })
}

/// Connects to all PEs, and creates the endpoint of the library.
fn connected(
    transport: &mut dyn Transport,
    directory: Arc<Directory>,
) -> Result<Box<dyn Endpoint>, String> {
    transport.connect(directory).map_err(|error| error.to_string())?;
    transport.internal_endpoint().map_err(|error| error.to_string())
}

/// Runs the probe with the next PE whose memory is not mapped here. All PEs are connected by now,
/// so that each can answer.
fn probed(
    call: Call,
    job: &Job,
    transport: &dyn Transport,
    mut endpoint: Box<dyn Endpoint>,
) -> Result<Box<dyn Endpoint>, String> {
    let node = job.nodes.node_of(job.me.0);
    let unmapped = |pe: u32| pe != job.me.0 && (job.statics_apart || job.nodes.node_of(pe) != node);
    let after = (1..job.n_pes).map(|distance| (job.me.0 + distance) % job.n_pes);
    if let Some(pe) = after.into_iter().find(|&pe| unmapped(pe)).map(Pe) {
        probe::limited(call, transport, (pe, probe_limit(job)), || {
            probe::transfer(&mut *endpoint, flags::area().areas(), job.me, pe)
        })?;
    }
    Ok(endpoint)
}

/// Returns the time limit of the probe: longer than `SHMEM_HOST_LIMIT`, since a NIC may take
/// seconds to connect; and longer still if PEs outnumber the CPUs, since each of them has to run.
fn probe_limit(job: &Job) -> Duration {
    let machines = job.session().nodes().clone();
    let n_local = machines.size(machines.node_of(job.me.0));
    let turns =
        if job.oversubscribed { Duration::from_secs(n_local.into()) } else { Duration::ZERO };
    3 * job.settings.host_limit + turns
}

/// Warns of transports that were tried and do not work, since the chosen one may be slower.
fn warn(job: &Job, providers: &[&Provider], tried: &[(usize, String)]) {
    for (place, why) in tried.iter().filter(|_| job.me == Pe(0)) {
        let name = providers[*place].name;
        warning!("the transport {name} does not work here and is passed over: {why}");
    }
}

/// Warns if the chosen transport uses no RDMA device although a PE has one: for example, because
/// another PE has none, or because a library is not installed.
fn warn_of_unused_devices(
    job: &Job,
    offers: &[Offer],
    chosen: usize,
    not_tried: &[(usize, String)],
    providers: &[&Provider],
) {
    let has = |offer: &Offer, place: usize| offer.seen.get(place) == Some(&Availability::Rdma);
    let is_used = offers.iter().all(|offer| offer.seen.is_empty() || has(offer, chosen));
    let is_missed = || not_tried.iter().any(|(place, _)| offers.iter().any(|of| has(of, *place)));
    let is_idle = || !not_tried.is_empty() && !devices::active().is_empty();
    if job.me != Pe(0) || is_used || !is_missed() && !is_idle() {
        return;
    }
    let whys = not_tried.iter().map(|(place, why)| format!("{}: {why}", providers[*place].name));
    let whys: Vec<String> = whys.collect();
    warning!(
        "the job uses {}, and no RDMA device, although there are some ({}); `oshrun --doctor` examines all hosts",
        providers[chosen].name,
        whys.join("; ")
    );
}

/// Logs, for `SHMEM_DEBUG=2`, why each provider was chosen or not.
fn report(job: &Job, providers: &[&Provider], chosen: &Provider, passed_over: &[(usize, String)]) {
    if job.me != Pe(0) || !rushmem_log::is_on(rushmem_log::Level::DEBUG) {
        return;
    }
    let host = ProcessHost::default();
    let any_device = !devices::active().is_empty();
    for (place, provider) in providers.iter().enumerate() {
        let opened = any_device || !provider.opens_libraries || provider.name == chosen.name;
        let found = match opened {
            false => "not opened, since this machine has no RDMA device".to_owned(),
            true => match (provider.available)(&host) {
                Ok(found) => found.to_string(),
                Err(why) => why.to_string(),
            },
        };
        let fate = match passed_over.iter().find(|(passed, _)| *passed == place) {
            None => "chosen, and every PE moved data over it".to_owned(),
            Some((_, why)) => format!("not chosen: {why}"),
        };
        rushmem_log::debug!("transport {}: {found}; {fate}", provider.name);
    }
}
