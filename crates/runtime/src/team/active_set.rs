//! Active sets (OpenSHMEM 1.6, Annex: deprecated collectives) as teams that are made on first use.
//!
//! The key is the triplet and where pSync is, so that two pSyncs in turn are two teams and calls with
//! them may overlap. pSync itself is neither read nor written, here or remotely: it is as the user
//! left it when the call returns, which is what the standard asks, and it may be static.

use super::{Config, Members, Team};
use crate::address;
use crate::agreement::{Agreed, agree, digest, elsewhere};
use crate::call::{Call, fail};
use crate::job::{self, Job};
use crate::object;
use core::ffi::{c_int, c_long};
use std::sync::Arc;

/// What an agreement is about, in its tag.
const ACTIVE_SET: u64 = 3;

/// What makes two calls use the same team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    start: c_int,
    log_stride: c_int,
    size: c_int,
    /// Where pSync is in this process.
    psync: usize,
}

impl Key {
    /// The address of its pSync.
    pub(super) fn address(&self) -> usize {
        self.psync
    }
}

/// The team of an active set that the calling PE is in.
pub(crate) fn find(
    call: Call,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    psync: *const c_long,
) -> Arc<Team> {
    let job = job::require(call);
    let key = Key { start, log_stride, size, psync: psync.addr() };
    if let Some(team) = job::lock(&job.teams.active_sets).get(&key) {
        return team.clone();
    }
    let members = members(call, job, start, log_stride, size);
    let tag =
        digest(&[ACTIVE_SET, start as u64, log_stride as u64, size as u64, place(call, psync)]);
    match agree(job, &members, tag, 0, true, 1) {
        Agreed::Slots(slots, generation) => {
            let team = Team::new(slots[0], generation, members, job.me(), Config::default());
            let team = Arc::new(team);
            job::lock(&job.teams.active_sets).insert(key, team.clone());
            team
        }
        Agreed::Elsewhere(peer) => elsewhere(call, peer),
        Agreed::Refused | Agreed::Unlike => fail!(
            call,
            "no team is left for this active set: every pair of an active set and a pSync takes one \
             until shmem_finalize; use fewer pSync arrays"
        ),
    }
}

fn members(call: Call, job: &Job, start: c_int, log_stride: c_int, size: c_int) -> Members {
    let stride = u32::try_from(log_stride).ok().and_then(|log| 1i32.checked_shl(log));
    let members = stride.and_then(|stride| Members::world(job.n_pes).subset(start, stride, size));
    let Some(members) = members else {
        fail!(
            call,
            "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size} does not \
             lie within the {} PEs of the job",
            job.n_pes
        );
    };
    if members.team_pe(job.me()).is_none() {
        fail!(
            call,
            "called by a PE outside of the active set PE_start {start}, logPE_stride {log_stride}, \
             PE_size {size}"
        );
    }
    members
}

/// A number for the place of a pSync that is the same on every PE.
fn place(call: Call, psync: *const c_long) -> u64 {
    if let Some((segment, offset)) = address::place(psync.addr(), size_of::<c_long>()) {
        return digest(&[0, segment as u64, offset as u64]);
    }
    let Some(place) = object::holding(psync.cast()) else {
        fail!(
            call,
            "argument pSync: {psync:p} is neither in the symmetric heap nor a static variable"
        );
    };
    let name = place.name.iter().map(|&byte| u64::from(byte)).collect::<Vec<u64>>();
    digest(&[1, digest(&name), place.offset as u64])
}
