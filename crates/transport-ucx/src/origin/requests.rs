//! Atomic operations: requests to the targets' CPUs (`kit::requests`), and what UCX carries out
//! itself.
#![allow(unsafe_code)]

use super::Origin;
use crate::pending::{PendingSlot, operated, sent};
use crate::shared::SharedState;
use crate::target::{BATCH_KIND, REQUEST_KIND};
use crate::ucp::{UcpAtomic, callback, plain, started};
use rushmem_transport::kit::gather::SmallOperation;
use rushmem_transport::kit::message::{REQUEST, Request};
use rushmem_transport::kit::stream::Update;
use rushmem_transport::{AmoRequest, AmoWidth, Error, LocalBuf, Pe, RemoteAddr, Segment};
use std::ptr::null_mut;
use std::rc::Rc;
use ucx_sys::{UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_REPLY, UCP_OP_ATTR_FIELD_FLAGS};

/// What a message to be sent consists of.
pub(super) struct MessageParts {
    pub(super) kind: u32,
    pub(super) update: Option<Update>,
    /// What goes along to `place`; a batch brings what is gathered.
    pub(super) data: LocalBuf,
    pub(super) place: RemoteAddr,
    /// Where the old value goes, or null.
    pub(super) fetched: *mut u8,
    /// It is carried out after all before it.
    pub(super) ordered: bool,
    /// The target acknowledges it, which is after all before it, too.
    pub(super) asks: bool,
    /// The call waits until the data may change.
    pub(super) blocks: bool,
}

impl MessageParts {
    pub(super) const EMPTY: MessageParts = MessageParts {
        kind: REQUEST_KIND,
        update: None,
        data: LocalBuf::EMPTY,
        place: RemoteAddr { segment: Segment::Heap, offset: 0 },
        fetched: null_mut(),
        ordered: false,
        asks: false,
        blocks: false,
    };
}

impl Origin {
    /// Has the target's CPU carry out an atomic operation, after a put of `data` to `place` if
    /// there is any, and where it is `ordered` after all puts and requests before. The old value
    /// goes to `fetched`, unless that is null. When it `blocks`, it waits until the data may
    /// change.
    ///
    /// # Safety
    /// `fetched` is valid for writes of a word until the operation is complete; the data is valid
    /// for reads until the call returns or, when it does not block, until then.
    pub(crate) unsafe fn ask(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
        (data, place): (LocalBuf, RemoteAddr),
        (ordered, blocks): (bool, bool),
    ) -> Result<(Rc<PendingSlot>, u32), Error> {
        let (_, connection) = self.connection(shared, pe)?;
        self.send_gathered(shared, pe)?;
        if ordered && self.gather.uses_proxies(&*shared.host) {
            self.quiet(shared)?;
        } else if ordered {
            self.follow_all_puts(pe);
        }
        self.follow_puts(shared, pe, &connection, false)?;
        let update = Some(Update::of(request));
        let parts =
            MessageParts { update, data, place, fetched, ordered, blocks, ..MessageParts::EMPTY };
        // SAFETY: the same contract.
        unsafe { self.send(shared, pe, parts) }
    }

    /// Works as [`ask`](Origin::ask), of an operation that no thread waits for: a small one travels
    /// in a batch.
    ///
    /// # Safety
    /// As [`ask`](Origin::ask).
    pub(crate) unsafe fn ask_nbi(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
        (data, place): (LocalBuf, RemoteAddr),
        (ordered, blocks): (bool, bool),
    ) -> Result<(), Error> {
        let may_gather = !ordered
            && self.may_gather(request.dest.segment, 0)
            && self.may_gather(place.segment, data.nbytes);
        if !may_gather || self.gather.is_lone(pe) {
            // SAFETY: the same contract.
            unsafe { self.ask(shared, pe, request, fetched, (data, place), (ordered, blocks)) }?;
            if may_gather {
                self.gather.has_left();
            }
            return Ok(());
        }
        let segments = [place.segment, request.dest.segment];
        let segments = if data.nbytes > 0 { &segments[..] } else { &segments[1..] };
        let proxy = self.gather.proxy(&*shared.host, pe, segments);
        let (_, connection) = self.connection(shared, proxy.pe)?;
        self.touch(proxy.pe);
        self.follow_puts(shared, proxy.pe, &connection, false)?;
        let amo = SmallOperation::Amo(Update::of(request), fetched);
        let both = [SmallOperation::Put(place, data), amo];
        let operations = if data.nbytes > 0 { &both[..] } else { &both[1..] };
        // SAFETY: the same contract.
        unsafe { self.gather(shared, proxy, operations) }
    }

    /// Sends a request as the next of its stream.
    ///
    /// # Safety
    /// As [`ask`](Origin::ask) about the message's data and what it fetches.
    pub(super) unsafe fn send(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        parts: MessageParts,
    ) -> Result<(Rc<PendingSlot>, u32), Error> {
        let MessageParts { kind, update, data, place, fetched, ordered, asks, blocks } = parts;
        let (endpoint, connection) = self.connection(shared, pe)?;
        self.room(shared)?;
        if !asks {
            self.room_in_window(shared, pe)?;
        }
        let width = update.map_or(AmoWidth::Eight, |update| update.width);
        let slot = self.pending.slot(&connection, fetched, width);
        let (data, is_due) = match kind {
            BATCH_KIND => slot.keep_batch(&mut self.gather, pe),
            _ => (data, !fetched.is_null()),
        };
        let header = slot.keep(
            Request {
                stream: self.issued.stream(shared.me),
                place: self.issued.issue(pe, (ordered, asks)),
                ack: shared.acks.for_message_to(pe),
                slot: is_due.then(|| slot.number()),
                update,
                dest: place,
            }
            .encode(),
        );
        let mut params =
            if blocks { plain() } else { callback(Some(sent), Rc::as_ptr(&slot).cast()) };
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_REPLY;
        if update.is_none() || data.nbytes == 0 {
            params.flags |= UCP_AM_SEND_FLAG_EAGER;
        }
        let base = data.base.cast_const().cast();
        // SAFETY: a live endpoint, a header that is kept until it is sent, data that is valid by
        // contract.
        let begun = unsafe {
            let (ucp, params) = (self.ucp(), &raw const params);
            ucp.ucp_am_send_nbx(endpoint, kind, header, REQUEST, base, data.nbytes, params)
        };
        let request = match started(begun) {
            Ok(request) => request,
            Err(status) => {
                slot.give_back(&self.pending);
                return Err(self.fails(shared, pe)(status));
            }
        };
        let turn = slot.turn();
        connection.sends(&slot, request.is_some(), blocks, is_due);
        if blocks {
            self.end(shared, pe, request)?;
            slot.is_sent(&self.pending);
        }
        if !connection.is_idle() {
            self.touch(pe);
        }
        Ok((slot, turn))
    }

    /// Has UCX carry out an atomic operation. The old value goes to `fetched`, unless that is null.
    ///
    /// # Safety
    /// `fetched` is valid for writes of a word until the operation is complete.
    pub(crate) unsafe fn operate(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
    ) -> Result<(Rc<PendingSlot>, u32), Error> {
        let AmoRequest { dest: word, width, op, operand, condition, .. } = *request;
        let remote = shared.peers.get(pe)?.address(pe, word, width.nbytes())?;
        self.part(shared, pe, word, width.nbytes())?;
        let (endpoint, connection) = self.connection(shared, pe)?;
        self.touch(pe);
        self.send_gathered(shared, pe)?;
        let key = self.key(shared, pe, word)?;
        self.room(shared)?;
        self.follow_requests(shared, pe)?;
        self.follow_puts(shared, pe, &connection, self.worker.orders())?;
        self.routes[pe].dirty = true;
        let slot = self.pending.slot(&connection, fetched, width);
        let turn = slot.turn();
        let atomic = UcpAtomic::new(op, operand, condition);
        let arguments = slot.keep_words(atomic.first, atomic.second);
        let params = callback(Some(operated), Rc::as_ptr(&slot).cast());
        let ucp = self.ucp();
        // SAFETY: a live endpoint and its key; the words are kept until the operation ends.
        let begun = unsafe { atomic.begin(ucp, (endpoint, key), remote, width, arguments, params) };
        match started(begun) {
            Ok(None) => slot.fetched(&self.pending),
            Ok(Some(_)) => {}
            Err(_) => slot.give_back(&self.pending),
        }
        connection.began(begun).map_err(self.fails(shared, pe))?;
        Ok((slot, turn))
    }

    /// Waits until the operation on a PE that had a slot in this turn has ended.
    pub(crate) fn answered(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        (slot, turn): (Rc<PendingSlot>, u32),
    ) -> Result<(), Error> {
        self.send_all_gathered(shared)?;
        self.until(shared, Some(pe), |_| slot.is_past(turn))
    }
}

#[cfg(test)]
mod tests;
