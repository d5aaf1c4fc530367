//! Waiting for and testing elements of this PE that other PEs change (OpenSHMEM 1.6, §9.11).
#![allow(unsafe_code)]

use crate::element::{Atomic, Element, Plain, Signal};
use crate::job::Shmem;
use crate::symmetric::view::Sym;
use crate::threads::Threads;
use core::ffi::c_int;
use rushmem_runtime::constants::{
    SHMEM_CMP_EQ, SHMEM_CMP_GE, SHMEM_CMP_GT, SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_NE,
};
pub use rushmem_runtime::limits::TimedOut;
use rushmem_runtime::wait::{self, WaitWord, WordWait};
use rushmem_runtime::{Call, limits, local, signal};
use std::fmt;
use std::task::Waker;
use std::time::Duration;

/// The comparison of an element with a value (the constants `SHMEM_CMP_`, §9.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cmp {
    /// Equal.
    #[doc(alias = "SHMEM_CMP_EQ")]
    Eq,
    /// Not equal.
    #[doc(alias = "SHMEM_CMP_NE")]
    Ne,
    /// Greater.
    #[doc(alias = "SHMEM_CMP_GT")]
    Gt,
    /// Greater or equal.
    #[doc(alias = "SHMEM_CMP_GE")]
    Ge,
    /// Less.
    #[doc(alias = "SHMEM_CMP_LT")]
    Lt,
    /// Less or equal.
    #[doc(alias = "SHMEM_CMP_LE")]
    Le,
}

impl Cmp {
    #[inline(always)]
    pub(crate) fn constant(self) -> c_int {
        match self {
            Cmp::Eq => SHMEM_CMP_EQ,
            Cmp::Ne => SHMEM_CMP_NE,
            Cmp::Gt => SHMEM_CMP_GT,
            Cmp::Ge => SHMEM_CMP_GE,
            Cmp::Lt => SHMEM_CMP_LT,
            Cmp::Le => SHMEM_CMP_LE,
        }
    }

    fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Cmp::Eq => left == right,
            Cmp::Ne => left != right,
            Cmp::Gt => left > right,
            Cmp::Ge => left >= right,
            Cmp::Lt => left < right,
            Cmp::Le => left <= right,
        }
    }
}

mod sealed {
    use super::{Call, Cmp};

    /// How the library waits for an element.
    #[diagnostic::on_unimplemented(
        message = "a PE cannot wait for elements of type `{Self}`",
        label = "not an integer, an `Atomic` one or a `Signal`",
        note = "put the data first and then a `Signal`, `x.on(peer).put_with(data, signal.set(1))`, and wait for the signal"
    )]
    pub trait Waits: Sized {
        /// The value with which the element is compared.
        type Value: super::WaitWord + bytemuck::Pod + PartialOrd + Send + std::fmt::Debug;

        /// Returns the value of the element if it satisfies the comparison now.
        ///
        /// # Safety
        /// `element` is an aligned element of a symmetric object.
        unsafe fn test(
            call: Call,
            element: *mut Self,
            cmp: Cmp,
            value: Self::Value,
        ) -> Option<Self::Value>;
    }
}
pub(crate) use sealed::Waits;

/// An element that a PE can wait for (§9.11): an integer, an [`Atomic`] one, or a [`Signal`].
#[diagnostic::on_unimplemented(
    message = "a PE cannot wait for elements of type `{Self}`",
    label = "not an integer, an `Atomic` one or a `Signal`",
    note = "put the data first and then a `Signal`, `x.on(peer).put_with(data, signal.set(1))`, and wait for the signal"
)]
pub trait Awaited: Element + Waits {}

/// Defines how the library waits for elements of type `$element` that are words `$word`.
macro_rules! words {
    ($($element:ty: $word:ty;)*) => {$(
        impl Waits for $element {
            type Value = $word;

            unsafe fn test(
                call: Call,
                element: *mut Self,
                cmp: Cmp,
                value: $word,
            ) -> Option<$word> {
                let word = element.cast::<$word>();
                // SAFETY: `word` is an aligned element of a symmetric object, as the caller
                // promises.
                let holds = unsafe { wait::test(call, word, cmp.constant(), value) } != 0;
                if !holds {
                    return None;
                }

                // SAFETY: `word` is the same element, of which any bits are a value.
                let Plain(now) = unsafe { local::load(word.cast::<Plain<$word>>()) };
                // The element may have changed since the test.
                if cmp.holds(now, value) { Some(now) } else { None }
            }
        }

        impl Awaited for $element {}
    )*};
}
words! {
    i16: i16; u16: u16;
    i32: i32; u32: u32; i64: i64; u64: u64; isize: isize; usize: usize;
    Atomic<i32>: i32; Atomic<u32>: u32; Atomic<i64>: i64; Atomic<u64>: u64;
    Atomic<isize>: isize; Atomic<usize>: usize;
}

impl Waits for Signal {
    type Value = u64;

    unsafe fn test(call: Call, signal: *mut Signal, cmp: Cmp, value: u64) -> Option<u64> {
        let word = signal.cast::<u64>();
        // SAFETY: `word` is an aligned signal of a symmetric object, as the caller promises.
        let holds = unsafe { wait::test(call, word, cmp.constant(), value) } != 0;
        if !holds {
            return None;
        }

        // SAFETY: `word` is the same signal.
        let now = unsafe { signal::fetch(call, word) };
        // The signal may have changed since the test.
        if cmp.holds(now, value) {
            Some(now)
        } else {
            None
        }
    }
}

impl Awaited for Signal {}

/// A comparison of an element of this PE with a value (§9.11), such as `x.ge(3)`, for
/// [`Shmem::wait`], [`Shmem::test`] and [`Shmem::until`].
#[must_use = "`shmem.wait(condition)` waits for a condition"]
pub struct Condition<'a, T: Awaited> {
    element: &'a Sym<T>,
    cmp: Cmp,
    value: T::Value,
}

impl<T: Awaited> Clone for Condition<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Awaited> Copy for Condition<'_, T> {}

macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident = $cmp:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&self, value: T::Value) -> Condition<'_, T>
        where
            T: Awaited,
        {
            self.is(Cmp::$cmp, value)
        }
    )*};
}

/// Conditions to wait for. They are about the element of this PE.
impl<T: Element> Sym<T> {
    /// Returns the condition that the element satisfies the comparison `cmp` with `value` (§9.11).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let flag = shmem.boxed(0u32);
    /// flag.on(shmem.next()).write(3);
    /// assert_eq!(shmem.wait(flag.is(shmem::Cmp::Ne, 0)), 3);
    /// ```
    #[inline]
    pub fn is(&self, cmp: Cmp, value: T::Value) -> Condition<'_, T>
    where
        T: Awaited,
    {
        Condition {
            element: self,
            cmp,
            value,
        }
    }

    conditions! {
        /// The element is equal to `value`.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flag = shmem.boxed(0u32);
        /// flag.on(shmem.next()).write(3);
        /// assert_eq!(shmem.wait(flag.eq(3)), 3);
        /// ```
        eq = Eq;
        /// The element is not equal to `value`.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flag = shmem.boxed(0u32);
        /// flag.on(shmem.next()).write(3);
        /// assert_eq!(shmem.wait(flag.ne(0)), 3);
        /// ```
        ne = Ne;
        /// The element is greater than `value`.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flag = shmem.boxed(0u32);
        /// flag.on(shmem.next()).write(3);
        /// assert_eq!(shmem.wait(flag.gt(2)), 3);
        /// ```
        gt = Gt;
        /// The element is greater than `value` or equal to it.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let flag = shmem.boxed(0u32);
        /// flag.on(shmem.next()).write(3);
        /// assert_eq!(shmem.wait(flag.ge(3)), 3);
        /// ```
        ge = Ge;
        /// The element is less than `value`.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let left = shmem.boxed(10i64);
        /// left.on(shmem.next()).write(-1);
        /// assert_eq!(shmem.wait(left.lt(0)), -1);
        /// ```
        lt = Lt;
        /// The element is less than `value` or equal to it.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let left = shmem.boxed(10i64);
        /// left.on(shmem.next()).write(0);
        /// assert_eq!(shmem.wait(left.le(0)), 0);
        /// ```
        le = Le;
    }
}

impl<T: Awaited> Condition<'_, T> {
    fn wait(self, call: Call) -> T::Value {
        let word = self.element.as_ptr().cast();
        // SAFETY: a `Sym` is an aligned element of a symmetric object.
        unsafe { wait::wait_for(call, word, self.cmp.constant(), self.value) }
    }

    fn wait_within(self, call: Call, limit: Option<Duration>) -> Result<T::Value, TimedOut> {
        let word = self.element.as_ptr().cast();
        let cmp = self.cmp.constant();
        // SAFETY: a `Sym` is an aligned element of a symmetric object.
        unsafe { wait::wait_until_within(call, word, cmp, self.value, limit) }
    }

    pub(crate) fn test(self, call: Call) -> Option<T::Value> {
        // SAFETY: a `Sym` is an aligned element of a symmetric object.
        unsafe { T::test(call, self.element.as_ptr(), self.cmp, self.value) }
    }

    /// Wakes a task once when the condition holds, until `wait` is dropped. The caller then tests
    /// the condition once more.
    pub(crate) fn wake(self, call: Call, wait: &mut WordWait, task: &Waker) {
        let word = self.element.as_ptr().cast();
        let cmp = self.cmp.constant();
        // SAFETY: the word is an element of a symmetric object, which is mapped until the library
        // is finalized.
        unsafe { wait::wake_when(call, wait, task, word, cmp, self.value) };
    }
}

impl<C: Threads> Shmem<C> {
    /// Waits until the condition holds, and returns the value of the element
    /// (`shmem_wait_until`, §9.11.1; of a signal `shmem_signal_wait_until`, §9.11.15). Writes that
    /// the writer of the element has ordered before it are then visible.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let flag = shmem.boxed(0u32);
    /// flag.on(shmem.next()).write(3);
    /// assert_eq!(shmem.wait(flag.ge(3)), 3);
    /// ```
    #[doc(alias = "shmem_wait_until")]
    #[doc(alias = "shmem_signal_wait_until")]
    #[doc(alias = "wait_until")]
    pub fn wait<T: Awaited>(&self, condition: Condition<'_, T>) -> T::Value {
        condition.wait(call!("wait"))
    }

    /// Waits as [`wait`](Shmem::wait) does, but for `limit` at the longest
    /// (`shmemx_wait_until_timed`, an extension). A limit of 0 tests the condition once. A limit of
    /// more than 30 years is none.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// # use std::time::Duration;
    /// let flag = shmem.boxed(0u32);
    /// let limit = Duration::from_millis(1);
    /// assert_eq!(shmem.wait_for(flag.ge(3), limit), Err(shmem::TimedOut));
    /// # shmem.barrier_all();
    /// flag.on(shmem.next()).write(3);
    /// let value = loop {
    ///     match shmem.wait_for(flag.ge(3), limit) {
    ///         Ok(value) => break value,
    ///         Err(_) => println!("PE {} still waits", shmem.my_pe()),
    ///     }
    /// };
    /// assert_eq!(value, 3);
    /// ```
    ///
    /// # Errors
    /// When the limit has passed. Nothing has changed then, and the wait may be repeated. A value
    /// that has come by then is seen.
    #[doc(alias = "shmemx_wait_until_timed")]
    #[doc(alias = "shmemx_signal_wait_until_timed")]
    pub fn wait_for<T: Awaited>(
        &self,
        condition: Condition<'_, T>,
        limit: Duration,
    ) -> Result<T::Value, TimedOut> {
        condition.wait_within(call!("wait_for"), limits::of_duration(limit))
    }

    /// Returns the value of the element if the condition holds now (`shmem_test`, §9.11.8).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let flag = shmem.boxed(0u32);
    /// assert_eq!(shmem.test(flag.ge(3)), None);
    /// flag.store(3);
    /// assert_eq!(shmem.test(flag.ge(3)), Some(3));
    /// ```
    #[doc(alias = "shmem_test")]
    pub fn test<T: Awaited>(&self, condition: Condition<'_, T>) -> Option<T::Value> {
        condition.test(call!("test"))
    }
}

impl<T: Awaited> fmt::Debug for Condition<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.element, self.cmp, self.value)
    }
}
