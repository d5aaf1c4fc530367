//! The steps that all PEs must take together for memory to be safe: to free the objects that all
//! have dropped, to allocate an object, to register memory and to end that, and to finalize.
//!
//! If one PE had freed an object that another PE can still name, the other PE could write into the
//! heap's own records, or, after the next initialization, into another object. The barrier in each
//! step does not exclude this, since another PE may be in a barrier for another purpose. So each PE
//! announces its step in memory that no view of a program can access, and compares it with the step
//! of the next PE. An [epoch](crate::SymArray::epoch) is no such step, since its barriers are the
//! object's own, so they end only if all PEs are in them. But a PE that waits in an epoch sees
//! whether the PE before it is at a step.
#![allow(unsafe_code)]

use rushmem_runtime::Call;
use rushmem_runtime::step::{self, StepPosition};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of steps that this PE has entered.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The number of barriers of epochs that this PE has entered.
static BARRIERS: AtomicU64 = AtomicU64::new(0);

/// A step that all PEs must take together, with the values that must be equal on all of them.
#[derive(Clone, Copy)]
pub(crate) enum AgreementStep {
    /// Allocates a block.
    Allocate {
        /// The offset of the block in the heap.
        offset: u64,
        nbytes: u64,
        alignment: u64,
        /// A digest of the type and the number of the elements.
        digest: u64,
    },
    /// Frees the blocks that all PEs have dropped.
    Reclaim,
    /// Registers memory of the program.
    Register {
        /// A digest of the type and the number of the elements.
        digest: u64,
    },
    /// Ends a registration.
    Unregister {
        /// The digest with which it began.
        digest: u64,
    },
    /// Finalizes the library.
    Finalize {
        /// The number of initializations that were not finalized yet.
        inits: u32,
    },
}

/// A step that this PE has entered. It is announced before the PE waits for others, so that PEs
/// that wait in an epoch see it.
pub(crate) struct EnteredStep {
    call: Call,
    number: u64,
}

impl EnteredStep {
    pub(crate) fn new(call: Call) -> EnteredStep {
        // Relaxed: the numbers order nothing else. Other PEs see those that are announced.
        let number = STEPS.fetch_add(1, Relaxed) + 1;
        let position = StepPosition {
            steps: number as u32,
            barriers: BARRIERS.load(Relaxed) as u32,
        };
        step::announce(call, position);
        EnteredStep { call, number }
    }

    /// Ends the job with a message unless the next PE takes the same step: with `differs` if that
    /// PE takes a step of this kind with other values, otherwise with `is_elsewhere`. After the
    /// barrier that the caller enters next, all PEs have compared, so all take the same step.
    pub(crate) fn compare(self, step: AgreementStep, differs: &str, is_elsewhere: &str) {
        let EnteredStep { call, number } = self;
        // The number of the step, its kind and its values.
        let own = match step {
            AgreementStep::Allocate {
                offset,
                nbytes,
                alignment,
                digest,
            } => [number, 0, offset, nbytes, alignment, digest],
            AgreementStep::Reclaim => [number, 1, 0, 0, 0, 0],
            AgreementStep::Finalize { inits } => [number, 2, inits.into(), 0, 0, 0],
            AgreementStep::Register { digest } => [number, 3, digest, 0, 0, 0],
            AgreementStep::Unregister { digest } => [number, 4, digest, 0, 0, 0],
        };

        let (next, other) = step::exchange(call, number, &own);
        if other != own {
            let is_same_kind = other[..2] == own[..2];
            let mistake = if is_same_kind { differs } else { is_elsewhere };
            call.fail(format_args!("PE {next} {mistake}"));
        }
    }
}

/// A barrier of an epoch that this PE has entered.
pub(crate) struct Barrier(StepPosition);

impl Barrier {
    pub(crate) fn enter() -> Barrier {
        // An atomic addition would take a tenth of an epoch's time. Correct programs do not enter
        // collectives of all PEs by two threads at once; if one does, only a message may be wrong.
        let barriers = BARRIERS.load(Relaxed) + 1;
        BARRIERS.store(barriers, Relaxed);
        Barrier(StepPosition {
            steps: STEPS.load(Relaxed) as u32,
            barriers: barriers as u32,
        })
    }

    /// Waits until `flag` is at least `value`. Ends the job with a message if the PE before this
    /// one has entered a step instead of this barrier, so that the wait would not end.
    ///
    /// # Safety
    /// `flag` is an aligned word of symmetric memory.
    pub(crate) unsafe fn wait(&self, call: Call, flag: *const u64, value: u64) {
        // SAFETY: `flag` is an aligned word of symmetric memory, as the caller promises.
        let waited = unsafe { step::wait(call, flag, value, self.0) };
        if let Err(pe) = waited {
            call.fail(format_args!(
                "PE {pe} allocates or registers something, or finalizes, meanwhile; all PEs enter \
                 and leave an epoch together"
            ));
        }
    }
}
