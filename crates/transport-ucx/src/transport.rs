//! The transport of one PE: opens UCX, registers segments, connects to the directory, and leaves
//! the job.
#![allow(unsafe_code)]

use crate::connect::{self, Address, MemoryKey, Peer};
use crate::probe::probe;
use crate::progress::Progress;
use crate::service::Service;
use crate::settings::{DESCRIPTORS, LIMITS, MIN_DESCRIPTORS, OF_WORKER, Tuning};
use crate::shared::SharedState;
use crate::ucp::UcpMemory;
use crate::{abort, diagnosis};
use rushmem_system::host::host_name;
use rushmem_system::lock::lock;
use rushmem_transport::engine::{Issuing, NetworkPe, WireEndpoint};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::progress::service_thread::ServiceThread;
use rushmem_transport::segments::heap_blocks::OwnHeap;
use rushmem_transport::{
    Amos, Caps, Directory, Endpoint, Error, Key, LocalBuf, NetworkActivity, Open, Pe, Segment,
    Transport,
};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The transport of this PE. Fields are dropped in this order.
struct Ucx {
    thread: ServiceThread<Progress>,
    address: Vec<u8>,
    progress: Arc<Progress>,
    memory: Mutex<Vec<UcpMemory>>,
    own_heap: OwnHeap<()>,
}

/// Opens the transport with these limits.
///
/// # Errors
/// [`Error::Unavailable`] if UCX cannot be opened or lacks what the job requires, or the kernel
/// lets this process have too few descriptors.
pub fn open(open: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    let (progress, address) = prepare(open, tuning).map_err(Error::Unavailable)?;
    let progress = Arc::new(progress);
    let thread = ServiceThread::start("rushmem-ucx", &progress)?;
    let (memory, own_heap) = (Mutex::default(), OwnHeap::default());
    Ok(Box::new(Ucx {
        thread,
        address,
        progress,
        memory,
        own_heap,
    }))
}

/// Opens UCX and the service worker. Returns the driver of the service thread, and this PE's
/// address.
fn prepare(open: &Open, tuning: Tuning) -> Result<(Progress, Vec<u8>), String> {
    DESCRIPTORS.require(open.n_pes, MIN_DESCRIPTORS)?;
    abort::guard(open.pe, open.host.host_limit() / 2);
    let context = Arc::new(diagnosis::open(open.n_pes, &*open.host, open.one_machine)?);
    rushmem_system::log::debug!(
        copies = context.copies,
        notices_failures = context.notices_failures,
        "UCX may use {}",
        context
            .resources()
            .iter()
            .map(|(name, device)| format!("{name}/{device}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    if open.amos == Amos::Network {
        probe(&context)
            .map_err(|why| format!("{why}. With SHMEM_AMOS=software the targets' CPUs do them"))?;
    }
    let refused = |error: io::Error| format!("the kernel refused a descriptor: {error}");
    let local = Arc::new(NetworkPe::new(open, host_name(), &LIMITS).map_err(refused)?);
    let service = Service::new(&context, Arc::clone(&local))?;
    let address = Address {
        host: host_name(),
        worker: service.worker.address()?,
    }
    .encode();
    // Only connections over sockets take file descriptors.
    let max_workers = match context.copies {
        true => OF_WORKER.fitting(open.n_pes, tuning.max_workers),
        false => tuning.max_workers,
    };
    let tuning = Tuning {
        max_workers,
        ..tuning
    };
    let shared = SharedState::new(open, tuning, local, context, service).map_err(refused)?;
    Ok((Progress::new(shared), address))
}

/// Returns the reason why the network refused memory, and the remedy.
fn refusal(segment: Segment, nbytes: usize, why: &str) -> Error {
    let limit = getrlimit(Resource::Memlock).current;
    Error::refused_memory("UCX", segment, nbytes, why, limit)
}

impl Transport for Ucx {
    fn caps(&self) -> Caps {
        Caps {
            amos_compose_with_cpu: self.progress.shared.local.amos == Amos::Software,
            // UCX's sockets read /proc/net, and its peers read /proc/PID to find shared memory.
            // Neither can be read after the first thread has ended, and UCX aborts then.
            needs_first_thread: true,
            // Registration for a NIC locks memory: UCX uses on-demand paging only for memory that
            // is registered as non-blocking, which this crate does not do.
            locks_memory: !self.progress.shared.context.copies,
            heap_in_blocks: self.heap_in_blocks(),
            // Nothing signals what a NIC writes.
            wakes_waits: self.progress.shared.context.copies,
        }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        let shared = &self.progress.shared;
        let in_blocks = segment == Segment::Heap && self.heap_in_blocks();
        let covered = if in_blocks {
            self.own_heap.begin(nbytes)
        } else {
            nbytes
        };
        let mut key = MemoryKey {
            base: base.addr() as u64,
            nbytes: nbytes as u64,
            packed: Vec::new(),
            covered: covered as u64,
        };
        if nbytes > 0 {
            // SAFETY: the memory is valid until this transport is dropped, by the contract of
            // `Transport::register`.
            key.packed = unsafe { self.register_part(segment, base, covered) }?;
        }
        // SAFETY: the memory is valid by contract until this transport is dropped, which then
        // serves no peer.
        unsafe {
            shared
                .local
                .segments
                .register(segment, LocalBuf { base, nbytes }, ())
        }?;
        Ok(Key(key.encode()))
    }

    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.own_heap.extend(
            nbytes,
            &self.progress.shared.local.segments,
            prepare,
            |part| {
                let LocalBuf { base, nbytes } = part;
                // SAFETY: a part of the heap, which is valid until this transport is dropped.
                let packed = unsafe { self.register_part(Segment::Heap, base, nbytes) }?;
                let (base, nbytes) = (base.addr() as u64, nbytes as u64);
                Ok((
                    (),
                    Key(MemoryKey {
                        base,
                        nbytes,
                        packed,
                        covered: nbytes,
                    }
                    .encode()),
                ))
            },
        )
    }

    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        let peers = &self.progress.shared.peers;
        for pe in (0..peers.n_pes() as u32).map(Pe) {
            let record = directory.of(pe).ok_or(Error::Unreachable(pe))?;
            connect::address(pe, record)?;
            Peer::new(pe, record)?;
        }
        peers.connect(directory, Peer::new)
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(WireEndpoint::new(
            Arc::clone(&self.progress),
            self.progress.issuer()?,
        )))
    }

    fn progress(&self) -> Result<bool, Error> {
        self.progress.poll()
    }

    fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        let shared = &self.progress.shared;
        shared.sleep(None, awaited, at_most.min(shared.tuning.max_sleep), is_over);
        self.progress.poll()
    }

    fn activity(&self) -> NetworkActivity {
        self.progress.shared.local.state.activity()
    }

    fn end_wait(&self) {
        self.progress.shared.local.state.stop_watching();
    }

    fn stop_polling(&self) {
        self.progress.shared.local.state.stop_polling();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.progress.shared.give_up(pe, why);
    }
}

impl Ucx {
    /// Returns true if the heap is registered in blocks: where registration locks memory, or in
    /// tests.
    fn heap_in_blocks(&self) -> bool {
        let shared = &self.progress.shared;
        !shared.context.copies || shared.tuning.heap_in_blocks
    }

    /// Registers memory of a segment until the transport is dropped. Returns its packed key.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `nbytes` bytes until the transport is dropped.
    unsafe fn register_part(
        &self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Vec<u8>, Error> {
        let refused = |why: String| refusal(segment, nbytes, &why);
        // SAFETY: the memory is valid by contract until this transport is dropped, and with it the
        // registration.
        let memory = unsafe { UcpMemory::register(&self.progress.shared.context, base, nbytes) };
        let memory = memory.map_err(refused)?;
        let packed = memory.key().map_err(refused)?;
        lock(&self.memory).push(memory);
        Ok(packed)
    }
}

impl Drop for Ucx {
    fn drop(&mut self) {
        // From now on, a peer that leaves is no loss.
        self.progress.shared.local.loss.leave();
        self.thread.end();
        self.progress.leave();
    }
}
