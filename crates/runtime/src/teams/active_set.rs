//! Active sets (OpenSHMEM 1.6, Annex: deprecated collectives). The members of an active set agree
//! on a team at their first call. They keep the team for later calls if all of them have room for
//! it; otherwise the team ends with the call.
//!
//! Two PEs make the calls in which both take part in the same order, so pSync is not needed to tell
//! calls apart. If several threads of a PE may be in the library at once, there is no such order,
//! and each pSync has a team of its own. pSync is never written, so it is unchanged when the call
//! returns, as the standard requires. With `SHMEM_CHECK` its value and its use are checked: a
//! mistake that works here is a warning, since with other libraries the program may hang or get
//! wrong data.

pub(crate) mod kept;

use crate::coll::same_collective;
use crate::message_purpose::MessagePurpose;
use crate::own_pe::OwnPe;
use crate::teams::agreement::{Agreed, AgreementRequest, agree};
use crate::teams::checked_group::CheckedGroup;
use crate::teams::registry::HeldTeam;
use crate::teams::team::{Name, NewTeam, Team, TeamConfig};
use core::ffi::{c_int, c_long};
use kept::ActiveSetKey;
use rushmem_communication::sync::team_signals::OngoingCollective;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_SYNC_VALUE;
use rushmem_pe::digest::digest;
use rushmem_pe::job::Job;
use rushmem_pe::job::members::Members;
use rushmem_pe::job::permission::{self, warn_once};
use rushmem_pe::memory::address;
use rushmem_pe::memory::areas::TEAM_SLOTS;
use rushmem_pe::memory::range;
use rushmem_pe::memory::statics;
use rushmem_system::lock::lock;
use std::sync::Mutex;

/// Maximum number of active sets whose teams a PE keeps: half of the slots, which leaves the other
/// half to the teams of the program.
const MAX_KEPT: usize = TEAM_SLOTS / 2;

/// Returns the team of an active set. If the members have not kept one, they agree on a new one.
pub(crate) fn find_or_make(
    pe: &'static OwnPe,
    call: Call,
    triplet: [c_int; 3],
    psync: *const c_long,
) -> HeldTeam {
    let job = pe.job();
    let key = ActiveSetKey {
        triplet,
        psync: job.has_threads_somewhere.then(|| psync.addr()),
    };
    let kept = pe.kept.get(key);
    match kept {
        Some(team) => HeldTeam::Counted(team),
        None => make(pe, call, key, psync),
    }
}

/// Agrees with the other members on a team, and keeps it if all of them can.
fn make(pe: &'static OwnPe, call: Call, key: ActiveSetKey, psync: *const c_long) -> HeldTeam {
    let job = pe.job();
    let name = Name::ActiveSet(key.triplet);
    let members = members(call, job, key.triplet);
    let tag = tag(call, key, psync);
    let new = NewTeam {
        call,
        name,
        members: &members,
        tag,
    };

    if job.settings.checks() {
        let group = CheckedGroup::of_active_set(key.triplet);
        same_collective::require(pe.links, &pe.teams, &new, &members, tag, group, &[]);
    }

    let request = AgreementRequest {
        tag,
        arguments: 0,
        able: true,
        keeps: pe.kept.write().len() < MAX_KEPT,
        count: 1,
    };
    match agree(
        pe.links,
        &pe.slots,
        call,
        &|pe| new.describe(Some(pe)),
        &members,
        request,
    ) {
        Agreed::Slots {
            slots,
            generation,
            all_keep,
        } => {
            let slot = slots[0];
            let config = TeamConfig::default();
            let team = Team::new(pe.links, name, slot, generation, members, config);

            // All members decide alike: none keeps a team that another one ends with the call.
            if !all_keep {
                return HeldTeam::OfCall(Box::new((team, &pe.slots)));
            }
            let handle = pe.teams.insert(job, team);
            let team = pe.teams.get(handle).expect("it was just made");
            pe.kept.write().insert(key, team.clone());
            HeldTeam::Counted(team)
        }
        Agreed::Elsewhere(peer) => fail!(
            call,
            "PE {} is in a collective with this PE on another active set or team: all members of an active set \
             call with the same PE_start, logPE_stride and PE_size, and PEs that have several active sets or teams \
             in common use them in the same order; SHMEM_CHECK=1 shows which PE is where",
            peer.0
        ),
        Agreed::Refused | Agreed::Unlike => fail!(
            call,
            "no team is left for this active set: {TEAM_SLOTS} teams can exist at once on a PE, and a call on \
             an active set needs one while it lasts; destroy those that are done with"
        ),
    }
}

/// Returns the tag of the agreement on the team with this key, the same on every member.
fn tag(call: Call, key: ActiveSetKey, psync: *const c_long) -> u64 {
    // Without threads, the order of the calls distinguishes them, and pSync does not count.
    let psync = if key.psync.is_some() {
        psync_digest(call, psync)
    } else {
        0
    };
    let [start, log_stride, size] = key.triplet.map(|number| number as u64);
    let purpose = MessagePurpose::ActiveSet.word();
    digest(&[purpose, start, log_stride, size, psync])
}

fn members(call: Call, job: &Job, [start, log_stride, size]: [c_int; 3]) -> Members {
    let stride = u32::try_from(log_stride)
        .ok()
        .and_then(|log| 1i32.checked_shl(log));
    let members = stride.and_then(|stride| Members::world(job.n_pes).subset(start, stride, size));
    let Some(members) = members else {
        fail!(
            call,
            "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size} does not \
             lie within the {} PEs of the job",
            job.n_pes
        );
    };
    if members.team_pe(job.me).is_none() {
        fail!(
            call,
            "called by a PE outside of the active set PE_start {start}, logPE_stride {log_stride}, \
             PE_size {size}; call it on members of the set alone"
        );
    }
    members
}

/// Returns a digest of the location of a pSync, the same on every PE. Ends the job with an error if
/// pSync is neither symmetric nor a static variable of a library.
fn psync_digest(call: Call, psync: *const c_long) -> u64 {
    // The first word tells an offset in a segment from an offset in a library.
    if let Some((segment, offset)) = address::place_on_all_pes(psync.addr(), size_of::<c_long>()) {
        return digest(&[0, segment as u64, offset as u64]);
    }

    let Some(object) = statics::object_holding(psync.cast()) else {
        fail!(
            call,
            "argument pSync: {psync:p} is neither in the symmetric heap nor a static variable; declare it static, or \
             allocate it with shmem_malloc"
        );
    };
    let name = object
        .name
        .iter()
        .map(|&byte| u64::from(byte))
        .collect::<Vec<u64>>();
    digest(&[1, digest(&name), object.offset as u64])
}

/// The purpose for which a call uses a pSync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PsyncPurpose {
    /// A barrier or a sync. Several of these on one set may use the same pSync one after the other.
    Sync,
    /// A collective that transfers data.
    Data,
}

/// A use of a pSync by a call.
#[derive(Clone, Copy, Debug)]
struct PsyncRecord {
    psync: usize,
    triplet: [c_int; 3],
    used_for: PsyncPurpose,
    /// The number of checked calls of this PE when the use ended.
    end: u64,
}

/// The last use that has ended.
static LAST: Mutex<Option<PsyncRecord>> = Mutex::new(None);

/// The use of a pSync by a call on an active set, until the call ends.
#[derive(Debug)]
pub(crate) struct PsyncUse(PsyncRecord);

impl PsyncUse {
    /// Begins a use of pSync, with `SHMEM_CHECK`; otherwise returns `None`. Warns if the first
    /// element of pSync does not have its initial value, which the standard requires before each
    /// use, or if the use [follows another one at once](PsyncRecord::follows_at_once). Ends the job
    /// with an error if pSync is neither symmetric nor a static variable of a library; the value of
    /// the latter is not read.
    pub(crate) fn begin(
        pe: &OwnPe,
        call: Call,
        triplet: [c_int; 3],
        psync: *const c_long,
        used_for: PsyncPurpose,
    ) -> Option<PsyncUse> {
        let job = pe.job();
        if !job.settings.checks() {
            return None;
        }

        // Called only for its check of the address; the digest is not used.
        psync_digest(call, psync);

        let new = PsyncRecord {
            psync: psync.addr(),
            triplet,
            used_for,
            // Set when the use is dropped.
            end: 0,
        };

        // Taken, since the use that begins becomes the last one, and records itself when it ends.
        let last = lock(&LAST).take();
        if last.is_some_and(|last| new.follows_at_once(last)) {
            warn_once(
                call,
                "argument pSync was used by the last collective of this PE, in which other PEs may still be; it works \
                 here, but with other implementations use another pSync, or a barrier between the calls",
            );
        }

        let nbytes = size_of::<c_long>();
        let is_symmetric = address::locate(new.psync, nbytes).is_some();
        let has_other_value = is_symmetric
            && range::symmetric(job, call, "pSync", psync.cast(), nbytes).first_word()
                != SHMEM_SYNC_VALUE as u64;
        if has_other_value {
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
    /// Returns true if this PE has made no call between the use `last` of the same pSync and this
    /// use, so that other PEs may still be in the call of `last`. Returns false for two syncs or
    /// barriers on one set, which may follow each other, and if the set of `last` has one member.
    fn follows_at_once(self, last: PsyncRecord) -> bool {
        let in_turn = [self.used_for, last.used_for] == [PsyncPurpose::Sync; 2]
            && self.triplet == last.triplet;
        let is_alone = last.triplet[2] == 1;
        self.psync == last.psync && last.end == permission::calls() && !in_turn && !is_alone
    }
}

impl Drop for PsyncUse {
    fn drop(&mut self) {
        *lock(&LAST) = Some(PsyncRecord {
            end: permission::calls(),
            ..self.0
        });
    }
}
