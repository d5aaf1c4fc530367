//! Collectives by plans of two levels.
//!
//! Leaders are at other distances than members, so these plans need a flag for each two PEs. The
//! active sets have such flags, and the rule by which they share them holds for teams, too: two PEs
//! make the calls that both take part in in the same order, since no PE ends these collectives
//! before all PEs have entered them. Where threads of a PE may be in several collectives at once,
//! the world alone uses the flags.

use super::EnteredCollective;
use crate::base::process;
use crate::coll::combine::Combine;
use crate::coll::execute::{Execution, Landings, Parts, vector_parts};
use crate::memory::areas::SHORT;
use crate::memory::range::SymmetricRange;
use crate::sync::flags;
use crate::teams::active_set;
use rushmem_collectives::Step;
use rushmem_collectives::two_level::{self, NodeLists};

impl<'a> EnteredCollective<'a> {
    /// Returns who is on which node.
    fn levels(&self) -> &'a NodeLists {
        self.entry.team.levels().expect("two levels are chosen where there are two")
    }

    pub(super) fn sync_over_nodes(&mut self) {
        let (none, landings) = (SymmetricRange::EMPTY, (Landings::Shared, 0));
        let plan = two_level::sync(self.levels());
        self.run_in_pairs(none, none, Parts::Whole(0), None, landings, plan);
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
            self.run_in_pairs(source, dest, whole, op, (Landings::BesideFlags, 0), plan);
        } else if nbytes <= flags::area().areas().landing_bytes() {
            let landings = match self.n() == self.job.n_pes {
                true => (Landings::OfJob, self.next_collective_of_job()),
                false => (Landings::Shared, 0),
            };
            let plan = two_level::all_reduce_piece(levels, landings.0 == Landings::Shared);
            self.run_in_pairs(source, dest, whole, op, landings, plan);
        } else {
            let parts = vector_parts(nbytes);
            let plan = two_level::all_reduce(levels, parts, two_level::lanes(levels, parts));
            self.run_in_pairs(source, dest, Parts::Vector, op, (Landings::Shared, 0), plan);
        }
    }

    /// Carry out a plan on the flags of each two PEs. The accumulator is the destination.
    fn run_in_pairs(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        parts: Parts<'_>,
        combine: Option<&'static Combine>,
        (landings, parity): (Landings, usize),
        plan: impl Iterator<Item = Step>,
    ) {
        if self.shared().is_some() {
            return self.execute(source, dest, parts, dest, combine, (landings, parity), plan);
        }
        self.channels.ring();
        let pairs = active_set::shared(self.job);
        let mut channels = process::lock(&pairs.channels);
        channels.mark(self.entry.number());
        let members = self.members();
        let mut execution = Execution {
            entry: &self.entry,
            job: self.job,
            team: pairs,
            members,
            channels: &mut channels,
            source,
            dest,
            parts,
            accumulator: dest,
            combine,
            landings,
            parity,
        };
        execution.run(plan.map(|step| step.with_peer(|member| members.world_pe(member).0)));
        channels.ring();
    }
}
