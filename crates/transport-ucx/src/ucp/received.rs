//! A message that has come, as UCX gives it to a callback.
#![allow(unsafe_code)]

use std::ffi::c_void;
use ucx_sys::{
    UCP_AM_RECV_ATTR_FIELD_REPLY_EP, UCP_AM_RECV_ATTR_FLAG_RNDV, ucp_am_recv_param_t, ucp_ep_h,
};

/// A message, for the length of the callback.
pub(crate) struct ReceivedMessage<'a> {
    pub(crate) header: &'a [u8],
    pub(crate) data: ReceivedData<'a>,
    /// The endpoint to which a reply goes, if one is possible.
    pub(crate) reply_to: Option<ucp_ep_h>,
}

/// The data that came with the header.
#[derive(Clone, Copy)]
pub(crate) enum ReceivedData<'a> {
    /// These bytes.
    Here(&'a [u8]),
    /// This many bytes, which UCX is to fetch by this.
    There(*mut c_void, usize),
}

impl ReceivedMessage<'_> {
    /// # Safety
    /// UCX has called with these parameters, and the result is not used after the callback.
    pub(crate) unsafe fn new<'a>(
        (header, header_length): (*const c_void, usize),
        (data, length): (*mut c_void, usize),
        param: *const ucp_am_recv_param_t,
    ) -> ReceivedMessage<'a> {
        // SAFETY: by contract.
        let param = unsafe { &*param };
        let has = |attribute: u32| param.recv_attr & u64::from(attribute) != 0;
        // SAFETY: by contract.
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

/// # Safety
/// `base` is valid for `nbytes` bytes as long as the result is used, unless there are none.
unsafe fn bytes<'a>(base: *const c_void, nbytes: usize) -> &'a [u8] {
    match nbytes {
        0 => &[],
        // SAFETY: by contract.
        _ => unsafe { std::slice::from_raw_parts(base.cast(), nbytes) },
    }
}
