//! What a PE shows the PE before it, for languages that have to prove that all PEs do the same.
//!
//! It is shown in the internal area, which no routine of a program reaches: a program cannot forge it.

use crate::base::call::Call;
use crate::base::job;
use crate::coll::collectives::barrier_all;
use crate::memory::areas::MESSAGE;
use crate::sync::flags;
use rushmem_transport::Pe;

/// Words that a PE shows.
pub type Step = [u64; MESSAGE];

/// Show what this PE does as its step `number`, meet all PEs, and return the next PE and what it shows as its latest step of that
/// parity. Another barrier follows before the next step but one.
pub fn of_next_pe(call: Call, number: u64, own: &Step) -> (u32, Step) {
    let job = job::require(call);
    let area = flags::area();
    let at = area.areas().step((number % 2) as usize);
    area.write_own(at, own);
    barrier_all(call);
    let next = Pe((job.me().0 + 1) % job.n_pes);
    let word = |i: usize| area.shown(std::iter::once(next), at + i * size_of::<u64>())[0];
    (next.0, std::array::from_fn(word))
}
