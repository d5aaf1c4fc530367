//! The engine of an endpoint: performs operations and reports their completion.
//!
//! A message, or an operation that the target performs, is a request in a slot of the origin's
//! segment, to which an entry of the target's inbox refers until the target has read it. Except in
//! immediate profiles, operations start when the queue is read, a random number at a time, in a
//! random order that the profile permits, and posts fail at random with `FI_EAGAIN`.
#![allow(unsafe_code)]

use crate::address_vector::AddressVector;
use crate::atomic::AtomicOp;
use crate::connections::{Connections, Passage};
use crate::domain::Domain;
use crate::info::OP_FLAGS;
use crate::memory::{self, is_running, store};
use crate::operation::{AcceptedOp, CompletedOp, Completions, OpKind, Posted};
use crate::order::must_wait;
use crate::profile::{Profile, RmaMode};
use crate::remote::{RemotePeer, RemoteRange, own_memory};
use crate::reuse::{Contexts, ReuseCheck};
use crate::segment::{DONE, INLINE, PIECES, POSTED, RequestRef, RequestSlot, SLOTS, TAKEN};
use crate::slot::{gather, read_data, remote_pieces, write_request};
use fastrand::Rng;
use libfabric_sys as fi;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of requests that are read from an inbox at once.
const MAX_REQUESTS: usize = 64;
/// The number of oldest pending operations from which the next one to start is selected, and the
/// maximum number that a poll starts.
const CHOICE: usize = 8;
/// Consecutive polls in which no submitted request was completed, after which the peers are
/// checked.
const MAX_IDLE_POLLS: u32 = 4096;

/// An operation that has not started.
struct Pending {
    operation: AcceptedOp,
    reuse: ReuseCheck,
    /// The data, if they were copied from the source.
    bytes: Option<Box<[u8]>>,
    /// True if it may complete before it has reached its target.
    may_complete_early: bool,
}

/// A posted receive buffer.
struct Receive {
    piece: fi::iovec,
    context: usize,
    reuse: ReuseCheck,
}

/// A request that was submitted to its target.
struct Sent {
    slot: u32,
    operation: AcceptedOp,
    reuse: ReuseCheck,
}

/// The state of an enabled endpoint.
pub(crate) struct Engine {
    domain: Arc<Domain>,
    profile: &'static Profile,
    number: u32,
    av: Arc<AddressVector>,
    selective: bool,
    tx_size: usize,
    remotes: Vec<Option<RemotePeer>>,
    pending: VecDeque<Pending>,
    /// The indices of the free slots of this endpoint.
    slots: Vec<u32>,
    sent: Vec<Sent>,
    receives: VecDeque<Receive>,
    /// Messages that wait for a receive buffer.
    unexpected: VecDeque<RequestRef>,
    contexts: Contexts,
    connections: Connections,
    random: Rng,
    /// Polls since the last completion of a submitted request.
    idle_polls: u32,
}

// SAFETY: the pointers are only used while the engine is locked, and are valid on all threads.
unsafe impl Send for Engine {}

const AGAIN: isize = -(fi::FI_EAGAIN as isize);

impl Engine {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        number: u32,
        av: Arc<AddressVector>,
        selective: bool,
        tx_size: usize,
    ) -> Engine {
        // Targets may not yet have read requests of a closed endpoint that had the same number.
        let is_free = |slot: &u32| {
            let slot = &domain.segment.slots[number as usize][*slot as usize];
            ![POSTED, TAKEN].contains(&slot.state.load(Ordering::Acquire))
        };
        Engine {
            profile: domain.profile,
            number,
            av,
            selective,
            tx_size: tx_size.min(SLOTS),
            remotes: Vec::new(),
            pending: VecDeque::new(),
            slots: (0..SLOTS as u32).rev().filter(is_free).collect(),
            sent: Vec::new(),
            receives: VecDeque::new(),
            unexpected: VecDeque::new(),
            contexts: Contexts::default(),
            connections: Connections::default(),
            random: Rng::with_seed(u64::from(number) + 1),
            idle_polls: 0,
            domain: Arc::clone(domain),
        }
    }

    /// Posts a request. Returns a result of libfabric.
    #[inline]
    pub(crate) fn post(&mut self, request: &Posted<'_>, completions: &mut Completions) -> isize {
        let completes =
            !request.silent && (!self.selective || request.flags & fi::FI_COMPLETION != 0);
        let in_flight = self.sent.len() + self.pending.len();
        if in_flight >= self.tx_size {
            return AGAIN;
        }
        if completes && completions.room() <= in_flight {
            return self.queue_full();
        }
        let peer = self.av.index(request.to);
        match self
            .connections
            .pass(self.profile, &self.domain.connections, peer)
        {
            Passage::Open => {}
            Passage::Fails(code) => return code,
            Passage::FailsLater => {
                let refused = self.operation_of(request, peer, completes).completion();
                self.connections.fail_later(refused);
                return 0;
            }
            Passage::Exceeds(begun) => {
                let most = self.profile.max_begun_connections;
                self.domain.violation(
                    "connections",
                    format!("{begun} are being set up, not {most}"),
                );
            }
        }
        if !self.profile.immediate {
            return self.post_deferred(request, peer, completes);
        }
        if request.kind != OpKind::Send {
            self.perform_now(request, peer, completes, completions);
            return 0;
        }
        let operation = self.operation_of(request, peer, completes);
        let inlined = request.flags & fi::FI_INJECT != 0;
        match self.submit(&operation, inlined) {
            Some(slot) => {
                self.sent.push(Sent {
                    slot,
                    operation,
                    reuse: ReuseCheck::default(),
                });
                0
            }
            None => AGAIN,
        }
    }

    /// Returns the result if the completion queue has no room, which is a violation in profiles
    /// whose queues may overrun.
    #[cold]
    fn queue_full(&self) -> isize {
        if self.profile.resource_mgmt == fi::FI_RM_DISABLED {
            self.domain
                .violation("FI_RM_DISABLED", "the completion queue may overrun");
        }
        AGAIN
    }

    fn operation_of(&self, request: &Posted<'_>, peer: usize, completes: bool) -> AcceptedOp {
        let &Posted {
            kind,
            address,
            key,
            context,
            amo,
            ..
        } = request;
        let (nbytes, n_pieces) = (request.nbytes(), request.pieces.len());
        let mut pieces = [fi::iovec {
            iov_base: null_mut(),
            iov_len: 0,
        }; PIECES];
        pieces[..n_pieces].copy_from_slice(request.pieces);
        let context = context.expose_provenance();
        AcceptedOp {
            kind,
            pieces,
            n_pieces,
            peer,
            address,
            key,
            nbytes,
            context,
            amo,
            completes,
        }
    }

    /// Checks a request and queues it for a later poll, which starts it. Returns 0, or `AGAIN` if
    /// the application must post it again.
    fn post_deferred(&mut self, request: &Posted<'_>, peer: usize, completes: bool) -> isize {
        let (domain, profile) = (Arc::clone(&self.domain), self.profile);
        self.check(request);
        if self.refuses() {
            return AGAIN;
        }
        let mut operation = self.operation_of(request, peer, completes);
        if profile.requires(fi::FI_MR_RAW) && request.kind != OpKind::Send {
            let Some(key) = domain.mapped.key(request.key) else {
                domain.violation("FI_MR_RAW", "an operation names a key that is not mapped")
            };
            operation.key = key;
        }
        let injects = request.flags & fi::FI_INJECT != 0;
        let kind = operation.kind;
        let mut bytes = None;
        let mut reuse = ReuseCheck::default();
        if injects {
            bytes = Some(copy_source(&mut operation));
        } else {
            let access = (request.descs, kind.own_access());
            reuse = ReuseCheck::new(&domain, self.number, operation.pieces(), access);
            if kind.is_source() {
                reuse = reuse.with_source(operation.pieces());
            }
        }
        if completes {
            reuse = reuse.with_context(&domain, &mut self.contexts, operation.context);
        }
        let may_complete_early = kind.is_source() && request.flags & fi::FI_DELIVERY_COMPLETE == 0;
        self.pending.push_back(Pending {
            operation,
            reuse,
            bytes,
            may_complete_early,
        });
        0
    }

    /// Checks that the profile permits a request.
    fn check(&self, request: &Posted<'_>) {
        let (domain, profile, nbytes) = (&self.domain, self.profile, request.nbytes());
        if request.flags & !OP_FLAGS != 0 {
            domain.violation(
                "flags",
                format!("an operation has unknown flags {:#x}", request.flags),
            );
        }
        if request.flags & fi::FI_INJECT != 0 && nbytes > profile.inject {
            let most = profile.inject;
            domain.violation(
                "inject_size",
                format!("{nbytes} bytes are injected, not {most}"),
            );
        }
        if nbytes > profile.max_message {
            let most = profile.max_message;
            domain.violation(
                "max_msg_size",
                format!("an operation has {nbytes} bytes, not {most}"),
            );
        }
        if request.amo.is_none() && request.pieces.len() > profile.iov_limit {
            let n = request.pieces.len();
            domain.violation("iov_limit", format!("an operation has {n} pieces"));
        }
    }

    /// Returns the registrations of a peer.
    #[inline]
    fn remote(&mut self, peer: usize) -> &mut RemotePeer {
        if self.remotes.get(peer).is_none_or(Option::is_none) {
            self.open_remote(peer);
        }
        match &mut self.remotes[peer] {
            Some(remote) => remote,
            None => unreachable!("opened above"),
        }
    }

    #[cold]
    fn open_remote(&mut self, peer: usize) {
        let found = self.av.peer(peer);
        if self.remotes.len() <= peer {
            self.remotes.resize_with(peer + 1, || None);
        }
        self.remotes[peer] = Some(RemotePeer::new(found));
    }

    /// Performs an RMA or atomic operation immediately, and adds its completion.
    #[inline]
    fn perform_now(
        &mut self,
        request: &Posted<'_>,
        peer: usize,
        completes: bool,
        completions: &mut Completions,
    ) {
        let &Posted {
            kind,
            pieces,
            address,
            key,
            context,
            amo,
            ..
        } = request;
        let (profile, nbytes) = (self.profile, request.nbytes());
        let remote = self.remote(peer);
        let result = remote
            .target(profile, key, address, (nbytes, kind.access()))
            .and_then(|target| transfer(remote, target, kind, pieces, amo.as_ref()));
        let context = context.expose_provenance();
        let entry = CompletedOp {
            context,
            flags: kind.completion_flags(),
            nbytes,
        };
        match result {
            Ok(()) if completes => completions.push(entry),
            Ok(()) => {}
            Err(error) => completions.fail(entry, error),
        }
    }

    /// Submits a request to its target's inbox, with inline data if `inlined` and they fit. Returns
    /// its slot, or `None` if there is no room.
    fn submit(&mut self, operation: &AcceptedOp, inlined: bool) -> Option<u32> {
        let &index = self.slots.last()?;
        let domain = Arc::clone(&self.domain);
        let slot = &domain.segment.slots[self.number as usize][index as usize];
        write_request(slot, operation, inlined);
        slot.state.store(POSTED, Ordering::Release);
        let (pid, fd, endpoint) = (domain.pid, domain.fd(), self.number);
        let peer = Arc::clone(&self.remote(operation.peer).peer);
        let inbox = &peer.segment.inboxes[peer.endpoint as usize];
        if !inbox.push(RequestRef {
            pid,
            fd,
            endpoint,
            slot: index,
        }) {
            slot.state.store(DONE, Ordering::Relaxed);
            return None;
        }
        self.slots.pop()
    }

    /// Posts a receive buffer. Returns a result of libfabric.
    pub(crate) fn receive(
        &mut self,
        piece: &fi::iovec,
        desc: *mut c_void,
        context: *mut c_void,
    ) -> isize {
        if self.receives.len() >= self.profile.rx_size {
            return AGAIN;
        }
        let context = context.expose_provenance();
        let mut reuse = ReuseCheck::default();
        if !self.profile.immediate {
            if self.refuses() {
                return AGAIN;
            }
            let (domain, pieces) = (&self.domain, std::slice::from_ref(piece));
            reuse = ReuseCheck::new(domain, self.number, pieces, (&[desc], fi::FI_RECV));
            reuse = reuse.with_context(domain, &mut self.contexts, context);
        }
        self.receives.push_back(Receive {
            piece: *piece,
            context,
            reuse,
        });
        0
    }

    /// Makes progress: starts pending operations, completes submitted ones, and handles requests of
    /// peers.
    #[inline]
    pub(crate) fn progress(&mut self, completions: &mut Completions) {
        self.connections
            .progress(&self.domain.connections, completions);
        if !self.pending.is_empty() {
            for _ in 0..self.random_count(CHOICE) {
                self.start_one(completions);
            }
        }
        if !self.sent.is_empty() {
            self.complete_sent(completions);
        }
        let most = match self.profile.immediate {
            true => MAX_REQUESTS,
            false => self.random_count(MAX_REQUESTS),
        };
        let domain = Arc::clone(&self.domain);
        let inbox = &domain.segment.inboxes[self.number as usize];
        for _ in 0..most {
            let Some(reference) = inbox.pop() else { break };
            self.handle(reference);
        }
        while !self.unexpected.is_empty() && !self.receives.is_empty() && completions.room() > 0 {
            self.deliver(completions);
        }
    }

    /// Returns true if a post fails with `FI_EAGAIN`, at random.
    fn refuses(&mut self) -> bool {
        let one_in = self.profile.eagain_one_in;
        one_in > 0 && self.random.u32(0..one_in) == 0
    }

    /// Returns how many operations to process: 0 with probability 1/4, otherwise up to `most`.
    fn random_count(&mut self, most: usize) -> usize {
        if self.random.u32(0..4) == 0 {
            0
        } else {
            self.random.usize(1..=most)
        }
    }

    /// Starts a random operation among those that may start, or completes it early, before it
    /// starts.
    fn start_one(&mut self, completions: &mut Completions) {
        let profile = self.profile;
        let what = |pending: &Pending| (pending.operation.kind, pending.operation.nbytes);
        let may_start = |&i: &usize| {
            let later = &self.pending[i];
            !self.pending.range(..i).any(|earlier| {
                earlier.operation.peer == later.operation.peer
                    && must_wait(profile, what(later), what(earlier))
            })
        };
        let candidates = 0..self.pending.len().min(CHOICE);
        let ready: Vec<usize> = candidates.filter(may_start).collect();
        if ready.is_empty() {
            return;
        }
        let chosen = ready[self.random.usize(..ready.len())];
        let completes_early = self.random.bool();
        let pending = &mut self.pending[chosen];
        if pending.may_complete_early
            && pending.operation.completes
            && pending.operation.nbytes <= INLINE
            && completes_early
        {
            // Completes the operation when its data have been copied.
            pending
                .reuse
                .check_source(&self.domain, pending.operation.pieces());
            if pending.bytes.is_none() {
                pending.bytes = Some(copy_source(&mut pending.operation));
            }
            pending.reuse.release(&self.domain, &mut self.contexts);
            pending.operation.completes = false;
            completions.push(pending.operation.completion());
            return;
        }
        if let Some(pending) = self.pending.remove(chosen)
            && let Some(pending) = self.start(pending, completions)
        {
            self.pending.insert(chosen, pending);
        }
    }

    /// Performs or submits an operation. Returns it if there is no room.
    fn start(&mut self, mut pending: Pending, completions: &mut Completions) -> Option<Pending> {
        let Pending {
            operation,
            reuse,
            bytes,
            ..
        } = &mut pending;
        if bytes.is_none() {
            reuse.check_source(&self.domain, operation.pieces());
        }
        if self.profile.rma == RmaMode::Software || operation.kind == OpKind::Send {
            let is_copied = bytes.is_some();
            let Some(slot) = self.submit(operation, is_copied) else {
                return Some(pending);
            };
            let Pending {
                operation, reuse, ..
            } = pending;
            self.sent.push(Sent {
                slot,
                operation,
                reuse,
            });
            return None;
        }
        let (profile, remote) = (self.profile, self.remote(operation.peer));
        let what = (operation.nbytes, operation.kind.access());
        let result = remote
            .target(profile, operation.key, operation.address, what)
            .and_then(|target| {
                transfer(
                    remote,
                    target,
                    operation.kind,
                    operation.pieces(),
                    operation.amo.as_ref(),
                )
            });
        reuse.release(&self.domain, &mut self.contexts);
        match result {
            Err(error) => completions.fail(operation.completion(), error),
            Ok(()) if operation.completes => completions.push(operation.completion()),
            Ok(()) => {}
        }
        None
    }

    /// Completes submitted requests that their targets have performed.
    fn complete_sent(&mut self, completions: &mut Completions) {
        let (domain, slots, contexts) = (
            Arc::clone(&self.domain),
            &mut self.slots,
            &mut self.contexts,
        );
        let own_slots = &domain.segment.slots[self.number as usize];
        let before = self.sent.len();
        self.sent.retain_mut(
            |Sent {
                 slot: index,
                 operation,
                 reuse,
             }| {
                let slot = &own_slots[*index as usize];
                if slot.state.load(Ordering::Acquire) != DONE {
                    return true;
                }
                slots.push(*index);
                reuse.release(&domain, contexts);
                let error = slot.error.load(Ordering::Relaxed) as i32;
                if error != 0 {
                    completions.fail(operation.completion(), error);
                    return false;
                }
                if let (Some(amo), Some(piece)) = (operation.amo, operation.pieces().last()) {
                    let old = slot.old.load(Ordering::Relaxed);
                    // SAFETY: a buffer for a word of this width, valid until completion.
                    unsafe {
                        memory::copy(piece.iov_base.cast(), (&raw const old).cast(), amo.width)
                    };
                }
                if operation.completes {
                    completions.push(operation.completion());
                }
                false
            },
        );
        self.idle_polls = if self.sent.len() < before {
            0
        } else {
            self.idle_polls + 1
        };
        if self.idle_polls >= MAX_IDLE_POLLS {
            self.idle_polls = 0;
            self.fail_lost(completions);
        }
    }

    /// Fails requests to processes that have ended.
    #[cold]
    fn fail_lost(&mut self, completions: &mut Completions) {
        let pids: Vec<u32> = self
            .remotes
            .iter()
            .flatten()
            .map(|remote| remote.peer.pid)
            .collect();
        if pids.into_iter().all(is_running) {
            return;
        }
        let (sent, domain) = (std::mem::take(&mut self.sent), Arc::clone(&self.domain));
        for mut one in sent {
            let pid = self.remote(one.operation.peer).peer.pid;
            if is_running(pid) {
                self.sent.push(one);
                continue;
            }
            one.reuse.release(&domain, &mut self.contexts);
            self.slots.push(one.slot);
            completions.fail(one.operation.completion(), fi::FI_ECONNRESET);
        }
    }

    /// Handles a request of a peer: performs an operation on own memory, or queues a message.
    fn handle(&mut self, reference: RequestRef) {
        let Ok(segment) = self.domain.segment_of(reference.pid, reference.fd) else {
            return;
        };
        let slot = &segment.slots[reference.endpoint as usize][reference.slot as usize];
        match OpKind::from_number(slot.kind.load(Ordering::Relaxed)) {
            Some(OpKind::Send) => self.unexpected.push_back(reference),
            Some(kind) => {
                slot.state.store(TAKEN, Ordering::Relaxed);
                let error = self.perform(kind, slot, reference.pid).err().unwrap_or(0);
                slot.error.store(error as u32, Ordering::Relaxed);
                slot.state.store(DONE, Ordering::Release);
            }
            None => {}
        }
    }

    /// Performs a peer's operation on own memory.
    fn perform(&self, kind: OpKind, slot: &RequestSlot, pid: u32) -> Result<(), i32> {
        let order = Ordering::Relaxed;
        let (key, address) = (slot.key.load(order), slot.address.load(order));
        let what = (slot.nbytes.load(order) as usize, kind.access());
        let own = own_memory(
            self.profile,
            &self.domain.segment,
            self.number,
            key,
            address,
            what,
        )?;
        match kind {
            OpKind::Write => {
                // SAFETY: `own_memory` has checked this range of registered memory.
                unsafe { read_data(slot, pid, own, what.0) }
            }
            OpKind::Read => {
                let mut from = own;
                for (there, nbytes) in remote_pieces(slot) {
                    // SAFETY: `own_memory` has checked this range of registered memory.
                    let stored = unsafe { store(pid, there, from, nbytes) };
                    stored.map_err(|_| fi::FI_ECONNRESET)?;
                    from = from.wrapping_add(nbytes);
                }
                Ok(())
            }
            OpKind::Fetch => {
                let (operand, condition) = (slot.operand.load(order), slot.condition.load(order));
                let amo = AtomicOp {
                    op: slot.op.load(order),
                    width: what.0,
                    operand,
                    condition,
                };
                if !own.addr().is_multiple_of(amo.width) {
                    self.domain.violation(
                        "alignment",
                        "an atomic operation is on a word that is not aligned",
                    );
                }
                // SAFETY: `own_memory` has checked this range; the alignment was checked above.
                slot.old.store(unsafe { amo.perform(own) }, order);
                Ok(())
            }
            OpKind::Send => Ok(()),
        }
    }

    /// Delivers the first message to the first receive buffer.
    fn deliver(&mut self, completions: &mut Completions) {
        let (Some(reference), Some(mut receive)) =
            (self.unexpected.pop_front(), self.receives.pop_front())
        else {
            return;
        };
        let Ok(segment) = self.domain.segment_of(reference.pid, reference.fd) else {
            return;
        };
        let slot = &segment.slots[reference.endpoint as usize][reference.slot as usize];
        let sent = slot.nbytes.load(Ordering::Relaxed) as usize;
        let nbytes = sent.min(receive.piece.iov_len);
        // SAFETY: a posted receive buffer, of at least `nbytes` bytes.
        let data = unsafe { read_data(slot, reference.pid, receive.piece.iov_base.cast(), nbytes) };
        slot.error.store(0, Ordering::Relaxed);
        slot.state.store(DONE, Ordering::Release);
        if data.is_err() {
            // The sender has ended, so the message is lost.
            return self.receives.push_front(receive);
        }
        receive.reuse.release(&self.domain, &mut self.contexts);
        let entry = CompletedOp {
            context: receive.context,
            flags: fi::FI_MSG | fi::FI_RECV,
            nbytes,
        };
        match sent > nbytes {
            true => completions.fail(entry, fi::FI_ETRUNC as i32),
            false => completions.push(entry),
        }
    }

    /// Closes the endpoint. Operations that have completed early still reach their targets, if the
    /// targets' inboxes have room.
    pub(crate) fn close(&mut self, completions: &mut Completions) {
        self.connections.close(&self.domain.connections);
        for receive in &mut self.receives {
            receive.reuse.release(&self.domain, &mut self.contexts);
        }
        while let Some(mut pending) = self.pending.pop_front() {
            match pending.bytes.is_some() && !pending.operation.completes {
                true => drop(self.start(pending, completions)),
                false => pending.reuse.release(&self.domain, &mut self.contexts),
            }
        }
        for sent in &mut self.sent {
            sent.reuse.release(&self.domain, &mut self.contexts);
        }
    }
}

/// Copies the data of an operation, and makes it use the copy.
fn copy_source(operation: &mut AcceptedOp) -> Box<[u8]> {
    let mut bytes = vec![0u8; operation.nbytes.max(1)].into_boxed_slice();
    let nbytes = gather(operation, &mut bytes);
    operation.pieces[0] = fi::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: nbytes,
    };
    operation.n_pieces = 1;
    bytes
}

/// Transfers the data of an operation between own memory and the target.
#[inline]
fn transfer(
    remote: &RemotePeer,
    mut target: RemoteRange,
    kind: OpKind,
    pieces: &[fi::iovec],
    amo: Option<&AtomicOp>,
) -> Result<(), i32> {
    if let Some(amo) = amo {
        let old = remote.update(target, amo)?;
        if let Some(piece) = pieces.last() {
            // SAFETY: a buffer for a word of this width, valid until completion.
            unsafe { memory::copy(piece.iov_base.cast(), (&raw const old).cast(), amo.width) };
        }
        return Ok(());
    }
    for piece in pieces {
        let (own, nbytes) = (piece.iov_base.cast::<u8>(), piece.iov_len);
        match kind {
            // SAFETY: valid until completion; the target range includes all pieces.
            OpKind::Read => unsafe { remote.read(target, own, nbytes) },
            // SAFETY: valid until completion; the target range includes all pieces.
            _ => unsafe { remote.write(target, own, nbytes) },
        }?;
        target.address += nbytes as u64;
        if !target.mapped.is_null() {
            target.mapped = target.mapped.wrapping_add(nbytes);
        }
    }
    Ok(())
}
