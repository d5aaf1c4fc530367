//! Active sets (OpenSHMEM 1.6, Annex: deprecated collectives): an active set is a team that its
//! members agree on at the first use, and keep for later calls while each of them has room. If one
//! has none, the team ends with the call.
//!
//! Two PEs make the calls in which both take part in the same order, so pSync need not distinguish
//! them, unless several threads of a PE may be in the library at once: then there is no such order,
//! and each pSync has a team. pSync itself is neither read nor written, here or remotely: it is
//! unchanged when the call returns, as the standard requires, and it may be static.

use crate::call::{Call, fail};
use crate::job::digest::digest;
use crate::job::members::Members;
use crate::job::{self, Job};
use crate::memory::address;
use crate::memory::areas::TEAM_SLOTS;
use crate::memory::statics;
use crate::sync::team_signals::OngoingCollective;
use crate::teams::agreement::{Agreed, AgreementRequest, agree_in};
use crate::teams::same_collective;
use crate::teams::team::{self, HeldTeam, Name, NewTeam, Team, TeamConfig, teams};
use core::ffi::{c_int, c_long};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

/// The purpose of an agreement, in its tag.
const ACTIVE_SET: u64 = 3;
/// Teams of active sets that a PE keeps: half of the slots, so that the other half is left to the
/// teams that the program makes.
const MAX_KEPT: usize = TEAM_SLOTS / 2;

/// The key by which two calls use the same team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ActiveSetKey {
    /// `PE_start`, `logPE_stride` and `PE_size`.
    triplet: [c_int; 3],
    /// The address of pSync in this process, if it distinguishes calls.
    psync: Option<usize>,
}

/// The teams that are kept; they are among the [`teams`] of this PE, too.
static KEPT: RwLock<BTreeMap<ActiveSetKey, Arc<Team>>> = RwLock::new(BTreeMap::new());

/// Returns the team of the active set of a call.
pub(crate) fn find(call: Call, triplet: [c_int; 3], psync: *const c_long) -> HeldTeam {
    let job = job::require(call);
    let key = ActiveSetKey { triplet, psync: job.threads_somewhere.then(|| psync.addr()) };
    let kept = KEPT.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    kept.map_or_else(|| make(call, job, key, psync), HeldTeam::Counted)
}

/// Forgets the teams that were kept, with all others of the program.
pub(crate) fn clear() {
    kept().clear();
}

fn kept() -> RwLockWriteGuard<'static, BTreeMap<ActiveSetKey, Arc<Team>>> {
    KEPT.write().unwrap_or_else(PoisonError::into_inner)
}

/// Agrees with the other members on the team.
fn make(call: Call, job: &Job, key: ActiveSetKey, psync: *const c_long) -> HeldTeam {
    let (name, members) = (Name::ActiveSet(key.triplet), members(call, job, key.triplet));
    let psync = key.psync.map_or(0, |_| psync_digest(call, psync));
    let [start, log_stride, size] = key.triplet.map(|number| number as u64);
    let tag = digest(&[ACTIVE_SET, start, log_stride, size, psync]);
    let new = NewTeam { call, name, members: &members, tag };
    if job.settings.checks() {
        same_collective::require(&new, job, &members, tag, team::active_set(key.triplet), &[]);
    }
    let keeps = kept().len() < MAX_KEPT;
    let request = AgreementRequest { tag, arguments: 0, able: true, keeps, count: 1 };
    let describe = |pe| new.describe(Some(pe));
    match agree_in(call, &describe, job, &members, request) {
        Agreed::Slots(slots, generation, all_keep) => {
            let (slot, config) = (slots[0], TeamConfig::default());
            let team = Team::new(name, slot, generation, members, job.me(), &job.nodes, config);
            if !all_keep {
                return HeldTeam::OfCall(Box::new(team));
            }
            let handle = teams().insert(team);
            let team = teams().get(handle).expect("it was just made");
            kept().insert(key, team.clone());
            HeldTeam::Counted(team)
        }
        // Cause: PEs pass other triplets, or use active sets and teams in different orders.
        Agreed::Elsewhere(peer) => fail!(
            call,
            "PE {} is in a collective with this PE on another active set or team: all members of an active set \
             call with the same PE_start, logPE_stride and PE_size, and PEs that have several active sets or teams \
             in common use them in the same order; SHMEM_CHECK=1 shows which PE is where",
            peer.0
        ),
        // Cause: the program uses more active sets and teams than there is room for.
        Agreed::Refused | Agreed::Unlike => fail!(
            call,
            "no team is left for this active set: {TEAM_SLOTS} teams can exist at once on a PE, and a call on \
             an active set needs one while it lasts; destroy those that are done with"
        ),
    }
}

fn members(call: Call, job: &Job, [start, log_stride, size]: [c_int; 3]) -> Members {
    let stride = u32::try_from(log_stride).ok().and_then(|log| 1i32.checked_shl(log));
    let members = stride.and_then(|stride| Members::world(job.n_pes).subset(start, stride, size));
    let Some(members) = members else {
        // Cause: the last PE of the set is beyond the job. Remedy: check the three numbers.
        fail!(
            call,
            "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size} does not \
             lie within the {} PEs of the job",
            job.n_pes
        );
    };
    if members.team_pe(job.me()).is_none() {
        // Cause: all PEs call, though the set has some of them. Remedy: call it on members of the
        // set alone.
        fail!(
            call,
            "called by a PE outside of the active set PE_start {start}, logPE_stride {log_stride}, \
             PE_size {size}"
        );
    }
    members
}

/// Returns a digest of the location of a pSync that is the same on every PE.
pub(super) fn psync_digest(call: Call, psync: *const c_long) -> u64 {
    if let Some((segment, offset)) = address::locate(psync.addr(), size_of::<c_long>()) {
        return digest(&[0, segment as u64, offset as u64]);
    }
    let Some(object) = statics::object_holding(psync.cast()) else {
        // Cause: the array is on the stack or from `malloc`. Remedy: make it static, or allocate it
        // with `shmem_malloc`.
        fail!(
            call,
            "argument pSync: {psync:p} is neither in the symmetric heap nor a static variable"
        );
    };
    let name = object.name.iter().map(|&byte| u64::from(byte)).collect::<Vec<u64>>();
    digest(&[1, digest(&name), object.offset as u64])
}
