//! The wire of an origin over UCX: a worker, its endpoints, and the operations on them.
#![allow(unsafe_code)]

mod establish;

use crate::callbacks::{
    AwaitedRequest, CallbackSlot, CallbackState, ConnectionState, KeptMessage, operated, replied,
    sent, tracked_params,
};
use crate::connect::UcxKey;
use crate::service::{REPLY_KIND, REQUEST_KIND};
use crate::settings::{BATCH_NBYTES, SESSION_BATCH_NBYTES};
use crate::shared::SharedState;
use crate::ucp::{
    UcpAtomic, UcpEndpoint, UcpRemote, UcpRequest, Worker, callback_params, plain_params, started,
};
use rushmem_connect::Attempts;
use rushmem_transport::engine::Remote;
use rushmem_transport::engine::{
    NetworkAmos, NextEvent, Polled, PolledUntil, PostOutcome, SentMessage, StreamOrder, TakeReply,
    Wire, WireCaps, WriteEnd, refuse,
};
use rushmem_transport::{AmoRequest, AmoSet, Amos, DestBuf, Error, LocalBuf, Pe, PeMap, SourceBuf};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use ucx_sys::{
    UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_REPLY, UCP_OP_ATTR_FIELD_FLAGS, Ucp,
    ucp_request_param_t, ucp_rkey_h, ucs_status_ptr_t,
};

/// The wire. Fields are dropped in this order: the worker before the state that its callbacks use.
pub(crate) struct UcxWire {
    worker: Worker,
    routes: PeMap<PeRoute>,
    callbacks: Rc<CallbackState>,
    /// Endpoints that are not used any more: closed by force after a failure or a loss, or never
    /// connected. They are kept, since UCX may still call back with their connections.
    closed: Vec<OpenRoute>,
    /// The descriptor that signals events of the worker.
    efd: Arc<OwnedFd>,
    caps: WireCaps,
}

// SAFETY: the clones of an `Rc` are in the wire and in the tokens that it gives to its origin, and
// the callbacks of its worker use raw pointers. The lock of the origin lets one thread at a time
// use all of these.
unsafe impl Send for UcxWire {}

/// An operation that a call waits for.
pub(crate) enum UcxToken {
    Request(AwaitedRequest),
    /// An operation of which the callback releases the slot: it has ended once the slot has another
    /// generation.
    Slot {
        slot: Rc<CallbackSlot>,
        generation: u32,
    },
}

/// The state of the connection to one PE.
#[derive(Default)]
struct PeRoute {
    open: Option<OpenRoute>,
    connecting: Option<Connecting>,
    /// The last flush, until its end was observed.
    flush: Option<UcpRequest>,
}

/// An endpoint, and the state that UCX's callbacks for it change.
struct OpenRoute {
    endpoint: UcpEndpoint,
    connection: Rc<ConnectionState>,
}

/// A connection that `establish` is making.
struct Connecting {
    attempts: Attempts,
    /// The attempt that is in progress; `None` during a pause.
    pending: Option<PendingAttempt>,
}

/// An endpoint, and its first flush, which connects it.
struct PendingAttempt {
    open: OpenRoute,
    flush: UcpRequest,
}

impl UcxWire {
    pub(crate) fn new(shared: &SharedState) -> Result<UcxWire, String> {
        // Before the worker, so that it is dropped after it, also if a later step fails.
        let callbacks = Rc::new(CallbackState::default());
        let worker = Worker::new(&shared.context)?;

        let arg = Rc::as_ptr(&callbacks).cast_mut().cast();
        // SAFETY: `replied` takes a `CallbackState`, to which `arg` points. This function and the
        // wire drop it after the worker.
        unsafe { worker.on_message(REPLY_KIND, Some(replied), arg) }?;

        let efd = worker.efd().try_clone_to_owned();
        let efd = efd.map_err(|error| format!("the kernel refused: {error}"))?;
        Ok(UcxWire {
            worker,
            routes: PeMap::new(shared.peers.n_pes()),
            callbacks,
            closed: Vec::new(),
            efd: Arc::new(efd),
            caps: caps(shared),
        })
    }

    #[cfg(test)]
    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    fn ucp(&self) -> &'static Ucp {
        self.worker.ucp()
    }

    fn open_route(&self, pe: Pe) -> Result<&OpenRoute, Error> {
        let open = self.routes.get(pe).and_then(|route| route.open.as_ref());
        open.ok_or(Error::Unreachable(pe))
    }

    /// Returns the address of a range of a connected PE in the process of that PE, with the
    /// endpoint and the key.
    #[inline]
    fn remote(
        &mut self,
        shared: &SharedState,
        range: &Remote<'_, SharedState>,
    ) -> Result<UcpRemote, Error> {
        let OpenRoute {
            endpoint,
            connection,
        } = self.open_route(range.pe)?;
        check_unbroken(shared, range.pe, connection)?;

        let handle = endpoint.handle;
        let key = match endpoint.key(range.key.number) {
            Some(key) => key,
            None => self.unpack(shared, range.pe, range.key)?,
        };
        Ok(UcpRemote {
            endpoint: handle,
            key,
            address: range.key.address(range.addr.offset),
        })
    }

    /// Returns true if the maximum number of operations is in flight.
    #[inline]
    fn is_full(&self) -> bool {
        self.callbacks.transfers() >= self.caps.max_in_flight
    }

    #[cold]
    fn unpack(&mut self, shared: &SharedState, pe: Pe, key: &UcxKey) -> Result<ucp_rkey_h, Error> {
        let ucp = self.ucp();
        let route = &mut self.routes[pe];
        let open = route.open.as_mut().ok_or(Error::Unreachable(pe))?;
        let unpacked = open.endpoint.unpack(ucp, key.number, &key.packed);
        unpacked.map_err(|why| shared.lose_peer(pe, &format!("its memory: {why}")))
    }

    /// Starts a write or a read of a range of a PE. `start` calls UCX with the remote address, a
    /// live endpoint and its key. If the operation is not `awaited`, UCX calls back at its end.
    #[inline(always)]
    fn transfer(
        &mut self,
        shared: &SharedState,
        range: &Remote<'_, SharedState>,
        awaited: bool,
        start: impl FnOnce(&Ucp, UcpRemote, *const ucp_request_param_t) -> ucs_status_ptr_t,
    ) -> Result<PostOutcome<UcxToken>, Error> {
        if self.is_full() {
            return Ok(PostOutcome::Full);
        }

        let pe = range.pe;
        let remote = self.remote(shared, range)?;
        if awaited {
            let params = plain_params();
            let begun = start(self.ucp(), remote, &raw const params);
            return match started(begun) {
                Ok(None) => Ok(PostOutcome::Done),
                Ok(Some(request)) => Ok(self.pending(request, None)),
                Err(status) => Err(shared.lose_by(pe, status)),
            };
        }

        let connection = &self.open_route(pe)?.connection;
        let params = tracked_params(connection);
        let begun = start(self.ucp(), remote, &raw const params);
        match started(begun) {
            Ok(None) => {}
            Ok(Some(_)) => connection.record_start(),
            Err(status) => return Err(shared.lose_by(pe, status)),
        }
        Ok(PostOutcome::Done)
    }

    /// Returns the outcome of starting an operation for which a call waits, with the slot, if any,
    /// that is released when the request has ended.
    fn pending(
        &self,
        request: UcpRequest,
        slot: Option<Rc<CallbackSlot>>,
    ) -> PostOutcome<UcxToken> {
        PostOutcome::Pending(UcxToken::Request(AwaitedRequest {
            request,
            slot,
            ucp: self.ucp(),
            callbacks: Rc::clone(&self.callbacks),
        }))
    }

    /// Frees ended requests that no call waits for. Returns the number of operations that UCX has
    /// not completed.
    pub(crate) fn free_ended(&self) -> usize {
        self.callbacks.free_ended(self.ucp())
    }

    /// Closes an endpoint by force, and keeps it for callbacks that UCX may still call.
    fn close(&mut self, open: OpenRoute) {
        let closing = self.worker.close_by_force(&open.endpoint);
        self.callbacks.give_up(closing);
        self.closed.push(open);
    }

    /// Frees requests and keys before the worker is dropped, which closes all endpoints. All
    /// operations were completed or given up.
    pub(crate) fn leave(&mut self) {
        self.free_ended();
        let ucp = self.ucp();
        for route in self.routes.iter_mut() {
            if let Some(flush) = route.flush.take() {
                flush.free(ucp);
            }
            if let Some(open) = &mut route.open {
                open.endpoint.forget_keys(ucp);
            }
            if let Some(connecting) = &mut route.connecting
                && let Some(PendingAttempt { open, flush }) = connecting.pending.take()
            {
                flush.free(ucp);
                self.closed.push(open);
            }
        }
    }
}

/// Reports the loss of a PE if the connection to it has broken.
fn check_unbroken(shared: &SharedState, pe: Pe, connection: &ConnectionState) -> Result<(), Error> {
    match connection.broken() {
        None => Ok(()),
        Some(status) => Err(shared.lose_by(pe, status)),
    }
}

fn caps(shared: &SharedState) -> WireCaps {
    let context = &shared.context;
    let tuning = &shared.tuning;

    let order = if context.orders {
        StreamOrder::WritesByFence
    } else {
        StreamOrder::Unordered
    };
    let operations = match shared.local.amos {
        Amos::Software => AmoSet::default(),
        Amos::Network => AmoSet::of(|op, _| UcpAtomic::has(op)),
    };

    WireCaps {
        batches: context.copies,
        // UCX answers a put before its progress function returns, except over shared memory, which
        // an endpoint that reports failures does not use.
        lone_puts_are_requests: context.copies && context.notices_failures,
        lone_flags_are_writes: false,
        sessions: true,
        order,
        polled: PolledUntil::Acknowledged,
        flushes_free: !context.copies,
        flushes_in_wait: !context.copies,
        amos: NetworkAmos {
            operations,
            // The target's CPU can wake a thread that waits for a flag.
            on_flags: false,
        },
        longest_signaled: usize::MAX,
        longest_write: context.longest_put,
        longest_read: usize::MAX,
        longest_batch: BATCH_NBYTES,
        longest_session_batch: SESSION_BATCH_NBYTES,
        window: tuning.window(),
        max_unanswered: tuning.max_in_flight,
        max_in_flight: tuning.max_in_flight,
    }
}

impl Wire for UcxWire {
    type Network = SharedState;
    type Token = UcxToken;

    fn caps(&self) -> WireCaps {
        self.caps
    }

    #[inline]
    fn reach(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        if self.open_route(pe).is_ok() {
            return Ok(true);
        }
        self.connect(shared, pe)
    }

    #[inline]
    fn write(
        &mut self,
        shared: &SharedState,
        to: Remote<'_, SharedState>,
        source: &mut SourceBuf,
        WriteEnd { awaited, .. }: WriteEnd,
    ) -> Result<PostOutcome<UcxToken>, Error> {
        let LocalBuf { base, nbytes } = source.range();
        self.transfer(shared, &to, awaited, |ucp, to, params| {
            // SAFETY: `to` has a live endpoint of this worker and a key that was unpacked for it.
            // The source is valid for reads until the write is over, by the contract of
            // `SourceBuf`.
            unsafe { ucp.ucp_put_nbx(to.endpoint, base.cast(), nbytes, to.address, to.key, params) }
        })
    }

    #[inline]
    fn read(
        &mut self,
        shared: &SharedState,
        from: Remote<'_, SharedState>,
        dest: &mut DestBuf,
        awaited: bool,
    ) -> Result<PostOutcome<UcxToken>, Error> {
        let LocalBuf { base, nbytes } = dest.range();
        self.transfer(shared, &from, awaited, |ucp, from, params| {
            // SAFETY: `from` has a live endpoint of this worker and a key that was unpacked for it.
            // The destination is valid for writes until the read is over, by the contract of
            // `DestBuf`.
            unsafe {
                ucp.ucp_get_nbx(
                    from.endpoint,
                    base.cast(),
                    nbytes,
                    from.address,
                    from.key,
                    params,
                )
            }
        })
    }

    fn amo(
        &mut self,
        shared: &SharedState,
        word: Remote<'_, SharedState>,
        request: &AmoRequest,
        fetched: &mut Option<DestBuf>,
    ) -> Result<PostOutcome<UcxToken>, Error> {
        let AmoRequest {
            width,
            op,
            operand,
            condition,
            ..
        } = *request;
        if self.is_full() {
            return Ok(PostOutcome::Full);
        }

        let pe = word.pe;
        let remote = self.remote(shared, &word)?;
        let connection = &self.open_route(pe)?.connection;
        let slot = self.callbacks.slot(connection);
        // Before the operation starts, since its end changes the generation.
        let generation = slot.generation();

        let atomic = UcpAtomic::new(op, operand, condition);
        let arguments = slot.keep_words(atomic.first, atomic.second, width, fetched.take());
        let params = callback_params(Some(operated), Rc::as_ptr(&slot).cast());
        let ucp = self.ucp();
        // SAFETY: `remote` has a live endpoint of this worker and a key that was unpacked for it.
        // `arguments` are the words that the slot keeps until the operation ends.
        let begun = unsafe { atomic.begin(ucp, remote, width, arguments, params) };

        match started(begun) {
            Ok(None) => {
                slot.end_atomic(&self.callbacks);
                Ok(PostOutcome::Done)
            }
            Ok(Some(_)) => {
                connection.record_start();
                Ok(PostOutcome::Pending(UcxToken::Slot { slot, generation }))
            }
            Err(status) => {
                self.callbacks.release(&slot);
                Err(shared.lose_by(pe, status))
            }
        }
    }

    #[inline]
    fn send(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        SentMessage {
            request,
            entries,
            attached,
            awaited,
        }: SentMessage<'_>,
    ) -> Result<PostOutcome<UcxToken>, Error> {
        if self.is_full() {
            return Ok(PostOutcome::Full);
        }

        let OpenRoute {
            endpoint,
            connection,
        } = self.open_route(pe)?;
        check_unbroken(shared, pe, connection)?;

        let slot = self.callbacks.slot(connection);
        let KeptMessage { header, data } =
            slot.keep_message(&self.callbacks, request, entries, attached);

        let mut params = if awaited {
            plain_params()
        } else {
            callback_params(Some(sent), Rc::as_ptr(&slot).cast())
        };
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_REPLY;
        // The target accepts attached data that it has to fetch, but no such entries.
        if attached.nbytes() == 0 {
            params.flags |= UCP_AM_SEND_FLAG_EAGER;
        }

        let params = &raw const params;
        let header_base = header.base.cast_const().cast();
        let data_base = data.base.cast_const().cast();
        // SAFETY: `endpoint` is a live one of this worker. The slot keeps the header until it is
        // sent, and so the data if they are entries; the creator of a `SourceBuf` keeps attached
        // data until the operation is done.
        let begun = unsafe {
            self.ucp().ucp_am_send_nbx(
                endpoint.handle,
                REQUEST_KIND,
                header_base,
                header.nbytes,
                data_base,
                data.nbytes,
                params,
            )
        };

        match started(begun) {
            Err(status) => {
                self.callbacks.release(&slot);
                Err(shared.lose_by(pe, status))
            }
            Ok(None) => {
                self.callbacks.release(&slot);
                Ok(PostOutcome::Done)
            }
            Ok(Some(request)) if awaited => Ok(self.pending(request, Some(slot))),
            Ok(Some(_)) => {
                connection.record_start();
                Ok(PostOutcome::Done)
            }
        }
    }

    fn is_over(&mut self, shared: &SharedState, pe: Pe, token: &UcxToken) -> Result<bool, Error> {
        match token {
            UcxToken::Slot { slot, generation } => {
                if !slot.is_past(*generation) {
                    return Ok(false);
                }
                // An operation that has failed leaves its status with the connection alone.
                check_unbroken(shared, pe, &self.open_route(pe)?.connection)?;
                Ok(true)
            }
            UcxToken::Request(awaited) => match awaited.request.status(self.ucp()) {
                None => Ok(false),
                Some(Ok(())) => Ok(true),
                Some(Err(status)) => Err(shared.lose_by(pe, status)),
            },
        }
    }

    /// Returns false while transfers are in flight: UCX may have sent only a part of them, and its
    /// fence does not order the rest.
    fn fence(&mut self, shared: &SharedState) -> Result<bool, Error> {
        if self.callbacks.transfers() > 0 {
            return Ok(false);
        }
        match self.worker.fence() {
            Ok(()) => Ok(true),
            Err(why) => Err(shared.local.loss.of_self(&why)),
        }
    }

    fn begin_flush(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        let ucp = self.ucp();
        let route = &mut self.routes[pe];
        let Some(open) = &route.open else {
            return Ok(());
        };
        // The new flush also covers the operations of the older one. Freeing that one's request
        // does not end it.
        if let Some(older) = route.flush.take() {
            older.free(ucp);
        }

        match open.endpoint.flush(ucp) {
            Ok(flush) => {
                route.flush = flush;
                Ok(())
            }
            Err(status) => Err(shared.lose_by(pe, status)),
        }
    }

    /// Returns true if no transfer to a PE is in flight and its last flush, if there was one, has
    /// ended.
    fn is_flushed(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        let ucp = self.ucp();
        let route = &mut self.routes[pe];
        if let Some(open) = &route.open
            && open.connection.transfers() > 0
        {
            return Ok(false);
        }

        let Some(flush) = route.flush else {
            return Ok(true);
        };
        let Some(status) = flush.status(ucp) else {
            return Ok(false);
        };

        flush.free(ucp);
        route.flush = None;
        match status {
            Ok(()) => Ok(true),
            Err(status) => Err(shared.lose_by(pe, status)),
        }
    }

    #[inline]
    fn in_flight(&self) -> usize {
        self.callbacks.transfers()
    }

    fn in_flight_to(&self, pe: Pe) -> usize {
        self.open_route(pe)
            .map_or(0, |open| open.connection.transfers())
    }

    #[inline]
    fn poll(&mut self, shared: &SharedState, take: TakeReply<'_>) -> Result<Polled, Error> {
        let worked = self.callbacks.while_taking(take, || self.worker.progress());
        match self.callbacks.take_refused() {
            Some(message) => Err(refuse(shared, &message)),
            None if self.callbacks.take_broke() => Ok(Polled::Broke),
            None if worked => Ok(Polled::Worked),
            None => Ok(Polled::Idle),
        }
    }

    #[inline]
    fn serve(&self, shared: &SharedState) -> Result<bool, Error> {
        Ok(shared.serve_for_waiter())
    }

    /// Reports the loss of the PE if its connection broke. UCX itself checks that peers are alive.
    fn confirm(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        match self.open_route(pe) {
            Ok(open) => check_unbroken(shared, pe, &open.connection),
            // A connection that is being made has a limit of its own.
            Err(_) => Ok(()),
        }
    }

    fn sleep(&mut self, shared: &SharedState, at_most: Duration) {
        shared.sleep_until_event(Some(&self.worker), &[], at_most, &mut || false);
    }

    fn arm(&self, _: bool) -> NextEvent {
        if self.worker.arm() {
            NextEvent::On(Arc::clone(&self.efd))
        } else {
            NextEvent::Unsignaled
        }
    }

    /// Closes endpoints by force, if the context [can](UcpContext::notices_failures): UCX can
    /// cancel no single operation other than a receive. Then waits until all operations have ended,
    /// and fails if they take longer than the limit.
    fn abandon(&mut self, shared: &SharedState) -> Result<(), String> {
        self.callbacks.forget_fetched();
        self.give_up_routes();

        let limit = shared.tuning.abandon_limit;
        let until = Instant::now() + limit;
        while self.free_ended() > 0 {
            if Instant::now() >= until {
                return Err(format!(
                    "{limit:?} later UCX still uses memory of calls that have failed (operations in flight: {}), so \
                     this process ends: let UCX use transports that it can cancel (SHMEM_UCX_TLS), or another network \
                     (SHMEM_TRANSPORT)",
                    self.free_ended()
                ));
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
}

impl UcxWire {
    /// Gives up the flushes of all connections, and closes their endpoints by force if the context
    /// [can](UcpContext::notices_failures).
    fn give_up_routes(&mut self) {
        let mut opened = Vec::new();
        for route in self.routes.iter_mut() {
            self.callbacks.give_up(route.flush.take());
            if !self.worker.context.notices_failures {
                continue;
            }

            opened.extend(route.open.take());
            if let Some(connecting) = route.connecting.take()
                && let Some(PendingAttempt { open, flush }) = connecting.pending
            {
                self.callbacks.give_up([flush]);
                opened.push(open);
            }
        }

        for open in opened {
            self.close(open);
        }
    }
}

#[cfg(test)]
mod tests;
