//! Non-blocking operations (OpenSHMEM 1.6, §9.6.2, §9.7.2 and §9.8.2) in a scope, as threads in
//! [`std::thread::scope`].
//!
//! Each operation borrows its buffers until the scope ends, which completes all operations. A
//! program cannot prevent this by leaking an object: a scope is a call, which also completes them
//! when it ends by a panic.
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::element::{Atomic, AtomicInteger, AtomicNumber, AtomicValue, Plain, Signal};
use crate::rma::{Destination, Source, require_same_length};
use crate::signal::SignalOp;
use crate::symmetric::view::{AsElement, AsElements};
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::{amo, rma, signal};
use std::fmt;
use std::marker::PhantomData;

/// The scope of a call of [`Context::scope`], by whose methods non-blocking operations are issued:
/// their names end in `_nbi` (§9.6.2, §9.7.2, §9.8.2).
pub struct Scope<'scope, 'env: 'scope, K: ContextKind, L: ThreadLevel> {
    context: &'env Context<'env, K, L>,
    /// Makes both lifetimes invariant, so that neither can be replaced by a shorter one.
    lifetimes: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

/// Completes the operations of a scope when it is dropped.
struct CompletesScope<'c, K: ContextKind, L: ThreadLevel>(&'c Context<'c, K, L>);

impl<K: ContextKind, L: ThreadLevel> Drop for CompletesScope<'_, K, L> {
    fn drop(&mut self) {
        self.0.quiet();
    }
}

impl<'env, K: ContextKind, L: ThreadLevel> Context<'env, K, L> {
    /// Calls `f`, which issues non-blocking operations. Completes them and all other operations of
    /// the context (`shmem_ctx_quiet`, §9.12.2) before this returns or unwinds by a panic. Until
    /// then they borrow their buffers.
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// # let counts = shmem.array::<u64>(100);
    /// let mut everyones = vec![0; 100 * shmem.n_pes()];
    /// shmem.scope(|s| {
    ///     for (counts_of, pe) in everyones.chunks_mut(100).zip(0..) {
    ///         s.get_nbi(counts_of, &counts, pe);
    ///     }
    /// });
    /// ```
    #[doc(alias = "shmem_ctx_quiet")]
    pub fn scope<F, R>(&'env self, f: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, K, L>) -> R,
    {
        let _end = CompletesScope(self);
        f(&Scope {
            context: self,
            lifetimes: PhantomData,
        })
    }
}

/// Defines operations with one operand that fetch the old value.
macro_rules! fetching {
    ($($(#[$doc:meta])* $name:ident: $bound:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        #[track_caller]
        pub fn $name<T: $bound>(
            &'scope self,
            fetched: &'scope mut T,
            dest: impl AsElement<'scope, Atomic<T>>,
            value: T,
            pe: usize,
        ) {
            let at = dest.into().as_ptr().cast::<T>();
            let (call, context) = (call!(stringify!($name)), self.context.handle());
            let pe = self.context.existing(call, pe);
            // SAFETY: an aligned element of a symmetric object, which only atomic operations
            // access; the old value is stored to a variable that is borrowed until the scope has
            // completed the operation.
            unsafe { amo::$name(call, context, fetched, at, value, pe) }
        }
    )*};
}

impl<'scope, 'env, K: ContextKind, L: ThreadLevel> Scope<'scope, 'env, K, L> {
    /// Works as [`Context::put`], but the source may be changed only when the scope has ended
    /// (`shmem_put_nbi`, §9.6.2.1).
    #[doc(alias = "shmem_put_nbi")]
    #[inline]
    #[track_caller]
    pub fn put_nbi<T: Pod>(
        &'scope self,
        dest: impl AsElements<'scope, T>,
        source: impl Source<T> + 'scope,
        pe: usize,
    ) {
        let (dest, (from, nelems)) = (dest.into(), source.parts());
        require_same_length(call!("put_nbi"), dest.len(), nelems);
        let (from, to) = (from.cast::<Plain<T>>(), dest.as_ptr().cast());
        let (call, context) = (call!("put_nbi"), self.context.handle());
        let pe = self.context.existing(call, pe);
        // SAFETY: equal numbers of elements; the source is borrowed until the scope has completed
        // the put.
        unsafe { rma::put_nbi(call, context, to, from, nelems, pe) }
    }

    /// Works as [`Context::get`], but the data are in `dest` only when the scope has ended
    /// (`shmem_get_nbi`, §9.6.2.2).
    #[doc(alias = "shmem_get_nbi")]
    #[inline]
    #[track_caller]
    pub fn get_nbi<T: Pod>(
        &'scope self,
        mut dest: impl Destination<T> + 'scope,
        source: impl AsElements<'scope, T>,
        pe: usize,
    ) {
        let (source, (to, nelems)) = (source.into(), dest.parts());
        require_same_length(call!("get_nbi"), nelems, source.len());
        let (from, to) = (source.as_ptr().cast::<Plain<T>>(), to.cast());
        let (call, context) = (call!("get_nbi"), self.context.handle());
        let pe = self.context.existing(call, pe);
        // SAFETY: equal numbers of elements; the destination is borrowed until the scope has
        // completed the get.
        unsafe { rma::get_nbi(call, context, to, from, nelems, pe) }
    }

    /// Works as [`Context::put_signal`], but the source may be changed only when the scope has
    /// ended (`shmem_put_signal_nbi`, §9.8.2).
    #[doc(alias = "shmem_put_signal_nbi")]
    #[inline]
    #[track_caller]
    pub fn put_signal_nbi<T: Pod>(
        &'scope self,
        dest: impl AsElements<'scope, T>,
        source: impl Source<T> + 'scope,
        signal: impl AsElement<'scope, Signal>,
        update: SignalOp,
        pe: usize,
    ) {
        let (dest, (from, nelems)) = (dest.into(), source.parts());
        require_same_length(call!("put_signal_nbi"), dest.len(), nelems);
        let (from, to) = (from.cast::<Plain<T>>(), dest.as_ptr().cast());
        let (at, (value, op)) = (signal.into().as_ptr().cast(), update.parts());
        let (call, context) = (call!("put_signal_nbi"), self.context.handle());
        let pe = self.context.existing(call, pe);
        // SAFETY: equal numbers of elements, and a signal of a symmetric object; the source is
        // borrowed until the scope has completed the put.
        unsafe { signal::put_signal_nbi(call, context, to, from, nelems, at, value, op, pe) }
    }

    /// Works as [`Context::fetch`], but stores the value to `fetched` by the end of the scope
    /// (`shmem_atomic_fetch_nbi`, §9.7.2.1).
    #[doc(alias = "shmem_atomic_fetch_nbi")]
    #[inline]
    #[track_caller]
    pub fn fetch_nbi<T: AtomicValue>(
        &'scope self,
        fetched: &'scope mut T,
        source: impl AsElement<'scope, Atomic<T>>,
        pe: usize,
    ) {
        let at = source.into().as_ptr().cast::<T>();
        let (call, context) = (call!("fetch_nbi"), self.context.handle());
        let pe = self.context.existing(call, pe);
        // SAFETY: an aligned element of a symmetric object, which only atomic operations access;
        // the value is stored to a variable that is borrowed until the scope has completed the
        // operation.
        unsafe { amo::fetch_nbi(call, context, fetched, at, pe) }
    }

    /// Works as [`Context::compare_exchange`], but stores the old value to `fetched` by the end of the
    /// scope (`shmem_atomic_compare_swap_nbi`, §9.7.2.2).
    #[doc(alias = "shmem_atomic_compare_swap_nbi")]
    #[inline]
    #[track_caller]
    pub fn compare_swap_nbi<T: AtomicInteger>(
        &'scope self,
        fetched: &'scope mut T,
        dest: impl AsElement<'scope, Atomic<T>>,
        condition: T,
        value: T,
        pe: usize,
    ) {
        let at = dest.into().as_ptr().cast::<T>();
        let (call, context) = (call!("compare_swap_nbi"), self.context.handle());
        let pe = self.context.existing(call, pe);
        // SAFETY: an aligned element of a symmetric object, which only atomic operations access;
        // the old value is stored to a variable that is borrowed until the scope has completed the
        // operation.
        unsafe { amo::compare_swap_nbi(call, context, fetched, at, condition, value, pe) }
    }

    fetching! {
        /// Works as [`Context::swap`], but stores the old value to `fetched` by the end of the
        /// scope (`shmem_atomic_swap_nbi`, §9.7.2.3).
        swap_nbi: AtomicValue;
        /// Works as [`Context::fetch_add`], but stores the old value to `fetched` by the end of the
        /// scope (`shmem_atomic_fetch_add_nbi`, §9.7.2.5).
        fetch_add_nbi: AtomicNumber;
        /// Works as [`Context::fetch_and`], but stores the old value to `fetched` by the end of the
        /// scope (`shmem_atomic_fetch_and_nbi`, §9.7.2.6).
        fetch_and_nbi: AtomicInteger;
        /// Works as [`Context::fetch_or`], but stores the old value to `fetched` by the end of the
        /// scope (`shmem_atomic_fetch_or_nbi`, §9.7.2.7).
        fetch_or_nbi: AtomicInteger;
        /// Works as [`Context::fetch_xor`], but stores the old value to `fetched` by the end of the
        /// scope (`shmem_atomic_fetch_xor_nbi`, §9.7.2.8).
        fetch_xor_nbi: AtomicInteger;
    }

    /// Works as [`Context::fetch_inc`], but stores the old value to `fetched` by the end of the
    /// scope (`shmem_atomic_fetch_inc_nbi`, §9.7.2.4).
    #[doc(alias = "shmem_atomic_fetch_inc_nbi")]
    #[inline]
    #[track_caller]
    pub fn fetch_inc_nbi<T: AtomicInteger>(
        &'scope self,
        fetched: &'scope mut T,
        dest: impl AsElement<'scope, Atomic<T>>,
        pe: usize,
    ) {
        self.fetch_add_nbi(fetched, dest, T::ONE, pe);
    }
}

impl<K: ContextKind, L: ThreadLevel> fmt::Debug for Scope<'_, '_, K, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope")
    }
}
