//! What peers ask for by messages: atomic operations, with the data of puts ahead of them, and
//! batches of small operations. UCX calls what is here while the service worker is polled.
//!
//! A peer that sends what no PE would send gets no reply and does no harm.
#![allow(unsafe_code)]

use crate::ucp::{ReceivedData, ReceivedMessage, callback, plain, started};
use rushmem_transport::kit::acks::Acks;
use rushmem_transport::kit::batch;
use rushmem_transport::kit::carried_out::Turn;
use rushmem_transport::kit::message::{REPLY, Reply, Request};
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::stream::Stream;
use rushmem_transport::kit::streams::Streams;
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
}

/// A reply that UCX may still have to read.
struct SentReply {
    bytes: [u8; REPLY],
    /// What follows the reply to a batch.
    answers: Vec<u8>,
    target: *const Target,
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
    /// Bytes for one place.
    Here(&'a [u8]),
    /// Small operations.
    Batch(&'a [u8]),
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
        let (spare, worked) = (RefCell::default(), Cell::new(false));
        Target { ucp, worker, segments, host, acks, streams, spare, worked }
    }

    /// Whether requests were carried out since the last call.
    pub(crate) fn take_worked(&self) -> bool {
        self.worked.take()
    }

    /// A request came, with or without data; returns what UCX is to do with the data.
    fn take(&self, incoming: Incoming, data: Data<'_>) -> ucs_status_t {
        let request = &incoming.request;
        let (taken, refused) = (data.taken(), data.refused());
        if let Data::There(_, nbytes) = data
            && self.segments.bytes(request.dest, nbytes).is_none()
        {
            return refused;
        }
        let early = || Early { incoming, kept: data.keep() };
        let turn = self.streams.borrow_mut().arrived(&self.acks, request, early);
        match turn {
            Turn::Never => refused,
            Turn::Later => taken,
            Turn::Now if !self.carry_out(incoming, data) => refused,
            Turn::Now => {
                self.carry_out_early(request.stream);
                taken
            }
        }
    }

    /// Carries out the requests that came early, as far as their turn has come.
    fn carry_out_early(&self, stream: Stream) {
        loop {
            let next = self.streams.borrow_mut().take_early(stream);
            let Some(Early { incoming, kept }) = next else { return };
            self.carry_out(
                incoming,
                match &kept {
                    Kept::Here(bytes) => Data::Here(bytes),
                    Kept::Batch(batch) => Data::Batch(batch),
                    Kept::There(descriptor, nbytes) => Data::There(*descriptor, *nbytes),
                },
            );
        }
    }

    /// Carries out a request, or begins to; false if no PE would send such a one.
    fn carry_out(&self, incoming: Incoming, data: Data<'_>) -> bool {
        let at = incoming.request.dest;
        match data {
            Data::Here(bytes) => {
                (bytes.is_empty() || self.segments.write(at, bytes))
                    && self.finish(incoming, Vec::new())
            }
            Data::Batch(bytes) => {
                let mut answers = Vec::new();
                batch::carry_out(bytes, &self.segments, &*self.host, &mut answers)
                    && self.finish(incoming, answers)
            }
            Data::There(descriptor, nbytes) => match self.segments.bytes(at, nbytes) {
                Some(place) => {
                    self.fetch(incoming, descriptor, place);
                    true
                }
                None => false,
            },
        }
    }

    /// Carries out the update of a request whose data is in place, or whose batch is carried out,
    /// and answers as it asks.
    fn finish(&self, Incoming { request, reply_to }: Incoming, answers: Vec<u8>) -> bool {
        let Some(old) = request.apply(&self.segments) else { return false };
        self.worked.set(true);
        let reply = self.streams.borrow_mut().carried_out(&self.acks, &request, old);
        if let Some(reply) = reply {
            self.reply(reply_to, reply, answers);
        }
        true
    }

    fn reply(&self, to: ucp_ep_h, reply: Reply, answers: Vec<u8>) {
        let spare = self.spare.borrow_mut().pop();
        let new = || SentReply { bytes: [0; REPLY], answers: Vec::new(), target: self };
        let mut answer = spare.unwrap_or_else(|| Box::new(new()));
        (answer.bytes, answer.answers) = (reply.encode(), answers);
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
            self.ucp.ucp_am_send_nbx(to, REPLY_KIND, header, REPLY, base.cast(), nbytes, params)
        };
        if !matches!(started(sent), Ok(Some(_))) {
            // Sent, or not to be sent since the origin is gone.
            // SAFETY: made by `into_raw` above, and UCX does not know it.
            self.spare.borrow_mut().push(unsafe { Box::from_raw(answer) });
        }
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
        if status == UCS_OK && target.finish(this.incoming, Vec::new()) {
            target.carry_out_early(this.incoming.request.stream);
        }
    }
}

impl Data<'_> {
    fn is_there(self) -> bool {
        matches!(self, Data::There(..))
    }

    /// What UCX is to know of data that are used.
    fn taken(self) -> ucs_status_t {
        if self.is_there() { UCS_INPROGRESS } else { UCS_OK }
    }

    /// What UCX is to know of data that are not.
    fn refused(self) -> ucs_status_t {
        if self.is_there() { UCS_ERR_INVALID_PARAM } else { UCS_OK }
    }

    fn keep(self) -> Kept {
        match self {
            Data::Here(bytes) => Kept::Here(bytes.to_vec()),
            Data::Batch(batch) => Kept::Batch(batch.to_vec()),
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
        ReceivedData::Here(bytes) if is_batch => Data::Batch(bytes),
        ReceivedData::Here(bytes) => Data::Here(bytes),
    };
    match (Request::decode(message.header), message.reply_to) {
        (Some(request), Some(reply_to)) if !(is_batch && data.is_there()) => {
            target.take(Incoming { request, reply_to }, data)
        }
        _ => data.refused(),
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

/// A reply was sent.
///
/// # Safety
/// `user_data` is a [`SentReply`].
unsafe extern "C" fn answered(request: *mut c_void, _: ucs_status_t, user_data: *mut c_void) {
    // SAFETY: made by `into_raw`, and UCX is done with it.
    let answer = unsafe { Box::from_raw(user_data.cast::<SentReply>()) };
    // SAFETY: it lives as long as the worker that calls.
    let target = unsafe { &*answer.target };
    target.spare.borrow_mut().push(answer);
    if let Ok(Some(request)) = started(request) {
        request.free(target.ucp);
    }
}
