//! Composes collectives from plans: chooses the plans by facts that are the same on all members,
//! and does what is needed between them, such as copies and syncs. The routines of the standard are
//! in `collectives`.

use crate::coll::combine::Combine;
use crate::coll::executor::{Executor, Parts, PlanArrays, ReceiveBuffers, Vectors};
use rushmem_collectives::choice::{ChoiceFacts, SyncAlgorithm};
use rushmem_collectives::{
    Buffer, LINE_BYTES, Span, Step, binomial, bruck, dissemination, pairwise, two_level,
};
use rushmem_pe::digest::digest;
use rushmem_pe::memory::areas::MIN_RECEIVE_BUFFER;
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::Pe;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of bits that [`Executor::sync_comparing`] compares.
pub(crate) const COMPARED_BITS: u32 = 48;

impl Executor<'_> {
    /// Returns the `word` that each member passes, in the order of the team.
    pub(crate) fn gather(&mut self, word: u64) -> Vec<u64> {
        if self.facts().one_node() || !self.facts().pair_flags {
            return self.gather_published(word);
        }

        let n = self.n();
        let me = self.me();
        let internal = &self.links.area;
        let table_offset = internal.areas().table();

        // Peers write to the table of this PE, which it may still read for the collective before,
        // so they wait until it has entered.
        self.execute(&PlanArrays::none(), bruck::entry(n, me));
        internal.write_own(table_offset + me as usize * WORD, &[word]);

        let table = internal.range(table_offset, n as usize * WORD);
        let own = table.part(me as usize * WORD, WORD);
        let arrays = PlanArrays::of(own, table, Parts::Equal(WORD));
        self.execute(&arrays, bruck::all_gather(n, me));

        let mut words = vec![0; n as usize];
        internal.read(table_offset, &mut words);
        words
    }

    /// Gathers without the flags of pairs: each member publishes its word, syncs, and reads the
    /// words of the others.
    fn gather_published(&mut self, word: u64) -> Vec<u64> {
        let internal = &self.links.area;
        let published = self.signals.next_shown();
        internal.write_own(published, &[word]);
        self.sync();
        internal.words_of(self.members().world_pes(), published)
    }

    /// Syncs, and compares the low [`COMPARED_BITS`] of a value with those of the next member that
    /// shares memory with this one. If the members of a node have different values, at least one of
    /// them sees a difference. Returns that member and its value if it is in the same collective
    /// and its value differs; `None` also if no other member shares memory with this one.
    pub(crate) fn sync_comparing(&mut self, value: u64) -> Option<(Pe, u64)> {
        // The upper bits tell in which collective the member has published its value.
        let internal = &self.links.area;
        let published = self.signals.next_shown();
        let word = self.signals.entered() << COMPARED_BITS | value & ((1 << COMPARED_BITS) - 1);
        internal.write_own(published, &[word]);
        self.sync();

        let n = self.n();
        let me = self.me();
        let mut others = (me + 1..n)
            .chain(0..me)
            .map(|member| self.members().world_pe(member));
        let next = others.find(|pe| internal.is_mapped(*pe))?;

        let difference = internal.words_of(std::iter::once(next), published)[0] ^ word;
        let is_same_collective = difference >> COMPARED_BITS == 0;
        if is_same_collective && difference != 0 {
            Some((next, value ^ difference))
        } else {
            None
        }
    }

    /// Keeps the senders of a broadcast on an active set from running ahead of their receivers: a
    /// sender waits until its receivers have entered the broadcast. If this PE's last broadcast had
    /// the same set and root, the wait is made in the next call on the set instead, so that a
    /// program may alternate between two destinations. `last_broadcast` has a digest of the set and
    /// the root of that broadcast.
    #[cold]
    pub(crate) fn limit_lead(&mut self, last_broadcast: &AtomicU64, root: u32) {
        for step in binomial::arrivals(self.n(), self.me(), root) {
            if let Step::Signal { peer } = step {
                self.signal(peer);
            }
        }

        let this_broadcast = digest(&[self.collective.team.handle().0 as u64, root.into()]);
        self.signals.unconfirmed_root = Some(root);
        if last_broadcast.swap(this_broadcast, Relaxed) != this_broadcast {
            self.await_receivers();
        }
    }

    /// Waits until the receivers of this PE in the last broadcast on the set have entered that
    /// broadcast, unless a call has waited for this before.
    pub(crate) fn await_receivers(&mut self) {
        let Some(root) = self.signals.unconfirmed_root.take() else {
            return;
        };

        for step in binomial::arrivals(self.n(), self.me(), root) {
            if let Step::Wait { peer } = step {
                self.wait(peer);
            }
        }
    }

    /// Carries out a plan that copies parts of each member's `source` to `dest`. If both are the
    /// same array (`in_place`), the plan reads a copy of `source`, and all members sync between the
    /// copy and the plan, in which peers write to `dest`.
    pub(crate) fn exchange(
        &mut self,
        arrays: PlanArrays<'_>,
        in_place: bool,
        plan: impl Iterator<Item = Step>,
    ) {
        if in_place {
            arrays.source.with_copy(|source| {
                self.sync();
                self.execute(&PlanArrays { source, ..arrays }, plan);
            });
        } else {
            self.execute(&arrays, plan);
        }
    }

    pub(crate) fn sync(&mut self) {
        self.sync_by(self.choose(0));
    }

    /// Syncs by an algorithm that uses flags of the team, not those of pairs of PEs.
    pub(crate) fn sync_without_pair_flags(&mut self) {
        let facts = ChoiceFacts {
            pair_flags: false,
            ..self.facts()
        };
        self.sync_by(self.links.job.algorithms.table().choose(0, || facts));
    }

    #[inline(always)]
    fn sync_by(&mut self, algorithm: SyncAlgorithm) {
        match algorithm {
            SyncAlgorithm::Dissemination => self.disseminate(),
            SyncAlgorithm::TwoLevel => {
                self.execute(&PlanArrays::none(), two_level::sync(self.levels()));
            }
            algorithm => self.execute(&PlanArrays::none(), algorithm.plan(self.n(), self.me())),
        }
    }

    /// Syncs by dissemination. Does not call `execute`, whose overhead exceeds the time of the
    /// signals.
    fn disseminate(&mut self) {
        dissemination::rounds(self.n(), self.me()).for_each(|(receiver, sender)| {
            #[cfg(test)]
            crate::tests::kit::lateness::before_step();
            self.signals
                .signal_and_wait(&self.collective, receiver, sender);
        });
    }

    /// Exchanges blocks of `nbytes` bytes in the lines of pairs of PEs. Carries out the steps of
    /// `plan` without `execute`, whose overhead exceeds the time of such a message.
    pub(crate) fn exchange_in_lines(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nbytes: usize,
        plan: impl Iterator<Item = Step>,
    ) {
        let block =
            |array: SymmetricRange, span: Span| array.part(span.first as usize * nbytes, nbytes);

        // The message that the last wait has received.
        let mut line = SymmetricRange::empty();
        plan.for_each(|step| match step {
            Step::Put { peer, from, .. } => self.signals.put_line(peer.index, block(source, from)),
            Step::Wait { peer } => {
                line = self.signals.wait_for_line(&self.collective, peer.index);
            }
            Step::Copy { from, to, .. } => match from.buffer {
                Buffer::Source => block(source, from).copy_here(block(dest, to)),
                _ => line.part(0, nbytes).copy_here(block(dest, to)),
            },
            _ => unreachable!("an exchange in lines combines nothing"),
        });
    }
}

impl Executor<'_> {
    /// All-to-all of short blocks: block `l` of `source` of member `k`, of `nbytes` bytes, becomes
    /// block `k` of `dest` of member `l`. In each round a member forwards several blocks together.
    /// Peers write only to receive buffers, so the source may be the destination.
    pub(crate) fn all_to_all_in_rounds(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nbytes: usize,
    ) {
        let n = self.n();
        let me = self.me();

        // A member packs the blocks that it forwards in a buffer to which no peer writes meanwhile.
        let set = self.collective.team.receive_buffers();
        let area = &self.links.area;
        let packed = area.range(area.areas().packed(set), MIN_RECEIVE_BUFFER);
        let arrays = self.with_receive_buffers(PlanArrays {
            accumulator: packed,
            ..PlanArrays::of(source, dest, Parts::Equal(nbytes))
        });

        // Another team may still use shared buffers, so the members first learn that those to which
        // they send have entered.
        if arrays.receive_buffers == ReceiveBuffers::Shared {
            self.execute(&PlanArrays::none(), bruck::all_to_all_entry(n, me));
        }
        self.execute(&arrays, bruck::all_to_all(n, me));
    }

    /// Returns the receive buffers for a plan that no member leaves before all have entered it:
    /// those of the job, which need no entry, if all PEs are members; otherwise those that other
    /// teams may use, too.
    pub(in crate::coll) fn receive_buffers(&self) -> ReceiveBuffers {
        if self.n() == self.links.job.n_pes {
            ReceiveBuffers::OfJob
        } else {
            ReceiveBuffers::Shared
        }
    }

    /// Returns the arrays with these [`receive_buffers`](Self::receive_buffers), for a plan that is
    /// executed once.
    pub(in crate::coll) fn with_receive_buffers<'p>(
        &self,
        arrays: PlanArrays<'p>,
    ) -> PlanArrays<'p> {
        let receive_buffers = self.receive_buffers();
        let parity = match receive_buffers {
            ReceiveBuffers::OfJob => self.next_collective_of_job(),
            _ => 0,
        };
        PlanArrays {
            receive_buffers,
            parity,
            ..arrays
        }
    }
}

// A collect of blocks of different sizes gathers the sizes first, and short blocks together with
// them: each member fills one slot of a vector. Members of one node exchange the slots in lines.
// Other members set the rest of their vector to zero and combine the vectors by a bitwise OR, since
// a member sends the messages of a reduction without waiting for an answer.

/// Bytes of the word that holds the size of a block.
const WORD: usize = size_of::<u64>();
/// Maximum number of bytes of a slot: a size, and a block that fits a packet of most networks.
const SLOT: usize = WORD + 512;

/// The sizes of all members' blocks, and the blocks that fit a slot.
pub(crate) struct GatheredSlots {
    slots: SymmetricRange,
    /// The number of bytes of a slot.
    slot_bytes: usize,
}

impl GatheredSlots {
    /// Returns the size that each member has passed to `gather_slots`, in the order of the team.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        (0..self.slots.nbytes())
            .step_by(self.slot_bytes)
            .map(|offset| self.slots.part(offset, WORD).first_word())
            .collect()
    }

    /// Returns the size in bytes of the longest block that fits a slot.
    pub(crate) fn max_block(&self) -> usize {
        self.slot_bytes - WORD
    }

    /// Returns the block of a member, of `nbytes` bytes.
    pub(crate) fn block(&self, member: usize, nbytes: usize) -> SymmetricRange {
        self.slots.part(member * self.slot_bytes + WORD, nbytes)
    }
}

impl Executor<'_> {
    /// Gathers the `size` of each member, and each member's `source` if it fits a slot. Returns
    /// `None` if the members are on one node but have no lines, or if there are no receive buffers
    /// with room for a slot of each member.
    pub(crate) fn gather_slots(
        &mut self,
        size: u64,
        source: SymmetricRange,
    ) -> Option<GatheredSlots> {
        static UNION: Combine = Combine::or::<u64>();

        let n = self.n() as usize;
        let me = self.me() as usize;
        let facts = self.facts();
        let slot_bytes = if facts.lines {
            LINE_BYTES
        } else {
            SLOT.min(MIN_RECEIVE_BUFFER / n) / WORD * WORD
        };
        if facts.one_node() && !facts.lines || !facts.has_receive_buffers() || slot_bytes <= WORD {
            return None;
        }

        let internal = &self.links.area;
        let set = self.collective.team.receive_buffers();
        let slots = internal.range(internal.areas().packed(set), n * slot_bytes);
        if !facts.lines {
            // A bitwise OR adds the slots of the others to zeros.
            slots.clear();
        }

        let own = slots.part(me * slot_bytes, slot_bytes);
        own.part(0, WORD).write(&size.to_ne_bytes());
        let gathered = GatheredSlots { slots, slot_bytes };
        if source.nbytes() <= gathered.max_block() {
            source.copy_here(gathered.block(me, source.nbytes()));
        }

        if facts.lines {
            let plan = pairwise::all_gather_in_lines(self.n(), self.me());
            self.exchange_in_lines(own, slots, slot_bytes, plan);
        } else {
            self.all_reduce_by_doubling(Vectors {
                source: slots,
                dest: slots,
                op: &UNION,
            });
        }
        Some(gathered)
    }
}
