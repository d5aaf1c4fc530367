//! Signals (OpenSHMEM 1.6, §9.8): data, and a word whose update shows that the data have arrived.
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData, Signal};
use crate::job::Shmem;
use crate::peer::Peer;
use crate::remote::Remote;
use crate::rma::{Source, require_same_length};
use crate::symmetric::view::{Sym, SymSlice};
use crate::threads::Threads;
use core::ffi::c_int;
use rushmem_runtime::constants::{SHMEM_SIGNAL_ADD, SHMEM_SIGNAL_SET};
use rushmem_runtime::signal;
use std::fmt;

/// The update of a signal that follows data (§9.8): `signal.set(value)` or `signal.add(value)`, for
/// [`put_with`](Remote::put_with).
#[must_use = "an update is carried out by `put_with`; `signal.on(peer)` updates a signal without data"]
#[derive(Clone, Copy)]
pub struct SignalUpdate<'a> {
    signal: &'a Sym<Signal>,
    pub(crate) value: u64,
    pub(crate) op: c_int,
}

impl SignalUpdate<'_> {
    /// Returns the address of the signal in this process.
    #[inline(always)]
    pub(crate) fn word(self) -> *mut u64 {
        self.signal.as_ptr().cast()
    }
}

impl Sym<Signal> {
    /// Returns the update that sets the signal to `value` (`SHMEM_SIGNAL_SET`, §9.8).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (inbox, step) = (shmem.array::<u64>(3), shmem.zeroed::<shmem::Signal>());
    /// inbox.on(shmem.next()).put_with(&[1, 2, 3], step.set(7));
    /// assert_eq!(shmem.wait(step.ge(7)), 7);
    /// ```
    #[doc(alias = "SHMEM_SIGNAL_SET")]
    #[inline(always)]
    pub fn set(&self, value: u64) -> SignalUpdate<'_> {
        SignalUpdate {
            signal: self,
            value,
            op: SHMEM_SIGNAL_SET,
        }
    }

    /// Returns the update that adds `value` to the signal, which wraps around (`SHMEM_SIGNAL_ADD`,
    /// §9.8).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<usize>(shmem.n_pes());
    /// let arrived = shmem.zeroed::<shmem::Signal>();
    /// let place = inbox[shmem.my_pe()].as_slice();
    /// for peer in shmem.peers() {
    ///     place.on(peer).put_with(&[shmem.my_pe()], arrived.add(1));
    /// }
    /// shmem.wait(arrived.eq(shmem.n_pes() as u64));
    /// assert!(inbox.to_vec().into_iter().eq(0..shmem.n_pes()));
    /// ```
    #[doc(alias = "SHMEM_SIGNAL_ADD")]
    #[inline(always)]
    pub fn add(&self, value: u64) -> SignalUpdate<'_> {
        SignalUpdate {
            signal: self,
            value,
            op: SHMEM_SIGNAL_ADD,
        }
    }
}

impl<T: Element, C: Threads> Remote<'_, SymSlice<T>, Peer<'_, C>> {
    /// Performs a [`put`](Self::put), then updates a signal on the same PE. The update is not
    /// visible before the data (`shmem_put_signal`, §9.8.1). Of one element it is
    /// `x.as_slice().on(peer).put_with(&[value], update)`.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (inbox, arrived) = (shmem.array::<u64>(3), shmem.zeroed::<shmem::Signal>());
    /// inbox.on(shmem.next()).put_with(&[1, 2, 3], arrived.set(1));
    /// shmem.wait(arrived.eq(1));
    /// assert_eq!(inbox.to_vec(), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put_signal")]
    #[doc(alias = "put_signal")]
    #[inline]
    #[track_caller]
    pub fn put_with(self, source: impl Source<T>, update: SignalUpdate<'_>)
    where
        T: PlainData,
    {
        let call = call!("put_with");
        let dest = self.view();
        let elements = source.elements();
        let nelems = elements.len();
        require_same_length(call, dest.len(), nelems);

        let (pe, context) = self.target();
        let to = dest.as_ptr().cast();
        let from = elements.cast::<Plain<T>>();
        let word = update.word();
        let SignalUpdate { value, op, .. } = update;
        // SAFETY: `dest` and `source` have the same number of elements, as just checked, and `word`
        // is a signal of a symmetric object. `source` is borrowed until the end of the call.
        unsafe { signal::put_signal(call, context, to, from, nelems, word, value, op, pe) }
    }
}

impl<C: Threads> Remote<'_, Sym<Signal>, Peer<'_, C>> {
    /// Sets the signal to `value` (`shmem_signal_set`, §9.8.5). It is complete after a
    /// [`quiet`](crate::Context::quiet), and follows earlier puts to that PE only after a
    /// [`fence`](crate::Context::fence).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let ready = shmem.zeroed::<shmem::Signal>();
    /// ready.on(shmem.next()).set(7);
    /// assert_eq!(shmem.wait(ready.ne(0)), 7);
    /// ```
    #[doc(alias = "shmem_signal_set")]
    #[doc(alias = "shmemx_signal_set")]
    #[inline]
    pub fn set(self, value: u64) {
        let word = self.view().as_ptr().cast();
        let (pe, context) = self.target();
        // SAFETY: a `Sym<Signal>` is an aligned signal of a symmetric object.
        unsafe { signal::set(call!("set"), context, word, value, pe) }
    }

    /// Adds `value` to the signal (`shmem_signal_add`, §9.8.3). What is said of
    /// [`set`](Self::set) holds here, too.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let arrived = shmem.zeroed::<shmem::Signal>();
    /// shmem.peers().for_each(|peer| arrived.on(peer).add(1));
    /// shmem.wait(arrived.eq(shmem.n_pes() as u64));
    /// # assert_eq!(shmem.signal(&arrived), shmem.n_pes() as u64);
    /// ```
    #[doc(alias = "shmem_signal_add")]
    #[doc(alias = "shmemx_signal_add")]
    #[inline]
    pub fn add(self, value: u64) {
        let word = self.view().as_ptr().cast();
        let (pe, context) = self.target();
        // SAFETY: a `Sym<Signal>` is an aligned signal of a symmetric object.
        unsafe { signal::add(call!("add"), context, word, value, pe) }
    }
}

impl<C: Threads> Shmem<C> {
    /// Returns the value of this PE's signal (`shmem_signal_fetch`, §9.8.4).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let ready = shmem.zeroed::<shmem::Signal>();
    /// ready.on(shmem.next()).set(7);
    /// shmem.barrier_all();
    /// assert_eq!(shmem.signal(&ready), 7);
    /// ```
    #[doc(alias = "shmem_signal_fetch")]
    #[inline]
    pub fn signal(&self, signal: &Sym<Signal>) -> u64 {
        // SAFETY: a `Sym<Signal>` is an aligned signal of a symmetric object.
        unsafe { signal::fetch(call!("Shmem::signal"), signal.as_ptr().cast()) }
    }
}

impl fmt::Debug for SignalUpdate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalUpdate({:?}, {})", self.signal, self.value)
    }
}
