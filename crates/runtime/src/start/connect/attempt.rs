//! The attempt to connect a job over one provider. All PEs open its transport, exchange addresses
//! and keys, connect, and transfer data.
#![allow(unsafe_code)]

use super::candidates::{self, AmoExecutor, CommonPart, complaint};
use super::probe::Probe;
use rushmem_bootstrap::Records;
use rushmem_communication::host::ProcessHost;
use rushmem_communication::links;
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::memory::locked::{self, RegisteredSizes};
use rushmem_pe::memory::statics;
use rushmem_system::codec::{decode, encode};
use rushmem_system::thread::{apart, refused};
use rushmem_transport::{
    Amos, Directory, Endpoint, EndpointUser, Error, Open, Pe, PeRecord, Provider, Segment,
    Transport,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

/// A transport over which every PE has transferred data.
pub(super) struct Connected {
    /// The endpoint of the library, which is dropped before the transport.
    pub(super) endpoint: Box<dyn Endpoint>,
    pub(super) transport: Box<dyn Transport>,
    pub(super) executor: AmoExecutor,
}

/// Connects the job over a provider. Tries its parts, and for each part the executors of atomic
/// operations, until a combination works on all PEs.
///
/// # Errors
/// If none works; the reason for each part. The text is the same on all PEs.
pub(super) fn connect_over(
    call: Call,
    job: &Job,
    provider: &Provider,
    executors: Vec<AmoExecutor>,
) -> Result<Connected, String> {
    let mut failures: Vec<Failure> = Vec::new();
    for part in agreed_parts(call, job, provider, executors)? {
        let route = Route {
            provider,
            part: part.name.as_deref(),
        };
        let why = match connect_over_route(call, job, route, part.executors) {
            Ok(connected) => {
                if job.me == Pe(0) {
                    warn_of_failures(provider, &failures);
                }
                return Ok(connected);
            }
            Err(why) => why,
        };

        // Parts that fail for the same reason are listed together.
        match failures.iter_mut().find(|failure| failure.why == why) {
            Some(failure) => failure.parts.extend(part.name),
            None => failures.push(Failure {
                parts: Vec::from_iter(part.name),
                why,
            }),
        }
    }

    let described: Vec<String> = failures.iter().map(Failure::describe).collect();
    Err(described.join("; "))
}

/// Connects the job over a provider or one of its parts, by the first of the executors that works
/// on all PEs.
///
/// # Errors
/// If none works; the reason for each executor. The text is the same on all PEs.
fn connect_over_route(
    call: Call,
    job: &Job,
    route: Route<'_>,
    executors: Vec<AmoExecutor>,
) -> Result<Connected, String> {
    let mut whys: Vec<String> = Vec::new();
    for mut executor in executors {
        if let Some(why) = whys.first() {
            executor.reason = format!("{}: {why}", executor.reason);
        }
        match attempt(call, job, route, executor) {
            Ok(connected) => return Ok(connected),
            Err(why) => whys.push(why),
        }
    }

    // A reason that applies to all executors is printed once. There are at most two: the network,
    // then the CPU of the target.
    whys.dedup();
    Err(whys.join("; with atomic operations by the CPU of the target: "))
}

fn warn_of_failures(provider: &Provider, failures: &[Failure]) {
    for failure in failures {
        warning!(
            "of the transport {}, {}; the next one is used",
            provider.name,
            failure.describe()
        );
    }
}

/// A provider, or one of its parts, over which a job is connected. Messages name it as a transport.
#[derive(Clone, Copy)]
struct Route<'a> {
    provider: &'a Provider,
    /// `None` for a provider without parts, or for all of them.
    part: Option<&'a str>,
}

impl Display for Route<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the transport {}", self.provider.name)?;
        match self.part {
            Some(part) => write!(f, " ({part})"),
            None => Ok(()),
        }
    }
}

/// The parts of a provider that do not work for the same reason.
struct Failure {
    /// Empty for a provider without parts.
    parts: Vec<String>,
    why: String,
}

impl Failure {
    fn describe(&self) -> String {
        let why = &self.why;
        match self.parts.as_slice() {
            [] => why.clone(),
            [part] => format!("{part} does not work here ({why})"),
            parts => format!("{} do not work here ({why})", parts.join(", ")),
        }
    }
}

/// A part of a provider, and the executors of atomic operations to try over it.
struct Part {
    /// `None` for a provider without parts.
    name: Option<String>,
    executors: Vec<AmoExecutor>,
}

/// Returns the parts of a provider that all PEs have, best first.
///
/// # Errors
/// If there is none; the reason for each executor. The text is the same on all PEs.
fn agreed_parts(
    call: Call,
    job: &Job,
    provider: &Provider,
    executors: Vec<AmoExecutor>,
) -> Result<Vec<Part>, String> {
    let Some(parts) = provider.parts else {
        return Ok(vec![Part {
            name: None,
            executors,
        }]);
    };

    let route = Route {
        provider,
        part: None,
    };
    let host = Arc::new(ProcessHost::new(job.me, job.settings.host_limit));
    // `oshrun` learns which transport is opened, whose libraries may crash.
    job.session().report_opening(Some(&route.to_string()));
    let mut own: Vec<Result<Vec<String>, String>> = Vec::new();
    for executor in &executors {
        let open = arguments(job, route, executor.amos, &host);
        own.push(match apart(|| parts(&open)) {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(error) => Err(refused(&error)),
        });
    }
    job.session().report_opening(None);

    let of_all: Vec<_> = exchange(call, job, &own).iter().cloned().collect();
    let mut agreed = Vec::new();
    for CommonPart { name, with } in candidates::common_parts(executors.len(), &of_all)? {
        let executors = with.into_iter().map(|i| executors[i].clone());
        agreed.push(Part {
            name: Some(name),
            executors: executors.collect(),
        });
    }
    Ok(agreed)
}

/// Sends data of this PE to all PEs, and returns the data of all.
pub(super) fn exchange<T: Serialize + DeserializeOwned>(
    call: Call,
    job: &Job,
    own: &T,
) -> Records<T> {
    match job.session().exchange(&encode(own)) {
        Ok(records) => decoded(call, records),
        Err(error) => fail!(call, "{error}"),
    }
}

/// Decodes the data of all PEs. Ends the job with an error if those of a PE are damaged.
fn decoded<T: DeserializeOwned>(call: Call, records: Records) -> Records<T> {
    match records.try_map(|bytes| decode(&bytes)) {
        Ok(records) => records,
        Err((pe, error)) => fail!(call, "the data of PE {pe} cannot be read: {error}"),
    }
}

/// The result of a step on one PE; the error is the reason.
type StepResult = Result<(), String>;

/// Exchanges the results of a step. Returns the result of this PE if the step has succeeded on all
/// PEs.
///
/// # Errors
/// If the step has failed on some PEs: which ones, and why. The text is the same on all PEs.
fn exchange_results<T>(call: Call, job: &Job, own: Result<T, String>) -> Result<T, String> {
    let own_step: StepResult = match &own {
        Ok(_) => Ok(()),
        Err(why) => Err(why.clone()),
    };
    let of_all = exchange(call, job, &own_step);

    // Equal results of consecutive PEs are one record, so this search is short if all PEs have
    // succeeded. Only after a failure is there a value for each PE.
    if of_all.position(StepResult::is_err).is_some() {
        let of_each_pe: Vec<StepResult> = of_all.iter().cloned().collect();
        if let Some(why) = complaint(&of_each_pe) {
            return Err(why);
        }
    }
    own
}

/// Opens the transport of a provider, connects it and runs the probe.
///
/// # Errors
/// If one of these has failed on some PEs: which ones, and why. The text is the same on all PEs.
fn attempt(
    call: Call,
    job: &Job,
    route: Route<'_>,
    executor: AmoExecutor,
) -> Result<Connected, String> {
    let host = Arc::new(ProcessHost::new(job.me, job.settings.host_limit));
    let open = arguments(job, route, executor.amos, &host);

    let opens_libraries = route.provider.opens_libraries;
    if opens_libraries {
        job.session().report_opening(Some(&route.to_string()));
    }
    let prepared = prepare(job, route.provider, &open).map_err(|error| error.to_string());
    if opens_libraries {
        job.session().report_opening(None);
    }
    let OpenTransport {
        mut transport,
        announced,
    } = exchange_results(call, job, prepared)?;

    // The first PE of a machine publishes the announcements of all PEs in the machine's memory.
    let announced = encode(&announced);
    match job.session().exchange_to_first(&announced) {
        Ok(Some(records)) => {
            let records: Records<Announced> = decoded(call, records);
            let bytes = Directory::encode((0..job.n_pes).map(|pe| records[pe].record()));
            // SAFETY: no transport reads what was published before: every PE has closed those of
            // earlier attempts before it has sent its result in `exchange_results` above.
            unsafe { job.memory.publish(&bytes) };
        }
        Ok(None) => {}
        Err(error) => fail!(call, "{error}"),
    }

    let directory = Arc::new(Directory::new(job.memory.await_published()));
    let connected = transport
        .connect(directory)
        .and_then(|()| transport.endpoint(EndpointUser::Runtime))
        .map_err(|error| error.to_string());
    let endpoint = exchange_results(call, job, connected)?;

    // Only now have all PEs connected, so that each can answer the probe.
    let probed = run_probe(call, job, &*transport, endpoint);
    let endpoint = exchange_results(call, job, probed)?;
    host.set_chosen();
    Ok(Connected {
        endpoint,
        transport,
        executor,
    })
}

/// The data of a PE for its peers: its address, and the keys of its segments by number.
#[derive(Serialize, Deserialize)]
struct Announced {
    address: Vec<u8>,
    keys: [Vec<u8>; Segment::COUNT],
}

impl Announced {
    fn record(&self) -> PeRecord<'_> {
        PeRecord {
            address: &self.address,
            keys: self.keys.each_ref().map(Vec::as_slice),
        }
    }
}

/// A transport that this PE has opened, and the data for its peers.
struct OpenTransport {
    transport: Box<dyn Transport>,
    announced: Announced,
}

/// Returns the arguments with which a provider is opened.
fn arguments(job: &Job, route: Route<'_>, amos: Amos, host: &Arc<ProcessHost>) -> Open {
    Open {
        pe: job.me,
        n_pes: job.n_pes,
        secret: job.secret,
        one_machine: job.is_on_one_stack,
        cpus_per_pe: job.cpus_per_pe,
        amos,
        part: route.part.map(str::to_owned),
        host: Arc::clone(host) as _,
    }
}

/// Opens the transport of a provider and registers the segments of this PE.
fn prepare(job: &Job, provider: &Provider, open: &Open) -> Result<OpenTransport, Error> {
    let opened = apart(|| (provider.open)(open));
    let mut transport = opened.map_err(|error| Error::Unavailable(refused(&error)))??;

    let layout = job.memory.layout();
    let caps = transport.caps();
    let at_init = caps.registered_at_init(layout.heap_bytes());
    let registered = RegisteredSizes::new(job, at_init);
    // In the order of `Segment`.
    let [heap, own, static_data] = registered.nbytes;
    rushmem_system::log::debug!(
        transport = provider.name,
        heap,
        static_data,
        own,
        of_node = registered.of_node(),
        locked = caps.locks_memory,
        "registers memory"
    );
    if caps.locks_memory {
        locked::prepare(job, at_init)?;
    }

    let statics = statics::own();
    let segments = [
        (Segment::Heap, job.memory.heap(), layout.heap_bytes()),
        (
            Segment::Internal,
            job.memory.internal(),
            layout.internal_bytes(),
        ),
        (
            Segment::Static,
            std::ptr::with_exposed_provenance_mut(statics.start()),
            statics.nbytes(),
        ),
    ];
    let mut announced = Announced {
        address: transport.address(),
        keys: Default::default(),
    };
    for (segment, base, nbytes) in segments {
        // SAFETY: the segment is mapped for the life of the process, except for holes in the static
        // data. All PEs have the same holes, so no peer accesses them.
        let key = unsafe { transport.register(segment, base, nbytes) }?;
        announced.keys[segment as usize] = key.0;
    }
    Ok(OpenTransport {
        transport,
        announced,
    })
}

/// Runs the probe with the next PE some of whose memory may not be mapped here, if there is one.
/// All PEs have called `connect` by now, so that each can answer.
fn run_probe(
    call: Call,
    job: &Job,
    transport: &dyn Transport,
    mut endpoint: Box<dyn Endpoint>,
) -> Result<Box<dyn Endpoint>, String> {
    let node = job.nodes.node_of(job.me.0);
    let mut others = (1..job.n_pes).map(|distance| (job.me.0 + distance) % job.n_pes);
    let unmapped = others.find(|&pe| job.has_statics_apart || job.nodes.node_of(pe) != node);

    if let Some(pe) = unmapped {
        let probe = Probe {
            me: job.me,
            pe: Pe(pe),
            areas: links::of_process().area.areas(),
            limit: probe_limit(job),
        };
        probe.run(call, transport, &mut *endpoint)?;
    }
    Ok(endpoint)
}

/// Returns the time limit of the probe: longer than `SHMEM_HOST_LIMIT`, since a NIC may take
/// seconds to connect; and longer still if PEs outnumber the CPUs, since each of them has to run.
fn probe_limit(job: &Job) -> Duration {
    let mut limit = 3 * job.settings.host_limit;
    if job.is_oversubscribed {
        let machines = job.session().nodes().clone();
        let n_local = machines.size(machines.node_of(job.me.0));
        limit += Duration::from_secs(n_local.into());
    }
    limit
}
