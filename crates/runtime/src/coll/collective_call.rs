//! Which collective a PE has entered, for messages and for its status, and how many.

use crate::base::call::Call;
use crate::base::digest::digest;
use crate::base::members::Members;
use crate::observers::{self, Event, FollowedMembers, Membership, ObservedCall, What};
use crate::sync::channel::InCollective;
use crate::teams::active_set::{self, ActiveSet};
use crate::teams::team::{Team, teams};
use core::ffi::c_int;
use rushmem_explain::status::{Collective, Finalizing, MAX_LISTED, Subject};
use rushmem_transport::Pe;

/// A collective that a PE has entered.
pub(crate) struct CollectiveCall<'a> {
    pub(crate) call: Call,
    /// The team whose channels it uses.
    pub(crate) team: &'a Team,
    pub(crate) set: Option<&'a ActiveSet>,
    /// Which one of this PE on the team or active set it is, counted from 1.
    pub(crate) nth: u64,
}

impl<'a> CollectiveCall<'a> {
    #[inline]
    pub(crate) fn members(&self) -> &'a Members {
        self.set.map_or_else(|| self.team.members(), ActiveSet::members)
    }

    /// A number of the team or active set that others among the same PEs do not have.
    pub(crate) fn number(&self) -> u64 {
        number(self.team, self.set.map_or([0; 3], ActiveSet::triplet))
    }

    /// A number of the members that those of other teams and sets do not have: teams of one split
    /// have the same [`number`](CollectiveCall::number).
    pub(crate) fn number_of_members(&self) -> u64 {
        digest(&[self.number(), u64::from(self.members().world_pe(0).0)])
    }

    /// Begins it for those that observe: `what` makes an event of its membership.
    pub(crate) fn observe(&self, what: impl FnOnce(Membership) -> What) -> ObservedCall {
        observers::call(|| {
            let me = self.set.map_or_else(|| self.team.me(), ActiveSet::me).0;
            let (team, nth, n) = (self.number_of_members(), self.nth, self.members().n);
            let follows = (FollowedMembers::All, 0);
            Event::new(self.call, what(Membership { team, nth, n, me, follows }))
        })
    }

    fn name(&self) -> String {
        match self.set.map(ActiveSet::triplet) {
            None => self.team.name().to_string(),
            Some([start, log_stride, size]) => format!(
                "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size}"
            ),
        }
    }
}

impl InCollective for CollectiveCall<'_> {
    fn call(&self) -> Call {
        self.call
    }

    fn subject(&self, awaited: Option<Pe>) -> Subject {
        if self.team.is_of_finalize() {
            return Subject::Exit;
        }
        Subject::Collective(Collective {
            team: self.name(),
            number: self.number(),
            members: self.members().for_status(),
            nth: self.nth,
            awaited: awaited.map(|pe| pe.0),
        })
    }
}

/// A number of a team, or of the active set `triplet` that uses its channels.
fn number(team: &Team, triplet: [c_int; 3]) -> u64 {
    let triplet = triplet.map(|number| number as u64);
    digest(&[&triplet[..], &[team.handle().0 as u64]].concat())
}

/// Returns what this PE says in finalize: how many collectives it has entered. The active sets that
/// have teams of their own are left out.
pub(crate) fn entered() -> Finalizing {
    let mut entered = Vec::new();
    let all_teams = teams().all();
    // A team that another thread uses is left out.
    let mut is_whole = true;
    for team in &all_teams {
        match team.channels.try_lock() {
            Ok(channels) => entered.push((number(team, [0; 3]), channels.entered())),
            Err(_) => is_whole = false,
        }
    }
    if let Some(team) = active_set::used() {
        match team.channels.try_lock() {
            Ok(channels) => {
                let sets = channels.entered_on_sets().into_iter();
                entered.extend(sets.map(|(set, nth)| (number(team, set), nth)));
            }
            Err(_) => is_whole = false,
        }
    }
    is_whole &= entered.len() <= MAX_LISTED;
    entered.truncate(MAX_LISTED);
    Finalizing { entered, is_whole }
}
