//! Signals between the members of a team: a counter for each edge of a plan between two members.
//!
//! The counter by which a member signals a peer is a word of the peer's internal area and only
//! grows. Its high bits are the generation of the team, so every value that an earlier team has
//! left in the same slot is smaller than any of this team. Since a plan waits for every signal that
//! the plans of its peers send, the k-th signal on an edge ends the receiver's k-th wait on it, in
//! any sequence of collectives. Messages that any member may send are counted instead, by two
//! counters in turn: see [`Edge::Any`].
//!
//! Plans of two levels signal members at any distance, on [`Edge::Pair`]: these counters belong to
//! two PEs, not to a team. No PE leaves such a plan before all have entered it, so two PEs make the
//! plans of all their common teams in the same order. The high bits of the counter are a mark of
//! the team, by which a PE notices that its peer does not keep this order. Messages on
//! [`Edge::Line`] follow the same rule.

pub(crate) mod counts;

use crate::links::Links;
use crate::status::WaitDescription;
use crate::sync::waits;
use counts::{PairCounts, increment};
use rushmem_collectives::{Edge, LINE_BYTES, Partner};
use rushmem_explain::status::AwaitedObject;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::digest::digest;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::areas::{CounterPair, SHORT, short_beside};
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::{Pe, SignalOrder, TeamPe};
use std::sync::atomic::Ordering::Relaxed;

/// Bits of a counter for the number of signals; the generation is in the bits above. A team that
/// sends more signals uses up values of later generations, which new teams then skip
/// ([`TeamSignals::reached`]). With more bits there would be fewer generations.
const COUNT_BITS: u32 = 36;
/// The number of generations that the high bits of a counter can express. An agreement that would
/// need a further one is refused.
pub const GENERATIONS: u64 = 1 << (64 - COUNT_BITS);
/// Bits of a counter of two PEs for the number of signals; the mark of the team is above. No two
/// PEs send as many signals in the life of a job. With more bits, the marks of two teams would be
/// equal more often.
const PAIR_COUNT_BITS: u32 = 48;

/// A collective in which a PE signals and waits, as messages and statuses describe it.
pub trait OngoingCollective {
    /// Returns the call of the program.
    fn call(&self) -> Call;

    /// Returns true for a non-blocking collective, which never matches a blocking one.
    fn is_in_request(&self) -> bool {
        false
    }

    /// Returns the subject of a wait in this collective: for the PE `awaited`, or for several PEs
    /// if that is `None`.
    fn subject(&self, awaited: Option<Pe>) -> AwaitedObject;

    /// Describes a wait in this collective, as [`subject`](OngoingCollective::subject) does.
    fn describe(&self, awaited: Option<Pe>) -> WaitDescription {
        WaitDescription {
            call: self.call(),
            subject: self.subject(awaited),
        }
    }
}

/// The flags and counters by which a member signals its team. One collective at a time uses them.
#[derive(Debug)]
pub struct TeamSignals {
    links: &'static Links,
    slot: u16,
    generation: u64,
    /// The high bits of a counter of two PEs in this team: a hash that is unlikely to collide with
    /// that of another team.
    pair_mark: u64,
    members: Members,
    me: TeamPe,
    /// The number of collectives that this member has entered.
    entered: u64,
    /// The edges between two members, by their numbers.
    edges: Box<[EdgeSignals]>,
    /// The number of messages that this member has sent on [`Edge::Any`].
    sent_to_any: u64,
    /// The number of messages that this member has awaited on [`Edge::Any`].
    taken_of_any: u64,
    /// The number of times that this member has awaited its release by a counter.
    releases: u64,
    /// The number of plans that have sent short vectors beside flags.
    short_reductions: usize,
    /// The number of words that this member has published to the others.
    shown: usize,
    /// The root of the last broadcast on an active set, until this member knows that the receivers
    /// to which it sends have entered it.
    pub unconfirmed_root: Option<u32>,
}

impl TeamSignals {
    /// Returns the signals of a new team, whose members have agreed on this slot and generation.
    ///
    /// # Panics
    /// If the generation is not below [`GENERATIONS`].
    pub fn new(
        links: &'static Links,
        slot: u16,
        generation: u64,
        members: Members,
        me: TeamPe,
    ) -> TeamSignals {
        assert!(
            generation < GENERATIONS,
            "an agreement offers no other generation"
        );

        let areas = links.area.areas();
        let edges = Edge::all(members.n).map(|edge| EdgeSignals {
            flag: areas.slot_flag(slot, edge),
            sent: 0,
            taken: 0,
        });
        TeamSignals {
            links,
            slot,
            generation,
            pair_mark: digest(&[slot.into(), generation]) << PAIR_COUNT_BITS,
            edges: edges.collect(),
            members,
            me,
            entered: 0,
            sent_to_any: 0,
            taken_of_any: 0,
            releases: 0,
            short_reductions: 0,
            shown: 0,
            unconfirmed_root: None,
        }
    }

    /// Counts a collective that this member enters. Returns its number, from 1.
    #[inline]
    pub fn enter(&mut self) -> u64 {
        self.entered += 1;
        self.entered
    }

    /// Returns the number of collectives that this member has entered.
    #[inline]
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Returns the slot of the team.
    #[inline]
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// Returns the highest generation that this member's counters have reached. It is later than
    /// the team's if an edge has carried more signals than fit the low bits of a counter.
    pub fn reached(&self) -> u64 {
        // Only the counters on which this member has waited: each one that it has raised belongs to
        // another member, which has waited on it.
        let most = self.edges.iter().map(|edge| edge.taken).max().unwrap_or(0);
        reached_by(self.generation, most.max(self.releases))
    }

    /// Resets the counters that a later team in the same slot expects to be zero. The others may
    /// keep their values, which are below those of any later generation.
    pub fn retire(&self) {
        let area = &self.links.area;
        for parity in [0, 1] {
            let counters = area.areas().counted(self.slot, parity);
            area.write_own(counters.by_cpu, &[0]);
            area.write_own(counters.by_network, &[0]);
        }
    }

    /// Counts an all-reduce of short vectors beside flags. Returns which of the two vectors beside
    /// a flag it uses.
    #[inline]
    pub fn next_short_reduction(&mut self) -> usize {
        self.short_reductions += 1;
        self.short_reductions % 2
    }

    /// Counts a word that each member publishes. Returns its offset. Two words in turn suffice:
    /// no PE leaves a collective that publishes a word before all have entered it, so no member
    /// still reads the word before the last one.
    #[inline]
    pub fn next_shown(&mut self) -> usize {
        self.shown += 1;
        self.links.area.areas().shown(self.slot, self.shown % 2)
    }

    /// Adds 1 to the counter of a member. The last member to do so calls `when_last` and releases
    /// all members.
    #[inline]
    pub fn arrive(&mut self, member: u32, when_last: impl FnOnce()) {
        let area = &self.links.area;
        let owner = self.members.world_pe(member);
        let counter = area.areas().counter(self.slot);
        let is_last = area.count_in(owner, counter, self.members.n);
        if !is_last {
            return;
        }

        when_last();
        let release = area.areas().release_flag(self.slot);
        area.release(owner, release, self.mark() + self.releases + 1);
        for pe in self.members.world_pes() {
            area.ring(pe);
        }
    }

    /// Waits until the counter of a member releases the members.
    #[inline]
    pub fn await_release(&mut self, collective: &impl OngoingCollective, member: u32) {
        self.releases += 1;

        let area = &self.links.area;
        let owner = self.members.world_pe(member);
        let release = area.areas().release_flag(self.slot);
        let value = self.mark() + self.releases;
        waits::until_rung(
            self.links,
            &[],
            || collective.describe(None),
            || area.flag_of(owner, release) >= value,
        );
    }

    /// Returns the generation in the high bits of a counter.
    fn mark(&self) -> u64 {
        self.generation << COUNT_BITS
    }

    /// Returns the memory of `peer` for the next short vector of this member, beside the flag; on
    /// [`Edge::Pair`] it counts the vector. Two ranges in turn suffice: this member sends again
    /// only after the peer's message, and the peer sends that message only after it has read the
    /// vector before the last one.
    #[inline]
    pub fn short_to(&self, peer: Partner, parity: usize) -> SymmetricRange {
        let area = &self.links.area;
        let (flag, parity) = match peer.edge {
            Edge::Pair => {
                let pe = self.world_pe(peer);
                let turn = self.pair_counts(pe).short_sent.fetch_add(1, Relaxed);
                (area.areas().pair_flag(self.own_pe()), turn % 2)
            }
            edge => (self.edges[edge.number(self.members.n)].flag, parity),
        };
        area.range(short_beside(flag, parity), SHORT)
    }

    /// Returns the memory of this PE that has the next short vector of `peer`, beside its flag; on
    /// [`Edge::Pair`] it counts the vector.
    #[inline]
    pub fn short_from(&self, peer: Partner, parity: usize) -> SymmetricRange {
        let area = &self.links.area;
        let (flag, parity) = match peer.edge {
            Edge::Pair => {
                let source = self.world_pe(peer);
                let turn = self.pair_counts(source).short_taken.fetch_add(1, Relaxed);
                (area.areas().pair_flag(source), turn % 2)
            }
            edge => (self.edges[edge.number(self.members.n)].flag, parity),
        };
        area.range(short_beside(flag, parity), SHORT)
    }

    /// Signals a member, after all earlier writes of this PE to it.
    #[inline]
    pub fn signal(&mut self, peer: Partner) {
        let pe = self.world_pe(peer);
        match self.next_signal(peer) {
            // Not the flag's next value where the team before, and so the mark, was another one.
            Some(Signal { flag, value }) if peer.edge == Edge::Pair => {
                self.links.area.raise(pe, flag, value);
            }
            Some(Signal { flag, value }) => {
                let area = &self.links.area;
                if area.raise_unrung(pe, flag, value, || order_of_signal(value)) {
                    area.ring(pe);
                }
            }
            None => {
                let counters = self.next_counted();
                self.links.area.count(pe, counters);
            }
        }
    }

    /// Copies `source` to `dest` at a member, then signals the member.
    pub fn put_signal(&mut self, peer: Partner, source: SymmetricRange, dest: SymmetricRange) {
        let pe = self.world_pe(peer);
        match self.next_signal(peer) {
            Some(Signal { flag, value }) => {
                self.links.area.put_and_raise(pe, source, dest, flag, value);
            }
            None => {
                let counters = self.next_counted();
                self.links.area.put_and_count(pe, source, dest, counters);
            }
        }
    }

    /// Waits for the next signal of a member, or of any member on [`Edge::Any`].
    #[inline]
    pub fn wait(&mut self, collective: &impl OngoingCollective, peer: Partner) {
        let source = self.world_pe(peer);
        match peer.edge {
            Edge::Any => self.wait_for_any(collective),
            Edge::Pair => {
                let turn = increment(&self.pair_counts(source).taken);
                let flag = self.links.area.areas().pair_flag(source);
                self.wait_for_pair(collective, source, flag, turn);
            }
            edge => {
                let Signal { flag, value } = self.next_awaited(edge);
                self.wait_for_flag(collective, source, flag, |found| found >= value);
            }
        }
    }

    /// Signals `receiver` and waits for the signal of `sender`, both on edges of the team: a round
    /// of a dissemination. Wakes `receiver` only after some polls: whether it sleeps is known once
    /// the signal has taken effect, and meanwhile the signal of `sender` usually arrives.
    #[inline]
    pub fn signal_and_wait(
        &mut self,
        collective: &impl OngoingCollective,
        receiver: Partner,
        sender: Partner,
    ) {
        let links = self.links;
        let pe = self.world_pe(receiver);
        let Signal { flag, value } = self.next_sent(receiver.edge);
        let is_unrung = links
            .area
            .raise_unrung(pe, flag, value, || order_of_signal(value));

        let Signal { flag, value } = self.next_awaited(sender.edge);
        let is_over = is_unrung && waits::is_soon(&links.job, || links.area.flag(flag) >= value);
        if is_unrung {
            // Before a long wait: the signal that ends it may come from that PE.
            links.area.ring(pe);
        }
        if !is_over {
            let source = self.world_pe(sender);
            self.wait_for_flag(collective, source, flag, |found| found >= value);
        }
    }

    /// Sends a block of at most [`LINE_BYTES`] bytes to a member: a flag and the block in one cache
    /// line, which only this PE writes.
    #[inline]
    pub fn put_line(&mut self, member: u32, block: SymmetricRange) {
        let area = &self.links.area;
        let pe = self.members.world_pe(member);
        let turn = increment(&self.pair_counts(pe).lines_sent);

        let flag = area.areas().line(self.own_pe(), turn);
        let line = area.range(flag + size_of::<u64>(), LINE_BYTES);
        area.put_and_raise(pe, block, line, flag, self.pair_mark + turn);
    }

    /// Waits for the next block that a member sends in its line. Returns the block.
    #[inline]
    pub fn wait_for_line(
        &mut self,
        collective: &impl OngoingCollective,
        member: u32,
    ) -> SymmetricRange {
        let area = &self.links.area;
        let source = self.members.world_pe(member);
        let turn = increment(&self.pair_counts(source).lines_taken);

        let flag = area.areas().line(source, turn);
        self.wait_for_pair(collective, source, flag, turn);
        area.range(flag + size_of::<u64>(), LINE_BYTES)
    }

    /// Waits for signal number `turn` of a PE, in the flag of the two PEs at this offset. Ends the
    /// job with an error if the signal was sent for another team.
    fn wait_for_pair(
        &mut self,
        collective: &impl OngoingCollective,
        source: Pe,
        flag: usize,
        turn: u64,
    ) {
        let awaited = self.pair_mark + turn;
        // Shifts the mark out, so that the numbers of signals of different teams compare.
        let count = |value: u64| value << (64 - PAIR_COUNT_BITS);

        let mut found = 0;
        self.wait_for_flag(collective, source, flag, |value| {
            found = value;
            count(found) >= count(awaited)
        });

        // A later signal may have replaced the mark of this one.
        if count(found) == count(awaited) && found != awaited {
            fail!(
                collective.call(),
                "PE {} is in a collective with this PE on another team: PEs that have several teams in common use \
                 them in the same order; SHMEM_CHECK=1 shows which PE is where",
                source.0
            )
        }
    }

    /// Waits until `ready`, which is given the value of the flag at this offset, returns true. PE
    /// `source` raises the flag.
    #[inline]
    fn wait_for_flag(
        &self,
        collective: &impl OngoingCollective,
        source: Pe,
        flag: usize,
        mut ready: impl FnMut(u64) -> bool,
    ) {
        let links = self.links;
        waits::until_rung(
            links,
            &[flag],
            || collective.describe(Some(source)),
            || ready(links.area.flag(flag)),
        );
    }

    /// Waits for one more message, from any member.
    fn wait_for_any(&mut self, collective: &impl OngoingCollective) {
        // Each other member sends one message a turn.
        let peers = u64::from(self.members.n - 1);
        let turn = self.taken_of_any / peers;
        let taken_in_turn = self.taken_of_any % peers;
        self.taken_of_any += 1;

        // Every second turn uses the same two counters, which only grow.
        let CounterPair { by_cpu, by_network } = self.counted(turn);
        let expected = turn / 2 * peers + taken_in_turn + 1;

        let area = &self.links.area;
        waits::until_rung(
            self.links,
            &[by_cpu, by_network],
            || collective.describe(None),
            || area.flag(by_cpu) + area.flag(by_network) >= expected,
        );
    }

    /// Counts the next signal to a peer, and returns it. Returns `None` and counts nothing on
    /// [`Edge::Any`], which has counters instead.
    #[inline]
    fn next_signal(&mut self, peer: Partner) -> Option<Signal> {
        match peer.edge {
            Edge::Any => None,
            Edge::Pair => {
                let sent = increment(&self.pair_counts(self.world_pe(peer)).sent);
                Some(Signal {
                    flag: self.links.area.areas().pair_flag(self.own_pe()),
                    value: self.pair_mark + sent,
                })
            }
            edge => Some(self.next_sent(edge)),
        }
    }

    /// Counts the next signal of this member on an edge of the team, and returns it.
    #[inline]
    fn next_sent(&mut self, edge: Edge) -> Signal {
        let mark = self.mark();
        let edge = &mut self.edges[edge.number(self.members.n)];
        edge.sent += 1;
        Signal {
            flag: edge.flag,
            value: edge.sent + mark,
        }
    }

    /// Counts the next signal that this member awaits on an edge of the team, and returns it.
    #[inline]
    fn next_awaited(&mut self, edge: Edge) -> Signal {
        let mark = self.mark();
        let edge = &mut self.edges[edge.number(self.members.n)];
        edge.taken += 1;
        Signal {
            flag: edge.flag,
            value: edge.taken + mark,
        }
    }

    /// Counts a message of this member on [`Edge::Any`]. Returns the counters of the message's
    /// turn.
    fn next_counted(&mut self) -> CounterPair {
        let turn = self.sent_to_any / u64::from(self.members.n - 1);
        self.sent_to_any += 1;
        self.counted(turn)
    }

    /// Returns the counters of messages from any member in a turn.
    fn counted(&self, turn: u64) -> CounterPair {
        let parity = (turn % 2) as usize;
        self.links.area.areas().counted(self.slot, parity)
    }

    /// Returns the numbers of messages between this PE and `pe`.
    fn pair_counts(&self, pe: Pe) -> &'static PairCounts {
        &self.links.pairs[pe.index()]
    }

    fn world_pe(&self, peer: Partner) -> Pe {
        self.members.world_pe(peer.index)
    }

    fn own_pe(&self) -> Pe {
        self.members.world_pe(self.me.0)
    }
}

/// An edge of the team's plans between two members.
#[derive(Debug)]
struct EdgeSignals {
    /// The offset of the flag that the sender writes in the area of the receiver.
    flag: usize,
    /// The number of signals that this member has sent.
    sent: u64,
    /// The number of signals that this member has awaited.
    taken: u64,
}

/// The offset of the flag that a signal raises in the area of its receiver, and the value that the
/// flag gets.
struct Signal {
    flag: usize,
    value: u64,
}

/// Counts a reduction, a scan or an all-to-all among all PEs of the job. Returns which of the two
/// copies of a set of receive buffers it uses. All PEs agree on the copy, since they make these
/// calls in the same order, on whatever team or active set. If each set belongs to one team, all
/// PEs have been in the same teams that had this set one after the other, and have made the same
/// calls there.
pub fn next_collective_of_job(links: &Links, set: u8) -> usize {
    links.collectives_of_job[usize::from(set)].fetch_add(1, Relaxed) % 2
}

/// Returns how a network stores the value of a signal on an edge of a team: as the flag's next one,
/// unless the signal is the first of the team, which replaces a value of an earlier team in the
/// slot. Generation 0 has none before it.
fn order_of_signal(value: u64) -> SignalOrder {
    let count = value % (1 << COUNT_BITS);
    if count == 1 && value > count {
        SignalOrder::AfterAll
    } else {
        SignalOrder::AfterAllNext
    }
}

/// Returns the highest generation that a counter has reached which began with `generation` and has
/// carried `count` signals.
fn reached_by(generation: u64, count: u64) -> u64 {
    generation + (count >> COUNT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_of_a_later_team_replaces_any_value() {
        let later = 5 << COUNT_BITS;
        for value in [1, 2, later, later + 2] {
            assert_eq!(order_of_signal(value), SignalOrder::AfterAllNext, "{value}");
        }
        assert_eq!(order_of_signal(later + 1), SignalOrder::AfterAll);
    }

    #[test]
    fn counters_may_outgrow_their_generation() {
        assert_eq!(reached_by(5, 0), 5);
        assert_eq!(reached_by(5, (1 << COUNT_BITS) - 1), 5);
        assert_eq!(reached_by(5, 1 << COUNT_BITS), 6);
    }
}
