//! Which collective a PE has entered, for messages and for its status, and how many.

use crate::call::Call;
use crate::job::digest::digest;
use crate::observers::{self, Action, Event, FollowedMembers, Membership, ObservedCall};
use crate::sync::team_signals::OngoingCollective;
use crate::teams::team::{Team, teams};
use rushmem_explain::status::{Finalizing, MAX_LISTED, Subject};
use rushmem_transport::Pe;

/// A collective that a PE has entered.
#[derive(Clone, Copy)]
pub(crate) struct CollectiveCall<'a> {
    pub(crate) call: Call,
    pub(crate) team: &'a Team,
    /// Which one of this PE on the team it is, counted from 1.
    pub(crate) nth: u64,
    /// It does not block: a thread of the library carries it out beside the program's collectives.
    pub(crate) in_request: bool,
}

impl CollectiveCall<'_> {
    /// Returns a number of the members that those of other teams do not have: teams of one split
    /// have the same [`number`](Team::number).
    fn number_of_members(&self) -> u64 {
        digest(&[self.team.number(), u64::from(self.team.members().world_pe(0).0)])
    }

    /// Begins it for the observers: `action` makes an event of its membership.
    pub(crate) fn observe(&self, action: impl FnOnce(Membership) -> Action) -> ObservedCall {
        observers::call(|| {
            let (me, n) = (self.team.me().0, self.team.members().n);
            let (team, nth) = (self.number_of_members(), self.nth);
            let follows = (FollowedMembers::All, 0);
            Event::new(self.call, action(Membership { team, nth, n, me, follows }))
        })
    }
}

impl OngoingCollective for CollectiveCall<'_> {
    fn call(&self) -> Call {
        self.call
    }

    fn is_in_request(&self) -> bool {
        self.in_request
    }

    fn subject(&self, awaited: Option<Pe>) -> Subject {
        self.team.subject(self.nth, awaited)
    }
}

/// Returns what this PE says in finalize: how many collectives it has entered.
pub(crate) fn entered() -> Finalizing {
    let mut entered = Vec::new();
    // A team that another thread uses is left out.
    for team in &teams().all() {
        if let Ok(signals) = team.signals.try_lock() {
            entered.push((team.number(), signals.entered()));
        }
    }
    entered.truncate(MAX_LISTED);
    Finalizing { entered }
}
