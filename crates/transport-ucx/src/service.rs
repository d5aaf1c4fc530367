//! The service worker, to which this PE's peers send requests. While it is polled, UCX carries out
//! puts and gets of peers, and this module carries out their messages (`engine::target`).
//!
//! One thread at a time polls; `progress` decides which one. A message that violates the protocol
//! is reported as the loss of the peer that sent it.
#![allow(unsafe_code)]

use crate::ucp::{
    ReceivedData, ReceivedMessage, UcpContext, Worker, callback_params, plain_params, started,
    status_string,
};
use rushmem_transport::engine::NetworkPe;
use rushmem_transport::engine::message::{REPLY, REQUEST, Reply, Request};
use rushmem_transport::engine::target::{Attached, Contents, Incoming, RequestTarget, Serving};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::{LocalBuf, Pe};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;
use ucx_sys::{
    UCP_AM_SEND_FLAG_EAGER, UCP_OP_ATTR_FIELD_CALLBACK, UCP_OP_ATTR_FIELD_FLAGS,
    UCP_OP_ATTR_FIELD_USER_DATA, UCS_ERR_INVALID_PARAM, UCS_INPROGRESS, UCS_OK, Ucp,
    ucp_am_recv_param_t, ucp_ep_h, ucp_worker_h, ucs_status_t,
};

/// The identifier of messages that are requests.
pub(crate) const REQUEST_KIND: u32 = 1;
/// The identifier of messages that are replies.
pub(crate) const REPLY_KIND: u32 = 2;

/// The service worker, with the state of its callbacks.
pub(crate) struct Service {
    pub(crate) worker: Worker,
    /// The state of the worker's callbacks, dropped after the worker.
    pub(crate) target: Rc<UcxTarget>,
}

// SAFETY: no clone of the `Rc` is outside the service, and the callbacks of its worker run in the
// thread that polls, one at a time.
unsafe impl Send for Service {}

impl Service {
    /// Makes the worker, and registers the callbacks for requests of peers.
    pub(crate) fn new(context: &Arc<UcpContext>, local: Arc<NetworkPe>) -> Result<Service, String> {
        let worker = Worker::new(context)?;
        let target = Rc::new(UcxTarget {
            ucp: context.ucp,
            worker: worker.handle(),
            target: RequestTarget::new(local.me),
            local,
            spare: RefCell::default(),
            worked: Cell::new(false),
            refused: RefCell::default(),
        });

        let arg = Rc::as_ptr(&target).cast_mut().cast();
        // SAFETY: `requested` takes a `UcxTarget`, to which `arg` points. The service drops it
        // after the worker.
        unsafe { worker.on_message(REQUEST_KIND, Some(requested), arg) }?;
        Ok(Service { worker, target })
    }

    /// Serves peers. Returns true if there was work.
    pub(crate) fn poll(&self) -> bool {
        let progressed = self.worker.progress();
        self.target.worked.take() || progressed
    }
}

/// The state of the callbacks that receive requests and send replies.
pub(crate) struct UcxTarget {
    ucp: &'static Ucp,
    worker: ucp_worker_h,
    pub(crate) local: Arc<NetworkPe>,
    target: RequestTarget<ucp_ep_h, *mut c_void>,
    /// Memory of replies that were sent, to be reused.
    #[expect(clippy::vec_box, reason = "UCX is given their addresses")]
    spare: RefCell<Vec<Box<SentReply>>>,
    /// Requests, or their data, have arrived since the last poll ended.
    worked: Cell<bool>,
    /// The first message that was refused since the last call of `take_refused`.
    refused: RefCell<Option<RefusedMessage>>,
}

/// A reply, which UCX reads until it is sent.
struct SentReply {
    bytes: [u8; REPLY],
    /// The results that follow the reply.
    results: Vec<u8>,
    target: *const UcxTarget,
    /// The PE that waits for the reply, if the reply has an answer and not only an acknowledgment.
    awaited_by: Option<Pe>,
}

/// A request whose attached data are being fetched.
struct Deferred {
    incoming: Incoming<ucp_ep_h>,
    /// The entries after them.
    rest: Vec<u8>,
    target: *const UcxTarget,
}

impl UcxTarget {
    /// Returns the first message that was refused since the last call.
    pub(crate) fn take_refused(&self) -> Option<RefusedMessage> {
        self.refused.take()
    }

    /// Returns the number of bytes that the results of sent replies still take.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.spare
            .borrow()
            .iter()
            .map(|reply| reply.results.capacity())
            .sum()
    }

    fn refuse(&self, message: RefusedMessage) {
        self.refused.borrow_mut().get_or_insert(message);
    }

    /// Takes a request of a peer: carries it out, or begins to fetch its data.
    fn take(&self, message: &ReceivedMessage<'_>) -> Result<(), RefusedMessage> {
        let (request, contents) = decode(message.header, message.data)?;
        let pe = request.stream.pe;
        let Some(reply_to) = message.reply_to else {
            let violation = Violation::Unknown("kind of message");
            return Err(RefusedMessage::of(pe, violation));
        };

        self.worked.set(true);
        let incoming = Incoming { request, reply_to };
        self.target
            .take(self, incoming, contents)
            .map_err(|violation| RefusedMessage::of(pe, violation))
    }

    /// Records that a reply was sent, or that this failed, and keeps its memory. If an answer was
    /// not sent, its PE would wait forever, so this is a loss; a PE that is only acknowledged may
    /// have left the job.
    fn record_sent(&self, mut answer: Box<SentReply>, status: ucs_status_t) {
        if status != UCS_OK {
            let why = format!(
                "a reply to it was not sent: {}",
                status_string(self.ucp, status)
            );
            match answer.awaited_by {
                Some(pe) => self.refuse(RefusedMessage::of(pe, why)),
                None => rushmem_system::log::debug!("an acknowledgment was not sent: {why}"),
            }
        }
        // Results may be long, so only the box is kept.
        answer.results = Vec::new();
        self.spare.borrow_mut().push(answer);
    }
}

impl Serving for UcxTarget {
    type ReplyTo = ucp_ep_h;
    /// UCX's descriptor of a message whose data are to be fetched.
    type Remote = *mut c_void;
    type Extra = ();

    fn local(&self) -> &NetworkPe {
        &self.local
    }

    fn reply(
        &self,
        Incoming { request, reply_to }: Incoming<ucp_ep_h>,
        reply: Reply,
        results: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let spare = self.spare.borrow_mut().pop();
        let mut answer = spare.unwrap_or_else(|| Box::new(SentReply::new(self)));
        answer.bytes = reply.encode();
        answer.awaited_by = reply.answer.map(|_| request.stream.pe);
        if !results.is_empty() {
            answer.results = std::mem::take(results);
        }

        // UCX reads the answer and its results until it calls `answered`, which takes the box back.
        let base = answer.results.as_ptr().cast();
        let nbytes = answer.results.len();
        let answer = Box::into_raw(answer);
        // SAFETY: `answer` points to the box, which nothing else uses yet.
        let header = unsafe { &raw const (*answer).bytes }.cast();

        let mut params = callback_params(Some(answered), answer.cast_const().cast());
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        let params = &raw const params;
        // SAFETY: `reply_to` is the endpoint that UCX has passed with the request. `header` and
        // `base` point into the box, which lives until the reply is sent.
        let sent = unsafe {
            self.ucp
                .ucp_am_send_nbx(reply_to, REPLY_KIND, header, REPLY, base, nbytes, params)
        };
        let status = match started(sent) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => UCS_OK,
            Err(status) => status,
        };

        // SAFETY: `into_raw` has made `answer` above. UCX calls `answered` only for a request in
        // flight, so nothing else takes the box back.
        let answer = unsafe { Box::from_raw(answer) };
        self.record_sent(answer, status);
        Ok(())
    }

    fn fetch(
        &self,
        incoming: Incoming<ucp_ep_h>,
        rest: Vec<u8>,
        descriptor: *mut c_void,
        dest: LocalBuf,
    ) {
        let deferred = Box::into_raw(Box::new(Deferred {
            incoming,
            rest,
            target: self,
        }));

        let mut params = plain_params();
        params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        params.cb.recv_am = Some(fetched);
        params.user_data = deferred.cast();
        let to = dest.base.cast();
        let nbytes = dest.nbytes;
        // SAFETY: `worker` is the live worker that has passed `descriptor` with a message, whose
        // data are fetched once. `to` points to `nbytes` bytes of a segment.
        let begun = unsafe {
            self.ucp
                .ucp_am_recv_data_nbx(self.worker, descriptor, to, nbytes, &raw const params)
        };

        match started(begun) {
            Ok(Some(_)) => {}
            // SAFETY: `into_raw` has made `deferred` above. UCX calls `fetched` only for a request
            // in flight, so nothing else ends the fetch.
            Ok(None) => unsafe { Deferred::end(deferred, UCS_OK) },
            // SAFETY: as for a fetch that has ended at once.
            Err(status) => unsafe { Deferred::end(deferred, status) },
        }
    }
}

impl Deferred {
    /// Ends a fetch: carries out the request with the data, or refuses it if they could not be
    /// fetched. Frees `this`.
    ///
    /// # Safety
    /// `this` was made by `into_raw` and is not used any more.
    unsafe fn end(this: *mut Deferred, status: ucs_status_t) {
        // SAFETY: `into_raw` has made `this`, which is used for the last time, by contract.
        let this = unsafe { Box::from_raw(this) };
        // SAFETY: `target` points to the state of the service, which is dropped after the worker
        // whose messages are fetched.
        let target = unsafe { &*this.target };

        let stream = this.incoming.request.stream;
        if status != UCS_OK {
            let why = format!(
                "its data could not be fetched: {}",
                status_string(target.ucp, status)
            );
            return target.refuse(RefusedMessage::of(stream.pe, why));
        }

        target.worked.set(true);
        if let Err(violation) = target.target.finish(target, this.incoming, &this.rest) {
            target.refuse(RefusedMessage::of(stream.pe, violation));
        }
    }
}

impl SentReply {
    fn new(target: *const UcxTarget) -> SentReply {
        SentReply {
            bytes: [0; REPLY],
            results: Vec::new(),
            target,
            awaited_by: None,
        }
    }
}

/// Returns the request of a message, and its contents: the entries are the rest of the header, or
/// the data if the header has none. UCX may keep only attached data at the sender.
fn decode<'a>(
    header: &'a [u8],
    data: ReceivedData<'a>,
) -> Result<(Request, Contents<'a, *mut c_void>), RefusedMessage> {
    let (head, entries) = header.split_at(header.len().min(REQUEST));
    let request = Request::decode(head)?;

    let contents = match data {
        ReceivedData::Here(bytes) if entries.is_empty() => Contents::of(&request, bytes),
        _ if entries.len() != usize::from(request.nbytes) => Err(Violation::Entries),
        ReceivedData::Here(bytes) => Ok(Contents {
            entries,
            attached: Attached::Here(bytes),
        }),
        ReceivedData::There(descriptor, nbytes) => Ok(Contents {
            entries,
            attached: Attached::There {
                data: descriptor,
                nbytes,
            },
        }),
    };
    match contents {
        Ok(contents) => Ok((request, contents)),
        Err(violation) => Err(RefusedMessage::of(request.stream.pe, violation)),
    }
}

/// The callback for a request.
///
/// # Safety
/// `arg` is a [`UcxTarget`], and the other arguments are those that UCX passes to such a callback.
unsafe extern "C" fn requested(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: `arg` is the target, by contract, which is dropped after the worker that calls this.
    let target = unsafe { &*arg.cast_const().cast::<UcxTarget>() };
    // SAFETY: UCX has passed these arguments to this callback, by contract, and `message` is not
    // used after it.
    let message = unsafe { ReceivedMessage::new(header, header_length, data, length, param) };

    let is_taken = match target.take(&message) {
        Ok(()) => true,
        Err(refused) => {
            target.refuse(refused);
            false
        }
    };

    match message.data {
        ReceivedData::Here(_) => UCS_OK,
        // The data are still at the sender. The status tells UCX whether they will be fetched.
        ReceivedData::There(..) if is_taken => UCS_INPROGRESS,
        ReceivedData::There(..) => UCS_ERR_INVALID_PARAM,
    }
}

/// The callback at the end of fetching the data of a request.
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
    // SAFETY: `deferred` points to a box, by contract: UCX calls this once, and nothing else frees
    // the box of a fetch that is in flight.
    let target = unsafe { &*deferred }.target;
    // SAFETY: `target` is dropped after the worker that calls this.
    let ucp = unsafe { &*target }.ucp;
    // SAFETY: `into_raw` has made `deferred`, and UCX calls this once for each fetch.
    unsafe { Deferred::end(deferred, status) };

    if let Ok(Some(request)) = started(request) {
        request.free(ucp);
    }
}

/// The callback at the end of the send of a reply.
///
/// # Safety
/// `user_data` is a [`SentReply`].
unsafe extern "C" fn answered(request: *mut c_void, status: ucs_status_t, user_data: *mut c_void) {
    // SAFETY: `user_data` is a reply that `into_raw` has made, by contract. UCX calls this once for
    // it, and does not use it afterwards.
    let answer = unsafe { Box::from_raw(user_data.cast::<SentReply>()) };
    // SAFETY: `target` points to the state of the service, which is dropped after the worker that
    // calls this.
    let target = unsafe { &*answer.target };
    target.record_sent(answer, status);

    if let Ok(Some(request)) = started(request) {
        request.free(target.ucp);
    }
}
