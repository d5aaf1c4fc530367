//! Atomic memory operations (OpenSHMEM 1.6, §9.7). They access [`Atomic`] elements only, and are
//! atomic towards each other within an atomicity domain: contexts of `SHMEM_TEAM_SHARED` and of
//! teams split from it are one domain, all others another one (§3.2.1). They do not order other
//! operations: a [`fence`](Context::fence) or [`quiet`](Context::quiet) does.
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::element::{Atomic, AtomicInteger, AtomicNumber, AtomicValue};
use crate::symmetric::view::AsElement;
use crate::thread_level::ThreadLevel;
use rushmem_runtime::amo;

/// Defines operations with one operand, which return the old value or nothing.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $bound:ident $(-> $result:ident)?;)*) => {$(
        $(#[$doc])*
        #[inline]
        #[track_caller]
        pub fn $name<'a, T: $bound>(
            &self,
            dest: impl AsElement<'a, Atomic<T>>,
            value: T,
            pe: usize,
        ) $(-> $result)? {
            let at = dest.into().as_ptr().cast::<T>();
            let call = call!(stringify!($name));
            let pe = self.existing(call, pe);
            // SAFETY: an aligned element of a symmetric object, which atomic operations alone
            // access.
            unsafe { amo::$name(call, self.handle(), at, value, pe) }
        }
    )*};
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Returns the value of `source` on `pe` (`shmem_atomic_fetch`, §9.7.1.1).
    #[doc(alias = "shmem_atomic_fetch")]
    #[inline]
    #[track_caller]
    pub fn fetch<'a, T: AtomicValue>(&self, source: impl AsElement<'a, Atomic<T>>, pe: usize) -> T {
        let at = source.into().as_ptr().cast::<T>();
        let pe = self.existing(call!("fetch"), pe);
        // SAFETY: an aligned element of a symmetric object, which atomic operations alone access.
        unsafe { amo::fetch(call!("fetch"), self.handle(), at, pe) }
    }

    /// Writes `new` to `dest` on `pe` if its value is `current`. Returns the old value: as `Ok` if
    /// `new` was written, otherwise as an error, as the atomic types of `std`
    /// (`shmem_atomic_compare_swap`, §9.7.1.3).
    ///
    /// # Errors
    /// If the value is not `current`.
    #[doc(alias = "shmem_atomic_compare_swap")]
    #[doc(alias = "compare_swap")]
    #[inline]
    #[track_caller]
    pub fn compare_exchange<'a, T: AtomicInteger>(
        &self,
        dest: impl AsElement<'a, Atomic<T>>,
        current: T,
        new: T,
        pe: usize,
    ) -> Result<T, T> {
        let at = dest.into().as_ptr().cast::<T>();
        let call = call!("compare_exchange");
        let pe = self.existing(call, pe);
        // SAFETY: an aligned element of a symmetric object, which atomic operations alone access.
        let old = unsafe { amo::compare_swap(call, self.handle(), at, current, new, pe) };
        if old == current { Ok(old) } else { Err(old) }
    }

    operations! {
        /// Writes `value` to `dest` on `pe` (`shmem_atomic_set`, §9.7.1.2).
        set: AtomicValue;
        /// Writes `value` to `dest` on `pe`, and returns the old value (`shmem_atomic_swap`,
        /// §9.7.1.4).
        swap: AtomicValue -> T;
        /// Adds `value` to `dest` on `pe`; a sum of integers wraps (`shmem_atomic_add`, §9.7.1.8;
        /// for floating-point numbers `shmemx_atomic_add`).
        ///
        /// ```standalone_crate
        /// let shmem = shmem::init();
        /// let energy = shmem.atomic(0.0f64);
        /// shmem.add(&energy, 0.5, 0);
        /// shmem.barrier_all();
        /// assert_eq!(shmem.fetch(&energy, 0), 0.5 * shmem.n_pes() as f64);
        /// ```
        add: AtomicNumber;
        /// Adds `value` to `dest` on `pe`, and returns the old value (`shmem_atomic_fetch_add`,
        /// §9.7.1.7).
        fetch_add: AtomicNumber -> T;
        /// Combines `dest` on `pe` with `value` by bitwise and (`shmem_atomic_and`, §9.7.1.10).
        and: AtomicInteger;
        /// Combines `dest` on `pe` with `value` by bitwise and; returns the old value
        /// (`shmem_atomic_fetch_and`, §9.7.1.9).
        fetch_and: AtomicInteger -> T;
        /// Combines `dest` on `pe` with `value` by bitwise or (`shmem_atomic_or`, §9.7.1.12).
        or: AtomicInteger;
        /// Combines `dest` on `pe` with `value` by bitwise or; returns the old value
        /// (`shmem_atomic_fetch_or`, §9.7.1.11).
        fetch_or: AtomicInteger -> T;
        /// Combines `dest` on `pe` with `value` by bitwise exclusive or (`shmem_atomic_xor`,
        /// §9.7.1.14).
        xor: AtomicInteger;
        /// Combines `dest` on `pe` with `value` by bitwise exclusive or; returns the old value
        /// (`shmem_atomic_fetch_xor`, §9.7.1.13).
        fetch_xor: AtomicInteger -> T;
    }

    /// Adds 1 to `dest` on `pe` (`shmem_atomic_inc`, §9.7.1.6).
    #[doc(alias = "shmem_atomic_inc")]
    #[inline]
    #[track_caller]
    pub fn inc<'a, T: AtomicInteger>(&self, dest: impl AsElement<'a, Atomic<T>>, pe: usize) {
        self.add(dest, T::ONE, pe);
    }

    /// Adds 1 to `dest` on `pe`, and returns the old value (`shmem_atomic_fetch_inc`, §9.7.1.5).
    #[doc(alias = "shmem_atomic_fetch_inc")]
    #[inline]
    #[track_caller]
    pub fn fetch_inc<'a, T: AtomicInteger>(
        &self,
        dest: impl AsElement<'a, Atomic<T>>,
        pe: usize,
    ) -> T {
        self.fetch_add(dest, T::ONE, pe)
    }
}
