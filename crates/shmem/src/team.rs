//! Teams (OpenSHMEM 1.6, §9.4): groups of PEs that number themselves from 0.

use crate::context::{Context, ContextKind, ContextOptions, CreatedKind, Owned};
use crate::panics::mistake;
use crate::thread_level::{Single, ThreadLevel, Threads};
use rushmem_runtime::team;
use rushmem_runtime::{Call, Context as _, TeamHandle, collectives, ctx};
use std::fmt;
use std::marker::PhantomData;

/// A group of PEs, of which this PE is a member (`shmem_team_t`, §9.4). Dropping a team that was
/// split off destroys it, which is collective over its members (`shmem_team_destroy`, §9.4.8).
pub struct Team<'s, L: ThreadLevel = Single> {
    handle: TeamHandle,
    /// True if the team was split off, so that its drop destroys it.
    is_owned: bool,
    shmem: PhantomData<(&'s (), Threads<L>)>,
}

impl<'s, L: ThreadLevel> Team<'s, L> {
    pub(crate) fn borrowed(handle: TeamHandle) -> Team<'s, L> {
        Team {
            handle,
            is_owned: false,
            shmem: PhantomData,
        }
    }

    pub(crate) fn split_off(handle: TeamHandle) -> Team<'s, L> {
        Team {
            handle,
            is_owned: true,
            shmem: PhantomData,
        }
    }

    pub(crate) fn handle(&self) -> TeamHandle {
        self.handle
    }

    /// Returns the number of this PE in the team (`shmem_team_my_pe`, §9.4.1).
    #[doc(alias = "shmem_team_my_pe")]
    pub fn my_pe(&self) -> usize {
        team::my_pe(call!("Team::my_pe"), self.handle) as usize
    }

    /// Returns the number of PEs in the team (`shmem_team_n_pes`, §9.4.2).
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
    #[track_caller]
    #[doc(alias = "shmem_team_translate_pe")]
    pub fn translate(&self, pe: usize, other: &Team<'_, L>) -> Option<usize> {
        let pe = i32::try_from(pe).ok()?;
        let number = team::translate_pe(call!("Team::translate"), self.handle, pe, other.handle);
        usize::try_from(number).ok()
    }

    /// Returns the configuration that was requested when the team was split off
    /// (`shmem_team_get_config`, §9.4.4).
    #[doc(alias = "shmem_team_get_config")]
    pub fn config(&self) -> TeamOptions {
        let config = team::config(call!("Team::config"), self.handle);
        TeamOptions {
            contexts: config.map_or(0, |config| config.num_contexts.max(0) as usize),
        }
    }

    /// Waits until all members have called this. Does not complete operations of this PE
    /// (`shmem_team_sync`, §9.10.3).
    #[doc(alias = "shmem_team_sync")]
    pub fn sync(&self) {
        collectives::sync(call!("Team::sync"), self.handle().into());
    }

    /// Waits until all members have called this, and completes the operations that they have issued
    /// on their default contexts (`shmem_barrier`, §9.10.2, of a team).
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let inbox = shmem.boxed(0);
    /// let node = shmem.node();
    /// let next = node.translate((node.my_pe() + 1) % node.n_pes(), &shmem.world());
    /// shmem.p(&inbox, 17, next.expect("all are in the world"));
    /// node.barrier();
    /// assert_eq!(inbox.load(), 17);
    /// ```
    #[doc(alias = "shmem_barrier")]
    pub fn barrier(&self) {
        collectives::barrier(call!("Team::barrier"), self.handle().into());
    }

    /// Creates a context whose PEs are those of the team (`shmem_team_create_ctx`, §9.5.2). Not
    /// collective. Panics if there are too many.
    #[doc(alias = "shmem_team_create_ctx")]
    #[track_caller]
    pub fn context<K: CreatedKind>(&self) -> Context<'_, K, L> {
        self.context_with(ContextOptions::default())
    }

    /// Works as [`context`](Self::context), for the use that `options` describe (§9.5.1).
    #[track_caller]
    pub fn context_with<K: CreatedKind>(&self, options: ContextOptions) -> Context<'_, K, L> {
        match self.try_context_with(options) {
            Ok(context) => context,
            Err(error) => mistake!(call!("Team::context"), "{error}"),
        }
    }

    /// Works as [`context`](Self::context), but returns an error if there are too many contexts.
    ///
    /// # Errors
    /// If this PE has 65,536 contexts already, besides the default one.
    pub fn try_context<K: CreatedKind>(&self) -> Result<Context<'_, K, L>, TooManyContexts> {
        self.try_context_with(ContextOptions::default())
    }

    /// Works as [`context_with`](Self::context_with), but returns an error if there are too many
    /// contexts.
    ///
    /// # Errors
    /// As for [`try_context`](Self::try_context).
    pub fn try_context_with<K: CreatedKind>(
        &self,
        options: ContextOptions,
    ) -> Result<Context<'_, K, L>, TooManyContexts> {
        let made = ctx::create(call!("Team::context"), self.handle, options.flags::<K>());
        made.map(|handle| Context::new(Owned(handle)))
            .ok_or(TooManyContexts(()))
    }
}

/// The expected use of a team (`shmem_team_config_t`, §9.4.3). It is a hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeamOptions {
    pub(crate) contexts: usize,
}

impl TeamOptions {
    /// Makes the options of a team about whose use nothing is known.
    pub fn new() -> TeamOptions {
        TeamOptions::default()
    }

    /// A PE will have this number of contexts on the team at the same time (`num_contexts`).
    #[doc(alias = "num_contexts")]
    pub fn contexts(mut self, number: usize) -> TeamOptions {
        self.contexts = number;
        self
    }
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Returns the team on which the context was created, in which its operations number PEs
    /// (`shmem_ctx_get_team`, §9.5.4).
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let node = shmem.node();
    /// let context = node.context::<shmem::Private>();
    /// assert_eq!(context.team().n_pes(), node.n_pes());
    /// ```
    #[doc(alias = "shmem_ctx_get_team")]
    pub fn team(&self) -> Team<'_, L> {
        let call = call!("Context::team");
        let team = ctx::team_of(call, self.handle().handle());
        Team::borrowed(team.unwrap_or_else(|| unreachable!("a context that exists has a team")))
    }
}

/// The error of a PE that already has as many contexts as it can have (§9.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyContexts(());

impl fmt::Display for TooManyContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are too many contexts; drop those that are not in use")
    }
}

impl std::error::Error for TooManyContexts {}

impl<L: ThreadLevel> Drop for Team<'_, L> {
    fn drop(&mut self) {
        if self.is_owned {
            team::destroy(call!("Team::drop"), self.handle);
        }
    }
}

impl<L: ThreadLevel> fmt::Debug for Team<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("my_pe", &self.my_pe())
            .field("n_pes", &self.n_pes())
            .finish()
    }
}
