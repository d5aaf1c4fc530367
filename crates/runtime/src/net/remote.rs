//! Accesses for which `address` has no pointer: a network reaches the bytes or, if accesses are
//! observed, this CPU.
//!
//! It is cold code beside the accesses to mapped memory, but short: a NIC takes a request within a
//! few hundred instructions.
#![allow(unsafe_code)]

use crate::base::call::{Call, fail};
use crate::base::counters::AccessKind;
use crate::base::handle::ContextHandle;
use crate::base::job;
use crate::base::observe::{self, ObservedAccess};
use crate::base::visibility::release;
use crate::memory::{address, place};
use crate::net::contexts::{self, Context};
use crate::net::{endpoints, network, polling};
use core::ffi::c_int;
use rushmem_race_interface::ByteBlocks;
pub(crate) use rushmem_transport::Completion;
use rushmem_transport::mem::{Amo, ArithmeticAmo};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Follows, Get, LocalAccess, LocalBuf, OldValue, Put, RemoteAddr,
    SignalUpdate, mem,
};
use std::sync::OnceLock;

/// One access: the call, the context, and the name of the symmetric address.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) call: Call,
    pub(crate) ctx: ContextHandle,
    pub(crate) argument: &'static str,
    pub(crate) pe: c_int,
}

/// A remote range and the path that reaches it: the network, or this CPU for mapped memory.
#[derive(Clone, Copy)]
pub(super) enum RemoteBytes {
    Network(RemoteAddr),
    Cpu(*mut u8),
}

/// What an access copies to or from on this PE: an address and a number of bytes. It need not be
/// symmetric.
pub(super) type Local = (*const u8, usize);

/// Who gets the writes that take the cold path: the call, where and how many bytes, and the PE.
type RecordWrite = fn(Call, usize, usize, c_int);

static RECORD: OnceLock<RecordWrite> = OnceLock::new();

/// Reports writes from now on.
pub(crate) fn record_writes(record: RecordWrite) {
    // A later init of the process has the same one.
    let _ = RECORD.set(record);
}

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
    let kind = if AT_QUIET { AccessKind::PutNbi } else { AccessKind::Put };
    if observe::any() {
        // SAFETY: the same contract.
        let again = move || unsafe { put::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) };
        if observe::access(move || access.observed(kind, dest, nbytes).with_buffer(source), again)
            .is_some()
        {
            return;
        }
    }
    // SAFETY: the same contract.
    unsafe { access.put(dest, source, nbytes, completion::<AT_QUIET>()) }
}

/// One element of `nbytes` bytes, as [`put`].
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes.
#[cold]
#[inline(never)]
pub(crate) unsafe fn p<C: Context>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access { call, ctx: ctx.handle(), argument: "dest", pe };
    if observe::any() {
        // SAFETY: the same contract.
        let again = move || unsafe { p(ctx, dest, source, nbytes, pe, call) };
        if observe::access(move || access.observed(AccessKind::P, dest, nbytes), again).is_some() {
            return;
        }
    }
    // SAFETY: the same contract.
    unsafe { access.put(dest, source, nbytes, Completion::Now) }
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
    let kind = if AT_QUIET { AccessKind::GetNbi } else { AccessKind::Get };
    if observe::any() {
        // SAFETY: the same contract.
        let again = move || unsafe { get::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) };
        if observe::access(move || access.observed(kind, source, nbytes).with_buffer(dest), again)
            .is_some()
        {
            return;
        }
    }
    // SAFETY: the same contract.
    unsafe { access.get(dest, source, nbytes, completion::<AT_QUIET>()) }
}

/// One element of `nbytes` bytes, as [`get`].
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes.
#[cold]
#[inline(never)]
pub(crate) unsafe fn g<C: Context>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access { call, ctx: ctx.handle(), argument: "source", pe };
    if observe::any() {
        // SAFETY: the same contract.
        let again = move || unsafe { g(ctx, dest, source, nbytes, pe, call) };
        if observe::access(move || access.observed(AccessKind::G, source, nbytes), again).is_some()
        {
            return;
        }
    }
    // SAFETY: the same contract.
    unsafe { access.get(dest, source, nbytes, Completion::Now) }
}

#[inline(always)]
fn completion<const AT_QUIET: bool>() -> Completion {
    if AT_QUIET { Completion::AtQuiet } else { Completion::Now }
}

impl Access {
    /// What observers see of it. The word that the target may wait for is at `at`.
    pub(super) fn observed(self, kind: AccessKind, at: usize, nbytes: usize) -> ObservedAccess {
        let Access { call, ctx, pe, .. } = self;
        let (remote, local) = (ByteBlocks::one(at, nbytes), ByteBlocks::NONE);
        let (place, signal, reads_only) = (place::in_trace(at), 0, false);
        let of_shared = contexts::is_of_shared(ctx);
        ObservedAccess {
            call,
            kind,
            ctx,
            pe,
            nbytes,
            place,
            remote,
            local,
            signal,
            reads_only,
            of_shared,
        }
    }

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
        let target = self.target(dest, nbytes, (source, nbytes));
        // SAFETY: the same contract.
        unsafe { self.put_to(target, source, nbytes, completion) }
    }

    /// As [`put`](Access::put), to bytes whose place is known.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    unsafe fn put_to(
        self,
        target: RemoteBytes,
        source: *const u8,
        nbytes: usize,
        completion: Completion,
    ) {
        match target {
            RemoteBytes::Network(dest) => {
                let source = LocalBuf::source(source, nbytes);
                let put = Put { dest, source, completion };
                // SAFETY: valid by contract.
                let done = endpoints::on(self.call, self.ctx, |endpoint| unsafe {
                    endpoint.put(network::pe(self.pe), put)
                });
                if let Err(error) = done {
                    network::fail_on_memory(self.call, &error, LocalAccess::Read, source)
                }
            }
            // SAFETY: mapped, and valid by contract.
            RemoteBytes::Cpu(to) => unsafe {
                mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes)
            },
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
        let polled = address::are_polls_counted().then(|| self.mapped(source, nbytes)).flatten();
        let target = polled.map(RemoteBytes::Cpu);
        match target.unwrap_or_else(|| self.target(source, nbytes, (dest, nbytes))) {
            RemoteBytes::Network(source) => {
                let dest = LocalBuf { base: dest, nbytes };
                let get = Get { dest, source, completion };
                // SAFETY: valid by contract.
                let done = endpoints::on(self.call, self.ctx, |endpoint| unsafe {
                    endpoint.get(network::pe(self.pe), get)
                });
                if let Err(error) = done {
                    network::fail_on_memory(self.call, &error, LocalAccess::Write, dest)
                }
            }
            RemoteBytes::Cpu(from) => {
                // SAFETY: mapped, and valid by contract.
                unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, from, nbytes) };
                // SAFETY: just written.
                unsafe { polling::got(source, self.pe, dest, nbytes) };
            }
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
        if observe::any() {
            let describe = move || {
                let reads_only = op == AmoOp::Fetch;
                self.observed(AccessKind::AmoFetch, dest, width.nbytes()).reading(reads_only)
            };
            let again = move || self.fetch(dest, width, op, operand, condition);
            if let Some(old) = observe::access(describe, again) {
                return old;
            }
        }
        let is_conditional = op == AmoOp::CompareSwap;
        let old = match self.word(dest, width.nbytes(), !is_conditional) {
            RemoteBytes::Cpu(at) => {
                // SAFETY: mapped and aligned.
                let old = unsafe { mem::apply(op, width, at, operand, condition) };
                polling::found(dest, self.pe, old);
                old
            }
            RemoteBytes::Network(dest) => {
                let old = OldValue::Returned;
                let request = AmoRequest { dest, width, op, operand, condition, old };
                // SAFETY: the old value is returned.
                unsafe { self.amo(request) }
            }
        };
        if is_conditional
            && old == condition
            && let Some(record) = RECORD.get()
        {
            record(self.call, dest, width.nbytes(), self.pe);
        }
        old
    }

    /// The atomic operation of a request, by the network.
    ///
    /// # Safety
    /// Where the request wants the old value is valid for a write of a word until the next quiet.
    #[inline(always)]
    unsafe fn amo(self, request: AmoRequest) -> u64 {
        // SAFETY: the same contract.
        let done = endpoints::on(self.call, self.ctx, |endpoint| unsafe {
            endpoint.amo(network::pe(self.pe), request)
        });
        network::or_fail(self.call, done)
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
        if observe::any() {
            let describe = move || {
                let observed = self.observed(AccessKind::AmoFetchNbi, dest, width.nbytes());
                observed.with_buffer(fetched).reading(op == AmoOp::Fetch)
            };
            // SAFETY: the same contract.
            let again =
                move || unsafe { self.fetch_nbi(fetched, dest, width, op, operand, condition) };
            if observe::access(describe, again).is_some() {
                return;
            }
        }
        let old = match self.word(dest, width.nbytes(), true) {
            RemoteBytes::Cpu(at) => {
                // SAFETY: mapped and aligned.
                let old = unsafe { mem::apply(op, width, at, operand, condition) };
                polling::found(dest, self.pe, old);
                old
            }
            RemoteBytes::Network(dest) => {
                let old = OldValue::AtQuiet(fetched);
                let request = AmoRequest { dest, width, op, operand, condition, old };
                // SAFETY: valid by contract.
                unsafe { self.amo(request) };
                return;
            }
        };
        // SAFETY: valid by contract.
        unsafe { width.write(fetched, old) };
    }

    /// An atomic operation without the old value.
    #[cold]
    #[inline(never)]
    pub(crate) fn update(self, dest: usize, width: AmoWidth, op: AmoOp, operand: u64) {
        if observe::any() {
            let describe = move || self.observed(AccessKind::Amo, dest, width.nbytes());
            let again = move || self.update(dest, width, op, operand);
            if observe::access(describe, again).is_some() {
                return;
            }
        }
        self.update_at(self.word(dest, width.nbytes(), true), width, op, operand);
    }

    /// As [`update`](Access::update), of a word whose place is known.
    #[inline(always)]
    fn update_at(self, word: RemoteBytes, width: AmoWidth, op: AmoOp, operand: u64) {
        match word {
            RemoteBytes::Network(dest) => {
                let old = OldValue::Ignored;
                let request = AmoRequest { dest, width, op, operand, condition: 0, old };
                // SAFETY: the old value goes nowhere.
                unsafe { self.amo(request) };
            }
            RemoteBytes::Cpu(at) => {
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
        let kind = match completion {
            Completion::Now => AccessKind::PutSignal,
            Completion::AtQuiet => AccessKind::PutSignalNbi,
        };
        // The put and its signal count once, by the bytes of the data.
        if observe::any() {
            let describe = move || {
                let observed = self.observed(kind, sig_addr, nbytes).with_buffer(source);
                let remote = ByteBlocks::one(dest, nbytes);
                ObservedAccess { remote, signal: sig_addr, ..observed }
            };
            // SAFETY: the same contract.
            let again = move || unsafe {
                self.put_signal(dest, source, nbytes, sig_addr, signal, op, completion)
            };
            if observe::access(describe, again).is_some() {
                return;
            }
        }
        let signaling = Access { argument: "sig_addr", ..self };
        let word = signaling.word(sig_addr, 8, true);
        if nbytes == 0 {
            return signaling.update_at(word, AmoWidth::Eight, op, signal);
        }
        if sig_addr.wrapping_sub(dest) < nbytes {
            self.check_signal(dest, nbytes, sig_addr);
        }
        if let RemoteBytes::Cpu(at) = word
            && let Some(to) = self.mapped(dest, nbytes)
        {
            // SAFETY: mapped, and valid by contract.
            unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes) };
            // SAFETY: mapped and aligned.
            return unsafe { update_mapped(at.cast(), op, signal) };
        }
        let target = self.target(dest, nbytes, (source, nbytes));
        if let (RemoteBytes::Network(dest), RemoteBytes::Network(word)) = (target, word) {
            let source = LocalBuf::source(source, nbytes);
            let put = Put { dest, source, completion };
            let signal = SignalUpdate { dest: word, op, value: signal, follows: Follows::Data };
            // SAFETY: valid by contract.
            let done = endpoints::on(self.call, self.ctx, |endpoint| unsafe {
                endpoint.put_signal(network::pe(self.pe), put, signal)
            });
            if let Err(error) = done {
                network::fail_on_memory(self.call, &error, LocalAccess::Read, source)
            }
            return;
        }
        // SAFETY: the same contract.
        unsafe { self.put_to(target, source, nbytes, completion) };
        if let (RemoteBytes::Network(_), RemoteBytes::Cpu(_)) = (target, word) {
            // This CPU does not wait for the network.
            let done = endpoints::on(self.call, self.ctx, |endpoint| {
                endpoint.pe_quiet(network::pe(self.pe))
            });
            network::or_fail(self.call, done);
        }
        signaling.update_at(word, AmoWidth::Eight, op, signal);
    }

    /// With `SHMEM_CHECK`, ends the job with an error since the signal is one of the bytes that are
    /// put.
    #[cold]
    fn check_signal(self, dest: usize, nbytes: usize, sig_addr: usize) {
        if job::require(self.call).settings.checks() {
            // Cause: `shmem_put_signal(x, source, 4, (uint64_t *)x, ...)`.
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
    pub(super) fn target(self, addr: usize, nbytes: usize, local: Local) -> RemoteBytes {
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => RemoteBytes::Network(at),
            _ => {
                let Access { call, argument, pe, .. } = self;
                other_target(call, argument, addr, nbytes, pe, local, (is_open, true, true))
            }
        }
    }

    /// As [`target`](Access::target), of a word of an atomic operation. If the network carries
    /// these out, it does so on mapped words too, except on contexts of `SHMEM_TEAM_SHARED` and of
    /// teams split from it. It is recorded if it certainly `writes`.
    #[inline(always)]
    fn word(self, addr: usize, nbytes: usize, writes: bool) -> RemoteBytes {
        address::require_aligned(self.call, self.argument, addr, nbytes);
        let is_by_cpu = contexts::is_by_cpu(self.ctx);
        let by_cpu = || is_by_cpu || !address::are_atomics_by_network();
        if (is_by_cpu || address::are_polls_counted())
            && by_cpu()
            && let Some(at) = self.mapped(addr, nbytes)
        {
            return RemoteBytes::Cpu(at);
        }
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => RemoteBytes::Network(at),
            _ => {
                let Access { call, argument, pe, .. } = self;
                let local = (std::ptr::null(), 0);
                other_target(call, argument, addr, nbytes, pe, local, (is_open, by_cpu(), writes))
            }
        }
    }

    fn mapped(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        address::mapped(std::ptr::with_exposed_provenance(addr), nbytes, self.pe)
    }
}

/// As [`Access::target`], of bytes that are not in the heap, cannot be reached, or whose accesses
/// are observed. It takes the parts of an access, which otherwise is in memory on the hot
/// path too.
#[cold]
#[inline(never)]
fn other_target(
    call: Call,
    argument: &'static str,
    addr: usize,
    nbytes: usize,
    pe: c_int,
    local: Local,
    (is_open, by_cpu, writes): (bool, bool, bool),
) -> RemoteBytes {
    let access = if argument == "dest" { LocalAccess::Read } else { LocalAccess::Write };
    address::check_local(call, access, LocalBuf::source(local.0, local.1));
    let at = address::remote(call, argument, addr, nbytes, (pe, is_open));
    if let Some(record) = RECORD.get().filter(|_| writes && argument != "source") {
        record(call, addr, nbytes, pe);
    }
    if by_cpu && let Some(here) = address::mapped_if_observed(addr, at.segment, pe) {
        return RemoteBytes::Cpu(here);
    }
    RemoteBytes::Network(at)
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
