//! Composes collectives from plans: chooses the plans by facts that are the same on all members,
//! and does what is needed between them, such as copies and syncs. The routines of the standard are
//! in `collectives`.

use crate::coll::combine::Combine;
use crate::coll::executor::{Executor, Parts, PlanArrays, ReceiveBuffers, Vectors, vector_parts};
use rushmem_collectives::choice::{
    AllReduceAlgorithm, ChoiceFacts, ScanAlgorithm, SyncAlgorithm, Tabled,
};
use rushmem_collectives::two_level::{self, NodeLists};
use rushmem_collectives::{
    Buffer, LINE_BYTES, Span, Step, binomial, bruck, central, direct, dissemination, pairwise,
    rabenseifner, recursive_doubling, ring,
};
use rushmem_communication::sync::team_signals;
use rushmem_pe::digest::digest;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::areas::{MIN_RECEIVE_BUFFER, SHORT};
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::Pe;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of bits that [`Executor::sync_comparing`] compares.
pub(crate) const COMPARED_BITS: u32 = 48;

impl<'a> Executor<'a> {
    pub(crate) fn members(&self) -> &'a Members {
        self.collective.team.members()
    }

    pub(crate) fn n(&self) -> u32 {
        self.members().n
    }

    pub(crate) fn me(&self) -> u32 {
        self.collective.team.me().0
    }

    /// Returns the facts by which algorithms are chosen.
    #[inline]
    pub(crate) fn facts(&self) -> ChoiceFacts {
        let team = self.collective.team;
        // In a job whose PEs have one thread in the library at a time, all teams share receive
        // buffers and pair flags. A non-blocking collective must not use them, since a blocking
        // collective may use them at the same time.
        let is_beside_others = self.collective.in_request && !self.job.has_threads_somewhere;

        let receive_buffer_bytes = if is_beside_others {
            0
        } else {
            team.receive_buffer_bytes(self.job)
        };

        ChoiceFacts {
            members: self.n(),
            per_node: team.per_node(),
            oversubscribed: self.job.is_oversubscribed_somewhere,
            receive_buffer_bytes,
            pair_flags: team.has_pair_flags(self.job) && !is_beside_others,
            lines: team.has_lines(self.job) && !is_beside_others,
        }
    }

    /// Returns the algorithm for `nbytes` bytes.
    #[inline]
    pub(crate) fn choose<A: Tabled>(&self, nbytes: usize) -> A {
        self.job.algorithms.table().choose(nbytes, || self.facts())
    }

    /// Counts this collective among those of all PEs that use [`ReceiveBuffers::OfJob`]. Returns
    /// which copy it uses.
    fn next_collective_of_job(&self) -> usize {
        let set = self.collective.team.receive_buffers(self.job);
        team_signals::next_collective_of_job(
            self.links,
            set.expect("it was chosen for having receive buffers"),
        )
    }

    /// Returns the `word` that each member passes, in the order of the team.
    pub(crate) fn gather(&mut self, word: u64) -> Vec<u64> {
        if self.collective.team.per_node() == self.n() || !self.facts().pair_flags {
            return self.gather_published(word);
        }

        let n = self.n();
        let me = self.me();
        let internal = &self.links.area;
        let table_offset = internal.areas().table();

        // Peers write to the table of this PE, which it may still read for the collective before,
        // so they wait until it has entered.
        self.execute(&PlanArrays::NONE, bruck::entry(n, me));
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

    /// Combines the vectors of all members element by element. All members get the result.
    pub(crate) fn all_reduce(&mut self, vectors: Vectors) {
        let n = self.n();
        let me = self.me();
        let parts = vector_parts(vectors.nbytes());

        match self.choose(vectors.nbytes()) {
            AllReduceAlgorithm::Direct => {
                self.run_vector(vectors, direct::all_reduce(n, me, parts, self.choose(0)));
            }
            AllReduceAlgorithm::Rabenseifner => {
                self.run_vector(vectors, rabenseifner::all_reduce(n, me, parts));
            }
            AllReduceAlgorithm::Ring => self.run_vector(vectors, ring::all_reduce(n, me, parts)),
            AllReduceAlgorithm::Central => {
                self.run_pieces(vectors, ReceiveBuffers::Shared, |n, _| {
                    central::all_reduce(n)
                });
            }
            AllReduceAlgorithm::RecursiveDoubling => self.all_reduce_by_doubling(vectors),
            AllReduceAlgorithm::TwoLevel => self.all_reduce_over_nodes(vectors),
        }
    }

    /// All-reduce by recursive doubling through receive buffers.
    pub(crate) fn all_reduce_by_doubling(&mut self, vectors: Vectors) {
        let n = self.n();
        let me = self.me();
        let receive_buffers = if vectors.nbytes() <= SHORT {
            ReceiveBuffers::BesideFlags
        } else if n == self.job.n_pes {
            ReceiveBuffers::OfJob
        } else {
            ReceiveBuffers::Shared
        };

        if receive_buffers == ReceiveBuffers::Shared {
            self.execute(&PlanArrays::NONE, recursive_doubling::entry(n, me));
        }
        self.run_pieces(vectors, receive_buffers, recursive_doubling::all_reduce);
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

    /// Scans vectors element by element: each member gets the result of the members up to itself,
    /// or of those before it if the scan is `exclusive`. After an exclusive scan, the content of
    /// `dest` of the first member is unspecified.
    pub(crate) fn scan(&mut self, vectors: Vectors, exclusive: bool) {
        match self.choose(vectors.nbytes()) {
            ScanAlgorithm::Direct => {
                let parts = vector_parts(vectors.nbytes());
                let sync = self.choose(0);
                let plan = direct::scan(self.n(), self.me(), parts, sync, exclusive);
                self.run_vector(vectors, plan);
            }
            ScanAlgorithm::RecursiveDoubling => self.scan_by_doubling(vectors, exclusive),
        }
    }

    /// A scan by recursive doubling through receive buffers.
    pub(crate) fn scan_by_doubling(&mut self, vectors: Vectors, exclusive: bool) {
        let buffers = ReceiveBuffers::Shared;
        if exclusive {
            self.run_pieces(vectors, buffers, recursive_doubling::exclusive_scan);
        } else {
            self.run_pieces(vectors, buffers, recursive_doubling::inclusive_scan);
        }
    }

    /// Carries out a plan that combines parts of vectors directly in the arrays of the program.
    fn run_vector(&mut self, vectors: Vectors, plan: impl Iterator<Item = Step>) {
        let arrays = PlanArrays {
            combine: Some(vectors.op),
            ..PlanArrays::of(vectors.source, vectors.dest, Parts::Vector)
        };
        self.execute(&arrays, plan);
    }

    /// Carries out a plan once for each piece of the vectors that fits a receive buffer. The piece
    /// of `dest` is the accumulator. The two copies of the receive buffers are used in turn.
    pub(crate) fn run_pieces<P: Iterator<Item = Step>>(
        &mut self,
        vectors: Vectors,
        receive_buffers: ReceiveBuffers,
        plan: impl Fn(u32, u32) -> P,
    ) {
        let Vectors { source, dest, op } = vectors;

        // A piece has whole elements.
        let room = self.links.area.areas().receive_buffer_bytes();
        let max_bytes = if dest.nbytes() <= room {
            room
        } else {
            room / op.elem_bytes() * op.elem_bytes()
        };

        let mut turn = 0;
        let mut offset = 0;
        while offset < dest.nbytes() {
            let nbytes = max_bytes.min(dest.nbytes() - offset);
            let accumulator = dest.part(offset, nbytes);
            if !dest.starts_with(source) {
                source.part(offset, nbytes).copy_here(accumulator);
            }

            let parity = match receive_buffers {
                ReceiveBuffers::Shared => turn % 2,
                ReceiveBuffers::OfJob => self.next_collective_of_job(),
                ReceiveBuffers::BesideFlags => self.signals.next_short_reduction(),
            };
            let piece = PlanArrays {
                source: SymmetricRange::EMPTY,
                dest: SymmetricRange::EMPTY,
                parts: Parts::Whole(nbytes),
                accumulator,
                combine: Some(op),
                receive_buffers,
                parity,
            };
            self.execute(&piece, plan(self.n(), self.me()));

            turn += 1;
            offset += nbytes;
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
        self.sync_by(self.job.algorithms.table().choose(0, || facts));
    }

    #[inline(always)]
    fn sync_by(&mut self, algorithm: SyncAlgorithm) {
        match algorithm {
            SyncAlgorithm::Dissemination => self.disseminate(),
            SyncAlgorithm::TwoLevel => {
                self.execute(&PlanArrays::NONE, two_level::sync(self.levels()));
            }
            algorithm => self.execute(&PlanArrays::NONE, algorithm.plan(self.n(), self.me())),
        }
    }

    /// Syncs by dissemination. Does not call `execute`, whose overhead exceeds the time of the
    /// signals.
    fn disseminate(&mut self) {
        dissemination::sync(self.n(), self.me()).for_each(|step| match step {
            Step::Signal { peer } => self.signal(peer),
            Step::Wait { peer } => self.wait(peer),
            _ => unreachable!("a sync moves nothing"),
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
        let mut line = SymmetricRange::EMPTY;
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

        // A member packs the blocks that it forwards in a buffer to which peers do not write.
        let set = self.collective.team.receive_buffers(self.job);
        let set = set.expect("rounds are chosen where there are receive buffers");
        let area = &self.links.area;
        let packed = area.range(area.areas().packed(set), MIN_RECEIVE_BUFFER);
        let arrays = self.with_receive_buffers(PlanArrays {
            accumulator: packed,
            ..PlanArrays::of(source, dest, Parts::Equal(nbytes))
        });

        // Another team may still use shared buffers, so the members first learn that those to which
        // they send have entered.
        if arrays.receive_buffers == ReceiveBuffers::Shared {
            self.execute(&PlanArrays::NONE, bruck::all_to_all_entry(n, me));
        }
        self.execute(&arrays, bruck::all_to_all(n, me));
    }

    /// Returns the arrays with the receive buffers of the job, which need no entry, if all PEs are
    /// members; otherwise with those that other teams may use, too.
    fn with_receive_buffers<'p>(&self, arrays: PlanArrays<'p>) -> PlanArrays<'p> {
        if self.n() != self.job.n_pes {
            return PlanArrays {
                receive_buffers: ReceiveBuffers::Shared,
                parity: 0,
                ..arrays
            };
        }
        PlanArrays {
            receive_buffers: ReceiveBuffers::OfJob,
            parity: self.next_collective_of_job(),
            ..arrays
        }
    }
}

// Plans of two levels: within nodes, and between the leaders of nodes. A team has flags only for
// members at certain distances, at which leaders need not be, so these plans use the flags of pairs
// of PEs. Where threads of a PE may be in several collectives at once, only the world uses these
// plans.
impl<'a> Executor<'a> {
    /// Returns the members by node.
    fn levels(&self) -> &'a NodeLists {
        self.collective
            .team
            .levels()
            .expect("two levels are chosen where there are two")
    }

    /// All-reduce by plans of two levels.
    pub(in crate::coll) fn all_reduce_over_nodes(&mut self, vectors: Vectors) {
        let Vectors { source, dest, op } = vectors;
        let levels = self.levels();
        let nbytes = dest.nbytes();
        let whole = PlanArrays {
            accumulator: dest,
            combine: Some(op),
            ..PlanArrays::of(source, dest, Parts::Whole(nbytes))
        };

        if nbytes <= SHORT {
            if !dest.starts_with(source) {
                source.copy_here(dest);
            }
            let arrays = PlanArrays {
                receive_buffers: ReceiveBuffers::BesideFlags,
                ..whole
            };
            self.execute(&arrays, two_level::all_reduce_short(levels));
        } else if nbytes <= self.links.area.areas().receive_buffer_bytes() {
            let arrays = self.with_receive_buffers(whole);
            let needs_entry = arrays.receive_buffers == ReceiveBuffers::Shared;
            self.execute(&arrays, two_level::all_reduce_piece(levels, needs_entry));
        } else {
            let parts = vector_parts(nbytes);
            let lanes = two_level::lanes(levels, parts);
            let arrays = PlanArrays {
                parts: Parts::Vector,
                ..whole
            };
            self.execute(&arrays, two_level::all_reduce(levels, parts, lanes));
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
        let set = self.collective.team.receive_buffers(self.job);
        let set = set.expect("there are receive buffers");
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
