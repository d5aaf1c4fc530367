//! Splits of a parent team (OpenSHMEM 1.6, §9.4.6 and §9.4.7).
//!
//! All members of the parent agree on slots and on success before any of them creates a team, so a
//! split fails on all of them or on none.

use crate::call::{Call, fail};
use crate::coll::collectives;
use crate::job;
use crate::job::digest::digest;
use crate::job::handle::TeamHandle;
use crate::teams::agreement::{self, Agreed, AgreementRequest, agree, elsewhere};
use crate::teams::team::{Team, TeamConfig, find, teams};
use core::ffi::c_int;

/// The purpose of an agreement, in its tag.
const STRIDED: u64 = 1;
const GRID: u64 = 2;

/// `shmem_team_split_strided`: the members `start + i * stride` of the parent as a team; the
/// invalid team on the others. `None` on all members of the parent when it cannot be made.
pub fn split_strided(
    call: Call,
    parent: TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: TeamConfig,
) -> Option<TeamHandle> {
    let job = job::require(call);
    if parent == TeamHandle::INVALID {
        return None;
    }
    let parent = find(call, "parent_team", parent);
    check_contexts(call, "config", config);
    collectives::agree(call, &parent, &[]);
    let split = parent.next_split(call);
    let members = parent.members().subset(start, stride, size);
    let arguments = digest(&[start as u64, stride as u64, size as u64]);
    let tag = digest(&[STRIDED, parent.handle().0 as u64]);
    let request =
        AgreementRequest { tag, arguments, able: members.is_some(), keeps: true, count: 1 };
    match agree(call, job, parent.members(), request) {
        Agreed::Slots(slots, generation, _) => {
            let members = members.expect("all were able");
            if members.team_pe(job.me()).is_none() {
                agreement::slots().release(slots[0]);
                return Some(TeamHandle::INVALID);
            }
            let (name, slot) = (split.name(&members), slots[0]);
            let team = Team::new(name, slot, generation, members, job.me(), &job.nodes, config);
            Some(teams().insert(team))
        }
        Agreed::Refused => None,
        Agreed::Elsewhere(peer) => elsewhere(call, peer),
        // Cause: the PEs of the parent pass other triplets. Remedy: pass the same on all of them.
        Agreed::Unlike => fail!(
            call,
            "start, stride or size differ between the PEs of the parent team; here they are \
             {start}, {stride} and {size}"
        ),
    }
}

/// With `SHMEM_CHECK`, ends the job with an error if a team is to have less than no contexts.
fn check_contexts(call: Call, argument: &str, config: TeamConfig) {
    let number = config.num_contexts;
    if number < 0 && job::require(call).settings.checks() {
        // Cause: `config.num_contexts` is negative, or was never set. Remedy: set the fields that
        // the mask names.
        fail!(
            call,
            "argument {argument}: num_contexts is {number}, but a number of contexts is not negative"
        );
    }
}

/// `shmem_team_split_2d`: the calling PE's row and column when the parent's members are laid out in
/// rows of `xrange`. `None` on all members of the parent when any of the teams cannot be made.
pub fn split_2d(
    call: Call,
    parent: TeamHandle,
    xrange: c_int,
    xaxis: TeamConfig,
    yaxis: TeamConfig,
) -> Option<(TeamHandle, TeamHandle)> {
    let job = job::require(call);
    if parent == TeamHandle::INVALID {
        return None;
    }
    let parent = find(call, "parent_team", parent);
    check_contexts(call, "xaxis_config", xaxis);
    check_contexts(call, "yaxis_config", yaxis);
    collectives::agree(call, &parent, &[]);
    let split = parent.next_split(call);
    let axes = parent.members().row_and_column(xrange, parent.me());
    let tag = digest(&[GRID, parent.handle().0 as u64]);
    let arguments = digest(&[xrange as u64]);
    let request = AgreementRequest { tag, arguments, able: axes.is_some(), keeps: true, count: 2 };
    match agree(call, job, parent.members(), request) {
        Agreed::Slots(slots, generation, _) => {
            let (row, column) = axes.expect("all were able");
            let team = |slot, members, config| {
                let (name, me) = (split.name(&members), job.me());
                let team = Team::new(name, slot, generation, members, me, &job.nodes, config);
                teams().insert(team)
            };
            Some((team(slots[0], row, xaxis), team(slots[1], column, yaxis)))
        }
        Agreed::Refused => None,
        Agreed::Elsewhere(peer) => elsewhere(call, peer),
        Agreed::Unlike => {
            // Cause: the PEs of the parent pass other numbers. Remedy: pass the same on all of
            // them.
            fail!(call, "xrange differs between the PEs of the parent team; here it is {xrange}")
        }
    }
}
