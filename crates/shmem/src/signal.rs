//! Signals (OpenSHMEM 1.6, §9.8): data, and a word whose update shows that the data have arrived.
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::element::{Plain, Signal};
use crate::rma::{Source, require_same_length};
use crate::symmetric::view::{AsElement, AsElements, SymRef};
use crate::thread_level::ThreadLevel;
use crate::wait::Cmp;
use bytemuck::Pod;
use core::ffi::c_int;
use rushmem_runtime::constants::{SHMEM_SIGNAL_ADD, SHMEM_SIGNAL_SET};
use rushmem_runtime::{signal, wait};

/// The update of a signal (§9.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOp {
    /// Sets the signal to this value (`SHMEM_SIGNAL_SET`).
    Set(u64),
    /// Adds this value to the signal (`SHMEM_SIGNAL_ADD`).
    Add(u64),
}

impl SignalOp {
    #[inline(always)]
    pub(crate) fn parts(self) -> (u64, c_int) {
        match self {
            SignalOp::Set(value) => (value, SHMEM_SIGNAL_SET),
            SignalOp::Add(value) => (value, SHMEM_SIGNAL_ADD),
        }
    }
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Performs a [`put`](Context::put), then updates `signal` on `pe`. The update is not visible
    /// before the data (`shmem_put_signal`, §9.8.1).
    #[doc(alias = "shmem_put_signal")]
    #[inline]
    #[track_caller]
    pub fn put_signal<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl Source<T>,
        signal: impl AsElement<'a, Signal>,
        update: SignalOp,
        pe: usize,
    ) {
        let (dest, at, (value, op)) = (dest.into(), signal.into().as_ptr().cast(), update.parts());
        let (from, nelems) = source.parts();
        require_same_length(call!("put_signal"), dest.len(), nelems);
        let (from, to) = (from.cast::<Plain<T>>(), dest.as_ptr().cast());
        let call = call!("put_signal");
        let pe = self.existing(call, pe);
        // SAFETY: equal numbers of elements, and a signal of a symmetric object; the source is
        // borrowed until the end of the call.
        unsafe { signal::put_signal(call, self.handle(), to, from, nelems, at, value, op, pe) }
    }

    /// Updates a signal on `pe` (`shmem_signal_set`, `shmem_signal_add`, §9.8.5 and §9.8.3).
    #[doc(alias = "shmem_signal_set")]
    #[doc(alias = "shmem_signal_add")]
    #[inline]
    #[track_caller]
    pub fn signal<'a>(&self, signal: impl AsElement<'a, Signal>, update: SignalOp, pe: usize) {
        let at = signal.into().as_ptr().cast();
        let call = call!("signal");
        let pe = self.existing(call, pe);
        match update {
            // SAFETY: a signal of a symmetric object.
            SignalOp::Set(value) => unsafe { signal::set(call, self.handle(), at, value, pe) },
            // SAFETY: a signal of a symmetric object.
            SignalOp::Add(value) => unsafe { signal::add(call, self.handle(), at, value, pe) },
        }
    }

    /// Returns the value of this PE's signal (`shmem_signal_fetch`, §9.8.4).
    #[doc(alias = "shmem_signal_fetch")]
    #[inline]
    pub fn signal_fetch<'a>(&self, signal: impl AsElement<'a, Signal>) -> u64 {
        // SAFETY: a signal of a symmetric object.
        unsafe { signal::fetch(call!("signal_fetch"), signal.into().as_ptr().cast()) }
    }

    /// Waits until the value of this PE's signal satisfies the comparison, and returns that value
    /// (`shmem_signal_wait_until`, §9.11.15).
    #[doc(alias = "shmem_signal_wait_until")]
    pub fn signal_wait_until<'a>(
        &self,
        signal: impl AsElement<'a, Signal>,
        cmp: Cmp,
        value: u64,
    ) -> u64 {
        let at = signal.into().as_ptr().cast();
        // SAFETY: a signal of a symmetric object.
        unsafe { signal::wait_until(call!("signal_wait_until"), at, cmp.constant(), value) }
    }
    /// Returns the value of this PE's signal if it satisfies the comparison now.
    pub(crate) fn signal_test(
        &self,
        signal: SymRef<'_, Signal>,
        cmp: Cmp,
        value: u64,
    ) -> Option<u64> {
        let at = signal.as_ptr().cast::<u64>();
        // SAFETY: a signal of a symmetric object.
        let holds = unsafe { wait::test(call!("signal_test"), at, cmp.constant(), value) } != 0;
        // The signal may have changed since the test.
        let now = holds.then(|| self.signal_fetch(signal))?;
        cmp.holds(now, value).then_some(now)
    }
}
