//! The state that all wires of a PE and its service thread share: the peers, the registered
//! segments, and the service. Also sleeps on the service's queue, and reports losses.
//!
//! Locking: the lock of the service is only tried, except in `while_paused`, which opens resources
//! that must not be opened while the service runs.

use crate::connect::{self, Address, Peer, SegmentKey};
use crate::ep::{EpFailure, FiEndpoint, Remote};
use crate::fabric::{Cq, Fabric, Fid, WaitObject};
use crate::probe;
use crate::service::{Service, ServiceFailure};
use crate::settings::{self, LIMITS, Tuning};
use libfabric_sys as fi;
use rushmem_system::descriptors::is_exhausted;
use rushmem_system::lock::{lock, try_lock};
use rushmem_transport::engine::{NetworkPe, ReplyTable, WireNetwork};
use rushmem_transport::peers::Peers;
use rushmem_transport::progress::backoff::FLUSH_DELAY;
use rushmem_transport::progress::events::{AwaitedWord, SleepOn};
use rushmem_transport::progress::service_thread::Served;
use rushmem_transport::segments::heap_blocks::{Covered, OwnHeap};
use rushmem_transport::{AmoSet, Amos, Error, LocalBuf, Open, Pe, RemoteAddr, Segment};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// The address of this PE. Reports of losses name its host.
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
    /// This PE's heap, with libfabric's descriptors of its further blocks as numbers.
    pub(crate) own_heap: OwnHeap<usize>,
    pub(crate) peers: Peers<Peer>,
    /// A thread stopped polling and sleeps elsewhere, perhaps on a word whose change wakes no
    /// thread. False again when a waiting thread polls.
    pub(crate) stopped_polling: AtomicBool,
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
        let pins_copies = fabric.info.asks(fi::FI_MR_LOCAL);
        let before_waiting = if pins_copies {
            copy_up_to
        } else {
            copy_before_waiting_up_to
        };
        Ok(SharedState {
            registrations: Mutex::default(),
            replies: Arc::clone(&service.replies),
            cq: Arc::clone(&service.ep.cq),
            fabric,
            local: NetworkPe::new(open, address.host.clone(), &LIMITS)?,
            socket: probe::socket(&address.name),
            tag: service.tag,
            amos,
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

    /// Calls `act` with the service's ep while the service does not run.
    pub(crate) fn while_paused<T>(&self, act: impl FnOnce(&FiEndpoint) -> T) -> T {
        act(&lock(&self.service).ep)
    }

    /// Serves peers on behalf of a thread that waits, if no other thread does. Returns true if
    /// there was work.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        if self.stopped_polling.load(Ordering::Relaxed) {
            self.stopped_polling.store(false, Ordering::Relaxed);
        }
        let served = self.try_serve()?;
        self.local.loss.check().map(|()| served == Served::Worked)
    }

    /// Serves peers, if no other thread does.
    pub(crate) fn try_serve(&self) -> Result<Served, Error> {
        let Some(mut service) = try_lock(&self.service) else {
            return Ok(Served::Contended);
        };
        let worked = service.poll(&self.local, &self.peers);
        drop(service);
        // The provider itself may have written to this PE's memory, which is not signaled.
        self.local.host.arrived();
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
            Err(ServiceFailure::Message(message)) => Err(self.refuse(&message)),
        }
    }

    /// Returns true if replies wait to be sent or are in flight; false while another thread serves.
    pub(crate) fn has_backlog(&self) -> bool {
        try_lock(&self.service).is_some_and(|service| service.has_backlog())
    }

    /// Reports a failure as a loss: of this PE if it has no descriptor left or the failure names no
    /// PE. Returns the first loss, which may be another one.
    pub(crate) fn fail(&self, failure: &EpFailure) -> Error {
        let provider = &self.address.provider;
        match failure.pe {
            _ if self.fabric.info.sockets && is_exhausted(self.local.state.timer()) => {
                self.local.loss.of_self(&settings::no_descriptors())
            }
            Some(pe) => self.lose(
                Pe(pe),
                &format!("libfabric ({provider}) says {}", failure.why),
            ),
            None => self
                .local
                .loss
                .of_self(&format!("libfabric ({provider}) says {}", failure.why)),
        }
    }

    /// Returns the address of a PE from its record.
    fn address_of(&self, pe: u32) -> Option<Address> {
        connect::address(Pe(pe), self.peers.record(Pe(pe))?).ok()
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
        let asks = self.fabric.info.asks(fi::FI_MR_LOCAL);
        asks.then(|| self.known_descriptor(memory))?
    }

    fn known_descriptor(&self, memory: LocalBuf) -> Option<usize> {
        let (at, descriptor) = self.local.segments.holding(memory)?;
        if at.segment != Segment::Heap || !self.fabric.info.heap_in_blocks() {
            return Some(*descriptor);
        }
        let block = self.own_heap.blocks.block(at.offset);
        let descriptor = if block.index == 0 {
            Some(descriptor)
        } else {
            self.own_heap.blocks.get(block)
        };
        descriptor
            .filter(|_| at.offset + memory.nbytes as u64 <= block.end)
            .copied()
    }

    /// Checks that the process of a PE that has been silent for long exists. Returns a failure if
    /// it has ended; no failure if the addresses of the provider do not show that.
    pub(crate) fn confirm(&self, pe: u32) -> Result<(), EpFailure> {
        let there = self
            .address_of(pe)
            .and_then(|address| probe::socket(&address.name));
        let (Some(own), Some(there)) = (self.socket, there) else {
            return Ok(());
        };
        // The same check of this PE's own address shows whether a process listens at the addresses
        // that this provider publishes at all.
        if probe::listens(there) == Some(false) && probe::listens(own) == Some(true) {
            let why = format!("nothing, but nobody listens at {there} any more");
            return Err(EpFailure { pe: Some(pe), why });
        }
        Ok(())
    }

    /// Returns how many bytes from the start of a peer's range one key covers, or the block of the
    /// heap whose key is missing.
    pub(crate) fn covered(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<Covered, Error> {
        let Peer { keys, blocks, .. } = self.peers.get(pe)?;
        if at.offset + nbytes as u64 <= keys[at.segment as usize].nbytes {
            return Ok(Covered::Bytes(nbytes));
        }
        Ok(blocks.covered(at.offset))
    }

    /// Returns a range of a peer as libfabric addresses it, if the peer was used and one known key
    /// covers the range.
    #[inline(always)]
    pub(crate) fn remote(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Option<Remote> {
        let peer = self.peers.known(pe)?;
        let end = at.offset.checked_add(nbytes as u64)?;
        let key = &peer.keys[at.segment as usize];
        // A reference to the key, so that it stays in a register in the usual case.
        let key = if end <= key.nbytes {
            key
        } else {
            key_of_block(peer, at, end)?
        };
        let address = key.base.wrapping_add(at.offset);
        Some(Remote {
            pe: pe.0,
            fi_addr: peer.fi_addr,
            address,
            key: key.key,
        })
    }

    /// Returns any byte of a peer's memory that can be read; `None` if the peer was not used or has
    /// no segment.
    pub(crate) fn some_byte(&self, pe: u32) -> Option<Remote> {
        let peer = self.peers.known(Pe(pe))?;
        let key = peer.keys.iter().find(|key| key.nbytes > 0)?;
        Some(Remote {
            pe,
            fi_addr: peer.fi_addr,
            address: key.base,
            key: key.key,
        })
    }

    /// Sleeps until something may have arrived, for `at_most` at the longest: for a call that
    /// awaits its own operations if `awaited` is `None`, else as [`Transport::wait`]. Does not
    /// sleep if `is_over` returns true. Returns true if the queue has signaled an event that no
    /// thread may have received; without a wait object, always false.
    ///
    /// [`Transport::wait`]: rushmem_transport::Transport::wait
    pub(crate) fn sleep(
        &self,
        awaited: Option<&[AwaitedWord]>,
        at_most: Duration,
        is_over: &mut dyn FnMut() -> bool,
    ) -> bool {
        let object = self.fabric.wait_object(&self.cq);
        // Software providers make progress in `wait_object`, which may have written words for which
        // this thread or others wait.
        self.local.state.wake_for_words();
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

/// Returns the key of a further block of a peer's heap, if it is known and covers the range.
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
        let shown = there
            .as_ref()
            .map_or("an unknown address".to_owned(), Address::shown);
        let why = format!(
            "{why} (provider {}, from {} to {shown}); see what PE {pe} said last, and whether both hosts let such \
             connections through (firewall, SHMEM_TCP_INTERFACE, SHMEM_OFI_PROVIDER)",
            own.provider,
            own.shown()
        );
        self.local
            .loss
            .of_peer(pe, there.as_ref().map(|there| &*there.host), &why)
    }
}
