//! Executes plans.
//!
//! A plan refers to places and parts; an [`Execution`] knows their locations and sizes. Data are
//! put directly at their destination on the peer, and then the peer's flag is raised: one ordered
//! put-with-signal.

use crate::base::job::Job;
use crate::coll::collective_call::CollectiveCall;
use crate::coll::combine::Combine;
use crate::coll::direct;
use crate::memory::areas::SHORT;
use crate::memory::range::SymmetricRange;
use crate::sync::channel::Channels;
use crate::sync::flags;
use crate::teams::team::Team;
use rushmem_collectives::{Buffer, Operand, Partner, Span, Step};
use rushmem_transport::Pe;

/// Bytes of a part of a vector that members share: whole cache lines, so that no two PEs write to
/// one, and whole elements of every type.
const DIRECT_PART: usize = 512;

/// Returns how many parts a vector of `nbytes` bytes has.
pub(crate) fn vector_parts(nbytes: usize) -> u32 {
    nbytes.div_ceil(DIRECT_PART) as u32
}

/// How large the parts are and where they begin.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    /// One part of this number of bytes.
    Whole(usize),
    /// Parts of the same size in bytes, one after the other.
    Equal(usize),
    /// Part k from byte `table[k]` to `table[k + 1]` of the destination; the source is one part.
    Table(&'a [usize]),
    /// Parts of [`DIRECT_PART`] bytes of a vector; the last part may be shorter.
    Vector,
    /// Parts of `nelems` elements, `stride * elem_bytes` apart within and between parts.
    Strided { dst: usize, sst: usize, nelems: usize, elem_bytes: usize },
}

/// Which memory of a peer the landings of a plan are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landings {
    /// In the buffers that all teams share that use this set: the sender knows that the receiver
    /// has entered the collective.
    Shared,
    /// In buffers that only reductions and all-to-alls among all PEs use. No PE ends one before
    /// all have entered it, and all make them in the same order: so of two copies no PE overwrites
    /// one that was not read.
    OfJob,
    /// Beside the flag that announces it, in a reduction of at most [`SHORT`] bytes.
    BesideFlags,
}

/// One collective of one member, in progress.
pub(crate) struct Execution<'a> {
    pub(crate) entry: &'a CollectiveCall<'a>,
    pub(crate) job: &'a Job,
    pub(crate) team: &'a Team,
    pub(crate) channels: &'a mut Channels,
    /// This PE's source array, and so that of every member where peers read it.
    pub(crate) source: SymmetricRange,
    /// This PE's destination array, and so that of every member.
    pub(crate) dest: SymmetricRange,
    pub(crate) parts: Parts<'a>,
    /// Partial results, of one part.
    pub(crate) accumulator: SymmetricRange,
    /// The operator that combines them.
    pub(crate) combine: Option<&'static Combine>,
    pub(crate) landings: Landings,
    /// Which copy of them is in use.
    pub(crate) parity: usize,
}

impl Execution<'_> {
    /// Carry out a plan. The plan calls for each step, since asking a plan for the next one takes
    /// as long as a short step.
    pub(crate) fn run(&mut self, plan: impl Iterator<Item = Step>) {
        let mut heard = None;
        plan.for_each(|step| {
            if !self.is_brief(step) {
                self.channels.ring();
            }
            match step {
                Step::Put { peer, from, to, count } => {
                    let pe = self.team.members().world_pe(peer.index);
                    let source = self.own_buffer(from.buffer);
                    let dest = match to.buffer {
                        Buffer::Landing(landing) => self.landing_at(peer, landing),
                        buffer => self.own_buffer(buffer),
                    };
                    match self.contiguous((source, from), (dest, to), count) {
                        Some((source, dest)) => self.channels.put_signal(peer, source, dest),
                        None => {
                            self.copy_strided(pe, (source, from), (dest, to), count);
                            self.channels.signal(peer);
                        }
                    }
                }
                Step::Signal { peer } => self.channels.signal(peer),
                Step::Wait { peer } => {
                    self.channels.wait(self.entry, self.job, peer);
                    heard = Some(peer);
                }
                Step::Arrive { at } => self.channels.arrive(at, || {}),
                Step::Contribute { at } => self.contribute(at),
                Step::TakeCombined { .. } => {
                    let combined = flags::area().areas().combined(self.channels.slot());
                    let combined = flags::area().range(combined, self.accumulator.nbytes());
                    combined.copy_here(self.accumulator);
                }
                Step::AwaitRelease { at } => self.channels.await_release(self.entry, self.job, at),
                Step::ReduceDirect { first, count } => {
                    let (source, dest) = self.share(first, count);
                    let op = self.combine.expect("a reduction has an operation");
                    direct::reduce(self.team.members(), self.job.me(), source, dest, op);
                }
                Step::ScanDirect { first, count, exclusive } => {
                    let (source, dest) = self.share(first, count);
                    let op = self.combine.expect("a scan has an operation");
                    direct::scan(self.team.members(), source, dest, op, exclusive);
                }
                Step::Get { peer, from, to, count, with } => {
                    self.get(peer, (from, to, count), with);
                }
                Step::Copy { from, to, count } => {
                    let source = match from.buffer {
                        Buffer::Landing(landing) => self.landing_of(heard, landing),
                        buffer => self.own_buffer(buffer),
                    };
                    let dest = self.own_buffer(to.buffer);
                    match self.contiguous((source, from), (dest, to), count) {
                        Some((source, dest)) => source.copy_here(dest),
                        None => {
                            let me = self.job.me();
                            self.copy_strided(me, (source, from), (dest, to), count);
                        }
                    }
                }
                Step::Reduce { landing, landing_is_left } => {
                    let op = self.combine.expect("a reduction has an operation");
                    let (landed, own) = (self.landing_of(heard, landing), self.accumulator);
                    let (left, right) = if landing_is_left { (landed, own) } else { (own, landed) };
                    op.apply(own, left, right);
                }
            }
        });
    }

    /// Returns true if a PE that was signaled before the step may be woken after it.
    fn is_brief(&self, step: Step) -> bool {
        match step {
            Step::Put { .. } | Step::Signal { .. } | Step::Wait { .. } => true,
            Step::Reduce { .. } => self.accumulator.nbytes() <= SHORT,
            _ => false,
        }
    }

    /// Copy parts of a member to the own ones, or combine them with an operand into these.
    fn get(&self, peer: u32, (from, to, count): (Span, Span, u32), with: Option<Operand>) {
        let pe = self.team.members().world_pe(peer);
        let (source, dest) = (self.own_buffer(from.buffer), self.own_buffer(to.buffer));
        let (source, dest) = self
            .contiguous((source, from), (dest, to), count)
            .expect("strided parts are put, never got");
        let Some(Operand { buffer, is_left }) = with else {
            return dest.copy_from(pe, source);
        };
        let own = self.own_buffer(buffer).part(self.offset(buffer.at(to.first)), dest.nbytes());
        let op = self.combine.expect("a reduction has an operation");
        direct::combine_with(pe, source, (own, is_left), dest, op);
    }

    /// `count` parts of both vectors.
    fn share(&self, first: u32, count: u32) -> (SymmetricRange, SymmetricRange) {
        let (from, to) = (Buffer::Source.at(first), Buffer::Dest.at(first));
        self.contiguous((self.source, from), (self.dest, to), count)
            .expect("parts of a vector follow each other")
    }

    /// Give the accumulator to the counter of member `at`; the last member combines what all have
    /// given.
    fn contribute(&mut self, at: u32) {
        let (slot, areas) = (self.channels.slot(), flags::area().areas());
        let nbytes = self.accumulator.nbytes();
        let owner = self.team.members().world_pe(at);
        let place = |at: usize| flags::area().range(at, nbytes);
        let op = self.combine.expect("a reduction has an operation");
        self.accumulator.copy_to(owner, place(areas.contribution(self.job.me())));
        let members = self.team.members();
        let given = |member| {
            let given = place(areas.contribution(members.world_pe(member)));
            given.image(owner).expect("a counter is used by PEs that share memory")
        };
        let store = |_, result: SymmetricRange| {
            // In each member's own area: the first one that is released may destroy the team, and
            // use its slot again.
            members.world_pes().for_each(|pe| result.copy_to(pe, place(areas.combined(slot))));
        };
        self.channels.arrive(at, || direct::combine(members.n, nbytes, op, None, given, store));
    }

    /// The bytes of `count` parts here and there, where they follow each other.
    fn contiguous(
        &self,
        (source, from): (SymmetricRange, Span),
        (dest, to): (SymmetricRange, Span),
        count: u32,
    ) -> Option<(SymmetricRange, SymmetricRange)> {
        let count = count as usize;
        let nbytes = match self.parts {
            Parts::Whole(nbytes) => nbytes,
            Parts::Equal(nbytes) => nbytes * count,
            Parts::Vector => {
                let end = self.dest.nbytes().min((to.first as usize + count) * DIRECT_PART);
                end - self.offset(to)
            }
            Parts::Table(table) => table[to.first as usize + count] - table[to.first as usize],
            Parts::Strided { .. } => return None,
        };
        let (source_at, dest_at) = (self.offset(from), self.offset(to));
        Some((source.part(source_at, nbytes), dest.part(dest_at, nbytes)))
    }

    /// Copy `count` strided parts from an own place to a place on `pe`.
    fn copy_strided(
        &self,
        pe: Pe,
        (source, from): (SymmetricRange, Span),
        (dest, to): (SymmetricRange, Span),
        count: u32,
    ) {
        let Parts::Strided { dst, sst, nelems, elem_bytes } = self.parts else {
            unreachable!("other parts follow each other")
        };
        let nelems = nelems * count as usize;
        if nelems > 0 {
            let (source, dest) = (source.from(self.offset(from)), dest.from(self.offset(to)));
            source.copy_strided_to(pe, dest, (dst, sst), nelems, elem_bytes);
        }
    }

    fn own_buffer(&self, buffer: Buffer) -> SymmetricRange {
        match buffer {
            Buffer::Source => self.source,
            Buffer::Dest => self.dest,
            Buffer::Accumulator => self.accumulator,
            Buffer::Landing(_) => unreachable!("plans put to landings and take from them, no more"),
        }
    }

    /// The place from which `peer` takes the next message of this member.
    fn landing_at(&mut self, peer: Partner, landing: u8) -> SymmetricRange {
        let areas = flags::area().areas();
        let beside = |channels: &mut Channels, parity| channels.short_there(areas, peer, parity);
        self.landing(landing, beside)
    }

    /// The place of the message that has arrived from the peer that was waited for last.
    fn landing_of(&mut self, heard: Option<Partner>, landing: u8) -> SymmetricRange {
        let areas = flags::area().areas();
        let peer = heard.expect("a plan waits before it reads");
        let beside = |channels: &mut Channels, parity| channels.short_here(areas, peer, parity);
        self.landing(landing, beside)
    }

    fn landing(
        &mut self,
        landing: u8,
        beside_flag: impl FnOnce(&mut Channels, usize) -> usize,
    ) -> SymmetricRange {
        let internal = flags::area();
        let set = || self.team.landings(self.job).expect("it was chosen for having landings");
        let areas = internal.areas();
        let (at, nbytes) = match self.landings {
            Landings::Shared => (areas.landing(set(), landing, self.parity), areas.landing_bytes()),
            Landings::OfJob => {
                (areas.landing_of_job(set(), landing, self.parity), areas.landing_bytes())
            }
            Landings::BesideFlags => (beside_flag(self.channels, self.parity), SHORT),
        };
        internal.range(at, nbytes)
    }

    /// Returns where a span begins in its buffer.
    fn offset(&self, span: Span) -> usize {
        let first = span.first as usize;
        match (span.buffer, self.parts) {
            (_, Parts::Equal(nbytes)) => first * nbytes,
            (Buffer::Accumulator | Buffer::Landing(_), _) | (_, Parts::Whole(_)) => 0,
            (_, Parts::Vector) => first * DIRECT_PART,
            (Buffer::Dest, Parts::Table(table)) => table[first],
            (Buffer::Source, Parts::Table(_)) => 0,
            (Buffer::Dest, Parts::Strided { dst, nelems, elem_bytes, .. }) => {
                first * nelems * dst * elem_bytes
            }
            (Buffer::Source, Parts::Strided { sst, nelems, elem_bytes, .. }) => {
                first * nelems * sst * elem_bytes
            }
        }
    }
}
