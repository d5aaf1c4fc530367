//! The registry of the teams of this PE, by handle. `api::team`, `api::cray_splits` and
//! `active_set` create and destroy teams.

use crate::teams::agreement::{FINALIZE, PREDEFINED, Slot, Slots};
use crate::teams::team::{Name, Split, Team, TeamConfig};
use core::ops::Deref;
use rushmem_communication::links::Links;
use rushmem_explain::status::{Finalizing, MAX_LISTED};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::members::Members;
use rushmem_system::lock::{read, write};
use std::sync::{Arc, RwLock};

/// A team that a call uses, which stays valid until this is dropped.
#[derive(Debug)]
pub(crate) enum HeldTeam {
    /// The world, which lives as long as the process.
    Lasting(&'static Team),
    /// A team of the registry. It may be destroyed while it is held.
    Counted(Arc<Team>),
    /// The team of an active set that the members do not keep: it ends when this is dropped, and
    /// releases its slot.
    OfCall(Box<(Team, &'static Slots)>),
}

impl Deref for HeldTeam {
    type Target = Team;

    #[inline]
    fn deref(&self) -> &Team {
        match self {
            HeldTeam::Lasting(team) => team,
            HeldTeam::Counted(team) => team,
            HeldTeam::OfCall(of_call) => &of_call.0,
        }
    }
}

impl Drop for HeldTeam {
    fn drop(&mut self) {
        if let HeldTeam::OfCall(of_call) = self {
            let (team, slots) = &**of_call;
            team.retire(slots);
        }
    }
}

/// The teams of this PE, by the slot in their handles. The team of finalize, which has no handle
/// for the program, is apart.
pub(crate) struct Teams {
    world: Arc<Team>,
    finalize: Team,
    by_slot: RwLock<Vec<Option<Arc<Team>>>>,
}

impl Teams {
    /// Creates the predefined teams (the world, the PEs that share memory with this one, and the
    /// PEs of its machine) and the team of finalize.
    pub(crate) fn new(links: &'static Links, predefined: [Members; PREDEFINED as usize]) -> Teams {
        let create = |name, slot, members| {
            let config = TeamConfig::default();
            Team::new(links, Name::Fixed(name), slot, 0, members, config)
        };

        let names = ["SHMEM_TEAM_WORLD", "SHMEM_TEAM_SHARED", "SHMEMX_TEAM_NODE"];
        let n_sets = links.area.areas().receive_buffer_sets();
        let mut by_slot = Vec::new();
        for (name, members) in names.into_iter().zip(predefined) {
            // The constant handles of these teams name the slots 0, 1 and 2. The set of receive
            // buffers has the same number as the slot, if there is one.
            let number = by_slot.len();
            let slot = Slot {
                number: number as u16,
                receive_buffers: (number < n_sets).then_some(number as u8),
            };
            by_slot.push(Some(Arc::new(create(name, slot, members))));
        }
        let world = by_slot[0].clone().expect("the first is the world");

        // A team of its own, so that no other collective of a PE matches its finalize.
        let slot = Slot {
            number: FINALIZE,
            receive_buffers: None,
        };
        let finalize = create("finalize", slot, Members::world(links.job.n_pes));

        Teams {
            world,
            finalize,
            by_slot: RwLock::new(by_slot),
        }
    }

    pub(crate) fn world(&self) -> &Team {
        &self.world
    }

    /// Returns the team for the barrier of finalize.
    pub(crate) fn finalize(&self) -> &Team {
        &self.finalize
    }

    /// Returns all teams but that of finalize, also those that are kept for active sets.
    pub(crate) fn all(&self) -> Vec<Arc<Team>> {
        let teams = read(&self.by_slot);
        teams.iter().flatten().cloned().collect()
    }

    pub(crate) fn get(&self, handle: TeamHandle) -> Option<Arc<Team>> {
        let teams = read(&self.by_slot);
        let team = teams.get(handle.slot()?)?.as_ref()?;
        if team.handle != handle {
            // A later team in the slot of a destroyed one.
            return None;
        }
        Some(team.clone())
    }

    /// Returns the team of a handle. Ends the job with an error if there is none; `argument` is the
    /// name of the handle in the call.
    #[inline(always)]
    pub(crate) fn find(&'static self, call: Call, argument: &str, handle: TeamHandle) -> HeldTeam {
        if handle == TeamHandle::WORLD {
            HeldTeam::Lasting(self.world())
        } else {
            self.find_registered(call, argument, handle)
        }
    }

    #[inline(never)]
    fn find_registered(&self, call: Call, argument: &str, handle: TeamHandle) -> HeldTeam {
        match self.get(handle) {
            Some(team) => HeldTeam::Counted(team),
            None if handle == TeamHandle::INVALID => {
                fail!(
                    call,
                    "argument {argument} is SHMEM_TEAM_INVALID; compare the handle before it is used"
                )
            }
            None => fail!(
                call,
                "argument {argument} is not a team of this PE: was it destroyed, or never initialized?"
            ),
        }
    }

    /// Returns the name of a team for messages, or a clause that says that the team was destroyed.
    pub(crate) fn name(&self, handle: TeamHandle) -> String {
        match self.get(handle) {
            Some(team) => team.name.to_string(),
            None => "that was destroyed".to_owned(),
        }
    }

    /// Adds the team of these members that a split makes, and returns its handle.
    pub(crate) fn add_split_team(
        &self,
        links: &'static Links,
        split: Split,
        slot: Slot,
        generation: u64,
        members: Members,
        config: TeamConfig,
    ) -> TeamHandle {
        let name = split.name(&members);
        let team = Team::new(links, name, slot, generation, members, config);
        self.insert(&links.job, team)
    }

    pub(crate) fn insert(&self, job: &Job, team: Team) -> TeamHandle {
        let handle = team.handle;
        let slot = team.slot.number as usize;
        team.log_creation(job);

        let mut teams = write(&self.by_slot);
        if teams.len() <= slot {
            teams.resize_with(slot + 1, || None);
        }
        teams[slot] = Some(Arc::new(team));
        handle
    }

    pub(crate) fn remove(&self, handle: TeamHandle) {
        let slot = handle.slot().expect("the handle of a team");
        rushmem_system::log::debug!(team = handle.0, "destroyed a team");
        write(&self.by_slot)[slot] = None;
    }

    /// Removes and retires all teams but the predefined ones, also those of active sets.
    pub(crate) fn clear(&self, slots: &Slots) {
        let mut teams = write(&self.by_slot);
        for team in teams.drain(PREDEFINED as usize..).flatten() {
            team.retire(slots);
        }
    }
}

/// Returns the number of collectives that this PE has entered on each team, for its status in
/// finalize. Has at most [`MAX_LISTED`] teams.
pub(crate) fn entered_collectives(teams: &Teams) -> Finalizing {
    let mut entered = Vec::new();
    for team in &teams.all() {
        // A team whose signals another thread holds is left out.
        if let Ok(signals) = team.signals.try_lock() {
            entered.push((team.number(), signals.entered()));
        }
    }
    entered.truncate(MAX_LISTED);
    Finalizing { entered }
}
