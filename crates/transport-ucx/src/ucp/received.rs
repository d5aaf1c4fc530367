//! A received message, as UCX passes it to a callback.
#![allow(unsafe_code)]

use std::ffi::c_void;
use ucx_sys::{
    UCP_AM_RECV_ATTR_FIELD_REPLY_EP, UCP_AM_RECV_ATTR_FLAG_RNDV, ucp_am_recv_param_t, ucp_ep_h,
};

/// A received message. UCX keeps its memory until the callback returns.
pub(crate) struct ReceivedMessage<'a> {
    pub(crate) header: &'a [u8],
    pub(crate) data: ReceivedData<'a>,
    /// The endpoint for a reply, if the sender has requested that.
    pub(crate) reply_to: Option<ucp_ep_h>,
}

/// The data of the message, which follow the header.
#[derive(Clone, Copy)]
pub(crate) enum ReceivedData<'a> {
    /// Bytes that have arrived.
    Here(&'a [u8]),
    /// The descriptor and the number of bytes that are still at the sender. The receiver passes the
    /// descriptor to `ucp_am_recv_data_nbx` to fetch them.
    There(*mut c_void, usize),
}

impl ReceivedMessage<'_> {
    /// Returns the message that UCX passes to a callback by these parameters.
    ///
    /// # Safety
    /// UCX has passed these parameters to a callback, and the result is not used after the
    /// callback.
    pub(crate) unsafe fn new<'a>(
        header: *const c_void,
        header_length: usize,
        data: *mut c_void,
        length: usize,
        param: *const ucp_am_recv_param_t,
    ) -> ReceivedMessage<'a> {
        // SAFETY: `param` is the pointer that UCX has passed to a callback, by contract, so it is
        // valid until the callback returns.
        let param = unsafe { &*param };
        let has = |attribute: u32| param.recv_attr & u64::from(attribute) != 0;

        // SAFETY: UCX has passed `header` and its length to a callback, which may read this range
        // until it returns.
        let header = unsafe { bytes(header, header_length) };
        let data = if has(UCP_AM_RECV_ATTR_FLAG_RNDV) {
            ReceivedData::There(data, length)
        } else {
            // SAFETY: without the flag, `data` and `length` are such a range, too.
            ReceivedData::Here(unsafe { bytes(data.cast_const(), length) })
        };

        let reply_to = if has(UCP_AM_RECV_ATTR_FIELD_REPLY_EP) {
            Some(param.reply_ep)
        } else {
            None
        };
        ReceivedMessage {
            header,
            data,
            reply_to,
        }
    }
}

/// Returns a range as a slice; an empty range may have any base.
///
/// # Safety
/// `base` is valid for `nbytes` bytes as long as the result is used, unless there are none.
unsafe fn bytes<'a>(base: *const c_void, nbytes: usize) -> &'a [u8] {
    if nbytes == 0 {
        return &[];
    }
    // SAFETY: `base` is valid for `nbytes` bytes while the result is used, by contract.
    unsafe { std::slice::from_raw_parts(base.cast(), nbytes) }
}
