//! A worker of UCX, which sends and receives, and its endpoints, each of which is a connection to
//! another worker.
#![allow(unsafe_code)]

use super::context::{UcpContext, UcpResource};
use super::request::{UcpRequest, check_status, plain_params, printed, started, status_string};
use crate::abort::within;
use crate::ports::at_free_port;
use rushmem_system::setting;
use rushmem_system::thread::{apart, refused};
use std::ffi::c_void;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use ucx_sys::{
    UCP_AM_HANDLER_PARAM_FIELD_ARG, UCP_AM_HANDLER_PARAM_FIELD_CB, UCP_AM_HANDLER_PARAM_FIELD_ID,
    UCP_EP_CLOSE_FLAG_FORCE, UCP_EP_PARAM_FIELD_ERR_HANDLER, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
    UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, UCP_ERR_HANDLING_MODE_NONE, UCP_ERR_HANDLING_MODE_PEER,
    UCP_OP_ATTR_FIELD_FLAGS, UCP_WORKER_PARAM_FIELD_THREAD_MODE, UCS_OK,
    UCS_THREAD_MODE_SERIALIZED, ucp_am_handler_param_t, ucp_am_recv_callback_t, ucp_ep_h,
    ucp_ep_params_t, ucp_err_handler_cb_t, ucp_err_handler_t, ucp_rkey_h, ucp_worker_h,
    ucp_worker_params_t, ucs_status_t,
};

/// Returns the resources for atomic operations from what UCX prints of a worker, in a line that
/// ends as `atomics: 2:rc_mlx5/mlx5_0:1, 3:dc_mlx5/mlx5_0:1`.
fn atomics_of(printed: &str) -> Vec<UcpResource> {
    let line = printed
        .lines()
        .find_map(|line| line.split_once(" atomics: "));
    let Some((_, listed)) = line else {
        return Vec::new();
    };

    let mut atomics = Vec::new();
    for entry in listed.split(", ") {
        if let Some((_, resource)) = entry.trim().split_once(':') {
            atomics.extend(UcpResource::parse(resource));
        }
    }
    atomics
}

/// A worker, used by one thread at a time.
pub(crate) struct Worker {
    pub(crate) context: Arc<UcpContext>,
    /// Made by `create`, and destroyed only when this is dropped.
    handle: ucp_worker_h,
    /// The descriptor of the worker, which UCX closes with it.
    efd: RawFd,
}

// SAFETY: `create` makes the worker with `UCS_THREAD_MODE_SERIALIZED`, for use by any thread, one
// at a time. The type is not `Sync`.
unsafe impl Send for Worker {}

impl Worker {
    /// Makes a worker. The first one starts a thread of UCX, which must not take signals of the
    /// program.
    pub(crate) fn new(context: &Arc<UcpContext>) -> Result<Worker, String> {
        apart(|| Worker::create(context)).map_err(|error| refused(&error))?
    }

    fn create(context: &Arc<UcpContext>) -> Result<Worker, String> {
        let params = ucp_worker_params_t {
            field_mask: UCP_WORKER_PARAM_FIELD_THREAD_MODE.into(),
            thread_mode: UCS_THREAD_MODE_SERIALIZED,
            ..ucp_worker_params_t::default()
        };

        // Each worker reads the variables; the program may have removed them.
        setting::set_defaults(&context.worker_variables);

        let ucp = context.ucp;
        let mut handle = null_mut();
        let mut create = || {
            // SAFETY: the context is live, and `params` lives during the call, which writes a
            // handle when it succeeds.
            unsafe { ucp.ucp_worker_create(context.handle, &raw const params, &raw mut handle) }
        };
        let status = if context.uses_sockets() {
            at_free_port(create)?
        } else {
            create()
        };
        check_status(ucp, status).map_err(|why| {
            format!("UCX cannot make a worker: {why}; UCX_LOG_LEVEL=info shows its reasons")
        })?;

        let mut worker = Worker {
            context: Arc::clone(context),
            handle,
            efd: -1,
        };
        // SAFETY: `handle` was just made. The call writes a descriptor when it succeeds.
        let status = unsafe { ucp.ucp_worker_get_efd(handle, &raw mut worker.efd) };
        check_status(ucp, status)
            .map_err(|why| format!("UCX's worker has no descriptor to wait on: {why}"))?;
        Ok(worker)
    }

    pub(crate) fn ucp(&self) -> &'static ucx_sys::Ucp {
        self.context.ucp
    }

    pub(crate) fn handle(&self) -> ucp_worker_h {
        self.handle
    }

    /// Returns the descriptor that is readable when an [armed](Self::arm) worker has an event.
    pub(crate) fn efd(&self) -> BorrowedFd<'_> {
        // SAFETY: `efd` is open as long as the worker, from which the result is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.efd) }
    }

    /// Returns the worker's address, which peers pass to [`connect`](Self::connect).
    pub(crate) fn address(&self) -> Result<Vec<u8>, String> {
        let ucp = self.ucp();
        let mut address = null_mut();
        let mut nbytes = 0;
        // SAFETY: `handle` is live. The call writes an address and its size when it succeeds.
        let status =
            unsafe { ucp.ucp_worker_get_address(self.handle, &raw mut address, &raw mut nbytes) };
        check_status(ucp, status)?;

        // SAFETY: the call has succeeded, so `address` points to `nbytes` bytes, until it is
        // released below.
        let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), nbytes) }.to_vec();
        // SAFETY: this worker has made `address`, which is released once and not used any more.
        unsafe { ucp.ucp_worker_release_address(self.handle, address) };
        Ok(bytes)
    }

    /// Returns the resources by which UCX carries out atomic operations; none if UCX sends messages
    /// to the target's CPU instead.
    pub(crate) fn atomics(&self) -> Vec<UcpResource> {
        atomics_of(&printed(|stream| {
            // SAFETY: `handle` is live, and `stream` is open during the call.
            unsafe { self.ucp().ucp_worker_print_info(self.handle, stream.cast()) };
        }))
    }

    /// Makes progress on all operations of the worker. Returns true if there was any.
    pub(crate) fn progress(&self) -> bool {
        // SAFETY: `handle` is live, and no callback, within such a call, calls this again.
        within(|| unsafe { self.ucp().ucp_worker_progress(self.handle) != 0 })
    }

    /// Prepares the worker to signal its next event by its descriptor. Returns false if there is an
    /// event already.
    pub(crate) fn arm(&self) -> bool {
        // SAFETY: `handle` is live until this is dropped.
        unsafe { self.ucp().ucp_worker_arm(self.handle) == UCS_OK }
    }

    /// Orders puts and UCX's atomic operations on each endpoint: those before the call take effect
    /// before those after it. UCX must have sent the earlier ones completely.
    pub(crate) fn fence(&self) -> Result<(), String> {
        // SAFETY: `handle` is live until this is dropped.
        let status = unsafe { self.ucp().ucp_worker_fence(self.handle) };
        check_status(self.ucp(), status)
    }

    /// Registers `callback`, which UCX calls with `arg` for each message of a kind.
    ///
    /// # Safety
    /// `callback` may be called with `arg` until the worker is dropped.
    pub(crate) unsafe fn on_message(
        &self,
        kind: u32,
        callback: ucp_am_recv_callback_t,
        arg: *mut c_void,
    ) -> Result<(), String> {
        let mask = UCP_AM_HANDLER_PARAM_FIELD_ID
            | UCP_AM_HANDLER_PARAM_FIELD_CB
            | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        let params = ucp_am_handler_param_t {
            field_mask: mask.into(),
            id: kind,
            flags: 0,
            cb: callback,
            arg,
        };

        // SAFETY: `handle` is live, and the callback may be called with its argument by contract.
        let status = unsafe {
            self.ucp()
                .ucp_worker_set_am_recv_handler(self.handle, &raw const params)
        };
        check_status(self.ucp(), status)
    }

    /// Connects to the worker with this address. With a context that
    /// [notices failures](UcpContext::notices_failures), UCX calls `handler` with `arg` when the
    /// connection breaks.
    ///
    /// # Safety
    /// `address` is the address of a worker of UCX, unchanged. `handler` may be called with `arg`
    /// until the worker is dropped.
    pub(crate) unsafe fn connect(
        &self,
        address: &[u8],
        handler: ucp_err_handler_cb_t,
        arg: *mut c_void,
    ) -> Result<UcpEndpoint, String> {
        let mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
            | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
            | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        let err_mode = if self.context.notices_failures {
            UCP_ERR_HANDLING_MODE_PEER
        } else {
            UCP_ERR_HANDLING_MODE_NONE
        };
        let params = ucp_ep_params_t {
            field_mask: mask.into(),
            address: address.as_ptr().cast(),
            err_mode,
            err_handler: ucp_err_handler_t { cb: handler, arg },
            ..ucp_ep_params_t::default()
        };

        let mut handle = null_mut();
        // SAFETY: `self.handle` is a live worker, and `params` lives during the call. By contract
        // the address is one of UCX, and the handler may be called with its argument.
        let status = unsafe {
            self.ucp()
                .ucp_ep_create(self.handle, &raw const params, &raw mut handle)
        };
        check_status(self.ucp(), status)?;
        Ok(UcpEndpoint {
            handle,
            keys: Vec::new(),
        })
    }

    /// Closes an endpoint of this worker without waiting for the peer. This needs a context that
    /// [notices failures](UcpContext::notices_failures). The operations on the endpoint end with an
    /// error. The endpoint is closed once the returned request has ended, or already if there is
    /// none; its keys are destroyed afterwards.
    pub(crate) fn close_by_force(&self, endpoint: &UcpEndpoint) -> Option<UcpRequest> {
        let mut params = plain_params();
        params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_EP_CLOSE_FLAG_FORCE;
        // SAFETY: the endpoint is a live one of this worker, and is not used from now on.
        let closing = unsafe {
            self.ucp()
                .ucp_ep_close_nbx(endpoint.handle, &raw const params)
        };
        // UCX returns an error if the endpoint is closed already: then there is no request to
        // await.
        started(closing).unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: `create` has made `handle`, and only this destroys it, once.
        unsafe { self.ucp().ucp_worker_destroy(self.handle) };
    }
}

/// The connection from a worker to another one, and the keys to the memory of that PE. It ends with
/// its worker or by [`Worker::close_by_force`]. Its keys must be destroyed before the worker.
pub(crate) struct UcpEndpoint {
    pub(crate) handle: ucp_ep_h,
    /// The unpacked keys, by the numbers of the keys; null for one that was not unpacked.
    keys: Vec<ucp_rkey_h>,
}

/// An address in the process of a PE, and the endpoint and the key by which it is accessed.
#[derive(Clone, Copy)]
pub(crate) struct UcpRemote {
    pub(crate) endpoint: ucp_ep_h,
    /// The key of the memory, unpacked for this endpoint.
    pub(crate) key: ucp_rkey_h,
    pub(crate) address: u64,
}

// SAFETY: a `UcpEndpoint` belongs to a worker, and only the thread that uses this worker at the
// time uses the endpoint and its keys.
unsafe impl Send for UcpEndpoint {}

impl UcpEndpoint {
    /// Starts a flush, which ends when all operations on the endpoint are complete. Returns `None`
    /// if they are.
    pub(crate) fn flush(&self, ucp: &ucx_sys::Ucp) -> Result<Option<UcpRequest>, ucs_status_t> {
        let params = plain_params();
        // SAFETY: `handle` is live: its worker lives, and a closed endpoint is not flushed.
        started(unsafe { ucp.ucp_ep_flush_nbx(self.handle, &raw const params) })
    }

    /// Destroys the keys that were unpacked, which are not used any more.
    pub(crate) fn forget_keys(&mut self, ucp: &ucx_sys::Ucp) {
        for key in self.keys.drain(..).filter(|key| !key.is_null()) {
            // SAFETY: `unpack` has made `key`. `drain` has removed it, so it is destroyed once, and
            // the worker lives, as the type requires.
            unsafe { ucp.ucp_rkey_destroy(key) };
        }
    }

    /// Returns the unpacked key of this number, if it was unpacked.
    #[inline]
    pub(crate) fn key(&self, number: usize) -> Option<ucp_rkey_h> {
        let key = self.keys.get(number).copied();
        key.filter(|key| !key.is_null())
    }

    /// Unpacks a key that a peer has published, for operations on this endpoint. `number` is its
    /// number among the keys of the peer.
    pub(crate) fn unpack(
        &mut self,
        ucp: &ucx_sys::Ucp,
        number: usize,
        packed: &[u8],
    ) -> Result<ucp_rkey_h, String> {
        let mut key = null_mut();
        // SAFETY: `handle` is live, and `packed` is a key that UCX has packed. The call writes a
        // handle when it succeeds.
        let status =
            unsafe { ucp.ucp_ep_rkey_unpack(self.handle, packed.as_ptr().cast(), &raw mut key) };
        match NonNull::new(key) {
            Some(key) if status == UCS_OK => {
                if self.keys.len() <= number {
                    self.keys.resize(number + 1, null_mut());
                }
                self.keys[number] = key.as_ptr();
                Ok(key.as_ptr())
            }
            _ => Err(status_string(ucp, status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_out_atomic_operations_is_found_in_what_ucx_prints() {
        let printed = "#\n# UCP worker 'h:1'\n#\n#                 address: 149 bytes\n\
            #                 atomics: 2:rc_mlx5/mlx5_0:1, 13:dc_mlx5/mlx5_1:1 \n#\n";
        let expected = ["rc_mlx5/mlx5_0:1", "dc_mlx5/mlx5_1:1"];
        let expected = expected.map(|text| UcpResource::parse(text).expect("a resource"));
        assert_eq!(atomics_of(printed), expected);
        assert!(atomics_of("#                 atomics: \n").is_empty());
        assert!(atomics_of("").is_empty());
    }
}
