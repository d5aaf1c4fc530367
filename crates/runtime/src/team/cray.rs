//! Splits as Cray's shmemx.h has them: they return nothing, and every error ends the job.
//!
//! What the standard's split reports by its return value is a message here, made before anything was
//! agreed on. The strided split is called by its members alone, so that nothing but them takes part
//! in it; the caller is one PE of the parent that may not even know of the others.

use super::{Handle, Members, Team, find};
use crate::agreement::{Agreed, agree, digest, elsewhere};
use crate::call::{Call, fail};
use crate::job;
use core::ffi::c_int;

use super::Config;

/// What an agreement is about, in its tag.
const BY_MEMBERS: u64 = 4;

/// `shmemx_team_split_strided`: the PEs `start + i * stride` of the parent for `i` below `size`, numbered
/// by their places in the world. Its members alone have to call; any other member of the parent that
/// calls gets the invalid team, which Cray calls `SHMEM_TEAM_NULL`, and waits for nobody.
pub fn split_strided_by_members(
    call: Call,
    parent: Handle,
    start: c_int,
    stride: c_int,
    size: c_int,
) -> Handle {
    let parent = find(call, "parent_team", parent);
    let members = triplet(call, parent.members(), start, stride, size);
    if members.team_pe(job::require(call).me()).is_none() {
        return Handle::INVALID;
    }
    let [start, stride, size] = [start, stride, size].map(|number| number as u64);
    make(call, members, digest(&[BY_MEMBERS, parent.handle.0 as u64, start, stride, size]))
}

/// The members of a triplet, whose start is its lowest PE; a message when it is not valid.
fn triplet(call: Call, parent: &Members, start: c_int, stride: c_int, size: c_int) -> Members {
    let n = parent.n;
    if size < 1 {
        fail!(call, "argument PE_size is {size}, but a team has at least 1 PE");
    }
    if stride < 1 && size > 1 {
        fail!(
            call,
            "argument PE_stride is {stride}, but PE_start is the lowest PE of the team: strides are \
             at least 1"
        );
    }
    let Some(members) = parent.subset(start, stride, size) else {
        fail!(
            call,
            "the triplet PE_start {start}, PE_stride {stride}, PE_size {size} does not lie within the \
             parent team, whose PEs are numbered 0 to {}",
            n - 1
        );
    };
    members.ascending()
}

/// The team of `members`, all of which call this with the same tag.
fn make(call: Call, members: Members, tag: u64) -> Handle {
    let job = job::require(call);
    match agree(job, &members, tag, 0, true, 1) {
        Agreed::Slots(slots, generation) => {
            let team = Team::new(slots[0], generation, members, job.me(), Config::default());
            job.teams.insert(team)
        }
        Agreed::Elsewhere(peer) => elsewhere(call, peer),
        Agreed::Refused | Agreed::Unlike => fail!(
            call,
            "no team is left: {} can exist at once on a PE; destroy those that are done with",
            crate::internal::TEAM_SLOTS
        ),
    }
}
