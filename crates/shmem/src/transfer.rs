//! Non-blocking transfers that own their vector until they are complete.
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData};
use crate::peer::Peer;
use crate::pending::Pending;
use crate::remote::Remote;
use crate::rma::require_same_length;
use crate::signal::SignalUpdate;
use crate::symmetric::view::SymSlice;
use crate::threads::Threads;
use rushmem_runtime::{rma, signal};

impl<'c, T: Element, C: Threads> Remote<'c, SymSlice<T>, Peer<'c, C>> {
    /// Copies a vector, which must have the same number of elements, to these, without blocking.
    /// The future returns the vector when the data are at their PE (`shmem_put_nbi`, §9.6.2.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(3);
    /// let buffer = shmem::block_on(inbox.on(shmem.next()).put_owned(vec![1, 2, 3]));
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), buffer);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put_nbi")]
    #[track_caller]
    pub fn put_owned(self, source: Vec<T>) -> Pending<'c, Vec<T>, C>
    where
        T: PlainData,
    {
        let call = call!("put_owned");
        let dest = self.view();
        let len = source.len();
        require_same_length(call, dest.len(), len);

        let (pe, context) = self.target();
        let (pending, start) = Pending::transfer(context, source);
        let to = dest.as_ptr().cast();
        let from = start.cast::<Plain<T>>();
        // SAFETY: `dest` and `source` have the same number of elements, as just checked. `pending`
        // owns `source` until the put is complete, also if it is dropped.
        unsafe { rma::put_nbi(call, context, to, from, len, pe) };
        pending
    }

    /// Copies a vector to these elements, and then updates a signal on the same PE, without
    /// blocking: [`put_with`](Self::put_with) of a vector that the future returns
    /// (`shmem_put_signal_nbi`, §9.8.2). The update is not visible before the data.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (inbox, arrived) = (shmem.array::<u64>(3), shmem.zeroed::<shmem::Signal>());
    /// let put = inbox.on(shmem.next()).put_owned_with(vec![1, 2, 3], arrived.set(1));
    /// shmem.wait(arrived.eq(1));
    /// assert_eq!(inbox.to_vec(), shmem::block_on(put));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put_signal_nbi")]
    #[track_caller]
    pub fn put_owned_with(self, source: Vec<T>, update: SignalUpdate<'c>) -> Pending<'c, Vec<T>, C>
    where
        T: PlainData,
    {
        let call = call!("put_owned_with");
        let dest = self.view();
        let len = source.len();
        require_same_length(call, dest.len(), len);

        let (pe, context) = self.target();
        let (pending, start) = Pending::transfer(context, source);
        let to = dest.as_ptr().cast();
        let from = start.cast::<Plain<T>>();
        let word = update.word();
        let SignalUpdate { value, op, .. } = update;
        // SAFETY: `dest` and `source` have the same number of elements, as just checked, and `word`
        // is a signal of a symmetric object. `pending` owns `source` until the put is complete,
        // also if it is dropped.
        unsafe { signal::put_signal_nbi(call, context, to, from, len, word, value, op, pe) };
        pending
    }

    /// Copies these elements to a vector, which must have the same number, without blocking. The
    /// future returns the vector when the data are in it (`shmem_get_nbi`, §9.6.2.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(shmem.my_pe());
    /// let get = mine.as_slice().on(shmem.next()).get_owned(vec![0]);
    /// assert_eq!(shmem::block_on(get), [shmem.next().pe()]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_get_nbi")]
    #[track_caller]
    pub fn get_owned(self, dest: Vec<T>) -> Pending<'c, Vec<T>, C>
    where
        T: PlainData,
    {
        let call = call!("get_owned");
        let source = self.view();
        let len = dest.len();
        require_same_length(call, len, source.len());

        let (pe, context) = self.target();
        let (pending, start) = Pending::transfer(context, dest);
        let to = start.cast::<Plain<T>>();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` have the same number of elements, as just checked. `pending`
        // owns `dest` until the get is complete, also if it is dropped.
        unsafe { rma::get_nbi(call, context, to, from, len, pe) };
        pending
    }
}
