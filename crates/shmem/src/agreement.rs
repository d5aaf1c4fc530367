//! The actions that all PEs must do together for memory to be safe: to allocate an object, to drop
//! it, and to finalize.
//!
//! That every safe operation stays inside its object depends on it: where one PE has freed what
//! another one can still name, the other one writes into the heap's own records, and the next round
//! of the library has a new heap in the same place. A barrier does not prove it, since a program
//! may meet it by a barrier for something else. So each PE shows what it does where no view of a
//! program can reach, and compares it with what the next PE shows. An
//! [epoch](crate::SymArray::epoch) is no such step, since its barriers prove by themselves that all
//! PEs are in it; but a PE that waits there learns of another one that is at a step.
#![allow(unsafe_code)]

use rushmem_runtime::Call;
use rushmem_runtime::step::{self, StepPosition};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The steps that this PE has entered.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The barriers of epochs that it has entered.
static BARRIERS: AtomicU64 = AtomicU64::new(0);

/// The action of a PE.
#[derive(Clone, Copy)]
pub(crate) enum AgreementStep {
    /// It allocates a block: the offset in the heap, the size and the alignment, and a digest of
    /// what it is for.
    Allocate([u64; 4]),
    /// It drops the block that begins there.
    Drop(u64),
    /// It finalizes the library as often as it was initialized.
    Finalize(u32),
}

/// A step that this PE has entered, of whatever kind: before it waits for others, so that those in
/// an epoch learn of it.
pub(crate) struct EnteredStep {
    call: Call,
    number: u64,
}

impl EnteredStep {
    pub(crate) fn new(call: Call) -> EnteredStep {
        let number = STEPS.fetch_add(1, Relaxed) + 1;
        let barriers = BARRIERS.load(Relaxed) as u32;
        step::announce(call, StepPosition { steps: number as u32, barriers });
        EnteredStep { call, number }
    }

    /// Ends the job with this message unless the next PE does the same. Once all PEs have met in a
    /// further barrier, all do.
    pub(crate) fn compare(self, step: AgreementStep, mistake: &str) {
        let EnteredStep { call, number } = self;
        let own = match step {
            AgreementStep::Allocate([offset, nbytes, alignment, digest]) => {
                [number, 0, offset, nbytes, alignment, digest]
            }
            AgreementStep::Drop(offset) => [number, 1, offset, 0, 0, 0],
            AgreementStep::Finalize(inits) => [number, 2, inits.into(), 0, 0, 0],
        };
        let (next, other) = step::exchange(call, number, &own);
        if other != own {
            call.fail(format_args!("PE {next} {mistake}"));
        }
    }
}

/// A barrier of an epoch, which this PE has entered.
pub(crate) struct Barrier(StepPosition);

impl Barrier {
    pub(crate) fn enter() -> Barrier {
        // An atomic addition would take a tenth of an epoch's time. Threads do not enter
        // collectives of all PEs at the same time; if they do, a message may be wrong.
        let barriers = BARRIERS.load(Relaxed) + 1;
        BARRIERS.store(barriers, Relaxed);
        Barrier(StepPosition { steps: STEPS.load(Relaxed) as u32, barriers: barriers as u32 })
    }

    /// Waits until `flag` has `value` or more. Ends the job with a message if the PE before this
    /// one does something else.
    ///
    /// # Safety
    /// `flag` is an aligned word of symmetric memory.
    pub(crate) unsafe fn wait(&self, call: Call, flag: *const u64, value: u64) {
        // SAFETY: the same contract.
        if let Err(pe) = unsafe { step::wait(call, flag, value, self.0) } {
            call.fail(format_args!(
                "PE {pe} allocates or drops something meanwhile; all PEs enter and leave an epoch together"
            ));
        }
    }
}
