//! Splits of a parent team (OpenSHMEM 1.6, §9.4.6 and §9.4.7).
//!
//! All members of the parent agree on slots and on success before any of them makes a team, so that
//! a split fails on all of them or on none.

use super::{Config, Handle, Team, find};
use crate::agreement::{Agreed, agree, digest};
use crate::call::{Call, fail};
use crate::job;
use core::ffi::{c_int, c_long};

/// What an agreement is about, in its tag.
const STRIDED: u64 = 1;
const GRID: u64 = 2;

/// `shmem_team_split_strided`: the members `start + i * stride` of the parent as a team. Zero on all
/// members of the parent, or nonzero and the invalid team on all.
///
/// # Safety
/// `new_team` is valid for a write; `config` for a read, or anything when `mask` is 0.
#[expect(clippy::too_many_arguments, reason = "the arguments of the standard")]
pub unsafe fn split_strided(
    call: Call,
    parent: Handle,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const Config,
    mask: c_long,
    new_team: *mut Handle,
) -> c_int {
    let job = job::require(call);
    let mut made = Err(());
    if parent != Handle::INVALID {
        // SAFETY: valid by contract.
        let config = unsafe { Config::read(call, "config", config, mask) };
        let parent = find(call, "parent_team", parent);
        let members = parent.members.subset(start, stride, size);
        let arguments = digest(&[start as u64, stride as u64, size as u64]);
        let tag = digest(&[STRIDED, parent.handle.0 as u64]);
        match agree(job, parent.members, tag, arguments, members.is_some(), 1) {
            Agreed::Slots(slots, generation) => {
                let members = members.expect("all were able");
                made = Ok(match members.team_pe(job.me()) {
                    Some(_) => {
                        job.slots().take(slots[0]);
                        job.teams.insert(Team::new(slots[0], generation, members, job.me(), config))
                    }
                    None => Handle::INVALID,
                });
            }
            Agreed::Refused => {}
            Agreed::Unlike => fail!(
                call,
                "start, stride or size differ between the PEs of the parent team; here they are \
                 {start}, {stride} and {size}"
            ),
        }
    }
    // SAFETY: valid by contract.
    unsafe { new_team.write(made.unwrap_or(Handle::INVALID)) };
    c_int::from(made.is_err())
}

/// `shmem_team_split_2d`: the calling PE's row and column when the parent's members are laid out in
/// rows of `xrange`. Zero on all members of the parent, or nonzero and invalid teams on all.
///
/// # Safety
/// The team pointers are valid for writes; each config for a read, or anything when its mask is 0.
#[expect(clippy::too_many_arguments, reason = "the arguments of the standard")]
pub unsafe fn split_2d(
    call: Call,
    parent: Handle,
    xrange: c_int,
    xaxis_config: *const Config,
    xaxis_mask: c_long,
    xaxis_team: *mut Handle,
    yaxis_config: *const Config,
    yaxis_mask: c_long,
    yaxis_team: *mut Handle,
) -> c_int {
    let job = job::require(call);
    let mut made = None;
    if parent != Handle::INVALID {
        // SAFETY: valid by contract.
        let x_config = unsafe { Config::read(call, "xaxis_config", xaxis_config, xaxis_mask) };
        // SAFETY: valid by contract.
        let y_config = unsafe { Config::read(call, "yaxis_config", yaxis_config, yaxis_mask) };
        let parent = find(call, "parent_team", parent);
        let axes = parent.members.row_and_column(xrange, parent.me);
        let tag = digest(&[GRID, parent.handle.0 as u64]);
        match agree(job, parent.members, tag, digest(&[xrange as u64]), axes.is_some(), 2) {
            Agreed::Slots(slots, generation) => {
                let (row, column) = axes.expect("all were able");
                let team = |slot: u16, members, config| {
                    job.slots().take(slot);
                    job.teams.insert(Team::new(slot, generation, members, job.me(), config))
                };
                made = Some((team(slots[0], row, x_config), team(slots[1], column, y_config)));
            }
            Agreed::Refused => {}
            Agreed::Unlike => fail!(
                call,
                "xrange differs between the PEs of the parent team; here it is {xrange}"
            ),
        }
    }
    let (row, column) = made.unwrap_or((Handle::INVALID, Handle::INVALID));
    // SAFETY: valid by contract.
    unsafe { xaxis_team.write(row) };
    // SAFETY: valid by contract.
    unsafe { yaxis_team.write(column) };
    c_int::from(made.is_none())
}
