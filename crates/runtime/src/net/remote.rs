//! Accesses to memory that is not mapped here: what the calls of `rma`, `amo` and `signal` do if `address` has no
//! pointer for them. This is cold code beside what is mapped, but short, since a NIC takes a request within some hundred
//! instructions.
#![allow(unsafe_code)]

use crate::base::call::Call;
use crate::base::handle::ContextHandle;
use crate::base::visibility::release;
use crate::memory::address;
use crate::net::cma;
use crate::net::contexts::{self, Context};
use crate::net::network;
use core::ffi::c_int;
pub(crate) use rushmem_transport::Completion;
use rushmem_transport::mem::{Amo, ArithmeticAmo};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Follows, Get, LocalAccess, LocalBuf, OldValue, Put, RemoteAddr,
    Signal, mem,
};

/// One access: the call, the context, and the name of the symmetric address.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) call: Call,
    pub(crate) ctx: ContextHandle,
    pub(crate) argument: &'static str,
    pub(crate) pe: c_int,
}

/// `nbytes` bytes to `dest` in the heap of `pe`. The arguments are those of the routines that put, in their order, so that they stay
/// in their registers.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub(crate) unsafe fn put_in_heap<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let (to, from) = (address::offset_in_heap(dest), LocalBuf::source(source, nbytes));
    let done = network::at_once(call, ctx.handle(), |endpoint| {
        // SAFETY: valid by contract.
        let put =
            unsafe { endpoint.put_in_heap(to, from, network::pe(pe), completion::<AT_QUIET>()) };
        put.or_else(|error| network::lose_over(call, &error, LocalAccess::Read, from))
    });
    if done.is_none() {
        // SAFETY: the same contract.
        unsafe { put::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// `nbytes` bytes to `dest`.
///
/// # Safety
/// As [`put_in_heap`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn put<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access { call, ctx: ctx.handle(), argument: "dest", pe };
    // SAFETY: the same contract.
    unsafe { access.put(dest, source, nbytes, completion::<AT_QUIET>()) }
}

/// `nbytes` bytes from `source` in the heap of `pe`; as [`put_in_heap`].
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub(crate) unsafe fn get_in_heap<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let (to, from) = (LocalBuf { base: dest, nbytes }, address::offset_in_heap(source));
    let done = network::at_once(call, ctx.handle(), |endpoint| {
        // SAFETY: valid by contract.
        let got =
            unsafe { endpoint.get_in_heap(to, from, network::pe(pe), completion::<AT_QUIET>()) };
        got.or_else(|error| network::lose_over(call, &error, LocalAccess::Write, to))
    });
    if done.is_none() {
        // SAFETY: the same contract.
        unsafe { get::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// `nbytes` bytes from `source`.
///
/// # Safety
/// As [`get_in_heap`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn get<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access { call, ctx: ctx.handle(), argument: "source", pe };
    // SAFETY: the same contract.
    unsafe { access.get(dest, source, nbytes, completion::<AT_QUIET>()) }
}

/// The atomic operation of number `OP` that returns the old value, on an aligned word in the heap of `pe`. So few arguments stay in their
/// registers.
#[cold]
#[inline(never)]
pub(crate) fn fetch_in_heap<T: Amo, C: Context, const OP: u8>(
    ctx: C,
    dest: usize,
    operand: u64,
    condition: u64,
    pe: c_int,
    call: Call,
) -> T {
    let (ctx, op) = (ctx.handle(), const { AmoOp::ALL[OP as usize] });
    let of_network = || {
        let (at, pe) = (address::offset_in_heap(dest), network::pe(pe));
        network::at_once(call, ctx, |endpoint| {
            endpoint.fetch_in_heap(at, operand, condition, op, T::WIDTH, pe)
        })
    };
    let old = if contexts::is_of_shared(ctx) { None } else { of_network() };
    T::from_bits(old.unwrap_or_else(|| {
        Access { call, ctx, argument: "dest", pe }.fetch(dest, T::WIDTH, op, operand, condition)
    }))
}

#[inline(always)]
fn completion<const AT_QUIET: bool>() -> Completion {
    if AT_QUIET { Completion::AtQuiet } else { Completion::Now }
}

impl Access {
    /// `nbytes` bytes to `dest`.
    ///
    /// # Safety
    /// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn put(
        self,
        dest: usize,
        source: *const u8,
        nbytes: usize,
        completion: Completion,
    ) {
        let dest = self.remote(dest, nbytes);
        if let Some(path) = self.path(dest) {
            // SAFETY: valid by contract.
            return unsafe { path.put(self.ctx, source, nbytes) };
        }
        let put = Put { dest, source: LocalBuf::source(source, nbytes), completion };
        network::on(self.call, self.ctx, |endpoint| {
            // SAFETY: valid by contract.
            let done = unsafe { endpoint.put(network::pe(self.pe), put) };
            done.or_else(|error| {
                network::lose_over(self.call, &error, LocalAccess::Read, put.source)
            })
        })
    }

    /// `nbytes` bytes from `source`.
    ///
    /// # Safety
    /// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn get(
        self,
        dest: *mut u8,
        source: usize,
        nbytes: usize,
        completion: Completion,
    ) {
        let source = self.remote(source, nbytes);
        if let Some(path) = self.path(source) {
            // SAFETY: valid by contract.
            return unsafe { path.get(self.ctx, dest, nbytes) };
        }
        let get = Get { dest: LocalBuf { base: dest, nbytes }, source, completion };
        network::on(self.call, self.ctx, |endpoint| {
            // SAFETY: valid by contract.
            let done = unsafe { endpoint.get(network::pe(self.pe), get) };
            done.or_else(|error| {
                network::lose_over(self.call, &error, LocalAccess::Write, get.dest)
            })
        })
    }

    /// An atomic operation that returns the old value.
    #[cold]
    #[inline(never)]
    pub(crate) fn fetch(
        self,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> u64 {
        if let Some(at) = self.word_of_cpu(dest, width.nbytes()) {
            // SAFETY: mapped and aligned.
            return unsafe { mem::apply(op, width, at, operand, condition) };
        }
        let dest = self.remote_word(dest, width.nbytes());
        let old = OldValue::Returned;
        let request = AmoRequest { dest, width, op, operand, condition, old };
        // SAFETY: the old value is returned.
        network::on(self.call, self.ctx, |endpoint| unsafe {
            endpoint.amo(network::pe(self.pe), request)
        })
    }

    /// An atomic operation whose old value is at `fetched` after the next quiet.
    ///
    /// # Safety
    /// `fetched` is valid for a write of a word until then.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn fetch_nbi(
        self,
        fetched: *mut u8,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) {
        if let Some(at) = self.word_of_cpu(dest, width.nbytes()) {
            // SAFETY: mapped and aligned.
            let old = unsafe { mem::apply(op, width, at, operand, condition) };
            // SAFETY: valid by contract.
            return unsafe { width.write(fetched, old) };
        }
        let dest = self.remote_word(dest, width.nbytes());
        let pe = network::pe(self.pe);
        let at_once = self.path(dest).is_some();
        let old = if at_once { OldValue::Returned } else { OldValue::AtQuiet(fetched) };
        let request = AmoRequest { dest, width, op, operand, condition, old };
        // SAFETY: valid by contract.
        let old = network::on(self.call, self.ctx, |endpoint| unsafe { endpoint.amo(pe, request) });
        if at_once {
            // SAFETY: valid by contract.
            unsafe { width.write(fetched, old) };
        }
    }

    /// An atomic operation without the old value.
    #[cold]
    #[inline(never)]
    pub(crate) fn update(self, dest: usize, width: AmoWidth, op: AmoOp, operand: u64) {
        if let Some(at) = self.word_of_cpu(dest, width.nbytes()) {
            release();
            // SAFETY: mapped and aligned.
            unsafe { mem::apply(op, width, at, operand, 0) };
            return;
        }
        let dest = self.remote_word(dest, width.nbytes());
        if let Some(path) = self.path(dest) {
            return path.update(self.ctx, width, op, operand);
        }
        let old = OldValue::Ignored;
        let request = AmoRequest { dest, width, op, operand, condition: 0, old };
        // SAFETY: the old value goes nowhere.
        network::on(self.call, self.ctx, |endpoint| unsafe {
            endpoint.amo(network::pe(self.pe), request)
        });
    }

    /// `nbytes` bytes to `dest`, then `op` with `signal` on `sig_addr`.
    ///
    /// # Safety
    /// As [`put`](Access::put).
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "the arguments of shmem_put_signal")]
    pub(crate) unsafe fn put_signal(
        self,
        dest: usize,
        source: *const u8,
        nbytes: usize,
        sig_addr: usize,
        signal: u64,
        op: AmoOp,
        completion: Completion,
    ) {
        let signalling = Access { argument: "sig_addr", ..self };
        let at = signalling.remote_word(sig_addr, 8);
        if nbytes == 0 {
            return signalling.update(sig_addr, AmoWidth::Eight, op, signal);
        }
        if let Some(at) = signalling.word_of_cpu(sig_addr, 8)
            && let Some(to) = self.mapped(dest, nbytes)
        {
            // SAFETY: mapped, and valid by contract; `copy_bytes` allows overlap.
            unsafe { mem::copy_bytes::<mem::Volatile>(to, source, nbytes) };
            // SAFETY: mapped and aligned.
            return unsafe { update_mapped(at.cast(), op, signal) };
        }
        if cma::is_one(self.pe) {
            // One of them may be mapped. The other one is complete when its call returns.
            match self.mapped(dest, nbytes) {
                // SAFETY: mapped, and valid by contract; `copy_bytes` allows overlap.
                Some(to) => unsafe { mem::copy_bytes::<mem::Volatile>(to, source, nbytes) },
                // SAFETY: valid by contract.
                None => unsafe { self.put(dest, source, nbytes, completion) },
            }
            return match self.mapped(sig_addr, 8) {
                // SAFETY: mapped; the caller's signal is aligned.
                Some(at) if !address::are_atomics_by_network() => unsafe {
                    update_mapped(at.cast(), op, signal)
                },
                _ => signalling.update(sig_addr, AmoWidth::Eight, op, signal),
            };
        }
        let dest = self.remote(dest, nbytes);
        let put = Put { dest, source: LocalBuf::source(source, nbytes), completion };
        let signal = Signal { dest: at, op, value: signal, follows: Follows::Data };
        network::on(self.call, self.ctx, |endpoint| {
            // SAFETY: valid by contract.
            let done = unsafe { endpoint.put_signal(network::pe(self.pe), put, signal) };
            done.or_else(|error| {
                network::lose_over(self.call, &error, LocalAccess::Read, put.source)
            })
        })
    }

    fn remote_word(self, addr: usize, nbytes: usize) -> RemoteAddr {
        address::require_aligned(self.call, self.argument, addr, nbytes);
        self.remote(addr, nbytes)
    }

    /// A word on which this CPU carries out atomic operations although the network does so on the world:
    /// one of this node, on a context of `SHMEM_TEAM_SHARED`.
    #[inline(always)]
    fn word_of_cpu(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        if contexts::is_of_shared(self.ctx) { self.word_of_domain(addr, nbytes) } else { None }
    }

    #[inline(never)]
    fn word_of_domain(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        if !address::are_atomics_by_network() {
            return None;
        }
        address::require_aligned(self.call, self.argument, addr, nbytes);
        self.mapped(addr, nbytes)
    }

    /// The path to static data of a node peer that are not mapped.
    pub(super) fn path(self, at: RemoteAddr) -> Option<cma::CmaPath> {
        cma::path(self.call, self.pe, at)
    }

    fn mapped(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        address::mapped(std::ptr::with_exposed_provenance(addr), nbytes, self.pe)
    }

    #[inline(always)]
    pub(super) fn remote(self, addr: usize, nbytes: usize) -> RemoteAddr {
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => at,
            _ => address::remote(self.call, self.argument, addr, nbytes, (self.pe, is_open)),
        }
    }
}

/// After everything that this PE wrote before.
///
/// # Safety
/// `at` is mapped and aligned.
#[inline(always)]
pub(crate) unsafe fn update_mapped(at: *mut u64, op: AmoOp, signal: u64) {
    release();
    if op == AmoOp::Set {
        // SAFETY: by contract.
        unsafe { u64::set(at, signal) };
    } else {
        // SAFETY: by contract.
        unsafe { u64::fetch_add(at, signal) };
    }
}
