//! The data transfer functions of an endpoint. Each passes a request to the engine.
//!
//! Their symbols, and that of reading a queue, begin with `strict_fi_`, so that instruction counts
//! can exclude them.
#![allow(unsafe_code)]

use crate::atomic::AtomicOp;
use crate::completions::Completions;
use crate::endpoint::{self, Calls, Endpoint, Ready};
use crate::engine::Engine;
use crate::operation::{Kind, Request};
use crate::queue::Inner;
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

type Ep = *mut fi::fid_ep;
type Buf = *mut c_void;
type ConstBuf = *const c_void;
type Addr = fi::fi_addr_t;

static REMOTE: fi::fi_ops_rma = fi::fi_ops_rma {
    size: size_of::<fi::fi_ops_rma>(),
    read: Some(read),
    readv: Some(readv),
    readmsg: Some(readmsg),
    write: Some(write),
    writev: Some(writev),
    writemsg: Some(writemsg),
    inject: Some(inject_write),
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
    write: Some(atomic),
    writev: None,
    writemsg: Some(atomicmsg),
    inject: Some(inject_atomic),
    readwrite: Some(fetch_atomic),
    readwritev: None,
    readwritemsg: Some(fetch_atomicmsg),
    compwrite: Some(compare_atomic),
    compwritev: None,
    compwritemsg: Some(compare_atomicmsg),
    writevalid: Some(atomicvalid),
    readwritevalid: Some(atomicvalid),
    compwritevalid: Some(compare_atomicvalid),
};

/// `fi_endpoint`.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fi::fid_domain,
    info: *mut fi::fi_info,
    ep: *mut *mut fi::fid_ep,
    context: *mut c_void,
) -> c_int {
    let calls = Calls { messages: &MESSAGES, remote: &REMOTE, atomic: &ATOMIC };
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
    act: impl FnOnce(&Endpoint, &mut Engine, &mut Completions) -> T,
) -> T {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<Endpoint>() };
    let Ready { queue, index } = endpoint.ready();
    let mut inner = queue.inner.lock();
    let Inner { completions, engines } = &mut *inner;
    match &mut engines[*index] {
        Some(engine) => act(endpoint, engine, completions),
        None => {
            endpoint.domain.violation("fi_close", "an operation was posted to a closed endpoint")
        }
    }
}

/// An array of C as a slice.
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
    fi::iovec { iov_base: base.cast_mut(), iov_len: nbytes }
}

/// Posts a request. Without `flags`, the endpoint's flags apply, and the request has a completion.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and the memory of the request is valid until
/// completion.
#[inline]
unsafe fn post(ep: Ep, request: Request<'_>, flags: Option<u64>) -> isize {
    // SAFETY: `ep` is an open endpoint of this provider, by contract.
    unsafe {
        with_engine(ep, |endpoint, engine, completions| {
            let flags = flags.unwrap_or(endpoint.op_flags | fi::FI_COMPLETION);
            engine.post(&Request { flags: request.flags | flags, ..request }, completions)
        })
    }
}

fn request<'a>(
    kind: Kind,
    pieces: &'a [fi::iovec],
    descs: &'a [*mut c_void],
    (to, address, key): (Addr, u64, u64),
    context: *mut c_void,
) -> Request<'a> {
    Request { kind, pieces, descs, to, address, key, context, flags: 0, amo: None, silent: false }
}

/// Posts a request with an array of local pieces.
///
/// # Safety
/// The contract of [`post`]; `iov` and `desc` are null or have `count` elements.
unsafe fn post_vector(
    ep: Ep,
    kind: Kind,
    (iov, desc, count): (*const fi::iovec, *mut Buf, usize),
    remote: (Addr, u64, u64),
    (context, flags): (Buf, Option<u64>),
) -> isize {
    // SAFETY: null, or `count` elements, by contract.
    let pieces = unsafe { slice(iov, count) };
    // SAFETY: null, or `count` elements, by contract.
    let descs = unsafe { slice(desc, count) };
    // SAFETY: the contract of `post`.
    unsafe { post(ep, request(kind, pieces, descs, remote, context), flags) }
}

/// Defines the three forms of reading or writing remote memory.
macro_rules! rma {
    ($kind:expr, $buf:ty, $one:ident = $one_symbol:literal, $vector:ident = $vector_symbol:literal,
     $msg:ident = $msg_symbol:literal) => {
        #[unsafe(export_name = $one_symbol)]
        unsafe extern "C" fn $one(
            ep: Ep,
            buf: $buf,
            nbytes: usize,
            desc: Buf,
            peer: Addr,
            address: u64,
            key: u64,
            context: Buf,
        ) -> isize {
            let (pieces, descs) = ([piece(buf, nbytes)], [desc]);
            let request = request($kind, &pieces, &descs, (peer, address, key), context);
            // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
            unsafe { post(ep, request, None) }
        }

        #[unsafe(export_name = $vector_symbol)]
        unsafe extern "C" fn $vector(
            ep: Ep,
            iov: *const fi::iovec,
            desc: *mut Buf,
            count: usize,
            peer: Addr,
            address: u64,
            key: u64,
            context: Buf,
        ) -> isize {
            let (local, remote) = ((iov, desc, count), (peer, address, key));
            // SAFETY: an open endpoint and valid arrays, by the contract of libfabric.
            unsafe { post_vector(ep, $kind, local, remote, (context, None)) }
        }

        #[unsafe(export_name = $msg_symbol)]
        unsafe extern "C" fn $msg(ep: Ep, message: *const fi::fi_msg_rma, flags: u64) -> isize {
            // SAFETY: a valid message, by the contract of libfabric.
            let message = unsafe { &*message };
            let &fi::fi_msg_rma { msg_iov, desc, iov_count, addr, rma_iov, context, .. } = message;
            // SAFETY: a message has one remote range, by the limit that this provider offers.
            let &fi::fi_rma_iov { addr: address, key, .. } = unsafe { &*rma_iov };
            let (local, remote) = ((msg_iov, desc, iov_count), (addr, address, key));
            // SAFETY: an open endpoint and valid arrays, by the contract of libfabric.
            unsafe { post_vector(ep, $kind, local, remote, (context, Some(flags))) }
        }
    };
}

rma!(
    Kind::Write,
    ConstBuf,
    write = "strict_fi_write",
    writev = "strict_fi_writev",
    writemsg = "strict_fi_writemsg"
);
rma!(
    Kind::Read,
    Buf,
    read = "strict_fi_read",
    readv = "strict_fi_readv",
    readmsg = "strict_fi_readmsg"
);

/// Posts a request that is injected and has no completion.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and `buf` is valid for reads of `nbytes` bytes.
unsafe fn post_inject(
    ep: Ep,
    kind: Kind,
    (buf, nbytes): (ConstBuf, usize),
    remote: (Addr, u64, u64),
) -> isize {
    let pieces = [piece(buf, nbytes)];
    let request = Request { silent: true, ..request(kind, &pieces, &[], remote, null_mut()) };
    // SAFETY: an open endpoint, by contract, and memory that the call copies.
    unsafe { post(ep, request, Some(fi::FI_INJECT)) }
}

#[unsafe(export_name = "strict_fi_inject_write")]
unsafe extern "C" fn inject_write(
    ep: Ep,
    buf: ConstBuf,
    nbytes: usize,
    peer: Addr,
    address: u64,
    key: u64,
) -> isize {
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe { post_inject(ep, Kind::Write, (buf, nbytes), (peer, address, key)) }
}

#[unsafe(export_name = "strict_fi_inject")]
unsafe extern "C" fn inject(ep: Ep, buf: ConstBuf, nbytes: usize, peer: Addr) -> isize {
    // SAFETY: an open endpoint and valid memory, by the contract of libfabric.
    unsafe { post_inject(ep, Kind::Send, (buf, nbytes), (peer, 0, 0)) }
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
    let request = request(Kind::Send, &pieces, &descs, (peer, 0, 0), context);
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
    unsafe { with_engine(ep, |_, engine, _| engine.receive(&piece(buf, nbytes), desc, context)) }
}

/// The arguments of an atomic operation. `operand`, `condition` and `old` may be null.
struct AtomicArgs {
    operand: ConstBuf,
    condition: ConstBuf,
    old: Buf,
    count: usize,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
}

/// Posts an atomic operation on one word.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and the buffers are null or valid for a word.
unsafe fn post_atomic(
    ep: Ep,
    args: &AtomicArgs,
    descs: [Buf; 3],
    remote: (Addr, u64, u64),
    (context, flags, silent): (Buf, Option<u64>, bool),
) -> isize {
    // SAFETY: an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<Endpoint>() };
    let &AtomicArgs { operand, condition, old, count, datatype, op } = args;
    let width = endpoint.profile.width(datatype, op);
    let Some(width) = width.filter(|_| count == 1) else { return -(fi::FI_EOPNOTSUPP as isize) };
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
    let operand_word = if op == fi::FI_ATOMIC_READ { 0 } else { word(operand) };
    let amo = AtomicOp { op, width, operand: operand_word, condition: word(condition) };
    // All local buffers; that of the old value is the last.
    let all = [operand, condition, old.cast_const()].map(|at| piece(at, width));
    let is_used = |i: &usize| !all[*i].iov_base.is_null() && (*i > 0 || op != fi::FI_ATOMIC_READ);
    let (pieces, descs): (Vec<_>, Vec<_>) =
        (0..3).filter(is_used).map(|i| (all[i], descs[i])).unzip();
    let kind = if old.is_null() { Kind::Update } else { Kind::Fetch };
    let request = request(kind, &pieces, &descs, remote, context);
    // SAFETY: an open endpoint and valid buffers, by contract.
    unsafe { post(ep, Request { amo: Some(amo), silent, ..request }, flags) }
}

#[unsafe(export_name = "strict_fi_atomic")]
unsafe extern "C" fn atomic(
    ep: Ep,
    operand: ConstBuf,
    count: usize,
    desc: Buf,
    peer: Addr,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    context: Buf,
) -> isize {
    let args = AtomicArgs { operand, condition: null(), old: null_mut(), count, datatype, op };
    let descs = [desc, null_mut(), null_mut()];
    // SAFETY: an open endpoint and valid buffers, by the contract of libfabric.
    unsafe { post_atomic(ep, &args, descs, (peer, address, key), (context, None, false)) }
}

#[unsafe(export_name = "strict_fi_inject_atomic")]
unsafe extern "C" fn inject_atomic(
    ep: Ep,
    operand: ConstBuf,
    count: usize,
    peer: Addr,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
) -> isize {
    let args = AtomicArgs { operand, condition: null(), old: null_mut(), count, datatype, op };
    let how = (null_mut(), Some(fi::FI_INJECT), true);
    // SAFETY: an open endpoint and valid buffers, by the contract of libfabric.
    unsafe { post_atomic(ep, &args, [null_mut(); 3], (peer, address, key), how) }
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
    let args = AtomicArgs { operand, condition: null(), old, count, datatype, op };
    let descs = [desc, null_mut(), old_desc];
    // SAFETY: an open endpoint and valid buffers, by the contract of libfabric.
    unsafe { post_atomic(ep, &args, descs, (peer, address, key), (context, None, false)) }
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
    let args = AtomicArgs { operand, condition, old, count, datatype, op };
    let descs = [desc, condition_desc, old_desc];
    // SAFETY: an open endpoint and valid buffers, by the contract of libfabric.
    unsafe { post_atomic(ep, &args, descs, (peer, address, key), (context, None, false)) }
}

/// The first element of an array of buffers, and its descriptor; null if there is none.
///
/// # Safety
/// Both are null, or have `count` elements.
unsafe fn first(words: *const fi::fi_ioc, descs: *const Buf, count: usize) -> (Buf, Buf) {
    // SAFETY: null, or `count` elements, by contract.
    let word = unsafe { slice(words, count) }.first();
    // SAFETY: null, or `count` elements, by contract.
    let desc = unsafe { slice(descs, count) }.first();
    (word.map_or(null_mut(), |word| word.addr), desc.copied().unwrap_or(null_mut()))
}

/// Posts the atomic operation of a message.
///
/// # Safety
/// The contract of [`post_atomic`], and the message is valid.
unsafe fn post_atomic_message(
    ep: Ep,
    message: *const fi::fi_msg_atomic,
    (condition, condition_desc): (Buf, Buf),
    (old, old_desc): (Buf, Buf),
    flags: u64,
) -> isize {
    // SAFETY: a valid message, by contract.
    let message = unsafe { &*message };
    // SAFETY: a valid message has `iov_count` elements in both arrays.
    let (operand, desc) = unsafe { first(message.msg_iov, message.desc, message.iov_count) };
    // SAFETY: a message has one remote range, by the limit that this provider offers.
    let &fi::fi_rma_ioc { addr: address, count, key } = unsafe { &*message.rma_iov };
    let &fi::fi_msg_atomic { addr, datatype, op, context, .. } = message;
    let args = AtomicArgs { operand, condition, old, count, datatype, op };
    let descs = [desc, condition_desc, old_desc];
    // SAFETY: an open endpoint and valid buffers, by contract.
    unsafe { post_atomic(ep, &args, descs, (addr, address, key), (context, Some(flags), false)) }
}

const NONE: (Buf, Buf) = (null_mut(), null_mut());

#[unsafe(export_name = "strict_fi_atomicmsg")]
unsafe extern "C" fn atomicmsg(ep: Ep, message: *const fi::fi_msg_atomic, flags: u64) -> isize {
    // SAFETY: an open endpoint and a valid message, by the contract of libfabric.
    unsafe { post_atomic_message(ep, message, NONE, NONE, flags) }
}

#[unsafe(export_name = "strict_fi_fetch_atomicmsg")]
unsafe extern "C" fn fetch_atomicmsg(
    ep: Ep,
    message: *const fi::fi_msg_atomic,
    old: *mut fi::fi_ioc,
    old_desc: *mut Buf,
    old_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: arrays of `old_count` elements, by the contract of libfabric.
    let old = unsafe { first(old, old_desc, old_count) };
    // SAFETY: an open endpoint and a valid message, by the contract of libfabric.
    unsafe { post_atomic_message(ep, message, NONE, old, flags) }
}

#[unsafe(export_name = "strict_fi_compare_atomicmsg")]
unsafe extern "C" fn compare_atomicmsg(
    ep: Ep,
    message: *const fi::fi_msg_atomic,
    condition: *const fi::fi_ioc,
    condition_desc: *mut Buf,
    condition_count: usize,
    old: *mut fi::fi_ioc,
    old_desc: *mut Buf,
    old_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: arrays of `condition_count` elements, by the contract of libfabric.
    let condition = unsafe { first(condition, condition_desc, condition_count) };
    // SAFETY: arrays of `old_count` elements, by the contract of libfabric.
    let old = unsafe { first(old, old_desc, old_count) };
    // SAFETY: an open endpoint and a valid message, by the contract of libfabric.
    unsafe { post_atomic_message(ep, message, condition, old, flags) }
}

/// Whether an endpoint has an atomic operation; if so, stores its maximum count.
///
/// # Safety
/// `ep` is an open endpoint of this provider, and `count` is null or valid for writes.
unsafe fn valid(ep: Ep, datatype: fi::fi_datatype, op: fi::fi_op, count: *mut usize) -> c_int {
    // SAFETY: an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<Endpoint>() };
    if endpoint.profile.width(datatype, op).is_none() {
        return -fi::FI_EOPNOTSUPP;
    }
    if !count.is_null() {
        // SAFETY: valid for writes, by contract.
        unsafe { *count = 1 };
    }
    0
}

unsafe extern "C" fn atomicvalid(
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
