//! Signals between the members of a team: for each ordered pair a counter.
//!
//! A member's counter towards a peer lives in the peer's internal area and only grows; the high bits
//! are the team's generation, so what an earlier team left in the same slot is below every value of
//! this one. Since every plan takes each signal that its peers' plans send, the k-th signal of a to b
//! is taken by b's k-th wait for a, whatever collectives follow each other.

use crate::job::Job;
use crate::patience;
use crate::team::Members;
use rushmem_transport::TeamPe;

/// Bits of a counter below the generation.
const COUNT_BITS: u32 = 36;
/// Generations that the bits above have room for.
pub(crate) const GENERATIONS: u64 = 1 << (64 - COUNT_BITS);

/// One member's side of its team's signals. Used by one collective at a time.
#[derive(Debug)]
pub(crate) struct Channels {
    slot: u16,
    generation: u64,
    members: Members,
    me: TeamPe,
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// Counts the plans that use the landings of all-reduce.
    reductions: usize,
    /// Counts the plans that use the tables of counts.
    gathers: usize,
}

impl Channels {
    pub(crate) fn new(slot: u16, generation: u64, members: Members, me: TeamPe) -> Channels {
        assert!(generation < GENERATIONS, "an agreement offers no others");
        let zeros = vec![0; members.n as usize];
        Channels {
            slot,
            generation,
            members,
            me,
            sent: zeros.clone(),
            taken: zeros,
            reductions: 0,
            gathers: 0,
        }
    }

    pub(crate) fn slot(&self) -> u16 {
        self.slot
    }

    /// The generation that this member's counters came to, which is a later one than the team's when a
    /// pair exchanged so many signals that they do not fit the bits below.
    pub(crate) fn reached(&self) -> u64 {
        let most = self.taken.iter().max().expect("a team has members");
        self.generation + (most >> COUNT_BITS)
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

    /// Signal a member, after everything that was written to it before.
    #[inline]
    pub(crate) fn signal(&mut self, job: &Job, peer: u32) {
        let sent = &mut self.sent[peer as usize];
        *sent += 1;
        let value = (self.generation << COUNT_BITS) + *sent;
        let at = job.internal().areas().flag(self.slot, self.me.0);
        job.internal().raise(self.members.world_pe(peer), at, value);
    }

    /// Wait for the next signal of a member.
    #[inline]
    pub(crate) fn wait(&mut self, job: &Job, peer: u32) {
        let taken = &mut self.taken[peer as usize];
        *taken += 1;
        let value = (self.generation << COUNT_BITS) + *taken;
        let at = job.internal().areas().flag(self.slot, peer);
        patience::until_rung(job, || job.internal().flag(at) >= value);
    }
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
