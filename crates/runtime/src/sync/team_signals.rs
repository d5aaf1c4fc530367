//! Signals between the members of a team: for each edge between two of them a counter.
//!
//! A member's counter towards a peer lives in the peer's internal area and only grows; the high
//! bits are the team's generation, so what an earlier team left in the same slot is below every
//! value of this one. Since every plan takes each signal that its peers' plans send, the k-th
//! signal on an edge is taken by the receiver's k-th wait for it, whatever collectives follow each
//! other. Messages that come from any member are counted instead, by two counters in turn: see
//! [`Edge::Any`].
//!
//! Plans of two levels signal members at any distance, on [`Edge::Pair`]: their counters belong to
//! each two PEs, whatever team both are in. No PE ends such a plan before all have entered it, so
//! both make those of all their teams in the same order. The high bits of such a counter are a mark
//! of the team, by which a PE notices that the other one does not keep the order. Messages on
//! [`Edge::Line`] follow the same rule.

use crate::call::{Call, fail};
use crate::diagnosis::status::WaitDescription;
use crate::job::Job;
use crate::job::digest;
use crate::job::members::Members;
use crate::memory::areas::{RECEIVE_BUFFER_SETS, SHORT, SlotFlags};
use crate::memory::range::SymmetricRange;
use crate::net::flags::{self, FlagArea};
use crate::sync::backoff;
use rushmem_collectives::{Edge, LINE_BYTES, Partner};
use rushmem_explain::status::Subject;
use rushmem_transport::{Pe, TeamPe};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bits of a counter below the generation.
const COUNT_BITS: u32 = 36;
/// Generations that the bits above have room for.
pub(crate) const GENERATIONS: u64 = 1 << (64 - COUNT_BITS);
/// Bits of the counter of two PEs below the mark.
const PAIR_COUNT_BITS: u32 = 48;

/// Polls of a flag before a peer is woken that was signaled last: some hundreds of nanoseconds.
const POLLS_BEFORE_RING: u32 = 256;

/// The collective in which signals are used.
pub(crate) trait OngoingCollective {
    fn call(&self) -> Call;

    /// Returns true if it does not block: it meets no collective that does.
    fn is_in_request(&self) -> bool {
        false
    }

    /// Returns what a member waits for there: for `awaited`, if it is one PE.
    fn subject(&self, awaited: Option<Pe>) -> Subject;

    fn describe(&self, awaited: Option<Pe>) -> WaitDescription {
        (self.call(), self.subject(awaited))
    }
}

/// The flags and counters by which a member signals its team. One collective uses them at a time.
#[derive(Debug)]
pub(crate) struct TeamSignals {
    slot: u16,
    flags: SlotFlags,
    generation: u64,
    /// The amount that this team adds to the counter of two PEs: unlikely to collide with another
    /// team's.
    pair_mark: u64,
    members: Members,
    me: TeamPe,
    /// The number of collectives that this member has entered.
    entered: u64,
    /// Signals that were sent and taken, by edge.
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// The number of signals sent on [`Edge::Any`].
    sent_to_any: u64,
    taken_of_any: u64,
    /// Counts the releases of a counter.
    releases: u64,
    /// Counts the plans that send short vectors beside flags.
    short_reductions: usize,
    /// Counts the words that were shown.
    shown: usize,
    /// Whom this member has signaled, and not woken in case it sleeps.
    unnotified: Option<Pe>,
    /// The root of a broadcast whose receivers this member has yet to hear of.
    pub(crate) unconfirmed_root: Option<u32>,
}

/// The numbers of signals that this PE has sent to another one on [`Edge::Pair`], and has received
/// from it.
#[derive(Debug, Default)]
struct PairCounts {
    sent: AtomicU64,
    taken: AtomicU64,
    /// The short vectors among these.
    short_sent: AtomicUsize,
    short_taken: AtomicUsize,
    /// The messages on [`Edge::Line`].
    lines_sent: AtomicU64,
    lines_taken: AtomicU64,
}

/// Returns those of `pe`.
fn pair(pe: Pe) -> &'static PairCounts {
    static PAIRS: OnceLock<Vec<PairCounts>> = OnceLock::new();
    let counts = || {
        let n_pes = flags::area().areas().n_pes();
        (0..n_pes).map(|_| PairCounts::default()).collect()
    };
    &PAIRS.get_or_init(counts)[pe.index()]
}

/// Counts one more message of a pair: one collective at a time uses these counts.
#[inline]
fn next(count: &AtomicU64) -> u64 {
    let next = count.load(Relaxed) + 1;
    count.store(next, Relaxed);
    next
}

impl TeamSignals {
    pub(crate) fn new(
        (slot, flags): (u16, SlotFlags),
        generation: u64,
        members: Members,
        me: TeamPe,
    ) -> TeamSignals {
        assert!(generation < GENERATIONS, "an agreement offers no others");
        let zeros = vec![0; Edge::count(members.n)];
        TeamSignals {
            slot,
            flags,
            generation,
            pair_mark: digest(&[slot.into(), generation]) << PAIR_COUNT_BITS,
            members,
            me,
            entered: 0,
            sent: zeros.clone(),
            taken: zeros,
            sent_to_any: 0,
            taken_of_any: 0,
            releases: 0,
            short_reductions: 0,
            shown: 0,
            unnotified: None,
            unconfirmed_root: None,
        }
    }

    /// Enters a collective. Returns its number, counted from 1.
    #[inline]
    pub(crate) fn enter(&mut self) -> u64 {
        self.entered += 1;
        self.entered
    }

    /// Returns how many collectives this member has entered.
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    pub(crate) fn slot(&self) -> u16 {
        self.slot
    }

    /// Returns the generation that this member's counters came to, which is a later one than the
    /// team's when a pair exchanged more signals than fit the bits below.
    pub(crate) fn reached(&self) -> u64 {
        let max = self.taken.iter().max().unwrap_or(&0).max(&self.releases);
        self.generation + (max >> COUNT_BITS)
    }

    /// Leaves nothing to a later team in the same slot but counters below those of its generation.
    pub(crate) fn retire(&self) {
        let (area, slot) = (flags::area(), self.slot);
        for (parity, by_network) in [(0, false), (1, false), (0, true), (1, true)] {
            area.write_own(area.areas().counted(slot, parity, by_network), &[0]);
        }
    }

    /// Returns which of the two copies the next all-reduce of short vectors uses.
    pub(crate) fn next_short_reduction(&mut self) -> usize {
        self.short_reductions += 1;
        self.short_reductions % 2
    }

    /// Returns where each member shows the next word. Of the two places no PE changes one that is
    /// read, if no PE ends a collective with such words before all have entered it.
    pub(crate) fn next_shown(&mut self) -> usize {
        self.shown += 1;
        flags::area().areas().shown(self.slot, self.shown % 2)
    }

    /// Counts this member in at the counter of member `at`; the last one does what is to be done
    /// then, and releases all.
    pub(crate) fn arrive(&mut self, at: u32, when_last: impl FnOnce()) {
        let area = flags::area();
        let owner = self.members.world_pe(at);
        let counter = area.areas().counter(self.slot);
        if area.count_in(owner, counter, self.members.n) {
            when_last();
            area.release(owner, counter + 8, self.mark() + self.releases + 1);
            self.members.world_pes().for_each(|pe| area.ring(pe));
        }
    }

    /// Waits until the counter of member `at` releases the members.
    pub(crate) fn await_release(&mut self, by: &impl OngoingCollective, job: &Job, at: u32) {
        self.releases += 1;
        self.ring();
        let area = flags::area();
        let (owner, counter) = (self.members.world_pe(at), area.areas().counter(self.slot));
        let value = self.mark() + self.releases;
        let is_released = || area.flag_of(owner, counter + 8) >= value;
        backoff::until_rung(job, || by.describe(None), is_released);
    }

    /// Returns what the team's generation adds to the count of a counter.
    fn mark(&self) -> u64 {
        self.generation << COUNT_BITS
    }

    /// Returns where `peer` finds what this member sends beside its flag. Each two members that do
    /// send so once to each other in a plan, so of two places no PE overwrites one that was not
    /// read: who sends has had the other's last message, which that one sent when it had read the
    /// message before.
    pub(crate) fn short_there(&self, peer: Partner, parity: usize) -> SymmetricRange {
        let (area, pe) = (flags::area(), self.world_pe(peer));
        let areas = area.areas();
        let at = match peer.edge {
            Edge::Pair => {
                let turn = pair(pe).short_sent.fetch_add(1, Relaxed);
                areas.pair_short(self.own_pe(), turn % 2)
            }
            edge => self.flags.short(edge, parity),
        };
        area.range(at, SHORT)
    }

    /// Returns where `peer` put what it sent beside its flag, and this member has not taken yet.
    pub(crate) fn short_here(&self, peer: Partner, parity: usize) -> SymmetricRange {
        let (area, source) = (flags::area(), self.world_pe(peer));
        let areas = area.areas();
        let at = match peer.edge {
            Edge::Pair => {
                let turn = pair(source).short_taken.fetch_add(1, Relaxed);
                areas.pair_short(source, turn % 2)
            }
            edge => self.flags.short(edge, parity),
        };
        area.range(at, SHORT)
    }

    /// Signals a member, after everything that was written to it before.
    #[inline]
    pub(crate) fn signal(&mut self, peer: Partner) {
        let pe = self.world_pe(peer);
        match self.next_signal(peer) {
            Some((at, value)) => self.raise(pe, |area| area.raise_unrung(pe, at, value)),
            None => {
                let [at, by_network] = self.next_counted();
                flags::area().count(pe, at, by_network);
            }
        }
    }

    /// Copies `source` to the same place of `dest` at a member, then signals it.
    pub(crate) fn put_signal(
        &mut self,
        peer: Partner,
        source: SymmetricRange,
        dest: SymmetricRange,
    ) {
        let pe = self.world_pe(peer);
        match self.next_signal(peer) {
            Some((at, value)) => {
                self.raise(pe, |area| area.put_and_raise_unrung(pe, (source, dest), at, value))
            }
            None => {
                let [at, by_network] = self.next_counted();
                flags::area().put_and_count(pe, (source, dest), at, by_network);
            }
        }
    }

    /// Changes a flag of `pe`. If that is a store, its effect need not be awaited before this
    /// member looks at its own flags, as it must be before one can know whether the PE sleeps.
    #[inline]
    fn raise(&mut self, pe: Pe, change: impl FnOnce(&FlagArea) -> bool) {
        self.ring();
        if change(flags::area()) {
            self.unnotified = Some(pe);
        }
    }

    /// Wakes the PE that was signaled last, if it sleeps.
    #[inline]
    pub(crate) fn ring(&mut self) {
        if let Some(pe) = self.unnotified.take() {
            flags::area().ring(pe);
        }
    }

    /// Waits for the next signal of a member.
    #[inline]
    pub(crate) fn wait(&mut self, by: &impl OngoingCollective, job: &Job, peer: Partner) {
        let source = self.world_pe(peer);
        let (at, value) = match peer.edge {
            Edge::Any => return self.wait_for_any(by, job),
            Edge::Pair => {
                let turn = next(&pair(source).taken);
                let at = flags::area().areas().pair_flag(source);
                return self.wait_for_pair(by, job, source, (at, turn));
            }
            edge => {
                let taken = &mut self.taken[edge.number(self.members.n)];
                *taken += 1;
                (self.flags.flag(edge), *taken + self.mark())
            }
        };
        let describe = || by.describe(Some(source));
        let unnotified = self.unnotified.take();
        self.unnotified = until(unnotified, job, describe, || flags::area().flag(at) >= value);
    }

    /// Sends a block of at most [`LINE_BYTES`] bytes to a member, in the line of this PE there.
    #[inline]
    pub(crate) fn put_line(&mut self, member: u32, block: SymmetricRange) {
        let (area, pe) = (flags::area(), self.members.world_pe(member));
        let turn = next(&pair(pe).lines_sent);
        let at = area.areas().line(self.own_pe(), turn);
        let line = area.range(at + size_of::<u64>(), LINE_BYTES);
        let value = self.pair_mark + turn;
        self.raise(pe, |area| area.put_and_raise_unrung(pe, (block, line), at, value));
    }

    /// Waits for the next block of a member that comes in a line. Returns its place.
    #[inline]
    pub(crate) fn wait_for_line(
        &mut self,
        by: &impl OngoingCollective,
        job: &Job,
        member: u32,
    ) -> SymmetricRange {
        let (area, source) = (flags::area(), self.members.world_pe(member));
        let turn = next(&pair(source).lines_taken);
        let at = area.areas().line(source, turn);
        self.wait_for_pair(by, job, source, (at, turn));
        area.range(at + size_of::<u64>(), LINE_BYTES)
    }

    /// Waits for the signal `turn` of a PE, at a flag that does not belong to the team. Ends the
    /// job with an error if the signal is for another team.
    fn wait_for_pair(
        &mut self,
        by: &impl OngoingCollective,
        job: &Job,
        source: Pe,
        (at, turn): (usize, u64),
    ) {
        let value = self.pair_mark + turn;
        let count = |value: u64| value << (64 - PAIR_COUNT_BITS);
        let mut flag = 0;
        let unnotified = self.unnotified.take();
        self.unnotified = until(
            unnotified,
            job,
            || by.describe(Some(source)),
            || {
                flag = flags::area().flag(at);
                count(flag) >= count(value)
            },
        );
        if count(flag) == count(value) && flag != value {
            fail!(
                by.call(),
                "PE {} is in a collective with this PE on another team: PEs that have several teams in common use \
                 them in the same order; SHMEM_CHECK=1 shows which PE is where",
                source.0
            )
        }
    }

    /// Waits until one more message of whichever member has come.
    fn wait_for_any(&mut self, by: &impl OngoingCollective, job: &Job) {
        let peers = u64::from(self.members.n - 1);
        let (turn, before) = (self.taken_of_any / peers, self.taken_of_any % peers);
        self.taken_of_any += 1;
        let [at, by_network] = self.counted(turn);
        let expected = turn / 2 * peers + before + 1;
        self.ring();
        let area = flags::area();
        let describe = || by.describe(None);
        backoff::until_rung(job, describe, || area.flag(at) + area.flag(by_network) >= expected);
    }

    /// Returns the next signal to a peer: where its flag is there, and what it becomes; `None` if
    /// the signal is counted only.
    #[inline]
    fn next_signal(&mut self, peer: Partner) -> Option<(usize, u64)> {
        let areas = flags::area().areas();
        match peer.edge {
            Edge::Any => None,
            Edge::Pair => {
                let sent = next(&pair(self.world_pe(peer)).sent);
                Some((areas.pair_flag(self.own_pe()), self.pair_mark + sent))
            }
            edge => {
                let sent = &mut self.sent[edge.number(self.members.n)];
                *sent += 1;
                Some((self.flags.flag(edge), *sent + self.mark()))
            }
        }
    }

    /// Returns where the next message is counted that does not say who sends it.
    fn next_counted(&mut self) -> [usize; 2] {
        let turn = self.sent_to_any / u64::from(self.members.n - 1);
        self.sent_to_any += 1;
        self.counted(turn)
    }

    /// Returns the counters of messages from any member, of CPUs and of a network.
    fn counted(&self, turn: u64) -> [usize; 2] {
        let parity = (turn % 2) as usize;
        [false, true].map(|by_network| flags::area().areas().counted(self.slot, parity, by_network))
    }

    fn world_pe(&self, peer: Partner) -> Pe {
        self.members.world_pe(peer.index)
    }

    fn own_pe(&self) -> Pe {
        self.members.world_pe(self.me.0)
    }
}

/// Returns which copy of the receive buffers of all PEs in `set` their next reduction or all-to-all
/// uses. They make these in the same order, on whatever team or active set. If the sets are of
/// single teams, all PEs are in the same teams of all PEs that have one after the other had this
/// set, and made the same calls there.
pub(crate) fn next_collective_of_job(set: u8) -> usize {
    static COUNTS: [AtomicUsize; RECEIVE_BUFFER_SETS] =
        [const { AtomicUsize::new(0) }; RECEIVE_BUFFER_SETS];
    COUNTS[usize::from(set)].fetch_add(1, Relaxed) % 2
}

/// Waits until `ready`, and wakes a PE that was signaled if that takes a while, or else returns it.
#[inline]
fn until(
    unnotified: Option<Pe>,
    job: &Job,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) -> Option<Pe> {
    if let Some(pe) = unnotified {
        let polls = if job.oversubscribed { 0 } else { POLLS_BEFORE_RING };
        for _ in 0..polls {
            if ready() {
                return unnotified;
            }
            std::hint::spin_loop();
        }
        flags::area().ring(pe);
    }
    backoff::until_rung(job, describe, ready);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::areas::Areas;

    #[test]
    fn counters_may_outgrow_their_generation() {
        let mut signals =
            TeamSignals::new((7, Areas::new(3, 1).slot_flags(7)), 5, Members::world(3), TeamPe(1));
        assert_eq!(signals.reached(), 5);
        signals.taken[2] = (1 << COUNT_BITS) - 1;
        assert_eq!(signals.reached(), 5);
        signals.taken[2] += 1;
        assert_eq!(signals.reached(), 6);
    }
}
