//! Splits of teams as in Cray's shmemx.h. They return no status, so every error ends the job. The
//! invalid team, which is Cray's `SHMEM_TEAM_NULL`, is the result on PEs that are in no new team.
//!
//! The arguments are checked before the members agree on anything. Only the members of the new team
//! call the strided split; no other PE of the parent takes part in it.

use crate::coll::collectives;
use crate::coll::same_collective::{self, CheckedArgument};
use crate::message_purpose::MessagePurpose;
use crate::own_pe::{Caller, OwnPe};
use crate::teams::agreement::{Agreed, AgreementRequest, agree, fail_elsewhere};
use crate::teams::checked_group::CheckedGroup;
use crate::teams::registry::HeldTeam;
use crate::teams::team::{NewTeam, Split, TeamConfig};
use core::ffi::c_int;
use rushmem_communication::sync::mailbox::message_wait;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::digest::digest;
use rushmem_pe::extension_constants::SHMEM_COLOR_UNDEFINED;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::areas::TEAM_SLOTS;

/// `shmemx_team_split_strided`: makes a team of the PEs `start + i * stride` of the parent for `i`
/// below `size`, in the order of the world. Only the members of the new team must call. Another
/// member of the parent that calls gets the invalid team (Cray's `SHMEM_TEAM_NULL`) without
/// waiting.
pub fn split_strided_by_members(
    caller: impl Caller,
    parent: TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
) -> Result<TeamHandle, NoTeamLeft> {
    let (pe, call) = caller.enter();
    let parent = parent_team(pe, call, parent);
    let members = triplet(call, parent.members(), start, stride, size);
    if members.team_pe(pe.job().me).is_none() {
        return Ok(TeamHandle::INVALID);
    }

    let [start, stride, size] = [start, stride, size].map(|number| number as u64);
    let arguments = [
        ("PE_start", start),
        ("PE_stride", stride),
        ("PE_size", size),
    ];
    let purpose = MessagePurpose::SplitByMembers.word();
    let tag = digest(&[purpose, parent.handle().0 as u64, start, stride, size]);
    let split = parent.split_by_members(call);
    make(pe, call, split, members, tag, &arguments)
}

fn parent_team(pe: &'static OwnPe, call: Call, handle: TeamHandle) -> HeldTeam {
    if handle == TeamHandle::INVALID {
        fail!(
            call,
            "argument parent_team is SHMEM_TEAM_NULL: a PE that is not in a team takes no part in its \
             split"
        );
    }
    pe.teams.find(call, "parent_team", handle)
}

/// Returns the PEs of a triplet of the parent, in the order of the world. Ends the job with an
/// error if the triplet is not valid.
fn triplet(call: Call, parent: &Members, start: c_int, stride: c_int, size: c_int) -> Members {
    let n = parent.n;
    if size < 1 {
        let size = call.written(size);
        fail!(
            call,
            "argument PE_size is {size}, but a team has 1 to {n} PEs"
        );
    }

    if stride < 1 && size > 1 {
        let stride = call.written(stride);
        fail!(
            call,
            "argument PE_stride is {stride}, but PE_start is the lowest PE of the team: strides are \
             1 to {}",
            c_int::MAX
        );
    }

    let Some(members) = parent.subset(start, stride, size) else {
        let [start, stride, size] = [start, stride, size].map(|argument| call.written(argument));
        fail!(
            call,
            "the triplet PE_start {start}, PE_stride {stride}, PE_size {size} does not lie within the \
             parent team, whose PEs are numbered 0 to {}",
            n - 1
        );
    };
    members.ascending()
}

/// Makes a team of `members`, all of which call this with the same tag. With `SHMEM_CHECK`, they
/// must also pass the same `arguments`.
fn make(
    pe: &'static OwnPe,
    call: Call,
    split: Split,
    members: Members,
    tag: u64,
    arguments: &[CheckedArgument],
) -> Result<TeamHandle, NoTeamLeft> {
    if pe.job().settings.checks() {
        let made = NewTeam {
            call,
            name: split.name(&members),
            members: &members,
            tag,
        };
        same_collective::require(
            pe.links,
            &pe.teams,
            &made,
            &members,
            tag,
            CheckedGroup::NONE,
            arguments,
        );
    }

    let request = AgreementRequest {
        tag,
        arguments: 0,
        able: true,
        keeps: true,
        count: 1,
    };
    match agree(
        pe.links,
        &pe.slots,
        call,
        &message_wait(call),
        &members,
        request,
    ) {
        Agreed::Slots {
            slots, generation, ..
        } => {
            let config = TeamConfig::default();
            Ok(pe
                .teams
                .add_split_team(pe.links, split, slots[0], generation, members, config))
        }
        Agreed::Elsewhere(peer) => fail_elsewhere(call, peer),
        Agreed::Refused | Agreed::Unlike => Err(NoTeamLeft),
    }
}

/// `shmemx_team_split_2d` and `_3d`: arranges the members of the parent in a grid, makes the teams
/// along each dimension, and returns the team of the calling PE in each. All members of the parent
/// call. Members beyond the grid are in no team; if the grid is larger than the parent, its last
/// cells are empty.
pub fn split_grid<const D: usize>(
    caller: impl Caller,
    parent: TeamHandle,
    ranges: [(&str, c_int); D],
) -> Result<[TeamHandle; D], NoTeamLeft> {
    let (pe, call) = caller.enter();
    let parent = parent_team(pe, call, parent);
    let sizes = ranges.map(|(argument, range)| match u32::try_from(range) {
        Ok(range) => range,
        Err(_) => {
            let range = call.written(range);
            fail!(
                call,
                "argument {argument} is {range}, but a range is from 0 to {}",
                c_int::MAX
            )
        }
    });
    collectives::require_same(pe, call, &parent, &[]);

    let split = parent.next_split(call);
    let axes = parent.members().axes(sizes, parent.me());
    let request = AgreementRequest {
        tag: digest(&[MessagePurpose::SplitGrid.word(), parent.handle().0 as u64]),
        arguments: digest(&sizes.map(u64::from)),
        // A member beyond the grid is able, too: it takes part, and is in no team.
        able: true,
        keeps: true,
        count: D,
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
            let Some(axes) = axes else {
                for slot in slots {
                    pe.slots.release(slot);
                }
                return Ok([TeamHandle::INVALID; D]);
            };

            let mut slots = slots.into_iter();
            Ok(axes.map(|members| {
                let slot = slots.next().expect("there is one for each");
                let config = TeamConfig::default();
                pe.teams
                    .add_split_team(pe.links, split, slot, generation, members, config)
            }))
        }
        Agreed::Elsewhere(peer) => fail_elsewhere(call, peer),
        Agreed::Unlike => fail!(
            call,
            "{} differ between the PEs of the parent team; here they are {sizes:?}; pass the same on all of them",
            ranges.map(|(argument, _)| argument).join(", ")
        ),
        Agreed::Refused => Err(NoTeamLeft),
    }
}

/// `shmemx_team_split`: makes a team of the members of the parent that pass the same color, in the
/// order of their keys, or of the parent if keys are equal. All members of the parent call. A PE
/// that passes `SHMEM_COLOR_UNDEFINED` is in no team.
pub fn split_color(
    caller: impl Caller,
    parent: TeamHandle,
    color: c_int,
    key: c_int,
) -> Result<TeamHandle, NoTeamLeft> {
    let (pe, call) = caller.enter();
    if color < 0 && color != SHMEM_COLOR_UNDEFINED {
        fail!(
            call,
            "argument color is {color}, but a color is not negative, or SHMEM_COLOR_UNDEFINED \
             ({SHMEM_COLOR_UNDEFINED})"
        );
    }
    let parent = parent_team(pe, call, parent);
    let own = ColorAndKey { color, key };
    let words = collectives::gather_words(pe, call, &parent, own.to_word());
    let split = parent.next_split(call);
    // Such a PE has taken part so far, since all members of the parent must.
    if color == SHMEM_COLOR_UNDEFINED {
        return Ok(TeamHandle::INVALID);
    }

    let mut same_color: Vec<KeyedMember> = Vec::new();
    for (member, word) in (0..).zip(words) {
        let other = ColorAndKey::of_word(word);
        if other.color == color {
            same_color.push(KeyedMember {
                key: other.key,
                member,
            });
        }
    }
    same_color.sort_unstable();

    let pes = same_color
        .iter()
        .map(|keyed| parent.members().world_pe(keyed.member).0);
    let members = Members::listed(pes.collect());
    let purpose = MessagePurpose::SplitColor.word();
    let tag = digest(&[purpose, parent.handle().0 as u64, color as u64]);
    make(pe, call, split, members, tag, &[("color", color as u64)])
}

/// The color and the key that a PE passes to [`split_color`].
struct ColorAndKey {
    color: c_int,
    key: c_int,
}

impl ColorAndKey {
    /// Returns the word that the members gather: the color in the upper half, the key in the lower
    /// one.
    fn to_word(&self) -> u64 {
        u64::from(self.color as u32) << 32 | u64::from(self.key as u32)
    }

    fn of_word(word: u64) -> ColorAndKey {
        ColorAndKey {
            color: (word >> 32) as c_int,
            key: word as c_int,
        }
    }
}

/// A member of the parent, in the order of the new team: by its key, then by its number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct KeyedMember {
    key: c_int,
    member: u32,
}

/// The error if some members are in so many teams that another one cannot exist. All members of the
/// new team get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTeamLeft;

impl NoTeamLeft {
    /// Ends the job with a message.
    pub fn fail(self, call: Call) -> ! {
        fail!(
            call,
            "no team is left: {TEAM_SLOTS} can exist at once on a PE; destroy those that are done with"
        )
    }
}
