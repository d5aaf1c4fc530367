//! The team or active set of a collective, as the members that compare their calls describe it to
//! each other.

use crate::teams::registry::Teams;
use crate::teams::team::{Name, Team};
use core::ffi::c_int;
use rushmem_pe::job::handle::TeamHandle;

/// The number of words that describe a team or active set.
pub(crate) const GROUP_WORDS: usize = 3;

/// The team or active set of a collective, as words that differ from those of any other one.
#[derive(Clone, Copy)]
pub(crate) struct CheckedGroup {
    pub(crate) words: [u64; GROUP_WORDS],
    /// Returns the name in messages of the team or active set with these words.
    pub(crate) name: fn(&Teams, [u64; GROUP_WORDS]) -> String,
}

impl CheckedGroup {
    /// The group of a call whose arguments name the PEs that take part.
    pub(crate) const NONE: CheckedGroup = CheckedGroup {
        words: [0; GROUP_WORDS],
        name: |_, _| String::new(),
    };

    /// Returns the group of a team, which may be that of an active set.
    pub(crate) fn of(team: &Team) -> CheckedGroup {
        match team.name {
            Name::ActiveSet(triplet) => CheckedGroup::of_active_set(triplet),
            _ => CheckedGroup {
                words: [team.handle().0 as u64, 0, 0],
                name: |teams, [handle, ..]| teams.name(TeamHandle(handle as usize)),
            },
        }
    }

    /// Returns the group of an active set.
    pub(crate) fn of_active_set(triplet: [c_int; 3]) -> CheckedGroup {
        CheckedGroup {
            words: triplet.map(|number| number as u64),
            name: |_, words| Name::ActiveSet(words.map(|word| word as c_int)).to_string(),
        }
    }
}
