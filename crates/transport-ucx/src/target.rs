//! What peers ask for by messages: atomic operations, with the data of puts ahead of them, and small puts. UCX calls what is
//! here while the service worker is polled.
//!
//! A peer that sends what no PE would send gets no reply and does no harm. This file must never know who polls.
#![allow(unsafe_code)]

use crate::proto::{REPLY, Reply, Request, batch};
use crate::ucp::{callback, plain, started};
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::{AmoRequest, LocalBuf, OldValue};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::null;
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

/// What the callbacks use.
pub(crate) struct Target {
    ucp: &'static Ucp,
    worker: ucp_worker_h,
    segments: Arc<Segments>,
    /// Replies that were sent, to be used again.
    #[expect(clippy::vec_box, reason = "UCX is given their addresses")]
    spare: RefCell<Vec<Box<Answer>>>,
    /// Requests were carried out since this was last taken.
    worked: Cell<bool>,
}

/// A reply that UCX may still have to read.
struct Answer {
    bytes: [u8; REPLY],
    target: *const Target,
}

/// A request whose data is on its way.
struct Deferred {
    request: Request,
    reply_to: ucp_ep_h,
    target: *const Target,
}

impl Target {
    pub(crate) fn new(ucp: &'static Ucp, worker: ucp_worker_h, segments: Arc<Segments>) -> Target {
        let (spare, worked) = (RefCell::default(), Cell::new(false));
        Target { ucp, worker, segments, spare, worked }
    }

    /// Whether requests were carried out since the last call.
    pub(crate) fn take_worked(&self) -> bool {
        self.worked.take()
    }

    /// Carries out a request whose data is in place.
    fn carry_out(&self, request: &Request, reply_to: ucp_ep_h) {
        let Request { slot, turn, op, width, operand, condition, word: dest, .. } = *request;
        let amo = AmoRequest { dest, width, op, operand, condition, old: OldValue::Ignored };
        if let Some(old) = self.segments.apply(&amo) {
            self.worked.set(true);
            self.reply(reply_to, Reply { slot, turn, old });
        }
    }

    fn reply(&self, to: ucp_ep_h, reply: Reply) {
        let spare = self.spare.borrow_mut().pop();
        let mut answer =
            spare.unwrap_or_else(|| Box::new(Answer { bytes: [0; REPLY], target: self }));
        answer.bytes = reply.encode();
        let answer = Box::into_raw(answer);
        let mut params = callback(Some(answered), answer.cast_const().cast());
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        // SAFETY: the endpoint that came with the request, and an answer that lives until it is sent.
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

    /// Has UCX fetch the data of a request to where it belongs.
    fn fetch(
        &self,
        request: Request,
        descriptor: *mut c_void,
        place: LocalBuf,
        reply_to: ucp_ep_h,
    ) {
        let deferred = Box::into_raw(Box::new(Deferred { request, reply_to, target: self }));
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
        let target = unsafe { &*this.target };
        if status == UCS_OK {
            target.carry_out(&this.request, this.reply_to);
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
    // SAFETY: it lives as long as the worker that calls.
    let target = unsafe { &*arg.cast_const().cast::<Target>() };
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
    if is_fetched_later {
        let Some(place) = target.segments.bytes(request.data, length) else { return refused };
        target.fetch(request, data, place, param.reply_ep);
        return UCS_INPROGRESS;
    }
    let data = LocalBuf::source(data.cast_const().cast(), length);
    // SAFETY: the data that came, of so many bytes, which UCX keeps for the length of this call.
    if length > 0 && !unsafe { target.segments.write_from(request.data, data) } {
        return refused;
    }
    target.carry_out(&request, param.reply_ep);
    UCS_OK
}

/// Small puts came.
///
/// # Safety
/// UCX calls it with what it promises, and with the [`Target`] that it was given.
pub(crate) unsafe extern "C" fn put(
    arg: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: it lives as long as the worker that calls.
    let target = unsafe { &*arg.cast_const().cast::<Target>() };
    // SAFETY: UCX's, for the length of this call.
    let param = unsafe { &*param };
    if param.recv_attr & u64::from(UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 {
        return UCS_ERR_INVALID_PARAM;
    }
    let has_reply_endpoint = param.recv_attr & u64::from(UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
    if header_length == 0 || length == 0 || !has_reply_endpoint {
        return UCS_OK;
    }
    // SAFETY: UCX's, for the length of this call.
    let header = unsafe { std::slice::from_raw_parts(header.cast::<u8>(), header_length) };
    let Some(wanted) = Reply::decode(header) else { return UCS_OK };
    // SAFETY: as above.
    let mut puts = unsafe { std::slice::from_raw_parts(data.cast_const().cast::<u8>(), length) };
    while let Some((at, data)) = batch::next(&mut puts) {
        if !target.segments.write(at, data) {
            return UCS_OK;
        }
    }
    if puts.is_empty() {
        target.worked.set(true);
        target.reply(param.reply_ep, wanted);
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
/// `user_data` is an [`Answer`].
unsafe extern "C" fn answered(request: *mut c_void, _: ucs_status_t, user_data: *mut c_void) {
    // SAFETY: made by `into_raw`, and UCX is done with it.
    let answer = unsafe { Box::from_raw(user_data.cast::<Answer>()) };
    // SAFETY: it lives as long as the worker that calls.
    let target = unsafe { &*answer.target };
    target.spare.borrow_mut().push(answer);
    if let Ok(Some(request)) = started(request) {
        request.free(target.ucp);
    }
}
