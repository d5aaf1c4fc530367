//! The data transfer functions of an endpoint that Rushmem calls. Each passes a request to the
//! engine.
//!
//! Their symbols, and that of reading a queue, begin with `strict_fi_`, so that instruction counts
//! can exclude them.
#![allow(unsafe_code)]

use crate::atomic::AtomicOp;
use crate::endpoint::{self, Calls, Ready, StrictEp};
use crate::engine::Engine;
use crate::operation::{Completions, OpKind, Posted};
use crate::queue::QueueState;
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};

type Ep = *mut fi::fid_ep;
type Buf = *mut c_void;
type ConstBuf = *const c_void;
type Addr = fi::fi_addr_t;

static REMOTE: fi::fi_ops_rma = fi::fi_ops_rma {
    size: size_of::<fi::fi_ops_rma>(),
    read: Some(read),
    readv: None,
    readmsg: None,
    write: Some(write),
    writev: None,
    writemsg: Some(writemsg),
    inject: None,
    writedata: None,
    injectdata: None,
};

static MESSAGES: fi::fi_ops_msg = fi::fi_ops_msg {
    size: size_of::<fi::fi_ops_msg>(),
    recv: Some(recv),
    recvv: None,
    recvmsg: None,
    send: Some(send),
    sendv: None,
    sendmsg: None,
    inject: Some(inject),
    senddata: None,
    injectdata: None,
};

static ATOMIC: fi::fi_ops_atomic = fi::fi_ops_atomic {
    size: size_of::<fi::fi_ops_atomic>(),
    write: None,
    writev: None,
    writemsg: None,
    inject: None,
    readwrite: Some(fetch_atomic),
    readwritev: None,
    readwritemsg: None,
    compwrite: Some(compare_atomic),
    compwritev: None,
    compwritemsg: None,
    writevalid: None,
    readwritevalid: Some(fetch_atomicvalid),
    compwritevalid: Some(compare_atomicvalid),
};

/// Implements `fi_endpoint`.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fi::fid_domain,
    info: *mut fi::fi_info,
    ep: *mut *mut fi::fid_ep,
    context: *mut c_void,
) -> c_int {
    let calls = Calls {
        messages: &MESSAGES,
        remote: &REMOTE,
        atomic: &ATOMIC,
    };
    // SAFETY: this function and `endpoint::open` have the same contract, that of `fi_endpoint`.
    unsafe { endpoint::open(&calls, domain, info, ep, context) }
}

/// Calls a function with the engine of an endpoint, locked.
///
/// # Safety
/// `ep` is an open endpoint of this provider.
#[inline]
unsafe fn with_engine<T>(
    ep: Ep,
    act: impl FnOnce(&StrictEp, &mut Engine, &mut Completions) -> T,
) -> T {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<StrictEp>() };
    let Ready { queue, index } = endpoint.ready();
    let mut inner = queue.inner.lock();
    let QueueState {
        completions,
        engines,
    } = &mut *inner;
    match &mut engines[*index] {
        Some(engine) => act(endpoint, engine, completions),
        None => endpoint
            .domain
            .violation("fi_close", "an operation was posted to a closed endpoint"),
    }
}

/// Returns an array of C as a slice.
///
/// # Safety
/// `first` is null, or points to `count` elements that are valid for `'a`.
unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: `first` points to `count` valid elements, by contract.
    unsafe { std::slice::from_raw_parts(first, count) }
}

fn piece(base: ConstBuf, nbytes: usize) -> fi::iovec {
    fi::iovec {
        iov_base: base.cast_mut(),
        iov_len: nbytes,
    }
}

/// Posts a request with its flags.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and the memory of `request` is valid until the
/// operation completes; with FI_INJECT, until this function returns.
#[inline]
unsafe fn post(ep: Ep, request: Posted<'_>) -> isize {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    unsafe {
        with_engine(ep, |_, engine, completions| {
            engine.post(&request, completions)
        })
    }
}

/// Posts a request of a call without flags: the endpoint's flags apply, and the request has a
/// completion.
///
/// # Safety
/// The contract of [`post`].
#[inline]
unsafe fn post_without_flags(ep: Ep, mut request: Posted<'_>) -> isize {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    unsafe {
        with_engine(ep, |endpoint, engine, completions| {
            request.flags = endpoint.op_flags | fi::FI_COMPLETION;
            engine.post(&request, completions)
        })
    }
}

#[unsafe(export_name = "strict_fi_read")]
unsafe extern "C" fn read(
    ep: Ep,
    buf: Buf,
    nbytes: usize,
    desc: Buf,
    peer: Addr,
    address: u64,
    key: u64,
    context: Buf,
) -> isize {
    let request = Posted {
        pieces: &[piece(buf, nbytes)],
        descs: &[desc],
        address,
        key,
        context,
        ..Posted::new(OpKind::Read, peer)
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the memory of `request` stays valid,
    // by the contract of libfabric.
    unsafe { post_without_flags(ep, request) }
}

#[unsafe(export_name = "strict_fi_write")]
unsafe extern "C" fn write(
    ep: Ep,
    buf: ConstBuf,
    nbytes: usize,
    desc: Buf,
    peer: Addr,
    address: u64,
    key: u64,
    context: Buf,
) -> isize {
    let request = Posted {
        pieces: &[piece(buf, nbytes)],
        descs: &[desc],
        address,
        key,
        context,
        ..Posted::new(OpKind::Write, peer)
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the memory of `request` stays valid,
    // by the contract of libfabric.
    unsafe { post_without_flags(ep, request) }
}

#[unsafe(export_name = "strict_fi_writemsg")]
unsafe extern "C" fn writemsg(ep: Ep, message: *const fi::fi_msg_rma, flags: u64) -> isize {
    // SAFETY: `message` points to a valid message, by the contract of libfabric.
    let message = unsafe { &*message };
    // SAFETY: `rma_iov` points to the one remote range of a message, which is the limit that this
    // provider offers.
    let remote = unsafe { &*message.rma_iov };
    // SAFETY: `msg_iov` is null, or has `iov_count` elements, by the contract of libfabric.
    let pieces = unsafe { slice(message.msg_iov, message.iov_count) };
    // SAFETY: `desc` is null, or has `iov_count` elements, by the contract of libfabric.
    let descs = unsafe { slice(message.desc, message.iov_count) };

    let request = Posted {
        pieces,
        descs,
        address: remote.addr,
        key: remote.key,
        context: message.context,
        flags,
        ..Posted::new(OpKind::Write, message.addr)
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the memory of `request` stays valid,
    // by the contract of libfabric.
    unsafe { post(ep, request) }
}

#[unsafe(export_name = "strict_fi_inject")]
unsafe extern "C" fn inject(ep: Ep, buf: ConstBuf, nbytes: usize, peer: Addr) -> isize {
    let request = Posted {
        pieces: &[piece(buf, nbytes)],
        flags: fi::FI_INJECT,
        silent: true,
        ..Posted::new(OpKind::Send, peer)
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the memory of `request` stays valid,
    // by the contract of libfabric.
    unsafe { post(ep, request) }
}

#[unsafe(export_name = "strict_fi_send")]
unsafe extern "C" fn send(
    ep: Ep,
    buf: ConstBuf,
    nbytes: usize,
    desc: Buf,
    peer: Addr,
    context: Buf,
) -> isize {
    let request = Posted {
        pieces: &[piece(buf, nbytes)],
        descs: &[desc],
        context,
        ..Posted::new(OpKind::Send, peer)
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the memory of `request` stays valid,
    // by the contract of libfabric.
    unsafe { post_without_flags(ep, request) }
}

#[unsafe(export_name = "strict_fi_recv")]
unsafe extern "C" fn recv(
    ep: Ep,
    buf: Buf,
    nbytes: usize,
    desc: Buf,
    _from: Addr,
    context: Buf,
) -> isize {
    // SAFETY: `ep` is an open endpoint of this provider, by the contract of libfabric.
    unsafe {
        with_engine(ep, |_, engine, _| {
            engine.receive(piece(buf, nbytes), desc, context)
        })
    }
}

/// A local buffer for a word, with the descriptor of its registration.
#[derive(Clone, Copy)]
struct LocalWord {
    buf: ConstBuf,
    desc: Buf,
}

impl LocalWord {
    /// Returns the value of the word, or 0 if the buffer is null.
    ///
    /// # Safety
    /// The buffer is null, or valid for reads of `width` bytes, which are at most 8.
    unsafe fn value(self, width: usize) -> u64 {
        let mut value = 0u64;
        if !self.buf.is_null() {
            let to = (&raw mut value).cast();
            // SAFETY: the buffer has `width` bytes, at most 8, by contract, and `value` has 8.
            unsafe { std::ptr::copy_nonoverlapping(self.buf.cast::<u8>(), to, width) };
        }
        value
    }
}

/// An atomic operation as libfabric passes it.
struct AtomicCall {
    count: usize,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    operand: LocalWord,
    condition: Option<LocalWord>,
    old: LocalWord,
    peer: Addr,
    address: u64,
    key: u64,
    context: Buf,
}

/// Posts an atomic operation on one word.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and the buffers are null or valid for a word.
unsafe fn post_atomic(ep: Ep, call: &AtomicCall) -> isize {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<StrictEp>() };
    let Some(width) = endpoint.profile.width(call.datatype, call.op) else {
        return -(fi::FI_EOPNOTSUPP as isize);
    };
    if call.count != 1 {
        return -(fi::FI_EOPNOTSUPP as isize);
    }

    let mut amo = AtomicOp {
        op: call.op,
        width,
        operand: 0,
        condition: 0,
    };
    let mut pieces = Vec::new();
    let mut descs = Vec::new();
    // FI_ATOMIC_READ ignores its operand, whose buffer may be invalid.
    if call.op != fi::FI_ATOMIC_READ {
        // SAFETY: the operand's buffer is null or valid for a word, by contract.
        amo.operand = unsafe { call.operand.value(width) };
        pieces.push(piece(call.operand.buf, width));
        descs.push(call.operand.desc);
    }
    if let Some(condition) = call.condition {
        // SAFETY: the buffer of `condition` is null or valid for a word, by contract.
        amo.condition = unsafe { condition.value(width) };
        pieces.push(piece(condition.buf, width));
        descs.push(condition.desc);
    }
    // The buffer of the old value is the last one, as the engine expects.
    pieces.push(piece(call.old.buf, width));
    descs.push(call.old.desc);

    let request = Posted {
        pieces: &pieces,
        descs: &descs,
        address: call.address,
        key: call.key,
        context: call.context,
        amo: Some(amo),
        ..Posted::new(OpKind::Fetch, call.peer)
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the buffers of `request` are those of
    // `call`, which are valid by contract.
    unsafe { post_without_flags(ep, request) }
}

#[unsafe(export_name = "strict_fi_fetch_atomic")]
unsafe extern "C" fn fetch_atomic(
    ep: Ep,
    operand: ConstBuf,
    count: usize,
    desc: Buf,
    old: Buf,
    old_desc: Buf,
    peer: Addr,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    context: Buf,
) -> isize {
    let call = AtomicCall {
        count,
        datatype,
        op,
        operand: LocalWord { buf: operand, desc },
        condition: None,
        old: LocalWord {
            buf: old,
            desc: old_desc,
        },
        peer,
        address,
        key,
        context,
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the buffers of `call` are null or
    // valid for a word, by the contract of libfabric.
    unsafe { post_atomic(ep, &call) }
}

#[unsafe(export_name = "strict_fi_compare_atomic")]
unsafe extern "C" fn compare_atomic(
    ep: Ep,
    operand: ConstBuf,
    count: usize,
    desc: Buf,
    condition: ConstBuf,
    condition_desc: Buf,
    old: Buf,
    old_desc: Buf,
    peer: Addr,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    context: Buf,
) -> isize {
    let call = AtomicCall {
        count,
        datatype,
        op,
        operand: LocalWord { buf: operand, desc },
        condition: Some(LocalWord {
            buf: condition,
            desc: condition_desc,
        }),
        old: LocalWord {
            buf: old,
            desc: old_desc,
        },
        peer,
        address,
        key,
        context,
    };
    // SAFETY: `ep` is an open endpoint of this provider, and the buffers of `call` are null or
    // valid for a word, by the contract of libfabric.
    unsafe { post_atomic(ep, &call) }
}

/// Returns 0 if an endpoint has an atomic operation, and stores the maximum count, which is 1;
/// otherwise returns an error.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and `count` is null or valid for writes.
unsafe fn check_atomic(
    ep: Ep,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<StrictEp>() };
    if endpoint.profile.width(datatype, op).is_none() {
        return -fi::FI_EOPNOTSUPP;
    }
    if !count.is_null() {
        // SAFETY: `count` is valid for writes, by contract.
        unsafe { *count = 1 };
    }
    0
}

unsafe extern "C" fn fetch_atomicvalid(
    ep: Ep,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    count: *mut usize,
) -> c_int {
    if op == fi::FI_CSWAP {
        return -fi::FI_EOPNOTSUPP;
    }
    // SAFETY: `ep` is an open endpoint of this provider, and `count` is null or valid for writes,
    // by the contract of libfabric.
    unsafe { check_atomic(ep, datatype, op, count) }
}

unsafe extern "C" fn compare_atomicvalid(
    ep: Ep,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    count: *mut usize,
) -> c_int {
    if op != fi::FI_CSWAP {
        return -fi::FI_EOPNOTSUPP;
    }
    // SAFETY: `ep` is an open endpoint of this provider, and `count` is null or valid for writes,
    // by the contract of libfabric.
    unsafe { check_atomic(ep, datatype, op, count) }
}
