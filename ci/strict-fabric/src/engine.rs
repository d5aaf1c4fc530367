//! What an endpoint does with its operations: when each is carried out, and who learns of it.
//!
//! Messages, and the requests whose targets carry them out, go through the target's inbox; the request itself stays in a slot of
//! the origin's segment until it is done. Where the profile is not `copy`, operations begin when the queue is read, some at a time, in
//! any order that the profile allows, and what is posted is refused now and then. It must never know how an application calls.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::done::{Done, Entry};
use crate::lent::{Contexts, Lent};
use crate::letter::{fill, pieces_of, unpacked};
use crate::memory::{self, is_there, store};
use crate::offer::OP_FLAGS;
use crate::operation::{Kind, Operation, Request};
use crate::order::must_wait;
use crate::pattern::Pattern;
use crate::profile::{Carrier, Profile};
use crate::reach::{Place, Route, of_own};
use crate::segment::{DONE, INLINE, Letter, PIECES, POSTED, SLOTS, Slot, TAKEN};
use crate::table::Table;
use crate::word::Amo;
use libfabric_sys as fi;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Requests that are taken from an inbox at once.
const AT_ONCE: usize = 64;
/// Operations among which the next one to begin is chosen.
const CHOICE: usize = 8;
/// Polls in a row that find nothing new before the peers are checked.
const MAX_IDLE_POLLS: u32 = 4096;

/// An operation that has not begun.
struct Pending {
    operation: Operation,
    lent: Lent,
    /// Its bytes, where they are no longer the application's.
    bytes: Option<Box<[u8]>>,
    /// It may have its entry before it has reached its target.
    early: bool,
}

/// A buffer that waits for a message.
struct Receive {
    piece: fi::iovec,
    context: usize,
    lent: Lent,
}

/// A request that its target has, or will find.
struct Sent {
    slot: u32,
    operation: Operation,
    lent: Lent,
}

/// One endpoint at work.
pub(crate) struct Engine {
    domain: Arc<Domain>,
    profile: &'static Profile,
    number: u32,
    table: Arc<Table>,
    selective: bool,
    tx_size: usize,
    routes: Vec<Option<Route>>,
    pending: VecDeque<Pending>,
    /// Slots that nobody has.
    slots: Vec<u32>,
    sent: Vec<Sent>,
    receives: VecDeque<Receive>,
    /// Messages for which there is no buffer.
    waiting: VecDeque<Letter>,
    contexts: Contexts,
    pattern: Pattern,
    /// Polls since the last one that found something completed.
    idle_polls: u32,
}

// SAFETY: addresses of the application's, which it lends until an operation is over.
unsafe impl Send for Engine {}

const AGAIN: isize = -(fi::FI_EAGAIN as isize);

impl Engine {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        number: u32,
        table: Arc<Table>,
        selective: bool,
        tx_size: usize,
    ) -> Engine {
        // What a closed endpoint of this number has sent may not be there yet.
        let is_free = |slot: &u32| {
            let slot = &domain.segment.slots[number as usize][*slot as usize];
            ![POSTED, TAKEN].contains(&slot.state.load(Ordering::Acquire))
        };
        Engine {
            profile: domain.profile,
            number,
            table,
            selective,
            tx_size: tx_size.min(SLOTS),
            routes: Vec::new(),
            pending: VecDeque::new(),
            slots: (0..SLOTS as u32).rev().filter(is_free).collect(),
            sent: Vec::new(),
            receives: VecDeque::new(),
            waiting: VecDeque::new(),
            contexts: Contexts::default(),
            pattern: Pattern::new(u64::from(number) + 1),
            idle_polls: 0,
            domain: Arc::clone(domain),
        }
    }

    /// Takes a request; libfabric's number.
    #[inline]
    pub(crate) fn post(&mut self, request: &Request<'_>, done: &mut Done) -> isize {
        let completes =
            !request.silent && (!self.selective || request.flags & fi::FI_COMPLETION != 0);
        let under_way = self.sent.len() + self.pending.len();
        if under_way >= self.tx_size {
            return AGAIN;
        }
        if completes && done.room() <= under_way {
            return self.is_full();
        }
        let peer = self.table.index(request.to);
        if !self.profile.at_once {
            return self.post_later(request, peer, completes);
        }
        if request.kind != Kind::Send {
            self.carry_out_now(request, peer, completes, done);
            return 0;
        }
        let operation = self.taken(request, peer, completes);
        let packed = request.flags & fi::FI_INJECT != 0;
        match self.hand_over(&operation, packed) {
            Some(slot) => {
                self.sent.push(Sent { slot, operation, lent: Lent::default() });
                0
            }
            None => AGAIN,
        }
    }

    /// There is no room for one more entry in the queue.
    #[cold]
    fn is_full(&self) -> isize {
        if self.profile.resource_mgmt == fi::FI_RM_DISABLED {
            self.domain.broken("FI_RM_DISABLED", "the completion queue may overrun");
        }
        AGAIN
    }

    fn taken(&self, request: &Request<'_>, peer: usize, completes: bool) -> Operation {
        let &Request { kind, address, key, context, amo, .. } = request;
        let (nbytes, n_pieces) = (request.nbytes(), request.pieces.len());
        let mut pieces = [fi::iovec { iov_base: null_mut(), iov_len: 0 }; PIECES];
        pieces[..n_pieces].copy_from_slice(request.pieces);
        let context = context.expose_provenance();
        Operation { kind, pieces, n_pieces, peer, address, key, nbytes, context, amo, completes }
    }

    /// Takes a request that begins some time later.
    fn post_later(&mut self, request: &Request<'_>, peer: usize, completes: bool) -> isize {
        let (domain, profile) = (Arc::clone(&self.domain), self.profile);
        self.check(request);
        if self.pattern.once_in(profile.refuses_one_of) {
            return AGAIN;
        }
        let mut operation = self.taken(request, peer, completes);
        if profile.asks(fi::FI_MR_RAW) && request.kind != Kind::Send {
            let Some(key) = domain.mapped.key(request.key) else {
                domain.broken("FI_MR_RAW", "an operation names a key that is not mapped")
            };
            operation.key = key;
        }
        let injects = request.flags & fi::FI_INJECT != 0;
        let kind = operation.kind;
        let mut bytes = None;
        let mut lent = Lent::default();
        if injects {
            bytes = Some(own_bytes(&mut operation));
        } else {
            let access = (request.descs, kind.own_access());
            lent = Lent::new(&domain, self.number, operation.pieces(), access);
            if kind.is_source() {
                lent = lent.of_source(operation.pieces());
            }
        }
        if completes {
            lent = lent.with(&domain, &mut self.contexts, operation.context);
        }
        let early = kind.is_source() && request.flags & fi::FI_DELIVERY_COMPLETE == 0;
        self.pending.push_back(Pending { operation, lent, bytes, early });
        0
    }

    /// Whether a request is one that the profile takes.
    fn check(&self, request: &Request<'_>) {
        let (domain, profile, nbytes) = (&self.domain, self.profile, request.nbytes());
        if request.flags & !OP_FLAGS != 0 {
            domain.broken("flags", format!("an operation has unknown flags {:#x}", request.flags));
        }
        if request.flags & fi::FI_INJECT != 0 && nbytes > profile.inject {
            let most = profile.inject;
            domain.broken("inject_size", format!("{nbytes} bytes are injected, not {most}"));
        }
        if nbytes > profile.max_message {
            let most = profile.max_message;
            domain.broken("max_msg_size", format!("an operation has {nbytes} bytes, not {most}"));
        }
        if request.amo.is_none() && request.pieces.len() > profile.iov_limit {
            let n = request.pieces.len();
            domain.broken("iov_limit", format!("an operation has {n} pieces"));
        }
    }

    /// The way to a peer.
    #[inline]
    fn route(&mut self, peer: usize) -> &mut Route {
        if self.routes.get(peer).is_none_or(Option::is_none) {
            self.find(peer);
        }
        match &mut self.routes[peer] {
            Some(route) => route,
            None => unreachable!("found above"),
        }
    }

    #[cold]
    fn find(&mut self, peer: usize) {
        let found = self.table.peer(peer);
        if self.routes.len() <= peer {
            self.routes.resize_with(peer + 1, || None);
        }
        self.routes[peer] = Some(Route::new(found));
    }

    /// Moves the data of remote memory access as a device does, and tells of it.
    #[inline]
    fn carry_out_now(
        &mut self,
        request: &Request<'_>,
        peer: usize,
        completes: bool,
        done: &mut Done,
    ) {
        let &Request { kind, pieces, address, key, context, amo, .. } = request;
        let (profile, nbytes) = (self.profile, request.nbytes());
        let route = self.route(peer);
        let moved = route
            .place(profile, key, address, (nbytes, kind.access()))
            .and_then(|place| moved(route, place, kind, pieces, amo.as_ref()));
        let context = context.expose_provenance();
        let entry = Entry { context, flags: kind.entry_flags(), nbytes };
        match moved {
            Ok(()) if completes => done.push(entry),
            Ok(()) => {}
            Err(error) => done.fail(entry, error),
        }
    }

    /// Gives a request to its target's inbox; where it is written down, if there was room. Its bytes go along where they fit and are
    /// `packed`.
    fn hand_over(&mut self, operation: &Operation, packed: bool) -> Option<u32> {
        let &index = self.slots.last()?;
        let domain = Arc::clone(&self.domain);
        let slot = &domain.segment.slots[self.number as usize][index as usize];
        fill(slot, operation, packed);
        slot.state.store(POSTED, Ordering::Release);
        let (pid, fd, endpoint) = (domain.pid, domain.fd(), self.number);
        let peer = Arc::clone(&self.route(operation.peer).peer);
        let inbox = &peer.segment.inboxes[peer.endpoint as usize];
        if !inbox.push(Letter { pid, fd, endpoint, slot: index }) {
            slot.state.store(DONE, Ordering::Relaxed);
            return None;
        }
        self.slots.pop()
    }

    /// Offers a buffer; libfabric's number.
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
        let mut lent = Lent::default();
        if !self.profile.at_once {
            if self.pattern.once_in(self.profile.refuses_one_of) {
                return AGAIN;
            }
            let (domain, pieces) = (&self.domain, std::slice::from_ref(piece));
            lent = Lent::new(domain, self.number, pieces, (&[desc], fi::FI_RECV));
            lent = lent.with(domain, &mut self.contexts, context);
        }
        self.receives.push_back(Receive { piece: *piece, context, lent });
        0
    }

    /// Does what there is to do.
    #[inline]
    pub(crate) fn work(&mut self, done: &mut Done) {
        if !self.pending.is_empty() {
            for _ in 0..self.some(CHOICE) {
                self.begin_some(done);
            }
        }
        if !self.sent.is_empty() {
            self.collect(done);
        }
        let most = match self.profile.at_once {
            true => AT_ONCE,
            false => self.some(AT_ONCE),
        };
        let domain = Arc::clone(&self.domain);
        let inbox = &domain.segment.inboxes[self.number as usize];
        for _ in 0..most {
            let Some(letter) = inbox.pop() else { break };
            self.serve(letter);
        }
        while !self.waiting.is_empty() && !self.receives.is_empty() && done.room() > 0 {
            self.deliver(done);
        }
    }

    /// How much is done this time: once in four times nothing.
    fn some(&mut self, most: usize) -> usize {
        if self.pattern.once_in(4) { 0 } else { 1 + self.pattern.below(most as u32) as usize }
    }

    /// Begins one of the operations that may begin.
    fn begin_some(&mut self, done: &mut Done) {
        let profile = self.profile;
        let what = |pending: &Pending| (pending.operation.kind, pending.operation.nbytes);
        let may_begin = |&i: &usize| {
            let later = &self.pending[i];
            !self.pending.range(..i).any(|earlier| {
                earlier.operation.peer == later.operation.peer
                    && must_wait(profile, what(later), what(earlier))
            })
        };
        let some = 0..self.pending.len().min(CHOICE);
        let free: Vec<usize> = some.filter(may_begin).collect();
        if free.is_empty() {
            return;
        }
        let chosen = free[self.pattern.below(free.len() as u32) as usize];
        let ends_early = self.pattern.once_in(2);
        let pending = &mut self.pending[chosen];
        if pending.early
            && pending.operation.completes
            && pending.operation.nbytes <= INLINE
            && ends_early
        {
            // It has left the application's memory, no more.
            pending.lent.is_read(&self.domain, pending.operation.pieces());
            if pending.bytes.is_none() {
                pending.bytes = Some(own_bytes(&mut pending.operation));
            }
            pending.lent.give_back(&self.domain, &mut self.contexts);
            pending.operation.completes = false;
            done.push(pending.operation.entry());
            return;
        }
        if let Some(pending) = self.pending.remove(chosen)
            && let Some(pending) = self.begin(pending, done)
        {
            self.pending.insert(chosen, pending);
        }
    }

    /// Carries an operation out, or hands it over; gives it back where there is no room.
    fn begin(&mut self, mut pending: Pending, done: &mut Done) -> Option<Pending> {
        let Pending { operation, lent, bytes, .. } = &mut pending;
        if bytes.is_none() {
            lent.is_read(&self.domain, operation.pieces());
        }
        if self.profile.carrier == Carrier::Target || operation.kind == Kind::Send {
            let is_own = bytes.is_some();
            let Some(slot) = self.hand_over(operation, is_own) else { return Some(pending) };
            let Pending { operation, lent, .. } = pending;
            self.sent.push(Sent { slot, operation, lent });
            return None;
        }
        let (profile, route) = (self.profile, self.route(operation.peer));
        let what = (operation.nbytes, operation.kind.access());
        let moved =
            route.place(profile, operation.key, operation.address, what).and_then(|place| {
                moved(route, place, operation.kind, operation.pieces(), operation.amo.as_ref())
            });
        lent.give_back(&self.domain, &mut self.contexts);
        match moved {
            Err(error) => done.fail(operation.entry(), error),
            Ok(()) if operation.completes => done.push(operation.entry()),
            Ok(()) => {}
        }
        None
    }

    /// Learns what became of what was sent.
    fn collect(&mut self, done: &mut Done) {
        let (domain, slots, contexts) =
            (Arc::clone(&self.domain), &mut self.slots, &mut self.contexts);
        let of_own = &domain.segment.slots[self.number as usize];
        let before = self.sent.len();
        self.sent.retain_mut(|Sent { slot: index, operation, lent }| {
            let slot = &of_own[*index as usize];
            if slot.state.load(Ordering::Acquire) != DONE {
                return true;
            }
            slots.push(*index);
            lent.give_back(&domain, contexts);
            let error = slot.error.load(Ordering::Relaxed) as i32;
            if error != 0 {
                done.fail(operation.entry(), error);
                return false;
            }
            if let (Kind::Fetch, Some(amo), Some(piece)) =
                (operation.kind, operation.amo, operation.pieces().last())
            {
                let old = slot.old.load(Ordering::Relaxed);
                // SAFETY: lent until the operation is over, with room for a word of this width.
                unsafe { memory::copy(piece.iov_base.cast(), (&raw const old).cast(), amo.width) };
            }
            if operation.completes {
                done.push(operation.entry());
            }
            false
        });
        self.idle_polls = if self.sent.len() < before { 0 } else { self.idle_polls + 1 };
        if self.idle_polls >= MAX_IDLE_POLLS {
            self.idle_polls = 0;
            self.miss(done);
        }
    }

    /// Gives up what was sent to processes that have ended.
    #[cold]
    fn miss(&mut self, done: &mut Done) {
        let pids: Vec<u32> = self.routes.iter().flatten().map(|route| route.peer.pid).collect();
        if pids.into_iter().all(is_there) {
            return;
        }
        let (sent, domain) = (std::mem::take(&mut self.sent), Arc::clone(&self.domain));
        for mut one in sent {
            let pid = self.route(one.operation.peer).peer.pid;
            if is_there(pid) {
                self.sent.push(one);
                continue;
            }
            one.lent.give_back(&domain, &mut self.contexts);
            self.slots.push(one.slot);
            done.fail(one.operation.entry(), fi::FI_ECONNRESET);
        }
    }

    /// Does what a peer asks for.
    fn serve(&mut self, letter: Letter) {
        let Ok(segment) = self.domain.segment_of(letter.pid, letter.fd) else { return };
        let slot = &segment.slots[letter.endpoint as usize][letter.slot as usize];
        match Kind::from_number(slot.kind.load(Ordering::Relaxed)) {
            Some(Kind::Send) => self.waiting.push_back(letter),
            Some(kind) => {
                slot.state.store(TAKEN, Ordering::Relaxed);
                let error = self.carried_out(kind, slot, letter.pid).err().unwrap_or(0);
                slot.error.store(error as u32, Ordering::Relaxed);
                slot.state.store(DONE, Ordering::Release);
            }
            None => {}
        }
    }

    /// Carries a peer's request out on own memory.
    fn carried_out(&self, kind: Kind, slot: &Slot, pid: u32) -> Result<(), i32> {
        let order = Ordering::Relaxed;
        let (key, address) = (slot.key.load(order), slot.address.load(order));
        let what = (slot.nbytes.load(order) as usize, kind.access());
        let own = of_own(self.profile, &self.domain.segment, self.number, key, address, what)?;
        match kind {
            Kind::Write => {
                // SAFETY: registered memory of this process's, with so many bytes.
                unsafe { unpacked(slot, pid, own, what.0) }
            }
            Kind::Read => {
                let mut from = own;
                for (there, nbytes) in pieces_of(slot) {
                    // SAFETY: registered memory of this process's.
                    let stored = unsafe { store(pid, there, from, nbytes) };
                    stored.map_err(|_| fi::FI_ECONNRESET)?;
                    from = from.wrapping_add(nbytes);
                }
                Ok(())
            }
            Kind::Update | Kind::Fetch => {
                let (operand, condition) = (slot.operand.load(order), slot.condition.load(order));
                let amo = Amo { op: slot.op.load(order), width: what.0, operand, condition };
                if !own.addr().is_multiple_of(amo.width) {
                    self.domain.broken("alignment", "an atomic operation is on no aligned word");
                }
                // SAFETY: registered memory of this process's, aligned as above.
                slot.old.store(unsafe { amo.carry_out(own) }, order);
                Ok(())
            }
            Kind::Send => Ok(()),
        }
    }

    /// Puts the first message that waits into the first buffer.
    fn deliver(&mut self, done: &mut Done) {
        let (Some(letter), Some(mut receive)) =
            (self.waiting.pop_front(), self.receives.pop_front())
        else {
            return;
        };
        let Ok(segment) = self.domain.segment_of(letter.pid, letter.fd) else { return };
        let slot = &segment.slots[letter.endpoint as usize][letter.slot as usize];
        let sent = slot.nbytes.load(Ordering::Relaxed) as usize;
        let nbytes = sent.min(receive.piece.iov_len);
        // SAFETY: a buffer that was offered, with so many bytes.
        let taken = unsafe { unpacked(slot, letter.pid, receive.piece.iov_base.cast(), nbytes) };
        slot.error.store(0, Ordering::Relaxed);
        slot.state.store(DONE, Ordering::Release);
        if taken.is_err() {
            // A sender that is gone has sent nothing.
            return self.receives.push_front(receive);
        }
        receive.lent.give_back(&self.domain, &mut self.contexts);
        let entry = Entry { context: receive.context, flags: fi::FI_MSG | fi::FI_RECV, nbytes };
        match sent > nbytes {
            true => done.fail(entry, fi::FI_ETRUNC as i32),
            false => done.push(entry),
        }
    }

    /// What was told to be over reaches its target although the endpoint is closed.
    pub(crate) fn leave(&mut self, done: &mut Done) {
        for receive in &mut self.receives {
            receive.lent.give_back(&self.domain, &mut self.contexts);
        }
        while let Some(mut pending) = self.pending.pop_front() {
            match pending.bytes.is_some() && !pending.operation.completes {
                true => drop(self.begin(pending, done)),
                false => pending.lent.give_back(&self.domain, &mut self.contexts),
            }
        }
        for sent in &mut self.sent {
            sent.lent.give_back(&self.domain, &mut self.contexts);
        }
    }
}

/// Copies an operation's bytes, which it has from now on.
fn own_bytes(operation: &mut Operation) -> Box<[u8]> {
    let mut bytes = vec![0u8; operation.nbytes.max(1)].into_boxed_slice();
    let mut at = 0;
    for piece in operation.pieces() {
        let room = &mut bytes[at..at + piece.iov_len];
        // SAFETY: lent by the application.
        unsafe { memory::copy(room.as_mut_ptr(), piece.iov_base.cast(), piece.iov_len) };
        at += piece.iov_len;
    }
    operation.pieces[0] = fi::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: at };
    operation.n_pieces = 1;
    bytes
}

/// Moves an operation's data between own memory and a place.
#[inline]
fn moved(
    route: &Route,
    mut place: Place,
    kind: Kind,
    pieces: &[fi::iovec],
    amo: Option<&Amo>,
) -> Result<(), i32> {
    if let Some(amo) = amo {
        let old = route.update(place, amo)?;
        if let (Kind::Fetch, Some(piece)) = (kind, pieces.last()) {
            // SAFETY: lent until the operation is over, with room for a word of this width.
            unsafe { memory::copy(piece.iov_base.cast(), (&raw const old).cast(), amo.width) };
        }
        return Ok(());
    }
    for piece in pieces {
        let (own, nbytes) = (piece.iov_base.cast::<u8>(), piece.iov_len);
        match kind {
            // SAFETY: lent until the operation is over; all pieces together are in the place.
            Kind::Read => unsafe { route.read(place, own, nbytes) },
            // SAFETY: as above.
            _ => unsafe { route.write(place, own, nbytes) },
        }?;
        place.address += nbytes as u64;
        if !place.here.is_null() {
            place.here = place.here.wrapping_add(nbytes);
        }
    }
    Ok(())
}
