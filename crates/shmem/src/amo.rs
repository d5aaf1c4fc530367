//! Atomic memory operations (OpenSHMEM 1.6, §9.7). They access [`Atomic`] elements only, and are
//! atomic towards each other within an atomicity domain: contexts of `SHMEM_TEAM_SHARED` and of
//! teams split from it are one domain, all others another one (§3.2.1). They do not order other
//! operations: a [`fence`](crate::Context::fence) or [`quiet`](crate::Context::quiet) does.
#![allow(unsafe_code)]

use crate::element::{Atomic, AtomicInteger, AtomicNumber, AtomicValue};
use crate::peer::Peer;
use crate::remote::Remote;
use crate::symmetric::view::Sym;
use crate::threads::Threads;
use rushmem_runtime::amo;

/// Defines operations with one operand, which return the old value or nothing: `$name` by the
/// runtime's `$operation`.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $operation:ident: $bound:ident $(-> $result:ident)?;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(self, value: T) $(-> $result)?
        where
            T: $bound,
        {
            let element = self.view().as_ptr().cast::<T>();
            let (pe, context) = self.target();
            // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
            // operations access.
            unsafe { amo::$operation(call!(stringify!($name)), context, element, value, pe) }
        }
    )*};
}

impl<T: AtomicValue, C: Threads> Remote<'_, Sym<Atomic<T>>, Peer<'_, C>> {
    /// Returns the value (`shmem_atomic_fetch`, §9.7.1.1).
    #[doc(alias = "shmem_atomic_fetch")]
    #[doc(alias = "fetch")]
    #[inline]
    pub fn load(self) -> T {
        let element = self.view().as_ptr().cast::<T>();
        let (pe, context) = self.target();
        // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
        // operations access.
        unsafe { amo::fetch(call!("load"), context, element, pe) }
    }

    /// Writes `new` if the value is `current`. Returns the old value: as `Ok` if `new` was written,
    /// otherwise as an error, as the atomic types of `std` (`shmem_atomic_compare_swap`, §9.7.1.3).
    ///
    /// # Errors
    /// If the value is not `current`.
    #[doc(alias = "shmem_atomic_compare_swap")]
    #[doc(alias = "compare_swap")]
    #[inline]
    pub fn compare_exchange(self, current: T, new: T) -> Result<T, T>
    where
        T: AtomicInteger,
    {
        let call = call!("compare_exchange");
        let element = self.view().as_ptr().cast::<T>();
        let (pe, context) = self.target();
        // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
        // operations access.
        let old = unsafe { amo::compare_swap(call, context, element, current, new, pe) };
        if old == current { Ok(old) } else { Err(old) }
    }

    operations! {
        /// Writes `value` (`shmem_atomic_set`, §9.7.1.2). It is there after a
        /// [`quiet`](crate::Context::quiet).
        #[doc(alias = "shmem_atomic_set")]
        store = set: AtomicValue;
        /// Writes `value`, and returns the old value (`shmem_atomic_swap`, §9.7.1.4).
        #[doc(alias = "shmem_atomic_swap")]
        swap = swap: AtomicValue -> T;
        /// Adds `value`; a sum of integers wraps (`shmem_atomic_add`, §9.7.1.8, and
        /// `shmem_atomic_inc`, §9.7.1.6; for floating-point numbers `shmemx_atomic_add`). It is
        /// complete after a [`quiet`](crate::Context::quiet).
        ///
        /// ```
        /// let shmem = shmem::init();
        /// let energy = shmem.atomic(0.0f64);
        /// energy.on(shmem.pe(0)).add(0.5);
        /// shmem.barrier_all();
        /// assert_eq!(energy.on(shmem.pe(0)).load(), 0.5 * shmem.n_pes() as f64);
        /// ```
        #[doc(alias = "shmem_atomic_add")]
        #[doc(alias = "shmem_atomic_inc")]
        #[doc(alias = "shmemx_atomic_add")]
        #[doc(alias = "inc")]
        add = add: AtomicNumber;
        /// Adds `value`, and returns the old value (`shmem_atomic_fetch_add`, §9.7.1.7, and
        /// `shmem_atomic_fetch_inc`, §9.7.1.5).
        #[doc(alias = "shmem_atomic_fetch_add")]
        #[doc(alias = "shmem_atomic_fetch_inc")]
        #[doc(alias = "shmemx_atomic_fetch_add")]
        #[doc(alias = "fetch_inc")]
        fetch_add = fetch_add: AtomicNumber -> T;
        /// Combines the value with `value` by bitwise and (`shmem_atomic_and`, §9.7.1.10). It is
        /// complete after a [`quiet`](crate::Context::quiet).
        #[doc(alias = "shmem_atomic_and")]
        and = and: AtomicInteger;
        /// Combines the value with `value` by bitwise and; returns the old value
        /// (`shmem_atomic_fetch_and`, §9.7.1.9).
        #[doc(alias = "shmem_atomic_fetch_and")]
        fetch_and = fetch_and: AtomicInteger -> T;
        /// Combines the value with `value` by bitwise or (`shmem_atomic_or`, §9.7.1.12). It is
        /// complete after a [`quiet`](crate::Context::quiet).
        #[doc(alias = "shmem_atomic_or")]
        or = or: AtomicInteger;
        /// Combines the value with `value` by bitwise or; returns the old value
        /// (`shmem_atomic_fetch_or`, §9.7.1.11).
        #[doc(alias = "shmem_atomic_fetch_or")]
        fetch_or = fetch_or: AtomicInteger -> T;
        /// Combines the value with `value` by bitwise exclusive or (`shmem_atomic_xor`, §9.7.1.14).
        /// It is complete after a [`quiet`](crate::Context::quiet).
        #[doc(alias = "shmem_atomic_xor")]
        xor = xor: AtomicInteger;
        /// Combines the value with `value` by bitwise exclusive or; returns the old value
        /// (`shmem_atomic_fetch_xor`, §9.7.1.13).
        #[doc(alias = "shmem_atomic_fetch_xor")]
        fetch_xor = fetch_xor: AtomicInteger -> T;
    }
}
