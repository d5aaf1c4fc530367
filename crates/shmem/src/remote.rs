//! Symmetric elements on another PE, the target of an operation: `x.on(peer)`. The operations are
//! in the files of their chapters, such as `rma` and `amo`.

use crate::element::Element;
use crate::peer::Target;
use crate::symmetric::view::{Sym, SymSlice};
use rushmem_runtime::{ContextHandle, ExistingPe, PeNumber as _, setup};
use std::fmt;

/// Symmetric elements on another PE, `x.on(peer)`: what operations access. Which operations there
/// are depends on the type of the elements.
///
/// | elements | operations |
/// |---|---|
/// | [`SymSlice`] of plain data | `put`, `get`, `to_vec`, `put_with` |
/// | the same | `put_blocks`, `get_blocks`, `put_owned`, `put_owned_with`, `get_owned` |
/// | [`Sym`] of plain data | `read`, `write` |
/// | [`Sym`] of [`Atomic`] | `load`, `store`, `swap`, `fetch_add`, `fetch_max` and others |
/// | [`SymSlice`] of [`Atomic`] | `load_each`, `load_into`, `store_each`, `fill` |
/// | [`Sym`] of [`Signal`](crate::Signal) | `set`, `add` |
///
/// The source of a put and the destination of a get may be symmetric memory, too, but must not
/// overlap the elements on the same PE: which values such elements have afterwards is not defined
/// (§9.6). That is a mistake in the program, but not undefined behavior.
///
/// One element is a slice by [`as_slice`](crate::Sym::as_slice), for `put_with` and others.
///
/// What returns a value or fills a buffer is complete when it returns. The rest is complete after a
/// [`quiet`](crate::Context::quiet) or a barrier; [`Shmem::sync_all`](crate::Shmem::sync_all) and
/// reductions complete nothing. With a peer of a [scope](crate::Context::scope), `put`, `get`,
/// `put_with` and the atomic operations whose names end in `_into` are complete at the end of the
/// scope.
///
/// [`Atomic`]: crate::Atomic
#[must_use = "elements on a peer are accessed by an operation: `x.on(peer).put(..)`"]
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
    pub(crate) fn view(self) -> &'v V {
        self.view
    }

    #[inline(always)]
    pub(crate) fn peer(self) -> P {
        self.peer
    }

    #[inline(always)]
    pub(crate) fn target(self) -> (ExistingPe, ContextHandle) {
        self.peer.parts()
    }
}

impl<T: Element> SymSlice<T> {
    /// Returns these elements on another PE, for an operation on them.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(3);
    /// inbox[1..].on(shmem.next()).put(&[5, 7]);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [0, 5, 7]);
    /// ```
    #[inline(always)]
    pub fn on<P: Target>(&self, peer: P) -> Remote<'_, SymSlice<T>, P> {
        Remote { view: self, peer }
    }
}

impl<T: Element> Sym<T> {
    /// Returns this element on another PE, for an operation on it.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(3);
    /// inbox[1].on(shmem.next()).write(5);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [0, 5, 0]);
    /// ```
    #[inline(always)]
    pub fn on<P: Target>(&self, peer: P) -> Remote<'_, Sym<T>, P> {
        Remote { view: self, peer }
    }
}

/// Defines the methods that one element and a slice on another PE have in common.
macro_rules! common_methods {
    ($($view:ident)*) => {$(
        impl<T: Element, P: Target> Remote<'_, $view<T>, P> {
            /// Returns the address in this process of the elements on that PE, for unsafe code
            /// (`shmem_ptr`, §9.1.9); `None` if this PE cannot load and store them. That PE and
            /// others may access them at any time. The address is valid as long as the object
            /// exists.
            ///
            /// ```
            /// # let shmem = shmem::init();
            /// let mine = shmem.boxed(17);
            /// if let Some(there) = mine.on(shmem.next()).ptr() {
            ///     // SAFETY: the element exists until the barrier, and no PE writes to it.
            ///     assert_eq!(unsafe { there.read_volatile() }, 17);
            /// }
            /// shmem.barrier_all();
            /// ```
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
            ///
            /// ```
            /// # let shmem = shmem::init();
            /// let mine = shmem.boxed(17);
            /// assert!(mine.on(shmem.next()).is_accessible());
            /// ```
            #[doc(alias = "shmem_addr_accessible")]
            pub fn is_accessible(self) -> bool {
                let (pe, _) = self.target();
                let own = self.view.as_ptr().cast_const();
                setup::addr_accessible(call!("Remote::is_accessible"), own.cast(), pe.number()) != 0
            }
        }
    )*};
}
common_methods! { Sym SymSlice }

impl<V: fmt::Debug + ?Sized, P: fmt::Debug> fmt::Debug for Remote<'_, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?}", self.view, self.peer)
    }
}
