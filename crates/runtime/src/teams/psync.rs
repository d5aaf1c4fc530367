//! Checks how a program uses pSync, with `SHMEM_CHECK`. This library does not need pSync, so a
//! mistake works here and is a warning: with other libraries the program hangs or gets wrong data.

use crate::call::Call;
use crate::constants::SHMEM_SYNC_VALUE;
use crate::job;
use crate::job::caller::{self, warn_once};
use crate::memory::{address, range};
use crate::process;
use crate::teams::active_set;
use core::ffi::{c_int, c_long};
use std::sync::Mutex;

/// The purpose for which a call uses a pSync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PsyncPurpose {
    /// A barrier or a sync: on one set, these may use a pSync in turn.
    Sync,
    /// A collective that moves data.
    Data,
}

/// The data that distinguish the uses of a pSync.
#[derive(Clone, Copy, Debug)]
struct PsyncRecord {
    psync: usize,
    triplet: [c_int; 3],
    used_for: PsyncPurpose,
    /// The number of checked calls of this PE when it ended.
    end: u64,
}

/// The use that ended last.
static LAST: Mutex<Option<PsyncRecord>> = Mutex::new(None);

/// The use of a pSync by a call on an active set, until the call ends.
#[derive(Debug)]
pub(crate) struct PsyncUse(PsyncRecord);

impl PsyncUse {
    /// Warns unless pSync has its first value, which the standard requires before each use, and if
    /// the last call of this PE used it: then this PE cannot know whether others have left that.
    /// Ends the job with an error if it is not symmetric. `None` without `SHMEM_CHECK`.
    pub(crate) fn begin(
        call: Call,
        triplet: [c_int; 3],
        psync: *const c_long,
        used_for: PsyncPurpose,
    ) -> Option<PsyncUse> {
        let job = job::require(call);
        if !job.settings.checks() {
            return None;
        }
        active_set::psync_digest(call, psync);
        let new = PsyncRecord { psync: psync.addr(), triplet, used_for, end: 0 };
        let last = process::lock(&LAST).take();
        if last.is_some_and(|last| new.follows_at_once(last)) {
            // Cause: two collectives one after the other with one pSync.
            warn_once(
                call,
                "argument pSync was used by the last collective of this PE, in which other PEs may still be; it works \
                 here, but with other implementations use another pSync, or a barrier between the calls",
            );
        }
        let nbytes = size_of::<c_long>();
        let is_symmetric = address::locate(new.psync, nbytes).is_some();
        let word = || range::symmetric(call, "pSync", psync.cast(), nbytes).first_word();
        if is_symmetric && word() != SHMEM_SYNC_VALUE as u64 {
            // Cause: the array was not initialized, or is used for something else.
            warn_once(
                call,
                "argument pSync does not have the value SHMEM_SYNC_VALUE; it works here, but with other \
                 implementations set all of its elements to that on all PEs before the first use",
            );
        }
        Some(PsyncUse(new))
    }
}

impl PsyncRecord {
    /// Returns true if this PE has called nothing since from which it knows that others have left
    /// that use.
    fn follows_at_once(self, last: PsyncRecord) -> bool {
        let in_turn = [self.used_for, last.used_for] == [PsyncPurpose::Sync; 2]
            && self.triplet == last.triplet;
        let is_alone = last.triplet[2] == 1;
        self.psync == last.psync && last.end == caller::calls() && !in_turn && !is_alone
    }
}

impl Drop for PsyncUse {
    fn drop(&mut self) {
        *process::lock(&LAST) = Some(PsyncRecord { end: caller::calls(), ..self.0 });
    }
}
