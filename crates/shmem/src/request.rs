//! Non-blocking collectives, as futures (an extension).
//!
//! All members of a team start its collectives in the same order, blocking and non-blocking ones;
//! collectives of different teams have no order. Members may read `source` and write to `dest`
//! until the collective is complete. A thread of the library carries it out, also if its future was
//! dropped or leaked; an epoch and the drop of an array wait for the collectives on the array.
#![allow(unsafe_code)]

use crate::collectives::{
    bytes_of, count_of, elements_of, require_apart, require_disjoint, wrong_length,
};
use crate::element::PlainData;
use crate::operator::Operator;
use crate::pending::Pending;
use crate::rma::require_same_length;
use crate::symmetric::view::{AsSymSlice, SymSlice};
use crate::team::Team;
use crate::threads::Threads;
use rushmem_runtime::Call;
use rushmem_runtime::collectives::ElementCount;
use rushmem_runtime::nonblocking::{self, NonblockingCollective};

impl<C: Threads> Team<'_, C> {
    /// Starts a sync of the members (`shmemx_team_sync_nb`): the future is ready when all members
    /// have called this.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (world, arrived) = (shmem.world(), shmem.boxed(0));
    /// arrived.store(1);
    /// let sync = world.start_sync();
    /// sync.wait();                            // every PE has stored
    /// assert_eq!(arrived.on(shmem.next()).read(), 1);
    /// ```
    #[doc(alias = "shmemx_team_sync_nb")]
    #[track_caller]
    pub fn start_sync(&self) -> Pending<'_, (), C> {
        let nothing = Vectors {
            dest: std::ptr::null_mut(),
            source: std::ptr::null(),
            elements: ElementCount::of::<u8>(0),
        };
        let collective = NonblockingCollective::Sync;
        self.start(call!("Team::start_sync"), collective, nothing, |_| ())
    }

    /// Starts to copy `source` of member `root` to `dest` of all members, as
    /// [`broadcast_into`](Team::broadcast_into) does (`shmemx_broadcast_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (settings, all) = (shmem.array::<usize>(2), shmem.array(2));
    /// settings.fill(shmem.my_pe() + 5);
    /// let request = shmem.world().start_broadcast_into(&settings, &all, 0);
    /// request.wait();
    /// assert_eq!(all.to_vec(), [5, 5]);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if the lengths differ, or if `source` and `dest` overlap but are
    /// not the same elements.
    #[doc(alias = "shmemx_broadcast_nb")]
    #[track_caller]
    pub fn start_broadcast_into<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        root: usize,
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_broadcast_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        require_same_length(call, dest.len(), source.len());
        let vectors = Vectors::new(call, dest, source, count_of(source));

        let root = self.root(call, root) as i32;
        let collective = NonblockingCollective::Broadcast { root };
        self.start(call, collective, vectors, |_| ())
    }

    /// Starts to copy `source` of all members, whose lengths may differ, one after the other to
    /// `dest` of all members, as [`all_gather_varying_into`](Team::all_gather_varying_into) does
    /// (`shmemx_collect_nb`). The future returns the number of elements of all sources. The job
    /// ends with a message if `dest` has fewer.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (mine, all) = (shmem.array::<usize>(2), shmem.array(2 * shmem.n_pes()));
    /// let len = if shmem.my_pe() == 0 { 1 } else { 2 };       // PE 0 has fewer than the others
    /// let request = shmem.world().start_all_gather_varying_into(&mine[..len], &all);
    /// assert_eq!(request.wait(), 2 * shmem.n_pes() - 1);
    /// ```
    ///
    /// # Panics
    /// If `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmemx_collect_nb")]
    #[track_caller]
    pub fn start_all_gather_varying_into<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
    ) -> Pending<'a, usize, C> {
        let call = call!("Team::start_all_gather_varying_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        let vectors = Vectors::new(call, dest, source, count_of(source));

        let max_bytes = bytes_of(dest);
        let collective = NonblockingCollective::Collect { max_bytes };
        self.start(call, collective, vectors, elements_of::<T>)
    }

    /// Starts to copy `source` of all members one after the other to `dest` of all members, as
    /// [`all_gather_into`](Team::all_gather_into) does (`shmemx_fcollect_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (mine, all) = (shmem.boxed(shmem.my_pe()), shmem.array(shmem.n_pes()));
    /// let request = shmem.world().start_all_gather_into(&mine, &all);
    /// request.wait();
    /// assert!(all.to_vec().into_iter().eq(0..shmem.n_pes()));
    /// ```
    ///
    /// # Panics
    /// If `dest` has not the length of all sources together, or if `source` and `dest` overlap but
    /// are not the same elements.
    #[doc(alias = "shmemx_fcollect_nb")]
    #[track_caller]
    pub fn start_all_gather_into<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_all_gather_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        let total = source.len().saturating_mul(self.n_pes());
        if dest.len() != total {
            wrong_length(call, dest.len(), total);
        }

        let vectors = Vectors::new(call, dest, source, count_of(source));
        self.start(call, NonblockingCollective::Fcollect, vectors, |_| ())
    }

    /// Starts to exchange blocks between all members, as [`all_to_all_into`](Team::all_to_all_into)
    /// does (`shmemx_alltoall_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let n = shmem.n_pes();
    /// let (outbox, inbox) = (shmem.array::<usize>(n), shmem.array(n));
    /// outbox.fill(shmem.my_pe());
    /// let request = shmem.world().start_all_to_all_into(&outbox, &inbox);
    /// request.wait();
    /// assert!(inbox.to_vec().into_iter().eq(0..n));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ or are no multiple of the number of members, or if `source` and `dest`
    /// overlap but are not the same elements.
    #[doc(alias = "shmemx_alltoall_nb")]
    #[track_caller]
    pub fn start_all_to_all_into<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_all_to_all_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        let n_pes = self.n_pes();
        require_same_length(call, dest.len(), source.len());
        if !dest.len().is_multiple_of(n_pes) {
            wrong_length(call, dest.len(), dest.len().next_multiple_of(n_pes));
        }

        let vectors = Vectors::new(
            call,
            dest,
            source,
            ElementCount::of::<T>(source.len() / n_pes),
        );
        self.start(call, NonblockingCollective::Alltoall, vectors, |_| ())
    }

    /// Starts to exchange adjacent blocks whose lengths differ, as
    /// [`all_to_all_blocks`](Team::all_to_all_blocks) does (`shmemx_team_alltoallvmem_nb`, whose
    /// caller says where blocks are stored). The result is the number of elements received.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (outbox, inbox) = (shmem.array::<u32>(20), shmem.array::<u32>(20));
    /// let counts = vec![2; shmem.n_pes()];
    /// let received = shmem.world().start_all_to_all_blocks(&outbox, &counts, &inbox);
    /// assert_eq!(shmem::block_on(received), 2 * shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// If `counts` has not one entry for each member, if `source` has fewer elements than the sum
    /// of the counts, or if `source` and `dest` overlap.
    #[doc(alias = "shmemx_team_alltoallvmem_nb")]
    #[track_caller]
    pub fn start_all_to_all_blocks<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        counts: &[usize],
        dest: &'a (impl AsSymSlice<T> + ?Sized),
    ) -> Pending<'a, usize, C> {
        let call = call!("Team::start_all_to_all_blocks");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        require_disjoint(call, dest, source);
        let blocks = self.adjacent_blocks::<T>(call, source.len(), counts);

        let vectors = Vectors::new(call, dest, source, ElementCount::of::<T>(0));
        let collective = NonblockingCollective::AlltoallvPacked {
            max_bytes: bytes_of(dest),
            offsets: blocks.offsets.into(),
            sizes: blocks.sizes.into(),
        };
        self.start(call, collective, vectors, elements_of::<T>)
    }

    /// Starts to combine `source` of all members element by element to `dest` of all members, as
    /// [`all_reduce_into`](Team::all_reduce_into) does (`shmemx_sum_reduce_nb` and others).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (own, most) = (shmem.array::<f64>(8), shmem.array::<f64>(8));
    /// own.fill(0.5);
    /// let request = shmem.world().start_all_reduce_into(&own, &most, shmem::Max);
    /// shmem::block_on(request);
    /// assert_eq!(most.to_vec(), [0.5; 8]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or if `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmemx_sum_reduce_nb")]
    #[doc(alias = "shmemx_max_reduce_nb")]
    #[doc(alias = "shmemx_min_reduce_nb")]
    #[doc(alias = "shmemx_prod_reduce_nb")]
    #[doc(alias = "shmemx_and_reduce_nb")]
    #[doc(alias = "shmemx_or_reduce_nb")]
    #[doc(alias = "shmemx_xor_reduce_nb")]
    #[track_caller]
    pub fn start_all_reduce_into<'a, T: PlainData, O: Operator<T>>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) -> Pending<'a, (), C> {
        let collective = NonblockingCollective::Reduce(O::COMBINE);
        self.combine(
            call!("Team::start_all_reduce_into"),
            collective,
            dest.as_sym_slice(),
            source.as_sym_slice(),
        )
    }

    /// Starts to combine `source` of the members up to this one to `dest`, as
    /// [`inclusive_scan_into`](Team::inclusive_scan_into) does (`shmemx_sum_inscan_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (count, end) = (shmem.boxed(10), shmem.boxed(0));
    /// let request = shmem.world().start_inclusive_scan_into(&count, &end, shmem::Sum);
    /// request.wait();
    /// assert_eq!(end.load(), 10 * (shmem.my_pe() + 1));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or if `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmemx_sum_inscan_nb")]
    #[track_caller]
    pub fn start_inclusive_scan_into<'a, T: PlainData, O: Operator<T>>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) -> Pending<'a, (), C> {
        let collective = NonblockingCollective::Inscan(O::COMBINE);
        self.combine(
            call!("Team::start_inclusive_scan_into"),
            collective,
            dest.as_sym_slice(),
            source.as_sym_slice(),
        )
    }

    /// Starts to combine `source` of the members before this one to `dest`, as
    /// [`exclusive_scan_into`](Team::exclusive_scan_into) does (`shmemx_sum_exscan_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (count, start) = (shmem.boxed(10), shmem.boxed(0));
    /// let request = shmem.world().start_exclusive_scan_into(&count, &start, shmem::Sum);
    /// request.wait();
    /// assert_eq!(start.load(), 10 * shmem.my_pe());
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or if `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmemx_sum_exscan_nb")]
    #[track_caller]
    pub fn start_exclusive_scan_into<'a, T: PlainData, O: Operator<T>>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) -> Pending<'a, (), C> {
        let collective = NonblockingCollective::Exscan(O::COMBINE);
        self.combine(
            call!("Team::start_exclusive_scan_into"),
            collective,
            dest.as_sym_slice(),
            source.as_sym_slice(),
        )
    }

    #[track_caller]
    fn combine<'a, T: PlainData>(
        &self,
        call: Call,
        collective: NonblockingCollective,
        dest: &'a SymSlice<T>,
        source: &'a SymSlice<T>,
    ) -> Pending<'a, (), C> {
        require_same_length(call, dest.len(), source.len());
        let vectors = Vectors::new(call, dest, source, count_of(source));
        self.start(call, collective, vectors, |_| ())
    }

    pub(crate) fn start<'a, R>(
        &self,
        call: Call,
        collective: NonblockingCollective,
        vectors: Vectors,
        result: fn(usize) -> R,
    ) -> Pending<'a, R, C> {
        let team = self.handle();
        let Vectors {
            dest,
            source,
            elements,
        } = vectors;
        // SAFETY: the vectors are in symmetric objects, and the callers have checked their lengths.
        // The result borrows the objects; if it is dropped or leaked, the drop of the objects
        // completes the request.
        let handle = unsafe { nonblocking::start(call, team, collective, dest, source, elements) };
        Pending::collective(handle, result)
    }
}

/// The vectors of a collective in the runtime's form.
pub(crate) struct Vectors {
    dest: *mut u8,
    source: *const u8,
    /// The elements that the collective takes.
    elements: ElementCount,
}

impl Vectors {
    /// Panics if the vectors overlap.
    #[track_caller]
    pub(crate) fn new<T: PlainData>(
        call: Call,
        dest: &SymSlice<T>,
        source: &SymSlice<T>,
        elements: ElementCount,
    ) -> Vectors {
        require_apart(call, dest, source);
        Vectors {
            dest: dest.as_ptr().cast(),
            source: source.as_ptr().cast(),
            elements,
        }
    }
}
