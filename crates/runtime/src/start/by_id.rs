//! Initialization by a unique id: one process makes the id, the program distributes it, and each
//! process joins the job with its rank. NVSHMEM and rocSHMEM have routines of the same form, whose
//! names differ only in the prefix.

use super::error::StartError;
use super::user_settings::apply_files;
use core::ffi::c_int;
use rushmem_bootstrap::unlaunched::{MeetingRoute, UniqueId, make_unique_id};
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job;
use rushmem_pe::memory::statics;
use rushmem_pe::process;
use rushmem_pe::settings;
use std::sync::OnceLock;

/// The size of a unique id in bytes, as C programs have it.
pub const UNIQUE_ID_BYTES: usize = 128;

/// The arguments of the initialization by which this process has joined its job.
static JOINED: OnceLock<ById> = OnceLock::new();

/// The arguments of an initialization by a unique id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ById {
    id: UniqueId,
    pe: u32,
    n_pes: u32,
}

impl ById {
    /// Checks the arguments of an initialization. Ends the job with an error if they are invalid.
    pub(super) fn new(call: Call, rank: c_int, n_ranks: c_int, id: &[u8; UNIQUE_ID_BYTES]) -> ById {
        let pe = match u32::try_from(rank) {
            Ok(pe) if n_ranks > rank => pe,
            _ => fail!(
                call,
                "argument rank is {rank} and {n} is {n_ranks}, but ranks are 0 to {n} - 1; {}",
                call.words(
                    "set both by shmemx_set_attr_uniqueid_args",
                    "pass both to Init::by_id"
                ),
                n = call.words("nranks", "n_ranks")
            ),
        };

        let Some(id) = UniqueId::from_bytes(id) else {
            fail!(
                call,
                "argument id is no unique id; one process makes it by {}, and {} to the others",
                call.words("shmemx_get_uniqueid", "UniqueId::new"),
                call.words("all of its bytes go", "its whole text goes")
            )
        };
        ById {
            id,
            pe,
            n_pes: n_ranks as u32,
        }
    }

    pub(super) fn route(&self) -> MeetingRoute {
        self.id.route(self.pe, self.n_pes)
    }

    /// Records the arguments for [`require_same`](ById::require_same).
    ///
    /// # Errors
    /// If the numbers of the process in the job that it has joined, `pe` of `n_pes`, are not those
    /// of the arguments: `oshrun` may have given it others.
    pub(super) fn check_and_record(&self, pe: u32, n_pes: u32) -> Result<(), StartError> {
        let rank = self.pe;
        let n_ranks = self.n_pes;
        if rank != pe || n_ranks != n_pes {
            return Err(StartError::Rank {
                rank,
                n_ranks,
                pe,
                n_pes,
            });
        }

        // This cannot fail: only the first init calls this function.
        let _ = JOINED.set(self.clone());
        Ok(())
    }

    /// Ends the job with an error if this process has joined a job by other arguments, or without a
    /// unique id.
    pub(super) fn require_same(&self, call: Call) {
        let joined = JOINED.get();
        if job::known().is_some() && joined != Some(self) {
            fail!(
                call,
                "this process has joined another job before, by other arguments; a process is in one job: initialize \
                 again by the same arguments, or start another process"
            );
        }
    }
}

/// `shmemx_get_uniqueid`: makes the unique id of a job. This process serves the meeting of the
/// job's PEs until the job has ended. Returns an error if it can listen at no address.
pub fn unique_id(call: Call) -> Result<[u8; UNIQUE_ID_BYTES], String> {
    if process::is_child() {
        job::refuse_child(call);
    }

    for mistake in apply_files() {
        warning!("{mistake}");
    }
    let settings = match settings::of_this_process(&[]) {
        Ok(settings) => settings,
        Err(error) => fail!(call, "{error}{}", settings::places_in(&error)),
    };
    if let Some(filter) = &settings.debug {
        rushmem_system::log::print(filter);
    }

    // Static data can be moved only while this thread is the only one, and the meeting is served by
    // another one.
    statics::move_now();
    match make_unique_id(settings.meeting_limits()) {
        Ok(id) => Ok(id.to_bytes()),
        Err(error) => Err(error.to_string()),
    }
}
