//! Non-blocking operations (OpenSHMEM 1.6, §9.6.2, §9.7.2 and §9.8.2) in a scope, as threads in
//! [`std::thread::scope`].
//!
//! Each operation borrows its buffers until the scope ends, which completes all operations. A
//! program cannot prevent this by leaking an object: a scope is a call, which also completes them
//! when it ends by a panic.
#![allow(unsafe_code)]

use crate::context::{CompletedAtEnd, Context};
use crate::element::{Atomic, AtomicInteger, AtomicNumber, AtomicValue, Element, Plain, PlainData};
use crate::peer::ScopePeer;
use crate::remote::Remote;
use crate::rma::{Destination, Source, require_same_length};
use crate::signal::SignalUpdate;
use crate::symmetric::view::{Sym, SymSlice};
use crate::threads::{Local, Threads};
use rushmem_runtime::{amo, rma, signal};
use std::fmt;
use std::marker::PhantomData;

/// The scope of a call of [`Context::scope`], which makes the peers of non-blocking operations
/// (§9.6.2, §9.7.2, §9.8.2).
pub struct Scope<'scope, 'env: 'scope, C: Threads = Local> {
    pub(crate) context: &'env Context<'env, C>,
    /// Makes both lifetimes invariant, so that neither can be replaced by a shorter one.
    lifetimes: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

impl<'env, C: Threads> Context<'env, C> {
    /// Calls `f`, which issues non-blocking operations, on peers of the scope. Completes them and
    /// all other operations of the context (`shmem_ctx_quiet`, §9.12.2) before this returns or
    /// unwinds by a panic. Until then they borrow their buffers.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(shmem.my_pe());
    /// let mut all = vec![0; shmem.n_pes()];
    /// shmem.scope(|s| {
    ///     for (value, peer) in all.chunks_mut(1).zip(s.peers()) {
    ///         mine.as_slice().on(peer).get(value);
    ///     }
    /// });
    /// assert!(all.into_iter().eq(0..shmem.n_pes()));
    /// ```
    #[doc(alias = "shmem_quiet")]
    #[doc(alias = "shmem_ctx_quiet")]
    pub fn scope<F, R>(&'env self, f: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, C>) -> R,
    {
        let _end = CompletedAtEnd(self.handle());
        f(&Scope {
            context: self,
            lifetimes: PhantomData,
        })
    }
}

impl<'scope, T: Element> Remote<'scope, SymSlice<T>, ScopePeer<'scope>> {
    /// Copies `source`, which must have the same number of elements, to these. The source may be
    /// changed only when the scope has ended (`shmem_put_nbi`, §9.6.2.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(3);
    /// let data = [1, 2, 3];
    /// shmem.scope(|s| inbox.on(s.next()).put(&data));
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), data);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put_nbi")]
    #[doc(alias = "put_nbi")]
    #[inline]
    #[track_caller]
    pub fn put(self, source: impl Source<T> + 'scope)
    where
        T: PlainData,
    {
        let call = call!("put");
        let dest = self.view();
        let elements = source.elements();
        require_same_length(call, dest.len(), elements.len());

        let (pe, context) = self.target();
        let to = dest.as_ptr().cast();
        let from = elements.cast::<Plain<T>>();
        // SAFETY: `dest` and `source` have the same number of elements, as just checked. The source
        // is borrowed until the scope has completed the put.
        unsafe { rma::put_nbi(call, context, to, from, elements.len(), pe) }
    }

    /// Copies these elements to `dest`, which must have the same number. They are in `dest` only
    /// when the scope has ended (`shmem_get_nbi`, §9.6.2.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(shmem.my_pe());
    /// let mut theirs = [0];
    /// shmem.scope(|s| mine.as_slice().on(s.next()).get(&mut theirs));
    /// assert_eq!(theirs, [shmem.next().pe()]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_get_nbi")]
    #[doc(alias = "get_nbi")]
    #[inline]
    #[track_caller]
    pub fn get(self, mut dest: impl Destination<T> + 'scope)
    where
        T: PlainData,
    {
        let call = call!("get");
        let source = self.view();
        let elements = dest.elements();
        require_same_length(call, elements.len(), source.len());

        let (pe, context) = self.target();
        let to = elements.cast::<Plain<T>>();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` have the same number of elements, as just checked. `dest` is
        // borrowed until the scope has completed the get.
        unsafe { rma::get_nbi(call, context, to, from, elements.len(), pe) }
    }

    /// Copies `source` to these elements, then updates a signal on the same PE. The source may be
    /// changed only when the scope has ended (`shmem_put_signal_nbi`, §9.8.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (inbox, arrived) = (shmem.array::<u64>(3), shmem.zeroed::<shmem::Signal>());
    /// let data = [1, 2, 3];
    /// shmem.scope(|s| inbox.on(s.next()).put_with(&data, arrived.set(1)));
    /// shmem.wait(arrived.eq(1));
    /// assert_eq!(inbox.to_vec(), data);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put_signal_nbi")]
    #[doc(alias = "put_signal_nbi")]
    #[inline]
    #[track_caller]
    pub fn put_with(self, source: impl Source<T> + 'scope, update: SignalUpdate<'scope>)
    where
        T: PlainData,
    {
        let call = call!("put_with");
        let dest = self.view();
        let elements = source.elements();
        let nelems = elements.len();
        require_same_length(call, dest.len(), nelems);

        let (pe, context) = self.target();
        let to = dest.as_ptr().cast();
        let from = elements.cast::<Plain<T>>();
        let word = update.word();
        let SignalUpdate { value, op, .. } = update;
        // SAFETY: `dest` and `source` have the same number of elements, as just checked, and `word`
        // is a signal of a symmetric object. `source` is borrowed until the scope has completed the
        // put.
        unsafe { signal::put_signal_nbi(call, context, to, from, nelems, word, value, op, pe) }
    }
}

/// Defines operations with one operand that store the old value: `$name` by the runtime's
/// `$operation`.
macro_rules! fetching {
    ($($(#[$doc:meta])* $name:ident = $operation:ident: $bound:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(self, value: T, old: &'scope mut T)
        where
            T: $bound,
        {
            let element = self.view().as_ptr().cast::<T>();
            let (pe, context) = self.target();
            let call = call!(stringify!($name));
            // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
            // operations access. `old` is borrowed until the scope has completed the operation.
            unsafe { amo::$operation(call, context, old, element, value, pe) }
        }
    )*};
}

impl<'scope, T: AtomicValue> Remote<'scope, Sym<Atomic<T>>, ScopePeer<'scope>> {
    /// Stores the value to `value` by the end of the scope (`shmem_atomic_fetch_nbi`, §9.7.2.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let count = shmem.atomic(17u64);
    /// let mut value = 0;
    /// shmem.scope(|s| count.on(s.next()).load_into(&mut value));
    /// assert_eq!(value, 17);
    /// ```
    #[doc(alias = "shmem_atomic_fetch_nbi")]
    #[inline]
    pub fn load_into(self, value: &'scope mut T) {
        let element = self.view().as_ptr().cast::<T>();
        let (pe, context) = self.target();
        // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
        // operations access. `value` is borrowed until the scope has completed the operation.
        unsafe { amo::fetch_nbi(call!("load_into"), context, value, element, pe) }
    }

    /// Writes `new` if the value is `current`. Stores the old value to `old` by the end of the
    /// scope (`shmem_atomic_compare_swap_nbi`, §9.7.2.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let owner = shmem.atomic(-1i64);
    /// let mut old = 0;
    /// shmem.scope(|s| owner.on(s.next()).compare_exchange_into(-1, 5, &mut old));
    /// assert_eq!((old, owner.on(shmem.next()).load()), (-1, 5));
    /// ```
    #[doc(alias = "shmem_atomic_compare_swap_nbi")]
    #[inline]
    pub fn compare_exchange_into(self, current: T, new: T, old: &'scope mut T)
    where
        T: AtomicInteger,
    {
        let call = call!("compare_exchange_into");
        let element = self.view().as_ptr().cast::<T>();
        let (pe, context) = self.target();
        // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
        // operations access. `old` is borrowed until the scope has completed the operation.
        unsafe { amo::compare_swap_nbi(call, context, old, element, current, new, pe) }
    }

    fetching! {
        /// Writes `value`, and stores the old value to `old` by the end of the scope
        /// (`shmem_atomic_swap_nbi`, §9.7.2.3).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let latest = shmem.atomic(-1i64);
        /// let mut old = 0;
        /// shmem.scope(|s| latest.on(s.next()).swap_into(5, &mut old));
        /// assert_eq!((old, latest.on(shmem.next()).load()), (-1, 5));
        /// ```
        #[doc(alias = "shmem_atomic_swap_nbi")]
        swap_into = swap_nbi: AtomicValue;
        /// Adds `value`, and stores the old value to `old` by the end of the scope
        /// (`shmem_atomic_fetch_add_nbi`, §9.7.2.5, and `shmem_atomic_fetch_inc_nbi`, §9.7.2.4).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let next = shmem.atomic(0usize);
        /// let mut mine = 0;
        /// shmem.scope(|s| next.on(s.pe(0)).fetch_add_into(1, &mut mine));
        /// assert!(mine < shmem.n_pes());
        /// ```
        #[doc(alias = "shmem_atomic_fetch_add_nbi")]
        #[doc(alias = "shmem_atomic_fetch_inc_nbi")]
        #[doc(alias = "shmemx_atomic_fetch_add_nbi")]
        fetch_add_into = fetch_add_nbi: AtomicNumber;
        /// Combines the value with `value` by bitwise and, and stores the old value to `old` by the
        /// end of the scope (`shmem_atomic_fetch_and_nbi`, §9.7.2.6).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flags = shmem.atomic(0b111u32);
        /// let mut old = 0;
        /// shmem.scope(|s| flags.on(s.next()).fetch_and_into(0b101, &mut old));
        /// assert_eq!((old, flags.on(shmem.next()).load()), (0b111, 0b101));
        /// ```
        #[doc(alias = "shmem_atomic_fetch_and_nbi")]
        fetch_and_into = fetch_and_nbi: AtomicInteger;
        /// Combines the value with `value` by bitwise or, and stores the old value to `old` by the
        /// end of the scope (`shmem_atomic_fetch_or_nbi`, §9.7.2.7).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flags = shmem.atomic(0b001u32);
        /// let mut old = 0;
        /// shmem.scope(|s| flags.on(s.next()).fetch_or_into(0b100, &mut old));
        /// assert_eq!((old, flags.on(shmem.next()).load()), (0b001, 0b101));
        /// ```
        #[doc(alias = "shmem_atomic_fetch_or_nbi")]
        fetch_or_into = fetch_or_nbi: AtomicInteger;
        /// Combines the value with `value` by bitwise exclusive or, and stores the old value to
        /// `old` by the end of the scope (`shmem_atomic_fetch_xor_nbi`, §9.7.2.8).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let side = shmem.atomic(0b01u32);
        /// let mut old = 0;
        /// shmem.scope(|s| side.on(s.next()).fetch_xor_into(0b11, &mut old));
        /// assert_eq!((old, side.on(shmem.next()).load()), (0b01, 0b10));
        /// ```
        #[doc(alias = "shmem_atomic_fetch_xor_nbi")]
        fetch_xor_into = fetch_xor_nbi: AtomicInteger;
    }
}

impl<C: Threads> fmt::Debug for Scope<'_, '_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope")
    }
}
