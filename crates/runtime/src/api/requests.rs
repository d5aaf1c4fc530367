//! Tests of the requests of non-blocking collectives, and waits for them (an extension).

use crate::api::limits::TimedOut;
use crate::coll::requests::Request;
use crate::own_pe::{self, Caller};
use rushmem_pe::call::fail;
use rushmem_pe::call::thread;
use rushmem_pe::job::handle::RequestHandle;
use rushmem_pe::job::permission;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// `shmemx_req_test`: returns the result of a complete request and forgets the request; `None` if
/// the request is not complete. Returns `Some(0)` for `SHMEMX_REQ_NULL`.
pub fn test(caller: impl Caller, handle: RequestHandle) -> Option<usize> {
    let Some(request) = find(caller, handle) else {
        return Some(0);
    };
    if !request.is_done() {
        // The thread that carries the request out may need the CPU.
        std::thread::yield_now();
        return None;
    }
    Some(request.finish())
}

/// Returns what [`test()`] returns. If the request is not complete, the thread that completes it
/// wakes the task of the last call. Does not block or yield.
pub fn poll(caller: impl Caller, handle: RequestHandle, waker: &Waker) -> Option<usize> {
    let Some(request) = find(caller, handle) else {
        return Some(0);
    };
    if !request.is_done_or_wakes(waker) {
        return None;
    }
    Some(request.finish())
}

/// Gives up a request without waiting for it. The collective goes on, and is forgotten when it is
/// complete. Does nothing for `SHMEMX_REQ_NULL`.
pub fn detach(caller: impl Caller, handle: RequestHandle) {
    if let Some(request) = find(caller, handle) {
        request.detach();
    }
}

/// `shmemx_req_wait`: waits until a request is complete, forgets it and returns its result. Returns
/// 0 for `SHMEMX_REQ_NULL`.
pub fn wait(caller: impl Caller, handle: RequestHandle) -> usize {
    let Some(request) = find(caller, handle) else {
        return 0;
    };
    request.wait();
    request.finish()
}

/// `shmemx_req_wait_timed`: does what [`wait`] does, but waits for `limit` at the longest, if there
/// is one.
///
/// # Errors
/// When the limit has passed. The request stays, and the collective goes on.
pub fn wait_within(
    caller: impl Caller,
    handle: RequestHandle,
    limit: Option<Duration>,
) -> Result<usize, TimedOut> {
    let Some(request) = find(caller, handle) else {
        return Ok(0);
    };
    if !request.wait_within(limit) {
        // The thread that carries the request out may need the CPU.
        std::thread::yield_now();
        return Err(TimedOut);
    }
    Ok(request.finish())
}

/// Completes all requests, of any team, with an array that begins in this range of addresses.
/// Afterwards no request uses the object there, even if the program has lost the handles.
pub fn complete_on(object: Range<usize>) {
    if thread::has_requests() {
        own_pe::of_process().requests.complete_on(object);
    }
}

/// Returns the request of a handle; `None` for `SHMEMX_REQ_NULL`. Ends the job with an error for
/// any other handle that names no held request.
fn find(caller: impl Caller, handle: RequestHandle) -> Option<Arc<Request>> {
    let (pe, call) = caller.enter();
    permission::check(call, pe.job());
    if handle == RequestHandle::NULL {
        return None;
    }
    let request = pe.requests.find(handle);
    if request.is_none() {
        fail!(
            call,
            "argument req is not an unfinished request of this PE: was a copy of it waited for, or was it never \
             initialized? SHMEMX_REQ_NULL is no request"
        );
    }
    request
}
