//! The state that all wires of a PE and its service thread share: the peers, and the service
//! worker.
//!
//! Locking: the lock of the service is only tried.
#![allow(unsafe_code)]

use crate::connect::{self, UcxKey};
use crate::diagnosis::ITSELF;
use crate::service::Service;
use crate::settings::{self, Tuning};
use crate::ucp::{UcpContext, UcpMemory, UcpResource, Worker, status_string};
use rushmem_system::descriptors::is_exhausted;
use rushmem_system::limits::getrlimit;
use rushmem_system::lock::{lock, try_lock};
use rushmem_transport::engine::driver::Served;
use rushmem_transport::engine::{NetworkPe, Registered, WireNetwork, refuse};
use rushmem_transport::peers::Peers;
use rushmem_transport::progress::backoff::FLUSH_DELAY;
use rushmem_transport::progress::events::{AwaitedWord, SleepOn};
use rushmem_transport::segments::heap_blocks::HeapBlock;
use rushmem_transport::{Error, LocalBuf, Open, Pe, Segment};
use rustix::process::Resource;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ucx_sys::ucs_status_t;

/// The shared state of this PE's network. Fields are dropped in this order: the service worker
/// before the context.
pub(crate) struct SharedState {
    pub(crate) tuning: Tuning,
    pub(crate) local: Arc<NetworkPe>,
    pub(crate) peers: Peers<(), UcxKey>,
    service: Mutex<Service>,
    /// The descriptor that signals events of the service worker.
    service_efd: OwnedFd,
    /// The registered memory of this PE.
    memory: Mutex<Vec<UcpMemory>>,
    pub(crate) context: Arc<UcpContext>,
}

impl SharedState {
    pub(crate) fn new(
        open: &Open,
        tuning: Tuning,
        local: Arc<NetworkPe>,
        context: Arc<UcpContext>,
        service: Service,
    ) -> io::Result<SharedState> {
        Ok(SharedState {
            tuning,
            local,
            peers: Peers::new(open.n_pes),
            service_efd: service.worker.efd().try_clone_to_owned()?,
            service: Mutex::new(service),
            memory: Mutex::default(),
            context,
        })
    }

    /// Reports the loss of a PE, for which UCX has given the reason: of this PE if it has no
    /// descriptor left. Returns the first loss, which may be another one.
    pub(crate) fn lose_peer(&self, pe: Pe, why: &str) -> Error {
        if self.context.copies && is_exhausted(self.service_efd()) {
            return self.local.loss.of_self(&settings::no_descriptors());
        }
        let host = self.peers.host_of(pe);
        self.local.loss.of_peer(pe, host.as_deref(), why)
    }

    /// Reports the loss of a PE, for which UCX has returned this status, as
    /// [`lose_peer`](Self::lose_peer) does.
    pub(crate) fn lose_by(&self, pe: Pe, status: ucs_status_t) -> Error {
        self.lose_peer(pe, &status_string(self.context.ucp, status))
    }

    /// Returns a clause for the message that a PE is not reached. It lists the devices that UCX
    /// uses, not its addresses, which users cannot read, and the variables that select others.
    pub(crate) fn ways(&self) -> String {
        let resources = self.context.resources();
        let used: Vec<String> = resources
            .iter()
            .filter(|one| one.transport != ITSELF)
            .map(|UcpResource { transport, device }| format!("{transport} on {device}"))
            .collect();

        let interfaces = if self.context.uses_sockets() {
            "interfaces, devices or transports (SHMEM_TCP_INTERFACE, "
        } else {
            "devices or transports ("
        };
        format!(
            "(UCX with {}); see whether both hosts let such connections through, or name other \
             {interfaces}UCX_NET_DEVICES, SHMEM_UCX_TLS)",
            used.join(", ")
        )
    }

    /// Serves peers on behalf of a thread that waits, if no other thread does. Returns true if
    /// there was work.
    pub(crate) fn serve_for_waiter(&self) -> bool {
        self.local.state.count_poll();
        self.try_serve() == Served::Worked
    }

    /// Serves peers, if no other thread does.
    pub(crate) fn try_serve(&self) -> Served {
        let Some(service) = try_lock(&self.service) else {
            return Served::Contended;
        };

        let worked = service.poll();
        let refused = service.target.take_refused();
        drop(service);

        if let Some(message) = refused {
            refuse(self, &message);
        }
        if !worked {
            return Served::Idle;
        }
        self.local.host.arrived(0);
        self.local.state.record_event();
        Served::Worked
    }

    /// Prepares the service worker to signal its next event by its descriptor. Returns false if
    /// there is an event already, and `None` while another thread serves.
    pub(crate) fn arm(&self) -> Option<bool> {
        try_lock(&self.service).map(|service| service.worker.arm())
    }

    /// Returns the descriptor that is readable when a request of a peer has arrived, after
    /// [`arm`](SharedState::arm).
    pub(crate) fn service_efd(&self) -> BorrowedFd<'_> {
        self.service_efd.as_fd()
    }

    /// Sleeps until the service worker or `worker` has an event, or an awaited word changes, but no
    /// longer than `at_most`. Does not sleep if there is an event already, or if `is_over` returns
    /// true after the workers were armed.
    pub(crate) fn sleep_until_event(
        &self,
        worker: Option<&Worker>,
        awaited: &[AwaitedWord],
        at_most: Duration,
        is_over: &mut dyn FnMut() -> bool,
    ) {
        let armed = self.arm();
        if armed == Some(false) || worker.is_some_and(|worker| !worker.arm()) || is_over() {
            return;
        }

        // If another thread holds the service, it takes the events, but may have no CPU at present.
        // To wake for its events would keep the CPU from it.
        let at_most = if armed.is_some() {
            at_most
        } else {
            at_most.min(FLUSH_DELAY)
        };
        let service = armed.map(|_| self.service_efd());

        let fds = service.into_iter().chain(worker.map(Worker::efd));
        let fds: Vec<BorrowedFd<'_>> = fds.collect();
        let on = if worker.is_some() {
            SleepOn::Own(&fds)
        } else {
            SleepOn::Shared(&fds)
        };
        self.local.state.sleep_until_event(on, awaited, at_most);
    }
}

impl WireNetwork for SharedState {
    type Extra = ();
    type Peer = ();
    type Key = UcxKey;

    #[inline]
    fn local(&self) -> &NetworkPe {
        &self.local
    }

    #[inline]
    fn peers(&self) -> &Peers<(), UcxKey> {
        &self.peers
    }

    unsafe fn register(&self, segment: Segment, part: LocalBuf) -> Result<Registered<()>, Error> {
        let LocalBuf { base, nbytes } = part;
        let refused = |why: String| {
            let limit = getrlimit(Resource::Memlock).current;
            Error::refused_memory("UCX", segment, nbytes, &why, limit)
        };

        // SAFETY: by contract, `base` is valid for reads and writes of `nbytes` bytes until this
        // network is dropped, and with it the registration.
        let memory = unsafe { UcpMemory::register(&self.context, base, nbytes) };
        let memory = memory.map_err(refused)?;
        let packed = memory.key().map_err(refused)?;

        lock(&self.memory).push(memory);
        Ok(Registered {
            extra: (),
            key: connect::encode_key(base, &packed),
        })
    }

    fn peer(&self, pe: Pe, address: &[u8]) -> Result<(), Error> {
        connect::decode_address(pe, address).map(|_| ())
    }

    fn key(
        &self,
        pe: Pe,
        segment: Segment,
        block: HeapBlock,
        bytes: &[u8],
    ) -> Result<UcxKey, Error> {
        UcxKey::decode(pe, segment, block, bytes)
    }

    /// Names UCX's devices, too: nothing else is known of the reason.
    fn lose(&self, pe: Pe, why: &str) -> Error {
        self.lose_peer(pe, &format!("{why} {}", self.ways()))
    }
}
