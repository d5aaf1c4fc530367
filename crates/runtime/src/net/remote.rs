//! Accesses to memory that is not mapped here: what the calls of `rma`, `amo` and `signal` do if `address` has no
//! pointer for them. This is cold code beside what is mapped, but short, since a NIC takes a request within some hundred
//! instructions.
#![allow(unsafe_code)]

use crate::base::call::{Call, fail};
use crate::base::job;
use crate::base::visibility::release;
use crate::memory::address;
pub(crate) use crate::net::access::Access;
use crate::net::access::{By, RemoteBytes};
use crate::net::cma;
use crate::net::contexts::{self, Context};
use crate::net::network;
use core::ffi::c_int;
pub(crate) use rushmem_transport::Completion;
use rushmem_transport::mem::{Amo, ArithmeticAmo};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Follows, Get, LocalAccess, LocalBuf, OldValue, Put, Signal, mem,
};

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
        let remote = self.remote(dest, nbytes, (source, nbytes));
        // SAFETY: the same contract.
        unsafe { self.put_to(remote, source, nbytes, completion) }
    }

    /// As [`put`](Access::put), to bytes that were found.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    unsafe fn put_to(
        self,
        remote: RemoteBytes,
        source: *const u8,
        nbytes: usize,
        completion: Completion,
    ) {
        match remote.by {
            By::Network => {
                let source = LocalBuf::source(source, nbytes);
                let put = Put { dest: remote.at, source, completion };
                network::on(self.call, self.ctx, |endpoint| {
                    // SAFETY: valid by contract.
                    let done = unsafe { endpoint.put(network::pe(self.pe), put) };
                    done.or_else(|error| {
                        network::lose_over(self.call, &error, LocalAccess::Read, source)
                    })
                })
            }
            // SAFETY: valid by contract.
            By::Kernel(path) => unsafe { path.put(self.ctx, source, nbytes) },
            // SAFETY: mapped, and valid by contract.
            By::Cpu(to) => unsafe { mem::copy_bytes::<mem::Volatile>(to, source, nbytes) },
        }
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
        let remote = self.remote(source, nbytes, (dest, nbytes));
        match remote.by {
            By::Network => {
                let dest = LocalBuf { base: dest, nbytes };
                let get = Get { dest, source: remote.at, completion };
                network::on(self.call, self.ctx, |endpoint| {
                    // SAFETY: valid by contract.
                    let done = unsafe { endpoint.get(network::pe(self.pe), get) };
                    done.or_else(|error| {
                        network::lose_over(self.call, &error, LocalAccess::Write, dest)
                    })
                })
            }
            // SAFETY: valid by contract.
            By::Kernel(path) => unsafe { path.get(self.ctx, dest, nbytes) },
            // SAFETY: mapped, and valid by contract.
            By::Cpu(from) => unsafe { mem::copy_bytes::<mem::Atomic>(dest, from, nbytes) },
        }
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
        let remote = self.remote_word(dest, width.nbytes());
        if let By::Cpu(at) = remote.by {
            // SAFETY: mapped and aligned.
            return unsafe { mem::apply(op, width, at, operand, condition) };
        }
        let (dest, old) = (remote.at, OldValue::Returned);
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
        let remote = self.remote_word(dest, width.nbytes());
        if let By::Cpu(at) = remote.by {
            // SAFETY: mapped and aligned.
            let old = unsafe { mem::apply(op, width, at, operand, condition) };
            // SAFETY: valid by contract.
            return unsafe { width.write(fetched, old) };
        }
        let (dest, pe) = (remote.at, network::pe(self.pe));
        let at_once = matches!(remote.by, By::Kernel(_));
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
        self.update_at(self.remote_word(dest, width.nbytes()), width, op, operand);
    }

    /// As [`update`](Access::update), of a word that was found.
    #[inline(always)]
    fn update_at(self, remote: RemoteBytes, width: AmoWidth, op: AmoOp, operand: u64) {
        match remote.by {
            By::Network => {
                let (dest, old) = (remote.at, OldValue::Ignored);
                let request = AmoRequest { dest, width, op, operand, condition: 0, old };
                // SAFETY: the old value goes nowhere.
                network::on(self.call, self.ctx, |endpoint| unsafe {
                    endpoint.amo(network::pe(self.pe), request)
                });
            }
            By::Kernel(path) => path.update(self.ctx, width, op, operand),
            By::Cpu(at) => {
                release();
                // SAFETY: mapped and aligned.
                unsafe { mem::apply(op, width, at, operand, 0) };
            }
        }
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
        let word = signalling.remote_word(sig_addr, 8);
        if nbytes == 0 {
            return signalling.update(sig_addr, AmoWidth::Eight, op, signal);
        }
        if sig_addr.wrapping_sub(dest) < nbytes {
            self.check_signal(dest, nbytes, sig_addr);
        }
        if let Some(at) = signalling.word_of_cpu(sig_addr, 8)
            && let Some(to) = self.mapped(dest, nbytes)
        {
            // SAFETY: mapped, and valid by contract.
            unsafe { mem::copy_bytes::<mem::Volatile>(to, source, nbytes) };
            // SAFETY: mapped and aligned.
            return unsafe { update_mapped(at.cast(), op, signal) };
        }
        if cma::is_one(self.pe) {
            // One of them may be mapped. The other one is complete when its call returns.
            match self.mapped(dest, nbytes) {
                // SAFETY: mapped, and valid by contract.
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
        let remote = self.remote(dest, nbytes, (source, nbytes));
        if let (By::Network, By::Network) = (remote.by, word.by) {
            let (dest, source) = (remote.at, LocalBuf::source(source, nbytes));
            let put = Put { dest, source, completion };
            let signal = Signal { dest: word.at, op, value: signal, follows: Follows::Data };
            return network::on(self.call, self.ctx, |endpoint| {
                // SAFETY: valid by contract.
                let done = unsafe { endpoint.put_signal(network::pe(self.pe), put, signal) };
                done.or_else(|error| {
                    network::lose_over(self.call, &error, LocalAccess::Read, source)
                })
            });
        }
        // What this CPU or the kernel does is complete.
        // SAFETY: the same contract.
        unsafe { self.put_to(remote, source, nbytes, completion) };
        signalling.update_at(word, AmoWidth::Eight, op, signal);
    }

    /// With `SHMEM_CHECK`, ends the job with an error since the signal is one of the bytes that are
    /// put.
    #[cold]
    fn check_signal(self, dest: usize, nbytes: usize, sig_addr: usize) {
        if job::require(self.call).settings.check {
            fail!(
                self.call,
                "argument sig_addr: the signal at {sig_addr:#x} lies in the {nbytes} bytes of dest at {dest:#x}; \
                 use a word that is not part of the data"
            );
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
