//! What an endpoint does with its operations: when each is carried out, and who learns of it.
//!
//! Messages, and the requests whose targets carry them out, go through the target's inbox; the request itself stays in a slot of
//! the origin's segment until it is done. It must never know how an application calls.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::done::{Done, Entry};
use crate::memory::{self, fetch, store};
use crate::profile::Profile;
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

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Write = 1,
    Read,
    /// An atomic operation.
    Update,
    /// One whose old value comes back.
    Fetch,
    Send,
}

impl Kind {
    fn from_number(number: u32) -> Option<Kind> {
        use Kind::{Fetch, Read, Send, Update, Write};
        [Write, Read, Update, Fetch, Send].into_iter().find(|kind| *kind as u32 == number)
    }

    /// What a target must have allowed.
    fn access(self) -> u64 {
        match self {
            Kind::Write | Kind::Update => fi::FI_REMOTE_WRITE,
            Kind::Read => fi::FI_REMOTE_READ,
            Kind::Fetch => fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE,
            Kind::Send => 0,
        }
    }

    /// What its entry says.
    fn entry_flags(self) -> u64 {
        match self {
            Kind::Write => fi::FI_RMA | fi::FI_WRITE,
            Kind::Read => fi::FI_RMA | fi::FI_READ,
            Kind::Update => fi::FI_ATOMIC | fi::FI_WRITE,
            Kind::Fetch => fi::FI_ATOMIC | fi::FI_READ,
            Kind::Send => fi::FI_MSG | fi::FI_SEND,
        }
    }
}

/// What an application asks for.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) kind: Kind,
    /// Of an atomic operation: all the memory that it uses, that of the old value last.
    pub(crate) pieces: &'a [fi::iovec],
    #[expect(dead_code, reason = "the strict profiles look at them")]
    pub(crate) descs: &'a [*mut c_void],
    pub(crate) to: fi::fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) amo: Option<Amo>,
    /// It never has an entry.
    pub(crate) silent: bool,
}

impl Request<'_> {
    fn nbytes(&self) -> usize {
        match &self.amo {
            Some(amo) => amo.width,
            None => self.pieces.iter().map(|piece| piece.iov_len).sum(),
        }
    }
}

/// A request that was taken.
#[derive(Clone, Copy)]
struct Operation {
    kind: Kind,
    pieces: [fi::iovec; PIECES],
    n_pieces: usize,
    /// Its place among the peers.
    peer: usize,
    address: u64,
    key: u64,
    nbytes: usize,
    context: usize,
    amo: Option<Amo>,
    /// It has an entry when it is over.
    completes: bool,
}

impl Operation {
    fn pieces(&self) -> &[fi::iovec] {
        &self.pieces[..self.n_pieces]
    }

    fn entry(&self) -> Entry {
        Entry { context: self.context, flags: self.kind.entry_flags(), nbytes: self.nbytes }
    }
}

/// A buffer that waits for a message.
struct Receive {
    piece: fi::iovec,
    context: usize,
}

/// A request that its target has, or will find.
struct Sent {
    slot: u32,
    operation: Operation,
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
    /// Slots that nobody has.
    slots: Vec<u32>,
    sent: Vec<Sent>,
    receives: VecDeque<Receive>,
    /// Messages for which there is no buffer.
    waiting: VecDeque<Letter>,
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
            slots: (0..SLOTS as u32).rev().filter(is_free).collect(),
            sent: Vec::new(),
            receives: VecDeque::new(),
            waiting: VecDeque::new(),
            domain: Arc::clone(domain),
        }
    }

    /// Takes a request; libfabric's number.
    #[inline]
    pub(crate) fn post(&mut self, request: &Request<'_>, done: &mut Done) -> isize {
        let completes =
            !request.silent && (!self.selective || request.flags & fi::FI_COMPLETION != 0);
        if self.sent.len() >= self.tx_size || (completes && done.room() <= self.sent.len()) {
            return AGAIN;
        }
        let peer = self.table.index(request.to);
        if request.kind != Kind::Send {
            self.carry_out(request, peer, completes, done);
            return 0;
        }
        let operation = self.taken(request, peer, completes);
        if self.hand_over(operation, request.flags & fi::FI_INJECT != 0) { 0 } else { AGAIN }
    }

    fn taken(&self, request: &Request<'_>, peer: usize, completes: bool) -> Operation {
        let &Request { kind, address, key, context, amo, .. } = request;
        let (nbytes, n_pieces) = (request.nbytes(), request.pieces.len());
        let mut pieces = [fi::iovec { iov_base: null_mut(), iov_len: 0 }; PIECES];
        if n_pieces > PIECES.min(self.profile.iov_limit.max(3)) {
            self.domain.broken("iov_limit", format!("an operation has {n_pieces} pieces"));
        }
        pieces[..n_pieces].copy_from_slice(request.pieces);
        let context = context.expose_provenance();
        Operation { kind, pieces, n_pieces, peer, address, key, nbytes, context, amo, completes }
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

    /// Moves the data of remote memory access, as a device does.
    #[inline]
    fn carry_out(&mut self, request: &Request<'_>, peer: usize, completes: bool, done: &mut Done) {
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

    /// Gives a request to its target's inbox; whether there was room. Its bytes go along where they fit and are `packed`.
    fn hand_over(&mut self, operation: Operation, packed: bool) -> bool {
        let Some(&index) = self.slots.last() else { return false };
        let domain = Arc::clone(&self.domain);
        let slot = &domain.segment.slots[self.number as usize][index as usize];
        fill(slot, &operation, packed);
        slot.state.store(POSTED, Ordering::Release);
        let (pid, fd, endpoint) = (domain.pid, domain.fd(), self.number);
        let peer = Arc::clone(&self.route(operation.peer).peer);
        let inbox = &peer.segment.inboxes[peer.endpoint as usize];
        if !inbox.push(Letter { pid, fd, endpoint, slot: index }) {
            slot.state.store(DONE, Ordering::Relaxed);
            return false;
        }
        self.slots.pop();
        self.sent.push(Sent { slot: index, operation });
        true
    }

    /// Offers a buffer; libfabric's number.
    pub(crate) fn receive(
        &mut self,
        piece: &fi::iovec,
        _desc: *mut c_void,
        context: *mut c_void,
    ) -> isize {
        if self.receives.len() >= self.profile.rx_size {
            return AGAIN;
        }
        self.receives.push_back(Receive { piece: *piece, context: context.expose_provenance() });
        0
    }

    /// Does what there is to do.
    #[inline]
    pub(crate) fn work(&mut self, done: &mut Done) {
        if !self.sent.is_empty() {
            self.collect(done);
        }
        let domain = Arc::clone(&self.domain);
        let inbox = &domain.segment.inboxes[self.number as usize];
        for _ in 0..AT_ONCE {
            let Some(letter) = inbox.pop() else { break };
            self.serve(letter);
        }
        while !self.waiting.is_empty() && !self.receives.is_empty() && done.room() > 0 {
            self.deliver(done);
        }
    }

    /// Learns what became of what was sent.
    fn collect(&mut self, done: &mut Done) {
        let (domain, slots) = (Arc::clone(&self.domain), &mut self.slots);
        let of_own = &domain.segment.slots[self.number as usize];
        self.sent.retain(|Sent { slot: index, operation }| {
            let slot = &of_own[*index as usize];
            if slot.state.load(Ordering::Acquire) != DONE {
                return true;
            }
            slots.push(*index);
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
        let gone = |_| fi::FI_ECONNRESET;
        match kind {
            Kind::Write => {
                // SAFETY: registered memory of this process's, with so many bytes.
                unsafe { unpacked(slot, pid, own, what.0) }
            }
            Kind::Read => {
                let mut from = own;
                for (there, nbytes) in pieces_of(slot) {
                    // SAFETY: registered memory of this process's.
                    unsafe { store(pid, there, from, nbytes) }.map_err(gone)?;
                    from = from.wrapping_add(nbytes);
                }
                Ok(())
            }
            Kind::Update | Kind::Fetch => {
                let [op, operand, condition] = [
                    u64::from(slot.op.load(order)),
                    slot.operand.load(order),
                    slot.condition.load(order),
                ];
                let amo = Amo { op: op as u32, width: what.0, operand, condition };
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
        let (Some(letter), Some(receive)) = (self.waiting.pop_front(), self.receives.pop_front())
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
        let entry = Entry { context: receive.context, flags: fi::FI_MSG | fi::FI_RECV, nbytes };
        match taken {
            Ok(()) if sent > nbytes => done.fail(entry, fi::FI_ETRUNC as i32),
            Ok(()) => done.push(entry),
            // A sender that is gone has sent nothing.
            Err(_) => self.receives.push_front(receive),
        }
    }
}

/// Writes an operation down for its target.
fn fill(slot: &Slot, operation: &Operation, packed: bool) {
    let order = Ordering::Relaxed;
    slot.kind.store(operation.kind as u32, order);
    slot.address.store(operation.address, order);
    slot.key.store(operation.key, order);
    slot.nbytes.store(operation.nbytes as u64, order);
    if let Some(amo) = &operation.amo {
        slot.op.store(amo.op, order);
        slot.operand.store(amo.operand, order);
        slot.condition.store(amo.condition, order);
    }
    if packed && operation.nbytes <= INLINE {
        let mut bytes = [0u8; INLINE];
        let mut at = 0;
        for piece in operation.pieces() {
            let (to, from) = (bytes[at..].as_mut_ptr(), piece.iov_base.cast::<u8>());
            // SAFETY: lent by the application; all pieces together are no longer than the array.
            unsafe { memory::copy(to, from, piece.iov_len) };
            at += piece.iov_len;
        }
        slot.pack(&bytes[..at]);
        slot.n_pieces.store(0, order);
        return;
    }
    for (place, piece) in slot.pieces.iter().zip(operation.pieces()) {
        place[0].store(piece.iov_base.expose_provenance() as u64, order);
        place[1].store(piece.iov_len as u64, order);
    }
    slot.n_pieces.store(operation.n_pieces as u32, order);
}

/// The pieces of a peer's memory that a request is about.
fn pieces_of(slot: &Slot) -> impl Iterator<Item = (u64, usize)> {
    let n = slot.n_pieces.load(Ordering::Relaxed) as usize;
    let word = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Relaxed);
    slot.pieces.iter().take(n).map(move |[at, nbytes]| (word(at), word(nbytes) as usize))
}

/// Gets the bytes of a request.
///
/// # Safety
/// `to` is valid for writes of so many bytes.
unsafe fn unpacked(slot: &Slot, pid: u32, to: *mut u8, nbytes: usize) -> Result<(), i32> {
    if slot.n_pieces.load(Ordering::Relaxed) == 0 {
        let bytes = slot.unpack();
        // SAFETY: by contract, and no more bytes go along.
        unsafe { memory::copy(to, bytes.as_ptr(), nbytes.min(INLINE)) };
        return Ok(());
    }
    let mut done = 0;
    for (there, length) in pieces_of(slot) {
        let length = length.min(nbytes - done);
        // SAFETY: by contract.
        let fetched = unsafe { fetch(pid, there, to.wrapping_add(done), length) };
        fetched.map_err(|_| fi::FI_ECONNRESET)?;
        done += length;
    }
    Ok(())
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
