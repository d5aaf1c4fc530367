//! Atomic operations, and puts with a signal, off the fast path: the network carries them out, or
//! this CPU does while accesses are observed or counted.
#![allow(unsafe_code)]

use crate::access::contexts::Context;
use crate::access::{Access, RemoteBytes};
use crate::net::network;
use crate::net::polls;
use crate::observers::{AccessKind, Argument, Effect, ObservedAccess, WordKind};
use crate::status::polled_calls;
use core::ffi::c_int;
use rushmem_explain::status::PolledObject;
use rushmem_pe::call::Call;
use rushmem_pe::memory::accessible::LocalAccess;
use rushmem_pe::memory::checks;
use rushmem_pe::memory::visibility::release;
use rushmem_transport::mem::{AddAmo, Amo};
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, DestBuf, LocalBuf, OldValue, Put, SignalOrder,
    SourceBuf, mem,
};

impl Access {
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

    #[inline(always)]
    fn into_atomic(self, word: WordKind) -> Access {
        Access {
            word,
            is_atomic: true,
            ..self
        }
    }

    #[inline(always)]
    fn require_aligned(self, addr: usize, width: AmoWidth) {
        checks::require_aligned(self.call, self.argument.name(), addr, width.nbytes());
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
        let dest = self.in_heap(dest, width.nbytes());
        let word = self.resolve(dest, width.nbytes());

        // A test of a lock counts as a poll of the lock, not also of its word.
        if self.word != WordKind::Lock {
            polled_calls::count(self.call, dest, PolledObject::MemoryOf(self.pe as u32));
        }
        let mut observed = ObservedAccess::none();
        observed.begin(
            move || {
                let effect = match op {
                    AmoOp::Fetch => Effect::Reads,
                    AmoOp::CompareSwap => Effect::WritesIfEqual,
                    _ => Effect::Writes,
                };
                self.event(AccessKind::AmoFetch, effect, dest, width.nbytes())
            },
            word.is_mapped(),
        );

        let old = match word {
            RemoteBytes::Cpu(mapped) => {
                polls::count_read();
                // SAFETY: the word is mapped, as `resolve` found, and aligned, as was checked.
                unsafe { mem::apply(op, width, mapped, operand, condition) }
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
        let dest = self.in_heap(dest, width.nbytes());
        let word = self.resolve(dest, width.nbytes());

        let mut observed = ObservedAccess::none();
        observed.begin(
            move || {
                let effect = if op == AmoOp::Fetch {
                    Effect::Reads
                } else {
                    Effect::Writes
                };
                let event = self.event(AccessKind::AmoFetchNbi, effect, dest, width.nbytes());
                event.with_buffer(fetched, width.nbytes())
            },
            word.is_mapped(),
        );

        match word {
            RemoteBytes::Cpu(mapped) => {
                polls::count_read();
                // SAFETY: the word is mapped, as `resolve` found, and aligned, as was checked.
                let old = unsafe { mem::apply(op, width, mapped, operand, condition) };
                // SAFETY: the caller promises that `fetched` is valid for a write of a word.
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
                // SAFETY: the caller promises that `fetched` is valid for a write of a word until
                // the next quiet.
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
        let dest = self.in_heap(dest, width.nbytes());
        let word = self.resolve(dest, width.nbytes());

        let mut observed = ObservedAccess::none();
        observed.begin(
            move || self.event(AccessKind::Amo, Effect::Writes, dest, width.nbytes()),
            word.is_mapped(),
        );

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
            RemoteBytes::Cpu(mapped) => {
                // If the word is a signal, its update follows the data that this CPU has stored.
                release();
                // SAFETY: the word is mapped, as `resolve` found; each caller has checked that it
                // is aligned.
                unsafe { mem::apply(op, width, mapped, operand, 0) };
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

    /// Puts `nbytes` bytes to `dest`, then updates a signal word.
    ///
    /// # Safety
    /// As [`put`](super::put).
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
        update: SignalUpdate,
        pe: c_int,
        completion: Completion,
    ) {
        let SignalUpdate {
            sig_addr,
            signal,
            op,
        } = update;
        let access = Access::of_bytes(call, ctx, Argument::Dest, pe);
        let signaling = Access::of_signal(call, ctx, pe);
        signaling.require_aligned(sig_addr, AmoWidth::Eight);
        let sig_addr = signaling.in_heap(sig_addr, AmoWidth::Eight.nbytes());
        let dest = access.in_heap(dest, nbytes);

        // Observers count a put and its signal as one access of `nbytes` bytes.
        let mut observed = ObservedAccess::none();
        observed.begin(
            move || {
                let kind = match completion {
                    Completion::Now => AccessKind::PutSignal,
                    Completion::AtQuiet => AccessKind::PutSignalNbi,
                };
                let event = access.event(kind, Effect::Writes, dest, nbytes);
                let counts = op == AmoOp::Add && signal == 1;
                event
                    .with_buffer(source, nbytes)
                    .with_signal(sig_addr, counts)
            },
            // Not known yet: the memory is resolved below.
            false,
        );

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
            let signal = AmoRequest::of_word(word, op, signal);
            let done =
                access
                    .endpoint()
                    .put_signal(network::pe(pe), put, signal, SignalOrder::AfterData);
            if let Err(error) = done {
                let source = LocalBuf::source(source, nbytes);
                network::fail_on_memory(call, &error, LocalAccess::Read, source)
            }
            return;
        }

        // This CPU makes the put, or the update, or both.
        // SAFETY: the caller's promise about `source`.
        unsafe { access.issue_put(dest, source, nbytes, completion) };
        if let RemoteBytes::Network(_) = dest {
            // This CPU updates the signal, so the network must have written the data by then.
            let done = access.endpoint().pe_quiet(network::pe(pe));
            network::or_fail(call, done);
        }
        signaling.update_word(word, AmoWidth::Eight, op, signal);
    }
}

/// The update of a signal word at a PE.
#[derive(Clone, Copy)]
pub struct SignalUpdate {
    /// The symmetric address of the word.
    pub sig_addr: usize,
    /// The value by which the word is updated.
    pub signal: u64,
    /// [`AmoOp::Set`] or [`AmoOp::Add`].
    pub op: AmoOp,
}

/// Updates a signal word that is mapped here, after all earlier stores of this CPU: sets it to
/// `signal`, or with another `op` than `Set` adds `signal`.
///
/// # Safety
/// `word` points to a mapped and aligned word.
#[inline(always)]
pub unsafe fn update_mapped(word: *mut u64, op: AmoOp, signal: u64) {
    release();
    if op == AmoOp::Set {
        // SAFETY: by contract, `word` points to a mapped and aligned word.
        unsafe { u64::set(word, signal) };
    } else {
        // SAFETY: by contract, `word` points to a mapped and aligned word.
        unsafe { u64::fetch_add(word, signal) };
    }
}
