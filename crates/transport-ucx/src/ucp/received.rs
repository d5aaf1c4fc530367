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
        (header, header_length): (*const c_void, usize),
        (data, length): (*mut c_void, usize),
        param: *const ucp_am_recv_param_t,
    ) -> ReceivedMessage<'a> {
        // SAFETY: UCX passes a valid pointer to a callback.
        let param = unsafe { &*param };
        let has = |attribute: u32| param.recv_attr & u64::from(attribute) != 0;
        // SAFETY: UCX passes valid ranges, which the callback may use until it returns.
        let here = |base, nbytes| unsafe { bytes(base, nbytes) };
        ReceivedMessage {
            header: here(header, header_length),
            data: match has(UCP_AM_RECV_ATTR_FLAG_RNDV) {
                true => ReceivedData::There(data, length),
                false => ReceivedData::Here(here(data.cast_const(), length)),
            },
            reply_to: has(UCP_AM_RECV_ATTR_FIELD_REPLY_EP).then_some(param.reply_ep),
        }
    }
}

/// Returns a range as a slice; an empty range may have any base.
///
/// # Safety
/// `base` is valid for `nbytes` bytes as long as the result is used, unless there are none.
unsafe fn bytes<'a>(base: *const c_void, nbytes: usize) -> &'a [u8] {
    match nbytes {
        0 => &[],
        // SAFETY: `base` is valid for `nbytes` bytes while the result is used, by contract.
        _ => unsafe { std::slice::from_raw_parts(base.cast(), nbytes) },
    }
}
