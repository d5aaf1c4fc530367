//! The transport of one PE: opening, registering, connecting, leaving.
#![allow(unsafe_code)]

use crate::backoff::SLEEP;
use crate::choice::{self, Wish};
use crate::contact::{Address, Area};
use crate::ep::FiEndpoint;
use crate::fabric::{self, Fabric};
use crate::facts::Facts;
use crate::native::Native;
use crate::origin::OfiEndpoint;
use crate::quirks;
use crate::replies::Replies;
use crate::service::{SENDS, Service};
use crate::settings::{DESCRIPTORS, LEAST_DESCRIPTORS, Tuning};
use crate::shared::{Cell, Contact, Own, Shared, lock};
use crate::thread;
use crate::unconfirmed;
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use rushmem_transport::kit::amos::Amos;
use rushmem_transport::{Caps, Endpoint, Error, Key, Open, Pe, Segment, Transport};
use rustix::process::{Resource, getrlimit};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// This PE's share in a fabric.
struct Ofi {
    shared: Arc<Shared>,
    address: Vec<u8>,
    thread: Option<JoinHandle<()>>,
}

/// The words of the job's secret: one is the tag of messages, one where keys begin.
fn words(secret: &[u8; 32]) -> [u64; 2] {
    let (words, _) = secret.as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

/// A provider that was opened: its domain and the service's ep in it.
struct Opened {
    fabric: Arc<Fabric>,
    ep: FiEndpoint,
    native: Native,
    name: Vec<u8>,
}

fn opened(
    with: &Open,
    tuning: &Tuning,
    amos: Amos,
    list: choice::List,
    facts: Facts,
) -> Result<Opened, String> {
    let [_, random] = words(&with.secret);
    let first_key = match facts.secret_keys() {
        true => random.wrapping_add(u64::from(with.pe.0) << 20),
        false => 1,
    };
    let trust = tuning.trust && !quirks::is_early(&facts.provider, amos);
    let facts = match trust {
        true => facts,
        false => Facts { delivery: false, ordered: false, ..facts },
    };
    let n_pes = with.n_pes as usize;
    let fabric = Arc::new(Fabric::open(list, facts, first_key, n_pes)?);
    let said = |code| format!("an endpoint was refused: {}", fabric.library.strerror(code));
    let depth = tuning.receives + SENDS;
    let ep = FiEndpoint::open(Arc::clone(&fabric), n_pes, depth, 1, true).map_err(said)?;
    let native = match amos {
        Amos::Software => Native::default(),
        Amos::Network => Native::of(ep.endpoint())?,
    };
    let native = if tuning.trust { native } else { native.least() };
    let name = fabric.name(ep.endpoint()).map_err(said)?;
    Ok(Opened { fabric, ep, native, name })
}

/// Open the transport with limits other than the usual ones.
///
/// # Errors
/// [`Error::Unavailable`] when libfabric or all that it offers is refused; the text says why.
pub fn open(with: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    Ok(Box::new(started(with, tuning)?))
}

fn started(with: &Open, tuning: Tuning) -> Result<Ofi, Error> {
    let library = fabric::library().map_err(Error::Unavailable)?;
    let amos = match tuning.carried_out_by {
        Some(amos) => amos,
        None => Amos::asked_for(&*with.host, "SHMEM_OFI_AMOS").map_err(Error::Unavailable)?,
    };
    DESCRIPTORS.require(with.n_pes, LEAST_DESCRIPTORS).map_err(Error::Unavailable)?;
    let wish = Wish::of(&*with.host, amos, with.one_machine);
    let mut refusals = Vec::new();
    let mut found = None;
    for (list, facts) in choice::candidates(library, &wish).map_err(Error::Unavailable)? {
        let (provider, domain) = (facts.provider.clone(), facts.domain.clone());
        match opened(with, &tuning, amos, list, facts) {
            Ok(opened) => {
                found = Some(opened);
                break;
            }
            Err(why) => refusals.push(format!("{provider} ({domain}): {why}")),
        }
    }
    let Some(Opened { fabric, ep, native, name }) = found else {
        return Err(Error::Unavailable(format!(
            "libfabric offers nothing that can be opened: {}",
            refusals.join("; ")
        )));
    };
    let refused = |what: &str, why: &dyn std::fmt::Display| {
        Error::Unavailable(format!("the kernel refused {what}: {why}"))
    };
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
        .map_err(|error| refused("a timer", &error))?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
    let provider = fabric.facts.provider.clone();
    let own_socket = unconfirmed::socket(&name);
    let address = Address { provider, amos, host: host.clone(), name }.encode();
    let max_bytes = tuning.max_bytes.min(fabric.facts.max_message);
    let cq = Arc::clone(ep.cq());
    let mut service = Service::new(ep, tuning.receives);
    service.receive().map_err(|code| {
        let why = library.strerror(code);
        Error::Unavailable(format!("libfabric refused a buffer for messages: {why}"))
    })?;
    let shared = Arc::new(Shared {
        segments: Mutex::default(),
        spare: Mutex::default(),
        cells: RwLock::default(),
        service: Mutex::new(service),
        cq,
        fabric,
        me: with.pe.0,
        own_host: host,
        own_socket,
        tag: words(&with.secret)[0],
        amos,
        native,
        oversubscribed: with.oversubscribed,
        tuning: Tuning { max_bytes, ..tuning },
        host: Arc::clone(&with.host),
        own: Default::default(),
        peers: (0..with.n_pes).map(|_| OnceLock::new()).collect(),
        timer,
        looks: AtomicU64::new(0),
        handed_over: AtomicBool::new(false),
        attended: AtomicBool::new(true),
        closing: AtomicBool::new(false),
        loss: OnceLock::new(),
    });
    let thread = thread::start(Arc::clone(&shared))
        .map_err(|error| refused("the service thread", &error))?;
    Ok(Ofi { shared, address, thread: Some(thread) })
}

/// Why memory could not be registered, and what helps.
fn refusal(facts: &Facts, segment: Segment, nbytes: usize, why: &str) -> Error {
    let limit = getrlimit(Resource::Memlock).current;
    let library = format!("libfabric ({})", facts.provider);
    Error::refused_memory(&library, segment, nbytes, why, limit)
}

impl Transport for Ofi {
    fn caps(&self) -> Caps {
        Caps {
            amos_compose_with_cpu: self.shared.amos == Amos::Software,
            needs_first_thread: quirks::needs_first_thread(&self.shared.fabric.facts.provider),
        }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        if nbytes == 0 {
            return Ok(Area::default().encode());
        }
        let fabric = &self.shared.fabric;
        let access = fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE | fi::FI_READ | fi::FI_WRITE;
        let service = lock(&self.shared.service);
        // SAFETY: valid until this transport is dropped by contract, and with it the registration.
        let mr = unsafe { fabric.register(base, nbytes, access, service.ep().endpoint()) };
        drop(service);
        let said = |code| refusal(&fabric.facts, segment, nbytes, &fabric.library.strerror(code));
        let mr = mr.map_err(said)?;
        // SAFETY: an open registration.
        let fi::fid_mr { mem_desc, key, .. } = unsafe { *mr.raw() };
        if key == fi::KEY_NOTAVAIL {
            let name = &fabric.facts.provider;
            return Err(Error::Unavailable(format!(
                "libfabric ({name}) has keys of no fixed size"
            )));
        }
        let own = Own { range: LocalBuf { base, nbytes }, desc: mem_desc.addr() };
        if self.shared.own[segment as usize].set(own).is_err() {
            return Err(Error::Invalid(format!("segment {segment:?} is registered already")));
        }
        lock(&self.shared.segments).push(mr);
        let base = if fabric.facts.asks(fi::FI_MR_VIRT_ADDR) { base.addr() as u64 } else { 0 };
        Ok(Area { base, nbytes: nbytes as u64, key }.encode())
    }

    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn connect(&mut self, pe: Pe, address: &[u8], keys: &[(Segment, Key)]) -> Result<(), Error> {
        let shared = &self.shared;
        let peer = shared.peers.get(pe.index()).ok_or(Error::Unreachable(pe))?;
        let invalid = |error: rushmem_wire::Error| {
            Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
        };
        let address = Address::decode(address).map_err(invalid)?;
        let own = &shared.fabric.facts.provider;
        if address.provider != *own {
            let (me, other) = (shared.me, &address.provider);
            return Err(Error::Invalid(format!(
                "PE {pe} uses libfabric's provider {other}, PE {me} {own}: set SHMEM_OFI_PROVIDER to one \
                 that both have"
            )));
        }
        if address.amos != shared.amos {
            return Err(Error::Invalid(format!(
                "atomic operations are carried out by {} at PE {pe}, but by {} at PE {}: set \
                 SHMEM_OFI_AMOS to the same on all PEs",
                address.amos, shared.amos, shared.me
            )));
        }
        let mut areas = [Area::default(); Segment::COUNT];
        for (segment, key) in keys {
            areas[*segment as usize] = Area::decode(key).map_err(invalid)?;
        }
        let said = |code| {
            let why = shared.fabric.library.strerror(code);
            Error::Unavailable(format!("libfabric ({own}) refused the address of PE {pe}: {why}"))
        };
        let at = shared.fabric.insert(&address.name).map_err(said)?;
        let socket = unconfirmed::socket(&address.name);
        match peer.set(Contact { at, host: address.host, areas, socket }) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::Invalid(format!("PE {pe} is connected already"))),
        }
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(self.new_endpoint()?))
    }

    fn progress(&self) -> Result<bool, Error> {
        self.shared.poll()
    }

    fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        if self.shared.poll()? {
            return Ok(true);
        }
        // What is in flight must be looked at while this thread sleeps: the service thread does. Where the
        // kernel tells of no news, this thread looks itself; nor does it tell of what a NIC writes.
        let at_most = match (self.shared.cq.can_sleep(), self.shared.amos) {
            (true, Amos::Software) => at_most,
            (true, Amos::Network) => at_most.min(thread::UNTOLD),
            (false, _) => at_most.min(SLEEP),
        };
        let told = self.shared.sleep(at_most) && self.shared.cq.can_sleep();
        self.shared.poll().map(|worked| worked || told)
    }

    fn hand_over(&self) {
        self.shared.handed_over.store(true, Ordering::Relaxed);
        self.shared.ring_after(Duration::from_nanos(1));
    }
}

impl Ofi {
    fn new_endpoint(&self) -> Result<OfiEndpoint, Error> {
        let shared = &self.shared;
        shared.check()?;
        if let Some(cell) = lock(&shared.spare).pop() {
            return Ok(OfiEndpoint::new(Arc::clone(shared), cell));
        }
        let most = shared.tuning.endpoints;
        if shared.cells.read().unwrap_or_else(PoisonError::into_inner).len() >= most {
            return Err(Error::Unavailable(format!("all {most} endpoints are taken")));
        }
        let depth = shared.tuning.depth.min(shared.fabric.facts.depth.max(1));
        let (n_pes, copy_up_to) = (shared.peers.len(), shared.tuning.copy_up_to);
        // Nobody serves meanwhile: shm of libfabric 2.5 cannot open an endpoint while another works.
        let service = lock(&shared.service);
        let ep = FiEndpoint::open(Arc::clone(&shared.fabric), n_pes, depth, copy_up_to, false);
        drop(service);
        let said = |code| {
            let why = shared.fabric.library.strerror(code);
            Error::Unavailable(format!("libfabric refused one more endpoint: {why}"))
        };
        let ep = Mutex::new(Some(ep.map_err(said)?));
        let mut cells = shared.cells.write().unwrap_or_else(PoisonError::into_inner);
        let replies = Replies::new(shared.tuning.amos);
        let number = cells.len() as u32;
        let (asked, busy) = (AtomicU32::new(0), AtomicBool::new(false));
        let cell = Arc::new(Cell { number, ep, replies, asked, busy });
        cells.push(Arc::clone(&cell));
        Ok(OfiEndpoint::new(Arc::clone(shared), cell))
    }
}

impl Drop for Ofi {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.ring_after(Duration::from_nanos(1));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        let shared = &self.shared;
        if quirks::fails_at_close(&shared.fabric.facts.provider) {
            lock(&shared.segments).clear();
            std::mem::forget(Arc::clone(shared));
        }
    }
}

#[cfg(test)]
mod tests;
