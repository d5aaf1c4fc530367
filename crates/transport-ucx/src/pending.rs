//! What an origin has in flight, as UCX's callbacks change it.
//!
//! UCX holds plain pointers to what is here, so all of it stays where it is (it is counted by [`Rc`])
//! and is changed through cells alone. Callbacks run while a thread that has the origin's lock is in a
//! call of UCX, so nothing here is touched by two threads at once.
#![allow(unsafe_code)]

use crate::proto::{REPLY, REQUEST, Reply};
use crate::ucp::{UcpRequest, started};
use rushmem_transport::AmoWidth;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use ucx_sys::{
    UCS_OK, Ucp, ucp_am_recv_param_t, ucp_ep_h, ucp_request_param_t, ucs_status_ptr_t, ucs_status_t,
};

/// What all connections of an origin have in flight.
#[derive(Default)]
pub(crate) struct Pending {
    /// Operations of UCX that will call back.
    transfers: Cell<usize>,
    /// Requests without a reply so far.
    unanswered: Cell<usize>,
    /// Some connection broke since this was last taken.
    broke: Cell<bool>,
    slots: RefCell<Vec<Rc<Slot>>>,
    free: RefCell<Vec<u32>>,
}

/// The same for one PE.
pub(crate) struct Connection {
    ucp: &'static Ucp,
    pending: Rc<Pending>,
    transfers: Cell<usize>,
    unanswered: Cell<usize>,
    broken: Cell<Option<ucs_status_t>>,
}

/// An atomic operation in flight: what UCX reads, and where the old value goes.
pub(crate) struct Slot {
    number: u32,
    turn: Cell<u32>,
    /// Null when the slot is free; then the rest means nothing.
    connection: Cell<*const Connection>,
    /// Its end is a reply.
    asked: Cell<bool>,
    fetched: Cell<*mut u8>,
    width: Cell<AmoWidth>,
    header: UnsafeCell<[u8; REQUEST]>,
    /// Operand, and operand or old value, of an operation that UCX carries out.
    words: UnsafeCell<[u64; 2]>,
    /// Puts that travel with the header.
    data: RefCell<Vec<u8>>,
}

fn change(counter: &Cell<usize>, by: isize) {
    counter.set(counter.get().wrapping_add_signed(by));
}

impl Pending {
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    /// Everything that has not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.transfers.get() + self.unanswered.get()
    }

    /// Whether a connection broke since the last call.
    pub(crate) fn take_broke(&self) -> bool {
        self.broke.take()
    }

    /// A free slot for an operation on `connection`, whose old value goes to `fetched` unless that is null.
    pub(crate) fn slot(
        &self,
        connection: &Rc<Connection>,
        fetched: *mut u8,
        width: AmoWidth,
    ) -> Rc<Slot> {
        let free = self.free.borrow_mut().pop();
        let mut slots = self.slots.borrow_mut();
        let number = free.unwrap_or(slots.len() as u32);
        if free.is_none() {
            slots.push(Rc::new(Slot::new(number)));
        }
        let slot = &slots[number as usize];
        slot.connection.set(Rc::as_ptr(connection));
        slot.fetched.set(fetched);
        slot.width.set(width);
        Rc::clone(slot)
    }

    /// A slot's operation ended, or never began.
    fn release(&self, slot: &Slot) {
        slot.connection.set(null());
        slot.asked.set(false);
        slot.fetched.set(null_mut());
        slot.turn.set(slot.turn.get().wrapping_add(1));
        self.free.borrow_mut().push(slot.number);
    }

    /// The reply to a request, or what a peer takes for one.
    fn answer(&self, reply: Reply) {
        let slot = self.slots.borrow().get(reply.slot as usize).cloned();
        let awaited = |slot: &Rc<Slot>| slot.asked.get() && slot.turn.get() == reply.turn;
        let Some(slot) = slot.filter(awaited) else { return };
        // SAFETY: null or a connection, of which an origin keeps every one as long as itself.
        let Some(connection) = (unsafe { slot.connection.get().as_ref() }) else { return };
        slot.write(reply.old);
        change(&self.unanswered, -1);
        change(&connection.unanswered, -1);
        self.release(&slot);
    }

    /// Old values are wanted no more: after a loss nobody keeps the words that they go to.
    pub(crate) fn forget_fetched(&self) {
        for slot in self.slots.borrow().iter() {
            slot.fetched.set(null_mut());
        }
    }
}

impl Connection {
    pub(crate) fn new(ucp: &'static Ucp, pending: &Rc<Pending>) -> Connection {
        let pending = Rc::clone(pending);
        let (transfers, unanswered, broken) = (Cell::new(0), Cell::new(0), Cell::new(None));
        Connection { ucp, pending, transfers, unanswered, broken }
    }

    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.get()
    }

    pub(crate) fn broken(&self) -> Option<ucs_status_t> {
        self.broken.get()
    }

    fn breaks(&self, status: ucs_status_t) {
        if self.broken.get().is_none() {
            self.broken.set(Some(status));
        }
        self.pending.broke.set(true);
    }

    /// Takes note of what a call began whose end calls [`transferred`].
    pub(crate) fn began(&self, result: ucs_status_ptr_t) -> Result<(), ucs_status_t> {
        if started(result)?.is_some() {
            self.count(1);
        }
        Ok(())
    }

    fn count(&self, by: isize) {
        change(&self.transfers, by);
        change(&self.pending.transfers, by);
    }

    /// The request in a slot was sent: its reply will come.
    pub(crate) fn asked(&self, slot: &Slot) {
        slot.asked.set(true);
        change(&self.unanswered, 1);
        change(&self.pending.unanswered, 1);
    }
}

impl Slot {
    fn new(number: u32) -> Slot {
        Slot {
            number,
            turn: Cell::new(0),
            connection: Cell::new(null()),
            asked: Cell::new(false),
            fetched: Cell::new(null_mut()),
            width: Cell::new(AmoWidth::Eight),
            header: UnsafeCell::new([0; REQUEST]),
            words: UnsafeCell::new([0; 2]),
            data: RefCell::default(),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn turn(&self) -> u32 {
        self.turn.get()
    }

    /// Whether the operation that had the slot in this turn has ended.
    pub(crate) fn is_past(&self, turn: u32) -> bool {
        self.turn.get() != turn
    }

    /// Keeps a request's header where UCX can read it until the reply is here.
    pub(crate) fn keep(&self, header: [u8; REQUEST]) -> *const c_void {
        let kept = self.header.get();
        // SAFETY: UCX reads it from now on; what it read before has been answered.
        unsafe { *kept = header };
        kept.cast_const().cast()
    }

    /// The same for a batch of puts, which is empty afterwards: what asks for its reply, the puts, their
    /// bytes.
    pub(crate) fn keep_data(&self, batch: &mut Vec<u8>) -> (*const c_void, *const c_void, usize) {
        let mut header = [0; REQUEST];
        let wanted = Reply { slot: self.number, turn: self.turn.get(), old: 0 };
        header[..REPLY].copy_from_slice(&wanted.encode());
        let mut data = self.data.borrow_mut();
        std::mem::swap(&mut *data, batch);
        batch.clear();
        (self.keep(header), data.as_ptr().cast(), data.len())
    }

    /// The same for the operands of an operation that UCX carries out: the first is read, the second
    /// is replaced by the old value.
    pub(crate) fn keep_words(&self, first: u64, second: u64) -> (*const c_void, *mut c_void) {
        let words = self.words.get().cast::<u64>();
        let width = self.width.get();
        // SAFETY: room for eight bytes that nobody else uses until the operation begins.
        unsafe { width.write(words.cast(), first) };
        let reply = words.wrapping_add(1);
        // SAFETY: as above.
        unsafe { width.write(reply.cast(), second) };
        (words.cast_const().cast(), reply.cast())
    }

    /// Gives the slot back: its operation did not begin.
    pub(crate) fn give_back(&self, pending: &Pending) {
        pending.release(self);
    }

    /// UCX carried the operation out: the old value is in the second word.
    pub(crate) fn fetched(&self, pending: &Pending) {
        let reply = self.words.get().cast::<u64>().wrapping_add(1);
        let old = match self.width.get() {
            // SAFETY: within the words, which UCX is done with.
            AmoWidth::Four => u64::from(unsafe { reply.cast::<u32>().read() }),
            // SAFETY: as above.
            AmoWidth::Eight => unsafe { reply.read() },
        };
        self.write(old);
        pending.release(self);
    }

    fn write(&self, old: u64) {
        let fetched = self.fetched.get();
        if !fetched.is_null() {
            // SAFETY: room for a word of this width until the operation ends, as its caller promised.
            unsafe { self.width.get().write(fetched, old) };
        }
    }
}

/// An operation ended that [`Connection::began`] took note of.
///
/// # Safety
/// `user_data` is a [`Connection`].
pub(crate) unsafe extern "C" fn transferred(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a connection, of which an origin keeps every one as long as its worker.
    let connection = unsafe { &*user_data.cast_const().cast::<Connection>() };
    ended(connection, request, status);
}

/// An atomic operation ended that UCX carried out.
///
/// # Safety
/// `user_data` is a busy [`Slot`].
pub(crate) unsafe extern "C" fn operated(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a slot, which lives as long as what is pending.
    let slot = unsafe { &*user_data.cast_const().cast::<Slot>() };
    // SAFETY: a busy slot has a connection.
    let connection = unsafe { &*slot.connection.get() };
    if status != UCS_OK {
        slot.fetched.set(null_mut());
    }
    slot.fetched(&connection.pending);
    ended(connection, request, status);
}

fn ended(connection: &Connection, request: *mut c_void, status: ucs_status_t) {
    connection.count(-1);
    if status != UCS_OK {
        connection.breaks(status);
    }
    if let Ok(Some(request)) = started(request) {
        UcpRequest::free(request, connection.ucp);
    }
}

/// The connection to a PE broke.
///
/// # Safety
/// `arg` is a [`Connection`].
pub(crate) unsafe extern "C" fn broken(arg: *mut c_void, _: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: a connection, of which an origin keeps every one as long as its worker.
    let connection = unsafe { &*arg.cast_const().cast::<Connection>() };
    connection.breaks(status);
}

/// A reply came.
///
/// # Safety
/// `arg` is a [`Pending`]; the header has as many bytes as is said.
pub(crate) unsafe extern "C" fn replied(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    _: *mut c_void,
    _: usize,
    _: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    if header_length > 0 {
        // SAFETY: UCX's, for the length of this call.
        let header = unsafe { std::slice::from_raw_parts(header.cast::<u8>(), header_length) };
        // SAFETY: what is pending lives as long as the worker that calls.
        let pending = unsafe { &*arg.cast_const().cast::<Pending>() };
        if let Some(reply) = Reply::decode(header) {
            pending.answer(reply);
        }
    }
    UCS_OK
}

/// Parameters of an operation of which a [`Connection`] takes note.
pub(crate) fn noted(connection: &Rc<Connection>) -> ucp_request_param_t {
    crate::ucp::callback(Some(transferred), Rc::as_ptr(connection).cast())
}
