//! What peers ask for by messages: atomic operations, with the data of puts ahead of them, and
//! batches of small operations. UCX calls what is here while the service worker is polled.
//!
//! A message that cannot be carried out is the loss of the peer that sent it.
#![allow(unsafe_code)]

use crate::ucp::{ReceivedData, ReceivedMessage, callback, plain, said, started};
use rushmem_transport::kit::acks::Acks;
use rushmem_transport::kit::carried_out::Turn;
use rushmem_transport::kit::message::{Body, REPLY, Reply, Request};
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::stream::Stream;
use rushmem_transport::kit::streams::Streams;
use rushmem_transport::kit::violation::{RefusedMessage, Violation};
use rushmem_transport::{Host, LocalBuf, Pe};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;
use ucx_sys::{
    UCP_AM_SEND_FLAG_EAGER, UCP_OP_ATTR_FIELD_CALLBACK, UCP_OP_ATTR_FIELD_FLAGS,
    UCP_OP_ATTR_FIELD_USER_DATA, UCS_ERR_INVALID_PARAM, UCS_INPROGRESS, UCS_OK, Ucp,
    ucp_am_recv_param_t, ucp_ep_h, ucp_worker_h, ucs_status_t,
};

/// The kind of message that is a request.
pub(crate) const REQUEST_KIND: u32 = 1;
/// The kind of message that is a batch.
pub(crate) const BATCH_KIND: u32 = 3;
/// The kind of message that is a reply.
pub(crate) const REPLY_KIND: u32 = 2;

/// What the callbacks use.
pub(crate) struct Target {
    ucp: &'static Ucp,
    worker: ucp_worker_h,
    segments: Arc<Segments>,
    host: Arc<dyn Host>,
    pub(crate) acks: Arc<Acks>,
    /// What peers request. It is not borrowed while UCX is called.
    streams: RefCell<Streams<Early>>,
    /// Replies that were sent, to be used again.
    #[expect(clippy::vec_box, reason = "UCX is given their addresses")]
    spare: RefCell<Vec<Box<SentReply>>>,
    /// Requests were carried out since this was last taken.
    worked: Cell<bool>,
    /// The first message that could not be carried out since this was last taken.
    refused: RefCell<Option<RefusedMessage>>,
}

/// A reply that UCX may still have to read.
struct SentReply {
    bytes: [u8; REPLY],
    /// What follows the reply to a batch.
    answers: Vec<u8>,
    target: *const Target,
    /// Whose call waits for it, if one does for sure.
    awaited_by: Option<Pe>,
}

/// A request, and where the reply to it goes.
#[derive(Clone, Copy)]
struct Incoming {
    request: Request,
    reply_to: ucp_ep_h,
}

/// What comes with a request.
#[derive(Clone, Copy)]
enum Data<'a> {
    /// Bytes that came with it.
    Here(Body<'a>),
    /// This many bytes, which UCX is to fetch by this.
    There(*mut c_void, usize),
}

/// The same of a request that came early.
enum Kept {
    Here(Vec<u8>),
    Batch(Vec<u8>),
    There(*mut c_void, usize),
}

/// A request that came before what it is to follow.
struct Early {
    incoming: Incoming,
    kept: Kept,
}

/// A request whose data is on its way.
struct Deferred {
    incoming: Incoming,
    target: *const Target,
}

impl Target {
    pub(crate) fn new(
        ucp: &'static Ucp,
        worker: ucp_worker_h,
        me: Pe,
        (segments, host): (Arc<Segments>, Arc<dyn Host>),
        acks: Arc<Acks>,
    ) -> Target {
        let streams = RefCell::new(Streams::new(me));
        let (spare, worked, refused) = (RefCell::default(), Cell::new(false), RefCell::default());
        Target { ucp, worker, segments, host, acks, streams, spare, worked, refused }
    }

    /// Returns true if requests were carried out since the last call.
    pub(crate) fn take_worked(&self) -> bool {
        self.worked.take()
    }

    /// The first message that could not be carried out since the last call.
    pub(crate) fn take_refused(&self) -> Option<RefusedMessage> {
        self.refused.take()
    }

    fn refuse(&self, message: RefusedMessage) {
        self.refused.borrow_mut().get_or_insert(message);
    }

    /// A request came, with or without data.
    fn take(&self, incoming: Incoming, data: Data<'_>) -> Result<(), Violation> {
        let request = &incoming.request;
        if let Data::There(_, nbytes) = data {
            self.place(request, nbytes)?;
        }
        let early = || Early { incoming, kept: data.keep() };
        let turn = self.streams.borrow_mut().arrived(&self.acks, request, early)?;
        if turn == Turn::Now {
            self.carry_out(incoming, data)?;
            self.carry_out_early(request.stream);
        }
        Ok(())
    }

    /// Carries out the requests that came early, as far as their turn has come.
    fn carry_out_early(&self, stream: Stream) {
        loop {
            let next = self.streams.borrow_mut().take_early(stream);
            let Some(Early { incoming, kept }) = next else { return };
            let carried_out = self.carry_out(
                incoming,
                match &kept {
                    Kept::Here(bytes) => Data::Here(Body::Data(bytes)),
                    Kept::Batch(batch) => Data::Here(Body::Batch(batch)),
                    Kept::There(descriptor, nbytes) => Data::There(*descriptor, *nbytes),
                },
            );
            if let Err(violation) = carried_out {
                return self.refuse(RefusedMessage::of(stream.pe, violation));
            }
        }
    }

    /// Carries out a request, or begins to.
    fn carry_out(&self, incoming: Incoming, data: Data<'_>) -> Result<(), Violation> {
        match data {
            Data::Here(body) => self.finish(incoming, body)?,
            Data::There(descriptor, nbytes) => {
                let place = self.place(&incoming.request, nbytes)?;
                self.fetch(incoming, descriptor, place);
            }
        }
        Ok(())
    }

    /// Returns where the data of a request go.
    fn place(&self, request: &Request, nbytes: usize) -> Result<LocalBuf, Violation> {
        let Request { dest, .. } = *request;
        self.segments.bytes(dest, nbytes).ok_or(Violation::Address(dest.offset))
    }

    /// Carries out a request whose other data are in place, and answers as it asks.
    fn finish(&self, incoming: Incoming, body: Body<'_>) -> Result<(), Violation> {
        let (request, mut answers) = (&incoming.request, Vec::new());
        let old = request.carry_out(body, &self.segments, &*self.host, &mut answers)?;
        self.worked.set(true);
        let reply = self.streams.borrow_mut().carried_out(&self.acks, request, old);
        if let Some(reply) = reply {
            self.reply(incoming, reply, answers);
        }
        Ok(())
    }

    fn reply(&self, Incoming { request, reply_to }: Incoming, reply: Reply, answers: Vec<u8>) {
        let spare = self.spare.borrow_mut().pop();
        let awaited_by = reply.old.map(|_| request.stream.pe);
        let mut answer = spare.unwrap_or_else(|| Box::new(SentReply::new(self)));
        (answer.bytes, answer.answers) = (reply.encode(), answers);
        answer.awaited_by = awaited_by;
        let (base, nbytes) = (answer.answers.as_ptr(), answer.answers.len());
        let answer = Box::into_raw(answer);
        // SAFETY: it lives until it is sent.
        let header = unsafe { &raw const (*answer).bytes };
        let mut params = callback(Some(answered), answer.cast_const().cast());
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        // SAFETY: the endpoint that came with the request, and an answer that lives until it is
        // sent.
        let sent = unsafe {
            let (header, params) = (header.cast(), &raw const params);
            self.ucp.ucp_am_send_nbx(
                reply_to,
                REPLY_KIND,
                header,
                REPLY,
                base.cast(),
                nbytes,
                params,
            )
        };
        let status = match started(sent) {
            Ok(Some(_)) => return,
            Ok(None) => UCS_OK,
            Err(status) => status,
        };
        // SAFETY: made by `into_raw` above, and UCX does not know it.
        self.is_sent(unsafe { Box::from_raw(answer) }, status);
    }

    /// A reply was sent, or could not be. A peer that waits for an old value has not left, and
    /// would wait for it forever; one that is acknowledged may have left.
    fn is_sent(&self, answer: Box<SentReply>, status: ucs_status_t) {
        if status != UCS_OK {
            let why = format!("a reply to it was not sent: {}", said(self.ucp, status));
            match answer.awaited_by {
                Some(pe) => self.refuse(RefusedMessage::of(pe, why)),
                None => rushmem_log::debug!("an acknowledgment was not sent: {why}"),
            }
        }
        self.spare.borrow_mut().push(answer);
    }

    /// Has UCX fetch the data of a request to where it belongs.
    fn fetch(&self, incoming: Incoming, descriptor: *mut c_void, place: LocalBuf) {
        let deferred = Box::into_raw(Box::new(Deferred { incoming, target: self }));
        let mut params = plain();
        params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        params.cb.recv_am = Some(fetched);
        params.user_data = deferred.cast();
        let (to, nbytes) = (place.base.cast(), place.nbytes);
        // SAFETY: the descriptor of the message that came, and as many bytes of a segment.
        let begun = unsafe {
            self.ucp.ucp_am_recv_data_nbx(self.worker, descriptor, to, nbytes, &raw const params)
        };
        match started(begun) {
            Ok(Some(_)) => {}
            // SAFETY: made by `into_raw` above; UCX has not called back.
            Ok(None) => unsafe { Deferred::end(deferred, UCS_OK) },
            // SAFETY: made by `into_raw` above; UCX does not call back after an error.
            Err(status) => unsafe { Deferred::end(deferred, status) },
        }
    }
}

impl Deferred {
    /// # Safety
    /// `this` was made by `into_raw` and is not used any more.
    unsafe fn end(this: *mut Deferred, status: ucs_status_t) {
        // SAFETY: by contract.
        let this = unsafe { Box::from_raw(this) };
        // SAFETY: it lives as long as the worker that calls.
        let target = unsafe { &*this.target };
        let stream = this.incoming.request.stream;
        if status != UCS_OK {
            let why = format!("its data did not come: {}", said(target.ucp, status));
            return target.refuse(RefusedMessage::of(stream.pe, why));
        }
        match target.finish(this.incoming, Body::Data(&[])) {
            Ok(()) => target.carry_out_early(stream),
            Err(violation) => target.refuse(RefusedMessage::of(stream.pe, violation)),
        }
    }
}

impl SentReply {
    fn new(target: *const Target) -> SentReply {
        SentReply { bytes: [0; REPLY], answers: Vec::new(), target, awaited_by: None }
    }
}

impl Data<'_> {
    fn is_there(self) -> bool {
        matches!(self, Data::There(..))
    }

    /// Returns what UCX is to know of data that are used.
    fn taken(self) -> ucs_status_t {
        if self.is_there() { UCS_INPROGRESS } else { UCS_OK }
    }

    /// Returns what UCX is to know of data that are not.
    fn refused(self) -> ucs_status_t {
        if self.is_there() { UCS_ERR_INVALID_PARAM } else { UCS_OK }
    }

    fn keep(self) -> Kept {
        match self {
            Data::Here(Body::Data(bytes)) => Kept::Here(bytes.to_vec()),
            Data::Here(Body::Batch(batch)) => Kept::Batch(batch.to_vec()),
            Data::There(descriptor, nbytes) => Kept::There(descriptor, nbytes),
        }
    }
}

/// A request came.
///
/// # Safety
/// UCX calls it with what it promises, and with the [`Target`] that it was given.
pub(crate) unsafe extern "C" fn requested(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: the same contract.
    unsafe { came(arg, (header, header_length), (data, length), param, false) }
}

/// A batch came.
///
/// # Safety
/// UCX calls it with what it promises, and with the [`Target`] that it was given.
pub(crate) unsafe extern "C" fn batched(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: the same contract.
    unsafe { came(arg, (header, header_length), (data, length), param, true) }
}

/// # Safety
/// As [`requested`] and [`batched`].
unsafe fn came(
    arg: *mut c_void,
    header: (*const c_void, usize),
    data: (*mut c_void, usize),
    param: *const ucp_am_recv_param_t,
    is_batch: bool,
) -> ucs_status_t {
    // SAFETY: it lives as long as the worker that calls.
    let target = unsafe { &*arg.cast_const().cast::<Target>() };
    // SAFETY: the same contract.
    let message = unsafe { ReceivedMessage::new(header, data, param) };
    let data = match message.data {
        ReceivedData::There(descriptor, nbytes) => Data::There(descriptor, nbytes),
        ReceivedData::Here(bytes) if is_batch => Data::Here(Body::Batch(bytes)),
        ReceivedData::Here(bytes) => Data::Here(Body::Data(bytes)),
    };
    let taken = match (Request::decode(message.header), message.reply_to) {
        (Err(message), _) => Err(message),
        (Ok(request), Some(reply_to)) if !(is_batch && data.is_there()) => {
            let taken = target.take(Incoming { request, reply_to }, data);
            taken.map_err(|violation| RefusedMessage::of(request.stream.pe, violation))
        }
        (Ok(request), _) => {
            Err(RefusedMessage::of(request.stream.pe, Violation::Unknown("kind of message")))
        }
    };
    match taken {
        Ok(()) => data.taken(),
        Err(message) => {
            target.refuse(message);
            data.refused()
        }
    }
}

/// The data of a request is in place.
///
/// # Safety
/// `user_data` is a [`Deferred`].
unsafe extern "C" fn fetched(
    request: *mut c_void,
    status: ucs_status_t,
    _: usize,
    user_data: *mut c_void,
) {
    let deferred = user_data.cast::<Deferred>();
    // SAFETY: not ended so far, since this is what ends it.
    let target = unsafe { &*deferred }.target;
    // SAFETY: it lives as long as the worker that calls.
    let ucp = unsafe { &*target }.ucp;
    // SAFETY: UCX calls once per request.
    unsafe { Deferred::end(deferred, status) };
    if let Ok(Some(request)) = started(request) {
        request.free(ucp);
    }
}

/// A reply was sent, or could not be.
///
/// # Safety
/// `user_data` is a [`SentReply`].
unsafe extern "C" fn answered(request: *mut c_void, status: ucs_status_t, user_data: *mut c_void) {
    // SAFETY: made by `into_raw`, and UCX is done with it.
    let answer = unsafe { Box::from_raw(user_data.cast::<SentReply>()) };
    // SAFETY: it lives as long as the worker that calls.
    let target = unsafe { &*answer.target };
    target.is_sent(answer, status);
    if let Ok(Some(request)) = started(request) {
        request.free(target.ucp);
    }
}
