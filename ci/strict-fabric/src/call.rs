//! libfabric's calls on an endpoint: each becomes a request to its engine.
//!
//! Their symbols begin with `strict_fi_`, as that of reading a queue does: who counts instructions leaves them out by
//! these names.
#![allow(unsafe_code)]

use crate::done::Done;
use crate::endpoint::{self, Calls, Endpoint, Ready};
use crate::engine::Engine;
use crate::operation::{Kind, Request};
use crate::queue::Inner;
use crate::word::Amo;
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

type Ep = *mut fi::fid_ep;
type Bytes = *mut c_void;
type From = *const c_void;

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
    // SAFETY: libfabric's contract.
    unsafe { endpoint::open(&calls, domain, info, ep, context) }
}

/// Hands something to an endpoint's engine.
#[inline]
unsafe fn engine<T>(ep: Ep, act: impl FnOnce(&Endpoint, &mut Engine, &mut Done) -> T) -> T {
    // SAFETY: an open endpoint of this provider, by libfabric's contract.
    let endpoint = unsafe { &*ep.cast::<Endpoint>() };
    let Ready { queue, index } = endpoint.ready();
    let mut inner = queue.inner.enter();
    let Inner { done, engines } = &mut *inner;
    match &mut engines[*index] {
        Some(engine) => act(endpoint, engine, done),
        None => endpoint.domain.broken("fi_close", "an operation was posted to a closed endpoint"),
    }
}

/// How many of a list there are, as a slice.
///
/// # Safety
/// Null, or so many of them, valid during the borrow.
unsafe fn list<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match first.is_null() {
        true => &[],
        // SAFETY: by contract.
        false => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

/// One piece of memory.
fn piece(base: From, nbytes: usize) -> fi::iovec {
    fi::iovec { iov_base: base.cast_mut(), iov_len: nbytes }
}

#[inline]
unsafe fn post(ep: Ep, request: Request<'_>, flags: Option<u64>) -> isize {
    // SAFETY: by libfabric's contract.
    unsafe {
        engine(ep, |endpoint, engine, done| {
            let flags = flags.unwrap_or(endpoint.op_flags | fi::FI_COMPLETION);
            engine.post(&Request { flags: request.flags | flags, ..request }, done)
        })
    }
}

/// A request of so many pieces; those that are no injection complete if they are asked to.
fn request<'a>(
    kind: Kind,
    pieces: &'a [fi::iovec],
    descs: &'a [*mut c_void],
    (to, address, key): (fi::fi_addr_t, u64, u64),
    context: *mut c_void,
) -> Request<'a> {
    Request { kind, pieces, descs, to, address, key, context, flags: 0, amo: None, silent: false }
}

#[unsafe(export_name = "strict_fi_write")]
unsafe extern "C" fn write(
    ep: Ep,
    from: From,
    nbytes: usize,
    desc: Bytes,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
    context: Bytes,
) -> isize {
    let (pieces, descs) = ([piece(from, nbytes)], [desc]);
    let request = request(Kind::Write, &pieces, &descs, (to, address, key), context);
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, None) }
}

#[unsafe(export_name = "strict_fi_writev")]
unsafe extern "C" fn writev(
    ep: Ep,
    iov: *const fi::iovec,
    desc: *mut Bytes,
    count: usize,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
    context: Bytes,
) -> isize {
    // SAFETY: so many, by libfabric's contract.
    let pieces = unsafe { list(iov, count) };
    // SAFETY: as above.
    let descs = unsafe { list(desc, count) };
    let request = request(Kind::Write, pieces, descs, (to, address, key), context);
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, None) }
}

/// A message of remote memory access as a request.
///
/// # Safety
/// libfabric's contract.
unsafe fn described<'a>(kind: Kind, message: &fi::fi_msg_rma) -> Request<'a> {
    let &fi::fi_msg_rma { msg_iov, desc, iov_count, addr, rma_iov, context, .. } = message;
    // SAFETY: so many, by contract.
    let pieces = unsafe { list(msg_iov, iov_count) };
    // SAFETY: as above.
    let descs = unsafe { list(desc, iov_count) };
    // SAFETY: one, by contract.
    let &fi::fi_rma_iov { addr: address, key, .. } = unsafe { &*rma_iov };
    request(kind, pieces, descs, (addr, address, key), context)
}

#[unsafe(export_name = "strict_fi_writemsg")]
unsafe extern "C" fn writemsg(ep: Ep, message: *const fi::fi_msg_rma, flags: u64) -> isize {
    // SAFETY: a message, by libfabric's contract.
    let message = unsafe { &*message };
    // SAFETY: as above.
    let request = unsafe { described(Kind::Write, message) };
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, Some(flags)) }
}

#[unsafe(export_name = "strict_fi_inject_write")]
unsafe extern "C" fn inject_write(
    ep: Ep,
    from: From,
    nbytes: usize,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
) -> isize {
    let pieces = [piece(from, nbytes)];
    let request = request(Kind::Write, &pieces, &[], (to, address, key), null_mut());
    let request = Request { silent: true, ..request };
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, Some(fi::FI_INJECT)) }
}

#[unsafe(export_name = "strict_fi_read")]
unsafe extern "C" fn read(
    ep: Ep,
    to: Bytes,
    nbytes: usize,
    desc: Bytes,
    from: fi::fi_addr_t,
    address: u64,
    key: u64,
    context: Bytes,
) -> isize {
    let (pieces, descs) = ([piece(to, nbytes)], [desc]);
    let request = request(Kind::Read, &pieces, &descs, (from, address, key), context);
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, None) }
}

#[unsafe(export_name = "strict_fi_readv")]
unsafe extern "C" fn readv(
    ep: Ep,
    iov: *const fi::iovec,
    desc: *mut Bytes,
    count: usize,
    from: fi::fi_addr_t,
    address: u64,
    key: u64,
    context: Bytes,
) -> isize {
    // SAFETY: so many, by libfabric's contract.
    let pieces = unsafe { list(iov, count) };
    // SAFETY: as above.
    let descs = unsafe { list(desc, count) };
    let request = request(Kind::Read, pieces, descs, (from, address, key), context);
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, None) }
}

#[unsafe(export_name = "strict_fi_readmsg")]
unsafe extern "C" fn readmsg(ep: Ep, message: *const fi::fi_msg_rma, flags: u64) -> isize {
    // SAFETY: a message, by libfabric's contract.
    let message = unsafe { &*message };
    // SAFETY: as above.
    let request = unsafe { described(Kind::Read, message) };
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, Some(flags)) }
}

#[unsafe(export_name = "strict_fi_send")]
unsafe extern "C" fn send(
    ep: Ep,
    from: From,
    nbytes: usize,
    desc: Bytes,
    to: fi::fi_addr_t,
    context: Bytes,
) -> isize {
    let (pieces, descs) = ([piece(from, nbytes)], [desc]);
    let request = request(Kind::Send, &pieces, &descs, (to, 0, 0), context);
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, None) }
}

#[unsafe(export_name = "strict_fi_inject")]
unsafe extern "C" fn inject(ep: Ep, from: From, nbytes: usize, to: fi::fi_addr_t) -> isize {
    let pieces = [piece(from, nbytes)];
    let request = request(Kind::Send, &pieces, &[], (to, 0, 0), null_mut());
    let request = Request { silent: true, ..request };
    // SAFETY: by libfabric's contract.
    unsafe { post(ep, request, Some(fi::FI_INJECT)) }
}

#[unsafe(export_name = "strict_fi_recv")]
unsafe extern "C" fn recv(
    ep: Ep,
    to: Bytes,
    nbytes: usize,
    desc: Bytes,
    _from: fi::fi_addr_t,
    context: Bytes,
) -> isize {
    // SAFETY: by libfabric's contract.
    unsafe { engine(ep, |_, engine, _| engine.receive(&piece(to, nbytes), desc, context)) }
}

/// An atomic operation with its operand, which may be none, its condition, and where the old value goes.
struct Asked {
    operand: From,
    condition: From,
    old: Bytes,
    count: usize,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
}

/// Posts an atomic operation on one word.
///
/// # Safety
/// libfabric's contract.
unsafe fn update(
    ep: Ep,
    asked: &Asked,
    descs: [Bytes; 3],
    remote: (fi::fi_addr_t, u64, u64),
    (context, flags, silent): (Bytes, Option<u64>, bool),
) -> isize {
    // SAFETY: an open endpoint of this provider, by contract.
    let endpoint = unsafe { &*ep.cast::<Endpoint>() };
    let &Asked { operand, condition, old, count, datatype, op } = asked;
    let width = endpoint.profile.width(datatype, op);
    let Some(width) = width.filter(|_| count == 1) else { return -(fi::FI_EOPNOTSUPP as isize) };
    let word = |at: From| {
        let mut word = 0u64;
        if !at.is_null() {
            // SAFETY: a word of this width, by contract.
            unsafe {
                std::ptr::copy_nonoverlapping(at.cast::<u8>(), (&raw mut word).cast(), width)
            };
        }
        word
    };
    // An operation that reads alone has no operand to look at.
    let operand_word = if op == fi::FI_ATOMIC_READ { 0 } else { word(operand) };
    let amo = Amo { op, width, operand: operand_word, condition: word(condition) };
    // All the memory that it uses, the old value's last.
    let all = [operand, condition, old.cast_const()].map(|at| piece(at, width));
    let used = |i: &usize| !all[*i].iov_base.is_null() && (*i > 0 || op != fi::FI_ATOMIC_READ);
    let chosen: Vec<usize> = (0..3).filter(used).collect();
    let (pieces, descs): (Vec<_>, Vec<_>) = chosen.iter().map(|&i| (all[i], descs[i])).unzip();
    let kind = if old.is_null() { Kind::Update } else { Kind::Fetch };
    let request = request(kind, &pieces, &descs, remote, context);
    let request = Request { amo: Some(amo), silent, ..request };
    // SAFETY: by contract.
    unsafe { post(ep, request, flags) }
}

#[unsafe(export_name = "strict_fi_atomic")]
unsafe extern "C" fn atomic(
    ep: Ep,
    operand: From,
    count: usize,
    desc: Bytes,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    context: Bytes,
) -> isize {
    let (condition, old) = (std::ptr::null(), null_mut());
    let asked = Asked { operand, condition, old, count, datatype, op };
    let descs = [desc, null_mut(), null_mut()];
    // SAFETY: libfabric's contract.
    unsafe { update(ep, &asked, descs, (to, address, key), (context, None, false)) }
}

#[unsafe(export_name = "strict_fi_inject_atomic")]
unsafe extern "C" fn inject_atomic(
    ep: Ep,
    operand: From,
    count: usize,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
) -> isize {
    let (condition, old) = (std::ptr::null(), null_mut());
    let asked = Asked { operand, condition, old, count, datatype, op };
    let how = (null_mut(), Some(fi::FI_INJECT), true);
    // SAFETY: libfabric's contract.
    unsafe { update(ep, &asked, [null_mut(); 3], (to, address, key), how) }
}

#[unsafe(export_name = "strict_fi_fetch_atomic")]
unsafe extern "C" fn fetch_atomic(
    ep: Ep,
    operand: From,
    count: usize,
    desc: Bytes,
    old: Bytes,
    old_desc: Bytes,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    context: Bytes,
) -> isize {
    let asked = Asked { operand, condition: std::ptr::null(), old, count, datatype, op };
    let descs = [desc, null_mut(), old_desc];
    // SAFETY: libfabric's contract.
    unsafe { update(ep, &asked, descs, (to, address, key), (context, None, false)) }
}

#[unsafe(export_name = "strict_fi_compare_atomic")]
unsafe extern "C" fn compare_atomic(
    ep: Ep,
    operand: From,
    count: usize,
    desc: Bytes,
    condition: From,
    condition_desc: Bytes,
    old: Bytes,
    old_desc: Bytes,
    to: fi::fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi::fi_datatype,
    op: fi::fi_op,
    context: Bytes,
) -> isize {
    let asked = Asked { operand, condition, old, count, datatype, op };
    let descs = [desc, condition_desc, old_desc];
    // SAFETY: libfabric's contract.
    unsafe { update(ep, &asked, descs, (to, address, key), (context, None, false)) }
}

/// The first of a list of words, where there is one.
///
/// # Safety
/// Null, or so many of them.
unsafe fn first<T: Copy>(of: *const T, count: usize) -> Option<T> {
    // SAFETY: by contract.
    unsafe { list(of, count) }.first().copied()
}

/// Posts an atomic operation as a message describes it.
///
/// # Safety
/// libfabric's contract.
unsafe fn update_by(
    ep: Ep,
    message: *const fi::fi_msg_atomic,
    condition: (Option<fi::fi_ioc>, Option<Bytes>),
    old: (Option<fi::fi_ioc>, Option<Bytes>),
    flags: u64,
) -> isize {
    // SAFETY: a message, by contract.
    let message = unsafe { &*message };
    // SAFETY: so many, by contract.
    let operand = unsafe { first(message.msg_iov, message.iov_count) };
    // SAFETY: as above.
    let desc = unsafe { first(message.desc, message.iov_count) };
    // SAFETY: one, by contract.
    let &fi::fi_rma_ioc { addr: address, count, key } = unsafe { &*message.rma_iov };
    let at = |word: Option<fi::fi_ioc>| word.map_or(null_mut(), |word| word.addr);
    let &fi::fi_msg_atomic { addr, datatype, op, context, .. } = message;
    let (from, to) = (at(operand).cast_const(), at(old.0));
    let condition_at = at(condition.0).cast_const();
    let asked = Asked { operand: from, condition: condition_at, old: to, count, datatype, op };
    let descs = [desc, condition.1, old.1].map(|desc| desc.unwrap_or(null_mut()));
    // SAFETY: by contract.
    unsafe { update(ep, &asked, descs, (addr, address, key), (context, Some(flags), false)) }
}

#[unsafe(export_name = "strict_fi_atomicmsg")]
unsafe extern "C" fn atomicmsg(ep: Ep, message: *const fi::fi_msg_atomic, flags: u64) -> isize {
    // SAFETY: libfabric's contract.
    unsafe { update_by(ep, message, (None, None), (None, None), flags) }
}

#[unsafe(export_name = "strict_fi_fetch_atomicmsg")]
unsafe extern "C" fn fetch_atomicmsg(
    ep: Ep,
    message: *const fi::fi_msg_atomic,
    old: *mut fi::fi_ioc,
    old_desc: *mut Bytes,
    old_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: so many, by libfabric's contract.
    let at = unsafe { first(old, old_count) };
    // SAFETY: as above.
    let old = (at, unsafe { first(old_desc, old_count) });
    // SAFETY: libfabric's contract.
    unsafe { update_by(ep, message, (None, None), old, flags) }
}

#[unsafe(export_name = "strict_fi_compare_atomicmsg")]
unsafe extern "C" fn compare_atomicmsg(
    ep: Ep,
    message: *const fi::fi_msg_atomic,
    condition: *const fi::fi_ioc,
    condition_desc: *mut Bytes,
    condition_count: usize,
    old: *mut fi::fi_ioc,
    old_desc: *mut Bytes,
    old_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: so many, by libfabric's contract.
    let at = unsafe { first(condition, condition_count) };
    // SAFETY: as above.
    let condition = (at, unsafe { first(condition_desc, condition_count) });
    // SAFETY: as above.
    let at = unsafe { first(old, old_count) };
    // SAFETY: as above.
    let old = (at, unsafe { first(old_desc, old_count) });
    // SAFETY: libfabric's contract.
    unsafe { update_by(ep, message, condition, old, flags) }
}

unsafe fn valid(ep: Ep, datatype: fi::fi_datatype, op: fi::fi_op, count: *mut usize) -> c_int {
    // SAFETY: an open endpoint of this provider.
    let endpoint = unsafe { &*ep.cast::<Endpoint>() };
    if endpoint.profile.width(datatype, op).is_none() {
        return -fi::FI_EOPNOTSUPP;
    }
    if !count.is_null() {
        // SAFETY: a number, by libfabric's contract.
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
    // SAFETY: libfabric's contract.
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
    // SAFETY: libfabric's contract.
    unsafe { valid(ep, datatype, op, count) }
}
