//! The step number that a PE shows to the PE before it, for languages that prove that all PEs do
//! the same.
//!
//! It is shown in the internal area, which no routine of a program reaches.

#![allow(unsafe_code)]

use crate::call::Call;
use crate::coll::collectives::barrier_all;
use crate::job::members::Members;
use crate::job::{self, Job};
use crate::memory::areas::MESSAGE;
use crate::net::flags;
use crate::sync::backoff;
use rushmem_explain::status::{Collective, Subject};
use rushmem_transport::Pe;
use rushmem_transport::mem::WaitWord;

/// The number of the barriers of epochs among the teams in statuses, of which it is none.
const EPOCHS: u64 = u64::MAX;

/// Words that a PE shows.
pub type StepWords = [u64; MESSAGE];

/// The progress of a PE: the steps and the barriers of its own that it has entered, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPosition {
    /// The steps.
    pub steps: u32,
    /// The barriers.
    pub barriers: u32,
}

impl StepPosition {
    fn word(self) -> u64 {
        u64::from(self.steps) << 32 | u64::from(self.barriers)
    }

    fn of_word(word: u64) -> StepPosition {
        StepPosition { steps: (word >> 32) as u32, barriers: word as u32 }
    }

    /// Returns true if a PE that is here has left out a barrier for which another one waits, which
    /// has come as far as `waiting`.
    fn has_left_out(self, waiting: StepPosition) -> bool {
        let is_less = |one: u32, other: u32| one.wrapping_sub(other).cast_signed() < 0;
        is_less(waiting.steps, self.steps) && is_less(self.barriers, waiting.barriers)
    }
}

/// Announces to the next PE how far this one has come, before it waits for others in a step.
pub fn announce(call: Call, position: StepPosition) {
    let area = flags::area();
    area.raise(next(job::require(call)), area.areas().progress(), position.word());
}

fn next(job: &Job) -> Pe {
    Pe((job.me().0 + 1) % job.n_pes)
}

/// Waits in a barrier of the caller's own until `flag` has `value` or more.
///
/// # Errors
/// The PE before this one, if it is at a further step without having entered the barrier,
/// which never ends.
///
/// # Safety
/// `flag` is an aligned word of symmetric memory.
pub unsafe fn wait(call: Call, flag: *const u64, value: u64, own: StepPosition) -> Result<(), u32> {
    let job = job::require(call);
    let area = flags::area();
    let before = area.areas().progress();
    let mut has_come = false;
    let describe = || {
        let (team, members) = ("the epochs of all PEs".to_owned(), Members::world(job.n_pes));
        let (number, nth) = (EPOCHS, own.barriers.into());
        let members = members.for_status();
        let (is_active_set, awaited) = (false, None);
        let collective = Collective { team, is_active_set, number, members, nth, awaited };
        (call, Subject::Collective(collective))
    };
    backoff::until_seen(job, describe, || {
        // SAFETY: by contract.
        has_come = unsafe { u64::load_acquire(flag) } >= value;
        has_come || StepPosition::of_word(area.flag(before)).has_left_out(own)
    });
    if has_come { Ok(()) } else { Err((job.me().0 + job.n_pes - 1) % job.n_pes) }
}

/// Shows what this PE does as its step `number`, meets all PEs, and returns the next PE and what it
/// shows as its latest step of that parity. Another barrier follows before the next step but one.
pub fn of_next_pe(call: Call, number: u64, own: &StepWords) -> (u32, StepWords) {
    let job = job::require(call);
    let area = flags::area();
    let at = area.areas().step((number % 2) as usize);
    area.write_own(at, own);
    barrier_all(call);
    let next = next(job);
    let word = |i: usize| area.shown(std::iter::once(next), at + i * size_of::<u64>())[0];
    (next.0, std::array::from_fn(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_left_out_by_who_is_at_a_further_step_without_it() {
        let at = |steps, barriers| StepPosition { steps, barriers };
        let waiting = at(7, 20);
        assert!(at(8, 19).has_left_out(waiting));
        for fine in [at(7, 19), at(6, 18), at(8, 20), at(8, 21), at(7, 20)] {
            assert!(!fine.has_left_out(waiting), "{fine:?}");
        }
        assert!(at(0, u32::MAX).has_left_out(at(u32::MAX, 0)));
        assert!(!at(0, 0).has_left_out(at(u32::MAX, u32::MAX)));
        assert_eq!(StepPosition::of_word(at(3, u32::MAX).word()), at(3, u32::MAX));
    }
}
