//! What an origin has in flight, as UCX's callbacks change it.
//!
//! UCX holds plain pointers to what is here, so all of it stays where it is (it is counted by
//! [`Rc`]) and is changed through cells alone. Callbacks run while a thread that has the origin's
//! lock is in a call of UCX, so nothing here is touched by two threads at once.
#![allow(unsafe_code)]

use crate::ucp::{ReceivedData, ReceivedMessage, UcpRequest, started};
use rushmem_transport::kit::acks::AckCounts;
use rushmem_transport::kit::gather::{Answers, Gather};
use rushmem_transport::kit::message::{REQUEST, Reply};
use rushmem_transport::kit::violation::{RefusedMessage, Violation};
use rushmem_transport::{AmoWidth, LocalBuf, Pe};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::Arc;
use ucx_sys::{
    UCS_OK, Ucp, ucp_am_recv_param_t, ucp_ep_h, ucp_request_param_t, ucs_status_ptr_t, ucs_status_t,
};

/// What all connections of an origin have in flight.
pub(crate) struct Pending {
    /// The number of requests that the targets have acknowledged.
    acks: Arc<AckCounts>,
    /// Operations of UCX that will call back.
    transfers: Cell<usize>,
    /// Old values that have not come so far.
    due: Cell<usize>,
    /// Some connection broke since this was last taken.
    broke: Cell<bool>,
    /// The first message that was no reply to a request, since this was last taken.
    refused: RefCell<Option<RefusedMessage>>,
    slots: RefCell<Vec<Rc<PendingSlot>>>,
    free: RefCell<Vec<u32>>,
}

/// The same for one PE.
pub(crate) struct PePending {
    ucp: &'static Ucp,
    pending: Rc<Pending>,
    transfers: Cell<usize>,
    due: Cell<usize>,
    broken: Cell<Option<ucs_status_t>>,
}

/// A request, or an atomic operation in flight: what UCX reads, and where the old value goes.
pub(crate) struct PendingSlot {
    number: u32,
    turn: Cell<u32>,
    /// Null when the slot is free; then the rest means nothing.
    connection: Cell<*const PePending>,
    /// UCX may still read what is kept here.
    sending: Cell<bool>,
    /// The old value has not come so far.
    due: Cell<bool>,
    fetched: Cell<*mut u8>,
    width: Cell<AmoWidth>,
    header: UnsafeCell<[u8; REQUEST]>,
    /// Operand, and operand or old value, of an operation that UCX carries out.
    words: UnsafeCell<[u64; 2]>,
    /// The operations of a batch, which travel with the header.
    batch: RefCell<Vec<u8>>,
    /// Where the answers to them go.
    answers: RefCell<Answers>,
}

fn change(counter: &Cell<usize>, by: isize) {
    counter.set(counter.get().wrapping_add_signed(by));
}

impl Pending {
    pub(crate) fn new(acks: Arc<AckCounts>) -> Pending {
        Pending {
            acks,
            transfers: Cell::new(0),
            due: Cell::new(0),
            broke: Cell::new(false),
            refused: RefCell::default(),
            slots: RefCell::default(),
            free: RefCell::default(),
        }
    }

    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    /// Everything that has not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.transfers.get() + self.due.get()
    }

    /// Returns true if a connection broke since the last call.
    pub(crate) fn take_broke(&self) -> bool {
        self.broke.take()
    }

    /// A free slot for an operation on `connection`, whose old value goes to `fetched` unless that
    /// is null.
    pub(crate) fn slot(
        &self,
        connection: &Rc<PePending>,
        fetched: *mut u8,
        width: AmoWidth,
    ) -> Rc<PendingSlot> {
        let free = self.free.borrow_mut().pop();
        let mut slots = self.slots.borrow_mut();
        let number = free.unwrap_or(slots.len() as u32);
        if free.is_none() {
            slots.push(Rc::new(PendingSlot::new(number)));
        }
        let slot = &slots[number as usize];
        slot.connection.set(Rc::as_ptr(connection));
        slot.fetched.set(fetched);
        slot.width.set(width);
        Rc::clone(slot)
    }

    /// A slot's operation ended, or never began.
    fn release(&self, slot: &PendingSlot) {
        slot.connection.set(null());
        slot.sending.set(false);
        slot.due.set(false);
        slot.fetched.set(null_mut());
        slot.answers.borrow_mut().forget();
        slot.turn.set(slot.turn.get().wrapping_add(1));
        self.free.borrow_mut().push(slot.number);
    }

    /// The slot is free once UCX has sent what it keeps, and no old value is due there.
    fn release_if_over(&self, slot: &PendingSlot) {
        if !slot.sending.get() && !slot.due.get() {
            self.release(slot);
        }
    }

    /// A reply, with the answers to a batch if there are any.
    fn answer(&self, reply: Reply, answers: &[u8]) -> Result<(), Violation> {
        self.acks.acknowledge(reply.pe, reply.ack.count)?;
        let Some((slot, old)) = reply.old else { return Ok(()) };
        let slot = self.slots.borrow().get(slot as usize).cloned();
        let slot = slot.filter(|slot| slot.due.get()).ok_or(Violation::Unrequested)?;
        // SAFETY: null or a connection, of which an origin keeps every one as long as itself.
        let connection = unsafe { slot.connection.get().as_ref() };
        let connection = connection.ok_or(Violation::Unrequested)?;
        slot.write(old);
        // SAFETY: what was to be fetched is valid until that has ended, as its caller promised.
        let stored = unsafe { slot.answers.borrow_mut().store(answers) };
        slot.due.set(false);
        change(&self.due, -1);
        change(&connection.due, -1);
        self.release_if_over(&slot);
        stored
    }

    /// The first message that was no reply to a request, since the last call.
    pub(crate) fn take_refused(&self) -> Option<RefusedMessage> {
        self.refused.take()
    }

    /// Frees the memory of batches, all of which were sent.
    pub(crate) fn free_batches(&self) {
        for slot in self.slots.borrow().iter().filter(|slot| !slot.sending.get()) {
            slot.batch.take();
        }
    }

    /// Old values are wanted no more: after a loss callers do not keep the words that they go to.
    pub(crate) fn forget_fetched(&self) {
        for slot in self.slots.borrow().iter() {
            slot.fetched.set(null_mut());
            slot.answers.borrow_mut().forget();
        }
    }
}

impl PePending {
    pub(crate) fn new(ucp: &'static Ucp, pending: &Rc<Pending>) -> PePending {
        let pending = Rc::clone(pending);
        let (transfers, due, broken) = (Cell::new(0), Cell::new(0), Cell::new(None));
        PePending { ucp, pending, transfers, due, broken }
    }

    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    /// Returns true if UCX has nothing of it in flight, and no old value is due.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight() == 0
    }

    /// Everything of it that has not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.transfers.get() + self.due.get()
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

    /// Takes note of a request that was begun to be sent, and may be in flight: its end calls
    /// [`sent`], unless the call `waits` for it and says so by [`PendingSlot::is_sent`]. And of
    /// whether an old value is due.
    pub(crate) fn sends(&self, slot: &PendingSlot, in_flight: bool, waits: bool, is_due: bool) {
        if is_due {
            slot.due.set(true);
            change(&self.due, 1);
            change(&self.pending.due, 1);
        }
        slot.sending.set(in_flight || waits);
        if in_flight && !waits {
            self.count(1);
        }
        self.pending.release_if_over(slot);
    }
}

impl PendingSlot {
    fn new(number: u32) -> PendingSlot {
        PendingSlot {
            number,
            turn: Cell::new(0),
            connection: Cell::new(null()),
            sending: Cell::new(false),
            due: Cell::new(false),
            fetched: Cell::new(null_mut()),
            width: Cell::new(AmoWidth::Eight),
            header: UnsafeCell::new([0; REQUEST]),
            words: UnsafeCell::new([0; 2]),
            batch: RefCell::default(),
            answers: RefCell::default(),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// This use of the slot.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.get()
    }

    /// Returns true if the operation that had the slot in this turn has ended.
    pub(crate) fn is_past(&self, turn: u32) -> bool {
        self.turn.get() != turn
    }

    /// Keeps a request's header where UCX can read it until it is sent.
    pub(crate) fn keep(&self, header: [u8; REQUEST]) -> *const c_void {
        let kept = self.header.get();
        // SAFETY: UCX reads it from now on; what it read before was sent.
        unsafe { *kept = header };
        kept.cast_const().cast()
    }

    /// The same for what is gathered for a PE. Returns it, and whether answers are due.
    pub(crate) fn keep_batch(&self, gather: &mut Gather, pe: Pe) -> (LocalBuf, bool) {
        let (mut batch, mut answers) = (self.batch.borrow_mut(), self.answers.borrow_mut());
        batch.clear();
        gather.take(pe, &mut batch, &mut answers);
        (LocalBuf::source(batch.as_ptr(), batch.len()), !answers.is_empty())
    }

    /// The same for the operands of an operation that UCX carries out: the first is read, the
    /// second is replaced by the old value.
    pub(crate) fn keep_words(&self, first: u64, second: u64) -> (*const c_void, *mut c_void) {
        let words = self.words.get().cast::<u64>();
        let width = self.width.get();
        // SAFETY: room for eight bytes that nothing else uses until the operation begins.
        unsafe { width.write(words.cast(), first) };
        let reply = words.wrapping_add(1);
        // SAFETY: the second of two words; nothing else uses it until the operation begins.
        unsafe { width.write(reply.cast(), second) };
        (words.cast_const().cast(), reply.cast())
    }

    /// UCX does not read any more what is kept here.
    pub(crate) fn is_sent(&self, pending: &Pending) {
        self.sending.set(false);
        pending.release_if_over(self);
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
            // SAFETY: the second of the words, which UCX is done with.
            AmoWidth::Eight => unsafe { reply.read() },
        };
        self.write(old);
        pending.release(self);
    }

    fn write(&self, old: u64) {
        let fetched = self.fetched.get();
        if !fetched.is_null() {
            // SAFETY: room for a word of this width until the operation ends, as its caller
            // promised.
            unsafe { self.width.get().write(fetched, old) };
        }
    }
}

/// An operation ended that [`PePending::began`] took note of.
///
/// # Safety
/// `user_data` is a [`PePending`].
pub(crate) unsafe extern "C" fn transferred(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a connection, of which an origin keeps every one as long as its worker.
    let connection = unsafe { &*user_data.cast_const().cast::<PePending>() };
    ended(connection, request, status);
}

/// An atomic operation ended that UCX carried out.
///
/// # Safety
/// `user_data` is a busy [`PendingSlot`].
pub(crate) unsafe extern "C" fn operated(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a slot, which lives as long as what is pending.
    let slot = unsafe { &*user_data.cast_const().cast::<PendingSlot>() };
    // SAFETY: a busy slot has a connection.
    let connection = unsafe { &*slot.connection.get() };
    if status != UCS_OK {
        slot.fetched.set(null_mut());
    }
    slot.fetched(&connection.pending);
    ended(connection, request, status);
}

fn ended(connection: &PePending, request: *mut c_void, status: ucs_status_t) {
    connection.count(-1);
    if status != UCS_OK {
        connection.breaks(status);
    }
    if let Ok(Some(request)) = started(request) {
        UcpRequest::free(request, connection.ucp);
    }
}

/// A request was sent that [`PePending::sends`] took note of.
///
/// # Safety
/// `user_data` is a busy [`PendingSlot`].
pub(crate) unsafe extern "C" fn sent(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a slot, which lives as long as what is pending.
    let slot = unsafe { &*user_data.cast_const().cast::<PendingSlot>() };
    // SAFETY: a busy slot has a connection.
    let connection = unsafe { &*slot.connection.get() };
    slot.is_sent(&connection.pending);
    ended(connection, request, status);
}

/// The connection to a PE broke.
///
/// # Safety
/// `arg` is a [`PePending`].
pub(crate) unsafe extern "C" fn broken(arg: *mut c_void, _: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: a connection, of which an origin keeps every one as long as its worker.
    let connection = unsafe { &*arg.cast_const().cast::<PePending>() };
    connection.breaks(status);
}

/// A reply came.
///
/// # Safety
/// `arg` is a [`Pending`]; UCX calls it with what it promises.
pub(crate) unsafe extern "C" fn replied(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: the same contract.
    let message = unsafe { ReceivedMessage::new((header, header_length), (data, length), param) };
    // SAFETY: what is pending lives as long as the worker that calls.
    let pending = unsafe { &*arg.cast_const().cast::<Pending>() };
    let taken = Reply::decode(message.header).and_then(|reply| {
        let answered = match message.data {
            ReceivedData::Here(answers) => pending.answer(reply, answers),
            ReceivedData::There(..) => Err(Violation::Unrequested),
        };
        answered.map_err(|violation| RefusedMessage::of(reply.pe, violation))
    });
    if let Err(message) = taken {
        pending.refused.borrow_mut().get_or_insert(message);
    }
    UCS_OK
}

/// Parameters of an operation of which a [`PePending`] takes note.
pub(crate) fn noted(connection: &Rc<PePending>) -> ucp_request_param_t {
    crate::ucp::callback(Some(transferred), Rc::as_ptr(connection).cast())
}
