//! Peers: the PEs to which operations go. A [`Peer`] is made by the methods of `numbering`.

use crate::context::Context;
use crate::threads::{Local, Threads};
use rushmem_runtime::{ContextHandle, ExistingPe, PeNumber as _, order};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// A PE as one context reaches it, the default one or one that was created: the target of
/// operations, `x.on(peer).put(..)` (the arguments `ctx` and `pe` of C, §9.5).
///
/// The handle, a team and a context make peers of their numbers: `shmem.pe(3)`, `team.pe(3)`,
/// `context.pe(3)`. A peer is a value to copy and to store. Two peers are equal if they are the
/// same PE on the same context.
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
    /// Makes the lifetime invariant, so that no shorter one takes its place. The pointer keeps the
    /// peer on its thread, since the context may be one for this thread only.
    scope: PhantomData<(&'scope mut &'scope (), *const ())>,
}

mod sealed {
    use rushmem_runtime::{ContextHandle, ExistingPe};

    pub trait IsTarget: Copy {
        fn new(pe: ExistingPe, context: ContextHandle) -> Self;

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
    fn new(pe: ExistingPe, context: ContextHandle) -> Self {
        Peer {
            pe,
            context,
            owner: PhantomData,
        }
    }

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
    fn new(pe: ExistingPe, context: ContextHandle) -> Self {
        ScopePeer {
            pe,
            context,
            scope: PhantomData,
        }
    }

    #[inline(always)]
    fn parts(self) -> (ExistingPe, ContextHandle) {
        (self.pe, self.context)
    }
}
impl Target for ScopePeer<'_> {}

/// Compares peers by the numbers of their PEs, and then by their contexts.
macro_rules! comparisons {
    ($([$($parameter:tt)*] $peer:ty;)*) => {$(
        impl<$($parameter)*> PartialEq for $peer {
            fn eq(&self, other: &Self) -> bool {
                self.parts() == other.parts()
            }
        }
        impl<$($parameter)*> Eq for $peer {}

        impl<$($parameter)*> PartialOrd for $peer {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl<$($parameter)*> Ord for $peer {
            fn cmp(&self, other: &Self) -> Ordering {
                self.parts().cmp(&other.parts())
            }
        }

        impl<$($parameter)*> Hash for $peer {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.parts().hash(state);
            }
        }
    )*};
}
comparisons! { [C: Threads] Peer<'_, C>; [] ScopePeer<'_>; }

impl<C: Threads> Peer<'_, C> {
    /// Returns the number of the PE in the world, also if a team has made the peer.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let node = shmem.node();
    /// let first = node.pe(0);
    /// assert_eq!(Some(first.pe()), node.translate(0, &shmem.world()));
    /// ```
    #[inline]
    pub fn pe(self) -> usize {
        self.pe.number() as usize
    }

    /// Completes the operations issued to this PE on the peer's context (`shmem_ctx_pe_quiet`,
    /// §9.12.3).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(2);
    /// let next = shmem.next();
    /// inbox.on(next).put(&[1, 2]);
    /// next.quiet();
    /// assert_eq!(inbox.on(next).to_vec(), [1, 2]);
    /// ```
    #[doc(alias = "shmem_pe_quiet")]
    #[doc(alias = "shmem_ctx_pe_quiet")]
    pub fn quiet(self) {
        order::quiet_of(call!("Peer::quiet"), self.context, self.pe);
    }
}

impl ScopePeer<'_> {
    /// Returns the number of the PE in the world.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let next = shmem.scope(|s| s.next().pe());
    /// assert_eq!(next, shmem.next().pe());
    /// ```
    #[inline]
    pub fn pe(self) -> usize {
        self.pe.number() as usize
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
