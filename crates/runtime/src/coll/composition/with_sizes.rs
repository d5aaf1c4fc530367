//! Blocks of different sizes, of which the short ones are gathered together with the sizes.
//!
//! Each member fills a slot of a vector. On a node they exchange these in lines. Otherwise the
//! vector is zero elsewhere; the union of all vectors is a reduction, whose messages need no answer
//! before they are sent.

use crate::coll::combine::Combine;
use crate::coll::executor::{Executor, Vectors};
use crate::memory::areas::MIN_RECEIVE_BUFFER;
use crate::memory::range::SymmetricRange;
use crate::net::flags;
use rushmem_collectives::{LINE_BYTES, pairwise};

/// Bytes of the size of a block.
const WORD: usize = size_of::<u64>();
/// Most bytes of a slot: a size, and a block that the packets of a network can hold.
const SLOT: usize = WORD + 512;

/// The sizes of all members' blocks, and the blocks that fit a slot.
pub(crate) struct GatheredSlots {
    slots: SymmetricRange,
    slot: usize,
}

impl GatheredSlots {
    /// Returns what the members gave as sizes.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let starts = (0..self.slots.nbytes()).step_by(self.slot);
        starts.map(|at| self.slots.part(at, WORD).first_word()).collect()
    }

    /// Returns the longest block that fits.
    pub(crate) fn max_block(&self) -> usize {
        self.slot - WORD
    }

    /// Returns the block of a member, of `nbytes` bytes.
    pub(crate) fn block(&self, member: usize, nbytes: usize) -> SymmetricRange {
        self.slots.part(member * self.slot + WORD, nbytes)
    }
}

impl Executor<'_> {
    /// Gathers a `size` of each member, and the blocks `source` that fit. `None` if members share
    /// memory but have no lines, or if there is no room for sizes and blocks.
    pub(crate) fn gather_slots(
        &mut self,
        size: u64,
        source: SymmetricRange,
    ) -> Option<GatheredSlots> {
        static UNION: Combine = Combine::or::<u64>();
        let (n, me) = (self.n() as usize, self.me() as usize);
        let facts = self.facts();
        let slot = match facts.lines {
            true => LINE_BYTES,
            false => SLOT.min(MIN_RECEIVE_BUFFER / n) / WORD * WORD,
        };
        if facts.one_node() && !facts.lines || !facts.has_receive_buffers() || slot <= WORD {
            return None;
        }
        let internal = flags::area();
        let set =
            self.collective.team.receive_buffers(self.job).expect("there are receive buffers");
        let slots = internal.range(internal.areas().packed(set), n * slot);
        if !facts.lines {
            slots.clear();
        }
        let own = slots.part(me * slot, slot);
        own.part(0, WORD).write(&size.to_ne_bytes());
        let gathered = GatheredSlots { slots, slot };
        if source.nbytes() <= gathered.max_block() {
            source.copy_here(gathered.block(me, source.nbytes()));
        }
        if facts.lines {
            let plan = pairwise::all_gather_in_lines(self.n(), self.me());
            self.exchange_in_lines((own, slots), slot, plan);
        } else {
            self.all_reduce_by_doubling(Vectors { source: slots, dest: slots, op: &UNION });
        }
        Some(gathered)
    }
}
