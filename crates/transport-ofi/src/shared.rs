//! What all endpoints of a PE and its service thread share: the peers, the eps, and the
//! acknowledgments.
//!
//! Locking: an endpoint waits for the lock of its ep and for that of its requests, as does a thread
//! that closes it after a loss; all other threads try them. No thread waits for a lock while it
//! holds another, except that of the list of what is unfinished, which is held for a few
//! instructions. This module does not know what peers request, nor who polls.

use crate::connect::{self, Address, Peer};
use crate::ep::{EpFailure, FiEndpoint, Remote};
use crate::fabric::{Cq, Fabric, WaitObject};
use crate::fid::Fid;
use crate::message::{Message, NOWHERE};
use crate::native::Native;
use crate::replies::{Answer, Due, Replies};
use crate::requests::{How, Requests, Unsent};
use crate::settings::{LIMITS, Tuning};
use crate::unconfirmed;
use libfabric_sys as fi;
use rushmem_transport::kit::acks::Acks;
use rushmem_transport::kit::heap_blocks::OwnHeap;
use rushmem_transport::kit::lock::{lock, try_lock};
use rushmem_transport::kit::loss::Loss;
use rushmem_transport::kit::message::{Reply, Request};
use rushmem_transport::kit::peers::{Peers, check_range};
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::timer::sleep_on;
use rushmem_transport::kit::unfinished::Unfinished;
use rushmem_transport::kit::violation::{RefusedMessage, Violation};
use rushmem_transport::{
    Amos, Completion, Error, Host, LocalAccess, LocalBuf, Open, Pe, RemoteAddr, Segment,
};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

/// An ep, and what others than its endpoint see of it.
pub(crate) struct SharedEp {
    /// `None` once it was given up.
    pub(crate) ep: Mutex<Option<FiEndpoint>>,
    pub(crate) requests: Mutex<Requests>,
    pub(crate) replies: Replies,
    /// Something was written whose completion does not mean that it has reached its target. The
    /// provider may still have to work for it, although nothing is in flight.
    pub(crate) undelivered: AtomicBool,
    /// It is among what is unfinished. It is set under the lock of the ep or of the requests, and
    /// cleared under both.
    noted: AtomicBool,
}

impl SharedEp {
    /// Sends the messages that found no room, unless another thread works on them.
    pub(crate) fn send_unsent(&self) -> Result<(), EpFailure> {
        let Some(mut requests) =
            try_lock(&self.requests).filter(|requests| !requests.unsent.is_empty())
        else {
            return Ok(());
        };
        match try_lock(&self.ep).as_deref_mut() {
            Some(Some(ep)) => requests.send_unsent(ep),
            _ => Ok(()),
        }
    }

    /// Returns true if it is among what is unfinished.
    #[cfg(test)]
    pub(crate) fn is_noted(&self) -> bool {
        self.noted.load(Ordering::Relaxed)
    }

    /// Lets it work and sends what is gathered, if nobody else does; whether something is in flight
    /// on it.
    fn poll(&self, shared: &SharedState) -> bool {
        let Some(mut requests) = try_lock(&self.requests) else { return true };
        let Some(mut ep) = try_lock(&self.ep) else { return true };
        // The endpoint's thread may be elsewhere, and a peer wait for what is gathered.
        let needs_slots = ep.is_some() && requests.slots.is_empty();
        let collected = if needs_slots { self.collect(&mut requests) } else { Ok(()) };
        let polled = ep.as_mut().map(|ep| {
            shared.send_gathered(&mut requests, ep)?;
            ep.poll(|_| ()).map(|_| ep.in_flight())
        });
        let in_flight = match &polled {
            Some(Ok(in_flight)) if collected.is_ok() => {
                *in_flight > 0
                    || requests.holds()
                    || self.undelivered.load(Ordering::Relaxed)
                    || shared.polls_until_acked() && requests.is_owed()
            }
            _ => false,
        };
        self.noted.store(in_flight, Ordering::Relaxed);
        drop((ep, requests));
        // Reported without the lock, since that may take long, and before the ep is closed: its
        // endpoint returns this loss at its next call.
        match (collected, polled) {
            (Err(message), _) => drop(shared.refuse(&message)),
            (Ok(()), Some(Err(failure))) => drop(shared.lose(&failure)),
            _ => return in_flight,
        }
        *lock(&self.ep) = None;
        in_flight
    }
}

/// One PE's share in the fabric. Registrations and eps are dropped before the fabric.
pub(crate) struct SharedState {
    /// Of the segments. The service's ep outlives them.
    pub(crate) registrations: Mutex<Vec<Fid<fi::fid_mr>>>,
    /// Eps that no context has.
    spare: Mutex<Vec<Arc<SharedEp>>>,
    /// All eps, by their number.
    eps: RwLock<Vec<Arc<SharedEp>>>,
    /// Eps on which something is in flight.
    unfinished: Unfinished<Arc<SharedEp>>,
    /// The service's queue, to sleep on.
    pub(crate) cq: Arc<Cq>,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) me: Pe,
    /// This PE's address; its host's name goes into messages.
    pub(crate) address: Address,
    /// Where the own service listens, if that is a socket.
    socket: Option<SocketAddr>,
    /// In every message of this job.
    pub(crate) tag: u64,
    /// Who carries out atomic operations.
    pub(crate) amos: Amos,
    /// Which atomic operations of its own the fabric has, where it carries them out.
    pub(crate) native: Native,
    pub(crate) tuning: Tuning,
    /// Longest put that is copied, and the longest of one whose caller would otherwise wait for the
    /// target's answer.
    copies_up_to: usize,
    copies_before_waiting_up_to: usize,
    pub(crate) host: Arc<dyn Host>,
    /// With their descriptors, as numbers; a heap in blocks has that of the first.
    pub(crate) segments: Segments<usize>,
    /// With the descriptors of its further blocks, as numbers.
    pub(crate) own_heap: OwnHeap<usize>,
    pub(crate) peers: Peers<Peer>,
    /// Between this PE's streams of requests and those of the others.
    pub(crate) acks: Acks,
    pub(crate) state: ProgressState,
    /// The thread that polled so far sleeps elsewhere until a thread polls again: perhaps on a word
    /// whose change wakes no thread.
    pub(crate) handed_over: AtomicBool,
    pub(crate) loss: Loss,
}

impl SharedState {
    /// Of a PE whose service has this ep and this address.
    pub(crate) fn new(
        open: &Open,
        tuning: Tuning,
        tag: u64,
        native: Native,
        service: &FiEndpoint,
        address: Address,
    ) -> io::Result<SharedState> {
        let Tuning { copy_up_to, copy_before_waiting_up_to, max_bytes, .. } = tuning;
        let pins_copies = service.fabric().facts.asks(fi::FI_MR_LOCAL);
        let before_waiting = if pins_copies { copy_up_to } else { copy_before_waiting_up_to };
        Ok(SharedState {
            registrations: Mutex::default(),
            spare: Mutex::default(),
            eps: RwLock::default(),
            unfinished: Unfinished::default(),
            cq: Arc::clone(service.cq()),
            fabric: Arc::clone(service.fabric()),
            me: open.pe,
            socket: unconfirmed::socket(&address.name),
            tag,
            amos: open.amos,
            native,
            tuning,
            copies_up_to: max_bytes.min(copy_up_to),
            copies_before_waiting_up_to: max_bytes.min(before_waiting),
            host: Arc::clone(&open.host),
            segments: Segments::default(),
            own_heap: OwnHeap::default(),
            peers: Peers::new(open.n_pes),
            acks: Acks::new(open.n_pes),
            state: ProgressState::new(&LIMITS, open.cpus_per_pe)?,
            handed_over: AtomicBool::new(false),
            loss: Loss::new(open.pe, address.host.clone(), Arc::clone(&open.host)),
            address,
        })
    }

    /// Checks the local memory of a long transfer, unless a NIC accesses it, which reports a fault.
    pub(crate) fn check_memory(&self, access: LocalAccess, memory: LocalBuf) -> Result<(), Error> {
        match self.fabric.facts.copies() {
            true => self.loss.check_memory(access, memory),
            false => Ok(()),
        }
    }

    /// Something failed: from now on everything does. Returns the first loss.
    pub(crate) fn lose(&self, failure: &EpFailure) -> Error {
        let provider = &self.address.provider;
        match failure.pe {
            Some(pe) => {
                self.lose_peer(Pe(pe), &format!("libfabric ({provider}) says {}", failure.why))
            }
            None => self.loss.of_self(&format!("libfabric ({provider}) says {}", failure.why)),
        }
    }

    /// The path to a PE failed, or the PE has not answered for too long. Returns the first loss.
    pub(crate) fn lose_peer(&self, pe: Pe, why: &str) -> Error {
        let (own, there) = (&self.address, self.address_of(pe.0));
        let shown = there.as_ref().map_or("an unknown address".to_owned(), Address::shown);
        let why = format!(
            "{why} (provider {}, from {} to {shown}); see what PE {pe} said last, and whether both hosts let such \
             connections through (firewall, SHMEM_OFI_PROVIDER)",
            own.provider,
            own.shown()
        );
        self.loss.of_peer(pe, there.as_ref().map(|there| &*there.host), &why)
    }

    /// A message of a peer cannot be carried out. Returns the first loss.
    pub(crate) fn refuse(&self, message: &RefusedMessage) -> Error {
        self.loss.of_message(message, |pe| self.address_of(pe.0).map(|address| address.host))
    }

    /// The address of a PE, as it published it.
    fn address_of(&self, pe: u32) -> Option<Address> {
        connect::address(Pe(pe), self.peers.record(Pe(pe))?).ok()
    }

    /// Puts to one PE, and atomic operations after them, arrive in order.
    pub(crate) fn keeps_order(&self) -> bool {
        self.fabric.facts.ordered && self.amos == Amos::Software
    }

    /// A message may complete before it has left, so an ep is polled until the targets have
    /// acknowledged all requests. Sockets have taken what completes.
    fn polls_until_acked(&self) -> bool {
        !self.fabric.facts.sockets
    }

    /// The longest put that is copied when it starts, so that its source is free at once.
    pub(crate) fn copy_up_to(&self, completion: Completion) -> usize {
        match completion {
            Completion::Now => self.copies_before_waiting_up_to,
            Completion::AtQuiet => self.copies_up_to,
        }
    }

    /// The descriptor of the registration that holds all of `memory`, if the fabric asks for one.
    #[inline]
    pub(crate) fn descriptor_of(&self, memory: LocalBuf) -> Option<usize> {
        let asks = self.fabric.facts.asks(fi::FI_MR_LOCAL);
        asks.then(|| self.known_descriptor(memory))?
    }

    fn known_descriptor(&self, memory: LocalBuf) -> Option<usize> {
        let (at, descriptor) = self.segments.holding(memory)?;
        if at.segment != Segment::Heap || !self.fabric.facts.heap_in_blocks() {
            return Some(*descriptor);
        }
        let block = self.own_heap.blocks.block(at.offset);
        let descriptor =
            if block.index == 0 { Some(descriptor) } else { self.own_heap.blocks.get(block) };
        descriptor.filter(|_| at.offset + memory.nbytes as u64 <= block.end).copied()
    }

    /// A PE has been silent for long: an error when its process has ended.
    pub(crate) fn confirm(&self, pe: u32) -> Result<(), EpFailure> {
        let there = self.address_of(pe).and_then(|address| unconfirmed::socket(&address.name));
        let (Some(own), Some(there)) = (self.socket, there) else { return Ok(()) };
        // The own one shows whether the provider's names are such addresses.
        if unconfirmed::listens(there) == Some(false) && unconfirmed::listens(own) == Some(true) {
            let why = format!("nothing, but nobody listens at {there} any more");
            return Err(EpFailure { pe: Some(pe), why });
        }
        Ok(())
    }

    /// Requires that a range lies in a peer's segment.
    ///
    /// # Errors
    /// When it does not.
    #[inline]
    pub(crate) fn check(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<(), Error> {
        check_range(pe, at, nbytes, self.peers.get(pe)?.nbytes(at.segment))
    }

    /// A range at an address of a peer that was used, as the fabric has them, if the key that the
    /// peer published covers it.
    #[inline(always)]
    pub(crate) fn known_remote(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Option<Remote> {
        let peer = self.peers.known(pe)?;
        let key = &peer.keys[at.segment as usize];
        let end = at.offset.checked_add(nbytes as u64)?;
        let address = key.base.wrapping_add(at.offset);
        (end <= key.nbytes).then_some(Remote { pe: pe.0, at: peer.at, address, key: key.key })
    }

    /// Some byte of a peer's, to be read for the sake of reading.
    pub(crate) fn some_byte(&self, pe: u32) -> Option<Remote> {
        let peer = self.peers.known(Pe(pe))?;
        let key = peer.keys.iter().find(|key| key.nbytes > 0)?;
        Some(Remote { pe, at: peer.at, address: key.base, key: key.key })
    }

    /// An ep that no context has, if there is one.
    pub(crate) fn take_spare(&self) -> Option<Arc<SharedEp>> {
        lock(&self.spare).pop()
    }

    /// A context has this ep no more; nothing is in flight on it.
    pub(crate) fn give_back(&self, ep: Arc<SharedEp>) {
        lock(&self.spare).push(ep);
    }

    /// Returns how many eps there are.
    pub(crate) fn n_eps(&self) -> usize {
        self.eps.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// One more ep.
    pub(crate) fn share(&self, ep: FiEndpoint) -> Arc<SharedEp> {
        let mut eps = self.eps.write().unwrap_or_else(PoisonError::into_inner);
        let (number, acks) = self.acks.origin();
        let shared = Arc::new(SharedEp {
            ep: Mutex::new(Some(ep)),
            requests: Mutex::new(Requests::new(number, acks, self.peers.n_pes(), &self.tuning)),
            replies: Replies::new(self.tuning.amos),
            undelivered: AtomicBool::new(false),
            noted: AtomicBool::new(false),
        });
        eps.push(Arc::clone(&shared));
        shared
    }

    /// A reply came, and what follows it.
    ///
    /// # Errors
    /// When no ep requested it.
    pub(crate) fn replied(&self, reply: Reply, bytes: &[u8]) -> Result<(), Violation> {
        let Reply { pe, ack, old } = reply;
        self.acks.acknowledge(pe, ack)?;
        let Some((slot, old)) = old else { return Ok(()) };
        let eps = self.eps.read().unwrap_or_else(PoisonError::into_inner);
        let ep = eps.get(ack.origin as usize).ok_or(Violation::Unrequested)?;
        ep.replies.put(slot, old, bytes)
    }

    /// Something is in flight on an ep or gathered for it, and the caller has its lock or that of
    /// its requests: the service thread polls it if nobody else does.
    #[inline]
    pub(crate) fn note(&self, ep: &Arc<SharedEp>) {
        if !ep.noted.load(Ordering::Relaxed) {
            self.note_anew(ep);
        }
    }

    #[cold]
    fn note_anew(&self, ep: &Arc<SharedEp>) {
        ep.noted.store(true, Ordering::Relaxed);
        self.unfinished.add(Arc::clone(ep));
        self.state.request_flush();
    }

    /// The next request of an ep to a PE.
    pub(crate) fn issue(
        &self,
        requests: &mut Requests,
        pe: Pe,
        update: Option<Update>,
        slot: Option<u32>,
        how: How,
    ) -> Request {
        requests.sent = requests.sent.wrapping_add(1);
        let place = requests.issued.issue(pe, (how.ordered, how.asks));
        let (stream, ack) = (requests.issued.stream(self.me), self.acks.for_message_to(pe));
        Request { stream, place, ack, slot, update, dest: NOWHERE }
    }

    /// Sends what is gathered for an ep, as far as there is room, unless its owner will do so soon.
    fn send_gathered(&self, requests: &mut Requests, ep: &mut FiEndpoint) -> Result<(), EpFailure> {
        if requests.gather.may_stay() {
            return requests.send_unsent(ep);
        }
        for i in (0..requests.gather.pes().len()).rev() {
            let pe = requests.gather.pes()[i];
            let Some(at) = self.peers.known(pe).map(|peer| peer.at) else { continue };
            if requests.issued.is_full(pe) || requests.slots.is_empty() {
                continue;
            }
            let (batch, answers) = requests.take(pe);
            let slot = if answers.is_empty() { None } else { requests.slots.pop() };
            let answer = Answer::Batch(answers);
            requests.due.extend(slot.map(|slot| Due { slot, pe: pe.0, answer }));
            let request = self.issue(requests, pe, None, slot, How::default());
            let head = Message::Request(request).encode(self.tag);
            requests.unsent.push_back(Unsent { pe, at, head, batch });
        }
        requests.send_unsent(ep)
    }

    /// Lets the eps work on which something is in flight; returns whether there are any.
    pub(crate) fn poll_eps(&self) -> bool {
        self.unfinished.finish(|ep| ep.poll(self)) > 0
    }

    /// Sleeps until something may have arrived, but not longer than `at_most`; whether the kernel
    /// says that it may.
    pub(crate) fn sleep(&self, at_most: Duration) -> bool {
        match self.fabric.wait_object(&self.cq) {
            WaitObject::Ready => true,
            WaitObject::Absent => {
                self.state.count_sleep();
                thread::sleep(at_most);
                false
            }
            WaitObject::Descriptor(queue) => {
                self.state.count_sleep();
                let mut fds = [PollFd::from_borrowed_fd(queue, PollFlags::IN)];
                sleep_on(&mut fds, at_most);
                !fds[0].revents().is_empty()
            }
        }
    }
}
