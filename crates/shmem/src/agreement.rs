//! What all PEs must do together for memory to be safe: to allocate an object and to drop it.
//!
//! That every safe operation stays inside its object depends on it: where one PE has freed what another one can still name, the
//! other one writes into the heap's own records. A barrier does not prove it, since a program may meet it by a barrier for
//! something else. So each PE writes what it does where no view of a program can reach, and compares it with what the next
//! PE has written.
#![allow(unsafe_code)]

use crate::element::Plain;
use rushmem_runtime::{Call, World, collectives, local, rma, setup};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a PE does.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// It allocates a block: the offset in the heap, the size and the alignment, and a digest of what it is for.
    Allocate([u64; 4]),
    /// It drops the block that begins there.
    Drop(u64),
}

/// A step as it is compared: its number, what is done, and with what.
type Words = [u64; 6];

crate::symmetric! {
    /// The steps with even and with odd numbers: a PE may write the next one while its peer reads.
    static STEPS: [Words; 2];
}

/// End the job with this message unless the next PE does the same. Once all PEs have met in a further barrier, all do.
pub(crate) fn compare(call: Call, step: Step, mistake: &str) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Relaxed) + 1;
    let own: Words = match step {
        Step::Allocate([offset, nbytes, alignment, digest]) => {
            [number, 0, offset, nbytes, alignment, digest]
        }
        Step::Drop(offset) => [number, 1, offset, 0, 0, 0],
    };
    let at = STEPS.as_ptr().cast::<Plain<Words>>().wrapping_add((number % 2) as usize);
    // SAFETY: a static variable that only this function accesses.
    unsafe { local::store(at, Plain(own)) };
    collectives::barrier_all(call);
    let next = (setup::my_pe(call) + 1) % setup::n_pes(call);
    // SAFETY: a static variable, which is symmetric; whatever is there are numbers.
    let other = unsafe { rma::g(call, World, at, next) };
    if other.0 != own {
        call.fail(format_args!("PE {next} {mistake}"));
    }
}
