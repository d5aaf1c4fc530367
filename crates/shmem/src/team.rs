//! Teams (OpenSHMEM 1.6, §9.4): groups of PEs that number themselves from 0.

use crate::panics::mistake;
use crate::threads::{Local, Threads, UsedByThreads};
use rushmem_runtime::team;
use rushmem_runtime::{Call, TeamHandle, collectives};
use std::fmt;
use std::marker::PhantomData;

/// A group of PEs, of which this PE is a member (`shmem_team_t`, §9.4). Dropping a team that was
/// split off destroys it, which is collective over its members (`shmem_team_destroy`, §9.4.8).
#[doc(alias = "shmem_team_t")]
#[doc(alias = "shmem_team_destroy")]
pub struct Team<'s, C: Threads = Local> {
    handle: TeamHandle,
    /// True if the team was split off, so that its drop destroys it.
    is_owned: bool,
    shmem: PhantomData<&'s ()>,
    threads: PhantomData<UsedByThreads<C>>,
}

impl<'s, C: Threads> Team<'s, C> {
    pub(crate) fn borrowed(handle: TeamHandle) -> Team<'s, C> {
        Team {
            handle,
            is_owned: false,
            shmem: PhantomData,
            threads: PhantomData,
        }
    }

    pub(crate) fn split_off(handle: TeamHandle) -> Team<'s, C> {
        Team {
            handle,
            is_owned: true,
            shmem: PhantomData,
            threads: PhantomData,
        }
    }

    pub(crate) fn handle(&self) -> TeamHandle {
        self.handle
    }

    /// Returns the number of this PE in the team (`shmem_team_my_pe`, §9.4.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let node = shmem.node();
    /// assert!(node.my_pe() < node.n_pes());
    /// ```
    #[doc(alias = "shmem_team_my_pe")]
    pub fn my_pe(&self) -> usize {
        team::my_pe(call!("Team::my_pe"), self.handle) as usize
    }

    /// Returns the number of PEs in the team (`shmem_team_n_pes`, §9.4.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// assert_eq!(shmem.world().n_pes(), shmem.n_pes());
    /// ```
    #[doc(alias = "shmem_team_n_pes")]
    pub fn n_pes(&self) -> usize {
        team::n_pes(call!("Team::n_pes"), self.handle) as usize
    }

    /// Returns the number of a root for the runtime. Panics if the team has no such member.
    #[track_caller]
    pub(crate) fn root(&self, call: Call, root: usize) -> u32 {
        let n_pes = self.n_pes();
        if root >= n_pes {
            let last = n_pes - 1;
            mistake!(
                call,
                "argument root is {root}, but the members are numbered 0 to {last}"
            );
        }
        root as u32
    }

    /// Returns the number that PE `pe` of this team has in `other`, if it is a member of both
    /// (`shmem_team_translate_pe`, §9.4.5).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (world, node) = (shmem.world(), shmem.node());
    /// assert_eq!(world.translate(shmem.my_pe(), &node), Some(node.my_pe()));
    /// ```
    #[track_caller]
    #[doc(alias = "shmem_team_translate_pe")]
    pub fn translate<D: Threads>(&self, pe: usize, other: &Team<'_, D>) -> Option<usize> {
        let pe = i32::try_from(pe).ok()?;
        let number = team::translate_pe(call!("Team::translate"), self.handle, pe, other.handle);
        usize::try_from(number).ok()
    }

    /// Returns the configuration that was requested when the team was split off
    /// (`shmem_team_get_config`, §9.4.4).
    ///
    /// ```
    /// # use shmem::TeamOptions;
    /// # let shmem = shmem::init();
    /// let (row, _column) = shmem.world().split_2d(2)?;
    /// assert_eq!(row.config(), TeamOptions::new());
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    #[doc(alias = "shmem_team_get_config")]
    pub fn config(&self) -> TeamOptions {
        let Some(config) = team::config(call!("Team::config"), self.handle) else {
            return TeamOptions::new();
        };
        TeamOptions {
            // A program in C may have requested a negative number, which is no hint.
            contexts: config.num_contexts.max(0) as usize,
        }
    }

    /// Waits until all members have called this. Does not complete operations of this PE
    /// (`shmem_team_sync`, §9.10.3).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(0);
    /// mine.store(17);
    /// let node = shmem.node();
    /// node.sync();                            // every PE of the node has stored
    /// assert_eq!(mine.on(node.next()).read(), 17);
    /// ```
    #[doc(alias = "shmem_team_sync")]
    pub fn sync(&self) {
        collectives::sync(call!("Team::sync"), self.handle().into());
    }

    /// Waits until all members have called this, and completes the operations that they have issued
    /// on their default contexts (`shmem_barrier`, §9.10.2, of a team).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.boxed(0);
    /// let node = shmem.node();
    /// inbox.on(node.next()).write(17);
    /// node.barrier();
    /// assert_eq!(inbox.load(), 17);
    /// ```
    #[doc(alias = "shmem_barrier")]
    pub fn barrier(&self) {
        collectives::barrier(call!("Team::barrier"), self.handle().into());
    }
}

/// The expected use of a team (`shmem_team_config_t`, §9.4.3). It is a hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "`split_strided_with` and `split_2d_with` split a team by options"]
pub struct TeamOptions {
    pub(crate) contexts: usize,
}

impl TeamOptions {
    /// Makes the options of a team about whose use nothing is known.
    ///
    /// ```
    /// # use shmem::TeamOptions;
    /// # let shmem = shmem::init();
    /// let team = shmem.world().split_strided_with(TeamOptions::new(), 0, 1, shmem.n_pes())?;
    /// assert!(team.is_some());
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    pub fn new() -> TeamOptions {
        TeamOptions::default()
    }

    /// Says that a PE will have this number of contexts on the team at the same time
    /// (`num_contexts`, §9.4.3).
    ///
    /// ```
    /// # use shmem::TeamOptions;
    /// # let shmem = shmem::init();
    /// let options = TeamOptions::new().contexts(4);
    /// let team = shmem.world().split_strided_with(options, 0, 1, shmem.n_pes())?;
    /// assert_eq!(team.map(|team| team.config()), Some(options));
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    #[doc(alias = "num_contexts")]
    pub fn contexts(mut self, number: usize) -> TeamOptions {
        self.contexts = number;
        self
    }
}

impl<C: Threads> Drop for Team<'_, C> {
    fn drop(&mut self) {
        if self.is_owned {
            team::destroy(call!("Team::drop"), self.handle);
        }
    }
}

impl<C: Threads> fmt::Debug for Team<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("my_pe", &self.my_pe())
            .field("n_pes", &self.n_pes())
            .finish()
    }
}
