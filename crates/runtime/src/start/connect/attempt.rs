//! The attempt to connect a job over one provider. All PEs open its transport, exchange addresses
//! and keys, connect, and transfer data: a transfer of every kind to a peer decides whether the
//! transport works.
#![allow(unsafe_code)]

use super::trial::{AmoExecutor, Offer, Route};
use crate::start::error::{StartError, complaint};
use crate::start::exchange::{decoded, exchange_values};
use rushmem_bootstrap::Records;
use rushmem_communication::host::ProcessHost;
use rushmem_communication::links::Links;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::memory::areas::Areas;
use rushmem_pe::memory::locked::{self, RegisteredSizes};
use rushmem_pe::memory::statics;
use rushmem_system::codec::encode;
use rushmem_system::signals::without_signals;
use rushmem_system::thread::{apart, refused};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Amos, Completion, DestBuf, Directory, Endpoint, EndpointUser,
    Error, Get, OldValue, Open, Pe, PeRecord, Provider, Put, RemoteAddr, Segment, SourceBuf,
    Transport,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The number of words that are put and read back.
const WORDS: usize = 4;

/// The length of the sleeps in which the time limit is counted, so that the time during which the
/// process is stopped does not count.
const TICK: Duration = Duration::from_millis(100);

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
    job.membership().report_opening(Some(&route.to_string()));
    let mut own: Vec<Offer> = Vec::new();
    for executor in executors {
        let open = arguments(job, &route, executor.amos, &host);
        own.push(match apart(|| parts(&open)) {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(error) => Err(refused(&error)),
        });
    }
    job.membership().report_opening(None);

    let of_all = exchange_values(&mut job.membership(), &own)?;
    Ok(of_all.iter().cloned().collect())
}

/// Exchanges the results of a step. Returns the result of this PE if the step has succeeded on all
/// PEs.
fn exchange_results<T>(job: &Job, own: Result<T, String>) -> Result<T, Ended> {
    let own_step: StepResult = match &own {
        Ok(_) => Ok(()),
        Err(why) => Err(why.clone()),
    };
    let of_all = exchange_values(&mut job.membership(), &own_step)?;
    if let Err(why) = result_of_all(&of_all) {
        return Err(Ended::Failed(why));
    }
    own.map_err(Ended::Failed)
}

/// The result of a step of an attempt on one PE; the error is the reason.
pub(in crate::start) type StepResult = Result<(), String>;

/// Returns an error if a step has failed on some PEs: which ones, and why.
pub(in crate::start) fn result_of_all(of_all: &Records<StepResult>) -> StepResult {
    // Equal results of consecutive PEs are one record, so this search is short if all PEs have
    // succeeded. Only after a failure is there a value for each PE.
    if of_all.position(StepResult::is_err).is_none() {
        return Ok(());
    }
    let of_each_pe: Vec<StepResult> = of_all.iter().cloned().collect();
    complaint(&of_each_pe).map_or(Ok(()), Err)
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
        job.membership().report_opening(Some(&route.to_string()));
    }
    let prepared = prepare(job, route.provider, &open).map_err(|error| error.to_string());
    if opens_libraries {
        job.membership().report_opening(None);
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

    // Each PE knows the addresses of all now, and can answer the probe. Providers that connect when
    // a peer is first used, such as TCP, do so in the probe.
    let probed = run_probe(call, links, &*transport, endpoint);
    let endpoint = exchange_results(job, probed)?;
    host.end_job_on_loss();
    Ok(ConnectedTransport {
        endpoint,
        transport,
        executor,
    })
}

/// Has the first PE of each machine publish the announcements of all PEs in the machine's memory.
/// All PEs have opened the transport.
fn publish_announced(job: &Job, own: &Announced) -> Result<(), StartError> {
    let of_all = job.membership().exchange_to_first(&encode(own))?;
    let Some(records) = of_all else {
        return Ok(());
    };
    let records: Records<Announced> = decoded(records)?;
    let bytes = Directory::encode((0..job.n_pes).map(|pe| records[pe].record()));
    // SAFETY: the transport of the attempt before reads what was published for it. Each PE has
    // closed that transport before it opened this one, and all have sent the results of opening
    // this one.
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
        let machines = job.membership().nodes().clone();
        let n_local = machines.size(machines.node_of(job.me.0));
        limit += Duration::from_secs(n_local.into());
    }
    limit
}

/// A probe of the path from this PE to another one.
struct Probe<'a> {
    me: Pe,
    pe: Pe,
    areas: &'a Areas,
    /// The time after which the transport abandons `pe`.
    limit: Duration,
}

impl Probe<'_> {
    /// Transfers data within the limit. After the limit the transport abandons the peer, which ends
    /// the transfer with an error. If the transfer goes on for the limit again, a call of the
    /// provider blocks, and this function ends the job with an error.
    ///
    /// # Errors
    /// A text that says what has failed: the transfer, or the start of the thread that counts the
    /// time.
    fn run(
        &self,
        call: Call,
        transport: &dyn Transport,
        endpoint: &mut dyn Endpoint,
    ) -> Result<(), String> {
        let (end, awaited_end): (Sender<()>, Receiver<()>) = mpsc::channel();
        scope(|scope| {
            let watching = without_signals(|| {
                Builder::new()
                    .name("rushmem-probe".to_owned())
                    .spawn_scoped(scope, move || self.watch(call, transport, &awaited_end))
            });
            watching.map_err(|error| refused(&error))?;

            let transferred = self.transfer(endpoint);
            // This ends the watching thread, for which the scope waits.
            drop(end);
            transferred
        })
    }

    /// Enforces the limit until the sender of `end` is dropped.
    fn watch(&self, call: Call, transport: &dyn Transport, end: &Receiver<()>) {
        if !has_passed(self.limit, end) {
            return;
        }
        let seconds = self.limit.as_secs_f64();
        let why = format!("a transfer to try it out is not over after {seconds} s");
        transport.lose(self.pe, &why);

        if has_passed(self.limit, end) {
            fail!(
                call,
                "{why}: this PE has given PE {} up, but its network library does not return; \
                 choose another one by SHMEM_TRANSPORT",
                self.pe
            );
        }
    }

    /// Transfers data between this PE and the peer by a put, a get and atomic operations, and
    /// completes them.
    fn transfer(&self, endpoint: &mut dyn Endpoint) -> Result<(), String> {
        // The values differ for each pair of PEs, so that those of another pair are not accepted.
        // The multiplication by an odd number, 2^64 divided by the golden ratio, maps each pair to
        // a value of its own, whose bytes are not mostly 0.
        let pair = u64::from(self.me.0) << 32 | u64::from(self.pe.0);
        let seed = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);

        self.put_and_get(endpoint, seed)?;
        self.swap_and_add(endpoint, seed)?;
        match endpoint.quiet() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed("the completion of operations on", &error)),
        }
    }

    /// Puts words on the peer, and gets them back.
    fn put_and_get(&self, endpoint: &mut dyn Endpoint, seed: u64) -> Result<(), String> {
        let pe = self.pe;
        let sent: [u64; WORDS] = std::array::from_fn(|i| seed ^ (i as u64 + 1));
        let put = Put {
            remote: self.word(0),
            // SAFETY: the source is a local array, which the put has read when it returns.
            local: unsafe { SourceBuf::new(sent.as_ptr().cast(), size_of_val(&sent)) },
            completion: Completion::Now,
        };
        endpoint
            .put(pe, put)
            .and_then(|()| endpoint.quiet())
            .map_err(|error| self.failed("a put to", &error))?;

        let mut found = [0u64; WORDS];
        let get = Get {
            remote: self.word(0),
            // SAFETY: the destination is a local array, which the get has written when it returns.
            local: unsafe { DestBuf::new(found.as_mut_ptr().cast(), size_of_val(&found)) },
            completion: Completion::Now,
        };
        endpoint
            .get(pe, get)
            .map_err(|error| self.failed("a get from", &error))?;

        if found != sent {
            return Err(format!(
                "PE {pe} does not hold what was put there to try it out"
            ));
        }
        Ok(())
    }

    /// Sets a word on the peer and adds to it, by atomic operations that fetch the old value.
    fn swap_and_add(&self, endpoint: &mut dyn Endpoint, seed: u64) -> Result<(), String> {
        let mut amo = |op, operand| {
            let request = AmoRequest {
                dest: self.word(WORDS),
                width: AmoWidth::Eight,
                op,
                operand,
                condition: 0,
            };
            endpoint
                .amo(self.pe, request, OldValue::Returned)
                .map_err(|error| self.failed("an atomic operation on", &error))
        };
        amo(AmoOp::Swap, seed)?;
        let before_addition = amo(AmoOp::Add, 1)?;
        let after_addition = amo(AmoOp::Fetch, 0)?;

        if before_addition != seed || after_addition != seed.wrapping_add(1) {
            return Err(format!(
                "an atomic operation on PE {} to try it out fetched a wrong value",
                self.pe
            ));
        }
        Ok(())
    }

    /// Returns the text for an operation of the probe that has failed.
    fn failed(&self, operation: &str, error: &Error) -> String {
        format!("{operation} PE {} to try it out failed: {error}", self.pe)
    }

    /// Returns the address of a word that the peer keeps for the probe of this PE. The words before
    /// `WORDS` are for the put, and the word `WORDS` is for atomic operations.
    fn word(&self, index: usize) -> RemoteAddr {
        RemoteAddr {
            segment: Segment::Internal,
            offset: (self.areas.probe(self.me) + index * 8) as u64,
        }
    }
}

/// Sleeps for `limit`, or until the sender of `end` is dropped. Returns true if the whole time has
/// passed.
fn has_passed(limit: Duration, end: &Receiver<()>) -> bool {
    let mut left = limit;
    while !left.is_zero() {
        let tick = left.min(TICK);
        if end.recv_timeout(tick) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
        left -= tick;
    }
    true
}
