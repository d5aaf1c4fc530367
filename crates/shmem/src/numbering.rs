//! The numbers of PEs: the handle of the job, a team, a context and a scope make a [`Peer`] or
//! [`ScopePeer`] of a number. They check the number, so that the operations on the peer need not
//! check it again.

use crate::context::Context;
use crate::job::{Shmem, c_number};
use crate::panics::mistake;
use crate::peer::{Peer, ScopePeer};
use crate::scope::Scope;
use crate::team::Team;
use crate::threads::Threads;
use rushmem_runtime::{
    Call, Context as _, ContextHandle, DefaultContext, ExistingPe, TeamHandle, team,
};

/// A type that numbers PEs: the handle of the job, a team, a context or a scope.
trait Numbering {
    /// Returns the PE with a number, if there is one.
    fn existing(&self, call: Call, number: usize) -> Option<ExistingPe>;
    /// Returns the context of the peers.
    fn on_context(&self) -> ContextHandle;
    /// Returns the team whose members are numbered.
    fn of_team(&self) -> TeamHandle;

    fn my_number(&self) -> usize {
        team::my_pe(call!("me"), self.of_team()) as usize
    }

    fn n_numbers(&self) -> usize {
        team::n_pes(call!("peers"), self.of_team()) as usize
    }
}

impl<C: Threads> Numbering for Shmem<C> {
    #[inline(always)]
    fn existing(&self, call: Call, number: usize) -> Option<ExistingPe> {
        DefaultContext.existing_pe(call, number)
    }

    #[inline(always)]
    fn on_context(&self) -> ContextHandle {
        ContextHandle::DEFAULT
    }

    fn of_team(&self) -> TeamHandle {
        TeamHandle::WORLD
    }
}

impl<C: Threads> Numbering for Context<'_, C> {
    #[inline(always)]
    fn existing(&self, call: Call, number: usize) -> Option<ExistingPe> {
        self.handle().existing_pe(call, number)
    }

    #[inline(always)]
    fn on_context(&self) -> ContextHandle {
        self.handle()
    }

    fn of_team(&self) -> TeamHandle {
        self.team_handle()
    }
}

impl<C: Threads> Numbering for Team<'_, C> {
    fn existing(&self, call: Call, number: usize) -> Option<ExistingPe> {
        let of_world = team::translate_pe(call, self.handle(), c_number(number), TeamHandle::WORLD);
        DefaultContext.existing_pe(call, usize::try_from(of_world).ok()?)
    }

    fn on_context(&self) -> ContextHandle {
        ContextHandle::DEFAULT
    }

    fn of_team(&self) -> TeamHandle {
        self.handle()
    }
}

impl<C: Threads> Numbering for Scope<'_, '_, C> {
    #[inline(always)]
    fn existing(&self, call: Call, number: usize) -> Option<ExistingPe> {
        self.context.existing(call, number)
    }

    #[inline(always)]
    fn on_context(&self) -> ContextHandle {
        self.context.handle()
    }

    fn of_team(&self) -> TeamHandle {
        self.context.team_handle()
    }
}

/// Defines the methods that make peers of type `$peer`, in an `impl` of a [`Numbering`]. `$life` is
/// the lifetime of `self` if the type of the peer has it.
macro_rules! peers {
    ([$($life:lifetime)?] $peer:ty) => {
        /// Returns the PE with a number, from 0 on.
        ///
        /// # Panics
        /// If there is none.
        #[inline]
        #[track_caller]
        pub fn pe(&$($life)? self, number: usize) -> $peer {
            match self.existing(call!("pe"), number) {
                Some(pe) => <$peer>::new(pe, self.on_context()),
                None => no_such_pe(call!("pe"), self.of_team(), number),
            }
        }

        /// Returns the PE with a number, if there is one (`shmem_pe_accessible`, §9.1.7).
        #[doc(alias = "shmem_pe_accessible")]
        #[inline]
        pub fn try_pe(&$($life)? self, number: usize) -> Option<$peer> {
            let pe = self.existing(call!("try_pe"), number)?;
            Some(<$peer>::new(pe, self.on_context()))
        }

        /// Returns this PE.
        #[inline]
        pub fn me(&$($life)? self) -> $peer {
            self.pe(self.my_number())
        }

        /// Returns the PE after this one; after the last one, the first.
        pub fn next(&$($life)? self) -> $peer {
            self.pe((self.my_number() + 1) % self.n_numbers())
        }

        /// Returns the PE before this one; before the first one, the last.
        pub fn prev(&$($life)? self) -> $peer {
            let n = self.n_numbers();
            self.pe((self.my_number() + n - 1) % n)
        }

        /// Returns the PE whose number is larger than this PE's by `by`; `None` beyond the first
        /// and the last one.
        pub fn neighbor(&$($life)? self, by: isize) -> Option<$peer> {
            self.try_pe(self.my_number().checked_add_signed(by)?)
        }

        /// Returns all PEs in the order of their numbers.
        pub fn peers(
            &$($life)? self,
        ) -> impl DoubleEndedIterator<Item = $peer> + ExactSizeIterator {
            (0..self.n_numbers()).map(|number| self.pe(number))
        }

        /// Returns all PEs, this one first and then those after it, so that the PEs of a job that
        /// do this together access different ones at any time.
        pub fn peers_from_me(
            &$($life)? self,
        ) -> impl DoubleEndedIterator<Item = $peer> + ExactSizeIterator {
            let me = self.my_number();
            let n = self.n_numbers();
            (0..n).map(move |distance| self.pe((me + distance) % n))
        }
    };
}

/// The PEs of the job, on the default context.
impl<C: Threads> Shmem<C> {
    peers! { [] Peer<'_, C> }
}

/// The PEs of the context's team.
impl<C: Threads> Context<'_, C> {
    peers! { [] Peer<'_, C> }
}

/// The members of the team, on the default context. One with a context of its own is of
/// [`Team::context`].
impl<'s, C: Threads> Team<'s, C> {
    peers! { [] Peer<'s, C> }
}

/// The PEs of the scope's context.
impl<'scope, C: Threads> Scope<'scope, '_, C> {
    peers! { ['scope] ScopePeer<'scope> }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_such_pe(call: Call, team: TeamHandle, number: usize) -> ! {
    let n_pes = team::n_pes(call, team);
    match team {
        TeamHandle::WORLD => mistake!(
            call,
            "there is no PE {number}; PEs are numbered 0 to {}",
            n_pes - 1
        ),
        _ => mistake!(
            call,
            "there is no PE {number} in a team of {n_pes} PEs; translate the number of another team by Team::translate"
        ),
    }
}
