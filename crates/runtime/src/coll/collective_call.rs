//! Which collective a PE has entered, for messages and for its status.

use crate::base::call::Call;
use crate::base::digest::digest;
use crate::base::members::Members;
use crate::base::races::ObservedCollective;
use crate::sync::channel::InCollective;
use crate::teams::active_set::ActiveSet;
use crate::teams::team::Team;
use rushmem_explain::status::{Collective, Subject};
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
        let triplet = self.set.map_or([0; 3], ActiveSet::triplet).map(|number| number as u64);
        digest(&[&triplet[..], &[self.team.handle().0 as u64]].concat())
    }

    /// A number of the members that those of other teams and sets do not have: teams of one split
    /// have the same [`number`](CollectiveCall::number).
    pub(crate) fn number_of_members(&self) -> u64 {
        digest(&[self.number(), u64::from(self.members().world_pe(0).0)])
    }

    /// Says to the race detector, if there is one, that this PE enters it as its member `me`.
    pub(crate) fn observe(&self, me: u32) -> Option<ObservedCollective> {
        let (members, n) = (self.number_of_members(), self.members().n);
        ObservedCollective::enter(self.call, members, self.nth, n, me)
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
        Subject::Collective(Collective {
            team: self.name(),
            number: self.number(),
            members: self.members().for_status(),
            nth: self.nth,
            awaited: awaited.map(|pe| pe.0),
        })
    }
}
