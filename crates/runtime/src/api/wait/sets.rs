//! Waits for words of a set, and tests of them (OpenSHMEM 1.6, §9.11): an array of words of this
//! PE, without those that the program has excluded.
#![allow(unsafe_code)]

use super::{holds, report_seen, status_word, words_subject};
use crate::api::limits::TimedOut;
use crate::own_pe::{Caller, OwnPe};
use core::ffi::c_int;
use rushmem_communication::observers::{self, Action, Event};
use rushmem_communication::status::{WaitDescription, polled_calls};
use rushmem_communication::sync::waits;
use rushmem_explain::status::{MAX_LISTED, PolledObject};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::memory::checks::require_aligned;
use rushmem_pe::memory::range::symmetric;
use rushmem_transport::mem::WaitWord;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The values with which the words are compared.
#[derive(Clone, Copy, Debug)]
pub enum Values<T> {
    /// The same value for all words.
    Same(T),
    /// Element `i` of an array for word `i` (the vector forms).
    Each(*const T),
}

impl<T: Copy> Values<T> {
    /// Returns the value for word `i`.
    ///
    /// # Safety
    /// An array has more than `i` elements.
    #[inline]
    unsafe fn at(&self, i: usize) -> T {
        match *self {
            Values::Same(value) => value,
            // SAFETY: the caller promises that the array has this element.
            Values::Each(values) => unsafe { values.wrapping_add(i).read() },
        }
    }
}

/// A wait set: `nelems` words from `ivars`, without those whose `status` is not 0.
#[derive(Clone, Copy)]
struct WaitSet<T> {
    pe: &'static OwnPe,
    call: Call,
    ivars: *const T,
    nelems: usize,
    status: *const c_int,
    cmp: c_int,
    values: Values<T>,
}

impl<T: WaitWord> WaitSet<T> {
    /// The checks with `SHMEM_CHECK`: ends the job with an error if `ivars` is not symmetric, or if
    /// the array of a vector form or one of the arrays `others` is a null pointer. An empty array
    /// may be anything.
    fn check(&self, others: &[(&str, *const usize)]) {
        if self.nelems == 0 {
            return;
        }

        let nbytes = self.nelems.saturating_mul(size_of::<T>());
        symmetric(self.pe.job(), self.call, "ivars", self.ivars.cast(), nbytes);

        let values = match self.values {
            Values::Same(_) => None,
            Values::Each(values) => Some(("cmp_values", values.cast())),
        };
        for (argument, array) in others.iter().chain(&values) {
            if array.is_null() {
                fail!(
                    self.call,
                    "argument {argument} is a null pointer, but it must have room for {} elements",
                    self.nelems
                );
            }
        }
    }

    /// Counts a test of the set, which a program may repeat.
    fn count_poll(&self) {
        let own = PolledObject::MemoryOf(self.pe.job().me.0);
        polled_calls::count(self.call, self.ivars.addr(), own);
    }

    /// Returns true if word `i` is in the set.
    ///
    /// # Safety
    /// `i` is below `nelems`, and the arrays are valid as the routines require.
    #[inline]
    unsafe fn includes(&self, i: usize) -> bool {
        // SAFETY: the caller promises that `i` is below `nelems` and that the arrays are valid.
        self.status.is_null() || unsafe { self.status.wrapping_add(i).read() } == 0
    }

    /// Returns true if word `i` satisfies the comparison now.
    ///
    /// # Safety
    /// As `includes`.
    #[inline]
    unsafe fn holds(&self, i: usize) -> bool {
        // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
        let ivar = unsafe { self.ivars.add(i) };
        // SAFETY: the caller promises that `i` is below `nelems` and that the arrays are valid.
        let value = unsafe { T::load_acquire(ivar) };
        // SAFETY: the caller promises that `i` is below `nelems` and that the arrays are valid.
        let reference = unsafe { self.values.at(i) };
        holds(self.call, self.cmp, value, reference)
    }

    /// Describes a wait for the words that do not satisfy the comparison yet. `all` is true if the
    /// wait is for all of them, not any one.
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn describe(&self, all: bool) -> WaitDescription {
        let mut missing = (0..self.nelems).filter(|&i| {
            // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
            let included = unsafe { self.includes(i) };
            // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
            included && !unsafe { self.holds(i) }
        });

        let mut listed = Vec::new();
        for i in missing.by_ref().take(MAX_LISTED) {
            // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
            let wanted = unsafe { self.values.at(i) };
            listed.push(status_word(
                self.pe.job(),
                self.ivars.wrapping_add(i),
                wanted,
            ));
        }
        let more = missing.count() as u64;

        WaitDescription {
            call: self.call,
            subject: words_subject(listed, more, all, self.cmp),
        }
    }

    /// Returns the event of a wait for words of the array.
    fn event(&self) -> Event {
        Event::new(self.call, Action::Wait).with_bytes(self.ivars, self.nelems * size_of::<T>())
    }

    /// Returns true if no word is in the set, since every `status` excludes its word or there are
    /// no words.
    ///
    /// # Safety
    /// The arrays are valid as the routines require.
    unsafe fn is_empty(&self) -> bool {
        // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
        (0..self.nelems).all(|i| !unsafe { self.includes(i) })
    }

    /// Returns true if all words of the set satisfy the comparison, or it is empty.
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn all(&self) -> bool {
        // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
        (0..self.nelems).all(|i| unsafe { !self.includes(i) } || unsafe { self.holds(i) })
    }

    /// Returns the index of a word that satisfies the comparison. Each successful search makes the
    /// next one of this PE begin elsewhere, so that no index is passed over forever (the
    /// standard's note on `shmem_wait_until_any`).
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn any(&self) -> Option<usize> {
        // Relaxed: any number is a valid start of the search.
        let count = self.pe.n_searches.load(Relaxed);
        let first = start_of_search(count, self.nelems);
        let mut order = (first..self.nelems).chain(0..first);
        // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
        let found = order.find(|&i| unsafe { self.includes(i) } && unsafe { self.holds(i) })?;

        // Threads that search at the same time may count once for both, which only makes the next
        // searches begin at the same index.
        let n_searches = count.wrapping_add(1);
        self.pe.n_searches.store(n_searches, Relaxed);
        Some(found)
    }

    /// Tells observers that the words with these indices satisfy the comparison. Each counts as one
    /// that just does so.
    fn report(&self, seen: impl IntoIterator<Item = usize>) {
        if observers::any() {
            for i in seen {
                report_seen(self.call, self.ivars.wrapping_add(i), || false);
            }
        }
    }

    /// Tells observers that all words of the set satisfy the comparison.
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn report_all(&self) {
        // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
        let included = (0..self.nelems).filter(|&i| unsafe { self.includes(i) });
        self.report(included);
    }

    /// Stores in `indices` the indices of all words that satisfy the comparison. Returns their
    /// number.
    ///
    /// # Safety
    /// As `is_empty`; `indices` is valid for writes of `nelems` indices.
    unsafe fn some(&self, indices: *mut usize) -> usize {
        let mut found = 0;
        for i in 0..self.nelems {
            // SAFETY: `i` is below `nelems`; the caller promises valid arrays.
            if unsafe { self.includes(i) } && unsafe { self.holds(i) } {
                // SAFETY: fewer than `nelems` were written so far.
                let next = unsafe { indices.add(found) };
                // SAFETY: `next` points to one of the `nelems` indices for which the caller
                // promises room.
                unsafe { next.write(i) };
                found += 1;
            }
        }
        found
    }
}

/// Waits for words of a set, for `limit` at the longest, if there is one.
impl<T: WaitWord> WaitSet<T> {
    /// Waits until all words satisfy the comparison. Returns at once if the set is empty.
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn await_all(&self, limit: Option<Duration>) -> Result<(), TimedOut> {
        // SAFETY: the caller promises that the arrays are valid.
        let mut ready = || unsafe { self.all() };
        // SAFETY: the caller promises that the arrays are valid.
        unsafe { self.wait(limit, true, &mut ready) }?;
        // SAFETY: the caller promises that the arrays are valid.
        unsafe { self.report_all() };
        Ok(())
    }

    /// Waits until a word satisfies the comparison, and returns its index. Returns `SIZE_MAX` at
    /// once if the set is empty.
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn await_any(&self, limit: Option<Duration>) -> Result<usize, TimedOut> {
        // SAFETY: the caller promises that the arrays are valid.
        if unsafe { self.is_empty() } {
            return Ok(usize::MAX);
        }

        let mut found = None;
        let mut ready = || {
            // SAFETY: the caller promises that the arrays are valid.
            found = unsafe { self.any() };
            found.is_some()
        };
        // SAFETY: the caller promises that the arrays are valid.
        unsafe { self.wait(limit, false, &mut ready) }?;

        self.report(found);
        Ok(found.unwrap_or(usize::MAX))
    }

    /// Waits until a word satisfies the comparison. Stores in `indices` the indices of all that do
    /// so then, and returns their number. Returns 0 at once if the set is empty.
    ///
    /// # Safety
    /// As `some`.
    unsafe fn await_some(
        &self,
        indices: *mut usize,
        limit: Option<Duration>,
    ) -> Result<usize, TimedOut> {
        // SAFETY: the caller promises that the arrays are valid.
        if unsafe { self.is_empty() } {
            return Ok(0);
        }

        let mut found = 0;
        let mut ready = || {
            // SAFETY: the arrays of the set are valid, and `indices` has room for `nelems` indices,
            // by contract.
            found = unsafe { self.some(indices) };
            found > 0
        };
        // SAFETY: the caller promises that the arrays are valid.
        unsafe { self.wait(limit, false, &mut ready) }?;

        // SAFETY: `some` has written `found` indices.
        self.report((0..found).map(|i| unsafe { indices.wrapping_add(i).read() }));
        Ok(found)
    }

    /// Waits until `ready` returns true. `all` is true if the wait is for all words, not any one.
    ///
    /// # Safety
    /// As `is_empty`.
    unsafe fn wait(
        &self,
        limit: Option<Duration>,
        all: bool,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<(), TimedOut> {
        let _observed = observers::call(|| self.event());
        // SAFETY: the caller promises that the arrays are valid.
        let describe = || unsafe { self.describe(all) };
        if !waits::until_seen_within(self.pe.links, limit, &describe, ready) {
            self.count_poll();
            return Err(TimedOut);
        }
        Ok(())
    }
}

/// Returns the index at which search number `count` of a set begins. The fractional parts of the
/// multiples of the golden ratio are distributed evenly (H. Weyl, 1916). This also holds for every
/// second or third multiple, if other searches of the PE use the ones between.
fn start_of_search(count: usize, nelems: usize) -> usize {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let fraction = (count as u64).wrapping_mul(GOLDEN);
    ((u128::from(fraction) * nelems as u128) >> 64) as usize
}

/// Defines routines on wait sets. `$body` returns the result, given the [`WaitSet`] of the
/// arguments. `$indices` is the array, if any, in which the routine stores indices, and `$limit`
/// the limit of a wait, if it has one.
macro_rules! sets {
    ($(
        $(#[doc = $doc:literal])+
        fn $name:ident(
            $($indices:ident: $indices_type:ty)? $(; $limit:ident: $limit_type:ty)?
        ) -> $result:ty
            = |$set:ident| $body:expr;
    )*) => {$(
        $(#[doc = $doc])+
        ///
        /// # Safety
        /// `ivars`, the values of a vector form and, unless it is null, `status` are valid for
        /// reads of `nelems` elements. `indices` is valid for writes of `nelems` indices.
        #[expect(clippy::allow_attributes, reason = "some of the forms have fewer arguments")]
        #[allow(clippy::too_many_arguments)]
        #[allow(clippy::missing_errors_doc, reason = "a limit has one error, which the type names")]
        pub unsafe fn $name<T: WaitWord>(
            caller: impl Caller,
            ivars: *const T,
            nelems: usize,
            $($indices: $indices_type,)?
            status: *const c_int,
            cmp: c_int,
            values: Values<T>,
            $($limit: $limit_type,)?
        ) -> $result {
            let (pe, call) = caller.enter();
            require_aligned(call, "ivars", ivars.addr(), size_of::<T>());
            let $set = WaitSet { pe, call, ivars, nelems, status, cmp, values };
            if pe.job().settings.checks() {
                $set.check(&[$((stringify!($indices), $indices.cast_const()))?]);
            }
            $body
        }
    )*};
}

sets! {
    /// `shmem_wait_until_all` (§9.11.2, §9.11.5): waits until all words of the set satisfy the
    /// comparison. Returns at once if the set is empty.
    fn wait_until_all() -> () = |set| {
        // SAFETY: the caller promises that the arrays are valid.
        let _ = unsafe { set.await_all(None) };
    };

    /// `shmemx_wait_until_all_timed`: waits as [`wait_until_all`] does, for `limit` at the longest,
    /// if there is one.
    fn wait_until_all_within(; limit: Option<Duration>) -> Result<(), TimedOut>
        // SAFETY: the caller promises that the arrays are valid.
        = |set| unsafe { set.await_all(limit) };

    /// `shmem_wait_until_any` (§9.11.3, §9.11.6): waits until a word of the set satisfies the
    /// comparison, and returns its index. Returns `SIZE_MAX` at once if the set is empty.
    fn wait_until_any() -> usize
        // SAFETY: the caller promises that the arrays are valid.
        = |set| unsafe { set.await_any(None) }.unwrap_or(usize::MAX);

    /// `shmemx_wait_until_any_timed`: waits as [`wait_until_any`] does, for `limit` at the longest,
    /// if there is one.
    fn wait_until_any_within(; limit: Option<Duration>) -> Result<usize, TimedOut>
        // SAFETY: the caller promises that the arrays are valid.
        = |set| unsafe { set.await_any(limit) };

    /// `shmem_wait_until_some` (§9.11.4, §9.11.7): waits until a word of the set satisfies the
    /// comparison. Stores in `indices` the indices of all that do so then, and returns their
    /// number. Returns 0 at once if the set is empty.
    fn wait_until_some(indices: *mut usize) -> usize
        // SAFETY: the caller promises that the arrays are valid and that `indices` has room for
        // `nelems` indices.
        = |set| unsafe { set.await_some(indices, None) }.unwrap_or(0);

    /// `shmemx_wait_until_some_timed`: waits as [`wait_until_some`] does, for `limit` at the
    /// longest, if there is one.
    fn wait_until_some_within(indices: *mut usize; limit: Option<Duration>)
        -> Result<usize, TimedOut>
        // SAFETY: the caller promises that the arrays are valid and that `indices` has room for
        // `nelems` indices.
        = |set| unsafe { set.await_some(indices, limit) };

    /// `shmem_test_all` (§9.11.9, §9.11.12): returns 1 if all words of the set satisfy the
    /// comparison, or the set is empty; else 0.
    fn test_all() -> c_int = |set| {
        // SAFETY: the caller promises that the arrays are valid.
        let is_seen = waits::test(set.pe.links, || unsafe { set.all() });
        set.count_poll();
        if is_seen {
            // SAFETY: the caller promises that the arrays are valid.
            unsafe { set.report_all() };
        }
        c_int::from(is_seen)
    };

    /// `shmem_test_any` (§9.11.10, §9.11.13): returns the index of a word that satisfies the
    /// comparison, or `SIZE_MAX` if there is none.
    fn test_any() -> usize = |set| {
        let mut found = None;
        waits::test(set.pe.links, || {
            // SAFETY: the caller promises that the arrays are valid.
            found = unsafe { set.any() };
            found.is_some()
        });
        set.count_poll();
        set.report(found);
        found.unwrap_or(usize::MAX)
    };

    /// `shmem_test_some` (§9.11.11, §9.11.14): stores in `indices` the indices of the words that
    /// satisfy the comparison and returns their number.
    fn test_some(indices: *mut usize) -> usize = |set| {
        let mut found = 0;
        waits::test(set.pe.links, || {
            // SAFETY: the caller promises that the arrays are valid and that `indices` has room for
            // `nelems` indices.
            found = unsafe { set.some(indices) };
            found > 0
        });
        set.count_poll();
        // SAFETY: `some` has written `found` indices.
        set.report((0..found).map(|i| unsafe { indices.wrapping_add(i).read() }));
        found
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_its_turn_also_beside_other_searches() {
        for (nelems, step) in [(1, 1), (2, 1), (2, 2), (3, 3), (7, 5), (100, 2), (64, 64)] {
            let mut seen = vec![false; nelems];
            for search in 0..100 * nelems {
                seen[start_of_search(search * step, nelems)] = true;
            }
            assert!(
                seen.iter().all(|&seen| seen),
                "{nelems} indices, every turn {step}"
            );
        }
        assert_eq!(start_of_search(5, 0), 0);
        assert!(start_of_search(usize::MAX, usize::MAX) < usize::MAX);
    }
}
