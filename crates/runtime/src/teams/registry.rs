//! The registry of the teams of this PE, by handle. `api::team`, `api::cray` and `active_set`
//! create and destroy teams.

use crate::coll::same_collective::CheckedGroup;
use crate::teams::agreement::{FINALIZE, PREDEFINED, Slot};
use crate::teams::team::{Name, Split, Team, TeamConfig};
use core::ffi::c_int;
use core::ops::Deref;
use rushmem_bootstrap::NodeMap;
use rushmem_communication::net::flags;
use rushmem_explain::status::{Finalizing, MAX_LISTED};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::members::Members;
use rushmem_pe::job::{self, Job};
use rushmem_system::lock::{read, write};
use rushmem_transport::Pe;
use std::sync::{Arc, OnceLock, RwLock};

/// A team that a call uses, which stays valid until this is dropped.
#[derive(Debug)]
pub(crate) enum HeldTeam {
    /// The world, which lives as long as the process.
    Lasting(&'static Team),
    /// A team of the registry. It may be destroyed while it is held.
    Counted(Arc<Team>),
    /// The team of an active set that the members do not keep: it ends when this is dropped.
    OfCall(Box<Team>),
}

impl Deref for HeldTeam {
    type Target = Team;

    #[inline]
    fn deref(&self) -> &Team {
        match self {
            HeldTeam::Lasting(team) => team,
            HeldTeam::Counted(team) => team,
            HeldTeam::OfCall(team) => team,
        }
    }
}

impl Drop for HeldTeam {
    fn drop(&mut self) {
        if let HeldTeam::OfCall(team) = self {
            team.retire();
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

static TEAMS: OnceLock<Teams> = OnceLock::new();

/// Returns the teams of this PE, which exist from the first init on.
pub(crate) fn teams() -> &'static Teams {
    TEAMS
        .get()
        .expect("the first init sets them before it communicates")
}

/// Sets the teams of this PE, in the first init.
pub(crate) fn set(teams: Teams) {
    // This cannot fail: only the first init joins the job.
    let _ = TEAMS.set(teams);
}

impl Teams {
    /// Creates the predefined teams (the world, the PEs that share memory with this one, and the
    /// PEs of its machine) and the team of finalize.
    pub(crate) fn new(
        me: Pe,
        nodes: &NodeMap,
        predefined: [Members; PREDEFINED as usize],
    ) -> Teams {
        let create = |name, slot, members| {
            let config = TeamConfig::default();
            Team::new(Name::Fixed(name), slot, 0, members, me, nodes, config)
        };

        let names = ["SHMEM_TEAM_WORLD", "SHMEM_TEAM_SHARED", "SHMEMX_TEAM_NODE"];
        let n_sets = flags::area().areas().receive_buffer_sets();
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
        let finalize = create("finalize", slot, Members::world(nodes.n_pes()));

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
        job: &Job,
        split: Split,
        slot: Slot,
        generation: u64,
        members: Members,
        config: TeamConfig,
    ) -> TeamHandle {
        let name = split.name(&members);
        let team = Team::new(name, slot, generation, members, job.me, &job.nodes, config);
        self.insert(team)
    }

    pub(crate) fn insert(&self, team: Team) -> TeamHandle {
        let handle = team.handle;
        let slot = team.slot.number as usize;
        team.log_creation();

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
    pub(crate) fn clear(&self) {
        let mut teams = write(&self.by_slot);
        for team in teams.drain(PREDEFINED as usize..).flatten() {
            team.retire();
        }
    }
}

/// Returns the group of a team or active set, for the comparison of collectives.
pub(crate) fn checked_group(team: &Team) -> CheckedGroup {
    match team.name {
        Name::ActiveSet(triplet) => checked_active_set(triplet),
        _ => CheckedGroup {
            words: [team.handle.0 as u64, 0, 0],
            name: |[handle, ..]| teams().name(TeamHandle(handle as usize)),
        },
    }
}

/// Returns the group of an active set, for the comparison of collectives.
pub(crate) fn checked_active_set(triplet: [c_int; 3]) -> CheckedGroup {
    CheckedGroup {
        words: triplet.map(|number| number as u64),
        name: |words| Name::ActiveSet(words.map(|word| word as c_int)).to_string(),
    }
}

/// Returns the team of a handle. Ends the job with an error if there is none; `argument` is the
/// name of the handle in the call.
pub(crate) fn find(call: Call, argument: &str, handle: TeamHandle) -> HeldTeam {
    job::require(call);
    if handle == TeamHandle::WORLD {
        return HeldTeam::Lasting(teams().world());
    }
    match teams().get(handle) {
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

/// Returns the number of collectives that this PE has entered on each team, for its status in
/// finalize. Has at most [`MAX_LISTED`] teams.
pub(crate) fn entered_collectives() -> Finalizing {
    let mut entered = Vec::new();
    for team in &teams().all() {
        // A team whose signals another thread holds is left out.
        if let Ok(signals) = team.signals.try_lock() {
            entered.push((team.number(), signals.entered()));
        }
    }
    entered.truncate(MAX_LISTED);
    Finalizing { entered }
}
