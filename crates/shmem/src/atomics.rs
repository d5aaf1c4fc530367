//! Arrays of atomic elements (OpenSHMEM 1.6, §9.7): arrays with values, and operations on all
//! elements, each of which is atomic by itself.
#![allow(unsafe_code)]

use crate::context::CompletedAtEnd;
use crate::element::{Atomic, AtomicValue};
use crate::job::Shmem;
use crate::operator::Operator;
use crate::peer::Peer;
use crate::remote::Remote;
use crate::rma::require_same_length;
use crate::symmetric::array::SymArray;
use crate::symmetric::boxed::SymBox;
use crate::symmetric::view::{Sym, SymSlice};
use crate::team::Team;
use crate::threads::Threads;
use rushmem_runtime::{Call, Context as _, ContextHandle, DefaultContext, ExistingPe, amo, setup};

impl<C: Threads> Shmem<C> {
    /// Allocates one atomic element with the value `value` on each PE (`shmem_malloc`, §9.3.1).
    /// Collective. The job ends with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let ticket = shmem.atomic(100u64);
    /// let mine = ticket.on(shmem.pe(0)).fetch_add(1);
    /// assert!((100..100 + shmem.n_pes() as u64).contains(&mine));
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_malloc")]
    #[doc(alias = "shmem_malloc_with_hints")]
    #[track_caller]
    pub fn atomic<T: AtomicValue>(&self, value: T) -> SymBox<'_, Atomic<T>> {
        let one = self.zeroed::<Atomic<T>>();
        one.on(self.me()).store(value);

        // Completes the store, so that every PE finds the value.
        self.barrier_all();
        one
    }

    /// Allocates atomic elements with these values on each PE (`shmem_malloc`, §9.3.1). Collective.
    /// The job ends with a message if another PE allocates something else, for example if it passes
    /// another number of values.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let minima = shmem.atomics(&[i64::MAX; 4]);
    /// assert_eq!(minima.on(shmem.pe(0)).load_each(), [i64::MAX; 4]);
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_malloc")]
    #[doc(alias = "shmem_malloc_with_hints")]
    #[track_caller]
    pub fn atomics<T: AtomicValue>(&self, values: &[T]) -> SymArray<'_, Atomic<T>> {
        let array = self.array(values.len());
        array.on(self.me()).store_each(values);

        // Completes the stores, so that every PE finds the values.
        self.barrier_all();
        array
    }
}

// What a PE loads of its own needs no operation, so no handle and no context: any thread may load
// at any time. A store would not be atomic towards the updates by a network card.
impl<T: AtomicValue> Sym<Atomic<T>> {
    /// Returns this PE's value of the element. As [`wait`](Shmem::wait), which is faster in a loop,
    /// it finds what operations have changed; they are complete after a barrier, for example.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let hits = shmem.atomic(0u64);
    /// hits.on(shmem.next()).add(1);
    /// shmem.barrier_all();
    /// assert_eq!(hits.load(), 1);
    /// ```
    #[inline(always)]
    pub fn load(&self) -> T {
        // SAFETY: `self` is an aligned element of a symmetric object, whose bits are a value, and
        // which only atomic operations access.
        unsafe { T::fetch(self.as_ptr().cast::<T>()) }
    }
}

impl<T: AtomicValue> SymSlice<Atomic<T>> {
    /// Returns the values of this PE's elements, each of which is loaded atomically.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counts = shmem.array::<shmem::Atomic<u64>>(3);
    /// counts[1].on(shmem.next()).add(5);
    /// shmem.barrier_all();
    /// assert_eq!(counts.to_vec(), [0, 5, 0]);
    /// ```
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().map(Sym::<Atomic<T>>::load).collect()
    }
}

impl<T: AtomicValue, C: Threads> Remote<'_, SymSlice<Atomic<T>>, Peer<'_, C>> {
    /// Returns the values of the elements (`shmem_atomic_fetch_nbi`, §9.7.2.1, of each). Completes
    /// all operations issued on the peer's context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counters = shmem.atomics(&[3u32, 5]);
    /// assert_eq!(counters.on(shmem.next()).load_each(), [3, 5]);
    /// ```
    #[doc(alias = "shmem_atomic_fetch_nbi")]
    pub fn load_each(self) -> Vec<T> {
        let mut values = vec![T::zeroed(); self.view().len()];
        self.load_into(&mut values);
        values
    }

    /// Stores the values of the elements to `dest`, which must have the same length
    /// (`shmem_atomic_fetch_nbi`, §9.7.2.1, of each). Completes all operations issued on the peer's
    /// context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counters = shmem.atomics(&[3u32, 5]);
    /// let mut values = [0; 2];
    /// counters.on(shmem.next()).load_into(&mut values);
    /// assert_eq!(values, [3, 5]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_atomic_fetch_nbi")]
    #[track_caller]
    pub fn load_into(self, dest: &mut [T]) {
        let call = call!("load_into");
        let source = self.view();
        require_same_length(call, dest.len(), source.len());

        let (pe, context) = self.target();
        fetch_each(call, context, pe, source, dest);
    }

    /// Writes `values`, one for each element, to the elements (`shmem_atomic_set`, §9.7.1.2, of
    /// each). They are there after a [`quiet`](crate::Context::quiet).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counters = shmem.array::<shmem::Atomic<u32>>(3);
    /// counters.on(shmem.next()).store_each(&[1, 2, 3]);
    /// shmem.barrier_all();
    /// assert_eq!(counters.on(shmem.me()).load_each(), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// If the number of values is not that of the elements.
    #[doc(alias = "shmem_atomic_set")]
    #[track_caller]
    pub fn store_each(self, values: &[T]) {
        require_same_length(call!("store_each"), self.view().len(), values.len());
        for (element, &value) in self.view().iter().zip(values) {
            element.on(self.peer()).store(value);
        }
    }

    /// Writes `value` to each element (`shmem_atomic_set`, §9.7.1.2, of each). It is there after a
    /// [`quiet`](crate::Context::quiet).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let minima = shmem.array::<shmem::Atomic<i64>>(4);
    /// minima.on(shmem.next()).fill(i64::MAX);
    /// shmem.barrier_all();
    /// assert_eq!(minima.on(shmem.me()).load_each(), [i64::MAX; 4]);
    /// ```
    #[doc(alias = "shmem_atomic_set")]
    pub fn fill(self, value: T) {
        for element in self.view() {
            element.on(self.peer()).store(value);
        }
    }
}

impl<C: Threads> Team<'_, C> {
    /// Returns the values of the elements on all members, combined element by element (§9.10.9).
    /// Collective over the team: all members pass the same number of elements. If other PEs update
    /// an element meanwhile, either the old or the new value is used. Completes all operations that
    /// this PE has issued on the default context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let hits = shmem.array::<shmem::Atomic<u64>>(2);
    /// hits[1].on(shmem.pe(0)).add(1);
    /// shmem.barrier_all();
    /// let total = shmem.world().all_reduce_atomics(&hits, shmem::Sum);
    /// assert_eq!(total, [0, shmem.n_pes() as u64]);
    /// ```
    pub fn all_reduce_atomics<T: AtomicValue, O: Operator<T>>(
        &self,
        source: &SymSlice<Atomic<T>>,
        op: O,
    ) -> Vec<T> {
        let call = call!("Team::all_reduce_atomics");
        let my_pe = setup::my_pe(call) as usize;
        let Some(me) = DefaultContext.existing_pe(call, my_pe) else {
            unreachable!("this PE exists");
        };

        // Only atomic operations may read the elements while other PEs update them.
        let mut values = vec![T::zeroed(); source.len()];
        fetch_each(call, ContextHandle::DEFAULT, me, source, &mut values);

        self.combine_in_place(call, op, &mut values);
        values
    }
}

/// Fetches each element of `source` on a PE to `dest`, which has the same length. Completes all
/// operations on the context.
fn fetch_each<T: AtomicValue>(
    call: Call,
    context: ContextHandle,
    pe: ExistingPe,
    source: &SymSlice<Atomic<T>>,
    dest: &mut [T],
) {
    // Completes the operations also if one of them panics: they write to `dest`.
    let _end = CompletedAtEnd(context);
    for (element, fetched) in source.iter().zip(dest) {
        // SAFETY: `element` is an aligned element of a symmetric object, which only atomic
        // operations access. `fetched` is borrowed until this function ends, and the end completes
        // the operation.
        unsafe { amo::fetch_nbi(call, context, fetched, element.as_ptr().cast(), pe) }
    }
}
