//! The transport of one PE: opens a provider, registers segments, connects to the directory, and
//! leaves the job.
#![allow(unsafe_code)]

use crate::choice;
use crate::connect::{self, Address, Peer, PublishedSegment, SegmentKey};
use crate::ep::{BufferSizes, FiEndpoint};
use crate::fabric::{self, Fabric, RawKey};
use crate::info::{FiInfo, InfoList};
use crate::native;
use crate::progress::Progress;
use crate::quirks::Quirk;
use crate::service::{SENDS, Service};
use crate::settings::{DESCRIPTORS, ENDPOINTS, MIN_DESCRIPTORS, OF_ENDPOINT, PORT_RANGE, Tuning};
use crate::shared::SharedState;
use crate::wire::OfiWire;
use libfabric_sys as fi;
use rushmem_connect::Secret;
use rushmem_system::host::host_name;
use rushmem_system::lock::lock;
use rushmem_system::setting::environment;
use rushmem_transport::engine::{Issuing, Origin, WireEndpoint, WireNetwork};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::progress::service_thread::ServiceThread;
use rushmem_transport::{
    AmoOp, AmoSet, Amos, Caps, Directory, Endpoint, Error, Key, LocalBuf, NetworkActivity, Open,
    Pe, Segment, Transport,
};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The transport of this PE.
struct Ofi {
    progress: Arc<Progress>,
    thread: ServiceThread<Progress>,
}

/// Returns two words that are derived from the job's secret: the tag of messages, and the random number
/// from which the keys of registrations start. They are sent, and do not reveal the secret.
fn words(secret: &[u8; 32]) -> [u64; 2] {
    let derived = Secret::from(*secret).derive("libfabric", &[]);
    let (words, _) = derived.bytes().as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

/// Returns libfabric's reason for refusing an endpoint, with the range of ports if that may be too
/// short.
fn refused_endpoint(library: &fi::Libfabric, code: i32) -> String {
    let why = library.strerror(code);
    let has_no_port = [fi::FI_EADDRINUSE, fi::FI_EADDRNOTAVAIL].contains(&code.abs());
    match environment(PORT_RANGE.0).zip(environment(PORT_RANGE.1)) {
        Some((first, last)) if has_no_port => format!(
            "{why}; all ports of SHMEM_TCP_PORTS ({first}-{last}) may be taken: give a wider range, \
             or end what listens there (`ss -tlnp`)"
        ),
        _ => why,
    }
}

/// An opened provider: its domain and the service's ep.
struct OpenedProvider {
    ep: FiEndpoint,
    amos: AmoSet,
    address: Address,
}

/// Opens an entry to see whether it works, and closes it unless closing may crash.
pub(crate) fn try_open(args: &Open, list: InfoList, info: FiInfo) -> Result<(), String> {
    let fails_at_close = info.has(Quirk::FailsAtClose);
    let opened = open_entry(args, &Tuning::default(), list, info)?;
    if fails_at_close {
        std::mem::forget(opened);
    }
    Ok(())
}

/// Opens the domain of an entry and the service's ep, and adjusts the entry to `tuning`. Fails if a
/// job cannot use it.
fn open_entry(
    args: &Open,
    tuning: &Tuning,
    list: InfoList,
    info: FiInfo,
) -> Result<OpenedProvider, String> {
    let [_, random] = words(&args.secret);
    let first_key = match info.has_random_keys() {
        true => random.wrapping_add(u64::from(args.pe.0) << 20),
        false => 1,
    };
    let read_back = info.has(Quirk::ReadsFollow);
    let info = match tuning.trust && !read_back {
        true => info,
        // Uses as little of what the provider promises as possible: completions for the target's
        // memory only where no read can show that writes have arrived.
        false => {
            let reads_follow = info.reads_follow || read_back;
            let delivery = info.delivery && !reads_follow;
            FiInfo {
                delivery,
                reads_follow,
                ordered: false,
                ..info
            }
        }
    };
    if !info.delivery && !info.reads_follow {
        let why = "it does not report when a write has reached the target's memory, and orders no reads after writes";
        return Err(why.to_owned());
    }
    let n_pes = args.n_pes as usize;
    let fabric = Arc::new(Fabric::open(list, info, first_key, n_pes)?);
    let refused = |code| {
        format!(
            "an endpoint was refused: {}",
            refused_endpoint(fabric.library, code)
        )
    };
    let Tuning {
        receives,
        longest_message,
        connect_limit,
        ..
    } = tuning.limited_to(&fabric.info);
    let (depth, cells) = (
        receives + SENDS,
        BufferSizes {
            cell: longest_message,
            copy_up_to: 1,
            longest_message,
        },
    );
    let ep = FiEndpoint::open(
        Arc::clone(&fabric),
        n_pes,
        depth,
        cells,
        connect_limit,
        true,
    );
    let ep = ep.map_err(refused)?;
    let supported = match args.amos {
        Amos::Software => AmoSet::default(),
        Amos::Network => native::supported(&ep.endpoint)?,
    };
    let amos = AmoSet::of(|op, width| {
        supported.has(op, width) && (tuning.trust || op == AmoOp::CompareSwap)
    });
    let name = fabric.name(&ep.endpoint).map_err(refused)?;
    let provider = fabric.info.provider.clone();
    let address = Address {
        provider,
        host: host_name(),
        name,
    };
    Ok(OpenedProvider { ep, amos, address })
}

/// Opens the transport with these limits.
///
/// # Errors
/// [`Error::Unavailable`] if libfabric cannot be used, or none of its providers; the text says why.
pub fn open(args: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    Ok(Box::new(open_ofi(args, tuning)?))
}

/// Returns the providers of libfabric that fit a job, best first.
///
/// # Errors
/// [`Error::Unavailable`] if there are none.
pub(crate) fn parts(args: &Open) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = Vec::new();
    for (_, info) in choice::candidates(args).map_err(Error::Unavailable)? {
        if !names.contains(&info.provider) {
            names.push(info.provider);
        }
    }
    Ok(names)
}

fn open_ofi(args: &Open, tuning: Tuning) -> Result<Ofi, Error> {
    DESCRIPTORS
        .require(args.n_pes, MIN_DESCRIPTORS)
        .map_err(Error::Unavailable)?;
    let mut refusals = Vec::new();
    let mut found = None;
    for (list, info) in choice::candidates(args).map_err(Error::Unavailable)? {
        let (provider, domain) = (info.provider.clone(), info.domain.clone());
        match open_entry(args, &tuning, list, info) {
            Ok(opened) => {
                found = Some(opened);
                break;
            }
            Err(why) => {
                rushmem_system::log::debug!("provider {provider} ({domain}) is refused: {why}");
                refusals.push(format!("provider {provider}, domain {domain}: {why}"));
            }
        }
    }
    let Some(OpenedProvider { ep, amos, address }) = found else {
        return Err(Error::Unavailable(format!(
            "libfabric offers nothing that can be opened: {}; {}",
            refusals.join("; "),
            fabric::LOG
        )));
    };
    let info = &ep.fabric.info;
    rushmem_system::log::debug!(
        mr_mode = format_args!("{:#x}", info.mr_mode),
        ordered = info.ordered,
        delivery = info.delivery,
        reads_follow = info.reads_follow,
        locks_memory = info.locks_memory(),
        "provider {} ({}) is used, at {}",
        info.provider,
        info.domain,
        address.shown()
    );
    let refused = |e: io::Error| Error::Unavailable(format!("the kernel refused a timer: {e}"));
    let tuning = tuning.limited_to(&ep.fabric.info);
    // Only connections over sockets take file descriptors.
    let endpoints = match ep.fabric.info.sockets {
        true => OF_ENDPOINT.fitting(args.n_pes, tuning.endpoints),
        false => tuning.endpoints,
    };
    let tuning = Tuning {
        endpoints,
        ..tuning
    };
    let [tag, _] = words(&args.secret);
    let library = ep.fabric.library;
    let mut service = Service::new(args.pe, ep, &tuning, tag);
    service.post_receives().map_err(|code| {
        let why = library.strerror(code);
        Error::Unavailable(format!("libfabric refused a buffer for messages: {why}"))
    })?;
    let shared = SharedState::new(args, tuning, amos, service, address).map_err(refused)?;
    let progress = Arc::new(Progress::new(shared));
    let thread = ServiceThread::start("rushmem-ofi", &progress)?;
    Ok(Ofi { progress, thread })
}

/// Returns the reason why memory could not be registered, and the remedy.
fn refusal(info: &FiInfo, segment: Segment, nbytes: usize, why: &str) -> Error {
    let limit = getrlimit(Resource::Memlock).current;
    let library = format!("libfabric ({})", info.provider);
    Error::refused_memory(&library, segment, nbytes, why, limit)
}

impl Transport for Ofi {
    fn caps(&self) -> Caps {
        let info = &self.shared().fabric.info;
        Caps {
            amos_compose_with_cpu: self.shared().local.amos == Amos::Software,
            needs_first_thread: info.has(Quirk::NeedsFirstThread),
            locks_memory: info.locks_memory(),
            heap_in_blocks: info.heap_in_blocks(),
            // Nothing signals what a NIC writes.
            wakes_waits: info.copies() && self.shared().cq.can_sleep(),
        }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        if nbytes == 0 {
            return Ok(PublishedSegment::default().encode());
        }
        let shared = self.shared();
        let in_blocks = segment == Segment::Heap && shared.fabric.info.heap_in_blocks();
        let first = if in_blocks {
            shared.own_heap.begin(nbytes)
        } else {
            nbytes
        };
        // SAFETY: the memory is valid until this transport is dropped, by the contract of
        // `Transport::register`.
        let (descriptor, published) = unsafe { self.register_part(segment, base, first) }?;
        // SAFETY: the memory is valid by contract until this transport is dropped, which then
        // serves no peer.
        unsafe {
            shared
                .local
                .segments
                .register(segment, LocalBuf { base, nbytes }, descriptor)
        }?;
        Ok(PublishedSegment {
            whole: nbytes as u64,
            ..published
        }
        .encode())
    }

    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let shared = self.shared();
        shared
            .own_heap
            .extend(nbytes, &shared.local.segments, prepare, |memory| {
                // SAFETY: a part of the heap, which is valid until this transport is dropped.
                let part = unsafe { self.register_part(Segment::Heap, memory.base, memory.nbytes) };
                part.map(|(descriptor, published)| (descriptor, published.encode()))
            })
    }

    fn address(&self) -> Vec<u8> {
        self.shared().address.encode()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        let shared = self.shared();
        for pe in (0..shared.peers.n_pes() as u32).map(Pe) {
            connect::check((shared.local.me, &shared.address), pe, directory.of(pe))?;
        }
        let fabric = Arc::clone(&shared.fabric);
        shared
            .peers
            .connect(directory, move |pe, record| Peer::new(&fabric, pe, record))
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(self.new_endpoint()?))
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
        self.progress.wait(at_most, awaited, is_over)
    }

    fn activity(&self) -> NetworkActivity {
        self.shared().local.state.activity()
    }

    fn end_wait(&self) {
        self.shared().local.state.stop_watching();
    }

    fn stop_polling(&self) {
        self.progress.stop_polling();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.shared().lose(pe, why);
    }
}

impl Ofi {
    fn shared(&self) -> &SharedState {
        &self.progress.shared
    }

    /// Registers memory of a segment. Returns libfabric's descriptor of it, as a number, and what
    /// peers need to access it.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `nbytes` bytes until the transport is dropped.
    unsafe fn register_part(
        &self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<(usize, PublishedSegment), Error> {
        let shared = self.shared();
        let fabric = &shared.fabric;
        let access = fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE | fi::FI_READ | fi::FI_WRITE;
        let mr = self.shared().while_paused(|ep| {
            // SAFETY: the memory is valid by contract until this transport is dropped, and with it
            // the registration.
            unsafe { fabric.register(base, nbytes, access, &ep.endpoint) }
        });
        let refused = |code| {
            refusal(
                &fabric.info,
                segment,
                nbytes,
                &fabric.library.strerror(code),
            )
        };
        let mr = mr.map_err(refused)?;
        // SAFETY: an open registration.
        let fi::fid_mr { mem_desc, key, .. } = unsafe { *mr.raw() };
        let raw = fabric.info.asks(fi::FI_MR_RAW).then(|| RawKey::of(&mr));
        let raw = raw.transpose().map_err(refused)?;
        lock(&shared.registrations).push(mr);
        let base = if fabric.info.asks(fi::FI_MR_VIRT_ADDR) {
            base.addr() as u64
        } else {
            0
        };
        let segment = SegmentKey {
            base,
            nbytes: nbytes as u64,
            key,
        };
        Ok((
            mem_desc.addr(),
            PublishedSegment {
                segment,
                raw,
                whole: nbytes as u64,
            },
        ))
    }

    fn new_endpoint(&self) -> Result<WireEndpoint<Progress>, Error> {
        let shared = self.shared();
        shared.local.loss.check()?;
        let make = || {
            let ep = self.new_ep()?;
            // `issuer` holds the lock of all issuers, so the replies added here get the same number
            // as the origin.
            let wire = OfiWire::new(shared, ep, shared.replies.add());
            Ok(Origin::new(wire, Arc::clone(&self.progress.shared)))
        };
        let issuer = self
            .progress
            .issuers
            .issuer((shared.tuning.endpoints, ENDPOINTS), make)?;
        Ok(WireEndpoint::new(Arc::clone(&self.progress), issuer))
    }

    fn new_ep(&self) -> Result<FiEndpoint, Error> {
        let shared = self.shared();
        let depth = shared.tuning.depth.min(shared.fabric.info.depth.max(1));
        let n_pes = shared.peers.n_pes();
        let Tuning {
            longest_message,
            longest_batch_message,
            ..
        } = shared.tuning;
        let copy_up_to = shared.copy_up_to(true);
        let cell = copy_up_to.max(longest_batch_message);
        let cells = BufferSizes {
            cell,
            copy_up_to,
            longest_message,
        };
        // shm of libfabric 2.5 cannot open an endpoint while another one is polled.
        let ep = self.shared().while_paused(|_| {
            let fabric = Arc::clone(&shared.fabric);
            FiEndpoint::open(
                fabric,
                n_pes,
                depth,
                cells,
                shared.tuning.connect_limit,
                false,
            )
        });
        ep.map_err(|code| {
            let why = refused_endpoint(shared.fabric.library, code);
            Error::Unavailable(format!("libfabric refused one more endpoint: {why}"))
        })
    }
}

impl Drop for Ofi {
    fn drop(&mut self) {
        // From now on, a peer that leaves is no loss.
        self.shared().local.loss.leave();
        self.thread.end();
        if self.shared().fabric.info.has(Quirk::FailsAtClose) {
            lock(&self.shared().registrations).clear();
            std::mem::forget(Arc::clone(&self.progress));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
