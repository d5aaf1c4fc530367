//! Non-blocking collectives, as futures (an extension).
//!
//! All members of a team start its collectives in the same order, blocking and non-blocking ones;
//! collectives of different teams have no order. Members may read `source` and write to `dest`
//! until the request is complete. A request that is leaked is still carried out; an epoch and the
//! drop of an array wait for the requests on the array.
#![allow(unsafe_code)]

use crate::collectives::{bytes_of, elements_of, require_apart, sum, wrong_length};
use crate::operator::{Operator, Sum};
use crate::rma::require_same_length;
use crate::symmetric::view::{AsElements, SymSlice};
use crate::team::Team;
use crate::thread_level::ThreadLevel;
use crate::waiting::ready;
use bytemuck::Pod;
use rushmem_runtime::combine::Arithmetic;
use rushmem_runtime::nonblocking::{self, NonblockingCollective};
use rushmem_runtime::requests;
use rushmem_runtime::{Call, RequestHandle};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{self, Poll};

/// A collective that was started: a future of the result of the blocking form.
#[must_use = "a request that is dropped is waited for"]
pub struct CollectiveRequest<'a, R = ()> {
    handle: RequestHandle,
    result: fn(usize) -> R,
    /// Borrows the arrays, and keeps the request on its thread, which may call the library.
    arrays: PhantomData<(&'a (), *const ())>,
}

impl<R> CollectiveRequest<'_, R> {
    /// Waits until the collective is complete, and returns its result (`shmemx_req_wait`).
    #[track_caller]
    pub fn wait(mut self) -> R {
        (self.result)(self.complete())
    }

    fn complete(&mut self) -> usize {
        let handle = std::mem::replace(&mut self.handle, RequestHandle::NULL);
        requests::wait(call!("CollectiveRequest::wait"), handle)
    }
}

impl<R> Future for CollectiveRequest<'_, R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<R> {
        let request = self.get_mut();
        assert_ne!(
            request.handle,
            RequestHandle::NULL,
            "a request was polled after its end"
        );
        let test = || requests::test(call!("CollectiveRequest::poll"), request.handle);
        let done = ready(context, test).map(request.result);
        if done.is_ready() {
            request.handle = RequestHandle::NULL;
        }
        done
    }
}

impl<R> Drop for CollectiveRequest<'_, R> {
    fn drop(&mut self) {
        if self.handle != RequestHandle::NULL {
            self.complete();
        }
    }
}

impl<L: ThreadLevel> Team<'_, L> {
    /// Starts a sync of the members (`shmemx_team_sync_nb`).
    #[track_caller]
    pub fn sync_nb(&self) -> CollectiveRequest<'_> {
        let nothing = (std::ptr::null_mut(), std::ptr::null(), 0);
        self.start(
            call!("Team::sync_nb"),
            NonblockingCollective::Sync,
            nothing,
            |_| (),
        )
    }

    /// Starts a [`broadcast`](Team::broadcast).
    #[track_caller]
    pub fn broadcast_nb<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
        root: usize,
    ) -> CollectiveRequest<'a> {
        let (call, dest, source) = (call!("Team::broadcast_nb"), dest.into(), source.into());
        require_same_length(call, dest.len(), source.len());
        let vectors = vectors(call, dest, source, bytes_of(source));
        let root = self.root(call, root) as i32;
        self.start(
            call,
            NonblockingCollective::Broadcast { root },
            vectors,
            |_| (),
        )
    }

    /// Starts a [`collect`](Team::collect).
    #[track_caller]
    pub fn collect_nb<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> CollectiveRequest<'a, usize> {
        let (call, dest, source) = (call!("Team::collect_nb"), dest.into(), source.into());
        let vectors = vectors(call, dest, source, bytes_of(source));
        let max_bytes = bytes_of(dest);
        let collective = NonblockingCollective::Collect { max_bytes };
        self.start(call, collective, vectors, elements_of::<T>)
    }

    /// Starts an [`fcollect`](Team::fcollect).
    #[track_caller]
    pub fn fcollect_nb<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> CollectiveRequest<'a> {
        let (call, dest, source) = (call!("Team::fcollect_nb"), dest.into(), source.into());
        let total = source.len().saturating_mul(self.n_pes());
        if dest.len() != total {
            wrong_length(call, dest.len(), total);
        }
        let vectors = vectors(call, dest, source, bytes_of(source));
        self.start(call, NonblockingCollective::Fcollect, vectors, |_| ())
    }

    /// Starts an [`alltoall`](Team::alltoall).
    #[track_caller]
    pub fn alltoall_nb<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> CollectiveRequest<'a> {
        let (call, dest, source) = (call!("Team::alltoall_nb"), dest.into(), source.into());
        let n_pes = self.n_pes();
        require_same_length(call, dest.len(), source.len());
        if !dest.len().is_multiple_of(n_pes) {
            wrong_length(call, dest.len(), dest.len().next_multiple_of(n_pes));
        }
        let vectors = vectors(call, dest, source, bytes_of(source) / n_pes);
        self.start(call, NonblockingCollective::Alltoall, vectors, |_| ())
    }

    /// Starts a [`reduce`](Team::reduce).
    ///
    /// ```standalone_crate
    /// # use shmem::Max;
    /// # let shmem = shmem::init();
    /// # let (most, own) = (shmem.array::<f64>(8), shmem.array::<f64>(8));
    /// let request = shmem.world().reduce_nb(Max, &most, &own);
    /// shmem::block_on(request);
    /// ```
    #[track_caller]
    pub fn reduce_nb<'a, T: Pod, O: Operator<T>>(
        &self,
        _op: O,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> CollectiveRequest<'a> {
        let collective = NonblockingCollective::Reduce(O::COMBINE);
        self.combine(
            call!("Team::reduce_nb"),
            collective,
            dest.into(),
            source.into(),
        )
    }

    /// Starts an [`inscan`](Team::inscan).
    #[track_caller]
    pub fn inscan_nb<'a, T: Pod + Arithmetic>(
        &self,
        _op: Sum,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> CollectiveRequest<'a> {
        let collective = NonblockingCollective::Inscan(sum::<T>());
        self.combine(
            call!("Team::inscan_nb"),
            collective,
            dest.into(),
            source.into(),
        )
    }

    /// Starts an [`exscan`](Team::exscan).
    #[track_caller]
    pub fn exscan_nb<'a, T: Pod + Arithmetic>(
        &self,
        _op: Sum,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> CollectiveRequest<'a> {
        let collective = NonblockingCollective::Exscan(sum::<T>());
        self.combine(
            call!("Team::exscan_nb"),
            collective,
            dest.into(),
            source.into(),
        )
    }

    #[track_caller]
    fn combine<'a, T: Pod>(
        &self,
        call: Call,
        collective: NonblockingCollective,
        dest: SymSlice<'a, T>,
        source: SymSlice<'a, T>,
    ) -> CollectiveRequest<'a> {
        require_same_length(call, dest.len(), source.len());
        self.start(
            call,
            collective,
            vectors(call, dest, source, source.len()),
            |_| (),
        )
    }

    fn start<'a, R>(
        &self,
        call: Call,
        collective: NonblockingCollective,
        (dest, source, n): (*mut u8, *const u8, usize),
        result: fn(usize) -> R,
    ) -> CollectiveRequest<'a, R> {
        // SAFETY: symmetric objects, whose lengths the callers have checked. The result borrows
        // them; if it is leaked, the drop of the objects completes the request.
        let handle =
            unsafe { nonblocking::start(call, self.handle(), collective, dest, source, n) };
        CollectiveRequest {
            handle,
            result,
            arrays: PhantomData,
        }
    }
}

/// Returns the addresses of both vectors, and the number `n` that the runtime takes. Panics if the
/// vectors overlap.
#[track_caller]
fn vectors<T: Pod>(
    call: Call,
    dest: SymSlice<'_, T>,
    source: SymSlice<'_, T>,
    n: usize,
) -> (*mut u8, *const u8, usize) {
    require_apart(call, dest, source);
    (dest.as_ptr().cast(), source.as_ptr().cast(), n)
}
