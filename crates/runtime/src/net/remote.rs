//! Accesses for which `address` has no pointer: a network reaches the bytes or, if accesses are
//! observed, this CPU. Each describes itself to observers, resolves its address, and is made.
//!
//! It is cold code beside the accesses to mapped memory, but short: a NIC takes a request within a
//! few hundred instructions.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::job::handle::ContextHandle;
use crate::memory::address;
use crate::memory::visibility::release;
use crate::net::contexts::{self, Context};
use crate::net::{endpoints, network, polling};
use crate::observers::{
    self, AccessEvent, AccessKind, Action, Argument, ByteBlocks, Effect, Event, WordKind,
};
use core::ffi::c_int;
pub(crate) use rushmem_transport::Completion;
use rushmem_transport::mem::{Amo, ArithmeticAmo};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Follows, Get, LocalAccess, LocalBuf, OldValue, Put, RemoteAddr,
    SignalUpdate, mem,
};

/// One access: the call, the context, the PE, and the symmetric argument.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(super) call: Call,
    pub(super) ctx: ContextHandle,
    pub(super) pe: c_int,
    argument: Argument,
    word: WordKind,
}

/// A remote range and the path that reaches it: the network, or this CPU for mapped memory.
#[derive(Clone, Copy)]
pub(super) enum RemoteBytes {
    Network(RemoteAddr),
    Cpu(*mut u8),
}

impl Access {
    /// Returns an access to bytes.
    #[inline(always)]
    pub(crate) fn of_bytes<C: Context>(
        call: Call,
        ctx: C,
        argument: Argument,
        pe: c_int,
    ) -> Access {
        Access { call, ctx: ctx.handle(), pe, argument, word: WordKind::Integer }
    }

    /// Returns an atomic operation on a word of type `T`.
    #[inline(always)]
    pub(crate) fn of_word<T: Amo, C: Context>(
        call: Call,
        ctx: C,
        argument: Argument,
        pe: c_int,
    ) -> Access {
        let word = match (C::IS_OF_LOCK, T::IS_FLOAT) {
            (true, _) => WordKind::Lock,
            (false, true) => WordKind::Float,
            (false, false) => WordKind::Integer,
        };
        Access { word, ..Access::of_bytes(call, ctx, argument, pe) }
    }

    /// Returns an update of a signal.
    #[inline(always)]
    pub(crate) fn of_signal<C: Context>(call: Call, ctx: C, pe: c_int) -> Access {
        let word = WordKind::Signal;
        Access { word, ..Access::of_bytes(call, ctx, Argument::SigAddr, pe) }
    }

    /// Returns what observers see of it.
    #[inline(always)]
    pub(super) fn event(
        self,
        kind: AccessKind,
        effect: Effect,
        addr: usize,
        nbytes: usize,
    ) -> Event {
        let Access { call, ctx, pe, argument, word } = self;
        let of_shared = contexts::is_of_shared(ctx);
        let access = AccessEvent { kind, effect, argument, word, signal: 0, of_shared };
        let (remote, local) = (ByteBlocks::one(addr, nbytes), ByteBlocks::NONE);
        Event { call, action: Action::Access(access), ctx, pe, remote, local }
    }

    /// Puts `nbytes` bytes to `dest`.
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
        match self.resolve(dest, nbytes) {
            RemoteBytes::Network(dest) => {
                let source = LocalBuf::source(source, nbytes);
                // SAFETY: valid by contract.
                unsafe { self.put_by_network(Put { dest, source, completion }) }
            }
            // SAFETY: mapped, and valid by contract.
            RemoteBytes::Cpu(to) => unsafe {
                mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes)
            },
        }
    }

    /// # Safety
    /// As [`put`](Access::put).
    #[inline(always)]
    unsafe fn put_by_network(self, put: Put) {
        // SAFETY: the same contract.
        let done = endpoints::on(self.call, self.ctx, |endpoint| unsafe {
            endpoint.put(network::pe(self.pe), put)
        });
        if let Err(error) = done {
            network::fail_on_memory(self.call, &error, LocalAccess::Read, put.source)
        }
    }

    /// Gets `nbytes` bytes from `source`.
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
        match polled.unwrap_or_else(|| self.resolve(source, nbytes)) {
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

    /// Performs an atomic operation, and returns the old value.
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
        self.require_aligned(dest, width);
        if observers::any() {
            address::cold_path();
            self.fetch_observed(dest, width, op, operand, condition)
        } else {
            self.fetch_unobserved(dest, width, op, operand, condition)
        }
    }

    /// Works as [`fetch`](Access::fetch) while nobody observes. It is a function of its own so that
    /// the other branch need not save the registers that this one uses.
    #[inline(never)]
    fn fetch_unobserved(
        self,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> u64 {
        let word = self.resolve_word(dest, width);
        self.fetch_at(word, dest, width, op, (operand, condition))
    }

    /// Works as [`fetch`](Access::fetch), of a word whose place is known.
    #[inline(always)]
    fn fetch_at(
        self,
        word: RemoteBytes,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        (operand, condition): (u64, u64),
    ) -> u64 {
        match word {
            RemoteBytes::Cpu(at) => {
                // SAFETY: mapped and aligned.
                let old = unsafe { mem::apply(op, width, at, operand, condition) };
                polling::found(dest, self.pe, old);
                old
            }
            RemoteBytes::Network(dest) => {
                let old = OldValue::Returned;
                // SAFETY: the old value is returned.
                unsafe { self.amo(AmoRequest { dest, width, op, operand, condition, old }) }
            }
        }
    }

    /// Performs the atomic operation of a request by the network. Returns the old value, if that is
    /// requested.
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

    /// Starts an atomic operation whose old value is at `fetched` after the next quiet.
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
        self.require_aligned(dest, width);
        if observers::any() {
            address::cold_path();
            // SAFETY: the same contract.
            return unsafe {
                self.fetch_nbi_observed(fetched, dest, width, op, operand, condition)
            };
        }
        let word = self.resolve_word(dest, width);
        // SAFETY: the same contract.
        unsafe { self.fetch_nbi_at(fetched, word, dest, width, op, (operand, condition)) }
    }

    /// Works as [`fetch_nbi`](Access::fetch_nbi), of a word whose place is known.
    ///
    /// # Safety
    /// As that one.
    #[inline(always)]
    unsafe fn fetch_nbi_at(
        self,
        fetched: *mut u8,
        word: RemoteBytes,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        (operand, condition): (u64, u64),
    ) {
        match word {
            RemoteBytes::Cpu(at) => {
                // SAFETY: mapped and aligned.
                let old = unsafe { mem::apply(op, width, at, operand, condition) };
                polling::found(dest, self.pe, old);
                // SAFETY: valid by contract.
                unsafe { width.write(fetched, old) };
            }
            RemoteBytes::Network(dest) => {
                let old = OldValue::AtQuiet(fetched);
                // SAFETY: valid by contract.
                unsafe { self.amo(AmoRequest { dest, width, op, operand, condition, old }) };
            }
        }
    }

    /// Performs an atomic operation without the old value.
    #[cold]
    #[inline(never)]
    pub(crate) fn update(self, dest: usize, width: AmoWidth, op: AmoOp, operand: u64) {
        self.require_aligned(dest, width);
        if observers::any() {
            address::cold_path();
            self.update_observed(dest, width, op, operand);
        } else {
            self.update_unobserved(dest, width, op, operand);
        }
    }

    /// Works as [`update`](Access::update) while nobody observes, as
    /// [`fetch_unobserved`](Access::fetch_unobserved).
    #[inline(never)]
    fn update_unobserved(self, dest: usize, width: AmoWidth, op: AmoOp, operand: u64) {
        self.update_at(self.resolve_word(dest, width), width, op, operand);
    }

    /// Works as [`update`](Access::update), of a word whose place is known.
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
    pub(crate) unsafe fn put_signal<C: Context>(
        call: Call,
        ctx: C,
        dest: usize,
        source: *const u8,
        nbytes: usize,
        (sig_addr, signal, op): (usize, u64, AmoOp),
        pe: c_int,
        completion: Completion,
    ) {
        let access = Access::of_bytes(call, ctx, Argument::Dest, pe);
        let signaling = Access::of_signal(call, ctx, pe);
        signaling.require_aligned(sig_addr, AmoWidth::Eight);
        // The put and its signal count once, by the bytes of the data.
        let _observed = observers::call(move || {
            let kind = match completion {
                Completion::Now => AccessKind::PutSignal,
                Completion::AtQuiet => AccessKind::PutSignalNbi,
            };
            let event = access.event(kind, Effect::Writes, dest, nbytes);
            event.with_buffer(source, nbytes).with_signal(sig_addr)
        });
        let word = signaling.resolve_word(sig_addr, AmoWidth::Eight);
        if nbytes == 0 {
            return signaling.update_at(word, AmoWidth::Eight, op, signal);
        }
        let mapped = match word {
            RemoteBytes::Cpu(_) => access.mapped(dest, nbytes),
            RemoteBytes::Network(_) => None,
        };
        let buffer = LocalBuf::source(source, nbytes);
        match (mapped.unwrap_or_else(|| access.resolve(dest, nbytes)), word) {
            (RemoteBytes::Network(dest), RemoteBytes::Network(word)) => {
                let put = Put { dest, source: buffer, completion };
                let signal = SignalUpdate { dest: word, op, value: signal, follows: Follows::Data };
                // SAFETY: valid by contract.
                let done = endpoints::on(call, access.ctx, |endpoint| unsafe {
                    endpoint.put_signal(network::pe(pe), put, signal)
                });
                if let Err(error) = done {
                    network::fail_on_memory(call, &error, LocalAccess::Read, buffer)
                }
            }
            (RemoteBytes::Network(dest), RemoteBytes::Cpu(_)) => {
                // SAFETY: valid by contract.
                unsafe { access.put_by_network(Put { dest, source: buffer, completion }) };
                // This CPU does not wait for the network.
                let done =
                    endpoints::on(call, access.ctx, |endpoint| endpoint.pe_quiet(network::pe(pe)));
                network::or_fail(call, done);
                signaling.update_at(word, AmoWidth::Eight, op, signal);
            }
            (RemoteBytes::Cpu(to), word) => {
                // SAFETY: mapped, and valid by contract.
                unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes) };
                signaling.update_at(word, AmoWidth::Eight, op, signal);
            }
        }
    }

    /// Returns the `nbytes` symmetric bytes at `addr`; ends the job with an error where there are
    /// none, or they cannot be reached.
    #[inline(always)]
    pub(super) fn resolve(self, addr: usize, nbytes: usize) -> RemoteBytes {
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => RemoteBytes::Network(at),
            _ => resolve_others(self.call, self.argument, addr, nbytes, self.pe, (is_open, true)),
        }
    }

    /// Works as [`resolve`](Access::resolve), of a word of an atomic operation. If the network
    /// carries these out, it does so on mapped words too, except on contexts of
    /// `SHMEM_TEAM_SHARED` and of teams split from it.
    #[inline(always)]
    fn resolve_word(self, addr: usize, width: AmoWidth) -> RemoteBytes {
        let nbytes = width.nbytes();
        let is_by_cpu = contexts::is_by_cpu(self.ctx);
        let by_cpu = || is_by_cpu || !address::are_atomics_by_network();
        if (is_by_cpu || address::are_polls_counted())
            && by_cpu()
            && let Some(mapped) = self.mapped(addr, nbytes)
        {
            return mapped;
        }
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => RemoteBytes::Network(at),
            _ => {
                resolve_others(self.call, self.argument, addr, nbytes, self.pe, (is_open, by_cpu()))
            }
        }
    }

    /// Returns the place of an observed word on which this CPU carries out atomic operations.
    #[inline(always)]
    fn observed_word(self, addr: usize, width: AmoWidth) -> Option<RemoteBytes> {
        let is_by_cpu = contexts::is_by_cpu(self.ctx) || !address::are_atomics_by_network();
        let mapped = address::observed(addr, width.nbytes(), self.pe).filter(|_| is_by_cpu);
        mapped.map(RemoteBytes::Cpu)
    }

    #[inline(always)]
    fn require_aligned(self, addr: usize, width: AmoWidth) {
        address::require_aligned(self.call, self.argument.name(), addr, width.nbytes());
    }

    fn mapped(self, addr: usize, nbytes: usize) -> Option<RemoteBytes> {
        let address = std::ptr::with_exposed_provenance(addr);
        address::mapped(address, nbytes, self.pe).map(RemoteBytes::Cpu)
    }
}

impl Access {
    /// Works as [`fetch`](Access::fetch) while somebody observes.
    #[inline(never)]
    fn fetch_observed(
        self,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> u64 {
        let effect = match op {
            AmoOp::Fetch => Effect::Reads,
            AmoOp::CompareSwap => Effect::WritesIfEqual,
            _ => Effect::Writes,
        };
        let event = self.event(AccessKind::AmoFetch, effect, dest, width.nbytes());
        let mapped = self.observed_word(dest, width);
        observers::access(event, mapped.is_some(), |has_written| {
            let word = mapped.unwrap_or_else(|| self.resolve_word(dest, width));
            let old = self.fetch_at(word, dest, width, op, (operand, condition));
            *has_written = op == AmoOp::CompareSwap && old == condition;
            old
        })
    }

    /// Works as [`fetch_nbi`](Access::fetch_nbi).
    ///
    /// # Safety
    /// As that one.
    #[inline(never)]
    unsafe fn fetch_nbi_observed(
        self,
        fetched: *mut u8,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) {
        let effect = if op == AmoOp::Fetch { Effect::Reads } else { Effect::Writes };
        let event = self.event(AccessKind::AmoFetchNbi, effect, dest, width.nbytes());
        let mapped = self.observed_word(dest, width);
        observers::access(event.with_buffer(fetched, width.nbytes()), mapped.is_some(), |_| {
            let word = mapped.unwrap_or_else(|| self.resolve_word(dest, width));
            // SAFETY: the same contract.
            unsafe { self.fetch_nbi_at(fetched, word, dest, width, op, (operand, condition)) }
        });
    }

    /// Works as [`update`](Access::update) while somebody observes.
    #[inline(never)]
    fn update_observed(self, dest: usize, width: AmoWidth, op: AmoOp, operand: u64) {
        let event = self.event(AccessKind::Amo, Effect::Writes, dest, width.nbytes());
        let mapped = self.observed_word(dest, width);
        observers::access(event, mapped.is_some(), |_| {
            let word = mapped.unwrap_or_else(|| self.resolve_word(dest, width));
            self.update_at(word, width, op, operand);
        });
    }
}

/// Works as [`Access::resolve`], of bytes that are not in the heap, cannot be reached, or whose
/// accesses are observed. It takes the parts of an access, which otherwise is in memory on the hot
/// path too.
#[cold]
#[inline(never)]
fn resolve_others(
    call: Call,
    argument: Argument,
    addr: usize,
    nbytes: usize,
    pe: c_int,
    (is_open, by_cpu): (bool, bool),
) -> RemoteBytes {
    let at = address::remote(call, argument.name(), addr, nbytes, (pe, is_open));
    if by_cpu && let Some(here) = address::mapped_if_observed(addr, at.segment, pe) {
        return RemoteBytes::Cpu(here);
    }
    RemoteBytes::Network(at)
}

/// Updates a mapped word after all earlier writes of this PE.
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
