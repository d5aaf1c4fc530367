//! Collectives on private values, which are passed and returned, and need no symmetric memory. For
//! long vectors, collectives on symmetric memory are faster.

use crate::operator::Operator;
use crate::reduced::ReducedValues;
use crate::team::Team;
use crate::threads::Threads;
use bytemuck::{Pod, bytes_of, bytes_of_mut, cast_slice_mut};
use rushmem_runtime::Call;
use rushmem_runtime::private::{self, ReductionKind};

impl<C: Threads> Team<'_, C> {
    /// Returns the combined values of all members (`shmem_sum_reduce` and others, §9.10.9).
    /// Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (me, world) = (shmem.my_pe(), shmem.world());
    /// assert_eq!(world.all_reduce(me, shmem::Max), shmem.n_pes() - 1);
    /// assert_eq!(world.all_reduce([me, me + 1], shmem::Min), [0, 1]);
    /// ```
    #[doc(alias = "shmem_sum_reduce")]
    pub fn all_reduce<V: ReducedValues, O: Operator<V::Element>>(&self, values: V, op: O) -> V {
        let call = call!("Team::all_reduce");
        self.combine_values(call, values, op, ReductionKind::AllReduce)
    }

    /// Returns the values of all members, combined by `op` in the order of their numbers: a
    /// reduction with an element type and an operator of the program. `op` is associative, but
    /// need not be commutative, and is the same on all members. Collective over the team.
    ///
    /// Each member gets the values of all others, as by [`all_gather`](Self::all_gather), and
    /// combines them itself. So for many PEs and large values, an [`Operator`] of the library is
    /// faster, where there is one.
    ///
    /// ```
    /// #[derive(Clone, Copy, Debug, PartialEq, shmem::Element)]
    /// #[repr(C)]
    /// struct Spread {
    ///     least: f64,
    ///     most: f64,
    /// }
    ///
    /// let shmem = shmem::init();
    /// let x = shmem.my_pe() as f64;
    /// let all = shmem.world().all_reduce_with(Spread { least: x, most: x }, |a, b| Spread {
    ///     least: a.least.min(b.least),
    ///     most: a.most.max(b.most),
    /// });
    /// assert_eq!(all, Spread { least: 0.0, most: shmem.n_pes() as f64 - 1.0 });
    /// ```
    #[doc(alias = "reduce_with")]
    pub fn all_reduce_with<T: Pod>(&self, value: T, op: impl FnMut(T, T) -> T) -> T {
        let values = self.values_of_all(call!("Team::all_reduce_with"), value);
        let combined = values.into_iter().reduce(op);
        combined.expect("a team has this member")
    }

    /// Returns the combined values of all members on member `root`, and `None` on the others
    /// (`shmemx_sum_reduce_to` and others, an extension). Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let sum = shmem.world().reduce(vec![1, shmem.my_pe()], shmem::Sum, 0);
    /// assert_eq!(sum.is_some(), shmem.my_pe() == 0);
    /// assert!(sum.is_none_or(|sum| sum[0] == shmem.n_pes()));
    /// ```
    ///
    /// # Panics
    /// If there is no such member.
    #[doc(alias = "shmemx_sum_reduce_to")]
    #[doc(alias = "reduce_into_root")]
    #[track_caller]
    pub fn reduce<V: ReducedValues, O: Operator<V::Element>>(
        &self,
        values: V,
        _op: O,
        root: usize,
    ) -> Option<V> {
        let call = call!("Team::reduce");
        let root = self.root(call, root);
        let mut combined = values.into_combined();
        let bytes = V::bytes(&mut combined);
        private::reduce(call, self.handle(), bytes, O::COMBINE, root);
        (self.my_pe() == root as usize).then(|| V::of_combined(combined))
    }

    /// Replaces `values` on each member by the combination of the `values` of all members, element
    /// by element (§9.10.9). Collective over the team: all members pass the same number of
    /// elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut counts = [1, shmem.my_pe()];
    /// shmem.world().all_reduce_in_place(&mut counts, shmem::Sum);
    /// assert_eq!(counts[0], shmem.n_pes());
    /// ```
    pub fn all_reduce_in_place<T: Pod, O: Operator<T>>(&self, values: &mut [T], op: O) {
        self.combine_in_place(call!("Team::all_reduce_in_place"), op, values);
    }

    /// Returns the combined values of the members up to this one, in the order of their numbers
    /// (`shmem_sum_inscan`, §9.10.10). Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let end = shmem.world().inclusive_scan(10, shmem::Sum);
    /// assert_eq!(end, 10 * (shmem.my_pe() + 1));
    /// ```
    #[doc(alias = "shmem_sum_inscan")]
    #[doc(alias = "scan")]
    pub fn inclusive_scan<V: ReducedValues, O: Operator<V::Element>>(&self, values: V, op: O) -> V {
        let call = call!("Team::inclusive_scan");
        self.combine_values(call, values, op, ReductionKind::InclusiveScan)
    }

    /// Returns the combined values of the members before this one; on the first member the
    /// operator's identity, as [`exclusive_scan_into`](Self::exclusive_scan_into) stores it
    /// (`shmem_sum_exscan`, §9.10.10). Collective over the team. If the value is a number of
    /// elements, the sum is the index of this member's first element.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let first = shmem.world().exclusive_scan(10, shmem::Sum);
    /// assert_eq!(first, 10 * shmem.my_pe());
    /// ```
    #[doc(alias = "shmem_sum_exscan")]
    pub fn exclusive_scan<V: ReducedValues, O: Operator<V::Element>>(&self, values: V, op: O) -> V {
        let call = call!("Team::exclusive_scan");
        self.combine_values(call, values, op, ReductionKind::ExclusiveScan)
    }

    /// Returns the value that member `root` passes; those of the other members are not used
    /// (`shmem_broadcast`, §9.10.7). Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let chosen = if shmem.my_pe() == 0 { 17 } else { 0 };
    /// assert_eq!(shmem.world().broadcast(chosen, 0), 17);
    /// ```
    ///
    /// # Panics
    /// If there is no such member.
    #[doc(alias = "shmem_broadcast")]
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, mut value: T, root: usize) -> T {
        let call = call!("Team::broadcast");
        let root = self.root(call, root);
        private::broadcast(call, self.handle(), bytes_of_mut(&mut value), root);
        value
    }

    /// Copies the values of member `root` to `values` of the other members (`shmem_broadcast`,
    /// §9.10.7). Collective over the team: all members pass the same number of elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut settings = if shmem.my_pe() == 0 { [3, 5] } else { [0, 0] };
    /// shmem.world().broadcast_in_place(&mut settings, 0);
    /// assert_eq!(settings, [3, 5]);
    /// ```
    ///
    /// # Panics
    /// If there is no such member.
    #[track_caller]
    pub fn broadcast_in_place<T: Pod>(&self, values: &mut [T], root: usize) {
        let call = call!("Team::broadcast_in_place");
        let root = self.root(call, root);
        private::broadcast(call, self.handle(), cast_slice_mut(values), root);
    }

    /// Returns the values of all members, in the order of their numbers (`shmem_fcollect`,
    /// §9.10.8). Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let squares = shmem.world().all_gather(shmem.my_pe() * shmem.my_pe());
    /// assert!(squares.into_iter().eq((0..shmem.n_pes()).map(|pe| pe * pe)));
    /// ```
    #[doc(alias = "shmem_fcollect")]
    pub fn all_gather<T: Pod>(&self, value: T) -> Vec<T> {
        self.values_of_all(call!("Team::all_gather"), value)
    }

    /// Carries out [`all_gather`](Self::all_gather) for the routine `call`.
    pub(crate) fn values_of_all<T: Pod>(&self, call: Call, value: T) -> Vec<T> {
        let mut values = vec![T::zeroed(); self.n_pes()];
        let all = cast_slice_mut(&mut values);
        private::gather(call, self.handle(), bytes_of(&value), all);
        values
    }

    /// Carries out [`all_reduce_in_place`](Self::all_reduce_in_place) for the routine `call`.
    pub(crate) fn combine_in_place<T: Pod, O: Operator<T>>(
        &self,
        call: Call,
        op: O,
        values: &mut [T],
    ) {
        self.combine_bytes(call, op, cast_slice_mut(values), ReductionKind::AllReduce);
    }

    fn combine_values<V: ReducedValues, O: Operator<V::Element>>(
        &self,
        call: Call,
        values: V,
        op: O,
        kind: ReductionKind,
    ) -> V {
        let mut combined = values.into_combined();
        self.combine_bytes(call, op, V::bytes(&mut combined), kind);
        V::of_combined(combined)
    }

    /// Combines `values`, which are elements of the operator's type.
    fn combine_bytes<T, O: Operator<T>>(
        &self,
        call: Call,
        _op: O,
        values: &mut [u8],
        kind: ReductionKind,
    ) {
        private::combine(call, self.handle(), values, O::COMBINE, kind);
    }
}
