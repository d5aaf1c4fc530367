//! What all PEs must do together for memory to be safe: to allocate an object, to drop it, and to finalize.
//!
//! That every safe operation stays inside its object depends on it: where one PE has freed what another one can still name, the
//! other one writes into the heap's own records, and the next round of the library has a new heap in the same place. A barrier does not prove it, since a program may meet it by a barrier for
//! something else. So each PE shows what it does where no view of a program can reach, and compares it with what the next
//! PE shows.

use rushmem_runtime::{Call, step};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a PE does.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// It allocates a block: the offset in the heap, the size and the alignment, and a digest of what it is for.
    Allocate([u64; 4]),
    /// It drops the block that begins there.
    Drop(u64),
    /// It finalizes the library when it was initialised so often.
    Finalize(u32),
}

/// End the job with this message unless the next PE does the same. Once all PEs have met in a further barrier, all do.
pub(crate) fn compare(call: Call, step: Step, mistake: &str) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Relaxed) + 1;
    let own = match step {
        Step::Allocate([offset, nbytes, alignment, digest]) => {
            [number, 0, offset, nbytes, alignment, digest]
        }
        Step::Drop(offset) => [number, 1, offset, 0, 0, 0],
        Step::Finalize(inits) => [number, 2, inits.into(), 0, 0, 0],
    };
    let (next, other) = step::of_next_pe(call, number, &own);
    if other != own {
        call.fail(format_args!("PE {next} {mistake}"));
    }
}
