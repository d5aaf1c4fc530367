//! libfabric's completion queues. Reading one is what lets its endpoints work: nothing happens otherwise.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::done::{Done, Entry};
use crate::engine::Engine;
use crate::gate::Gate;
use crate::object::{fid, hand_over, held, no_bind, no_control, operations, shared};
use libfabric_sys as fi;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// What is done under the queue's lock.
pub(crate) struct Inner {
    pub(crate) done: Done,
    /// Of the endpoints that are bound to it.
    pub(crate) engines: Vec<Option<Engine>>,
}

/// An open completion queue.
#[repr(C)]
pub(crate) struct Queue {
    fid: fi::fid_cq,
    domain: Arc<Domain>,
    format: fi::fi_cq_format,
    pub(crate) inner: Gate<Inner>,
}

// SAFETY: what libfabric reads of it does not change; the rest can be shared.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

static QUEUE: fi::fi_ops = operations(close, no_bind, no_control);

static OF_QUEUE: fi::fi_ops_cq = fi::fi_ops_cq {
    size: size_of::<fi::fi_ops_cq>(),
    read: Some(read),
    readfrom: None,
    readerr: Some(readerr),
    sread: None,
    sreadfrom: None,
    signal: None,
    strerror: Some(strerror),
};

/// Entries that are read at once, where it is not for speed.
const FEW: usize = 3;

/// Entries of a queue that is asked for without a size.
const USUAL: usize = 1024;

/// `fi_cq_open`: none can be slept on.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fi::fid_domain,
    attr: *mut fi::fi_cq_attr,
    cq: *mut *mut fi::fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: attributes, by libfabric's contract.
    let &fi::fi_cq_attr { size, format, wait_obj, .. } = unsafe { &*attr };
    if ![fi::FI_WAIT_NONE, fi::FI_WAIT_UNSPEC].contains(&wait_obj) {
        return -fi::FI_ENOSYS;
    }
    let format = match format {
        fi::FI_CQ_FORMAT_UNSPEC => fi::FI_CQ_FORMAT_CONTEXT,
        fi::FI_CQ_FORMAT_CONTEXT | fi::FI_CQ_FORMAT_MSG | fi::FI_CQ_FORMAT_DATA => format,
        _ => return -fi::FI_ENOSYS,
    };
    // SAFETY: an open domain of this provider.
    let domain = unsafe { shared(domain.cast::<Domain>()) };
    let size = if size == 0 { USUAL } else { size };
    let (entries, errors) = (VecDeque::with_capacity(size), VecDeque::new());
    let queue = Arc::new(Queue {
        fid: fi::fid_cq { fid: fid(fi::FI_CLASS_CQ, context, &QUEUE), ops: held(&OF_QUEUE) },
        domain,
        format,
        inner: Gate::new(Inner { done: Done { entries, errors, size }, engines: Vec::new() }),
    });
    // SAFETY: room for a pointer, by libfabric's contract.
    unsafe { hand_over(queue, cq) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open queue of this provider, which libfabric gives back.
    let queue = unsafe { Arc::from_raw(fid.cast::<Queue>().cast_const()) };
    if Arc::strong_count(&queue) > 1 {
        queue.domain.broken("close order", "a completion queue was closed before its endpoints");
    }
    0
}

#[unsafe(export_name = "strict_fi_cq_read")]
unsafe extern "C" fn read(cq: *mut fi::fid_cq, to: *mut c_void, count: usize) -> isize {
    // SAFETY: an open queue of this provider.
    let queue = unsafe { &*cq.cast::<Queue>() };
    let mut inner = queue.inner.enter();
    let Inner { done, engines } = &mut *inner;
    engines.iter_mut().flatten().for_each(|engine| engine.work(done));
    if !done.errors.is_empty() {
        return -(fi::FI_EAVAIL as isize);
    }
    let most = if queue.domain.profile.at_once { count } else { count.min(FEW) };
    let n = done.entries.len().min(most);
    for (i, entry) in done.entries.drain(..n).enumerate() {
        let Entry { context, flags, nbytes } = entry;
        let op_context = std::ptr::with_exposed_provenance_mut(context);
        if queue.format == fi::FI_CQ_FORMAT_CONTEXT {
            let place = to.cast::<fi::fi_cq_entry>().wrapping_add(i);
            // SAFETY: room for so many entries of the format, by libfabric's contract.
            unsafe { place.write(fi::fi_cq_entry { op_context }) };
        } else if queue.format == fi::FI_CQ_FORMAT_MSG {
            // The start of the longer format.
            let place = to.cast::<[usize; 3]>().wrapping_add(i);
            // SAFETY: as above.
            unsafe { place.write([context, flags as usize, nbytes]) };
        } else {
            let place = to.cast::<fi::fi_cq_data_entry>().wrapping_add(i);
            let entry =
                fi::fi_cq_data_entry { op_context, flags, len: nbytes, buf: null_mut(), data: 0 };
            // SAFETY: as above.
            unsafe { place.write(entry) };
        }
    }
    if n == 0 { -(fi::FI_EAGAIN as isize) } else { n as isize }
}

unsafe extern "C" fn readerr(
    cq: *mut fi::fid_cq,
    to: *mut fi::fi_cq_err_entry,
    _flags: u64,
) -> isize {
    // SAFETY: an open queue of this provider.
    let queue = unsafe { &*cq.cast::<Queue>() };
    let Some((entry, error)) = queue.inner.enter().done.errors.pop_front() else {
        return -(fi::FI_EAGAIN as isize);
    };
    // SAFETY: an entry that the application owns.
    let to = unsafe { &mut *to };
    to.op_context = std::ptr::with_exposed_provenance_mut(entry.context);
    (to.flags, to.len, to.err, to.prov_errno) = (entry.flags, entry.nbytes, error, error);
    (to.err_data_size, to.olen) = (0, 0);
    1
}

unsafe extern "C" fn strerror(
    _: *mut fi::fid_cq,
    error: c_int,
    _: *const c_void,
    _: *mut c_char,
    _: usize,
) -> *const c_char {
    let said = match error as u32 {
        fi::FI_ENOKEY => {
            c"strict fabric: nothing is registered under the key, or it is not enabled"
        }
        fi::FI_ETRUNC => c"strict fabric: the message is longer than the buffer",
        _ if error == fi::FI_EACCES => {
            c"strict fabric: the bytes are not in the registration, or it does not allow this"
        }
        _ if error == fi::FI_ECONNRESET => c"strict fabric: the peer is gone",
        _ => c"strict fabric: an operation failed",
    };
    said.as_ptr()
}
