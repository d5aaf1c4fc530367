//! The operations that a wire has in flight, as UCX's callbacks change them.
//!
//! UCX holds plain pointers to what is here, so all of it stays where it is (it is counted by
//! [`Rc`]) and is changed through cells alone. Callbacks run while a thread that has the origin's
//! lock is in a call of UCX, so nothing here is touched by two threads at once.
#![allow(unsafe_code)]

use crate::ucp::{ReceivedData, ReceivedMessage, UcpRequest, started};
use rushmem_transport::engine::TakeReply;
use rushmem_transport::engine::message::{REQUEST, Reply};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::{AmoWidth, LocalBuf};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::{NonNull, null, null_mut};
use std::rc::Rc;
use ucx_sys::{
    UCS_OK, Ucp, ucp_am_recv_param_t, ucp_ep_h, ucp_request_param_t, ucs_status_ptr_t, ucs_status_t,
};

/// The operations that all connections of a wire have in flight.
#[derive(Default)]
pub(crate) struct CallbackState {
    /// Operations of UCX that will call back.
    transfers: Cell<usize>,
    /// Some connection broke since this was last taken.
    broke: Cell<bool>,
    /// The first message that was no reply to a request, since this was last taken.
    refused: RefCell<Option<RefusedMessage>>,
    /// A [`TakeReply`] while the worker is polled.
    take: Cell<Option<NonNull<c_void>>>,
    /// Replies that came while something else than a poll made UCX work.
    early: RefCell<Vec<(Reply, Vec<u8>)>>,
    slots: RefCell<Vec<Rc<CallbackSlot>>>,
    free: RefCell<Vec<u32>>,
}

/// The operations that a wire has in flight to one PE.
pub(crate) struct ConnectionState {
    ucp: &'static Ucp,
    callbacks: Rc<CallbackState>,
    transfers: Cell<usize>,
    broken: Cell<Option<ucs_status_t>>,
}

/// A request, or an atomic operation in flight: what UCX reads, and where the old value goes.
pub(crate) struct CallbackSlot {
    number: u32,
    generation: Cell<u32>,
    /// Null when the slot is free; then the rest means nothing.
    connection: Cell<*const ConnectionState>,
    fetched: Cell<*mut u8>,
    width: Cell<AmoWidth>,
    header: UnsafeCell<[u8; REQUEST]>,
    /// Operand, and operand or old value, of an operation that UCX carries out.
    words: UnsafeCell<[u64; 2]>,
    /// The operations of a batch, which travel with the header.
    batch: RefCell<Vec<u8>>,
}

impl CallbackState {
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    /// Returns true if a connection broke since the last call.
    pub(crate) fn take_broke(&self) -> bool {
        self.broke.take()
    }

    /// Returns a free slot for an operation on `connection`.
    pub(crate) fn slot(&self, connection: &Rc<ConnectionState>) -> Rc<CallbackSlot> {
        let free = self.free.borrow_mut().pop();
        let mut slots = self.slots.borrow_mut();
        let number = free.unwrap_or(slots.len() as u32);
        if free.is_none() {
            slots.push(Rc::new(CallbackSlot::new(number)));
        }
        let slot = &slots[number as usize];
        slot.connection.set(Rc::as_ptr(connection));
        Rc::clone(slot)
    }

    /// Releases a slot whose operation ended or never began: UCX no longer reads its contents.
    pub(crate) fn release(&self, slot: &CallbackSlot) {
        slot.connection.set(null());
        slot.fetched.set(null_mut());
        slot.generation.set(slot.generation.get().wrapping_add(1));
        self.free.borrow_mut().push(slot.number);
    }

    /// Gives the replies that come meanwhile, and those that came before, to `take`.
    pub(crate) fn while_taking<T>(&self, mut take: TakeReply<'_>, work: impl FnOnce() -> T) -> T {
        for (reply, answers) in self.early.take() {
            self.answer(reply, &answers, &mut take);
        }
        self.take.set(Some(NonNull::from(&mut take).cast()));
        let worked = work();
        self.take.set(None);
        worked
    }

    fn answer(&self, reply: Reply, answers: &[u8], take: &mut TakeReply<'_>) {
        if let Err(violation) = take(reply, answers) {
            self.refuse(RefusedMessage::of(reply.pe, violation));
        }
    }

    fn refuse(&self, message: RefusedMessage) {
        self.refused.borrow_mut().get_or_insert(message);
    }

    /// Returns the first message that was no reply to a request, since the last call.
    pub(crate) fn take_refused(&self) -> Option<RefusedMessage> {
        self.refused.take()
    }

    /// Frees the memory of batches, all of which were sent.
    pub(crate) fn free_batches(&self) {
        let slots = self.slots.borrow();
        for slot in slots.iter().filter(|slot| slot.connection.get().is_null()) {
            slot.batch.take();
        }
    }

    /// Drops the destinations of old values: after a loss callers do not keep these words.
    pub(crate) fn forget_fetched(&self) {
        self.slots.borrow().iter().for_each(|slot| slot.fetched.set(null_mut()));
    }
}

impl ConnectionState {
    pub(crate) fn new(ucp: &'static Ucp, callbacks: &Rc<CallbackState>) -> ConnectionState {
        let callbacks = Rc::clone(callbacks);
        ConnectionState { ucp, callbacks, transfers: Cell::new(0), broken: Cell::new(None) }
    }

    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    pub(crate) fn broken(&self) -> Option<ucs_status_t> {
        self.broken.get()
    }

    fn breaks(&self, status: ucs_status_t) {
        if self.broken.get().is_none() {
            self.broken.set(Some(status));
        }
        self.callbacks.broke.set(true);
    }

    /// Takes note of what a call began whose end calls [`transferred`].
    pub(crate) fn began(&self, result: ucs_status_ptr_t) -> Result<(), ucs_status_t> {
        if started(result)?.is_some() {
            self.count(1);
        }
        Ok(())
    }

    /// Counts operations that are in flight: those that begin, and whose end calls [`transferred`],
    /// [`operated`] or [`sent`], or, by -1, one that has ended.
    pub(crate) fn count(&self, by: isize) {
        for counter in [&self.transfers, &self.callbacks.transfers] {
            counter.set(counter.get().wrapping_add_signed(by));
        }
    }
}

impl CallbackSlot {
    fn new(number: u32) -> CallbackSlot {
        CallbackSlot {
            number,
            generation: Cell::new(0),
            connection: Cell::new(null()),
            fetched: Cell::new(null_mut()),
            width: Cell::new(AmoWidth::Eight),
            header: UnsafeCell::new([0; REQUEST]),
            words: UnsafeCell::new([0; 2]),
            batch: RefCell::default(),
        }
    }

    /// Returns the number of this use of the slot.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Returns true if the operation that had the slot in this generation has ended.
    pub(crate) fn is_past(&self, generation: u32) -> bool {
        self.generation.get() != generation
    }

    /// Keeps a request's header where UCX can read it until it is sent.
    pub(crate) fn keep(&self, header: [u8; REQUEST]) -> *const c_void {
        let kept = self.header.get();
        // SAFETY: UCX reads it from now on; what it read before was sent.
        unsafe { *kept = header };
        kept.cast_const().cast()
    }

    /// Keeps a batch, in exchange for the buffer of an earlier one, where UCX can read it until it
    /// is sent. Returns the kept batch.
    pub(crate) fn keep_batch(&self, batch: &mut Vec<u8>) -> LocalBuf {
        let mut kept = self.batch.borrow_mut();
        std::mem::swap(&mut *kept, batch);
        LocalBuf::source(kept.as_ptr(), kept.len())
    }

    /// Keeps the operands of an operation that UCX carries out where UCX can use them: the first is
    /// read, the second is replaced by the old value, which goes to `fetched` unless that is null.
    pub(crate) fn keep_words(
        &self,
        first: u64,
        second: u64,
        width: AmoWidth,
        fetched: *mut u8,
    ) -> (*const c_void, *mut c_void) {
        self.fetched.set(fetched);
        self.width.set(width);
        let words = self.words.get().cast::<u64>();
        // SAFETY: room for eight bytes that nothing else uses until the operation begins.
        unsafe { width.write(words.cast(), first) };
        let reply = words.wrapping_add(1);
        // SAFETY: the second of two words; nothing else uses it until the operation begins.
        unsafe { width.write(reply.cast(), second) };
        (words.cast_const().cast(), reply.cast())
    }

    /// Stores the old value, which is in the second word, of an operation that UCX carried out.
    pub(crate) fn fetched(&self, callbacks: &CallbackState) {
        let reply = self.words.get().cast::<u64>().wrapping_add(1);
        let old = match self.width.get() {
            // SAFETY: within the words, which UCX is done with.
            AmoWidth::Four => u64::from(unsafe { reply.cast::<u32>().read() }),
            // SAFETY: the second of the words, which UCX is done with.
            AmoWidth::Eight => unsafe { reply.read() },
        };
        let fetched = self.fetched.get();
        if !fetched.is_null() {
            // SAFETY: room for a word of this width until the operation ends, as its caller
            // promised.
            unsafe { self.width.get().write(fetched, old) };
        }
        callbacks.release(self);
    }
}

/// Records the end of an operation that [`ConnectionState::began`] counted.
///
/// # Safety
/// `user_data` is a [`ConnectionState`].
pub(crate) unsafe extern "C" fn transferred(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a connection, of which a wire keeps every one as long as its worker.
    let connection = unsafe { &*user_data.cast_const().cast::<ConnectionState>() };
    ended(connection, request, status);
}

/// Records the end of an atomic operation that UCX carried out.
///
/// # Safety
/// `user_data` is a busy [`CallbackSlot`].
pub(crate) unsafe extern "C" fn operated(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a slot, which lives as long as the state.
    let slot = unsafe { &*user_data.cast_const().cast::<CallbackSlot>() };
    // SAFETY: a busy slot has a connection.
    let connection = unsafe { &*slot.connection.get() };
    if status != UCS_OK {
        slot.fetched.set(null_mut());
    }
    slot.fetched(&connection.callbacks);
    ended(connection, request, status);
}

fn ended(connection: &ConnectionState, request: *mut c_void, status: ucs_status_t) {
    connection.count(-1);
    if status != UCS_OK {
        connection.breaks(status);
    }
    if let Ok(Some(request)) = started(request) {
        UcpRequest::free(request, connection.ucp);
    }
}

/// Records the end of a send that [`ConnectionState::sends`] counted.
///
/// # Safety
/// `user_data` is a busy [`CallbackSlot`].
pub(crate) unsafe extern "C" fn sent(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: a slot, which lives as long as the state.
    let slot = unsafe { &*user_data.cast_const().cast::<CallbackSlot>() };
    // SAFETY: a busy slot has a connection.
    let connection = unsafe { &*slot.connection.get() };
    connection.callbacks.release(slot);
    ended(connection, request, status);
}

/// Records that the connection to a PE broke.
///
/// # Safety
/// `arg` is a [`ConnectionState`].
pub(crate) unsafe extern "C" fn broken(arg: *mut c_void, _: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: a connection, of which a wire keeps every one as long as its worker.
    let connection = unsafe { &*arg.cast_const().cast::<ConnectionState>() };
    connection.breaks(status);
}

/// Handles a reply.
///
/// # Safety
/// `arg` is a [`CallbackState`]; UCX calls it with what it promises.
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
    // SAFETY: the state lives as long as the worker that calls.
    let callbacks = unsafe { &*arg.cast_const().cast::<CallbackState>() };
    match (Reply::decode(message.header), message.data) {
        (Err(message), _) => callbacks.refuse(message),
        (Ok(reply), ReceivedData::There(..)) => {
            callbacks.refuse(RefusedMessage::of(reply.pe, Violation::Unrequested));
        }
        (Ok(reply), ReceivedData::Here(answers)) => match callbacks.take.get() {
            // SAFETY: set by `while_taking`, which has not returned and does not use it meanwhile.
            Some(take) => unsafe {
                callbacks.answer(reply, answers, take.cast::<TakeReply<'_>>().as_mut());
            },
            None => callbacks.early.borrow_mut().push((reply, answers.to_vec())),
        },
    }
    UCS_OK
}

/// Parameters of an operation of which a [`ConnectionState`] takes note.
pub(crate) fn tracked(connection: &Rc<ConnectionState>) -> ucp_request_param_t {
    crate::ucp::callback(Some(transferred), Rc::as_ptr(connection).cast())
}
