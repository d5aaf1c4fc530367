//! Teams (OpenSHMEM 1.6, §9.4): who is in them, what they own, how they come and go.
#![forbid(unsafe_code)]

mod active_set;
mod cray;
mod members;
mod split;

pub use cray::{destroy_member, split_colour, split_grid, split_strided_by_members};
pub(crate) use members::Members;
pub use split::{split_2d, split_strided};

pub(crate) use active_set::ActiveSet;

use crate::call::{Call, fail};
use crate::channel::Channels;
use crate::job::Job;
use crate::{coll, ctx, job};
use core::ffi::c_int;
use rushmem_transport::{Pe, TeamPe};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// `shmem_team_t` as it crosses the C boundary: slot and generation, so that a handle that outlived
/// its team is known for what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(pub usize);

impl Handle {
    /// `SHMEM_TEAM_INVALID`
    pub const INVALID: Handle = Handle(0);
    /// `SHMEM_TEAM_WORLD`
    pub const WORLD: Handle = Handle(1);
    /// `SHMEM_TEAM_SHARED`
    pub const SHARED: Handle = Handle(2);
    /// `SHMEM_TEAM_NODE` of the extensions.
    pub const NODE: Handle = Handle(3);

    const SLOT_BITS: u32 = 11;

    fn new(slot: u16, generation: u64) -> Handle {
        Handle((generation as usize) << Self::SLOT_BITS | (slot as usize + 1))
    }

    fn slot(self) -> Option<usize> {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)).checked_sub(1)
    }
}

/// `shmem_team_config_t` (§9.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Contexts that the team's users expect to create; a hint.
    pub num_contexts: c_int,
}

/// A team as one of its members has it.
#[derive(Debug)]
pub(crate) struct Team {
    handle: Handle,
    slot: u16,
    members: Members,
    me: TeamPe,
    config: Config,
    /// Held during a collective; the standard allows one at a time on a team.
    pub(crate) channels: Mutex<Channels>,
}

impl Team {
    pub(crate) fn new(
        slot: u16,
        generation: u64,
        members: Members,
        me: Pe,
        config: Config,
    ) -> Team {
        let me = members.team_pe(me).expect("only members hold a team");
        let channels = Mutex::new(Channels::new(slot, generation, members.clone(), me));
        Team { handle: Handle::new(slot, generation), slot, members, me, config, channels }
    }

    /// The one whose channels all active sets share: its members are the world.
    fn of_active_sets(n_pes: u32, me: Pe) -> Team {
        let world = Members::world(n_pes);
        let mut team = Team::new(ACTIVE_SETS, 0, world.clone(), me, Config::default());
        team.channels = Mutex::new(Channels::of_active_sets(ACTIVE_SETS, world, team.me));
        team
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    pub(crate) fn me(&self) -> TeamPe {
        self.me
    }

    /// Give its slot back. A later team there takes no counter that this one left for its own.
    fn retire(&self, job: &Job) {
        job.slots().reached(job::lock(&self.channels).reached());
        job.slots().release(self.slot);
    }
}

/// The teams that this PE is a member of.
pub(crate) struct Teams {
    world: Arc<Team>,
    by_slot: RwLock<Vec<Option<Arc<Team>>>>,
    active_sets: Arc<Team>,
    /// Those of single active sets, which there are where threads of a PE may call at once.
    of_active_sets: Mutex<HashMap<active_set::Key, Arc<Team>>>,
}

/// Slots of the predefined teams: those of the lowest numbers.
pub(crate) const PREDEFINED: u32 = 3;
/// The slot of the channels that all active sets share.
const ACTIVE_SETS: u16 = PREDEFINED as u16;
/// Slots that no agreement gives.
pub(crate) const TAKEN: u32 = PREDEFINED + 1;

impl Teams {
    /// The predefined teams: the world, the PEs that share memory with this one, those of its machine.
    pub(crate) fn new(me: Pe, predefined: [Members; PREDEFINED as usize]) -> Teams {
        let predefined = predefined.into_iter().enumerate();
        let teams: Vec<Option<Arc<Team>>> = predefined
            .map(|(slot, members)| {
                Some(Arc::new(Team::new(slot as u16, 0, members, me, Config::default())))
            })
            .collect();
        let world = teams[0].clone().expect("the world was just made");
        Teams {
            active_sets: Arc::new(Team::of_active_sets(world.members.n, me)),
            world,
            by_slot: RwLock::new(teams),
            of_active_sets: Mutex::default(),
        }
    }

    pub(crate) fn world(&self) -> &Arc<Team> {
        &self.world
    }

    fn get(&self, handle: Handle) -> Option<Arc<Team>> {
        let teams = self.by_slot.read().unwrap_or_else(PoisonError::into_inner);
        let team = teams.get(handle.slot()?)?.as_ref()?;
        (team.handle == handle).then(|| team.clone())
    }

    fn insert(&self, team: Team) -> Handle {
        let handle = team.handle;
        let slot = team.slot as usize;
        let mut teams = self.by_slot.write().unwrap_or_else(PoisonError::into_inner);
        if teams.len() <= slot {
            teams.resize_with(slot + 1, || None);
        }
        teams[slot] = Some(Arc::new(team));
        handle
    }

    fn remove(&self, handle: Handle) {
        let slot = handle.slot().expect("the handle of a team");
        let mut teams = self.by_slot.write().unwrap_or_else(PoisonError::into_inner);
        teams[slot] = None;
    }

    /// Forget every team but the predefined ones, and give their slots back.
    pub(crate) fn clear(&self, job: &Job) {
        let mut teams = self.by_slot.write().unwrap_or_else(PoisonError::into_inner);
        let made = teams.drain(PREDEFINED as usize..).flatten();
        let kept = std::mem::take(&mut *job::lock(&self.of_active_sets));
        for team in made.chain(kept.into_values()) {
            team.retire(job);
        }
    }
}

/// The team of a handle; a message when there is none. `argument` is the handle's name in the call.
pub(crate) fn find(call: Call, argument: &str, handle: Handle) -> Arc<Team> {
    let job = job::require(call);
    if handle == Handle::WORLD {
        return job.teams.world().clone();
    }
    job.teams.get(handle).unwrap_or_else(|| match handle {
        Handle::INVALID => fail!(call, "argument {argument} is SHMEM_TEAM_INVALID"),
        _ => fail!(
            call,
            "argument {argument} is not a team of this PE: was it destroyed, or never initialised?"
        ),
    })
}

/// `shmem_team_my_pe` (§9.4.1): -1 for the invalid team.
pub fn my_pe(call: Call, team: Handle) -> c_int {
    job::require(call);
    if team == Handle::INVALID { -1 } else { find(call, "team", team).me.0 as c_int }
}

/// `shmem_team_n_pes` (§9.4.2): -1 for the invalid team.
pub fn n_pes(call: Call, team: Handle) -> c_int {
    job::require(call);
    if team == Handle::INVALID { -1 } else { find(call, "team", team).members.n as c_int }
}

/// `shmem_team_get_config` (§9.4.4): nothing for the invalid team.
pub fn config(call: Call, team: Handle) -> Option<Config> {
    job::require(call);
    (team != Handle::INVALID).then(|| find(call, "team", team).config)
}

/// `shmem_team_translate_pe` (§9.4.5): -1 when a team is invalid or the PE is not in both.
pub fn translate_pe(call: Call, src_team: Handle, src_pe: c_int, dest_team: Handle) -> c_int {
    job::require(call);
    if src_team == Handle::INVALID || dest_team == Handle::INVALID {
        return -1;
    }
    let source = find(call, "src_team", src_team);
    let dest = find(call, "dest_team", dest_team);
    if src_pe < 0 || src_pe as u32 >= source.members.n {
        return -1;
    }
    dest.members.team_pe(source.members.world_pe(src_pe as u32)).map_or(-1, |pe| pe.0 as c_int)
}

/// `shmem_team_destroy` (§9.4.8): collective; the invalid team is left alone. Every signal to this
/// member was taken by the collectives that it was meant for, so nobody writes to the slot any more.
pub fn destroy(call: Call, team: Handle) {
    let job = job::require(call);
    match team {
        Handle::INVALID => return,
        Handle::WORLD | Handle::SHARED | Handle::NODE => {
            fail!(call, "argument team is a predefined team, which cannot be destroyed")
        }
        _ => {}
    }
    let found = find(call, "team", team);
    coll::agree(call, &found, &[]);
    ctx::destroy_of(call, Some(team));
    job.teams.remove(team);
    found.retire(job);
}
