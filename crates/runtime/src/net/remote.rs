//! Accesses for which `address` has no pointer: a network reaches the bytes, the kernel or, with
//! `SHMEM_CHECK`, this CPU after the checks.
//!
//! It is cold code beside the accesses to mapped memory, but short: a NIC takes a request within a
//! few hundred instructions.
#![allow(unsafe_code)]

use crate::base::call::{Call, fail};
use crate::base::handle::ContextHandle;
use crate::base::job;
use crate::base::visibility::release;
use crate::memory::address;
use crate::net::cma::{self, CmaPath};
use crate::net::contexts::{self, Context};
use crate::net::{endpoints, network};
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

/// Symmetric bytes of a PE.
#[derive(Clone, Copy)]
pub(super) struct RemoteBytes {
    pub(super) at: RemoteAddr,
    pub(super) by: By,
}

/// Who accesses symmetric bytes.
#[derive(Clone, Copy)]
pub(super) enum By {
    Network,
    /// The kernel: static data of a node peer that are not mapped here.
    Kernel(CmaPath),
    /// This CPU: mapped memory.
    Cpu(*mut u8),
}

/// What an access copies to or from on this PE: an address and a number of bytes. It need not be
/// symmetric.
pub(super) type Local = (*const u8, usize);

/// `nbytes` bytes to `dest`. The arguments are those of the routines that put, in their order, so
/// that they stay in their registers.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
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

/// `nbytes` bytes from `source`, with its arguments as those of [`put`].
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
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

#[inline(always)]
fn completion<const AT_QUIET: bool>() -> Completion {
    if AT_QUIET { Completion::AtQuiet } else { Completion::Now }
}

impl Access {
    /// `nbytes` bytes to `dest`.
    ///
    /// # Safety
    /// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
    #[inline(always)]
    pub(super) unsafe fn put(
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

    /// As [`put`](Access::put), to bytes whose place is known.
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
                let mut endpoint = endpoints::of(self.call, self.ctx);
                // SAFETY: valid by contract.
                if let Err(error) = unsafe { endpoint.put(network::pe(self.pe), put) } {
                    network::fail_on_memory(self.call, &error, LocalAccess::Read, source)
                }
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
    #[inline(always)]
    pub(super) unsafe fn get(
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
                let mut endpoint = endpoints::of(self.call, self.ctx);
                // SAFETY: valid by contract.
                if let Err(error) = unsafe { endpoint.get(network::pe(self.pe), get) } {
                    network::fail_on_memory(self.call, &error, LocalAccess::Write, dest)
                }
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
        unsafe { self.amo(request) }
    }

    /// The atomic operation of a request, by the network.
    ///
    /// # Safety
    /// Where the request wants the old value is valid for a write of a word until the next quiet.
    unsafe fn amo(self, request: AmoRequest) -> u64 {
        let mut endpoint = endpoints::of(self.call, self.ctx);
        // SAFETY: the same contract.
        network::or_fail(self.call, unsafe { endpoint.amo(network::pe(self.pe), request) })
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
        let dest = remote.at;
        let by_kernel = matches!(remote.by, By::Kernel(_));
        let old = if by_kernel { OldValue::Returned } else { OldValue::AtQuiet(fetched) };
        let request = AmoRequest { dest, width, op, operand, condition, old };
        // SAFETY: valid by contract.
        let old = unsafe { self.amo(request) };
        if by_kernel {
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

    /// As [`update`](Access::update), of a word whose place is known.
    #[inline(always)]
    fn update_at(self, remote: RemoteBytes, width: AmoWidth, op: AmoOp, operand: u64) {
        match remote.by {
            By::Network => {
                let (dest, old) = (remote.at, OldValue::Ignored);
                let request = AmoRequest { dest, width, op, operand, condition: 0, old };
                // SAFETY: the old value goes nowhere.
                unsafe { self.amo(request) };
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
            let mut endpoint = endpoints::of(self.call, self.ctx);
            // SAFETY: valid by contract.
            if let Err(error) = unsafe { endpoint.put_signal(network::pe(self.pe), put, signal) } {
                network::fail_on_memory(self.call, &error, LocalAccess::Read, source)
            }
            return;
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

    /// The `nbytes` symmetric bytes at `addr`; ends the job with an error where there are none, or
    /// they cannot be reached.
    #[inline(always)]
    pub(super) fn remote(self, addr: usize, nbytes: usize, local: Local) -> RemoteBytes {
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => RemoteBytes { at, by: By::Network },
            _ => self.other_remote(addr, nbytes, local, is_open),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_remote(self, addr: usize, nbytes: usize, local: Local, is_open: bool) -> RemoteBytes {
        let is_read = self.argument == "dest";
        let access = if is_read { LocalAccess::Read } else { LocalAccess::Write };
        address::check_local(self.call, access, LocalBuf::source(local.0, local.1));
        let at = address::remote(self.call, self.argument, addr, nbytes, (self.pe, is_open));
        let by_kernel = || cma::path(self.call, self.pe, at).map_or(By::Network, By::Kernel);
        let mapped = address::mapped_if_checked(addr, at.segment, self.pe);
        RemoteBytes { at, by: mapped.map_or_else(by_kernel, By::Cpu) }
    }

    /// As [`remote`](Access::remote), of a word of an atomic operation. Where the network carries
    /// these out, it does so on every PE, but for contexts of `SHMEM_TEAM_SHARED`.
    #[inline(always)]
    fn remote_word(self, addr: usize, nbytes: usize) -> RemoteBytes {
        address::require_aligned(self.call, self.argument, addr, nbytes);
        match self.remote(addr, nbytes, (std::ptr::null(), 0)) {
            RemoteBytes { at, by: By::Cpu(_) }
                if address::are_atomics_by_network() && !contexts::is_of_shared(self.ctx) =>
            {
                RemoteBytes { at, by: By::Network }
            }
            other => other,
        }
    }

    /// A word on which this CPU carries out atomic operations although the network does so on the
    /// world: one of this node, on a context of `SHMEM_TEAM_SHARED`.
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

    fn mapped(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        address::mapped(std::ptr::with_exposed_provenance(addr), nbytes, self.pe)
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
