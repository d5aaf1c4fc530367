//! Accesses off the fast path: the network reaches the bytes, or this CPU does while accesses are
//! observed or counted. Each access is described once ([`Access`]), takes the path that reaches its
//! bytes ([`RemoteBytes`]), and is shown to observers in one place ([`observers::access`]).
//!
//! This code is cold beside the accesses to mapped memory, but it must be short: a NIC accepts a
//! request within a few hundred instructions.
#![allow(unsafe_code)]

use crate::net::contexts::{self, Context};
use crate::net::network::{self, UsedEndpoint};
use crate::net::polls;
use crate::observers::{
    self, AccessEvent, AccessKind, Action, Argument, ByteBlocks, Effect, Event, WordKind,
};
use core::ffi::c_int;
use rushmem_explain::status::PolledObject;
use rushmem_pe::call::Call;
use rushmem_pe::job::handle::ContextHandle;
use rushmem_pe::memory::accessible::LocalAccess;
use rushmem_pe::memory::visibility::release;
use rushmem_pe::memory::{address, checks, constants};
pub use rushmem_transport::Completion;
use rushmem_transport::mem::{AddAmo, Amo};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, DestBuf, Follows, Get, LocalBuf, OldValue, Put, RemoteAddr,
    SignalUpdate, SourceBuf, mem,
};

/// One access: the call, the context, the PE, and the symmetric argument.
#[derive(Clone, Copy)]
pub struct Access {
    pub(super) call: Call,
    pub(super) ctx: ContextHandle,
    pub(super) pe: c_int,
    argument: Argument,
    word: WordKind,
    /// True if this CPU makes the access wherever the memory is mapped here; false for atomic
    /// operations that the network carries out on mapped words, too.
    is_by_cpu: bool,
}

/// The path to a remote range: the network, or this CPU if the range is mapped here.
#[derive(Clone, Copy)]
pub(super) enum RemoteBytes {
    Network(RemoteAddr),
    Cpu(*mut u8),
}

/// Puts `nbytes` bytes to `dest`: the element of a `shmem_p` if `IS_ELEMENT`, otherwise the bytes
/// of a put, which `AT_QUIET` makes nonblocking. The arguments are those of the routines that put,
/// in their order, so that they stay in their registers.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub unsafe fn put<C: Context, const AT_QUIET: bool, const IS_ELEMENT: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let (kind, completion) = match (IS_ELEMENT, AT_QUIET) {
        (true, _) => (AccessKind::P, Completion::Now),
        (false, false) => (AccessKind::Put, Completion::Now),
        (false, true) => (AccessKind::PutNbi, Completion::AtQuiet),
    };
    let access = Access::of_bytes(call, ctx, Argument::Dest, pe);

    // Who reaches the bytes: the network, or this CPU while accesses are observed. If nobody does,
    // the job ends here.
    let to = access.resolve(dest, nbytes);

    // What is wrong with the access, if it is checked.
    let describe = move || {
        let event = access.event(kind, Effect::Writes, dest, nbytes);
        if IS_ELEMENT {
            event
        } else {
            event.with_buffer(source, nbytes)
        }
    };
    let _observed = observers::access(describe, to.is_mapped());

    // SAFETY: the caller's promise about `source`.
    unsafe { access.put_bytes(to, source, nbytes, completion) }
}

/// Gets `nbytes` bytes from `source`: the element of a `shmem_g` if `IS_ELEMENT`, otherwise the
/// bytes of a get, which `AT_QUIET` makes nonblocking.
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub unsafe fn get<C: Context, const AT_QUIET: bool, const IS_ELEMENT: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let (kind, completion) = match (IS_ELEMENT, AT_QUIET) {
        (true, _) => (AccessKind::G, Completion::Now),
        (false, false) => (AccessKind::Get, Completion::Now),
        (false, true) => (AccessKind::GetNbi, Completion::AtQuiet),
    };
    let access = Access::of_bytes(call, ctx, Argument::Source, pe);

    let from = access.resolve(source, nbytes);

    let describe = move || {
        let event = access.event(kind, Effect::Reads, source, nbytes);
        if IS_ELEMENT {
            event
        } else {
            event.with_buffer(dest, nbytes)
        }
    };
    let _observed = observers::access(describe, from.is_mapped());
    polls::count(call, source, PolledObject::MemoryOf(pe as u32));

    // SAFETY: the caller's promise about `dest`.
    unsafe { access.get_bytes(dest, from, nbytes, completion) }
}

impl Access {
    /// Describes an access of `call` to symmetric bytes of `pe`. Messages name them by `argument`.
    #[inline(always)]
    pub fn of_bytes<C: Context>(call: Call, ctx: C, argument: Argument, pe: c_int) -> Access {
        let (ctx, word) = (ctx.handle(), WordKind::Integer);
        Access {
            call,
            ctx,
            pe,
            argument,
            word,
            is_by_cpu: true,
        }
    }

    /// Describes an atomic operation on a symmetric word of type `T`.
    #[inline(always)]
    pub fn of_word<T: Amo, C: Context>(
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
        Access::of_bytes(call, ctx, argument, pe).into_atomic(word)
    }

    /// Describes an update of a symmetric signal word.
    #[inline(always)]
    pub fn of_signal<C: Context>(call: Call, ctx: C, pe: c_int) -> Access {
        Access::of_bytes(call, ctx, Argument::SigAddr, pe).into_atomic(WordKind::Signal)
    }

    /// Turns an access to bytes into an atomic operation. If the network carries out the atomic
    /// operations of the job, it also does so on mapped words, except on contexts of
    /// `SHMEM_TEAM_SHARED` and of teams split from it.
    #[inline(always)]
    fn into_atomic(self, word: WordKind) -> Access {
        let is_by_cpu = contexts::is_by_cpu(self.ctx) || !address::are_atomics_by_network();
        Access {
            word,
            is_by_cpu,
            ..self
        }
    }

    /// Returns the event of this access, for observers.
    #[inline(always)]
    pub(super) fn event(
        self,
        kind: AccessKind,
        effect: Effect,
        addr: usize,
        nbytes: usize,
    ) -> Event {
        let Access {
            call,
            ctx,
            pe,
            argument,
            word,
            ..
        } = self;
        let of_shared = contexts::is_of_shared(ctx);
        let access = AccessEvent {
            kind,
            effect,
            argument,
            word,
            signal: 0,
            of_shared,
        };
        let (remote, local) = (ByteBlocks::one(addr, nbytes), ByteBlocks::NONE);
        Event {
            call,
            action: Action::Access(access),
            ctx,
            pe,
            remote,
            local,
        }
    }

    /// Returns the path to the `nbytes` symmetric bytes at `addr`. Ends the job with an error if
    /// they are not symmetric, or nothing reaches them.
    #[inline(always)]
    pub(super) fn resolve(self, addr: usize, nbytes: usize) -> RemoteBytes {
        let Access {
            call,
            pe,
            argument,
            is_by_cpu,
            ..
        } = self;
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, pe) {
            Some(at) if is_open && !(is_by_cpu && address::is_heap_mapped(pe)) => {
                RemoteBytes::Network(at)
            }
            _ => resolve_others(call, argument, addr, nbytes, pe, (is_open, is_by_cpu)),
        }
    }

    /// Returns the endpoint of its context.
    #[inline(always)]
    pub(super) fn endpoint(self) -> UsedEndpoint {
        network::endpoint(self.call, self.ctx)
    }

    #[inline(always)]
    fn require_aligned(self, addr: usize, width: AmoWidth) {
        checks::require_aligned(self.call, self.argument.name(), addr, width.nbytes());
    }

    /// Copies `nbytes` bytes from `source` to `dest`.
    ///
    /// # Safety
    /// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
    #[inline(always)]
    pub(super) unsafe fn put_bytes(
        self,
        dest: RemoteBytes,
        source: *const u8,
        nbytes: usize,
        completion: Completion,
    ) {
        match dest {
            RemoteBytes::Network(dest) => {
                let put = Put {
                    remote: dest,
                    // SAFETY: the caller's promise about `source`.
                    local: unsafe { SourceBuf::new(source, nbytes) },
                    completion,
                };
                let done = self.endpoint().put(network::pe(self.pe), put);
                if let Err(error) = done {
                    let source = LocalBuf::source(source, nbytes);
                    network::fail_on_memory(self.call, &error, LocalAccess::Read, source)
                }
            }
            // SAFETY: `to` is mapped, as `resolve` found; the caller promises that `source` is
            // valid.
            RemoteBytes::Cpu(to) => unsafe {
                mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes)
            },
        }
    }

    /// Copies `nbytes` bytes from `source` to `dest`.
    ///
    /// # Safety
    /// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
    #[inline(always)]
    pub(super) unsafe fn get_bytes(
        self,
        dest: *mut u8,
        source: RemoteBytes,
        nbytes: usize,
        completion: Completion,
    ) {
        match source {
            RemoteBytes::Network(source) => {
                let get = Get {
                    remote: source,
                    // SAFETY: the caller's promise about `dest`.
                    local: unsafe { DestBuf::new(dest, nbytes) },
                    completion,
                };
                let done = self.endpoint().get(network::pe(self.pe), get);
                if let Err(error) = done {
                    let dest = LocalBuf { base: dest, nbytes };
                    network::fail_on_memory(self.call, &error, LocalAccess::Write, dest)
                }
            }
            RemoteBytes::Cpu(from) => {
                // SAFETY: `from` is mapped, as `resolve` found; the caller promises that `dest` is
                // valid.
                unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, from, nbytes) };
                polls::count_read();
            }
        }
    }

    /// Performs an atomic operation and returns the old value.
    #[cold]
    #[inline(never)]
    pub fn fetch(
        self,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> u64 {
        self.require_aligned(dest, width);
        let describe = move || {
            let effect = match op {
                AmoOp::Fetch => Effect::Reads,
                AmoOp::CompareSwap => Effect::WritesIfEqual,
                _ => Effect::Writes,
            };
            self.event(AccessKind::AmoFetch, effect, dest, width.nbytes())
        };
        let word = self.resolve(dest, width.nbytes());
        // A test of a lock is counted as one.
        if self.word != WordKind::Lock {
            polls::count(self.call, dest, PolledObject::MemoryOf(self.pe as u32));
        }
        let observed = observers::access(describe, word.is_mapped());
        let old = match word {
            RemoteBytes::Cpu(at) => {
                polls::count_read();
                // SAFETY: the word is mapped, as `resolve` found, and aligned, as was checked.
                unsafe { mem::apply(op, width, at, operand, condition) }
            }
            RemoteBytes::Network(dest) => {
                let request = AmoRequest {
                    dest,
                    width,
                    op,
                    operand,
                    condition,
                };
                self.amo(request, OldValue::Returned)
            }
        };
        if op == AmoOp::CompareSwap && old == condition {
            observed.set_written();
        }
        old
    }

    /// Starts an atomic operation, whose old value is stored at `fetched` by the next quiet.
    ///
    /// # Safety
    /// `fetched` is valid for a write of a word until then.
    #[cold]
    #[inline(never)]
    pub unsafe fn fetch_nbi(
        self,
        fetched: *mut u8,
        dest: usize,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) {
        self.require_aligned(dest, width);
        let describe = move || {
            let effect = if op == AmoOp::Fetch {
                Effect::Reads
            } else {
                Effect::Writes
            };
            let event = self.event(AccessKind::AmoFetchNbi, effect, dest, width.nbytes());
            event.with_buffer(fetched, width.nbytes())
        };
        let word = self.resolve(dest, width.nbytes());
        let _observed = observers::access(describe, word.is_mapped());
        match word {
            RemoteBytes::Cpu(at) => {
                polls::count_read();
                // SAFETY: the word is mapped, as `resolve` found, and aligned, as was checked.
                let old = unsafe { mem::apply(op, width, at, operand, condition) };
                // SAFETY: the caller's promise about `fetched`.
                unsafe { width.write(fetched, old) };
            }
            RemoteBytes::Network(dest) => {
                let request = AmoRequest {
                    dest,
                    width,
                    op,
                    operand,
                    condition,
                };
                // SAFETY: the caller's promise about `fetched`.
                let old = unsafe { DestBuf::new(fetched, width.nbytes()) };
                self.amo(request, OldValue::AtQuiet(old));
            }
        }
    }

    /// Performs an atomic operation that returns nothing.
    #[cold]
    #[inline(never)]
    pub fn update(self, dest: usize, width: AmoWidth, op: AmoOp, operand: u64) {
        self.require_aligned(dest, width);
        let describe = move || self.event(AccessKind::Amo, Effect::Writes, dest, width.nbytes());
        let word = self.resolve(dest, width.nbytes());
        let _observed = observers::access(describe, word.is_mapped());
        self.update_word(word, width, op, operand);
    }

    #[inline(always)]
    fn update_word(self, word: RemoteBytes, width: AmoWidth, op: AmoOp, operand: u64) {
        match word {
            RemoteBytes::Network(dest) => {
                let request = AmoRequest {
                    dest,
                    width,
                    op,
                    operand,
                    condition: 0,
                };
                self.amo(request, OldValue::Ignored);
            }
            RemoteBytes::Cpu(at) => {
                release();
                // SAFETY: the word is mapped, as `resolve` found; each caller has checked that it
                // is aligned.
                unsafe { mem::apply(op, width, at, operand, 0) };
            }
        }
    }

    /// Performs an atomic operation over the network. Returns the old value if `old` says
    /// `OldValue::Returned`; otherwise the result has no meaning.
    #[inline(always)]
    fn amo(self, request: AmoRequest, old: OldValue) -> u64 {
        let done = self.endpoint().amo(network::pe(self.pe), request, old);
        network::or_fail(self.call, done)
    }

    /// Puts `nbytes` bytes to `dest`, then updates the signal word at `sig_addr` by `op`.
    ///
    /// # Safety
    /// As [`put`].
    #[cold]
    #[inline(never)]
    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments of shmem_put_signal"
    )]
    pub unsafe fn put_signal<C: Context>(
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
        // Observers count a put and its signal as one access of `nbytes` bytes.
        let describe = move || {
            let kind = match completion {
                Completion::Now => AccessKind::PutSignal,
                Completion::AtQuiet => AccessKind::PutSignalNbi,
            };
            let event = access.event(kind, Effect::Writes, dest, nbytes);
            event.with_buffer(source, nbytes).with_signal(sig_addr)
        };
        let _observed = observers::access(describe, false);

        let word = signaling.resolve(sig_addr, AmoWidth::Eight.nbytes());
        if nbytes == 0 {
            return signaling.update_word(word, AmoWidth::Eight, op, signal);
        }
        let dest = access.resolve(dest, nbytes);

        if let (RemoteBytes::Network(dest), RemoteBytes::Network(word)) = (dest, word) {
            let put = Put {
                remote: dest,
                // SAFETY: the caller's promise about `source`.
                local: unsafe { SourceBuf::new(source, nbytes) },
                completion,
            };
            let signal = SignalUpdate {
                dest: word,
                op,
                value: signal,
                follows: Follows::Data,
            };
            let done = access.endpoint().put_signal(network::pe(pe), put, signal);
            if let Err(error) = done {
                let source = LocalBuf::source(source, nbytes);
                network::fail_on_memory(call, &error, LocalAccess::Read, source)
            }
            return;
        }

        // SAFETY: the caller's promise about `source`.
        unsafe { access.put_bytes(dest, source, nbytes, completion) };
        if let RemoteBytes::Network(_) = dest {
            // This CPU updates the signal, so the network must have written the data by then.
            let done = access.endpoint().pe_quiet(network::pe(pe));
            network::or_fail(call, done);
        }
        signaling.update_word(word, AmoWidth::Eight, op, signal);
    }
}

impl RemoteBytes {
    #[inline(always)]
    fn is_mapped(self) -> bool {
        matches!(self, RemoteBytes::Cpu(_))
    }
}

/// The cases of [`Access::resolve`] other than an access to a heap over the network. It takes the
/// fields of the access: a reference would force the access into memory on the path to a network.
#[cold]
#[inline(never)]
fn resolve_others(
    call: Call,
    argument: Argument,
    addr: usize,
    nbytes: usize,
    pe: c_int,
    (is_open, is_by_cpu): (bool, bool),
) -> RemoteBytes {
    let argument = argument.name();
    match address::reachable(addr, nbytes, pe).filter(|_| is_by_cpu) {
        Some(here) => RemoteBytes::Cpu(here),
        None if constants::can_read(call, argument, addr, nbytes, pe) => {
            RemoteBytes::Cpu(std::ptr::with_exposed_provenance_mut(addr))
        }
        None => RemoteBytes::Network(checks::require_remote(
            call,
            argument,
            addr,
            nbytes,
            (pe, is_open),
        )),
    }
}

/// Updates the signal word at `at`, which is mapped here, after all earlier stores of this CPU:
/// sets it to `signal`, or with another `op` than `Set` adds `signal`.
///
/// # Safety
/// `at` is a mapped and aligned word.
#[inline(always)]
pub unsafe fn update_mapped(at: *mut u64, op: AmoOp, signal: u64) {
    release();
    if op == AmoOp::Set {
        // SAFETY: the caller promises a mapped and aligned word.
        unsafe { u64::set(at, signal) };
    } else {
        // SAFETY: the caller promises a mapped and aligned word.
        unsafe { u64::fetch_add(at, signal) };
    }
}
