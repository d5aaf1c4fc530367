//! Teams (OpenSHMEM 1.6, §9.4): queries about them, splits of a parent team, and destroying them.
//!
//! All members of the parent agree on slots and on success before any of them creates a team, so a
//! split fails on all of them or on none.

use crate::api::ctx;
use crate::coll::collectives;
use crate::message_purpose::MessagePurpose;
use crate::own_pe::{Caller, OwnPe};
use crate::teams::agreement::{Agreed, AgreementRequest, agree, fail_elsewhere};
use core::ffi::c_int;
use rushmem_communication::sync::mailbox::message_wait;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::digest::digest;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::members::RowAndColumn;

pub use crate::api::cray_splits::{NoTeamLeft, split_color, split_grid, split_strided_by_members};
pub use crate::teams::team::TeamConfig;

/// `shmem_team_my_pe` (§9.4.1): the number of this PE in a team; -1 for the invalid team.
pub fn my_pe(caller: impl Caller, team: TeamHandle) -> c_int {
    let (pe, call) = caller.enter();
    if team == TeamHandle::INVALID {
        -1
    } else {
        pe.teams.find(call, "team", team).me().0 as c_int
    }
}

/// `shmem_team_n_pes` (§9.4.2): the number of members of a team; -1 for the invalid team.
pub fn n_pes(caller: impl Caller, team: TeamHandle) -> c_int {
    let (pe, call) = caller.enter();
    if team == TeamHandle::INVALID {
        -1
    } else {
        pe.teams.find(call, "team", team).members().n as c_int
    }
}

/// `shmem_team_get_config` (§9.4.4): the configuration of a team; `None` for the invalid team.
pub fn config(caller: impl Caller, team: TeamHandle) -> Option<TeamConfig> {
    let (pe, call) = caller.enter();
    if team == TeamHandle::INVALID {
        None
    } else {
        Some(pe.teams.find(call, "team", team).config())
    }
}

/// `shmem_team_translate_pe` (§9.4.5): the number in `dest_team` of PE `src_pe` of `src_team`; -1
/// if a team is invalid or the PE is not in both.
pub fn translate_pe(
    caller: impl Caller,
    src_team: TeamHandle,
    src_pe: c_int,
    dest_team: TeamHandle,
) -> c_int {
    let (pe, call) = caller.enter();
    if src_team == TeamHandle::INVALID || dest_team == TeamHandle::INVALID {
        return -1;
    }

    let source = pe.teams.find(call, "src_team", src_team);
    let dest = pe.teams.find(call, "dest_team", dest_team);
    if src_pe < 0 || src_pe as u32 >= source.members().n {
        return -1;
    }

    let pe = source.members().world_pe(src_pe as u32);
    dest.members()
        .team_pe(pe)
        .map_or(-1, |team_pe| team_pe.0 as c_int)
}

/// `shmem_team_destroy` (§9.4.8): a collective of the team. Ignores the invalid team.
pub fn destroy(caller: impl Caller, team: TeamHandle) {
    let (pe, call) = caller.enter();
    match team {
        TeamHandle::INVALID => return,
        TeamHandle::WORLD | TeamHandle::SHARED | TeamHandle::NODE => {
            fail!(
                call,
                "argument team is a predefined team, which cannot be destroyed"
            )
        }
        _ => {}
    }

    let found = pe.teams.find(call, "team", team);
    pe.requests.end(&found);
    collectives::require_same(pe, call, &found, &[]);
    ctx::destroy_of(pe, call, Some(team));

    // Without a barrier: every signal to this member has ended a wait in a collective, so no PE
    // still writes to the slot.
    pe.teams.remove(team);
    found.retire(&pe.slots);
}

/// `shmemx_team_destroy`: as `shmem_team_destroy`, but ends the job with an error for the invalid
/// team.
pub fn destroy_as_member(call: Call, handle: TeamHandle) {
    if handle == TeamHandle::INVALID {
        fail!(
            call,
            "argument newteam is SHMEM_TEAM_NULL: only members of a team destroy it"
        );
    }
    destroy(call, handle);
}

/// `shmem_team_split_strided`: makes a team of the members `start + i * stride` of the parent for
/// `i` below `size`. Returns the invalid team on the other members, and `None` if the parent is the
/// invalid team, or on all members of the parent if the team cannot be made.
pub fn split_strided(
    caller: impl Caller,
    parent: TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: TeamConfig,
) -> Option<TeamHandle> {
    let (pe, call) = caller.enter();
    if parent == TeamHandle::INVALID {
        return None;
    }

    let parent = pe.teams.find(call, "parent_team", parent);
    check_contexts(pe, call, "config", config);
    collectives::require_same(pe, call, &parent, &[]);

    let split = parent.next_split(call);
    let members = parent.members().subset(start, stride, size);
    let request = AgreementRequest {
        tag: digest(&[
            MessagePurpose::SplitStrided.word(),
            parent.handle().0 as u64,
        ]),
        arguments: digest(&[start as u64, stride as u64, size as u64]),
        able: members.is_some(),
        keeps: true,
        count: 1,
    };
    match agree(
        pe.links,
        &pe.slots,
        call,
        &message_wait(call),
        parent.members(),
        request,
    ) {
        Agreed::Slots {
            slots, generation, ..
        } => {
            let members = members.expect("all were able");
            let slot = slots[0];
            if members.team_pe(pe.job().me).is_none() {
                pe.slots.release(slot);
                return Some(TeamHandle::INVALID);
            }
            Some(
                pe.teams
                    .add_split_team(pe.links, split, slot, generation, members, config),
            )
        }
        Agreed::Refused => None,
        Agreed::Elsewhere(peer) => fail_elsewhere(call, peer),
        Agreed::Unlike => fail!(
            call,
            "start, stride or size differ between the PEs of the parent team; here they are \
             {start}, {stride} and {size}; pass the same on all of them"
        ),
    }
}

/// With `SHMEM_CHECK`, ends the job with an error if `num_contexts` is negative.
fn check_contexts(pe: &OwnPe, call: Call, argument: &str, config: TeamConfig) {
    let number = config.num_contexts;
    if number < 0 && pe.job().settings.checks() {
        fail!(
            call,
            "argument {argument}: num_contexts is {number}, but a number of contexts is not negative"
        );
    }
}

/// `shmem_team_split_2d`: arranges the members of the parent in rows of `xrange`, makes a team of
/// each row and each column, and returns the row and the column of the calling PE. Returns `None`
/// if the parent is the invalid team, or on all its members if any of the teams cannot be made.
pub fn split_2d(
    caller: impl Caller,
    parent: TeamHandle,
    xrange: c_int,
    xaxis: TeamConfig,
    yaxis: TeamConfig,
) -> Option<(TeamHandle, TeamHandle)> {
    let (pe, call) = caller.enter();
    if parent == TeamHandle::INVALID {
        return None;
    }

    let parent = pe.teams.find(call, "parent_team", parent);
    check_contexts(pe, call, "xaxis_config", xaxis);
    check_contexts(pe, call, "yaxis_config", yaxis);
    collectives::require_same(pe, call, &parent, &[]);

    let split = parent.next_split(call);
    let axes = parent.members().row_and_column(xrange, parent.me());
    let request = AgreementRequest {
        tag: digest(&[MessagePurpose::Split2d.word(), parent.handle().0 as u64]),
        arguments: digest(&[xrange as u64]),
        able: axes.is_some(),
        keeps: true,
        count: 2,
    };
    match agree(
        pe.links,
        &pe.slots,
        call,
        &message_wait(call),
        parent.members(),
        request,
    ) {
        Agreed::Slots {
            slots, generation, ..
        } => {
            let RowAndColumn { row, column } = axes.expect("all were able");
            let row = pe
                .teams
                .add_split_team(pe.links, split, slots[0], generation, row, xaxis);
            let column = pe
                .teams
                .add_split_team(pe.links, split, slots[1], generation, column, yaxis);
            Some((row, column))
        }
        Agreed::Refused => None,
        Agreed::Elsewhere(peer) => fail_elsewhere(call, peer),
        Agreed::Unlike => fail!(
            call,
            "xrange differs between the PEs of the parent team; here it is {xrange}; pass the same on all of them"
        ),
    }
}
