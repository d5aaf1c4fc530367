//! Arrays of atomic elements (OpenSHMEM 1.6, §9.7): arrays with values, and operations on all
//! elements of a view, each of which is atomic by itself.

use crate::context::{Context, ContextKind, DefaultContext};
use crate::element::{Atomic, AtomicValue};
use crate::job::Shmem;
use crate::operator::Operator;
use crate::rma::require_same_length;
use crate::symmetric::array::SymArray;
use crate::symmetric::boxed::SymBox;
use crate::symmetric::view::AsElements;
use crate::team::Team;
use crate::thread_level::ThreadLevel;
use rushmem_runtime::setup;

impl<L: ThreadLevel> Shmem<L> {
    /// Allocates one atomic element with the value `value` on each PE (`shmem_malloc`, §9.3.1).
    /// Collective. Panics, or ends the job with a message, in the same cases as
    /// [`array`](Self::array).
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let ticket = shmem.atomic(100u64);
    /// let mine = shmem.fetch_inc(&ticket, 0);
    /// assert!((100..100 + shmem.n_pes() as u64).contains(&mine));
    /// ```
    #[doc(alias = "shmem_malloc")]
    #[track_caller]
    pub fn atomic<T: AtomicValue>(&self, value: T) -> SymBox<'_, Atomic<T>> {
        let one = self.zeroed();
        self.set(&one, value, self.my_pe());
        self.barrier_all();
        one
    }

    /// Allocates atomic elements with these values on each PE (`shmem_malloc`, §9.3.1). Collective.
    /// Panics, or ends the job with a message, in the same cases as [`array`](Self::array), for
    /// example if another PE passes another number of values.
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let least = shmem.atomics(&[i64::MAX; 4]);
    /// let mut seen = [0; 4];
    /// shmem.fetch_all(&mut seen, &least, 0);
    /// assert_eq!(seen, [i64::MAX; 4]);
    /// ```
    #[doc(alias = "shmem_malloc")]
    #[track_caller]
    pub fn atomics<T: AtomicValue>(&self, values: &[T]) -> SymArray<'_, Atomic<T>> {
        let array = self.array(values.len());
        self.set_all(&array, values, self.my_pe());
        self.barrier_all();
        array
    }
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Fetches the values of the elements on `pe`, which may be this PE, to `dest`, which must have
    /// the same length (`shmem_atomic_fetch_nbi`, §9.7.2.1, of each). Completes all operations
    /// issued on this context.
    #[doc(alias = "shmem_atomic_fetch_nbi")]
    #[track_caller]
    pub fn fetch_all<'a, T: AtomicValue>(
        &self,
        dest: &mut [T],
        source: impl AsElements<'a, Atomic<T>>,
        pe: usize,
    ) {
        let source = source.into();
        require_same_length(call!("fetch_all"), dest.len(), source.len());
        self.scope(|s| {
            for (index, fetched) in dest.iter_mut().enumerate() {
                s.fetch_nbi(fetched, source.at(index), pe);
            }
        });
    }

    /// Writes `values`, one for each element, to the elements on `pe` (`shmem_atomic_set`,
    /// §9.7.1.2, of each).
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// let counters = shmem.array::<shmem::Atomic<u32>>(3);
    /// if shmem.my_pe() == 0 {
    ///     shmem.set_all(&counters, &[1, 2, 3], shmem.n_pes() - 1);
    /// }
    /// # shmem.barrier_all();
    /// # let fetched = shmem.fetch(counters.at(2), shmem.my_pe());
    /// # assert!(shmem.my_pe() + 1 < shmem.n_pes() || fetched == 3);
    /// ```
    #[doc(alias = "shmem_atomic_set")]
    #[track_caller]
    pub fn set_all<'a, T: AtomicValue>(
        &self,
        dest: impl AsElements<'a, Atomic<T>>,
        values: &[T],
        pe: usize,
    ) {
        let dest = dest.into();
        require_same_length(call!("set_all"), dest.len(), values.len());
        for (index, &value) in values.iter().enumerate() {
            self.set(dest.at(index), value, pe);
        }
    }

    /// Writes `value` to each element on `pe` (`shmem_atomic_set`, §9.7.1.2, of each).
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// let counters = shmem.array::<shmem::Atomic<u32>>(3);
    /// shmem.set_each(&counters, 7, shmem.my_pe());
    /// assert_eq!(shmem.fetch(counters.at(1), shmem.my_pe()), 7);
    /// ```
    #[doc(alias = "shmem_atomic_set")]
    #[track_caller]
    pub fn set_each<'a, T: AtomicValue>(
        &self,
        dest: impl AsElements<'a, Atomic<T>>,
        value: T,
        pe: usize,
    ) {
        let dest = dest.into();
        (0..dest.len()).for_each(|index| self.set(dest.at(index), value, pe));
    }
}

impl<L: ThreadLevel> Team<'_, L> {
    /// Returns the values of the elements on all members, combined element by element (§9.10.9).
    /// All members call with the same number of elements. If other PEs update an element meanwhile,
    /// either the old or the new value is used.
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let hits = shmem.array::<shmem::Atomic<u64>>(2);
    /// shmem.inc(hits.at(1), 0);
    /// shmem.barrier_all();
    /// let total = shmem.world().all_reduce_atomics(&hits, shmem::Sum);
    /// assert_eq!(total, [0, shmem.n_pes() as u64]);
    /// ```
    #[track_caller]
    pub fn all_reduce_atomics<'a, T: AtomicValue, O: Operator<T>>(
        &self,
        source: impl AsElements<'a, Atomic<T>>,
        op: O,
    ) -> Vec<T> {
        let source = source.into();
        let mut values = vec![T::zeroed(); source.len()];
        let call = call!("Team::all_reduce_atomics");
        let me = setup::my_pe(call) as usize;
        Context::<DefaultContext, L>::new(()).fetch_all(&mut values, source, me);
        self.combine_in_place(call, op, &mut values);
        values
    }
}
