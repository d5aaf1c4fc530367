//! Completion queues. Endpoints make progress only when their queue is read.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::engine::Engine;
use crate::object::{
    ObjectFid, base_ops, clone_ref, fid, no_bind, no_control, ops_ptr, return_object,
};
use crate::operation::{CompletedOp, Completions};
use libfabric_sys as fi;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// The state under the lock of a queue.
pub(crate) struct QueueState {
    pub(crate) completions: Completions,
    /// The engines of the endpoints that are bound to the queue; `None` for a closed one.
    pub(crate) engines: Vec<Option<Engine>>,
}

/// An open completion queue.
#[repr(C)]
pub(crate) struct Queue {
    fid: ObjectFid<fi::fid_cq>,
    domain: Arc<Domain>,
    format: fi::fi_cq_format,
    pub(crate) inner: Mutex<QueueState>,
}

static QUEUE: fi::fi_ops = base_ops(close, no_bind, no_control);

static CQ_OPS: fi::fi_ops_cq = fi::fi_ops_cq {
    size: size_of::<fi::fi_ops_cq>(),
    read: Some(read),
    readfrom: None,
    readerr: Some(readerr),
    sread: None,
    sreadfrom: None,
    signal: None,
    strerror: Some(strerror),
};

/// Maximum number of entries per read, except in immediate profiles: few, so that applications
/// must read again.
const MAX_READ: usize = 3;

/// The size of a queue if none is requested.
const DEFAULT_SIZE: usize = 1024;

/// Implements `fi_cq_open`. There are no wait objects.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fi::fid_domain,
    attr: *mut fi::fi_cq_attr,
    cq: *mut *mut fi::fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `attr` points to valid attributes, by the contract of libfabric.
    let &fi::fi_cq_attr {
        size,
        format,
        wait_obj,
        ..
    } = unsafe { &*attr };
    if wait_obj != fi::FI_WAIT_NONE && wait_obj != fi::FI_WAIT_UNSPEC {
        return -fi::FI_ENOSYS;
    }
    let format = match format {
        fi::FI_CQ_FORMAT_UNSPEC => fi::FI_CQ_FORMAT_CONTEXT,
        fi::FI_CQ_FORMAT_CONTEXT | fi::FI_CQ_FORMAT_MSG | fi::FI_CQ_FORMAT_DATA => format,
        _ => return -fi::FI_ENOSYS,
    };

    // SAFETY: `domain` is an open domain of this provider, by the contract of libfabric.
    let domain = unsafe { clone_ref(domain.cast::<Domain>()) };
    let size = if size == 0 { DEFAULT_SIZE } else { size };
    let queue = Arc::new(Queue {
        fid: ObjectFid(fi::fid_cq {
            fid: fid(fi::FI_CLASS_CQ, context, &QUEUE),
            ops: ops_ptr(&CQ_OPS),
        }),
        domain,
        format,
        inner: Mutex::new(QueueState {
            completions: Completions {
                entries: VecDeque::with_capacity(size),
                errors: VecDeque::new(),
                size,
            },
            engines: Vec::new(),
        }),
    });
    // SAFETY: `cq` is valid for writes, by the contract of libfabric, and a queue begins with its
    // fid.
    unsafe { return_object(queue, cq) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: `fid` is that of an open queue of this provider, which the application no longer
    // uses.
    let queue = unsafe { Arc::from_raw(fid.cast::<Queue>().cast_const()) };
    if Arc::strong_count(&queue) > 1 {
        queue.domain.violation(
            "close order",
            "a completion queue was closed before its endpoints",
        );
    }
    0
}

#[unsafe(export_name = "strict_fi_cq_read")]
unsafe extern "C" fn read(cq: *mut fi::fid_cq, to: *mut c_void, count: usize) -> isize {
    // SAFETY: `cq` is an open queue of this provider, by the contract of libfabric.
    let queue = unsafe { &*cq.cast::<Queue>() };
    let mut inner = queue.inner.lock();
    let QueueState {
        completions,
        engines,
    } = &mut *inner;
    for engine in engines.iter_mut().flatten() {
        engine.progress(completions);
    }

    // As with libfabric's own queues, an error must be read before further completions.
    if !completions.errors.is_empty() {
        return -(fi::FI_EAVAIL as isize);
    }

    let most = if queue.domain.profile.immediate {
        count
    } else {
        count.min(MAX_READ)
    };
    let n = completions.entries.len().min(most);
    if n == 0 {
        return -(fi::FI_EAGAIN as isize);
    }
    for (i, entry) in completions.entries.drain(..n).enumerate() {
        // SAFETY: `to` has room for `count` entries of the queue's format, by the contract of
        // libfabric, and `i` is less than `count`.
        unsafe { write_entry(queue.format, to, i, &entry) };
    }
    n as isize
}

/// Writes an entry in the format of a queue to an array.
///
/// # Safety
/// `to` is an array of this format with more than `i` entries, valid for writes.
#[inline]
unsafe fn write_entry(format: fi::fi_cq_format, to: *mut c_void, i: usize, entry: &CompletedOp) {
    let op_context = std::ptr::with_exposed_provenance_mut(entry.context);
    if format == fi::FI_CQ_FORMAT_CONTEXT {
        let place = to.cast::<fi::fi_cq_entry>().wrapping_add(i);
        // SAFETY: `place` is an entry of the array, by contract.
        unsafe { place.write(fi::fi_cq_entry { op_context }) };
    } else if format == fi::FI_CQ_FORMAT_MSG {
        let place = to.cast::<fi::fi_cq_msg_entry>().wrapping_add(i);
        let entry = fi::fi_cq_msg_entry {
            op_context,
            flags: entry.flags,
            len: entry.nbytes,
        };
        // SAFETY: `place` is an entry of the array, by contract.
        unsafe { place.write(entry) };
    } else {
        let place = to.cast::<fi::fi_cq_data_entry>().wrapping_add(i);
        let entry = fi::fi_cq_data_entry {
            op_context,
            flags: entry.flags,
            len: entry.nbytes,
            buf: null_mut(),
            data: 0,
        };
        // SAFETY: `place` is an entry of the array, by contract.
        unsafe { place.write(entry) };
    }
}

unsafe extern "C" fn readerr(
    cq: *mut fi::fid_cq,
    to: *mut fi::fi_cq_err_entry,
    _flags: u64,
) -> isize {
    // SAFETY: `cq` is an open queue of this provider, by the contract of libfabric.
    let queue = unsafe { &*cq.cast::<Queue>() };
    let Some(failed) = queue.inner.lock().completions.errors.pop_front() else {
        return -(fi::FI_EAGAIN as isize);
    };

    // SAFETY: `to` points to a valid entry, by the contract of libfabric.
    let to = unsafe { &mut *to };
    to.op_context = std::ptr::with_exposed_provenance_mut(failed.operation.context);
    to.flags = failed.operation.flags;
    to.len = failed.operation.nbytes;
    to.err = failed.error;
    // The error has no number of its own; `strerror` explains libfabric's.
    to.prov_errno = failed.error;
    to.err_data_size = 0;
    to.olen = 0;
    1
}

unsafe extern "C" fn strerror(
    _: *mut fi::fid_cq,
    error: c_int,
    _: *const c_void,
    _: *mut c_char,
    _: usize,
) -> *const c_char {
    let text = match error as u32 {
        fi::FI_ENOKEY => {
            c"strict fabric: no enabled registration has the key"
        }
        fi::FI_ETRUNC => c"strict fabric: the message is longer than the buffer",
        _ if error == fi::FI_EACCES => {
            c"strict fabric: the range is not within the registration, or its access is not permitted"
        }
        _ if error == fi::FI_ECONNRESET => c"strict fabric: the peer has ended",
        _ => c"strict fabric: an operation failed",
    };
    text.as_ptr()
}
