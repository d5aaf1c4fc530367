//! Collectives on private values, which are passed and returned, and need no symmetric memory. For
//! long vectors, collectives on symmetric memory are faster.

use crate::collectives::sum;
use crate::operator::{Operator, Sum};
use crate::team::Team;
use crate::thread_level::ThreadLevel;
use bytemuck::{Pod, bytes_of_mut, cast_slice_mut};
use rushmem_runtime::Call;
use rushmem_runtime::combine::Arithmetic;
use rushmem_runtime::private::{self, ReductionKind};

impl<L: ThreadLevel> Team<'_, L> {
    /// Returns the combined values of all members (§9.10.9, of one element).
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// let longest = shmem.world().reduce_value(shmem::Max, 0.1);
    /// ```
    pub fn reduce_value<T: Pod, O: Operator<T>>(&self, _op: O, mut value: T) -> T {
        let (call, team) = (call!("Team::reduce_value"), self.handle());
        private::combine(
            call,
            team,
            bytes_of_mut(&mut value),
            O::COMBINE,
            ReductionKind::AllReduce,
        );
        value
    }

    /// Replaces `values` on each member by the combination of the `values` of all members, element
    /// by element (§9.10.9). All members pass the same number of elements.
    pub fn reduce_in_place<T: Pod, O: Operator<T>>(&self, op: O, values: &mut [T]) {
        self.combine_in_place(call!("Team::reduce_in_place"), op, values);
    }

    /// Works as [`reduce_in_place`](Self::reduce_in_place), but returns the result (§9.10.9).
    pub fn all_reduce<T: Pod, O: Operator<T>>(&self, op: O, values: &[T]) -> Vec<T> {
        let mut result = values.to_vec();
        self.combine_in_place(call!("Team::all_reduce"), op, &mut result);
        result
    }

    /// Returns the sum of the values of the members up to this one (§9.10.10, of one element).
    pub fn inscan_value<T: Pod + Arithmetic>(&self, _op: Sum, mut value: T) -> T {
        let (call, team) = (call!("Team::inscan_value"), self.handle());
        private::combine(
            call,
            team,
            bytes_of_mut(&mut value),
            sum::<T>(),
            ReductionKind::InclusiveScan,
        );
        value
    }

    /// Returns the sum of the values of the members before this one; zero on the first member
    /// (§9.10.10, of one element). If the value is a number of elements, the sum is the index of
    /// this member's first element.
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// let first = shmem.world().exscan_value(shmem::Sum, 10);
    /// assert_eq!(first, 10 * shmem.my_pe());
    /// ```
    pub fn exscan_value<T: Pod + Arithmetic>(&self, _op: Sum, mut value: T) -> T {
        let (call, team) = (call!("Team::exscan_value"), self.handle());
        private::combine(
            call,
            team,
            bytes_of_mut(&mut value),
            sum::<T>(),
            ReductionKind::ExclusiveScan,
        );
        value
    }

    /// Returns the value that member `root` passes; those of the other members are not used
    /// (§9.10.7).
    #[track_caller]
    pub fn broadcast_value<T: Pod>(&self, mut value: T, root: usize) -> T {
        let (call, team) = (call!("Team::broadcast_value"), self.handle());
        private::broadcast(call, team, bytes_of_mut(&mut value), self.root(call, root));
        value
    }

    /// Copies the values of member `root` to `values` of the other members (§9.10.7). All members
    /// pass the same number of elements.
    #[track_caller]
    pub fn broadcast_in_place<T: Pod>(&self, values: &mut [T], root: usize) {
        let (call, team) = (call!("Team::broadcast_in_place"), self.handle());
        private::broadcast(call, team, cast_slice_mut(values), self.root(call, root));
    }

    /// Works as [`reduce_in_place`](Self::reduce_in_place), for the routine `call`.
    pub(crate) fn combine_in_place<T: Pod, O: Operator<T>>(
        &self,
        call: Call,
        _op: O,
        values: &mut [T],
    ) {
        let (team, values) = (self.handle(), cast_slice_mut(values));
        private::combine(call, team, values, O::COMBINE, ReductionKind::AllReduce);
    }
}
