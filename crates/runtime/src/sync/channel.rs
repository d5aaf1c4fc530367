//! Signals between the members of a team: for each ordered pair a counter.
//!
//! A member's counter towards a peer lives in the peer's internal area and only grows; the high bits
//! are the team's generation, so what an earlier team left in the same slot is below every value of
//! this one. Since every plan takes each signal that its peers' plans send, the k-th signal of a to b
//! is taken by b's k-th wait for a, whatever collectives follow each other.
//!
//! All active sets share one pair of counters between each two PEs: these PEs make the calls that both
//! take part in in the same order, so the rule holds for all sets together, and sets need nothing of
//! their own. The high bits of such a counter are a mark of the active set in place of a generation.
//! What else a team has of its own, each pair of PEs has for all sets: landings, and the count of
//! broadcasts that tells a PE how far those behind it are.

use crate::base::call::{Call, fail};
use crate::base::job::Job;
use crate::base::members::Members;
use crate::memory::areas::Areas;
use crate::sync::backoff;
use crate::sync::flags;
use core::ffi::c_int;
use rushmem_transport::{Pe, TeamPe};

/// Bits of a counter below the generation.
const COUNT_BITS: u32 = 36;
/// Generations that the bits above have room for.
pub(crate) const GENERATIONS: u64 = 1 << (64 - COUNT_BITS);
/// Bits of a counter of active sets below the mark.
const SHARED_COUNT_BITS: u32 = 48;

/// Polls of a counter before the flags of all members are looked at, too, to see whether one of them is elsewhere.
const POLLS_OF_ONE_FLAG: u32 = 16;

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
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// Counts the releases of a counter.
    releases: u64,
    /// Counts the plans that use the landings of all-reduce.
    reductions: usize,
    /// Counts the plans that use the tables of counts.
    gathers: usize,
    /// Where these are the channels of all active sets.
    pairs: Option<Pairs>,
}

/// What a PE knows of each other one, whatever active set both are in.
#[derive(Debug)]
struct Pairs {
    /// Which of two landings is next, at the other PE and here.
    put: Vec<usize>,
    taken: Vec<usize>,
    /// How many broadcasts the other writes here that this PE has entered, and the reverse.
    entered: Vec<u64>,
    written: Vec<u64>,
    /// The last broadcast of this PE: its active set and root.
    last_broadcast: Option<([c_int; 3], u32)>,
}

impl Channels {
    pub(crate) fn new(slot: u16, generation: u64, members: Members, me: TeamPe) -> Channels {
        assert!(generation < GENERATIONS, "an agreement offers no others");
        let zeros = vec![0; members.n as usize];
        Channels {
            slot,
            generation,
            mark: generation << COUNT_BITS,
            growing: u64::MAX,
            members,
            me,
            sent: zeros.clone(),
            taken: zeros,
            releases: 0,
            reductions: 0,
            gathers: 0,
            pairs: None,
        }
    }

    /// Those that all active sets of the world share, in `slot`.
    pub(crate) fn of_active_sets(slot: u16, world: Members, me: TeamPe) -> Channels {
        let growing = (1 << SHARED_COUNT_BITS) - 1;
        let n = world.n as usize;
        let pairs = Some(Pairs {
            put: vec![0; n],
            taken: vec![0; n],
            entered: vec![0; n],
            written: vec![0; n],
            last_broadcast: None,
        });
        Channels { growing, pairs, ..Channels::new(slot, 0, world, me) }
    }

    /// The active set that the next signals are for, by a number that other sets hardly have.
    pub(crate) fn mark(&mut self, number: u64) {
        self.mark = number << SHARED_COUNT_BITS;
    }

    pub(crate) fn slot(&self) -> u16 {
        self.slot
    }

    /// The generation that this member's counters came to, which is a later one than the team's when a
    /// pair exchanged so many signals that they do not fit the bits below.
    pub(crate) fn reached(&self) -> u64 {
        let max = self.taken.iter().max().expect("a team has members").max(&self.releases);
        self.generation + (max >> COUNT_BITS)
    }

    /// Which of the two copies of the landings the next all-reduce uses.
    pub(crate) fn next_reduction(&mut self) -> usize {
        self.reductions += 1;
        self.reductions % 2
    }

    /// Which of the two tables of counts the next gathering uses.
    pub(crate) fn next_gather(&mut self) -> usize {
        self.gathers += 1;
        self.gathers % 2
    }

    /// The landing at `peer` for what this member puts there next; `landing` is its number in a team's plan
    /// and `parity` which copy of it the plan uses. Two of a pair's own are enough: in every plan that uses
    /// them each of both puts once to the other, so whoever puts has had the other's last message, which
    /// that one sent when it had taken the message before.
    pub(crate) fn landing_there(
        &mut self,
        areas: &Areas,
        peer: u32,
        landing: u8,
        parity: usize,
    ) -> usize {
        let own = self.members.world_pe(self.me.0);
        match &mut self.pairs {
            None => areas.landing(self.slot, landing, parity),
            Some(pairs) => areas.pair_landing(own, alternate(&mut pairs.put[peer as usize])),
        }
    }

    /// The own landing of what `peer` put last and this member has not taken yet.
    pub(crate) fn landing_here(
        &mut self,
        areas: &Areas,
        peer: u32,
        landing: u8,
        parity: usize,
    ) -> usize {
        match &mut self.pairs {
            None => areas.landing(self.slot, landing, parity),
            Some(pairs) => areas.pair_landing(
                self.members.world_pe(peer),
                alternate(&mut pairs.taken[peer as usize]),
            ),
        }
    }

    /// A broadcast over the active set `set` from `root`: how many broadcasts its writers may be ahead of
    /// those that they write to. That is one while the same is repeated, so that those who alternate
    /// between two destinations have done with the one that comes next; otherwise none.
    pub(crate) fn next_broadcast(&mut self, set: [c_int; 3], root: u32) -> u64 {
        let this = Some((set, root));
        let pairs = self.pairs.as_mut().expect("the channels of active sets");
        let repeated = std::mem::replace(&mut pairs.last_broadcast, this) == this;
        u64::from(repeated)
    }

    /// Tell `peer` that this PE has entered a broadcast in which `peer` writes to it.
    pub(crate) fn announce(&mut self, peer: u32) {
        let pairs = self.pairs.as_mut().expect("the channels of active sets");
        let entered = &mut pairs.entered[peer as usize];
        *entered += 1;
        let at = flags::area().areas().entered(self.slot, self.me.0);
        flags::area().raise(self.members.world_pe(peer), at, *entered);
    }

    /// Wait until `peer` has entered the broadcast in which this PE writes to it next, or is at most `ahead`
    /// behind. Ends the job with an error when it is seen to be in a call on another active set: in that broadcast it sends no
    /// signal before it has the data.
    pub(crate) fn wait_for_entry(&mut self, call: Call, job: &Job, peer: u32, ahead: u64) {
        let pairs = self.pairs.as_mut().expect("the channels of active sets");
        let written = &mut pairs.written[peer as usize];
        *written += 1;
        let needed = *written - ahead;
        let next_signal = self.mark + self.taken[peer as usize] + 1;
        let areas = flags::area().areas();
        let (entered, signal) = (areas.entered(self.slot, peer), areas.flag(self.slot, peer));
        let mut has_entered = false;
        backoff::until_rung(job, || {
            has_entered = flags::area().flag(entered) >= needed;
            has_entered || self.is_of_another_set(flags::area().flag(signal), next_signal)
        });
        if !has_entered {
            elsewhere(call, self.members.world_pe(peer));
        }
    }

    /// Count this member in at the counter of member `at`; the last one does what is to be done then, and releases all.
    pub(crate) fn arrive(&mut self, at: u32, when_last: impl FnOnce()) {
        let area = flags::area();
        let owner = self.members.world_pe(at);
        let counter = area.areas().counter(self.slot, at);
        if area.count_in(owner, counter, self.members.n) {
            when_last();
            area.release(owner, counter + 8, self.generation_mark() + self.releases + 1);
            self.members.world_pes().for_each(|pe| area.ring(pe));
        }
    }

    /// Wait until the counter of member `at` releases the members. Ends the job with an error when a member is seen to be in
    /// a call on another active set.
    pub(crate) fn await_release(&mut self, call: Call, job: &Job, at: u32) {
        self.releases += 1;
        let area = flags::area();
        let (owner, counter) = (self.members.world_pe(at), area.areas().counter(self.slot, at));
        let value = self.generation_mark() + self.releases;
        let (mut other, mut polls) = (None, 0);
        backoff::until_rung(job, || {
            let is_released = area.flag_of(owner, counter + 8) >= value;
            polls += 1;
            if !is_released && polls > POLLS_OF_ONE_FLAG && self.pairs.is_some() {
                other = self.in_another_set();
            }
            is_released || other.is_some()
        });
        if let Some(peer) = other {
            elsewhere(call, self.members.world_pe(peer));
        }
    }

    /// What the team's generation adds to the count of its counter. Active sets have one for ever.
    fn generation_mark(&self) -> u64 {
        self.generation << COUNT_BITS
    }

    /// A member that signals to this one in a collective on another active set.
    fn in_another_set(&self) -> Option<u32> {
        let areas = flags::area().areas();
        (0..self.members.n).find(|&peer| {
            let next = self.mark + self.taken[peer as usize] + 1;
            self.is_of_another_set(flags::area().flag(areas.flag(self.slot, peer)), next)
        })
    }

    /// Where `peer` finds what this member sends in the line of its flag.
    pub(crate) fn short_there(&mut self, areas: &Areas, peer: u32, parity: usize) -> usize {
        let parity = self.pairs.as_mut().map_or(parity, |p| alternate(&mut p.put[peer as usize]));
        areas.short(self.slot, self.me.0, parity)
    }

    /// Where `peer` put what it sent in the line of its flag, and this member has not taken yet.
    pub(crate) fn short_here(&mut self, areas: &Areas, peer: u32, parity: usize) -> usize {
        let parity = self.pairs.as_mut().map_or(parity, |p| alternate(&mut p.taken[peer as usize]));
        areas.short(self.slot, peer, parity)
    }

    /// Whether a peer's counter has come to the count of `value`, but with another mark.
    fn is_of_another_set(&self, flag: u64, value: u64) -> bool {
        flag & self.growing == value & self.growing && flag != value
    }

    /// Signal a member, after everything that was written to it before.
    #[inline]
    pub(crate) fn signal(&mut self, peer: u32) {
        let sent = &mut self.sent[peer as usize];
        *sent += 1;
        let value = self.mark + *sent;
        let at = flags::area().areas().flag(self.slot, self.me.0);
        flags::area().raise(self.members.world_pe(peer), at, value);
    }

    /// Wait for the next signal of a member. Ends the job with an error when it is seen to be for another active set.
    #[inline]
    pub(crate) fn wait(&mut self, call: Call, job: &Job, peer: u32) {
        let taken = &mut self.taken[peer as usize];
        *taken += 1;
        let value = self.mark + *taken;
        let growing = self.growing;
        let at = flags::area().areas().flag(self.slot, peer);
        let mut flag = 0;
        backoff::until_rung(job, || {
            flag = flags::area().flag(at);
            flag & growing >= value & growing
        });
        if self.is_of_another_set(flag, value) {
            elsewhere(call, self.members.world_pe(peer));
        }
    }
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
    fail!(
        call,
        "PE {} is in a collective with this PE on another active set: all members of an active set \
         call with the same PE_start, logPE_stride and PE_size, and PEs that have several active sets \
         in common use them in the same order; SHMEM_CHECK=1 tells who is where",
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
