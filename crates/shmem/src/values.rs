//! Collectives on private values, which are passed and returned, and need no symmetric memory. For
//! long vectors, collectives on symmetric memory are faster.

use crate::complex::Complex;
use crate::operator::Operator;
use crate::team::Team;
use crate::threads::Threads;
use bytemuck::{Pod, bytes_of, bytes_of_mut, cast_slice_mut};
use rushmem_runtime::Call;
use rushmem_runtime::private::{self, ReductionKind};

mod sealed {
    pub trait Values {
        fn bytes(&mut self) -> &mut [u8];
    }
}

/// What a reduction or scan of private values (§9.10.9, §9.10.10) combines: a number, an array or a
/// vector of elements. Arrays and vectors are combined element by element, and all members pass the
/// same number of elements.
#[diagnostic::on_unimplemented(
    message = "reductions and scans do not take values of type `{Self}`",
    label = "not a number, an array or a vector",
    note = "a slice is combined by `all_reduce_in_place`, symmetric memory by `all_reduce_into`"
)]
pub trait ReducedValues: sealed::Values {
    /// The type that the operator combines.
    type Element: Pod;
}

impl<T: Pod, const N: usize> sealed::Values for [T; N] {
    fn bytes(&mut self) -> &mut [u8] {
        cast_slice_mut(self.as_mut_slice())
    }
}

impl<T: Pod, const N: usize> ReducedValues for [T; N] {
    type Element = T;
}

impl<T: Pod> sealed::Values for Vec<T> {
    fn bytes(&mut self) -> &mut [u8] {
        cast_slice_mut(self)
    }
}

impl<T: Pod> ReducedValues for Vec<T> {
    type Element = T;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl sealed::Values for $number {
            fn bytes(&mut self) -> &mut [u8] {
                bytes_of_mut(self)
            }
        }
        impl ReducedValues for $number {
            type Element = $number;
        }
    )*};
}
numbers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64> }

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
    pub fn all_reduce<V: ReducedValues, O: Operator<V::Element>>(&self, mut values: V, op: O) -> V {
        let kind = ReductionKind::AllReduce;
        self.combine_bytes(call!("Team::all_reduce"), op, values.bytes(), kind);
        values
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
    pub fn inclusive_scan<V: ReducedValues, O: Operator<V::Element>>(
        &self,
        mut values: V,
        op: O,
    ) -> V {
        let kind = ReductionKind::InclusiveScan;
        self.combine_bytes(call!("Team::inclusive_scan"), op, values.bytes(), kind);
        values
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
    pub fn exclusive_scan<V: ReducedValues, O: Operator<V::Element>>(
        &self,
        mut values: V,
        op: O,
    ) -> V {
        let kind = ReductionKind::ExclusiveScan;
        self.combine_bytes(call!("Team::exclusive_scan"), op, values.bytes(), kind);
        values
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
        let mut values = vec![T::zeroed(); self.n_pes()];
        private::gather(
            call!("Team::all_gather"),
            self.handle(),
            bytes_of(&value),
            cast_slice_mut(&mut values),
        );
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

    /// Combines `values`, which are elements of the operator's type.
    fn combine_bytes<T: Pod, O: Operator<T>>(
        &self,
        call: Call,
        _op: O,
        values: &mut [u8],
        kind: ReductionKind,
    ) {
        private::combine(call, self.handle(), values, O::COMBINE, kind);
    }
}
