//! The all-to-all of short blocks, which go on together in rounds.
//!
//! Peers write to landings alone, so the source may be the destination.

use crate::coll::executor::{Executor, Landings, Parts, PlanArrays};
use crate::memory::areas::MIN_LANDING;
use crate::memory::range::SymmetricRange;
use crate::sync::flags;
use rushmem_collectives::bruck;

impl Executor<'_> {
    /// Block `l` of `source` of member `k`, of `nbytes` bytes, becomes block `k` of `dest` of
    /// member `l`.
    pub(crate) fn all_to_all_in_rounds(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nbytes: usize,
    ) {
        let (n, me) = (self.n(), self.me());
        let (landings, parity) = match n == self.job.n_pes {
            true => (Landings::OfJob, self.next_collective_of_job()),
            false => (Landings::Shared, 0),
        };
        if landings == Landings::Shared {
            self.execute(&PlanArrays::NONE, bruck::all_to_all_entry(n, me));
        }
        let (internal, set) = (flags::area(), self.collective.team.landings(self.job));
        let set = set.expect("rounds are chosen where there are landings");
        let accumulator = internal.range(internal.areas().packed(set), MIN_LANDING);
        let arrays = PlanArrays::of(source, dest, Parts::Equal(nbytes));
        let arrays = PlanArrays { accumulator, landings, parity, ..arrays };
        self.execute(&arrays, bruck::all_to_all(n, me));
    }
}
