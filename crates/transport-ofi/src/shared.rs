//! The state that all wires of a PE and its service thread share: the peers, the registered
//! segments, and the service. Also sleeps on the service's queue, and reports losses.
//!
//! Locking: the lock of the service is only tried, except in `while_paused`, which opens resources
//! that must not be opened while the service runs.
#![allow(unsafe_code)]

use crate::connect::{Address, OfiKey, OfiPeer, PublishedKey};
use crate::ep::{EpFailure, FiEndpoint, RmaAddress};
use crate::fabric::{Cq, Fabric, Fid, RawKey, WaitObject};
use crate::service::{Service, ServiceFailure};
use crate::settings::{self, LIMITS, Tuning};
use crate::silent_peer;
use libfabric_sys as fi;
use rushmem_system::descriptors::is_exhausted;
use rushmem_system::host::host_name;
use rushmem_system::limits::getrlimit;
use rushmem_system::lock::{lock, try_lock};
use rushmem_transport::engine::driver::Served;
use rushmem_transport::engine::{
    NetworkPe, Registered, Remote, ReplyTable, WireNetwork, keys, refuse,
};
use rushmem_transport::peers::Peers;
use rushmem_transport::progress::backoff::FLUSH_DELAY;
use rushmem_transport::progress::events::{AwaitedWord, SleepOn};
use rushmem_transport::segments::heap_blocks::HeapBlock;
use rushmem_transport::{AmoSet, Amos, Error, LocalBuf, Open, Pe, RemoteAddr, Segment};
use rustix::process::Resource;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

/// The fabric of this PE. Registrations and eps are dropped before the fabric.
pub(crate) struct SharedState {
    /// The registrations of the segments. The service's ep outlives them.
    pub(crate) registrations: Mutex<Vec<Fid<fi::fid_mr>>>,
    pub(crate) replies: Arc<ReplyTable>,
    /// The completion queue of the service, to sleep on.
    pub(crate) cq: Arc<Cq>,
    pub(crate) fabric: Arc<Fabric>,
    /// This PE and its segments, each with libfabric's descriptor as a number; a heap in blocks has
    /// that of the first block.
    pub(crate) local: NetworkPe<usize>,
    /// The address of this PE.
    pub(crate) address: Address,
    /// The socket address on which this PE's service listens, if there is one.
    socket: Option<SocketAddr>,
    /// The tag in every message of this job, except the empty ones that connect.
    pub(crate) tag: u64,
    /// The atomic operations that the fabric carries out; none unless `SHMEM_AMOS` is `network`.
    pub(crate) amos: AmoSet,
    pub(crate) tuning: Tuning,
    /// Maximum number of bytes of a put that is copied when it starts.
    copies_up_to: usize,
    /// The same for a put whose call would otherwise wait for the target.
    copies_before_waiting_up_to: usize,
    pub(crate) peers: Peers<OfiPeer, OfiKey>,
    /// The lock under which a PE is inserted into the address vector.
    inserting: Mutex<()>,
    service: Mutex<Service>,
}

impl SharedState {
    /// Returns the state of a PE with this service and this address.
    pub(crate) fn new(
        open: &Open,
        tuning: Tuning,
        amos: AmoSet,
        service: Service,
        address: Address,
    ) -> io::Result<SharedState> {
        let Tuning {
            copy_up_to,
            copy_before_waiting_up_to,
            max_bytes,
            ..
        } = tuning;
        let fabric = Arc::clone(&service.ep.fabric);
        // The cells of such a provider are registered memory, so they stay short.
        let copy_before_waiting_up_to = if fabric.info.asks(fi::FI_MR_LOCAL) {
            copy_up_to
        } else {
            copy_before_waiting_up_to
        };

        Ok(SharedState {
            registrations: Mutex::default(),
            replies: Arc::clone(&service.replies),
            cq: Arc::clone(&service.ep.cq),
            fabric,
            local: NetworkPe::new(open, host_name(), &LIMITS)?,
            socket: silent_peer::socket(&address.name),
            tag: service.tag,
            amos,
            tuning,
            copies_up_to: max_bytes.min(copy_up_to),
            copies_before_waiting_up_to: max_bytes.min(copy_before_waiting_up_to),
            peers: Peers::new(open.n_pes),
            inserting: Mutex::default(),
            service: Mutex::new(service),
            address,
        })
    }

    /// Calls `act` with the service's ep while the service does not run.
    pub(crate) fn while_paused<T>(&self, act: impl FnOnce(&FiEndpoint) -> T) -> T {
        act(&lock(&self.service).ep)
    }

    /// Serves peers on behalf of a thread that waits, if no other thread does. Returns true if
    /// there was work.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        self.local.state.return_to_polling();
        let served = self.try_serve()?;
        self.local.loss.check()?;
        Ok(served == Served::Worked)
    }

    /// Serves peers, if no other thread does.
    pub(crate) fn try_serve(&self) -> Result<Served, Error> {
        let Some(mut service) = try_lock(&self.service) else {
            return Ok(Served::Contended);
        };

        let worked = self.poll_and_reply(&mut service);
        // Before threads are woken below, which may take the service at once.
        drop(service);

        self.local.host.arrived(0);
        match worked {
            Ok(true) => {
                self.local.state.record_event();
                Ok(Served::Worked)
            }
            Ok(false) => {
                self.local.state.wake_for_words();
                Ok(Served::Idle)
            }
            Err(ServiceFailure::Ep(failure)) => Err(self.fail(&failure)),
            Err(ServiceFailure::Message(message)) => Err(refuse(self, &message)),
        }
    }

    /// Polls the service, then tries once to send each reply that waits, so that a peer that takes
    /// no messages does not delay the others. Returns true if there was work.
    fn poll_and_reply(&self, service: &mut Service) -> Result<bool, ServiceFailure> {
        let worked = service.poll(&self.local)?;

        for _ in 0..service.n_waiting() {
            let Some(reply) = service.next_reply() else {
                break;
            };
            let pe = reply.to;
            match self.inserted(pe) {
                Ok(peer) => service.send(reply, peer.fi_addr())?,
                // The request of a faster peer may arrive before this PE is connected.
                Err(Error::Unreachable(_)) => service.defer(reply),
                Err(error) => {
                    let why = error.to_string();
                    return Err(EpFailure {
                        pe: Some(pe.0),
                        why,
                    }
                    .into());
                }
            }
        }
        Ok(worked)
    }

    /// Returns true if replies wait to be sent or are in flight; false while another thread serves.
    pub(crate) fn has_backlog(&self) -> bool {
        try_lock(&self.service).is_some_and(|service| service.has_backlog())
    }

    /// Reports a failure as a loss: of this PE if it has no descriptor left or the failure names no
    /// PE. Returns the first loss, which may be another one.
    pub(crate) fn fail(&self, failure: &EpFailure) -> Error {
        // Whichever PE the failure names, a lack of descriptors of this PE may be its cause.
        if self.fabric.info.sockets && is_exhausted(self.local.state.timer()) {
            return self.local.loss.of_self(&settings::no_descriptors());
        }

        let why = format!("libfabric ({}) says {}", self.address.provider, failure.why);
        match failure.pe {
            Some(pe) => self.lose(Pe(pe), &why),
            None => self.local.loss.of_self(&why),
        }
    }

    /// Returns the address of a PE from its record.
    fn address_of(&self, pe: Pe) -> Result<Address, Error> {
        Address::decode(pe, &self.peers.address(pe)?.of_provider)
    }

    /// Returns a PE that was used, and is in the address vector.
    pub(crate) fn inserted(&self, pe: Pe) -> Result<&OfiPeer, Error> {
        let peer = &keys::peer(self, pe)?.of_provider;
        if !peer.is_inserted() {
            self.insert(pe, peer)?;
        }
        Ok(peer)
    }

    #[cold]
    fn insert(&self, pe: Pe, peer: &OfiPeer) -> Result<(), Error> {
        let _inserting = lock(&self.inserting);
        // Another thread may have inserted it since the caller looked.
        if peer.is_inserted() {
            return Ok(());
        }

        let address = self.address_of(pe)?;
        peer.insert(&self.fabric, pe, &address)?;
        rushmem_system::log::debug!(
            peer = pe.0,
            host = self.peers.host_of(pe).unwrap_or_default(),
            "has its address, {}",
            address.shown()
        );
        Ok(())
    }

    /// Returns true if the fabric keeps the order of puts to a PE, and of messages after them. Not
    /// claimed if the fabric carries out atomic operations, which that order does not cover.
    pub(crate) fn keeps_order(&self) -> bool {
        self.fabric.info.ordered && self.local.amos == Amos::Software
    }

    /// Returns the maximum number of bytes of a put that is copied when it starts, so that its
    /// source may be reused at once. `awaited` says that the call would otherwise wait for the
    /// target.
    pub(crate) fn copy_up_to(&self, awaited: bool) -> usize {
        if awaited {
            self.copies_before_waiting_up_to
        } else {
            self.copies_up_to
        }
    }

    /// Returns the descriptor of the registered segment that contains `memory`, if there is one and
    /// the fabric requires descriptors.
    #[inline]
    pub(crate) fn descriptor_of(&self, memory: LocalBuf) -> Option<usize> {
        if !self.fabric.info.asks(fi::FI_MR_LOCAL) {
            return None;
        }
        self.known_descriptor(memory)
    }

    fn known_descriptor(&self, memory: LocalBuf) -> Option<usize> {
        let (at, descriptor) = self.local.segments.holding(memory)?;
        if at.segment != Segment::Heap || !self.fabric.info.heap_in_blocks() {
            return Some(*descriptor);
        }

        let own_heap = &self.local.own_heap;
        let block = own_heap.blocks.block(at.offset);
        // A range that goes on in the next block is in no one registration.
        if at.offset + memory.nbytes as u64 > block.end {
            return None;
        }
        if block.index == 0 {
            return Some(*descriptor);
        }
        own_heap.blocks.get(block).copied()
    }

    /// Checks that the process of a PE that has been silent for long exists. Returns a failure if
    /// it has ended; no failure if the addresses of the provider do not show that.
    pub(crate) fn confirm(&self, pe: Pe) -> Result<(), EpFailure> {
        let Some(own) = self.socket else {
            return Ok(());
        };
        let Ok(address) = self.address_of(pe) else {
            return Ok(());
        };
        let Some(there) = silent_peer::socket(&address.name) else {
            return Ok(());
        };

        // The same check of this PE's own address shows whether a process listens at the addresses
        // that this provider publishes at all.
        if silent_peer::listens(there) == Some(false) && silent_peer::listens(own) == Some(true) {
            let why = format!("nothing, but nobody listens at {there} any more");
            return Err(EpFailure {
                pe: Some(pe.0),
                why,
            });
        }
        Ok(())
    }

    /// Returns any byte of a peer's memory that can be read; `None` if the peer was not used or has
    /// no segment.
    pub(crate) fn some_byte(&self, pe: Pe) -> Option<RmaAddress> {
        let peer = self.peers.known(pe)?;
        let (segment, key) = peer.any_memory()?;
        Some(rma_address(&Remote {
            pe,
            addr: RemoteAddr { segment, offset: 0 },
            peer: &peer.of_provider,
            key,
        }))
    }

    /// Wakes threads that sleep until words change, after libfabric may have made progress on any
    /// endpoint: it does not report which memory of this PE it has written.
    pub(crate) fn wake_for_words(&self) {
        self.local.host.arrived(0);
        self.local.state.wake_for_words();
    }

    /// Sleeps until something may have arrived, for `at_most` at the longest: for a call that
    /// awaits its own operations if `awaited` is `None`, else as [`Transport::wait`]. Does not
    /// sleep if `is_over` returns true. Returns true if the queue has signaled an event that no
    /// thread may have received; without a wait object, always false.
    ///
    /// [`Transport::wait`]: rushmem_transport::Transport::wait
    pub(crate) fn sleep_until_event(
        &self,
        awaited: Option<&[AwaitedWord]>,
        at_most: Duration,
        is_over: &mut dyn FnMut() -> bool,
    ) -> bool {
        let object = self.fabric.wait_object(&self.cq);
        // Software providers make progress in `wait_object`.
        self.wake_for_words();

        if is_over() {
            return false;
        }

        match object {
            // Another thread holds the service and will take the event, but may have no CPU at
            // present. To poll on would keep the CPU from it.
            WaitObject::Ready if try_lock(&self.service).is_none() => {
                let at_most = at_most.min(FLUSH_DELAY);
                let on = SleepOn::Shared(&[]);
                self.local
                    .state
                    .sleep_until_event(on, awaited.unwrap_or_default(), at_most);
                true
            }
            WaitObject::Ready => true,
            WaitObject::Absent => {
                self.local.state.count_sleep();
                thread::sleep(at_most);
                false
            }
            WaitObject::Descriptor(queue) => {
                let queue = [queue];
                // If another thread has received the completion, no event ends this sleep.
                let on = match awaited {
                    Some(_) => SleepOn::Shared(&queue),
                    None => SleepOn::Own(&queue),
                };
                self.local
                    .state
                    .sleep_until_event(on, awaited.unwrap_or_default(), at_most)
            }
        }
    }
}

/// Returns the start of a range of a PE's memory as libfabric's calls take it.
#[inline(always)]
pub(crate) fn rma_address(range: &Remote<'_, SharedState>) -> RmaAddress {
    RmaAddress {
        pe: range.pe.0,
        fi_addr: range.peer.fi_addr(),
        address: range.key.address(range.addr.offset),
        key: range.key.key,
    }
}

impl WireNetwork for SharedState {
    /// libfabric's descriptor of the memory, as a number.
    type Extra = usize;
    type Peer = OfiPeer;
    type Key = OfiKey;

    #[inline]
    fn local(&self) -> &NetworkPe<usize> {
        &self.local
    }

    #[inline]
    fn peers(&self) -> &Peers<OfiPeer, OfiKey> {
        &self.peers
    }

    unsafe fn register(
        &self,
        segment: Segment,
        memory: LocalBuf,
    ) -> Result<Registered<usize>, Error> {
        let LocalBuf { base, nbytes } = memory;
        let fabric = &self.fabric;
        let refused = |code| {
            let library = format!("libfabric ({})", fabric.info.provider);
            let why = fabric.library.strerror(code);
            let limit = getrlimit(Resource::Memlock).current;
            Error::refused_memory(&library, segment, nbytes, &why, limit)
        };

        let access = fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE | fi::FI_READ | fi::FI_WRITE;
        let registered = self.while_paused(|ep| {
            // SAFETY: by contract, `base` is valid for reads and writes of `nbytes` bytes until
            // this network is dropped, and with it the registration.
            unsafe { fabric.register(base, nbytes, access, &ep.endpoint) }
        });
        let mr = registered.map_err(refused)?;
        // SAFETY: `mr` is open, so `raw` points to its structure.
        let fi::fid_mr { mem_desc, key, .. } = unsafe { *mr.raw() };
        let raw = if fabric.info.asks(fi::FI_MR_RAW) {
            Some(RawKey::of(&mr).map_err(refused)?)
        } else {
            None
        };
        lock(&self.registrations).push(mr);

        // Operations address the memory by its virtual address, or by the offset in it.
        let base = if fabric.info.asks(fi::FI_MR_VIRT_ADDR) {
            base.addr() as u64
        } else {
            0
        };
        Ok(Registered {
            extra: mem_desc.addr(),
            key: PublishedKey { base, key, raw }.encode(),
        })
    }

    fn peer(&self, pe: Pe, address: &[u8]) -> Result<OfiPeer, Error> {
        let there = Address::decode(pe, address)?;
        self.address.check(self.local.me, pe, &there)?;
        Ok(OfiPeer::new())
    }

    fn key(&self, pe: Pe, _: Segment, block: HeapBlock, bytes: &[u8]) -> Result<OfiKey, Error> {
        OfiKey::decode(&self.fabric, pe, block, bytes)
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        let own = &self.address;
        let shown = match self.address_of(pe) {
            Ok(there) => there.shown(),
            Err(_) => "an unknown address".to_owned(),
        };
        let why = format!(
            "{why} (provider {}, from {} to {shown}); see what PE {pe} said last, and whether both hosts let such \
             connections through (firewall, SHMEM_TCP_INTERFACE, SHMEM_OFI_PROVIDER)",
            own.provider,
            own.shown()
        );

        let host = self.peers.host_of(pe);
        self.local.loss.of_peer(pe, host.as_deref(), &why)
    }
}
