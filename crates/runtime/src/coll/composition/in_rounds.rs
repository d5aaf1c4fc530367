//! The all-to-all of short blocks, which go on together in rounds.
//!
//! Peers write to receive buffers alone, so the source may be the destination.

use crate::coll::executor::{Executor, Parts, PlanArrays, ReceiveBuffers};
use crate::memory::areas::MIN_RECEIVE_BUFFER;
use crate::memory::range::SymmetricRange;
use crate::net::flags;
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
        let (receive_buffers, parity) = match n == self.job.n_pes {
            true => (ReceiveBuffers::OfJob, self.next_collective_of_job()),
            false => (ReceiveBuffers::Shared, 0),
        };
        if receive_buffers == ReceiveBuffers::Shared {
            self.execute(&PlanArrays::NONE, bruck::all_to_all_entry(n, me));
        }
        let (internal, set) = (flags::area(), self.collective.team.receive_buffers(self.job));
        let set = set.expect("rounds are chosen where there are receive buffers");
        let accumulator = internal.range(internal.areas().packed(set), MIN_RECEIVE_BUFFER);
        let arrays = PlanArrays::of(source, dest, Parts::Equal(nbytes));
        let arrays = PlanArrays { accumulator, receive_buffers, parity, ..arrays };
        self.execute(&arrays, bruck::all_to_all(n, me));
    }
}
