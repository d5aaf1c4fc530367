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
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let count = shmem.atomic(17u64);
    /// assert_eq!(count.on(shmem.next()).load(), 17);
    /// ```
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
    /// ```
    /// # let shmem = shmem::init();
    /// let owner = shmem.atomic(u64::MAX);     // nobody
    /// let me = shmem.my_pe() as u64;
    /// let won = owner.on(shmem.pe(0)).compare_exchange(u64::MAX, me).is_ok();
    /// shmem.barrier_all();
    /// assert_eq!(won, owner.on(shmem.pe(0)).load() == me);
    /// ```
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

    /// Writes what `f` returns for the value, unless it returns `None`. Returns the old value: as
    /// `Ok` if a value was written, otherwise as an error, as the atomic types of `std`.
    ///
    /// It is a [`load`](Self::load), and [`compare_exchange`](Self::compare_exchange) until no
    /// other PE has changed the value meanwhile, so at least two round trips; `f` is called before
    /// each.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let free = shmem.atomic(3u32);
    /// let taken = free.on(shmem.next()).fetch_update(|n| n.checked_sub(2));
    /// let again = free.on(shmem.next()).fetch_update(|n| n.checked_sub(2));
    /// assert_eq!((taken, again), (Ok(3), Err(1)));
    /// ```
    ///
    /// # Errors
    /// If `f` returns `None`.
    #[doc(alias = "update")]
    #[doc(alias = "try_update")]
    #[inline]
    pub fn fetch_update(self, mut f: impl FnMut(T) -> Option<T>) -> Result<T, T>
    where
        T: AtomicInteger,
    {
        let mut current = self.load();
        while let Some(new) = f(current) {
            match self.compare_exchange(current, new) {
                Ok(old) => return Ok(old),
                Err(changed) => current = changed,
            }
        }
        Err(current)
    }

    /// Writes `value` if it is greater than the element's, and returns the old value. It is a
    /// [`fetch_update`](Self::fetch_update), or only a load if the value is not greater.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let most = shmem.atomic(0usize);
    /// most.on(shmem.pe(0)).fetch_max(shmem.my_pe());
    /// shmem.barrier_all();
    /// assert_eq!(most.on(shmem.pe(0)).load(), shmem.n_pes() - 1);
    /// ```
    #[inline]
    pub fn fetch_max(self, value: T) -> T
    where
        T: AtomicInteger,
    {
        let larger = self.fetch_update(|old| (value > old).then_some(value));
        larger.unwrap_or_else(|old| old)
    }

    /// Writes `value` if it is less than the element's, and returns the old value. It is a
    /// [`fetch_update`](Self::fetch_update), or only a load if the value is not less.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let first = shmem.atomic(usize::MAX);
    /// first.on(shmem.pe(0)).fetch_min(shmem.my_pe() + 5);
    /// shmem.barrier_all();
    /// assert_eq!(first.on(shmem.pe(0)).load(), 5);
    /// ```
    #[inline]
    pub fn fetch_min(self, value: T) -> T
    where
        T: AtomicInteger,
    {
        let lesser = self.fetch_update(|old| (value < old).then_some(value));
        lesser.unwrap_or_else(|old| old)
    }

    /// Subtracts `value`, and returns the old value; a difference of integers wraps
    /// (`shmem_atomic_fetch_add`, §9.7.1.7, of the negative).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let left = shmem.atomic(100u64);
    /// let before = left.on(shmem.next()).fetch_sub(30);
    /// assert_eq!((before, left.on(shmem.next()).load()), (100, 70));
    /// ```
    #[doc(alias = "shmem_atomic_fetch_add")]
    #[inline]
    pub fn fetch_sub(self, value: T) -> T
    where
        T: AtomicNumber,
    {
        self.fetch_add(value.negative())
    }

    operations! {
        /// Writes `value` (`shmem_atomic_set`, §9.7.1.2). It is there after a
        /// [`quiet`](crate::Context::quiet).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let state = shmem.atomic(0u32);
        /// state.on(shmem.next()).store(2);
        /// shmem.barrier_all();
        /// assert_eq!(state.load(), 2);
        /// ```
        #[doc(alias = "shmem_atomic_set")]
        store = set: AtomicValue;
        /// Writes `value`, and returns the old value (`shmem_atomic_swap`, §9.7.1.4).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let latest = shmem.atomic(-1i64);
        /// let before = latest.on(shmem.next()).swap(5);
        /// assert_eq!((before, latest.on(shmem.next()).load()), (-1, 5));
        /// ```
        #[doc(alias = "shmem_atomic_swap")]
        swap = swap: AtomicValue -> T;
        /// Adds `value`; a sum of integers wraps (`shmem_atomic_add`, §9.7.1.8, and
        /// `shmem_atomic_inc`, §9.7.1.6; for floating-point numbers `shmemx_atomic_add`). It is
        /// complete after a [`quiet`](crate::Context::quiet).
        ///
        /// ```
        /// # let shmem = shmem::init();
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
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let next = shmem.atomic(0usize);
        /// let mine = next.on(shmem.pe(0)).fetch_add(1);       // another number on each PE
        /// assert!(mine < shmem.n_pes());
        /// ```
        #[doc(alias = "shmem_atomic_fetch_add")]
        #[doc(alias = "shmem_atomic_fetch_inc")]
        #[doc(alias = "shmemx_atomic_fetch_add")]
        #[doc(alias = "fetch_inc")]
        fetch_add = fetch_add: AtomicNumber -> T;
        /// Combines the value with `value` by bitwise and (`shmem_atomic_and`, §9.7.1.10). It is
        /// complete after a [`quiet`](crate::Context::quiet).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flags = shmem.atomic(0b111u32);
        /// flags.on(shmem.next()).and(0b101);
        /// shmem.barrier_all();
        /// assert_eq!(flags.load(), 0b101);
        /// ```
        #[doc(alias = "shmem_atomic_and")]
        and = and: AtomicInteger;
        /// Combines the value with `value` by bitwise and; returns the old value
        /// (`shmem_atomic_fetch_and`, §9.7.1.9).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flags = shmem.atomic(0b111u32);
        /// let before = flags.on(shmem.next()).fetch_and(0b101);
        /// assert_eq!((before, flags.on(shmem.next()).load()), (0b111, 0b101));
        /// ```
        #[doc(alias = "shmem_atomic_fetch_and")]
        fetch_and = fetch_and: AtomicInteger -> T;
        /// Combines the value with `value` by bitwise or (`shmem_atomic_or`, §9.7.1.12). It is
        /// complete after a [`quiet`](crate::Context::quiet).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let present = shmem.atomic(0u64);
        /// present.on(shmem.pe(0)).or(1 << shmem.my_pe());
        /// shmem.barrier_all();
        /// assert_eq!(present.on(shmem.pe(0)).load(), (1 << shmem.n_pes()) - 1);
        /// ```
        #[doc(alias = "shmem_atomic_or")]
        or = or: AtomicInteger;
        /// Combines the value with `value` by bitwise or; returns the old value
        /// (`shmem_atomic_fetch_or`, §9.7.1.11).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flags = shmem.atomic(0b001u32);
        /// let before = flags.on(shmem.next()).fetch_or(0b100);
        /// assert_eq!((before, flags.on(shmem.next()).load()), (0b001, 0b101));
        /// ```
        #[doc(alias = "shmem_atomic_fetch_or")]
        fetch_or = fetch_or: AtomicInteger -> T;
        /// Combines the value with `value` by bitwise exclusive or (`shmem_atomic_xor`, §9.7.1.14).
        /// It is complete after a [`quiet`](crate::Context::quiet).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let side = shmem.atomic(0b01u32);
        /// side.on(shmem.next()).xor(0b11);
        /// shmem.barrier_all();
        /// assert_eq!(side.load(), 0b10);
        /// ```
        #[doc(alias = "shmem_atomic_xor")]
        xor = xor: AtomicInteger;
        /// Combines the value with `value` by bitwise exclusive or; returns the old value
        /// (`shmem_atomic_fetch_xor`, §9.7.1.13).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let side = shmem.atomic(0b01u32);
        /// let before = side.on(shmem.next()).fetch_xor(0b11);
        /// assert_eq!((before, side.on(shmem.next()).load()), (0b01, 0b10));
        /// ```
        #[doc(alias = "shmem_atomic_fetch_xor")]
        fetch_xor = fetch_xor: AtomicInteger -> T;
    }
}
