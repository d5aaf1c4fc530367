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
use std::ptr::null_mut;

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
    // SAFETY: the contract of `fi_endpoint`, which both functions have.
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
    match first.is_null() {
        true => &[],
        // SAFETY: `first` points to `count` valid elements, by contract.
        false => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

fn piece(base: ConstBuf, nbytes: usize) -> fi::iovec {
    fi::iovec {
        iov_base: base.cast_mut(),
        iov_len: nbytes,
    }
}

/// Posts a request. Without `flags`, the endpoint's flags apply, and the request has a completion.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and the memory of the request is valid until
/// completion.
#[inline]
unsafe fn post(ep: Ep, request: Posted<'_>, flags: Option<u64>) -> isize {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    unsafe {
        with_engine(ep, |endpoint, engine, completions| {
            let flags = flags.unwrap_or(endpoint.op_flags | fi::FI_COMPLETION);
            engine.post(
                &Posted {
                    flags: request.flags | flags,
                    ..request
                },
                completions,
            )
        })
    }
}

fn request<'a>(
    kind: OpKind,
    pieces: &'a [fi::iovec],
    descs: &'a [*mut c_void],
    (to, address, key): (Addr, u64, u64),
    context: *mut c_void,
) -> Posted<'a> {
    Posted {
        kind,
        pieces,
        descs,
        to,
        address,
        key,
        context,
        flags: 0,
        amo: None,
        silent: false,
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
    let (pieces, descs) = ([piece(buf, nbytes)], [desc]);
    let request = request(OpKind::Read, &pieces, &descs, (peer, address, key), context);
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe { post(ep, request, None) }
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
    let (pieces, descs) = ([piece(buf, nbytes)], [desc]);
    let request = request(
        OpKind::Write,
        &pieces,
        &descs,
        (peer, address, key),
        context,
    );
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe { post(ep, request, None) }
}

#[unsafe(export_name = "strict_fi_writemsg")]
unsafe extern "C" fn writemsg(ep: Ep, message: *const fi::fi_msg_rma, flags: u64) -> isize {
    // SAFETY: a valid message, by the contract of libfabric.
    let message = unsafe { &*message };
    let &fi::fi_msg_rma {
        msg_iov,
        desc,
        iov_count,
        addr,
        rma_iov,
        context,
        ..
    } = message;
    // SAFETY: a message has one remote range, by the limit that this provider offers.
    let &fi::fi_rma_iov {
        addr: address, key, ..
    } = unsafe { &*rma_iov };
    // SAFETY: null, or `iov_count` elements, by the contract of libfabric.
    let pieces = unsafe { slice(msg_iov, iov_count) };
    // SAFETY: null, or `iov_count` elements, by the contract of libfabric.
    let descs = unsafe { slice(desc, iov_count) };
    let request = request(OpKind::Write, pieces, descs, (addr, address, key), context);
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe { post(ep, request, Some(flags)) }
}

#[unsafe(export_name = "strict_fi_inject")]
unsafe extern "C" fn inject(ep: Ep, buf: ConstBuf, nbytes: usize, peer: Addr) -> isize {
    let pieces = [piece(buf, nbytes)];
    let request = request(OpKind::Send, &pieces, &[], (peer, 0, 0), null_mut());
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe {
        post(
            ep,
            Posted {
                silent: true,
                ..request
            },
            Some(fi::FI_INJECT),
        )
    }
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
    let (pieces, descs) = ([piece(buf, nbytes)], [desc]);
    let request = request(OpKind::Send, &pieces, &descs, (peer, 0, 0), context);
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe { post(ep, request, None) }
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
    // SAFETY: an open endpoint of this provider, by the contract of libfabric.
    unsafe {
        with_engine(ep, |_, engine, _| {
            engine.receive(&piece(buf, nbytes), desc, context)
        })
    }
}

/// Posts an atomic operation on one word. `buffers` are local buffers with their descriptors: of
/// the operand, of the condition if there are three, and of the old value.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and the buffers are null or valid for a word.
unsafe fn post_atomic<const N: usize>(
    ep: Ep,
    count: usize,
    (datatype, op): (fi::fi_datatype, fi::fi_op),
    buffers: [(ConstBuf, Buf); N],
    remote: (Addr, u64, u64),
    context: Buf,
) -> isize {
    // SAFETY: an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<StrictEp>() };
    let width = endpoint.profile.width(datatype, op);
    let Some(width) = width.filter(|_| count == 1) else {
        return -(fi::FI_EOPNOTSUPP as isize);
    };
    let word = |at: ConstBuf| {
        let mut word = 0u64;
        if !at.is_null() {
            let to = (&raw mut word).cast();
            // SAFETY: a word of this width, by contract.
            unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), to, width) };
        }
        word
    };
    // FI_ATOMIC_READ ignores its operand.
    let first = usize::from(op == fi::FI_ATOMIC_READ);
    let operand = if first == 0 { word(buffers[0].0) } else { 0 };
    let condition = if N == 3 { word(buffers[1].0) } else { 0 };
    let (pieces, descs): (Vec<_>, Vec<_>) = buffers[first..]
        .iter()
        .map(|&(at, desc)| (piece(at, width), desc))
        .unzip();
    let amo = Some(AtomicOp {
        op,
        width,
        operand,
        condition,
    });
    let request = Posted {
        amo,
        ..request(OpKind::Fetch, &pieces, &descs, remote, context)
    };
    // SAFETY: an open endpoint and valid buffers, by contract.
    unsafe { post(ep, request, None) }
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
    let buffers = [(operand, desc), (old.cast_const(), old_desc)];
    // SAFETY: an open endpoint and valid buffers, by the contract of libfabric.
    unsafe {
        post_atomic(
            ep,
            count,
            (datatype, op),
            buffers,
            (peer, address, key),
            context,
        )
    }
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
    let buffers = [
        (operand, desc),
        (condition, condition_desc),
        (old.cast_const(), old_desc),
    ];
    // SAFETY: an open endpoint and valid buffers, by the contract of libfabric.
    unsafe {
        post_atomic(
            ep,
            count,
            (datatype, op),
            buffers,
            (peer, address, key),
            context,
        )
    }
}

/// Returns 0 if an endpoint has an atomic operation, and stores the maximum count, which is 1;
/// otherwise returns an error.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and `count` is null or valid for writes.
unsafe fn valid(ep: Ep, datatype: fi::fi_datatype, op: fi::fi_op, count: *mut usize) -> c_int {
    // SAFETY: an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<StrictEp>() };
    if endpoint.profile.width(datatype, op).is_none() {
        return -fi::FI_EOPNOTSUPP;
    }
    if !count.is_null() {
        // SAFETY: valid for writes, by contract.
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
    // SAFETY: an open endpoint, and null or a valid count, by the contract of libfabric.
    unsafe { valid(ep, datatype, op, count) }
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
    // SAFETY: an open endpoint, and null or a valid count, by the contract of libfabric.
    unsafe { valid(ep, datatype, op, count) }
}
