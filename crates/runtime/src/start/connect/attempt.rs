//! The attempt to connect a job over one provider. All PEs open its transport, exchange addresses
//! and keys, connect, and transfer data.
#![allow(unsafe_code)]

use super::candidates::{AmoExecutor, Offer, StepResult, result_of_all};
use super::negotiation::Route;
use super::probe::Probe;
use crate::start::error::StartError;
use rushmem_bootstrap::Records;
use rushmem_communication::host::ProcessHost;
use rushmem_communication::links::Links;
use rushmem_pe::call::Call;
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
use std::sync::Arc;
use std::time::Duration;

/// A transport over which every PE has transferred data.
pub(super) struct ConnectedTransport {
    /// The endpoint of the library, which is dropped before the transport.
    pub(super) endpoint: Box<dyn Endpoint>,
    pub(super) transport: Box<dyn Transport>,
    pub(super) executor: AmoExecutor,
}

/// Why an attempt has ended without a connection.
pub(super) enum Ended {
    /// A step has failed on some PEs: which ones, and why. The text is the same on all PEs, which
    /// try something else.
    Failed(String),
    /// The whole start is refused.
    Refused(StartError),
}

impl From<StartError> for Ended {
    fn from(error: StartError) -> Ended {
        Ended::Refused(error)
    }
}

/// Returns the parts of a provider that each PE can use with each executor.
pub(super) fn exchange_parts(
    job: &Job,
    provider: &Provider,
    executors: &[AmoExecutor],
) -> Result<Vec<Vec<Offer>>, StartError> {
    let parts = provider.parts.expect("the provider has parts");
    let route = Route {
        provider,
        part: None,
    };
    let host = Arc::new(ProcessHost::new(job.me, job.settings.host_limit));

    // `oshrun` learns which transport is opened, whose libraries may crash.
    job.session().report_opening(Some(&route.to_string()));
    let mut own: Vec<Offer> = Vec::new();
    for executor in executors {
        let open = arguments(job, &route, executor.amos, &host);
        own.push(match apart(|| parts(&open)) {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(error) => Err(refused(&error)),
        });
    }
    job.session().report_opening(None);

    Ok(exchange(job, &own)?.iter().cloned().collect())
}

/// Sends data of this PE to all PEs, and returns the data of all.
pub(super) fn exchange<T: Serialize + DeserializeOwned>(
    job: &Job,
    own: &T,
) -> Result<Records<T>, StartError> {
    decoded(job.session().exchange(&encode(own))?)
}

/// Decodes the data of all PEs.
pub(super) fn decoded<T: DeserializeOwned>(records: Records) -> Result<Records<T>, StartError> {
    records
        .try_map(|bytes| decode(&bytes))
        .map_err(|(pe, why)| StartError::Data { pe, why })
}

/// Exchanges the results of a step. Returns the result of this PE if the step has succeeded on all
/// PEs.
fn exchange_results<T>(job: &Job, own: Result<T, String>) -> Result<T, Ended> {
    let own_step: StepResult = match &own {
        Ok(_) => Ok(()),
        Err(why) => Err(why.clone()),
    };
    let of_all = exchange(job, &own_step)?;
    if let Err(why) = result_of_all(&of_all) {
        return Err(Ended::Failed(why));
    }
    own.map_err(Ended::Failed)
}

/// Opens the transport of a provider, connects it and runs the probe.
pub(super) fn attempt(
    call: Call,
    links: &Links,
    route: &Route<'_>,
    executor: AmoExecutor,
) -> Result<ConnectedTransport, Ended> {
    let job = &links.job;
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
    } = exchange_results(job, prepared)?;

    publish_announced(job, &announced)?;
    let directory = Arc::new(Directory::new(job.memory.await_published()));
    let connected = transport
        .connect(directory)
        .and_then(|()| transport.endpoint(EndpointUser::Runtime))
        .map_err(|error| error.to_string());
    let endpoint = exchange_results(job, connected)?;

    // Only now have all PEs connected, so that each can answer the probe.
    let probed = run_probe(call, links, &*transport, endpoint);
    let endpoint = exchange_results(job, probed)?;
    host.set_chosen();
    Ok(ConnectedTransport {
        endpoint,
        transport,
        executor,
    })
}

/// Has the first PE of each machine publish the announcements of all PEs in the machine's memory.
/// All PEs have opened the transport.
fn publish_announced(job: &Job, own: &Announced) -> Result<(), StartError> {
    let of_all = job.session().exchange_to_first(&encode(own))?;
    let Some(records) = of_all else {
        return Ok(());
    };
    let records: Records<Announced> = decoded(records)?;
    let bytes = Directory::encode((0..job.n_pes).map(|pe| records[pe].record()));
    // SAFETY: no transport reads what was published before: every PE has closed those of earlier
    // attempts before it has sent the result of opening this one.
    unsafe { job.memory.publish(&bytes) };
    Ok(())
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
fn arguments(job: &Job, route: &Route<'_>, amos: Amos, host: &Arc<ProcessHost>) -> Open {
    Open {
        pe: job.me,
        n_pes: job.n_pes,
        secret: job.secret,
        one_machine: job.is_on_one_stack,
        cpus_per_pe: job.cpus_per_pe,
        amos,
        part: route.part.clone(),
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
    Links { job, area, .. }: &Links,
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
            areas: area.areas(),
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
