//! Requests of UCX, which stand for operations in flight, UCX's status codes as results, and the
//! text that UCX prints.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null_mut};
use ucx_sys::{
    UCP_OP_ATTR_FIELD_CALLBACK, UCP_OP_ATTR_FIELD_USER_DATA, UCS_ERR_LAST, UCS_INPROGRESS, UCS_OK,
    Ucp, ucp_request_param_t, ucp_send_nbx_callback_t, ucs_status_ptr_t, ucs_status_t,
};

/// A request of UCX. It must be freed exactly once, by [`free`](Self::free).
#[derive(Clone, Copy)]
pub(crate) struct UcpRequest(NonNull<c_void>);

// SAFETY: a request belongs to a worker, and only the thread that uses this worker uses it.
unsafe impl Send for UcpRequest {}

impl UcpRequest {
    /// Returns the result of the operation; `None` while it is in flight.
    pub(crate) fn status(self, ucp: &Ucp) -> Option<Result<(), ucs_status_t>> {
        // SAFETY: the pointer is a request of UCX, which its owner has not freed.
        match unsafe { ucp.ucp_request_check_status(self.0.as_ptr()) } {
            UCS_INPROGRESS => None,
            UCS_OK => Some(Ok(())),
            status => Some(Err(status)),
        }
    }

    /// Frees the request. Its operation may still be in flight.
    pub(crate) fn free(self, ucp: &Ucp) {
        // SAFETY: the pointer is a request of UCX, which its owner frees once, by this.
        unsafe { ucp.ucp_request_free(self.0.as_ptr()) };
    }
}

/// Converts the return value of a call that starts an operation. Returns `None` if the operation is
/// complete.
pub(crate) fn started(result: ucs_status_ptr_t) -> Result<Option<UcpRequest>, ucs_status_t> {
    // UCX encodes an error as a small negative number in place of a pointer, as the kernel does.
    let error = result.addr() as isize;
    match NonNull::new(result) {
        Some(_) if (isize::from(UCS_ERR_LAST)..0).contains(&error) => Err(error as ucs_status_t),
        request => Ok(request.map(UcpRequest)),
    }
}

/// Returns parameters without any optional field.
pub(crate) fn plain_params() -> ucp_request_param_t {
    ucp_request_param_t {
        user_data: null_mut(),
        ..ucp_request_param_t::default()
    }
}

/// Returns the parameters of an operation at whose end UCX calls `callback` with `user_data`. UCX
/// does not call it if the operation is complete when the starting call returns.
pub(crate) fn callback_params(
    callback: ucp_send_nbx_callback_t,
    user_data: *const c_void,
) -> ucp_request_param_t {
    let mut params = plain_params();
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.send = callback;
    params.user_data = user_data.cast_mut();
    params
}

pub(crate) fn status_string(ucp: &Ucp, status: ucs_status_t) -> String {
    // SAFETY: the function takes any number, and returns a text that is never freed.
    let text = unsafe { ucp.ucs_status_string(status) };
    // SAFETY: `text` is a C string of the library.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Converts a status to a result: `Ok` for `UCS_OK`.
pub(crate) fn check_status(ucp: &Ucp, status: ucs_status_t) -> Result<(), String> {
    match status {
        UCS_OK => Ok(()),
        status => Err(status_string(ucp, status)),
    }
}

/// Returns the text that `print` writes to a stream of the C library. Returns an empty text if
/// there is no memory for a stream. No safe crate has `open_memstream`.
pub(super) fn printed(print: impl FnOnce(*mut libc::FILE)) -> String {
    let mut text: *mut c_char = null_mut();
    let mut nbytes = 0;
    // SAFETY: `text` and `nbytes` live until the stream is closed below.
    let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut nbytes) };
    if stream.is_null() {
        return String::new();
    }

    print(stream);
    // The result is ignored: without memory for all of the text, its start is there.
    // SAFETY: `stream` was opened above, and is closed once.
    unsafe { libc::fclose(stream) };

    // SAFETY: when it was closed, the stream has left `nbytes` bytes at `text`.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), nbytes) };
    let printed = String::from_utf8_lossy(bytes).into_owned();
    // SAFETY: the stream has allocated `text`, which is freed once and not used any more.
    unsafe { libc::free(text.cast()) };
    printed
}
