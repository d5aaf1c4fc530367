//! The numbers of PEs: the handle of the job, a team, a context and a scope make a [`Peer`] or
//! [`ScopePeer`] of a number. They check the number, so that the operations on the peer need not
//! check it again.

use crate::context::{self, Context};
use crate::job::{Shmem, c_number};
use crate::panics::mistake;
use crate::peer::{IsTarget as _, Peer, ScopePeer, Target};
use crate::scope::Scope;
use crate::team::Team;
use crate::threads::Threads;
use rushmem_runtime::{
    Call, Context as _, ContextHandle, DefaultContext, ExistingPe, TeamHandle, team,
};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

/// The set in which a number denotes a PE. A peer that is made of the number also has a context.
#[derive(Clone, Copy)]
enum Numbering {
    /// All PEs. Peers have the default context.
    World,
    /// The team on which this context was created. Peers have that context.
    Context(ContextHandle),
    /// This team. Peers have the default context.
    Team(TeamHandle),
}

impl Numbering {
    /// Returns the PE with a number, if there is one.
    #[inline(always)]
    fn existing(self, call: Call, number: usize) -> Option<ExistingPe> {
        match self {
            Numbering::World => DefaultContext.existing_pe(call, number),
            Numbering::Context(context) => context.existing_pe(call, number),
            Numbering::Team(handle) => member(call, handle, number),
        }
    }

    /// Returns the context of the peers.
    #[inline(always)]
    fn on_context(self) -> ContextHandle {
        match self {
            Numbering::World | Numbering::Team(_) => ContextHandle::DEFAULT,
            Numbering::Context(context) => context,
        }
    }

    /// Returns the team whose members are numbered.
    fn of_team(self) -> TeamHandle {
        match self {
            Numbering::World => TeamHandle::WORLD,
            Numbering::Context(context) => context::team_of(context),
            Numbering::Team(handle) => handle,
        }
    }

    fn my_number(self) -> usize {
        team::my_pe(call!("me"), self.of_team()) as usize
    }

    fn n_numbers(self) -> usize {
        team::n_pes(call!("peers"), self.of_team()) as usize
    }
}

/// Returns the member of a team with a number, if there is one.
fn member(call: Call, handle: TeamHandle, number: usize) -> Option<ExistingPe> {
    let of_world = team::translate_pe(call, handle, c_number(number), TeamHandle::WORLD);
    DefaultContext.existing_pe(call, usize::try_from(of_world).ok()?)
}

/// All PEs that a handle, a team, a context or a scope numbers, each as a peer of type `P`: the
/// iterator of `peers` and `peers_from_me`.
#[derive(Clone)]
#[must_use = "an iterator does nothing unless it is used"]
pub struct Peers<'a, P> {
    numbering: Numbering,
    n_numbers: usize,
    /// The number of the first PE.
    first: usize,
    /// The distances from the first PE of the PEs that are left.
    distances: Range<usize>,
    /// Borrows what numbers the PEs.
    owner: PhantomData<(&'a (), P)>,
}

impl<P: Target> Peers<'_, P> {
    fn new(numbering: Numbering, first: usize) -> Self {
        let n_numbers = numbering.n_numbers();
        Peers {
            numbering,
            n_numbers,
            first,
            distances: 0..n_numbers,
            owner: PhantomData,
        }
    }

    /// Returns the PE at a distance from the first one.
    fn at(&self, distance: usize) -> P {
        let after = self.first + distance;
        let number = after.checked_sub(self.n_numbers).unwrap_or(after);
        let Some(pe) = self.numbering.existing(call!("peers"), number) else {
            unreachable!("the number is below that of the PEs");
        };
        P::new(pe, self.numbering.on_context())
    }
}

impl<P: Target> Iterator for Peers<'_, P> {
    type Item = P;

    #[inline]
    fn next(&mut self) -> Option<P> {
        self.distances.next().map(|distance| self.at(distance))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.distances.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<P> {
        self.distances.nth(n).map(|distance| self.at(distance))
    }
}

impl<P: Target> DoubleEndedIterator for Peers<'_, P> {
    #[inline]
    fn next_back(&mut self) -> Option<P> {
        self.distances.next_back().map(|distance| self.at(distance))
    }
}

impl<P: Target> ExactSizeIterator for Peers<'_, P> {}
impl<P: Target> FusedIterator for Peers<'_, P> {}

impl<P> fmt::Debug for Peers<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peers({} of {})", self.distances.len(), self.n_numbers)
    }
}

/// Defines the methods that make peers of type `$peer`, and iterators of type `$peers`, in an
/// `impl` of what numbers PEs as its method `numbering` says. `$life` is the lifetime of `self` if
/// the type of the peer has it.
macro_rules! peers {
    ([$($life:lifetime)?] $peer:ty, $peers:ty) => {
        /// Returns the PE with a number, from 0 on.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let inbox = shmem.boxed(0);
        /// inbox.on(shmem.pe(0)).write(17);
        /// shmem.barrier_all();
        /// assert_eq!(inbox.on(shmem.pe(0)).read(), 17);
        /// ```
        ///
        /// # Panics
        /// If there is none.
        #[inline]
        #[track_caller]
        pub fn pe(&$($life)? self, number: usize) -> $peer {
            let numbering = self.numbering();
            match numbering.existing(call!("pe"), number) {
                Some(pe) => <$peer>::new(pe, numbering.on_context()),
                None => no_such_pe(call!("pe"), numbering.of_team(), number),
            }
        }

        /// Returns the PE with a number, if there is one (`shmem_pe_accessible`, §9.1.7).
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// assert!(shmem.try_pe(0).is_some());
        /// assert!(shmem.try_pe(shmem.n_pes()).is_none());
        /// ```
        #[doc(alias = "shmem_pe_accessible")]
        #[inline]
        pub fn try_pe(&$($life)? self, number: usize) -> Option<$peer> {
            let numbering = self.numbering();
            let pe = numbering.existing(call!("try_pe"), number)?;
            Some(<$peer>::new(pe, numbering.on_context()))
        }

        /// Returns this PE.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let count = shmem.atomic(17u64);
        /// assert_eq!(count.on(shmem.me()).load(), 17);
        /// ```
        #[inline]
        pub fn me(&$($life)? self) -> $peer {
            self.pe(self.numbering().my_number())
        }

        /// Returns the PE after this one; after the last one, the first.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let inbox = shmem.boxed(0);
        /// inbox.on(shmem.next()).write(shmem.my_pe());
        /// shmem.barrier_all();
        /// assert_eq!(inbox.load(), shmem.prev().pe());
        /// ```
        pub fn next(&$($life)? self) -> $peer {
            let numbering = self.numbering();
            self.pe((numbering.my_number() + 1) % numbering.n_numbers())
        }

        /// Returns the PE before this one; before the first one, the last.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let mine = shmem.boxed(shmem.my_pe());
        /// assert_eq!(mine.on(shmem.prev()).read(), shmem.prev().pe());
        /// ```
        pub fn prev(&$($life)? self) -> $peer {
            let numbering = self.numbering();
            let n = numbering.n_numbers();
            self.pe((numbering.my_number() + n - 1) % n)
        }

        /// Returns the PE whose number is larger than this PE's by `by`; `None` beyond the first
        /// and the last one.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let (left, right) = (shmem.neighbor(-1), shmem.neighbor(1));
        /// assert_eq!(left.is_none(), shmem.my_pe() == 0);
        /// assert_eq!(right.is_none(), shmem.my_pe() == shmem.n_pes() - 1);
        /// ```
        pub fn neighbor(&$($life)? self, by: isize) -> Option<$peer> {
            self.try_pe(self.numbering().my_number().checked_add_signed(by)?)
        }

        /// Returns all PEs in the order of their numbers.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let hits = shmem.atomic(0usize);
        /// shmem.peers().for_each(|peer| hits.on(peer).add(1));
        /// shmem.barrier_all();
        /// assert_eq!(hits.on(shmem.me()).load(), shmem.n_pes());
        /// ```
        pub fn peers(&$($life)? self) -> $peers {
            Peers::new(self.numbering(), 0)
        }

        /// Returns all PEs, this one first and then those after it, so that the PEs of a job that
        /// do this together access different ones at any time.
        ///
        /// ```
        /// # let shmem = shmem::init();
        /// let mine = shmem.boxed(shmem.my_pe());
        /// let seen: Vec<usize> = shmem.peers_from_me().map(|peer| mine.on(peer).read()).collect();
        /// assert_eq!((seen[0], seen.len()), (shmem.my_pe(), shmem.n_pes()));
        /// ```
        pub fn peers_from_me(&$($life)? self) -> $peers {
            let numbering = self.numbering();
            Peers::new(numbering, numbering.my_number())
        }
    };
}

/// The PEs of the job, on the default context.
impl<C: Threads> Shmem<C> {
    #[inline(always)]
    fn numbering(&self) -> Numbering {
        Numbering::World
    }

    peers! { [] Peer<'_, C>, Peers<'_, Peer<'_, C>> }
}

/// The PEs of the context's team.
impl<C: Threads> Context<'_, C> {
    #[inline(always)]
    fn numbering(&self) -> Numbering {
        Numbering::Context(self.handle())
    }

    peers! { [] Peer<'_, C>, Peers<'_, Peer<'_, C>> }
}

/// The members of the team, on the default context. One with a context of its own is of
/// [`Team::context`].
impl<'s, C: Threads> Team<'s, C> {
    #[inline(always)]
    fn numbering(&self) -> Numbering {
        Numbering::Team(self.handle())
    }

    peers! { [] Peer<'s, C>, Peers<'_, Peer<'s, C>> }
}

/// The PEs of the scope's context.
impl<'scope, C: Threads> Scope<'scope, '_, C> {
    #[inline(always)]
    fn numbering(&self) -> Numbering {
        Numbering::Context(self.context.handle())
    }

    peers! { ['scope] ScopePeer<'scope>, Peers<'scope, ScopePeer<'scope>> }
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
