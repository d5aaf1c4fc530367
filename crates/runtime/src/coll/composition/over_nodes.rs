//! Collectives by plans of two levels.
//!
//! Leaders are at other distances than members, so these plans use the flags of each two PEs. Where
//! threads of a PE may be in several collectives at once, the world alone uses them.

use crate::coll::executor::{Executor, Parts, PlanArrays, ReceiveBuffers, Vectors, vector_parts};
use crate::memory::areas::SHORT;
use crate::net::flags;
use rushmem_collectives::two_level::{self, NodeLists};

impl<'a> Executor<'a> {
    /// Returns the node of each member.
    fn levels(&self) -> &'a NodeLists {
        self.collective.team.levels().expect("two levels are chosen where there are two")
    }

    pub(super) fn sync_over_nodes(&mut self) {
        self.execute(&PlanArrays::NONE, two_level::sync(self.levels()));
    }

    /// Combines vectors element by element over all members, to all.
    pub(in crate::coll) fn all_reduce_over_nodes(&mut self, vectors: Vectors) {
        let (levels, nbytes) = (self.levels(), vectors.nbytes());
        let Vectors { source, dest, op } = vectors;
        let whole = PlanArrays::of(source, dest, Parts::Whole(nbytes));
        let whole = PlanArrays { accumulator: dest, combine: Some(op), ..whole };
        if nbytes <= SHORT {
            if !dest.starts_with(source) {
                source.copy_here(dest);
            }
            let plan = two_level::all_reduce_short(levels);
            self.execute(
                &PlanArrays { receive_buffers: ReceiveBuffers::BesideFlags, ..whole },
                plan,
            );
        } else if nbytes <= flags::area().areas().receive_buffer_bytes() {
            let (receive_buffers, parity) = match self.n() == self.job.n_pes {
                true => (ReceiveBuffers::OfJob, self.next_collective_of_job()),
                false => (ReceiveBuffers::Shared, 0),
            };
            let plan =
                two_level::all_reduce_piece(levels, receive_buffers == ReceiveBuffers::Shared);
            self.execute(&PlanArrays { receive_buffers, parity, ..whole }, plan);
        } else {
            let parts = vector_parts(nbytes);
            let plan = two_level::all_reduce(levels, parts, two_level::lanes(levels, parts));
            self.execute(&PlanArrays { parts: Parts::Vector, ..whole }, plan);
        }
    }
}
