//! Collectives by plans of two levels.
//!
//! Leaders are at other distances than members, so these plans use the flags of each two PEs. Where
//! threads of a PE may be in several collectives at once, the world alone uses them.

use super::EnteredCollective;
use crate::coll::combine::Combine;
use crate::coll::execute::{Landings, Parts, vector_parts};
use crate::memory::areas::SHORT;
use crate::memory::range::SymmetricRange;
use crate::sync::flags;
use rushmem_collectives::two_level::{self, NodeLists};

impl<'a> EnteredCollective<'a> {
    /// Returns who is on which node.
    fn levels(&self) -> &'a NodeLists {
        self.entry.team.levels().expect("two levels are chosen where there are two")
    }

    pub(super) fn sync_over_nodes(&mut self) {
        let none = SymmetricRange::EMPTY;
        let plan = two_level::sync(self.levels());
        self.run(none, none, Parts::Whole(0), plan);
    }

    /// Combine vectors of `nbytes` bytes element by element over all members, to all.
    pub(in crate::coll) fn all_reduce_over_nodes(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nbytes: usize,
        op: &'static Combine,
    ) {
        let levels = self.levels();
        let (source, dest) = (source.part(0, nbytes), dest.part(0, nbytes));
        let (op, whole) = (Some(op), Parts::Whole(nbytes));
        if nbytes <= SHORT {
            if !dest.starts_with(source) {
                source.copy_here(dest);
            }
            let plan = two_level::all_reduce_short(levels);
            self.execute(source, dest, whole, dest, op, (Landings::BesideFlags, 0), plan);
        } else if nbytes <= flags::area().areas().landing_bytes() {
            let landings = match self.n() == self.job.n_pes {
                true => (Landings::OfJob, self.next_collective_of_job()),
                false => (Landings::Shared, 0),
            };
            let plan = two_level::all_reduce_piece(levels, landings.0 == Landings::Shared);
            self.execute(source, dest, whole, dest, op, landings, plan);
        } else {
            let parts = vector_parts(nbytes);
            let plan = two_level::all_reduce(levels, parts, two_level::lanes(levels, parts));
            self.execute(source, dest, Parts::Vector, dest, op, (Landings::Shared, 0), plan);
        }
    }
}
