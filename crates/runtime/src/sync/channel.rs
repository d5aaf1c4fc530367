//! Signals between the members of a team: for each edge between two of them a counter.
//!
//! A member's counter towards a peer lives in the peer's internal area and only grows; the high
//! bits are the team's generation, so what an earlier team left in the same slot is below every
//! value of this one. Since every plan takes each signal that its peers' plans send, the k-th
//! signal on an edge is taken by the receiver's k-th wait for it, whatever collectives follow each
//! other. Messages that come from any member are counted instead, by two counters in turn: see
//! [`Edge::Any`].
//!
//! All active sets share one pair of counters between each two PEs: these PEs make the calls that
//! both take part in in the same order, so the rule holds for all sets together, and sets need
//! nothing of their own. The high bits of such a counter are a mark of the active set in place of a
//! generation. Plans of two levels on teams use the same counters: no PE ends them before all have
//! entered, so the order is the same at both PEs. Each pair of PEs also has the count of broadcasts
//! that shows a PE how far those behind it are.

use crate::base::call::{Call, fail};
use crate::base::job::Job;
use crate::base::members::Members;
use crate::memory::areas::{Areas, LANDING_SETS};
use crate::memory::range::SymmetricRange;
use crate::sync::backoff;
use crate::sync::flags::{self, FlagArea};
use crate::sync::status::Described;
use core::ffi::c_int;
use rushmem_collectives::{Edge, Partner};
use rushmem_explain::status::Subject;
use rushmem_transport::{Pe, TeamPe};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bits of a counter below the generation.
const COUNT_BITS: u32 = 36;
/// Generations that the bits above have room for.
pub(crate) const GENERATIONS: u64 = 1 << (64 - COUNT_BITS);
/// Bits of a counter of active sets below the mark.
const SHARED_COUNT_BITS: u32 = 48;

/// Polls of a flag before a peer is woken that was signaled last: some hundreds of nanoseconds.
const POLLS_UNRUNG: u32 = 256;

/// Polls of a counter before the flags of all members are looked at, too, to see whether one of
/// them is elsewhere.
const POLLS_OF_ONE_FLAG: u32 = 16;

/// The collective in which channels are used.
pub(crate) trait InCollective {
    fn call(&self) -> Call;

    /// Returns what a member waits for there: for `awaited`, if it is one PE.
    fn subject(&self, awaited: Option<Pe>) -> Subject;

    fn describe(&self, awaited: Option<Pe>) -> Described {
        (self.call(), self.subject(awaited))
    }
}

/// One member's side of its team's signals. Used by one collective at a time.
#[derive(Debug)]
pub(crate) struct Channels {
    slot: u16,
    generation: u64,
    /// The high bits of what this member signals: the generation or the mark.
    mark: u64,
    /// The bits of a signal that grow: all but those of a mark.
    growing: u64,
    members: Members,
    me: TeamPe,
    /// The number of collectives that this member has entered.
    entered: u64,
    /// Signals that were sent and taken, by edge; of active sets by PE.
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// The same on [`Edge::Any`].
    sent_to_any: u64,
    taken_of_any: u64,
    /// Counts the releases of a counter.
    releases: u64,
    /// Counts the plans that send short vectors beside flags.
    short_reductions: usize,
    /// Counts the words that were shown.
    shown: usize,
    /// Whom this member has signaled, and not woken in case it sleeps.
    unrung: Option<Pe>,
    /// Where these are the channels of all active sets.
    pairs: Option<Pairs>,
}

/// What a PE knows of each other one, whatever active set both are in.
#[derive(Debug)]
struct Pairs {
    /// Which of two short vectors is next, at the other PE and here.
    put: Vec<usize>,
    taken: Vec<usize>,
    /// The number of broadcasts that the other writes here that this PE has entered, and the
    /// reverse.
    entered: Vec<u64>,
    written: Vec<u64>,
    /// How many collectives on each active set this PE has entered.
    on_sets: HashMap<[c_int; 3], u64>,
    /// The last broadcast of this PE: its active set and root.
    last_broadcast: Option<([c_int; 3], u32)>,
}

impl Channels {
    pub(crate) fn new(slot: u16, generation: u64, members: Members, me: TeamPe) -> Channels {
        assert!(generation < GENERATIONS, "an agreement offers no others");
        let zeros = vec![0; Edge::count(members.n)];
        Channels {
            slot,
            generation,
            mark: generation << COUNT_BITS,
            growing: u64::MAX,
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
            unrung: None,
            pairs: None,
        }
    }

    /// Returns those that all active sets of the world share, in `slot`.
    pub(crate) fn of_active_sets(slot: u16, world: Members, me: TeamPe) -> Channels {
        let growing = (1 << SHARED_COUNT_BITS) - 1;
        let zeros = vec![0; world.n as usize];
        let pairs = Some(Pairs {
            put: vec![0; world.n as usize],
            taken: vec![0; world.n as usize],
            entered: zeros.clone(),
            written: zeros.clone(),
            on_sets: HashMap::new(),
            last_broadcast: None,
        });
        let (sent, taken) = (zeros.clone(), zeros);
        Channels { growing, pairs, sent, taken, ..Channels::new(slot, 0, world, me) }
    }

    /// This member enters a collective: which one it is, counted from 1.
    #[inline]
    pub(crate) fn enter(&mut self) -> u64 {
        self.entered += 1;
        self.entered
    }

    /// Returns how many collectives this member has entered.
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// The active sets on which this PE has entered collectives, and how many.
    pub(crate) fn entered_on_sets(&self) -> Vec<([c_int; 3], u64)> {
        let sets = self.pairs.iter().flat_map(|pairs| &pairs.on_sets);
        sets.map(|(set, entered)| (*set, *entered)).collect()
    }

    /// Works as [`enter`](Channels::enter), of the collectives on the active set `set`.
    pub(crate) fn enter_set(&mut self, set: [c_int; 3]) -> u64 {
        let sets = &mut self.pairs.as_mut().expect("the channels of active sets").on_sets;
        let entered = sets.entry(set).or_default();
        *entered += 1;
        *entered
    }

    /// The active set that the next signals are for, by a number that other sets hardly have.
    pub(crate) fn mark(&mut self, number: u64) {
        self.mark = number << SHARED_COUNT_BITS;
    }

    pub(crate) fn slot(&self) -> u16 {
        self.slot
    }

    /// The generation that this member's counters came to, which is a later one than the team's
    /// when a pair exchanged more signals than fit the bits below.
    pub(crate) fn reached(&self) -> u64 {
        let max = self.taken.iter().max().unwrap_or(&0).max(&self.releases);
        self.generation + (max >> COUNT_BITS)
    }

    /// Leave nothing to a later team in the same slot but counters below those of its generation.
    pub(crate) fn retire(&self) {
        let (area, slot) = (flags::area(), self.slot);
        for (parity, by_network) in [(0, false), (1, false), (0, true), (1, true)] {
            area.write_own(area.areas().counted(slot, parity, by_network), &[0]);
        }
    }

    /// Which of the two copies the next all-reduce of short vectors uses.
    pub(crate) fn next_short_reduction(&mut self) -> usize {
        self.short_reductions += 1;
        self.short_reductions % 2
    }

    /// Returns where each member shows the next word. Of the two places no PE changes one that is
    /// read, if no PE ends a collective with such words before all have entered it. The members of
    /// different active sets do not count alike.
    pub(crate) fn next_shown(&mut self) -> usize {
        if self.pairs.is_none() {
            self.shown += 1;
        }
        flags::area().areas().shown(self.slot, self.shown % 2)
    }

    /// A broadcast over the active set `set` from `root`: how many broadcasts its writers may be
    /// ahead of those that they write to. That is one while the same is repeated, so that those who
    /// alternate between two destinations have done with the one that comes next; otherwise none.
    pub(crate) fn next_broadcast(&mut self, set: [c_int; 3], root: u32) -> u64 {
        let this = Some((set, root));
        let pairs = self.pairs.as_mut().expect("the channels of active sets");
        let repeated = std::mem::replace(&mut pairs.last_broadcast, this) == this;
        u64::from(repeated)
    }

    /// Announce to `peer` that this PE has entered a broadcast in which `peer` writes to it.
    pub(crate) fn announce(&mut self, peer: u32) {
        let at = flags::area().areas().entered(self.own_pe());
        let pairs = self.pairs.as_mut().expect("the channels of active sets");
        let entered = &mut pairs.entered[peer as usize];
        *entered += 1;
        let (pe, value) = (self.members.world_pe(peer), *entered);
        self.raise(pe, |area| area.raise_unrung(pe, at, value));
    }

    /// Wait until `peer` has entered the broadcast in which this PE writes to it next, or is at
    /// most `ahead` behind. Ends the job with an error when it is seen to be in a call on another
    /// active set: in that broadcast it sends no signal before it has the data.
    pub(crate) fn wait_for_entry(
        &mut self,
        by: &impl InCollective,
        job: &Job,
        peer: u32,
        ahead: u64,
    ) {
        let pairs = self.pairs.as_mut().expect("the channels of active sets");
        let written = &mut pairs.written[peer as usize];
        *written += 1;
        let needed = *written - ahead;
        let next_signal = self.mark + self.taken[peer as usize] + 1;
        let areas = flags::area().areas();
        let source = self.members.world_pe(peer);
        let (entered, signal) = (areas.entered(source), areas.pair_flag(source));
        let mut has_entered = false;
        let unrung = self.unrung.take();
        self.unrung = until(
            unrung,
            job,
            || by.describe(Some(source)),
            || {
                has_entered = flags::area().flag(entered) >= needed;
                has_entered || self.is_of_another_set(flags::area().flag(signal), next_signal)
            },
        );
        if !has_entered {
            elsewhere(by.call(), source);
        }
    }

    /// Count this member in at the counter of member `at`; the last one does what is to be done
    /// then, and releases all.
    pub(crate) fn arrive(&mut self, at: u32, when_last: impl FnOnce()) {
        let area = flags::area();
        let owner = self.members.world_pe(at);
        let counter = area.areas().counter(self.slot);
        if area.count_in(owner, counter, self.members.n) {
            when_last();
            area.release(owner, counter + 8, self.generation_mark() + self.releases + 1);
            self.members.world_pes().for_each(|pe| area.ring(pe));
        }
    }

    /// Wait until the counter of member `at` releases the members. Ends the job with an error when
    /// a member is seen to be in a call on another active set.
    pub(crate) fn await_release(&mut self, by: &impl InCollective, job: &Job, at: u32) {
        self.releases += 1;
        self.ring();
        let area = flags::area();
        let (owner, counter) = (self.members.world_pe(at), area.areas().counter(self.slot));
        let value = self.generation_mark() + self.releases;
        let (mut other, mut polls) = (None, 0);
        backoff::until_rung(
            job,
            || by.describe(None),
            || {
                let is_released = area.flag_of(owner, counter + 8) >= value;
                polls += 1;
                if !is_released && polls > POLLS_OF_ONE_FLAG && self.pairs.is_some() {
                    other = self.in_another_set();
                }
                is_released || other.is_some()
            },
        );
        if let Some(peer) = other {
            elsewhere(by.call(), self.members.world_pe(peer));
        }
    }

    /// Returns what the team's generation adds to the count of its counter. Active sets have one
    /// forever.
    fn generation_mark(&self) -> u64 {
        self.generation << COUNT_BITS
    }

    /// A member that signals to this one in a collective on another active set.
    fn in_another_set(&self) -> Option<u32> {
        let areas = flags::area().areas();
        (0..self.members.n).find(|&peer| {
            let next = self.mark + self.taken[peer as usize] + 1;
            self.is_of_another_set(
                flags::area().flag(areas.pair_flag(self.members.world_pe(peer))),
                next,
            )
        })
    }

    /// Returns where `peer` finds what this member sends beside its flag. Each two members that do
    /// send so once to each other in a plan, so of two places no PE overwrites one that was not
    /// read: who sends has had the other's last message, which that one sent when it had read the
    /// message before.
    pub(crate) fn short_there(&mut self, areas: &Areas, peer: Partner, parity: usize) -> usize {
        let own = self.own_pe();
        match &mut self.pairs {
            None => areas.short(self.slot, peer.edge, parity),
            Some(pairs) => areas.pair_short(own, alternate(&mut pairs.put[peer.index as usize])),
        }
    }

    /// Returns where `peer` put what it sent beside its flag, and this member has not taken yet.
    pub(crate) fn short_here(&mut self, areas: &Areas, peer: Partner, parity: usize) -> usize {
        match &mut self.pairs {
            None => areas.short(self.slot, peer.edge, parity),
            Some(pairs) => areas.pair_short(
                self.members.world_pe(peer.index),
                alternate(&mut pairs.taken[peer.index as usize]),
            ),
        }
    }

    /// Returns true if a peer's counter has come to the count of `value`, but with another mark.
    fn is_of_another_set(&self, flag: u64, value: u64) -> bool {
        flag & self.growing == value & self.growing && flag != value
    }

    /// Signal a member, after everything that was written to it before.
    #[inline]
    pub(crate) fn signal(&mut self, peer: Partner) {
        let pe = self.members.world_pe(peer.index);
        match self.next_signal(peer) {
            Some((at, value)) => self.raise(pe, |area| area.raise_unrung(pe, at, value)),
            None => {
                let [at, by_network] = self.next_counted();
                flags::area().count(pe, at, by_network);
            }
        }
    }

    /// Copy `source` to the same place of `dest` at a member, then signal it.
    pub(crate) fn put_signal(
        &mut self,
        peer: Partner,
        source: SymmetricRange,
        dest: SymmetricRange,
    ) {
        let pe = self.members.world_pe(peer.index);
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

    /// Change a flag of `pe`. If that is a store, its effect need not be awaited before this member
    /// looks at its own flags, as it must be before one can know whether the PE sleeps.
    #[inline]
    fn raise(&mut self, pe: Pe, change: impl FnOnce(&FlagArea) -> bool) {
        self.ring();
        if change(flags::area()) {
            self.unrung = Some(pe);
        }
    }

    /// Wake the PE that was signaled last, if it sleeps.
    #[inline]
    pub(crate) fn ring(&mut self) {
        if let Some(pe) = self.unrung.take() {
            flags::area().ring(pe);
        }
    }

    /// Wait for the next signal of a member. Ends the job with an error when it is seen to be for
    /// another active set.
    #[inline]
    pub(crate) fn wait(&mut self, by: &impl InCollective, job: &Job, peer: Partner) {
        let Some(index) = self.index(peer) else { return self.wait_for_any(by, job) };
        let areas = flags::area().areas();
        let at = match self.pairs {
            None => areas.flag(self.slot, peer.edge),
            Some(_) => areas.pair_flag(self.members.world_pe(peer.index)),
        };
        let taken = &mut self.taken[index];
        *taken += 1;
        let value = self.mark + *taken;
        let growing = self.growing;
        let mut flag = 0;
        let (unrung, members) = (self.unrung.take(), &self.members);
        let describe = || by.describe(Some(members.world_pe(peer.index)));
        self.unrung = until(unrung, job, describe, || {
            flag = flags::area().flag(at);
            flag & growing >= value & growing
        });
        if self.is_of_another_set(flag, value) {
            elsewhere(by.call(), self.members.world_pe(peer.index));
        }
    }

    /// Wait until one more message of whichever member has come.
    fn wait_for_any(&mut self, by: &impl InCollective, job: &Job) {
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

    /// The next signal to a peer: where its flag is there, and what it becomes; `None` if the
    /// signal is counted only.
    #[inline]
    fn next_signal(&mut self, peer: Partner) -> Option<(usize, u64)> {
        let index = self.index(peer)?;
        let sent = &mut self.sent[index];
        *sent += 1;
        let value = self.mark + *sent;
        let areas = flags::area().areas();
        let at = match self.pairs {
            None => areas.flag(self.slot, peer.edge),
            Some(_) => areas.pair_flag(self.own_pe()),
        };
        Some((at, value))
    }

    /// Returns where the next message is counted that does not say who sends it.
    fn next_counted(&mut self) -> [usize; 2] {
        let turn = self.sent_to_any / u64::from(self.members.n - 1);
        self.sent_to_any += 1;
        self.counted(turn)
    }

    /// The counters of messages from any member, of CPUs and of a network.
    fn counted(&self, turn: u64) -> [usize; 2] {
        let parity = (turn % 2) as usize;
        [false, true].map(|by_network| flags::area().areas().counted(self.slot, parity, by_network))
    }

    /// Returns where the signals to and of a peer are counted here, unless they are counted with
    /// those of others.
    #[inline]
    fn index(&self, peer: Partner) -> Option<usize> {
        match self.pairs {
            None => peer.edge.number(self.members.n),
            Some(_) => Some(peer.index as usize),
        }
    }

    fn own_pe(&self) -> Pe {
        self.members.world_pe(self.me.0)
    }
}

/// Which of the two copies of the landings of all PEs in `set` the next reduction or all-to-all
/// among them uses: they make these in the same order, on whatever team or active set. If the sets
/// are of single teams, all PEs are in the same teams of all PEs that have one after the other had
/// this set, and made the same calls there.
pub(crate) fn next_collective_of_job(set: u8) -> usize {
    static COUNTS: [AtomicUsize; LANDING_SETS] = [const { AtomicUsize::new(0) }; LANDING_SETS];
    COUNTS[usize::from(set)].fetch_add(1, Ordering::Relaxed) % 2
}

/// Wait until `ready`, and wake a PE that was signaled if that takes a while; otherwise it is
/// returned.
#[inline]
fn until(
    unrung: Option<Pe>,
    job: &Job,
    describe: impl Fn() -> Described,
    mut ready: impl FnMut() -> bool,
) -> Option<Pe> {
    if let Some(pe) = unrung {
        let polls = if job.oversubscribed { 0 } else { POLLS_UNRUNG };
        for _ in 0..polls {
            if ready() {
                return unrung;
            }
            std::hint::spin_loop();
        }
        flags::area().ring(pe);
    }
    backoff::until_rung(job, describe, ready);
    None
}

/// 0 and 1 in turn.
fn alternate(next: &mut usize) -> usize {
    let this = *next;
    *next = 1 - this;
    this
}

/// End the job: `peer` is in a collective with this PE on another active set.
#[cold]
fn elsewhere(call: Call, peer: Pe) -> ! {
    // Cause: PEs make collectives of several teams in different orders.
    fail!(
        call,
        "PE {} is in a collective with this PE on another active set or team: all members of an active set \
         call with the same PE_start, logPE_stride and PE_size, and PEs that have several active sets or teams \
         in common use them in the same order; SHMEM_CHECK=1 shows which PE is where",
        peer.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_may_outgrow_their_generation() {
        let mut channels = Channels::new(7, 5, Members::world(3), TeamPe(1));
        assert_eq!(channels.reached(), 5);
        channels.taken[2] = (1 << COUNT_BITS) - 1;
        assert_eq!(channels.reached(), 5);
        channels.taken[2] += 1;
        assert_eq!(channels.reached(), 6);
    }
}
