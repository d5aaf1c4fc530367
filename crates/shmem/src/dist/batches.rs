//! Operations on many elements of a distributed array, each at an index of its own. They are in a
//! session (`SHMEM_CTX_SESSION_BATCH`, §9.9), so that over a network many of them travel in one
//! message, and what is fetched is under way at the same time.

use crate::context::{Context, SessionOptions};
use crate::dist::BlockArray;
use crate::element::{Atomic, AtomicNumber, AtomicValue, Element, PlainData};
use crate::peer::{Peer, ScopePeer};
use crate::remote::Remote;
use crate::symmetric::view::Sym;
use crate::threads::Threads;
use bytemuck::Zeroable;
use rushmem_runtime::Call;
use std::slice;

impl<T: PlainData, C: Threads> BlockArray<'_, T, C> {
    /// Returns the values of the elements of these indices, in their order, as
    /// `array.at(index).read()` does (`shmem_get_nbi`, §9.6.2.2, of each). An index may come
    /// several times. Completes all operations of this PE on the default context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut numbers = shmem.world().block_array::<u64>(100);
    /// numbers.fill(17);
    /// assert_eq!(numbers.read_each([70, 3, 70]), [17; 3]);
    /// ```
    ///
    /// # Panics
    /// If there is no element of an index.
    #[doc(alias = "get_each")]
    #[doc(alias = "batch_load")]
    #[doc(alias = "gather")]
    #[track_caller]
    pub fn read_each(&self, indices: impl IntoIterator<Item = usize>) -> Vec<T> {
        let requests = indices.into_iter().map(|index| (index, ()));
        let call = call!("BlockArray::read_each");
        self.fetch_each(call, requests, |element, (), value| {
            let element = element.view().as_slice().on(element.peer());
            element.get(slice::from_mut(value));
        })
    }

    /// Writes to many elements: of each pair, the value to the element of the index, as
    /// `array.at(index).write(value)` does (`shmem_p`, §9.6.1.2). The values are there after a
    /// [`quiet`](Context::quiet) or a barrier. Of an index that comes several times, any of the
    /// values remains.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<usize>(100);
    /// let every_other = (shmem.my_pe()..100).step_by(shmem.n_pes());
    /// numbers.write_each(every_other.map(|index| (index, index * index)));
    /// shmem.barrier_all();
    /// assert_eq!(numbers.read(8..12), [64, 81, 100, 121]);
    /// ```
    ///
    /// # Panics
    /// At a pair with an index that does not exist. The pairs before it are written.
    #[doc(alias = "put_each")]
    #[doc(alias = "batch_store")]
    #[doc(alias = "scatter")]
    #[track_caller]
    pub fn write_each(&self, pairs: impl IntoIterator<Item = (usize, T)>) {
        let call = call!("BlockArray::write_each");
        self.issue_each(call, pairs, |element, value| element.write(value));
    }
}

impl<T: AtomicValue, C: Threads> BlockArray<'_, Atomic<T>, C> {
    /// Returns the values of the elements of these indices, in their order, as
    /// `array.at(index).load()` does (`shmem_atomic_fetch_nbi`, §9.7.2.1, of each). Completes all
    /// operations of this PE on the default context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counts = shmem.world().block_array::<shmem::Atomic<usize>>(100);
    /// counts.add_each([(70, 1), (90, 2)]);
    /// shmem.barrier_all();
    /// assert_eq!(counts.load_each([90, 70, 3]), [2 * shmem.n_pes(), shmem.n_pes(), 0]);
    /// ```
    ///
    /// # Panics
    /// If there is no element of an index.
    #[doc(alias = "get_each")]
    #[doc(alias = "batch_load")]
    #[track_caller]
    pub fn load_each(&self, indices: impl IntoIterator<Item = usize>) -> Vec<T> {
        let requests = indices.into_iter().map(|index| (index, ()));
        let call = call!("BlockArray::load_each");
        self.fetch_each(call, requests, |element, (), value| {
            element.load_into(value)
        })
    }

    /// Writes to many elements: of each pair, the value to the element of the index, as
    /// `array.at(index).store(value)` does (`shmem_atomic_set`, §9.7.1.2). The values are there
    /// after a [`quiet`](Context::quiet) or a barrier.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let states = shmem.world().block_array::<shmem::Atomic<u32>>(100);
    /// states.store_each([(70, 1), (90, 2)]);
    /// shmem.barrier_all();
    /// assert_eq!(states.at(90).load(), 2);
    /// ```
    ///
    /// # Panics
    /// At a pair with an index that does not exist. The pairs before it are stored.
    #[doc(alias = "batch_store")]
    #[track_caller]
    pub fn store_each(&self, pairs: impl IntoIterator<Item = (usize, T)>) {
        let call = call!("BlockArray::store_each");
        self.issue_each(call, pairs, |element, value| element.store(value));
    }
}

impl<T: AtomicNumber, C: Threads> BlockArray<'_, Atomic<T>, C> {
    /// Adds to many elements: of each pair, the value to the element of the index, as
    /// `array.at(index).add(value)` does (`shmem_atomic_add`, §9.7.1.8). An index may come several
    /// times. The additions are complete after a [`quiet`](Context::quiet) or a barrier.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counts = shmem.world().block_array::<shmem::Atomic<usize>>(100);
    /// counts.add_each([(70, 1), (90, 1), (70, 1)]);
    /// shmem.barrier_all();
    /// assert_eq!(counts.at(70).load(), 2 * shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// At a pair with an index that does not exist. The pairs before it are added.
    #[doc(alias = "shmem_atomic_add")]
    #[doc(alias = "batch_add")]
    #[track_caller]
    pub fn add_each(&self, pairs: impl IntoIterator<Item = (usize, T)>) {
        let call = call!("BlockArray::add_each");
        self.issue_each(call, pairs, |element, value| element.add(value));
    }

    /// Adds to many elements, as [`add_each`](Self::add_each), and returns the old values in the
    /// order of the pairs (`shmem_atomic_fetch_add_nbi`, §9.7.2.5, of each). Completes all
    /// operations of this PE on the default context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let heads = shmem.world().block_array::<shmem::Atomic<usize>>(100);
    /// let places = heads.fetch_add_each([(70, 2), (90, 3)]);      // room for 2 and 3 elements
    /// assert!(places[0] < 2 * shmem.n_pes() && places[1] < 3 * shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// If there is no element of an index.
    #[doc(alias = "shmem_atomic_fetch_add_nbi")]
    #[doc(alias = "batch_fetch_add")]
    #[track_caller]
    pub fn fetch_add_each(&self, pairs: impl IntoIterator<Item = (usize, T)>) -> Vec<T> {
        let call = call!("BlockArray::fetch_add_each");
        self.fetch_each(call, pairs, |element, value, old| {
            element.fetch_add_into(value, old);
        })
    }
}

impl<'s, T: Element, C: Threads> BlockArray<'s, T, C> {
    /// Issues an operation on the element of each index.
    #[track_caller]
    fn issue_each<V>(
        &self,
        call: Call,
        pairs: impl IntoIterator<Item = (usize, V)>,
        operation: impl Fn(Remote<'_, Sym<T>, Peer<'s, C>>, V),
    ) {
        let context = Context::<C>::default_one();
        let _session = context.session_with(SessionOptions::new().batch());
        for (index, value) in pairs {
            self.require(call, index);
            operation(self.element(index), value);
        }
    }

    /// Issues a fetching operation on the element of each index, completes all, and returns what
    /// they have fetched.
    #[track_caller]
    fn fetch_each<V, R: Zeroable + Clone>(
        &self,
        call: Call,
        pairs: impl IntoIterator<Item = (usize, V)>,
        operation: impl for<'scope> Fn(Remote<'scope, Sym<T>, ScopePeer<'scope>>, V, &'scope mut R),
    ) -> Vec<R> {
        let pairs: Vec<(usize, V)> = pairs.into_iter().collect();
        for (index, _) in &pairs {
            self.require(call, *index);
        }

        let mut fetched = vec![R::zeroed(); pairs.len()];
        let context = Context::<C>::default_one();
        context.scope(|s| {
            let _session = context.session_with(SessionOptions::new().batch());
            let owners: Vec<ScopePeer<'_>> = self.members.iter().map(|m| s.pe(m.pe())).collect();
            for ((index, value), place) in pairs.into_iter().zip(&mut fetched) {
                let owner = owners[self.layout.owner(index)];
                let element = &self.blocks[self.layout.offset(index)];
                operation(element.on(owner), value, place);
            }
        });
        fetched
    }
}
