//! Collectives whose result one member gets, or of which each member gets a block (extensions), and
//! their non-blocking forms.
//!
//! As of other collectives, all members call with views of the same elements of the same objects,
//! also members of whose `dest` or `source` nothing is written or read.
#![allow(unsafe_code)]

use crate::collectives::{count_of, require_apart, require_disjoint, wrong_length};
use crate::element::PlainData;
use crate::operator::Operator;
use crate::pending::Pending;
use crate::request::Vectors;
use crate::rma::require_same_length;
use crate::symmetric::view::{AsSymSlice, SymSlice};
use crate::team::Team;
use crate::threads::Threads;
use rushmem_runtime::nonblocking::NonblockingCollective;
use rushmem_runtime::{Call, gather, reductions};

impl<C: Threads> Team<'_, C> {
    /// Combines `source` of all members element by element, and stores the result in `dest` of
    /// member `root` (`shmemx_sum_reduce_to` and others, an extension). `dest` of the others is not
    /// written.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (own, most) = (shmem.array::<f64>(8), shmem.array::<f64>(8));
    /// own.fill(0.5);
    /// shmem.world().reduce_into(&own, &most, shmem::Max, 0);
    /// assert_eq!(most.to_vec(), [if shmem.my_pe() == 0 { 0.5 } else { 0.0 }; 8]);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if the lengths differ, or if `source` and `dest` overlap but are
    /// not the same elements.
    #[doc(alias = "shmemx_sum_reduce_to")]
    #[track_caller]
    pub fn reduce_into<T: PlainData, O: Operator<T>>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        _op: O,
        root: usize,
    ) {
        let call = call!("Team::reduce_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        require_same_length(call, dest.len(), source.len());
        require_apart(call, dest, source);
        let root = self.root(call, root) as i32;

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects with the same number of
        // elements, as just checked, which have the type that `O` combines.
        unsafe { reductions::reduce_to(call, team, to, from, source.len(), O::COMBINE, root) };
    }

    /// Combines block `k` of `source` of all members element by element, and stores the result in
    /// `dest` of member `k` (`shmemx_sum_reduce_scatter` and others, an extension). `source` has a
    /// block for each member, of the length of `dest`.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let n = shmem.n_pes();
    /// let (row, column) = (shmem.array::<usize>(n), shmem.boxed(0));
    /// row.fill(shmem.my_pe());
    /// shmem.world().reduce_scatter_into(&row, &column, shmem::Max);
    /// assert_eq!(column.load(), n - 1);
    /// ```
    ///
    /// # Panics
    /// If `source` has not the length of a block for each member, or if `source` and `dest`
    /// overlap.
    #[doc(alias = "shmemx_sum_reduce_scatter")]
    #[track_caller]
    pub fn reduce_scatter_into<T: PlainData, O: Operator<T>>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) {
        let call = call!("Team::reduce_scatter_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.require_blocks(call, source, dest);

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects, and `source` has a block of
        // the length of `dest` for each member, as just checked. The elements have the type that
        // `O` combines.
        unsafe { reductions::reduce_scatter(call, team, to, from, dest.len(), O::COMBINE) };
    }

    /// Copies `source` of all members, one after the other, to `dest` of member `root`
    /// (`shmemx_gather`, an extension). `dest` has a block of the length of `source` for each
    /// member; `dest` of the others is not written.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (mine, all) = (shmem.boxed(shmem.my_pe()), shmem.array(shmem.n_pes()));
    /// shmem.world().gather_into(&mine, &all, 0);
    /// assert!(shmem.my_pe() != 0 || all.to_vec().into_iter().eq(0..shmem.n_pes()));
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if `dest` has not the length of a block for each member, or if
    /// `source` and `dest` overlap.
    #[doc(alias = "shmemx_gather")]
    #[track_caller]
    pub fn gather_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        root: usize,
    ) {
        let call = call!("Team::gather_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.require_blocks(call, dest, source);
        let root = self.root(call, root) as i32;

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects, and `dest` has a block of the
        // length of `source` for each member, as just checked.
        unsafe { gather::gather(call, team, to, from, count_of(source), root) };
    }

    /// Copies block `k` of `source` of member `root` to `dest` of member `k` (`shmemx_scatter`, an
    /// extension). `source` has a block of the length of `dest` for each member; `source` of the
    /// others is not read.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (all, mine) = (shmem.array::<usize>(shmem.n_pes()), shmem.boxed(0));
    /// all.fill(shmem.my_pe() + 5);
    /// shmem.world().scatter_into(&all, &mine, 0);
    /// assert_eq!(mine.load(), 5);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if `source` has not the length of a block for each member, or if
    /// `source` and `dest` overlap.
    #[doc(alias = "shmemx_scatter")]
    #[track_caller]
    pub fn scatter_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        root: usize,
    ) {
        let call = call!("Team::scatter_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.require_blocks(call, source, dest);
        let root = self.root(call, root) as i32;

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects, and `source` has a block of
        // the length of `dest` for each member, as just checked.
        unsafe { gather::scatter(call, team, to, from, count_of(dest), root) };
    }

    /// Starts to copy `source` of all members to `dest` of member `root`, as
    /// [`gather_into`](Team::gather_into) does (`shmemx_gather_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (mine, all) = (shmem.boxed(7), shmem.array(shmem.n_pes()));
    /// shmem.world().start_gather_into(&mine, &all, 0).wait();
    /// assert!(shmem.my_pe() != 0 || all.to_vec().iter().all(|&x| x == 7));
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if `dest` has not the length of a block for each member, or if
    /// `source` and `dest` overlap.
    #[doc(alias = "shmemx_gather_nb")]
    #[track_caller]
    pub fn start_gather_into<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        root: usize,
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_gather_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.require_blocks(call, dest, source);

        let vectors = Vectors::new(call, dest, source, count_of(source));
        let root = self.root(call, root) as i32;
        self.start(
            call,
            NonblockingCollective::Gather { root },
            vectors,
            |_| (),
        )
    }

    /// Starts to copy block `k` of `source` of member `root` to `dest` of member `k`, as
    /// [`scatter_into`](Team::scatter_into) does (`shmemx_scatter_nb`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (all, mine) = (shmem.array::<usize>(shmem.n_pes()), shmem.boxed(0));
    /// all.fill(7);
    /// shmem.world().start_scatter_into(&all, &mine, 0).wait();
    /// assert_eq!(mine.load(), 7);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if `source` has not the length of a block for each member, or if
    /// `source` and `dest` overlap.
    #[doc(alias = "shmemx_scatter_nb")]
    #[track_caller]
    pub fn start_scatter_into<'a, T: PlainData>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        root: usize,
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_scatter_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.require_blocks(call, source, dest);

        let vectors = Vectors::new(call, dest, source, count_of(dest));
        let root = self.root(call, root) as i32;
        self.start(
            call,
            NonblockingCollective::Scatter { root },
            vectors,
            |_| (),
        )
    }

    /// Starts to combine `source` of all members to `dest` of member `root`, as
    /// [`reduce_into`](Team::reduce_into) does (`shmemx_sum_reduce_to_nb` and others).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (own, sum) = (shmem.boxed(1), shmem.boxed(0));
    /// shmem.world().start_reduce_into(&own, &sum, shmem::Sum, 0).wait();
    /// assert_eq!(sum.load(), if shmem.my_pe() == 0 { shmem.n_pes() } else { 0 });
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if the lengths differ, or if `source` and `dest` overlap but are
    /// not the same elements.
    #[doc(alias = "shmemx_sum_reduce_to_nb")]
    #[track_caller]
    pub fn start_reduce_into<'a, T: PlainData, O: Operator<T>>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        _op: O,
        root: usize,
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_reduce_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        require_same_length(call, dest.len(), source.len());

        let vectors = Vectors::new(call, dest, source, count_of(source));
        let collective = NonblockingCollective::ReduceTo {
            op: O::COMBINE,
            root: self.root(call, root) as i32,
        };
        self.start(call, collective, vectors, |_| ())
    }

    /// Starts to combine block `k` of `source` of all members to `dest` of member `k`, as
    /// [`reduce_scatter_into`](Team::reduce_scatter_into) does (`shmemx_sum_reduce_scatter_nb` and
    /// others).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let n = shmem.n_pes();
    /// let (row, column) = (shmem.array::<usize>(n), shmem.boxed(0));
    /// row.fill(1);
    /// shmem.world().start_reduce_scatter_into(&row, &column, shmem::Sum).wait();
    /// assert_eq!(column.load(), n);
    /// ```
    ///
    /// # Panics
    /// If `source` has not the length of a block for each member, or if `source` and `dest`
    /// overlap.
    #[doc(alias = "shmemx_sum_reduce_scatter_nb")]
    #[track_caller]
    pub fn start_reduce_scatter_into<'a, T: PlainData, O: Operator<T>>(
        &self,
        source: &'a (impl AsSymSlice<T> + ?Sized),
        dest: &'a (impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) -> Pending<'a, (), C> {
        let call = call!("Team::start_reduce_scatter_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.require_blocks(call, source, dest);

        let vectors = Vectors::new(call, dest, source, count_of(dest));
        let collective = NonblockingCollective::ReduceScatter(O::COMBINE);
        self.start(call, collective, vectors, |_| ())
    }

    /// Panics unless `blocks` consists of a block of the length of `block` for each member, and has
    /// no element in common with that.
    #[track_caller]
    fn require_blocks<T: PlainData>(&self, call: Call, blocks: &SymSlice<T>, block: &SymSlice<T>) {
        let needed = block.len().saturating_mul(self.n_pes());
        if blocks.len() != needed {
            wrong_length(call, blocks.len(), needed);
        }
        require_disjoint(call, block, blocks);
    }
}
