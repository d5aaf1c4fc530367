//! The state that all endpoints of a PE and its service thread share: the peers, the first loss,
//! and the service for peers.
//!
//! Locking: the service is only ever tried, except to open resources that must not be opened while
//! it runs. This module does not know what endpoints issue.

use crate::connect::{self, Address, Peer, SegmentKey};
use crate::ep::{EpFailure, FiEndpoint, Remote};
use crate::fabric::{Cq, Fabric, WaitObject};
use crate::fid::Fid;
use crate::native::Native;
use crate::probe;
use crate::service::{Service, ServiceFailure};
use crate::settings::{self, LIMITS, Tuning};
use libfabric_sys as fi;
use rushmem_transport::engine::{NetworkPe, ReplyTable, WireNetwork};
use rushmem_transport::machine::descriptors::is_exhausted;
use rushmem_transport::peers::Peers;
use rushmem_transport::progress::service_thread::Served;
use rushmem_transport::progress::state::sleep_on;
use rushmem_transport::segments::heap_blocks::{Covered, OwnHeap};
use rushmem_transport::thread::{lock, try_lock};
use rushmem_transport::{Amos, Error, LocalBuf, Open, Pe, RemoteAddr, Segment};
use rustix::event::{PollFd, PollFlags};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

/// One PE's share in the fabric. Registrations and eps are dropped before the fabric.
pub(crate) struct SharedState {
    /// The registrations of the segments. The service's ep outlives them.
    pub(crate) registrations: Mutex<Vec<Fid<fi::fid_mr>>>,
    pub(crate) replies: Arc<ReplyTable>,
    /// The service's queue, to sleep on.
    pub(crate) cq: Arc<Cq>,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) local: NetworkPe<usize>,
    /// This PE's address; its host's name goes into messages.
    pub(crate) address: Address,
    /// The socket address at which the own service listens, if it listens at one.
    socket: Option<SocketAddr>,
    /// In every message of this job.
    pub(crate) tag: u64,
    /// Which atomic operations of its own the fabric has, where it carries them out.
    pub(crate) native: Native,
    pub(crate) tuning: Tuning,
    /// Longest put that is copied, and the longest of one whose caller would otherwise wait for the
    /// target's answer.
    copies_up_to: usize,
    copies_before_waiting_up_to: usize,
    /// With the descriptors of its further blocks, as numbers.
    pub(crate) own_heap: OwnHeap<usize>,
    pub(crate) peers: Peers<Peer>,
    /// The thread that polled so far sleeps elsewhere until a thread polls again: perhaps on a word
    /// whose change wakes no thread.
    pub(crate) stopped_polling: AtomicBool,
    service: Mutex<Service>,
}

impl SharedState {
    /// Returns the state of a PE with this service and this address. Segments have their
    /// descriptors, as numbers; a heap in blocks has that of the first.
    pub(crate) fn new(
        open: &Open,
        tuning: Tuning,
        native: Native,
        service: Service,
        address: Address,
    ) -> io::Result<SharedState> {
        let Tuning { copy_up_to, copy_before_waiting_up_to, max_bytes, .. } = tuning;
        let fabric = Arc::clone(&service.ep.fabric);
        let pins_copies = fabric.info.asks(fi::FI_MR_LOCAL);
        let before_waiting = if pins_copies { copy_up_to } else { copy_before_waiting_up_to };
        Ok(SharedState {
            registrations: Mutex::default(),
            replies: Arc::clone(&service.replies),
            cq: Arc::clone(&service.ep.cq),
            fabric,
            local: NetworkPe::new(open, address.host.clone(), &LIMITS)?,
            socket: probe::socket(&address.name),
            tag: service.tag,
            native,
            tuning,
            copies_up_to: max_bytes.min(copy_up_to),
            copies_before_waiting_up_to: max_bytes.min(before_waiting),
            own_heap: OwnHeap::default(),
            peers: Peers::new(open.n_pes),
            stopped_polling: AtomicBool::new(false),
            service: Mutex::new(service),
            address,
        })
    }

    /// Does something with the service's ep while the service does not run.
    pub(crate) fn while_paused<T>(&self, act: impl FnOnce(&FiEndpoint) -> T) -> T {
        act(&lock(&self.service).ep)
    }

    /// Serves peers, if no other thread does; returns whether there was work.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        if self.stopped_polling.load(Ordering::Relaxed) {
            self.stopped_polling.store(false, Ordering::Relaxed);
        }
        let served = self.try_serve()?;
        self.local.loss.check().map(|()| served == Served::Worked)
    }

    /// Serves peers, if no other thread does.
    pub(crate) fn try_serve(&self) -> Result<Served, Error> {
        let Some(mut service) = try_lock(&self.service) else { return Ok(Served::Contended) };
        let worked = service.poll(&self.local, &self.peers);
        drop(service);
        // The provider itself may have written to this PE's memory, which nothing signals.
        self.local.host.arrived();
        match worked {
            Ok(true) => Ok(Served::Worked),
            Ok(false) => Ok(Served::Idle),
            Err(ServiceFailure::Ep(failure)) => Err(self.fail(&failure)),
            Err(ServiceFailure::Message(message)) => Err(self.refuse(&message)),
        }
    }

    /// Returns true if replies wait to be sent, unless another thread serves.
    pub(crate) fn has_backlog(&self) -> bool {
        try_lock(&self.service).is_some_and(|service| service.has_backlog())
    }

    /// Records a failure, after which every operation fails. Returns the first loss.
    pub(crate) fn fail(&self, failure: &EpFailure) -> Error {
        let provider = &self.address.provider;
        match failure.pe {
            _ if self.fabric.info.sockets && is_exhausted(self.local.state.timer()) => {
                self.local.loss.of_self(&settings::no_descriptors())
            }
            Some(pe) => self.lose(Pe(pe), &format!("libfabric ({provider}) says {}", failure.why)),
            None => {
                self.local.loss.of_self(&format!("libfabric ({provider}) says {}", failure.why))
            }
        }
    }

    /// Returns the address of a PE, as it published it.
    fn address_of(&self, pe: u32) -> Option<Address> {
        connect::address(Pe(pe), self.peers.record(Pe(pe))?).ok()
    }

    /// Puts to one PE, and atomic operations after them, arrive in order.
    pub(crate) fn keeps_order(&self) -> bool {
        self.fabric.info.ordered && self.local.amos == Amos::Software
    }

    /// Returns the longest put that is copied when it starts, so that its source is free at once.
    pub(crate) fn copy_up_to(&self, awaited: bool) -> usize {
        if awaited { self.copies_before_waiting_up_to } else { self.copies_up_to }
    }

    /// Returns the descriptor of the registration that holds all of `memory`, if the fabric asks
    /// for one.
    #[inline]
    pub(crate) fn descriptor_of(&self, memory: LocalBuf) -> Option<usize> {
        let asks = self.fabric.info.asks(fi::FI_MR_LOCAL);
        asks.then(|| self.known_descriptor(memory))?
    }

    fn known_descriptor(&self, memory: LocalBuf) -> Option<usize> {
        let (at, descriptor) = self.local.segments.holding(memory)?;
        if at.segment != Segment::Heap || !self.fabric.info.heap_in_blocks() {
            return Some(*descriptor);
        }
        let block = self.own_heap.blocks.block(at.offset);
        let descriptor =
            if block.index == 0 { Some(descriptor) } else { self.own_heap.blocks.get(block) };
        descriptor.filter(|_| at.offset + memory.nbytes as u64 <= block.end).copied()
    }

    /// Checks a PE that has been silent for long. Returns an error if its process has ended.
    pub(crate) fn confirm(&self, pe: u32) -> Result<(), EpFailure> {
        let there = self.address_of(pe).and_then(|address| probe::socket(&address.name));
        let (Some(own), Some(there)) = (self.socket, there) else { return Ok(()) };
        // The own one shows whether the provider's names are such addresses.
        if probe::listens(there) == Some(false) && probe::listens(own) == Some(true) {
            let why = format!("nothing, but nobody listens at {there} any more");
            return Err(EpFailure { pe: Some(pe), why });
        }
        Ok(())
    }

    /// Returns how much of a range at an address of a peer one key covers.
    pub(crate) fn covered(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<Covered, Error> {
        let Peer { keys, blocks, .. } = self.peers.get(pe)?;
        if at.offset + nbytes as u64 <= keys[at.segment as usize].nbytes {
            return Ok(Covered::Bytes(nbytes));
        }
        Ok(blocks.covered(at.offset))
    }

    /// Returns a range at an address of a peer that was used, as the fabric has it, if one key
    /// covers it.
    #[inline(always)]
    pub(crate) fn remote(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Option<Remote> {
        let peer = self.peers.known(pe)?;
        let end = at.offset.checked_add(nbytes as u64)?;
        let key = &peer.keys[at.segment as usize];
        // A reference, which is in a register on the path of the key that the peer published.
        let key = if end <= key.nbytes { key } else { key_of_block(peer, at, end)? };
        let address = key.base.wrapping_add(at.offset);
        Some(Remote { pe: pe.0, at: peer.at, address, key: key.key })
    }

    /// Some byte of a peer's, to be read for the sake of reading.
    pub(crate) fn some_byte(&self, pe: u32) -> Option<Remote> {
        let peer = self.peers.known(Pe(pe))?;
        let key = peer.keys.iter().find(|key| key.nbytes > 0)?;
        Some(Remote { pe, at: peer.at, address: key.base, key: key.key })
    }

    /// Sleeps until something may have arrived, but not longer than `at_most`; whether the kernel
    /// says that it may.
    pub(crate) fn sleep(&self, at_most: Duration) -> bool {
        match self.fabric.wait_object(&self.cq) {
            WaitObject::Ready => true,
            WaitObject::Absent => {
                self.local.state.count_sleep();
                thread::sleep(at_most);
                false
            }
            WaitObject::Descriptor(queue) => {
                self.local.state.count_sleep();
                let mut fds = [PollFd::from_borrowed_fd(queue, PollFlags::IN)];
                sleep_on(&mut fds, at_most);
                !fds[0].revents().is_empty()
            }
        }
    }
}

/// Returns the key of a further block of a peer's heap, if that covers a range.
#[cold]
#[inline(never)]
fn key_of_block(peer: &Peer, at: RemoteAddr, end: u64) -> Option<&SegmentKey> {
    let block = peer.blocks.block(at.offset);
    let is_covered = at.segment == Segment::Heap && end <= block.end.min(peer.heap_bytes);
    peer.blocks.get(block).filter(|_| is_covered)
}

impl WireNetwork for SharedState {
    type Extra = usize;

    #[inline]
    fn local(&self) -> &NetworkPe<usize> {
        &self.local
    }

    #[inline]
    fn nbytes(&self, pe: Pe, segment: Segment) -> Result<u64, Error> {
        Ok(self.peers.get(pe)?.nbytes(segment))
    }

    fn host_of(&self, pe: Pe) -> Option<String> {
        self.address_of(pe.0).map(|there| there.host)
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        let (own, there) = (&self.address, self.address_of(pe.0));
        let shown = there.as_ref().map_or("an unknown address".to_owned(), Address::shown);
        let why = format!(
            "{why} (provider {}, from {} to {shown}); see what PE {pe} said last, and whether both hosts let such \
             connections through (firewall, SHMEM_OFI_PROVIDER)",
            own.provider,
            own.shown()
        );
        self.local.loss.of_peer(pe, there.as_ref().map(|there| &*there.host), &why)
    }
}
