//! Compares the steps that all PEs of a program in Rust must take together, so that memory is safe:
//! to allocate or drop an object, and to finalize. So a PE that takes another step is detected.
//!
//! Each PE publishes the words of its step in its internal area, which no routine of a program
//! reaches, and reads those of the next PE. It also sends its progress to the next PE, so that a
//! wait in the barrier of an epoch ends if the PE before has left out that barrier.
#![allow(unsafe_code)]

use crate::coll::collectives::barrier_all;
use crate::own_pe::Caller;
use rushmem_communication::links::Links;
use rushmem_communication::status::WaitDescription;
use rushmem_communication::sync::waits;
use rushmem_explain::status::{AwaitedObject, Collective};
use rushmem_pe::job::Job;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::areas::MESSAGE;
use rushmem_transport::Pe;
use rushmem_transport::mem::WaitWord;

/// The team number of the barriers of epochs in statuses: no team has it.
const EPOCHS: u64 = u64::MAX;

/// The description of a step in the words that a PE publishes.
pub type StepWords = [u64; MESSAGE];

/// The progress of a PE: the number of steps and of barriers that it has entered, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPosition {
    /// Steps entered.
    pub steps: u32,
    /// Barriers of epochs entered.
    pub barriers: u32,
}

impl StepPosition {
    /// Packs the position into the word that a PE sends to the next one.
    fn word(self) -> u64 {
        u64::from(self.steps) << 32 | u64::from(self.barriers)
    }

    fn of_word(word: u64) -> StepPosition {
        StepPosition {
            steps: (word >> 32) as u32,
            barriers: word as u32,
        }
    }

    /// Returns true if a PE with this progress has left out the barrier in which a PE with progress
    /// `waiting` waits: it is at a later step, but has entered fewer barriers.
    fn has_left_out(self, waiting: StepPosition) -> bool {
        let is_less = |one: u32, other: u32| one.wrapping_sub(other).cast_signed() < 0;
        is_less(waiting.steps, self.steps) && is_less(self.barriers, waiting.barriers)
    }
}

/// Sends the progress of this PE to the next PE. Called before this PE waits for others in a step.
pub fn announce(caller: impl Caller, position: StepPosition) {
    let (pe, _) = caller.enter();
    let Links { job, area, .. } = pe.links;
    let next = next_pe(job);
    area.raise(next, area.areas().progress(), position.word());
}

fn next_pe(job: &Job) -> Pe {
    Pe((job.me.0 + 1) % job.n_pes)
}

/// Waits in a barrier of an epoch until `flag` has reached `value`. `own` is the progress of this
/// PE.
///
/// # Errors
/// The number of the PE before this one, if that PE has left out the barrier, so that the wait
/// would not end.
///
/// # Safety
/// `flag` is an aligned word of symmetric memory.
pub unsafe fn wait(
    caller: impl Caller,
    flag: *const u64,
    value: u64,
    own: StepPosition,
) -> Result<(), u32> {
    let (pe, call) = caller.enter();
    let Links { job, area, .. } = pe.links;
    // The word in which the PE before this one announces its progress.
    let progress = area.areas().progress();
    let mut has_passed = false;

    let describe = || {
        let collective = Collective {
            team: "the epochs of all PEs".to_owned(),
            is_active_set: false,
            number: EPOCHS,
            members: Members::world(job.n_pes).for_status(),
            nth: own.barriers.into(),
            awaited: None,
        };
        WaitDescription {
            call,
            subject: AwaitedObject::Collective(collective),
        }
    };
    waits::until_seen(pe.links, describe, || {
        // SAFETY: the caller promises an aligned word of symmetric memory.
        has_passed = unsafe { u64::load_acquire(flag) } >= value;
        has_passed || StepPosition::of_word(area.flag(progress)).has_left_out(own)
    });

    if has_passed {
        Ok(())
    } else {
        Err((job.me.0 + job.n_pes - 1) % job.n_pes)
    }
}

/// Publishes step `number` of this PE, makes a barrier, and returns the next PE and the step that
/// the next PE has published last with a number of the same parity. Step `number + 2` replaces the
/// published words, so the caller makes another barrier before it.
pub fn exchange(caller: impl Caller, number: u64, own: &StepWords) -> (u32, StepWords) {
    let (pe, _) = caller.enter();
    let Links { job, area, .. } = pe.links;
    let published = area.areas().step((number % 2) as usize);

    area.write_own(published, own);
    barrier_all(caller);

    let next = next_pe(job);
    let words = std::array::from_fn(|i| {
        let word = published + i * size_of::<u64>();
        area.words_of(std::iter::once(next), word)[0]
    });
    (next.0, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_left_out_by_who_is_at_a_further_step_without_it() {
        let position = |steps, barriers| StepPosition { steps, barriers };
        let waiting = position(7, 20);
        assert!(position(8, 19).has_left_out(waiting));
        for (steps, barriers) in [(7, 19), (6, 18), (8, 20), (8, 21), (7, 20)] {
            let other = position(steps, barriers);
            assert!(!other.has_left_out(waiting), "{other:?}");
        }

        // The numbers wrap.
        assert!(position(0, u32::MAX).has_left_out(position(u32::MAX, 0)));
        assert!(!position(0, 0).has_left_out(position(u32::MAX, u32::MAX)));

        let last = position(3, u32::MAX);
        assert_eq!(StepPosition::of_word(last.word()), last);
    }
}
