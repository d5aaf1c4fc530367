//! The end of a PE to which its peers talk: UCX serves their puts and gets, this file their requests.
//!
//! A peer that sends what no PE would send gets no reply and does no harm.
#![allow(unsafe_code)]

use crate::area::Areas;
use crate::proto::{REPLY, Reply, Request, batch};
use crate::ucp::{Context, Worker, callback, started};
use rushmem_transport::mem;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::null;
use std::rc::Rc;
use std::sync::Arc;
use ucx_sys::{
    UCP_AM_RECV_ATTR_FIELD_REPLY_EP, UCP_AM_RECV_ATTR_FLAG_RNDV, UCP_AM_SEND_FLAG_EAGER,
    UCP_OP_ATTR_FIELD_CALLBACK, UCP_OP_ATTR_FIELD_FLAGS, UCP_OP_ATTR_FIELD_USER_DATA,
    UCS_ERR_INVALID_PARAM, UCS_INPROGRESS, UCS_OK, Ucp, ucp_am_recv_param_t, ucp_ep_h,
    ucp_worker_h, ucs_status_t,
};

/// The kind of message that is a request.
pub(crate) const REQUEST_KIND: u32 = 1;
/// The kind of message that holds small puts.
pub(crate) const PUTS_KIND: u32 = 3;
/// The kind of message that is a reply.
pub(crate) const REPLY_KIND: u32 = 2;

/// The service worker.
pub(crate) struct Target {
    worker: Worker,
    /// Dropped after the worker, whose callbacks use it.
    serving: Rc<Serving>,
}

// SAFETY: what it shares by `Rc` it shares with its own worker alone, in one thread at a time.
unsafe impl Send for Target {}

/// What the callbacks use.
struct Serving {
    ucp: &'static Ucp,
    worker: ucp_worker_h,
    areas: Arc<Areas>,
    /// Replies that were sent, to be used again.
    #[expect(clippy::vec_box, reason = "UCX is given their addresses")]
    spare: RefCell<Vec<Box<Answer>>>,
    /// Requests were carried out since this was last taken.
    worked: Cell<bool>,
}

/// A reply that UCX may still have to read.
struct Answer {
    bytes: [u8; REPLY],
    serving: *const Serving,
}

/// A request whose data is on its way.
struct Deferred {
    request: Request,
    reply_to: ucp_ep_h,
    serving: *const Serving,
}

impl Target {
    pub(crate) fn new(context: &Arc<Context>, areas: Arc<Areas>) -> Result<Target, String> {
        let worker = Worker::new(context)?;
        let serving = Rc::new(Serving {
            ucp: context.ucp,
            worker: worker.handle(),
            areas,
            spare: RefCell::default(),
            worked: Cell::new(false),
        });
        let arg = Rc::as_ptr(&serving).cast_mut().cast();
        // SAFETY: the callback takes a `Serving`, which is dropped after the worker.
        unsafe { worker.on_message(REQUEST_KIND, Some(requested), arg) }?;
        // SAFETY: as above.
        unsafe { worker.on_message(PUTS_KIND, Some(put), arg) }?;
        Ok(Target { worker, serving })
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Serve peers; whether there was anything to do.
    pub(crate) fn serve(&self) -> bool {
        let progressed = self.worker.progress();
        self.serving.worked.take() || progressed
    }
}

impl Serving {
    /// Carry out a request whose data is in place.
    fn operate(&self, request: &Request, word: *mut u8, reply_to: ucp_ep_h) {
        let Request { op, width, operand, condition, .. } = *request;
        // SAFETY: an aligned word of a segment that stays valid as long as peers are served.
        let old = unsafe { mem::apply(op, width, word, operand, condition) };
        self.worked.set(true);
        self.reply(reply_to, Reply { slot: request.slot, turn: request.turn, old });
    }

    fn reply(&self, to: ucp_ep_h, reply: Reply) {
        let spare = self.spare.borrow_mut().pop();
        let mut answer =
            spare.unwrap_or_else(|| Box::new(Answer { bytes: [0; REPLY], serving: self }));
        answer.bytes = reply.encode();
        let answer = Box::into_raw(answer);
        let mut params = callback(Some(answered), answer.cast_const().cast());
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        // SAFETY: the way back that came with the request, and an answer that lives until it is sent.
        let sent = unsafe {
            let header = answer.cast_const().cast();
            self.ucp.ucp_am_send_nbx(to, REPLY_KIND, header, REPLY, null(), 0, &raw const params)
        };
        if !matches!(started(sent), Ok(Some(_))) {
            // Sent, or not to be sent since the origin is gone.
            // SAFETY: made by `into_raw` above, and UCX does not know it.
            self.spare.borrow_mut().push(unsafe { Box::from_raw(answer) });
        }
    }

    /// Have UCX fetch the data of a request to where it belongs.
    fn fetch(
        &self,
        request: Request,
        descriptor: *mut c_void,
        place: *mut u8,
        nbytes: usize,
        reply_to: ucp_ep_h,
    ) {
        let deferred = Box::into_raw(Box::new(Deferred { request, reply_to, serving: self }));
        let mut params = crate::ucp::plain();
        params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        params.cb.recv_am = Some(fetched);
        params.user_data = deferred.cast();
        let to = place.cast();
        // SAFETY: the descriptor of the message that came, and as many bytes of a segment.
        let begun = unsafe {
            self.ucp.ucp_am_recv_data_nbx(self.worker, descriptor, to, nbytes, &raw const params)
        };
        match started(begun) {
            Ok(Some(_)) => {}
            // SAFETY: made by `into_raw` above; UCX called nobody.
            Ok(None) => unsafe { Deferred::end(deferred, UCS_OK) },
            // SAFETY: as above.
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
        let serving = unsafe { &*this.serving };
        let word = serving.areas.word(this.request.word, this.request.width.nbytes());
        if let (UCS_OK, Some(word)) = (status, word) {
            serving.operate(&this.request, word, this.reply_to);
        }
    }
}

/// A request came.
///
/// # Safety
/// UCX calls it with what it promises, and with the `Serving` that it was given.
unsafe extern "C" fn requested(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: it lives as long as the worker that calls.
    let serving = unsafe { &*arg.cast_const().cast::<Serving>() };
    // SAFETY: UCX's, for the length of this call.
    let param = unsafe { &*param };
    let is_fetched_later = param.recv_attr & u64::from(UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    let refused = if is_fetched_later { UCS_ERR_INVALID_PARAM } else { UCS_OK };
    if header_length == 0 || param.recv_attr & u64::from(UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0 {
        return refused;
    }
    // SAFETY: UCX's, for the length of this call.
    let header = unsafe { std::slice::from_raw_parts(header.cast::<u8>(), header_length) };
    let Some(request) = Request::decode(header) else { return refused };
    let Some(word) = serving.areas.word(request.word, request.width.nbytes()) else {
        return refused;
    };
    if length > 0 {
        let Some(place) = serving.areas.bytes(request.data, length) else { return refused };
        if is_fetched_later {
            serving.fetch(request, data, place, length, param.reply_ep);
            return UCS_INPROGRESS;
        }
        // SAFETY: the data that came, and as many bytes of a segment.
        unsafe { mem::copy_bytes(place, data.cast_const().cast(), length) };
    }
    serving.operate(&request, word, param.reply_ep);
    UCS_OK
}

/// Small puts came.
///
/// # Safety
/// UCX calls it with what it promises, and with the `Serving` that it was given.
unsafe extern "C" fn put(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: it lives as long as the worker that calls.
    let serving = unsafe { &*arg.cast_const().cast::<Serving>() };
    // SAFETY: UCX's, for the length of this call.
    let param = unsafe { &*param };
    if param.recv_attr & u64::from(UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 {
        return UCS_ERR_INVALID_PARAM;
    }
    let has_way_back = param.recv_attr & u64::from(UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
    if header_length == 0 || length == 0 || !has_way_back {
        return UCS_OK;
    }
    // SAFETY: UCX's, for the length of this call.
    let header = unsafe { std::slice::from_raw_parts(header.cast::<u8>(), header_length) };
    let Some(wanted) = Reply::decode(header) else { return UCS_OK };
    // SAFETY: as above.
    let mut puts = unsafe { std::slice::from_raw_parts(data.cast_const().cast::<u8>(), length) };
    while let Some((at, data)) = batch::next(&mut puts) {
        let Some(place) = serving.areas.bytes(at, data.len()) else { return UCS_OK };
        // SAFETY: as many bytes of a segment.
        unsafe { mem::copy_bytes(place, data.as_ptr(), data.len()) };
    }
    if puts.is_empty() {
        serving.worked.set(true);
        serving.reply(param.reply_ep, wanted);
    }
    UCS_OK
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
    let serving = unsafe { &*deferred }.serving;
    // SAFETY: it lives as long as the worker that calls.
    let ucp = unsafe { &*serving }.ucp;
    // SAFETY: UCX calls once per request.
    unsafe { Deferred::end(deferred, status) };
    if let Ok(Some(request)) = started(request) {
        request.free(ucp);
    }
}

/// A reply was sent.
///
/// # Safety
/// `user_data` is an [`Answer`].
unsafe extern "C" fn answered(request: *mut c_void, _: ucs_status_t, user_data: *mut c_void) {
    // SAFETY: made by `into_raw`, and UCX is done with it.
    let answer = unsafe { Box::from_raw(user_data.cast::<Answer>()) };
    // SAFETY: it lives as long as the worker that calls.
    let serving = unsafe { &*answer.serving };
    serving.spare.borrow_mut().push(answer);
    if let Ok(Some(request)) = started(request) {
        request.free(serving.ucp);
    }
}
