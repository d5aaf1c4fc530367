//! Peers: the PEs to which operations go. The handle of the job, a team or a context makes a
//! [`Peer`] of a number of a PE and checks the number, so that the operations on the peer need not
//! check it again.

use crate::context::Context;
use crate::element::Element;
use crate::job::{Shmem, c_number};
use crate::panics::mistake;
use crate::scope::Scope;
use crate::symmetric::view::{Sym, SymSlice};
use crate::team::Team;
use crate::threads::{Local, Threads};
use rushmem_runtime::{
    Call, Context as _, ContextHandle, DefaultContext, ExistingPe, PeNumber as _, TeamHandle,
    order, setup, team,
};
use std::fmt;
use std::marker::PhantomData;

/// A PE as one context reaches it, the default one or one that was created: the target of
/// operations, `x.on(peer).put(..)` (the arguments `ctx` and `pe` of C, §9.5).
///
/// The handle, a team and a context make peers of their numbers: `shmem.pe(3)`, `team.pe(3)`,
/// `context.pe(3)`. A peer is a value to copy and to store.
pub struct Peer<'c, C: Threads = Local> {
    pe: ExistingPe,
    context: ContextHandle,
    owner: PhantomData<&'c Context<'c, C>>,
}

/// A PE as the target of operations that the end of a [scope](Context::scope) completes (§9.6.2,
/// §9.7.2, §9.8.2): `x.on(s.pe(3)).put(..)`.
pub struct ScopePeer<'scope> {
    pe: ExistingPe,
    context: ContextHandle,
    /// Makes the lifetime invariant, so that no shorter one takes its place. The peer stays on its
    /// thread, as the context may.
    scope: PhantomData<(&'scope mut &'scope (), *const ())>,
}

mod sealed {
    use rushmem_runtime::{ContextHandle, ExistingPe};

    pub trait IsTarget: Copy {
        /// Returns the PE and the context of an operation.
        fn parts(self) -> (ExistingPe, ContextHandle);
    }
}
pub(crate) use sealed::IsTarget;

/// What an operation can have as its target: a [`Peer`] or a [`ScopePeer`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the target of an operation",
    label = "not a peer",
    note = "a number of a PE becomes a peer by `shmem.pe(number)`, `team.pe(number)` or `context.pe(number)`"
)]
pub trait Target: IsTarget {}

impl<C: Threads> Clone for Peer<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: Threads> Copy for Peer<'_, C> {}

impl<C: Threads> IsTarget for Peer<'_, C> {
    #[inline(always)]
    fn parts(self) -> (ExistingPe, ContextHandle) {
        (self.pe, self.context)
    }
}
impl<C: Threads> Target for Peer<'_, C> {}

impl Clone for ScopePeer<'_> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for ScopePeer<'_> {}

impl IsTarget for ScopePeer<'_> {
    #[inline(always)]
    fn parts(self) -> (ExistingPe, ContextHandle) {
        (self.pe, self.context)
    }
}
impl Target for ScopePeer<'_> {}

impl<C: Threads> Peer<'_, C> {
    /// Returns the number of the PE in the world, whoever has made the peer.
    #[inline]
    pub fn pe(self) -> usize {
        self.pe.number() as usize
    }

    /// Completes the operations issued to this PE on the peer's context (`shmem_ctx_pe_quiet`,
    /// §9.12.3).
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(2);
    /// let next = shmem.next();
    /// inbox.on(next).put(&[1, 2]);
    /// next.quiet();
    /// ```
    #[doc(alias = "shmem_pe_quiet")]
    #[doc(alias = "shmem_ctx_pe_quiet")]
    pub fn quiet(self) {
        order::quiet_of(call!("Peer::quiet"), self.context, self.pe);
    }
}

impl ScopePeer<'_> {
    /// Returns the number of the PE in the world.
    #[inline]
    pub fn pe(self) -> usize {
        self.pe.number() as usize
    }
}

/// Symmetric elements on another PE, `x.on(peer)`: what operations access. Which operations there
/// are depends on the type of the elements.
///
/// | elements | operations |
/// |---|---|
/// | [`SymSlice`] of plain data | `put`, `get`, `to_vec`, `put_with` |
/// | the same | `put_blocks`, `get_blocks`, `put_owned`, `get_owned` |
/// | [`Sym`] of plain data | `read`, `write` |
/// | [`Sym`] of [`Atomic`] | `load`, `store`, `swap`, `compare_exchange`, `fetch_add` and others |
/// | [`SymSlice`] of [`Atomic`] | `load_each`, `load_into`, `store_each`, `fill` |
/// | [`Sym`] of [`Signal`](crate::Signal) | `set`, `add` |
///
/// One element is a slice by [`as_slice`](crate::Sym::as_slice), for `put_with` and others.
///
/// What returns a value or fills a buffer is complete when it returns. The rest is complete after a
/// [`quiet`](Context::quiet) or a barrier; [`Shmem::sync_all`](crate::Shmem::sync_all) and
/// reductions complete nothing. With a peer of a [scope](Context::scope), `put`, `get`, `put_with`
/// and the atomic operations whose names end in `_into` are complete at the end of the scope.
///
/// [`Atomic`]: crate::Atomic
pub struct Remote<'v, V: ?Sized, P> {
    view: &'v V,
    peer: P,
}

impl<V: ?Sized, P: Copy> Clone for Remote<'_, V, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V: ?Sized, P: Copy> Copy for Remote<'_, V, P> {}

impl<'v, V: ?Sized, P: Target> Remote<'v, V, P> {
    #[inline(always)]
    pub(crate) fn new(view: &'v V, peer: P) -> Remote<'v, V, P> {
        Remote { view, peer }
    }

    #[inline(always)]
    pub(crate) fn view(self) -> &'v V {
        self.view
    }

    /// Returns a part of the elements, on the same PE.
    #[inline(always)]
    pub(crate) fn at<W: ?Sized>(self, view: &'v W) -> Remote<'v, W, P> {
        Remote::new(view, self.peer)
    }

    #[inline(always)]
    pub(crate) fn target(self) -> (ExistingPe, ContextHandle) {
        self.peer.parts()
    }
}

/// Defines, for elements of a kind, what every PE has.
macro_rules! places {
    ($($view:ident)*) => {$(
        impl<T: Element, P: Target> Remote<'_, $view<T>, P> {
            /// Returns the address in this process of the elements on that PE, for unsafe code
            /// (`shmem_ptr`, §9.1.9); `None` if this PE cannot load and store them. That PE and
            /// others may access them at any time. The address is valid as long as the object
            /// exists.
            #[doc(alias = "shmem_ptr")]
            #[doc(alias = "shmem_team_ptr")]
            pub fn ptr(self) -> Option<*mut T> {
                let (pe, _) = self.target();
                let own = self.view.as_ptr().cast_const();
                let there = setup::ptr(call!("Remote::ptr"), own.cast(), pe.number());
                if there.is_null() {
                    None
                } else {
                    Some(there.cast())
                }
            }

            /// Returns true if operations can access the elements on that PE
            /// (`shmem_addr_accessible`, §9.1.8), which is so for all PEs of the job.
            #[doc(alias = "shmem_addr_accessible")]
            pub fn is_accessible(self) -> bool {
                let (pe, _) = self.target();
                let own = self.view.as_ptr().cast_const();
                setup::addr_accessible(call!("Remote::is_accessible"), own.cast(), pe.number()) != 0
            }
        }
    )*};
}
places! { Sym SymSlice }

/// Who numbers PEs: the job, a team, or the team of a context.
trait Numbering {
    fn existing(&self, call: Call, number: usize) -> Option<ExistingPe>;
    /// Returns the context on which operations are issued.
    fn on_context(&self) -> ContextHandle;
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

#[inline(always)]
fn peer<'c, C: Threads>(owner: &impl Numbering, pe: ExistingPe) -> Peer<'c, C> {
    Peer {
        pe,
        context: owner.on_context(),
        owner: PhantomData,
    }
}

#[inline(always)]
fn scope_peer<'scope>(owner: &impl Numbering, pe: ExistingPe) -> ScopePeer<'scope> {
    ScopePeer {
        pe,
        context: owner.on_context(),
        scope: PhantomData,
    }
}

/// Defines the methods that make peers of type `$peer` by the function `$make`, in an `impl` of a
/// [`Numbering`].
macro_rules! peers {
    ([$($life:lifetime)?] $peer:ty, $make:ident) => {
        /// Returns the PE with a number, from 0 on.
        ///
        /// # Panics
        /// If there is none.
        #[inline]
        #[track_caller]
        pub fn pe(&$($life)? self, number: usize) -> $peer {
            match self.existing(call!("pe"), number) {
                Some(pe) => $make(self, pe),
                None => no_such_pe(call!("pe"), self.of_team(), number),
            }
        }

        /// Returns the PE with a number, if there is one (`shmem_pe_accessible`, §9.1.7).
        #[doc(alias = "shmem_pe_accessible")]
        #[inline]
        pub fn try_pe(&$($life)? self, number: usize) -> Option<$peer> {
            let pe = self.existing(call!("try_pe"), number)?;
            Some($make(self, pe))
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
    peers! { [] Peer<'_, C>, peer }
}

/// The PEs of the context's team.
impl<C: Threads> Context<'_, C> {
    peers! { [] Peer<'_, C>, peer }
}

/// The members of the team, on the default context. One with a context of its own is of
/// [`Team::context`].
impl<'s, C: Threads> Team<'s, C> {
    peers! { [] Peer<'s, C>, peer }
}

/// The PEs of the scope's context.
impl<'scope, C: Threads> Scope<'scope, '_, C> {
    peers! { ['scope] ScopePeer<'scope>, scope_peer }
}

/// Panics since a team has no PE of this number.
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

impl<C: Threads> fmt::Debug for Peer<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({})", self.pe())
    }
}

impl fmt::Debug for ScopePeer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopePeer({})", self.pe())
    }
}

impl<V: fmt::Debug + ?Sized, P: fmt::Debug> fmt::Debug for Remote<'_, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?}", self.view, self.peer)
    }
}
