//! Teams (OpenSHMEM 1.6, §9.4): queries about them, and destroying them. Splits are in files of
//! their own.

use crate::api::ctx;
use crate::call::{Call, fail};
use crate::coll::{collectives, requests};
use crate::job;
use crate::job::handle::TeamHandle;
use crate::teams::team::{self, find};
use core::ffi::c_int;

pub use crate::api::cray::{split_color, split_grid, split_strided_by_members};
pub use crate::api::split::{split_2d, split_strided};
pub use crate::teams::team::TeamConfig;

/// `shmem_team_my_pe` (§9.4.1): -1 for the invalid team.
pub fn my_pe(call: Call, team: TeamHandle) -> c_int {
    job::require(call);
    if team == TeamHandle::INVALID { -1 } else { find(call, "team", team).me().0 as c_int }
}

/// `shmem_team_n_pes` (§9.4.2): -1 for the invalid team.
pub fn n_pes(call: Call, team: TeamHandle) -> c_int {
    job::require(call);
    if team == TeamHandle::INVALID { -1 } else { find(call, "team", team).members().n as c_int }
}

/// `shmem_team_get_config` (§9.4.4): nothing for the invalid team.
pub fn config(call: Call, team: TeamHandle) -> Option<TeamConfig> {
    job::require(call);
    (team != TeamHandle::INVALID).then(|| find(call, "team", team).config())
}

/// `shmem_team_translate_pe` (§9.4.5): -1 when a team is invalid or the PE is not in both.
pub fn translate_pe(
    call: Call,
    src_team: TeamHandle,
    src_pe: c_int,
    dest_team: TeamHandle,
) -> c_int {
    job::require(call);
    if src_team == TeamHandle::INVALID || dest_team == TeamHandle::INVALID {
        return -1;
    }
    let source = find(call, "src_team", src_team);
    let dest = find(call, "dest_team", dest_team);
    if src_pe < 0 || src_pe as u32 >= source.members().n {
        return -1;
    }
    dest.members().team_pe(source.members().world_pe(src_pe as u32)).map_or(-1, |pe| pe.0 as c_int)
}

/// `shmem_team_destroy` (§9.4.8): collective; the invalid team is left alone. Every signal to this
/// member was taken by the collectives that it was meant for, so no PE still writes to the slot.
pub fn destroy(call: Call, team: TeamHandle) {
    job::require(call);
    match team {
        TeamHandle::INVALID => return,
        TeamHandle::WORLD | TeamHandle::SHARED | TeamHandle::NODE => {
            // Cause: `shmem_team_destroy(SHMEM_TEAM_WORLD)`. Remedy: destroy teams that were split
            // alone.
            fail!(call, "argument team is a predefined team, which cannot be destroyed")
        }
        _ => {}
    }
    let found = find(call, "team", team);
    requests::end(&found);
    collectives::agree(call, &found, &[]);
    ctx::destroy_of(call, Some(team));
    team::teams().remove(team);
    found.retire();
}

/// `shmemx_team_destroy`: as `shmem_team_destroy`, but the handle is that of a team.
pub fn destroy_member(call: Call, handle: TeamHandle) {
    if handle == TeamHandle::INVALID {
        // Cause: a PE that is not in a team destroys it. Remedy: call it on members.
        fail!(call, "argument newteam is SHMEM_TEAM_NULL: only members of a team destroy it");
    }
    destroy(call, handle);
}
