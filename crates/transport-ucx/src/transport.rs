//! The transport of one PE: opening, registering, connecting, leaving.
#![allow(unsafe_code)]

use crate::area::Areas;
use crate::endpoint::UcxEndpoint;
use crate::found::changes;
use crate::origin::Origin;
use crate::peers::{Contact, Peers};
use crate::probe::probe;
use crate::proto::{Address, MemoryKey};
use crate::settings::{DESCRIPTORS, LEAST_DESCRIPTORS, Tuning};
use crate::shared::{Issuer, Shared, Start, lock};
use crate::target::Target;
use crate::thread;
use crate::ucp::{Context, Memory};
use rushmem_transport::kit::amos::Amos;
use rushmem_transport::{Caps, Endpoint, Error, Key, Open, Pe, Segment, Transport};
use rustix::process::{Resource, getrlimit};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// This PE's share in UCX. Fields are dropped in this order.
struct Ucx {
    thread: Option<JoinHandle<()>>,
    address: Vec<u8>,
    shared: Arc<Shared>,
    memory: Vec<Memory>,
    /// Keys, each once: on many networks all PEs have the same.
    keys: HashSet<Arc<[u8]>>,
}

/// Open the transport with limits other than the usual ones.
///
/// # Errors
/// [`Error::Unavailable`] when UCX cannot be had, or what it is asked for.
pub fn open(open: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    start(open, tuning)
        .map(|ucx| -> Box<dyn Transport> { Box::new(ucx) })
        .map_err(Error::Unavailable)
}

fn start(open: &Open, tuning: Tuning) -> Result<Ucx, String> {
    let amos = amos(open, &tuning)?;
    DESCRIPTORS.require(open.n_pes, LEAST_DESCRIPTORS)?;
    let context = Arc::new(Context::open(open.n_pes, &changes(&*open.host, open.one_machine))?);
    if amos == Amos::Network {
        probe(&context).map_err(|why| {
            format!("{why}. With SHMEM_UCX_AMOS=software the targets' CPUs do them")
        })?;
    }
    let areas = Arc::new(Areas::default());
    let target = Target::new(&context, Arc::clone(&areas))?;
    let own_host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let own_host = own_host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
    let worker = target.worker().address()?;
    let address = Address { host: own_host.clone(), amos, worker }.encode();
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
        .map_err(|e| format!("the kernel refused a timer: {e}"))?;
    let open = open.clone();
    let start = Start { open, tuning, amos, own_host, areas, context, target, timer };
    let shared = Shared::new(start).map_err(|e| format!("the kernel refused a descriptor: {e}"))?;
    let shared = Arc::new(shared);
    let thread = thread::start(Arc::clone(&shared))
        .map_err(|e| format!("the service thread cannot be started: {e}"))?;
    Ok(Ucx { thread: Some(thread), address, shared, memory: Vec::new(), keys: HashSet::new() })
}

/// Who carries out atomic operations.
fn amos(open: &Open, tuning: &Tuning) -> Result<Amos, String> {
    if let Some(amos) = tuning.amos {
        return Ok(amos);
    }
    Amos::asked_for(&*open.host, "SHMEM_UCX_AMOS")
}

/// Why the network refused memory, and the cure.
fn refusal(segment: Segment, nbytes: usize, why: &str) -> Error {
    let limit = getrlimit(Resource::Memlock).current;
    Error::refused_memory("UCX", segment, nbytes, why, limit)
}

impl Ucx {
    /// A worker for a new endpoint, which is its user from now on.
    fn issuer(&self) -> Result<Arc<Issuer>, Error> {
        let shared = &self.shared;
        let mut issuers = lock(&shared.issuers);
        let users = |issuer: &Arc<Issuer>| issuer.users.load(Ordering::Acquire);
        let least = issuers.iter().min_by_key(|issuer| users(issuer));
        let issuer = match least {
            Some(least) if users(least) == 0 || issuers.len() >= shared.tuning.max_workers => {
                Arc::clone(least)
            }
            _ => {
                let origin = Origin::new(&shared.context, shared.contacts.len());
                let origin = origin.map_err(Error::Unavailable)?;
                let issuer = Issuer::new(origin)
                    .map_err(|e| Error::Unavailable(format!("the kernel refused: {e}")))?;
                issuers.push(Arc::new(issuer));
                Arc::clone(&issuers[issuers.len() - 1])
            }
        };
        issuer.users.fetch_add(1, Ordering::Relaxed);
        Ok(issuer)
    }
}

impl Transport for Ucx {
    fn caps(&self) -> Caps {
        Caps {
            amos_compose_with_cpu: self.shared.amos == Amos::Software,
            // Its sockets read /proc/net, its shared memory is found in /proc/PID, and it aborts without.
            needs_first_thread: true,
        }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        let mut packed = Vec::new();
        if nbytes > 0 {
            // SAFETY: valid until this transport is dropped by contract, and the memory with it.
            let memory = unsafe { Memory::register(&self.shared.context, base, nbytes) }
                .map_err(|why| refusal(segment, nbytes, &why))?;
            packed = memory.key().map_err(|why| refusal(segment, nbytes, &why))?;
            self.memory.push(memory);
        }
        // SAFETY: valid until this transport is dropped by contract.
        if !unsafe { self.shared.areas.open(segment, base, nbytes) } {
            return Err(Error::Invalid(format!("segment {segment:?} is registered already")));
        }
        let (base, nbytes) = (base.addr() as u64, nbytes as u64);
        Ok(Key(MemoryKey { base, nbytes, packed: packed.into() }.encode()))
    }

    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn connect(&mut self, pe: Pe, address: &[u8], keys: &[(Segment, Key)]) -> Result<(), Error> {
        let contact = self.shared.contacts.get(pe.index()).ok_or(Error::Unreachable(pe))?;
        let invalid = |error: rushmem_wire::Error| {
            Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
        };
        let Address { host, amos, worker } = Address::decode(address).map_err(invalid)?;
        if amos != self.shared.amos {
            return Err(Error::Invalid(format!(
                "atomic operations are carried out by {amos} at PE {pe}, but by {} at PE {}: \
                 set SHMEM_UCX_AMOS to the same on all PEs",
                self.shared.amos, self.shared.me
            )));
        }
        let mut known = [const { None }; Segment::COUNT];
        for (segment, key) in keys {
            let mut key = MemoryKey::decode(&key.0).map_err(invalid)?;
            match self.keys.get(&key.packed) {
                Some(same) => key.packed = Arc::clone(same),
                None => drop(self.keys.insert(Arc::clone(&key.packed))),
            }
            known[*segment as usize] = Some(key);
        }
        match contact.set(Contact { host, worker, keys: known }) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::Invalid(format!("PE {pe} is connected already"))),
        }
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(UcxEndpoint::new(Arc::clone(&self.shared), self.issuer()?)))
    }

    fn progress(&self) -> Result<bool, Error> {
        self.shared.poll()
    }

    fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        if self.shared.poll()? {
            return Ok(true);
        }
        self.shared.sleep(None, at_most);
        self.shared.poll()
    }

    fn hand_over(&self) {
        self.shared.hand_over();
    }
}

impl Drop for Ucx {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.ring_after(Duration::from_nanos(1));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        for issuer in &*lock(&self.shared.issuers) {
            lock(&issuer.origin).leave();
        }
    }
}
