//! The all-to-all of short blocks, which go on together in rounds.
//!
//! Peers write to landings alone, so the source may be the destination.

use super::EnteredCollective;
use crate::coll::execute::{Landings, Parts};
use crate::memory::areas::MIN_LANDING;
use crate::memory::range::SymmetricRange;
use crate::sync::flags;
use rushmem_collectives::bruck;

impl EnteredCollective<'_> {
    /// Block `l` of `source` of member `k`, of `nbytes` bytes, becomes block `k` of `dest` of
    /// member `l`.
    pub(crate) fn all_to_all_in_rounds(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nbytes: usize,
    ) {
        self.check_apart(source, dest);
        let (n, me) = (self.n(), self.me());
        let landings = match n == self.job.n_pes {
            true => (Landings::OfJob, self.next_collective_of_job()),
            false => (Landings::Shared, 0),
        };
        if landings.0 == Landings::Shared {
            let none = SymmetricRange::EMPTY;
            self.run(none, none, Parts::Whole(0), bruck::all_to_all_entry(n, me));
        }
        let internal = flags::area();
        let set =
            self.entry.team.landings(self.job).expect("rounds are chosen where there are landings");
        let packed = internal.range(internal.areas().packed(set), MIN_LANDING);
        let plan = bruck::all_to_all(n, me);
        self.execute(source, dest, Parts::Equal(nbytes), packed, None, landings, plan);
    }
}
