//! The state of a wire that UCX's callbacks change, and these callbacks: operations in flight,
//! replies, and broken connections.
//!
//! UCX holds raw pointers to this state, so the state is behind [`Rc`], which does not move it, and
//! changes only through cells. Callbacks run while a thread that has the origin's lock is in a call
//! of UCX, so no two threads access the state at once.
#![allow(unsafe_code)]

use crate::ucp::{AtomicArguments, ReceivedData, ReceivedMessage, UcpRequest, started};
use rushmem_transport::engine::TakeReply;
use rushmem_transport::engine::entries::ATTACHED_AND_SIGNAL;
use rushmem_transport::engine::message::{REQUEST, Reply, Request};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::{AmoWidth, DestBuf, LocalBuf, SourceBuf};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::{NonNull, null};
use std::rc::Rc;
use ucx_sys::{UCS_OK, Ucp, ucp_am_recv_param_t, ucp_ep_h, ucp_request_param_t, ucs_status_t};

/// The state that all connections of a wire share.
#[derive(Default)]
pub(crate) struct CallbackState {
    /// The number of operations at whose end UCX will call back.
    transfers: Cell<usize>,
    /// A connection has broken since the last call of `take_broke`.
    broke: Cell<bool>,
    /// The first invalid reply since the last call of `take_refused`.
    refused: RefCell<Option<RefusedMessage>>,
    /// The [`TakeReply`] of the poll that is in progress, as a raw pointer; `None` outside a poll.
    take: Cell<Option<NonNull<c_void>>>,
    /// Replies that arrived during another call of UCX than a poll.
    early: RefCell<Vec<EarlyReply>>,
    slots: RefCell<Vec<Rc<CallbackSlot>>>,
    free: RefCell<Vec<u32>>,
    /// The buffers of entries that were sent.
    spare: RefCell<Vec<Vec<u8>>>,
    /// Requests that no call waits for any more, and that UCX may not have completed.
    given_up: RefCell<Vec<UcpRequest>>,
}

struct EarlyReply {
    reply: Reply,
    /// The results that follow the reply.
    results: Vec<u8>,
}

/// The number of buffers of entries that are kept while nothing is in flight. Those of a session
/// take 32 KiB each. The number was chosen without a measurement.
const SPARE_BUFFERS: usize = 16;

/// The state of the connection of a wire to one PE.
pub(crate) struct ConnectionState {
    ucp: &'static Ucp,
    callbacks: Rc<CallbackState>,
    transfers: Cell<usize>,
    broken: Cell<Option<ucs_status_t>>,
}

/// Maximum number of bytes of entries that are in a header: those of a word and its signal, of any
/// atomic operation, and those with attached data.
const FEW: usize = 64;
const _: () = assert!(
    ATTACHED_AND_SIGNAL <= FEW,
    "UCX's data are the attached ones"
);
/// Maximum number of bytes of a header.
const HEADER: usize = REQUEST + FEW;

/// The memory of a request or an atomic operation in flight that UCX reads or writes. Slots are
/// reused.
pub(crate) struct CallbackSlot {
    number: u32,
    generation: Cell<u32>,
    /// The connection of the operation that uses the slot; null if the slot is free.
    connection: Cell<*const ConnectionState>,
    fetched: Cell<Option<DestBuf>>,
    width: Cell<AmoWidth>,
    header: UnsafeCell<[u8; HEADER]>,
    /// The first operand of an atomic operation that UCX carries out; and the second operand, which
    /// UCX replaces by the old value.
    words: UnsafeCell<[u64; 2]>,
    /// The entries that are sent as data.
    entries: RefCell<Vec<u8>>,
}

/// The memory of a message in flight, as UCX reads it.
pub(crate) struct KeptMessage {
    pub(crate) header: LocalBuf,
    pub(crate) data: LocalBuf,
}

impl CallbackState {
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    /// Returns true if a connection broke since the last call.
    pub(crate) fn take_broke(&self) -> bool {
        self.broke.take()
    }

    /// Takes a free slot for an operation on `connection`.
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

    /// Releases a slot. Its operation has ended or was not started, so UCX does not use the slot.
    pub(crate) fn release(&self, slot: &CallbackSlot) {
        slot.connection.set(null());
        slot.fetched.set(None);

        let sent = slot.entries.take();
        if sent.capacity() > 0 {
            self.spare.borrow_mut().push(sent);
        }

        slot.generation.set(slot.generation.get().wrapping_add(1));
        self.free.borrow_mut().push(slot.number);
    }

    /// Passes replies to `take`: those that arrived before, then those that arrive during `work`.
    pub(crate) fn while_taking<T>(&self, mut take: TakeReply<'_>, work: impl FnOnce() -> T) -> T {
        for EarlyReply { reply, results } in self.early.take() {
            self.pass_on(reply, &results, &mut take);
        }

        self.take.set(Some(NonNull::from(&mut take).cast()));
        let worked = work();
        self.take.set(None);
        worked
    }

    /// Handles a reply of a target. During a poll, passes it on at once; it may also arrive during
    /// another call of UCX, and waits for the next poll then.
    fn take_reply(&self, message: &ReceivedMessage<'_>) -> Result<(), RefusedMessage> {
        let reply = Reply::decode(message.header)?;
        let ReceivedData::Here(results) = message.data else {
            return Err(RefusedMessage::of(reply.pe, Violation::Unrequested));
        };

        match self.take.get() {
            Some(take) => {
                // SAFETY: `take` points to the `TakeReply` of `while_taking`, which has not
                // returned and does not use it meanwhile.
                let take = unsafe { take.cast::<TakeReply<'_>>().as_mut() };
                self.pass_on(reply, results, take);
            }
            None => self.early.borrow_mut().push(EarlyReply {
                reply,
                results: results.to_vec(),
            }),
        }
        Ok(())
    }

    fn pass_on(&self, reply: Reply, results: &[u8], take: &mut TakeReply<'_>) {
        if let Err(violation) = take(reply, results) {
            self.refuse(RefusedMessage::of(reply.pe, violation));
        }
    }

    fn refuse(&self, message: RefusedMessage) {
        self.refused.borrow_mut().get_or_insert(message);
    }

    /// Returns the first invalid reply since the last call.
    pub(crate) fn take_refused(&self) -> Option<RefusedMessage> {
        self.refused.take()
    }

    /// Keeps requests for which no call waits any more, until UCX has completed them.
    pub(crate) fn give_up(&self, requests: impl IntoIterator<Item = UcpRequest>) {
        self.given_up.borrow_mut().extend(requests);
    }

    /// Frees the completed ones of the requests that were given up. Returns the number of
    /// operations that UCX has not completed.
    pub(crate) fn free_ended(&self, ucp: &Ucp) -> usize {
        let mut given_up = self.given_up.borrow_mut();
        given_up.retain(|request| match request.status(ucp) {
            None => true,
            Some(_) => {
                request.free(ucp);
                false
            }
        });
        given_up.len() + self.transfers.get()
    }

    /// Forgets the destinations of old values after a loss, so that no callback writes to memory of
    /// callers. UCX itself may still do so until its operations have ended.
    pub(crate) fn forget_fetched(&self) {
        for slot in self.slots.borrow().iter() {
            slot.fetched.set(None);
        }
    }
}

impl ConnectionState {
    pub(crate) fn new(ucp: &'static Ucp, callbacks: &Rc<CallbackState>) -> ConnectionState {
        ConnectionState {
            ucp,
            callbacks: Rc::clone(callbacks),
            transfers: Cell::new(0),
            broken: Cell::new(None),
        }
    }

    pub(crate) fn transfers(&self) -> usize {
        self.transfers.get()
    }

    pub(crate) fn broken(&self) -> Option<ucs_status_t> {
        self.broken.get()
    }

    fn record_break(&self, status: ucs_status_t) {
        if self.broken.get().is_none() {
            self.broken.set(Some(status));
        }
        self.callbacks.broke.set(true);
    }

    /// Counts an operation that is in flight, at whose end UCX calls [`transferred`], [`operated`]
    /// or [`sent`].
    pub(crate) fn record_start(&self) {
        for counter in [&self.transfers, &self.callbacks.transfers] {
            counter.set(counter.get() + 1);
        }
    }

    /// Counts the end of an operation, in the callback.
    fn record_end(&self) {
        for counter in [&self.transfers, &self.callbacks.transfers] {
            counter.set(counter.get() - 1);
        }
    }
}

impl CallbackSlot {
    fn new(number: u32) -> CallbackSlot {
        CallbackSlot {
            number,
            generation: Cell::new(0),
            connection: Cell::new(null()),
            fetched: Cell::new(None),
            width: Cell::new(AmoWidth::Eight),
            header: UnsafeCell::new([0; HEADER]),
            words: UnsafeCell::new([0; 2]),
            entries: RefCell::default(),
        }
    }

    /// Returns a number that is different for each use of the slot, up to overflow.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Returns true if the operation that used the slot in this generation has ended.
    pub(crate) fn is_past(&self, generation: u32) -> bool {
        self.generation.get() != generation
    }

    /// Stores what UCX reads of a message until it is sent. Few entries are in the header, and the
    /// data are those that the first one attaches; UCX sends a header alone faster than one with
    /// data. Many entries are the data; then another buffer is left in `entries`.
    pub(crate) fn keep_message(
        &self,
        callbacks: &CallbackState,
        request: &Request,
        entries: &mut Vec<u8>,
        attached: &SourceBuf,
    ) -> KeptMessage {
        let header = self.header.get();
        let kept = LocalBuf {
            base: header.cast(),
            nbytes: HEADER,
        };
        // SAFETY: `header` points to the slot's own array. UCX has sent the header that was there
        // before, so nothing else accesses this memory.
        let (head, rest) = unsafe { &mut *header }.split_at_mut(REQUEST);

        head.copy_from_slice(&request.encode());
        if let Some(few) = rest.get_mut(..entries.len()) {
            few.copy_from_slice(entries);
            return KeptMessage {
                header: kept.first(REQUEST + entries.len()),
                data: attached.range(),
            };
        }

        // Without a spare buffer, the next entries are added to a new one.
        let spare = callbacks.spare.borrow_mut().pop().unwrap_or_default();
        let many = std::mem::replace(entries, spare);
        let data = LocalBuf::source(many.as_ptr(), many.len());
        self.entries.replace(many);
        KeptMessage {
            header: kept.first(REQUEST),
            data,
        }
    }

    /// Stores the operands of an atomic operation for UCX, which reads the first and replaces the
    /// second by the old value. At the end, the old value is copied to `fetched`, if that
    /// is there. Returns the addresses of the operands.
    pub(crate) fn keep_words(
        &self,
        first: u64,
        second: u64,
        width: AmoWidth,
        fetched: Option<DestBuf>,
    ) -> AtomicArguments {
        self.fetched.set(fetched);
        self.width.set(width);
        let words = self.words.get().cast::<u64>();
        // SAFETY: `words` is the first of the slot's two words, which nothing else uses until the
        // operation begins.
        unsafe { width.write(words.cast(), first) };

        let reply = words.wrapping_add(1);
        // SAFETY: `reply` is the second of these words.
        unsafe { width.write(reply.cast(), second) };
        AtomicArguments {
            first: words.cast_const().cast(),
            second: reply.cast(),
        }
    }

    /// Stores the old value of an atomic operation that UCX has carried out at its destination, and
    /// releases the slot.
    pub(crate) fn end_atomic(&self, callbacks: &CallbackState) {
        let reply = self.words.get().cast::<u64>().wrapping_add(1);
        let old = match self.width.get() {
            // SAFETY: `reply` is the second of the slot's words, which UCX does not use after the
            // operation.
            AmoWidth::Four => u64::from(unsafe { reply.cast::<u32>().read() }),
            // SAFETY: as for 4 bytes.
            AmoWidth::Eight => unsafe { reply.read() },
        };

        if let Some(fetched) = self.fetched.take() {
            fetched.store_word(self.width.get(), old);
        }
        callbacks.release(self);
    }
}

/// A request of UCX for which a call waits. When this is dropped, the request is freed, and the
/// slot of its operation is released if UCX does not use it any more.
pub(crate) struct AwaitedRequest {
    pub(crate) request: UcpRequest,
    pub(crate) slot: Option<Rc<CallbackSlot>>,
    pub(crate) ucp: &'static Ucp,
    pub(crate) callbacks: Rc<CallbackState>,
}

impl Drop for AwaitedRequest {
    fn drop(&mut self) {
        if self.request.status(self.ucp).is_none() {
            return self.callbacks.give_up([self.request]);
        }
        self.request.free(self.ucp);
        if let Some(slot) = &self.slot {
            self.callbacks.release(slot);
        }
    }
}

/// The callback at the end of a write or read that a [`ConnectionState`] has counted.
///
/// # Safety
/// `user_data` is a [`ConnectionState`].
pub(crate) unsafe extern "C" fn transferred(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: `user_data` is a connection, by contract. A wire keeps each as long as its worker,
    // which calls this.
    let connection = unsafe { &*user_data.cast_const().cast::<ConnectionState>() };
    end_operation(connection, request, status);
}

/// The callback at the end of an atomic operation.
///
/// # Safety
/// `user_data` is a busy [`CallbackSlot`].
pub(crate) unsafe extern "C" fn operated(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: `user_data` is a slot, by contract, and slots live as long as the state, which is
    // dropped after the worker that calls this.
    let slot = unsafe { &*user_data.cast_const().cast::<CallbackSlot>() };
    // SAFETY: the slot is busy, by contract, so `connection` points to one that the wire keeps.
    let connection = unsafe { &*slot.connection.get() };
    // After an error there is no old value, so none may be stored.
    if status != UCS_OK {
        slot.fetched.set(None);
    }
    slot.end_atomic(&connection.callbacks);
    end_operation(connection, request, status);
}

fn end_operation(connection: &ConnectionState, request: *mut c_void, status: ucs_status_t) {
    connection.record_end();
    if connection.callbacks.transfers() == 0 {
        let mut spare = connection.callbacks.spare.borrow_mut();
        spare.truncate(SPARE_BUFFERS);
    }

    if status != UCS_OK {
        connection.record_break(status);
    }

    if let Ok(Some(request)) = started(request) {
        UcpRequest::free(request, connection.ucp);
    }
}

/// The callback at the end of a send of a request.
///
/// # Safety
/// `user_data` is a busy [`CallbackSlot`].
pub(crate) unsafe extern "C" fn sent(
    request: *mut c_void,
    status: ucs_status_t,
    user_data: *mut c_void,
) {
    // SAFETY: `user_data` is a slot, by contract, and slots live as long as the state, which is
    // dropped after the worker that calls this.
    let slot = unsafe { &*user_data.cast_const().cast::<CallbackSlot>() };
    // SAFETY: the slot is busy, by contract, so `connection` points to one that the wire keeps.
    let connection = unsafe { &*slot.connection.get() };
    connection.callbacks.release(slot);
    end_operation(connection, request, status);
}

/// The callback for a broken connection to a PE.
///
/// # Safety
/// `arg` is a [`ConnectionState`].
pub(crate) unsafe extern "C" fn broken(arg: *mut c_void, _: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: `arg` is a connection, by contract. A wire keeps each as long as its worker, which
    // calls this.
    let connection = unsafe { &*arg.cast_const().cast::<ConnectionState>() };
    connection.record_break(status);
}

/// The callback for a reply of a target.
///
/// # Safety
/// `arg` is a [`CallbackState`], and the other arguments are those that UCX passes to such a
/// callback.
pub(crate) unsafe extern "C" fn replied(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: UCX has passed these arguments to this callback, by contract, and `message` is not
    // used after it.
    let message = unsafe { ReceivedMessage::new(header, header_length, data, length, param) };
    // SAFETY: `arg` is the state, by contract, which is dropped after the worker that calls this.
    let callbacks = unsafe { &*arg.cast_const().cast::<CallbackState>() };

    if let Err(message) = callbacks.take_reply(&message) {
        callbacks.refuse(message);
    }
    UCS_OK
}

/// Returns the parameters of a write or read that `connection` counts.
pub(crate) fn tracked_params(connection: &Rc<ConnectionState>) -> ucp_request_param_t {
    crate::ucp::callback_params(Some(transferred), Rc::as_ptr(connection).cast())
}
