//! Executes plans, step by step.
//!
//! A plan names buffers by their role, and their parts by numbers; [`PlanArrays`] has the addresses
//! and sizes. A put step copies data to the destination array or a receive buffer of the peer, and
//! then raises a flag there: one ordered put-with-signal. `reductions` and `composition` choose the
//! plans.

use crate::coll::combine::Combine;
use crate::coll::direct::{self, OwnOperand, ReducedTo};
use crate::teams::team::Team;
use rushmem_collectives::choice::{ChoiceFacts, Tabled};
use rushmem_collectives::two_level::NodeLists;
use rushmem_collectives::{Buffer, DirectWork, Operand, Partner, Receivers, Span, Step};
use rushmem_communication::access::endpoints::Endpoints;
use rushmem_communication::links::Links;
use rushmem_communication::net::copy::{CopyBetweenPes, StridedElements, complete_copies};
use rushmem_communication::observers::{
    self, Action, Event, FollowedMembers, Membership, ObservedCall,
};
use rushmem_communication::sync::team_signals::{self, OngoingCollective, TeamSignals};
use rushmem_explain::status::AwaitedObject;
use rushmem_pe::call::Call;
use rushmem_pe::digest::digest;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::Pe;
use std::sync::MutexGuard;

/// Bytes of a part of a vector whose parts are divided among the members: whole elements of every
/// type, and whole cache lines, so that no two PEs write to one line of an array that is aligned to
/// lines.
const DIRECT_PART: usize = 512;

/// Returns the number of parts of a vector of `nbytes` bytes.
pub(crate) fn vector_parts(nbytes: usize) -> u32 {
    nbytes.div_ceil(DIRECT_PART) as u32
}

/// The sizes and offsets of the parts of an array.
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
    /// Parts of `nelems` elements of `elem_bytes` bytes. Each element begins `dst` elements after
    /// the one before it in the destination and `sst` elements in the source, also across parts.
    Strided {
        dst: usize,
        sst: usize,
        nelems: usize,
        elem_bytes: usize,
    },
}

/// The memory of a peer that a plan uses for its receive buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveBuffers {
    /// The set of buffers of the team, which other teams may use, too: a sender must know that the
    /// receiver has entered the collective.
    Shared,
    /// Buffers for reductions, scans and all-to-alls among all PEs of the job. No PE leaves such a
    /// collective before all have entered it, and all PEs call them in the same order, so two
    /// copies that are used in turn suffice.
    OfJob,
    /// Beside the flag, in its cache line: for at most [`SHORT`] bytes of a reduction.
    BesideFlags,
}

/// The buffers that a plan uses on this PE, and the operator that it combines by.
#[derive(Clone, Copy)]
pub(crate) struct PlanArrays<'a> {
    /// The source array of this PE. If peers read it, it has the same offset on every member.
    pub(crate) source: SymmetricRange,
    /// The destination array of this PE. If peers access it, it has the same offset on every
    /// member.
    pub(crate) dest: SymmetricRange,
    pub(crate) parts: Parts<'a>,
    /// The partial result of a reduction, of one part; for an all-to-all in rounds, the buffer in
    /// which blocks are packed.
    pub(crate) accumulator: SymmetricRange,
    /// The operator of a reduction or scan; `None` for other collectives.
    pub(crate) combine: Option<&'static Combine>,
    pub(crate) receive_buffers: ReceiveBuffers,
    /// The copy of the receive buffers that the plan uses: 0 or 1.
    pub(crate) parity: usize,
}

impl<'a> PlanArrays<'a> {
    /// Returns the arrays of a plan that only signals.
    #[inline(always)]
    pub(crate) fn none() -> PlanArrays<'a> {
        let empty = SymmetricRange::empty();
        PlanArrays::of(empty, empty, Parts::Whole(0))
    }

    /// Returns the arrays of a plan that moves parts from `source` to `dest`.
    pub(crate) fn of(
        source: SymmetricRange,
        dest: SymmetricRange,
        parts: Parts<'a>,
    ) -> PlanArrays<'a> {
        PlanArrays {
            source,
            dest,
            parts,
            accumulator: SymmetricRange::empty(),
            combine: None,
            receive_buffers: ReceiveBuffers::Shared,
            parity: 0,
        }
    }
}

/// The arrays of a reduction or scan, of the same size, and their operator.
#[derive(Clone, Copy)]
pub(crate) struct Vectors {
    pub(crate) source: SymmetricRange,
    pub(crate) dest: SymmetricRange,
    pub(crate) op: &'static Combine,
}

impl Vectors {
    pub(crate) fn nbytes(&self) -> usize {
        self.dest.nbytes()
    }
}

/// A collective that this PE has entered, as messages and its status describe it.
#[derive(Clone, Copy)]
pub(crate) struct CollectiveCall<'a> {
    pub(crate) call: Call,
    pub(crate) team: &'a Team,
    /// Its number among the collectives of this PE on the team, from 1.
    pub(crate) nth: u64,
    /// True for a non-blocking collective, which a thread of the library carries out.
    pub(crate) in_request: bool,
}

impl CollectiveCall<'_> {
    /// Shows observers that the collective begins. `action` makes the action of the event, given
    /// this PE's membership.
    pub(crate) fn observe(&self, action: impl FnOnce(Membership) -> Action) -> ObservedCall {
        observers::call(|| {
            // The first member distinguishes the teams of one split, which have the same number.
            let first = self.team.members().world_pe(0);
            let membership = Membership {
                team: digest(&[self.team.number(), u64::from(first.0)]),
                nth: self.nth,
                n: self.team.members().n,
                me: self.team.me().0,
                follows: FollowedMembers::All,
                followed_member: 0,
            };
            Event::new(self.call, action(membership))
        })
    }
}

impl OngoingCollective for CollectiveCall<'_> {
    fn call(&self) -> Call {
        self.call
    }

    fn is_in_request(&self) -> bool {
        self.in_request
    }

    fn subject(&self, awaited: Option<Pe>) -> AwaitedObject {
        self.team.subject(self.nth, awaited)
    }
}

/// The executor of a collective that one member has entered.
pub(crate) struct Executor<'a> {
    pub(crate) collective: CollectiveCall<'a>,
    pub(crate) links: &'static Links,
    pub(crate) signals: MutexGuard<'a, TeamSignals>,
}

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

    /// Returns the other members, from the next one on: members that copy to all others do not
    /// begin with the same one.
    pub(in crate::coll) fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let n = self.n();
        let me = self.me();
        (me + 1..n).chain(0..me)
    }

    /// Returns the members by node, for plans of two levels: within nodes, and between the leaders
    /// of nodes. A team has flags only for members at certain distances, at which leaders need not
    /// be, so these plans use the flags of pairs of PEs.
    pub(in crate::coll) fn levels(&self) -> &'a NodeLists {
        let levels = self.collective.team.levels();
        levels.expect("two levels are chosen where there are two")
    }

    /// Returns the facts by which algorithms are chosen.
    #[inline]
    pub(crate) fn facts(&self) -> ChoiceFacts {
        let facts = self.collective.team.facts();
        // In a job whose PEs have one thread in the library at a time, all teams share receive
        // buffers and pair flags. A non-blocking collective must not use them, since a blocking
        // collective may use them at the same time.
        if self.collective.in_request && !self.links.job.has_threads_somewhere {
            ChoiceFacts {
                receive_buffer_bytes: 0,
                pair_flags: false,
                lines: false,
                ..facts
            }
        } else {
            facts
        }
    }

    /// Returns the algorithm for `nbytes` bytes.
    #[inline]
    pub(crate) fn choose<A: Tabled>(&self, nbytes: usize) -> A {
        let table = self.links.job.algorithms.table();
        table.choose(nbytes, || self.facts())
    }

    /// Counts this collective among those of all PEs that use [`ReceiveBuffers::OfJob`]. Returns
    /// which copy it uses.
    pub(in crate::coll) fn next_collective_of_job(&self) -> usize {
        team_signals::next_collective_of_job(self.links, self.collective.team.receive_buffers())
    }

    pub(crate) fn signal(&mut self, peer: Partner) {
        #[cfg(test)]
        crate::tests::kit::lateness::before_step();
        self.signals.signal(peer);
    }

    /// Waits for the next signal of a member.
    pub(crate) fn wait(&mut self, peer: Partner) {
        #[cfg(test)]
        crate::tests::kit::lateness::before_step();
        self.signals.wait(&self.collective, peer);
    }

    /// Carries out a plan. Uses `for_each`, since a call of the plan's `next` takes as long as a
    /// short step.
    pub(crate) fn execute(&mut self, arrays: &PlanArrays<'_>, plan: impl Iterator<Item = Step>) {
        let members = self.collective.team.members();
        let endpoints = self.links.endpoints;
        // The peer of the last wait. A step that reads a receive buffer beside a flag reads this
        // peer's message.
        let mut awaited = None;

        plan.for_each(|step| {
            #[cfg(test)]
            crate::tests::kit::lateness::before_step();
            match step {
                Step::Put {
                    peer,
                    from,
                    to,
                    count,
                } => self.put(arrays, peer, from, to, count),
                Step::PutDirect {
                    peer,
                    from,
                    to,
                    count,
                } => arrays.put(endpoints, members.world_pe(peer), from, to, count),
                Step::PutToOthers { sent, to } => {
                    for peer in self.others() {
                        let from = Buffer::Source.at(sent.of(peer));
                        let to = Buffer::Dest.at(to);
                        arrays.put(endpoints, members.world_pe(peer), from, to, 1);
                    }
                }
                Step::Signal { peer } => self.signal(peer),
                Step::Wait { peer } => {
                    self.wait(peer);
                    awaited = Some(peer);
                }
                Step::Arrive { owner, work } => self.signals.arrive(owner, || {
                    if let Some(work) = work {
                        arrays.work_for_all(&self.collective, self.links, work);
                    }
                }),
                Step::Contribute { owner } => self.contribute(arrays, owner),
                Step::TakeCombined { .. } => {
                    let combined = self.links.area.areas().combined(self.signals.slot());
                    let combined = self.links.area.range(combined, arrays.accumulator.nbytes());
                    combined.copy_here(arrays.accumulator);
                }
                Step::AwaitRelease { owner } => {
                    self.signals.await_release(&self.collective, owner);
                }
                Step::Direct(work) => arrays.work_for_all(&self.collective, self.links, work),
                Step::Get {
                    peer,
                    from,
                    to,
                    count,
                    with,
                } => arrays.get(endpoints, members.world_pe(peer), from, to, count, with),
                Step::Copy { from, to, count } => self.copy(arrays, awaited, from, to, count),
                Step::Reduce {
                    receive_buffer,
                    receive_buffer_is_left,
                } => {
                    let received = self.own_receive_buffer(arrays, awaited, receive_buffer);
                    let own = arrays.accumulator;
                    if receive_buffer_is_left {
                        arrays.operator().apply(own, received, own);
                    } else {
                        arrays.operator().apply(own, own, received);
                    }
                }
            }
        });
    }

    /// Copies `count` parts to a buffer of a peer, and signals the peer.
    #[inline(always)]
    fn put(&mut self, arrays: &PlanArrays<'_>, peer: Partner, from: Span, to: Span, count: u32) {
        let dest = match to.buffer {
            Buffer::Receive(receive_buffer) => {
                self.remote_receive_buffer(arrays, peer, receive_buffer)
            }
            buffer => arrays.own_range(buffer),
        };
        let source = arrays.own_span(from);
        let dest = BufferSpan {
            buffer: dest,
            span: to,
        };

        match arrays.contiguous(source, dest, count) {
            Some((source, dest)) => self.signals.put_signal(peer, source, dest),
            None => {
                let pe = self.collective.team.members().world_pe(peer.index);
                arrays.copy_strided(self.links.endpoints, pe, source, dest, count);
                self.signal(peer);
            }
        }
    }

    /// Copies `count` parts to another buffer of this PE.
    #[inline(always)]
    fn copy(
        &mut self,
        arrays: &PlanArrays<'_>,
        awaited: Option<Partner>,
        from: Span,
        to: Span,
        count: u32,
    ) {
        let source = match from.buffer {
            Buffer::Receive(receive_buffer) => {
                self.own_receive_buffer(arrays, awaited, receive_buffer)
            }
            buffer => arrays.own_range(buffer),
        };
        let source = BufferSpan {
            buffer: source,
            span: from,
        };
        let dest = arrays.own_span(to);

        match arrays.contiguous(source, dest, count) {
            Some((source, dest)) => source.copy_here(dest),
            None => {
                arrays.copy_strided(self.links.endpoints, self.links.job.me, source, dest, count)
            }
        }
    }

    /// Copies the accumulator to a member and arrives at the counter of that member. The last
    /// member to arrive combines the contributions of all, and stores the result on each.
    fn contribute(&mut self, arrays: &PlanArrays<'_>, member: u32) {
        let slot = self.signals.slot();
        let areas = self.links.area.areas();
        let nbytes = arrays.accumulator.nbytes();
        let members = self.collective.team.members();
        let owner = members.world_pe(member);
        let op = arrays.operator();

        // Each member has room for its contribution in the area of the owner of the counter.
        let room_of = |pe| self.links.area.range(areas.contribution(pe), nbytes);
        arrays
            .accumulator
            .copy_to(self.links.endpoints, owner, room_of(self.links.job.me));

        let contribution = |member| {
            room_of(members.world_pe(member))
                .image(owner)
                .expect("PEs that share memory use a counter")
        };

        self.signals.arrive(member, || {
            // The result is stored in the area of each member, not beside the counter: the first
            // member that is released may destroy the team, and another team then uses the slot.
            let combined = self.links.area.range(areas.combined(slot), nbytes);
            direct::combine(members.n, nbytes, op, None, contribution, |_, result| {
                for pe in members.world_pes() {
                    result.copy_to(self.links.endpoints, pe, combined);
                }
            });
        });
    }

    /// Returns the receive buffer of `peer` for the next message of this member.
    #[inline]
    fn remote_receive_buffer(
        &mut self,
        arrays: &PlanArrays<'_>,
        peer: Partner,
        receive_buffer: u8,
    ) -> SymmetricRange {
        if arrays.receive_buffers == ReceiveBuffers::BesideFlags {
            return self.signals.short_to(peer, arrays.parity);
        }
        self.receive_buffer(arrays, receive_buffer)
    }

    /// Returns a receive buffer of this member. Beside flags, it is the one with the message of
    /// `awaited`, the peer that was awaited last.
    #[inline]
    fn own_receive_buffer(
        &mut self,
        arrays: &PlanArrays<'_>,
        awaited: Option<Partner>,
        receive_buffer: u8,
    ) -> SymmetricRange {
        let peer = awaited.expect("a plan waits before it reads");
        if arrays.receive_buffers == ReceiveBuffers::BesideFlags {
            return self.signals.short_from(peer, arrays.parity);
        }
        self.receive_buffer(arrays, receive_buffer)
    }

    /// Returns a receive buffer of the team or of the job.
    #[inline(always)]
    pub(in crate::coll) fn receive_buffer(
        &self,
        arrays: &PlanArrays<'_>,
        receive_buffer: u8,
    ) -> SymmetricRange {
        let internal = &self.links.area;
        let areas = internal.areas();
        let set = self.collective.team.receive_buffers();
        let offset = if arrays.receive_buffers == ReceiveBuffers::OfJob {
            areas.receive_buffer_of_job(set, receive_buffer, arrays.parity)
        } else {
            areas.receive_buffer(set, receive_buffer, arrays.parity)
        };
        internal.range(offset, areas.receive_buffer_bytes())
    }
}

/// A buffer, and a span in it.
#[derive(Clone, Copy)]
struct BufferSpan {
    buffer: SymmetricRange,
    span: Span,
}

impl PlanArrays<'_> {
    fn operator(&self) -> &'static Combine {
        self.combine.expect("a reduction or scan has an operator")
    }

    /// Does work on the arrays of all members.
    #[inline(never)]
    fn work_for_all(&self, collective: &CollectiveCall<'_>, links: &Links, work: DirectWork) {
        let members = collective.team.members();
        let op = self.operator();

        let reduce = |first, count, to_first, only: Option<u32>| {
            let (source, range) = self.share(first, to_first, count);
            let only = only.map(|member| members.world_pe(member));
            let dest = ReducedTo { range, only };
            direct::reduce(links.endpoints, members, links.job.me, source, dest, op);
        };
        match work {
            DirectWork::Reduce { first, count, to } => match to {
                Receivers::All => reduce(first, count, first, None),
                Receivers::One {
                    member,
                    first: to_first,
                } => reduce(first, count, to_first, Some(member)),
                Receivers::Each => {
                    for member in 0..count {
                        reduce(first + member, 1, 0, Some(member));
                    }
                }
            },
            DirectWork::Scan {
                first,
                count,
                exclusive,
            } => {
                let (source, dest) = self.share(first, first, count);
                direct::scan(links.endpoints, members, source, dest, op, exclusive);
            }
        }
    }

    /// Copies parts of a buffer of this PE to a buffer of `pe`, and completes the copy.
    #[inline(always)]
    fn put(&self, endpoints: &Endpoints, pe: Pe, from: Span, to: Span, count: u32) {
        let (source, dest) = self
            .contiguous(self.own_span(from), self.own_span(to), count)
            .expect("plans put strided parts with a signal");
        source.copy_to(endpoints, pe, dest);
        // The signal by which the receiver learns of it may be another PE's, and so is not ordered
        // after the copy.
        if dest.image(pe).is_none() {
            complete_copies(endpoints);
        }
    }

    /// Copies parts of a buffer of `pe` to a buffer of this PE. If there is an operand, combines
    /// the parts with it and stores the result in that buffer instead.
    fn get(
        &self,
        endpoints: &Endpoints,
        pe: Pe,
        from: Span,
        to: Span,
        count: u32,
        operand: Option<Operand>,
    ) {
        let (source, dest) = self
            .contiguous(self.own_span(from), self.own_span(to), count)
            .expect("plans put strided parts and never get them");

        match operand {
            None => dest.copy_from(endpoints, pe, source),
            Some(Operand { buffer, is_left }) => {
                let offset = self.offset(buffer.at(to.first));
                let own = OwnOperand {
                    range: self.own_range(buffer).part(offset, dest.nbytes()),
                    is_left,
                };
                direct::combine_with(endpoints, pe, source, own, dest, self.operator());
            }
        }
    }

    /// Returns `count` parts of the source, from part `from` on, and of the destination, from part
    /// `to` on.
    fn share(&self, from: u32, to: u32, count: u32) -> (SymmetricRange, SymmetricRange) {
        let from = Buffer::Source.at(from);
        let to = Buffer::Dest.at(to);
        self.contiguous(self.own_span(from), self.own_span(to), count)
            .expect("parts of a vector follow each other")
    }

    /// Returns the ranges of `count` parts in both buffers; `None` if the parts are strided.
    #[inline(always)]
    fn contiguous(
        &self,
        source: BufferSpan,
        dest: BufferSpan,
        count: u32,
    ) -> Option<(SymmetricRange, SymmetricRange)> {
        let first = dest.span.first as usize;
        let end = first + count as usize;
        let nbytes = match self.parts {
            Parts::Whole(nbytes) => nbytes,
            Parts::Equal(nbytes) => nbytes * count as usize,
            // The last part may be shorter.
            Parts::Vector => self.dest.nbytes().min(end * DIRECT_PART) - self.offset(dest.span),
            Parts::Table(table) => table[end] - table[first],
            Parts::Strided { .. } => return None,
        };

        let source = source.buffer.part(self.offset(source.span), nbytes);
        let dest = dest.buffer.part(self.offset(dest.span), nbytes);
        Some((source, dest))
    }

    /// Copies `count` strided parts of a buffer of this PE to a buffer on `pe`.
    fn copy_strided(
        &self,
        endpoints: &Endpoints,
        pe: Pe,
        source: BufferSpan,
        dest: BufferSpan,
        count: u32,
    ) {
        let Parts::Strided {
            dst,
            sst,
            nelems,
            elem_bytes,
        } = self.parts
        else {
            unreachable!("other parts follow each other")
        };

        let nelems = nelems * count as usize;
        if nelems > 0 {
            let source = source.buffer.from(self.offset(source.span));
            let dest = dest.buffer.from(self.offset(dest.span));
            let elements = StridedElements {
                dst,
                sst,
                nelems,
                elem_bytes,
            };
            source.copy_strided_to(endpoints, pe, dest, elements);
        }
    }

    #[inline(always)]
    fn own_span(&self, span: Span) -> BufferSpan {
        BufferSpan {
            buffer: self.own_range(span.buffer),
            span,
        }
    }

    #[inline(always)]
    fn own_range(&self, buffer: Buffer) -> SymmetricRange {
        match buffer {
            Buffer::Source => self.source,
            Buffer::Dest => self.dest,
            Buffer::Accumulator => self.accumulator,
            Buffer::Receive(_) => {
                unreachable!("plans put to receive buffers and take from them, no more")
            }
        }
    }

    /// Returns the offset in bytes at which a span begins in its buffer.
    #[inline(always)]
    fn offset(&self, span: Span) -> usize {
        let first = span.first as usize;

        match (span.buffer, self.parts) {
            (_, Parts::Equal(nbytes)) => first * nbytes,
            // Such a buffer has one part.
            (Buffer::Accumulator | Buffer::Receive(_), _)
            | (_, Parts::Whole(_))
            | (Buffer::Source, Parts::Table(_)) => 0,
            (Buffer::Dest, Parts::Table(table)) => table[first],
            (_, Parts::Vector) => first * DIRECT_PART,
            (
                buffer,
                Parts::Strided {
                    dst,
                    sst,
                    nelems,
                    elem_bytes,
                },
            ) => {
                let stride = if buffer == Buffer::Dest { dst } else { sst };
                first * nelems * stride * elem_bytes
            }
        }
    }
}
