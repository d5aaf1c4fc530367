//! Teams (OpenSHMEM 1.6, §9.4): groups of PEs that number themselves from 0.

use crate::context::{Context, Created, Kind, Owned};
use crate::thread_level::{Single, ThreadLevel};
use rushmem_runtime::team::{self, Config};
use rushmem_runtime::{Call, TeamHandle, collectives, ctx};
use std::fmt;
use std::marker::PhantomData;

/// A group of PEs, of which this PE is one. Dropping a team that was split off destroys it, which all members do.
pub struct Team<'s, L: ThreadLevel = Single> {
    handle: TeamHandle,
    is_predefined: bool,
    shmem: PhantomData<(&'s (), L::Threads)>,
}

impl<'s, L: ThreadLevel> Team<'s, L> {
    pub(crate) fn predefined(handle: TeamHandle) -> Team<'s, L> {
        Team { handle, is_predefined: true, shmem: PhantomData }
    }

    pub(crate) fn split_off(handle: TeamHandle) -> Team<'s, L> {
        Team { handle, is_predefined: false, shmem: PhantomData }
    }

    pub(crate) fn handle(&self) -> TeamHandle {
        self.handle
    }

    /// The number of this PE in the team (`shmem_team_my_pe`, §9.4.1).
    pub fn my_pe(&self) -> u32 {
        team::my_pe(Call("Team::my_pe"), self.handle) as u32
    }

    /// The number of PEs in the team (`shmem_team_n_pes`, §9.4.2).
    pub fn n_pes(&self) -> u32 {
        team::n_pes(Call("Team::n_pes"), self.handle) as u32
    }

    /// The number that PE `pe` of this team has in `other`, if it is a member of both (`shmem_team_translate_pe`, §9.4.5).
    pub fn translate_pe(&self, pe: u32, other: &Team<'_, L>) -> Option<u32> {
        let pe = i32::try_from(pe).ok()?;
        let number = team::translate_pe(Call("Team::translate_pe"), self.handle, pe, other.handle);
        u32::try_from(number).ok()
    }

    /// Split off the members `start`, `start + stride`, ... , `size` of them (`shmem_team_split_strided`, §9.4.6).
    /// Collective over this team; `None` on PEs that are not among them.
    pub fn split_strided(&self, start: u32, stride: i32, size: u32) -> Option<Team<'s, L>> {
        let (start, size) = (start as i32, size as i32);
        let call = Call("Team::split_strided");
        let made = team::split_strided(call, self.handle, start, stride, size, Config::default());
        made.filter(|made| *made != TeamHandle::INVALID).map(Team::split_off)
    }

    /// Wait for all members, and complete nothing (`shmem_team_sync`, §9.10.3).
    pub fn sync(&self) {
        collectives::sync(Call("Team::sync"), self.handle().into());
    }

    /// Create a context whose PEs are those of the team (`shmem_team_create_ctx`, §9.5.2). Not collective. The job ends with
    /// a message if there are too many, which are over 65,000.
    pub fn context<K: Kind + Created>(&self) -> Context<'_, K, L> {
        let call = Call("Team::context");
        match ctx::create(call, self.handle, K::OPTIONS) {
            Some(handle) => Context::new(Owned(handle)),
            None => call
                .fail(format_args!("there are too many contexts; drop those that are not in use")),
        }
    }
}

impl<L: ThreadLevel> Drop for Team<'_, L> {
    fn drop(&mut self) {
        if !self.is_predefined {
            team::destroy(Call("Team::drop"), self.handle);
        }
    }
}

impl<L: ThreadLevel> fmt::Debug for Team<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("my_pe", &self.my_pe()).field("n_pes", &self.n_pes()).finish()
    }
}
