//! What the contexts of one worker issue, to every peer: puts, gets, requests.
//!
//! It must never know who else lets its worker work.
#![allow(unsafe_code)]

mod held;
mod order;
mod routes;

use crate::connect;
use crate::pending::{Connection, Pending, Slot, broken, noted, operated, replied, sent};
use crate::proto::{REQUEST, Request, Update};
use crate::shared::Shared;
use crate::target::{PUTS_KIND, REPLY_KIND, REQUEST_KIND};
use crate::ucp::{Atomic, Context, UcpRequest, Worker, callback, plain, said, started};
use routes::{Open, Routes};
use rushmem_transport::kit::answers::{Answers, Stream};
use rushmem_transport::{
    AmoRequest, AmoWidth, Error, LocalAccess, LocalBuf, Pe, RemoteAddr, Segment,
};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use ucx_sys::{
    UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_REPLY, UCP_OP_ATTR_FIELD_FLAGS, Ucp, ucp_ep_h,
    ucp_rkey_h, ucs_status_ptr_t, ucs_status_t,
};

/// What a transfer does, and when its call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    Put,
    PutNbi,
    Get,
    GetNbi,
}

/// A worker that issues. Fields are dropped in this order: the worker before what its callbacks use.
pub(crate) struct Origin {
    worker: Worker,
    /// Its number among this PE's.
    number: u32,
    routes: Routes,
    pending: Rc<Pending>,
    /// The PEs towards which UCX may have something to do, or an old value is due.
    touched: Vec<u32>,
    /// The PEs that are not known to have carried out all requests.
    owing: Vec<u32>,
    /// Counts the fences.
    fences: u32,
    /// Endpoints that were closed by force after a loss; UCX may still call back for them.
    closed: Vec<Open>,
    /// Requests whose callers were told of a loss, or that nobody waits for: UCX may not be done with them.
    given_up: Vec<UcpRequest>,
}

// SAFETY: what it shares by `Rc` it shares with its own worker alone, in one thread at a time.
unsafe impl Send for Origin {}

/// What a message to be sent consists of.
struct MessageParts {
    kind: u32,
    update: Option<Update>,
    /// What goes along to `place`; a message of the kind of puts brings what is held back.
    data: LocalBuf,
    place: RemoteAddr,
    /// Where the old value goes, or null.
    fetched: *mut u8,
    /// It is carried out after all before it.
    ordered: bool,
    /// The target tells when it is, which is after all before it, too.
    asks: bool,
    /// The call waits until the data may change.
    blocks: bool,
}

impl MessageParts {
    const EMPTY: MessageParts = MessageParts {
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
    pub(crate) fn new(context: &Arc<Context>, answers: &Answers) -> Result<Origin, String> {
        let worker = Worker::new(context)?;
        let (number, told) = answers.origin();
        let pending = Rc::new(Pending::new(told));
        let arg = Rc::as_ptr(&pending).cast_mut().cast();
        // SAFETY: the callback takes a `Pending`, which is dropped after the worker.
        unsafe { worker.on_message(REPLY_KIND, Some(replied), arg) }?;
        let routes = Routes::new(answers.n_pes());
        let (touched, owing, fences) = (Vec::new(), Vec::new(), 0);
        let (closed, given_up) = (Vec::new(), Vec::new());
        Ok(Origin { worker, number, routes, pending, touched, owing, fences, closed, given_up })
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    fn ucp(&self) -> &'static Ucp {
        self.worker.ucp()
    }

    /// It must be polled for something to complete.
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Some PE may not have carried out all requests. What UCX has still to send of them goes when the worker is polled, for
    /// which its descriptor tells.
    pub(crate) fn is_owed(&self) -> bool {
        !self.owing.is_empty()
    }

    /// UCX has transfers in flight.
    pub(crate) fn moves_data(&self) -> bool {
        self.pending.transfers() > 0 || self.holds()
    }

    /// Connects to a PE, unless that was done before; returns the endpoint and the connection.
    #[inline]
    fn connection(&mut self, shared: &Shared, pe: Pe) -> Result<(ucp_ep_h, Rc<Connection>), Error> {
        shared.loss.check()?;
        if pe.index() >= self.routes.n_pes() || self.routes[pe.index()].open.is_none() {
            self.connect(shared, pe)?;
        }
        let route = &mut self.routes[pe.index()];
        let Some(open) = &route.open else { return Err(Error::Unreachable(pe)) };
        if let Some(status) = open.connection.broken() {
            return Err(self.fails(shared, pe)(status));
        }
        Ok((open.endpoint.handle, Rc::clone(&open.connection)))
    }

    /// UCX may have something to do towards a PE.
    #[inline]
    fn touch(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe.index()].touched, true) {
            self.touched.push(pe.0);
        }
    }

    #[cold]
    fn connect(&mut self, shared: &Shared, pe: Pe) -> Result<(), Error> {
        let address = connect::address(pe, shared.peers.record(pe).ok_or(Error::Unreachable(pe))?)?;
        let connection = Rc::new(Connection::new(self.worker.ucp(), &self.pending));
        let arg = Rc::as_ptr(&connection).cast_mut().cast();
        // SAFETY: the handler takes a `Connection`, which is dropped after the worker.
        let made = unsafe { self.worker.connect(&address.worker, Some(broken), arg) };
        let endpoint = made.map_err(|why| shared.lose(pe, &why))?;
        self.routes[pe.index()].open = Some(Open { endpoint, connection });
        Ok(())
    }

    /// The key to a segment of a PE that is connected.
    #[inline]
    fn key(&mut self, shared: &Shared, pe: Pe, segment: Segment) -> Result<ucp_rkey_h, Error> {
        let open = self.routes[pe.index()].open.as_ref();
        match open.map(|open| open.endpoint.keys[segment as usize]) {
            Some(key) if !key.is_null() => Ok(key),
            _ => self.unpack(shared, pe, segment),
        }
    }

    #[cold]
    fn unpack(&mut self, shared: &Shared, pe: Pe, segment: Segment) -> Result<ucp_rkey_h, Error> {
        let ucp = self.ucp();
        let open = self.routes[pe.index()].open.as_mut().ok_or(Error::Unreachable(pe))?;
        let record = shared.peers.record(pe).ok_or(Error::Unreachable(pe))?;
        let key = open.endpoint.unpack(ucp, &connect::key(pe, record, segment)?.packed);
        let key = key.map_err(|why| shared.lose(pe, &format!("its memory: {why}")))?;
        open.endpoint.keys[segment as usize] = key;
        Ok(key)
    }

    /// Lets the worker work; returns whether there was anything to do.
    pub(crate) fn progress(&mut self, shared: &Shared) -> Result<bool, Error> {
        let worked = self.worker.progress();
        if self.pending.take_broke() {
            for (pe, route) in self.routes.iter() {
                // Who breaks with us when nothing is in flight may have left in order.
                let status = route.open.as_ref().and_then(|open| open.connection.broken());
                if let Some(status) = status.filter(|_| route.touched || route.owing) {
                    return Err(shared.lose(pe, &said(self.ucp(), status)));
                }
            }
        }
        shared.loss.check().map(|()| worked)
    }

    /// Waits until `ready`, and serves peers meanwhile.
    fn until(
        &mut self,
        shared: &Shared,
        mut ready: impl FnMut(&mut Origin) -> bool,
    ) -> Result<(), Error> {
        if ready(self) {
            return Ok(());
        }
        let mut backoff = shared.begin();
        let result = loop {
            match self.progress(shared) {
                Ok(true) => backoff.renew(),
                Ok(false) => shared.pause(&mut backoff, &self.worker),
                Err(error) => break Err(error),
            }
            if ready(self) {
                break Ok(());
            }
        };
        shared.end(&backoff);
        result
    }

    /// Waits until an operation has ended.
    fn end(&mut self, shared: &Shared, pe: Pe, request: Option<UcpRequest>) -> Result<(), Error> {
        let Some(request) = request else { return Ok(()) };
        let ucp = self.ucp();
        let mut status = None;
        let waited = self.until(shared, |_| {
            status = request.status(ucp);
            status.is_some()
        });
        if let Err(error) = waited {
            self.given_up.push(request);
            return Err(error);
        }
        request.free(ucp);
        match status {
            Some(Err(status)) => Err(shared.lose(pe, &said(ucp, status))),
            _ => Ok(()),
        }
    }

    fn fails(&self, shared: &Shared, pe: Pe) -> impl Fn(ucs_status_t) -> Error {
        let ucp = self.ucp();
        move |status| shared.lose(pe, &said(ucp, status))
    }

    /// Waits until there is room for one more.
    #[inline]
    fn room(&mut self, shared: &Shared) -> Result<(), Error> {
        let max = shared.tuning.max_in_flight;
        if self.pending.in_flight() < max {
            return Ok(());
        }
        self.until(shared, |origin| origin.pending.in_flight() < max)
    }

    /// Copies between local memory and a PE's.
    ///
    /// # Safety
    /// The local memory is valid for reads, or for writes, until the call returns or, for the
    /// non-blocking ones, until the transfer is complete.
    pub(crate) unsafe fn transfer(
        &mut self,
        shared: &Shared,
        pe: Pe,
        kind: Transfer,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        let remote = shared.peers.get(pe)?.address(pe, at, local.nbytes)?;
        if local.nbytes == 0 {
            return Ok(());
        }
        let is_put = matches!(kind, Transfer::Put | Transfer::PutNbi);
        if self.worker.copies() {
            let access = if is_put { LocalAccess::Read } else { LocalAccess::Write };
            shared.loss.check_memory(access, local)?;
        }
        let (endpoint, connection) = self.connection(shared, pe)?;
        self.touch(pe);
        let is_held = kind == Transfer::PutNbi && self.may_hold(local.nbytes);
        if !is_held {
            self.send_held(shared, pe)?;
        }
        let key = self.key(shared, pe, at.segment)?;
        if is_put {
            if is_held {
                // It travels in a message, of which UCX's fence knows nothing.
                self.follow_puts(shared, pe, &connection, false)?;
                // SAFETY: valid by contract.
                return unsafe { self.hold(shared, pe, at, local) };
            }
            self.follow_requests(shared, pe)?;
            self.follow_puts(shared, pe, &connection, self.worker.orders())?;
            self.routes[pe.index()].dirty = true;
        }
        let blocks = matches!(kind, Transfer::Put | Transfer::Get);
        let params = if blocks { plain() } else { noted(&connection) };
        let (ucp, params) = (self.ucp(), &raw const params);
        if !is_put {
            self.room(shared)?;
            let (base, nbytes) = (local.base.cast::<c_void>(), local.nbytes);
            // SAFETY: a live endpoint and its key; the local memory is valid by contract.
            let begun = unsafe { ucp.ucp_get_nbx(endpoint, base, nbytes, remote, key, params) };
            return self.finish_or_note(shared, pe, &connection, blocks, begun);
        }
        let mut done = 0;
        while done < local.nbytes {
            self.room(shared)?;
            let to = remote + done as u64;
            // A piece ends at a word of the target, wherever the put begins.
            let longest = self.worker.longest_put() - (to % 8) as usize;
            let piece = local.skip(done).first(longest);
            let base = piece.base.cast::<c_void>();
            // SAFETY: a live endpoint and its key; the local memory is valid by contract.
            let begun = unsafe { ucp.ucp_put_nbx(endpoint, base, piece.nbytes, to, key, params) };
            self.finish_or_note(shared, pe, &connection, blocks, begun)?;
            done += piece.nbytes;
        }
        Ok(())
    }

    #[inline]
    fn finish_or_note(
        &mut self,
        shared: &Shared,
        pe: Pe,
        connection: &Connection,
        blocks: bool,
        begun: ucs_status_ptr_t,
    ) -> Result<(), Error> {
        if blocks {
            let request = started(begun).map_err(self.fails(shared, pe))?;
            return self.end(shared, pe, request);
        }
        connection.began(begun).map_err(self.fails(shared, pe))
    }

    /// Has the target's CPU carry out an atomic operation, after a put of `data` to `place` if there is any, and where it is
    /// `ordered` after all puts and requests before. The old value goes to `fetched`, unless that is null. When it `blocks`, it waits until
    /// the data may change.
    ///
    /// # Safety
    /// `fetched` is valid for writes of a word until the operation is complete; the data is valid for
    /// reads until the call returns or, when it does not block, until then.
    pub(crate) unsafe fn ask(
        &mut self,
        shared: &Shared,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
        (data, place): (LocalBuf, RemoteAddr),
        (ordered, blocks): (bool, bool),
    ) -> Result<(Rc<Slot>, u32), Error> {
        let AmoRequest { dest: word, width, op, operand, condition, .. } = *request;
        let (_, connection) = self.connection(shared, pe)?;
        self.send_held(shared, pe)?;
        if ordered {
            self.follow_all_puts(pe);
        }
        self.follow_puts(shared, pe, &connection, false)?;
        let update = Some(Update { op, width, operand, condition, word });
        let parts =
            MessageParts { update, data, place, fetched, ordered, blocks, ..MessageParts::EMPTY };
        // SAFETY: the same contract.
        unsafe { self.send(shared, pe, parts) }
    }

    /// Sends a request as the next of its stream.
    ///
    /// # Safety
    /// As [`ask`](Origin::ask) about the message's data and what it fetches.
    unsafe fn send(
        &mut self,
        shared: &Shared,
        pe: Pe,
        parts: MessageParts,
    ) -> Result<(Rc<Slot>, u32), Error> {
        let MessageParts { kind, update, data, place, fetched, ordered, asks, blocks } = parts;
        let (endpoint, connection) = self.connection(shared, pe)?;
        self.room(shared)?;
        if !asks {
            self.room_in_window(shared, pe)?;
        }
        let is_due = !fetched.is_null();
        let width = update.map_or(AmoWidth::Eight, |update| update.width);
        let slot = self.pending.slot(&connection, fetched, width);
        let data = match kind {
            PUTS_KIND => slot.keep_data(&mut self.routes[pe.index()].held),
            _ => data,
        };
        let (told, window) = (self.pending.told(pe), shared.tuning.window());
        let asked = &mut self.routes[pe.index()].asked;
        let header = slot.keep(
            Request {
                stream: Stream { pe: shared.me, origin: self.number },
                place: asked.place(self.fences, told, window, (ordered, asks)),
                news: shared.answers.for_message_to(pe),
                due: is_due.then(|| slot.as_due()),
                update,
                data: place,
            }
            .encode(),
        );
        self.owes(pe);
        let mut params =
            if blocks { plain() } else { callback(Some(sent), Rc::as_ptr(&slot).cast()) };
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_REPLY;
        if update.is_none() || data.nbytes == 0 {
            params.flags |= UCP_AM_SEND_FLAG_EAGER;
        }
        let base = data.base.cast_const().cast();
        // SAFETY: a live endpoint, a header that is kept until it is sent, data that is valid by contract.
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
        shared: &Shared,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
    ) -> Result<(Rc<Slot>, u32), Error> {
        let AmoRequest { dest: word, width, op, operand, condition, .. } = *request;
        let remote = shared.peers.get(pe)?.address(pe, word, width.nbytes())?;
        let (endpoint, connection) = self.connection(shared, pe)?;
        self.touch(pe);
        self.send_held(shared, pe)?;
        let key = self.key(shared, pe, word.segment)?;
        self.room(shared)?;
        self.follow_requests(shared, pe)?;
        self.follow_puts(shared, pe, &connection, self.worker.orders())?;
        self.routes[pe.index()].dirty = true;
        let slot = self.pending.slot(&connection, fetched, width);
        let turn = slot.turn();
        let atomic = Atomic::new(op, operand, condition);
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

    /// Waits until the operation that had a slot in this turn has ended.
    pub(crate) fn answered(
        &mut self,
        shared: &Shared,
        (slot, turn): (Rc<Slot>, u32),
    ) -> Result<(), Error> {
        self.until(shared, |_| slot.is_past(turn))
    }

    /// After a loss: ends what is in flight, so that UCX uses no caller's memory any more. Endpoints are closed by force,
    /// since UCX cancels receives alone.
    ///
    /// # Errors
    /// How many operations have not ended within the limit.
    pub(crate) fn abandon(&mut self, limit: Duration) -> Result<(), usize> {
        self.pending.forget_fetched();
        for route in self.routes.iter_mut() {
            route.held.clear();
            self.given_up.extend(route.flush.take());
            if self.worker.closes_by_force()
                && let Some(open) = route.open.take()
            {
                self.given_up.extend(self.worker.close_by_force(&open.endpoint));
                self.closed.push(open);
            }
        }
        let until = Instant::now() + limit;
        while self.unended() > 0 {
            if Instant::now() >= until {
                return Err(self.unended());
            }
            if !self.worker.progress() {
                thread::yield_now();
            }
        }
        let ucp = self.ucp();
        for closed in &mut self.closed {
            closed.endpoint.forget_keys(ucp);
        }
        Ok(())
    }

    /// How many operations UCX is not done with.
    pub(crate) fn unended(&mut self) -> usize {
        let ucp = self.ucp();
        self.given_up.retain(|request| {
            let is_in_flight = request.status(ucp).is_none();
            if !is_in_flight {
                request.free(ucp);
            }
            is_in_flight
        });
        self.given_up.len() + self.pending.transfers()
    }

    /// Makes ready for the worker's end, which ends all connections: everything was completed or given up.
    pub(crate) fn leave(&mut self) {
        let ucp = self.ucp();
        for route in self.routes.iter_mut() {
            route.flush.take().inspect(|flush| flush.free(ucp));
            if let Some(open) = &mut route.open {
                open.endpoint.forget_keys(ucp);
            }
        }
    }
}
