//! How a program uses pSync, with `SHMEM_CHECK`. This library does not need pSync, so a mistake
//! works here and is a warning: with other libraries the program hangs or gets wrong data.

use crate::base::call::Call;
use crate::base::caller::{self, warn_once};
use crate::base::constants::SHMEM_SYNC_VALUE;
use crate::base::job::Job;
use crate::base::process;
use crate::memory::{address, range};
use core::ffi::{c_int, c_long};
use std::sync::Mutex;

/// What distinguishes the uses of a pSync.
#[derive(Clone, Copy, Debug)]
struct PsyncRecord {
    psync: usize,
    triplet: [c_int; 3],
    /// True if the call is a barrier or a sync: on one set, these may use a pSync in turn.
    synchronizes: bool,
    /// The number of checked calls of this PE when it ended.
    end: u64,
}

/// The use that ended last.
static LAST: Mutex<Option<PsyncRecord>> = Mutex::new(None);

/// The use of a pSync by a call on an active set, until the call ends.
#[derive(Debug)]
pub(super) struct PsyncUse(PsyncRecord);

impl PsyncUse {
    /// Warns unless pSync has its first value, which the standard requires before each use, and if
    /// the last call of this PE used it: then this PE cannot know whether others have left that.
    pub(super) fn begin(
        call: Call,
        job: &Job,
        triplet: [c_int; 3],
        psync: *const c_long,
    ) -> PsyncUse {
        let lower = call.0.to_ascii_lowercase();
        let synchronizes = lower.ends_with("barrier") || lower.ends_with("sync");
        let new = PsyncRecord { psync: psync.addr(), triplet, synchronizes, end: 0 };
        let last = process::lock(&LAST).take();
        if last.is_some_and(|last| new.follows_at_once(last)) {
            // Cause: two collectives one after the other with one pSync.
            warn_once(
                call,
                job,
                "argument pSync was used by the last collective of this PE, in which other PEs may still be; it works \
                 here, but with other implementations use another pSync, or a barrier between the calls",
            );
        }
        let nbytes = size_of::<c_long>();
        let is_symmetric = address::place(new.psync, nbytes).is_some();
        let word = || range::symmetric(call, "pSync", psync.cast(), nbytes).first_word();
        if is_symmetric && word() != SHMEM_SYNC_VALUE as u64 {
            // Cause: pSync was not initialized, or is used for something else.
            warn_once(
                call,
                job,
                "argument pSync does not have the value SHMEM_SYNC_VALUE; it works here, but with other \
                 implementations set all of its elements to that on all PEs before the first use",
            );
        }
        PsyncUse(new)
    }
}

impl PsyncRecord {
    /// Returns true if this PE has called nothing since from which it knows that others have left
    /// that use.
    fn follows_at_once(self, last: PsyncRecord) -> bool {
        let in_turn = self.synchronizes && last.synchronizes && self.triplet == last.triplet;
        let is_alone = last.triplet[2] == 1;
        self.psync == last.psync && last.end == caller::calls() && !in_turn && !is_alone
    }
}

impl Drop for PsyncUse {
    fn drop(&mut self) {
        *process::lock(&LAST) = Some(PsyncRecord { end: caller::calls(), ..self.0 });
    }
}
