//! What completes later, as a future for any executor or for [`block_on`](crate::block_on):
//! transfers that own their vector, non-blocking collectives, and the quiet of a context.
//!
//! A pending operation that is dropped goes on: a collective is forgotten when it is complete, and
//! a vector is kept until the network does not access it any more. One that is leaked keeps its
//! vector forever. So no transfer accesses memory that was freed.
#![allow(unsafe_code)]

use crate::threads::{Local, Threads, UsedByThreads};
use rushmem_runtime::{Call, ContextHandle, RequestHandle, limits, order, requests};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

/// An operation that was started and completes later: a future of its result.
///
/// A poll neither blocks nor requests another one: a thread of the library, or one that waits in
/// it, wakes the task when the operation is complete. The drop does not block, either: the
/// operation goes on, and the library keeps the vector of a transfer until then.
///
/// A transfer is complete when all operations on its context are, also those issued after it. While
/// a program issues operations on the context without a pause, its transfers do not end; one on a
/// [context](crate::Team::context) of its own does not depend on them.
#[must_use = "the operation goes on if this is dropped, but nothing tells when it is complete"]
pub struct Pending<'a, R = (), C: Threads = Local> {
    operation: Operation<R>,
    /// Borrows the arrays or the context, and may be on the threads that may use the context.
    owner: PhantomData<(&'a UsedByThreads<C>, R)>,
}

/// What is pending. `result` makes the result when the operation is complete.
enum Operation<R> {
    /// A collective, whose blocking routine would return the argument of `result`.
    Collective {
        handle: RequestHandle,
        result: fn(usize) -> R,
    },
    /// All operations on a context. One of them may be on a vector.
    Issued {
        context: ContextHandle,
        vector: Option<OwnedVector>,
        result: fn(Option<OwnedVector>) -> R,
    },
    /// Nothing: the result was taken.
    Over,
}

impl<'a, R, C: Threads> Pending<'a, R, C> {
    pub(crate) fn collective(handle: RequestHandle, result: fn(usize) -> R) -> Self {
        Self::new(Operation::Collective { handle, result })
    }

    fn new(operation: Operation<R>) -> Self {
        Pending {
            operation,
            owner: PhantomData,
        }
    }

    /// Waits until the operation is complete, and returns its result (`shmem_ctx_quiet`, §9.12.2,
    /// or `shmemx_req_wait` for a collective).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (own, sum) = (shmem.boxed(1), shmem.boxed(0));
    /// let request = shmem.world().start_all_reduce_into(&own, &sum, shmem::Sum);
    /// request.wait();
    /// assert_eq!(sum.load(), shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// If the future was ready before, so that its result was taken.
    #[doc(alias = "shmemx_req_wait")]
    #[track_caller]
    pub fn wait(mut self) -> R {
        let call = call!("Pending::wait");
        let value = match self.operation {
            Operation::Collective { handle, .. } => requests::wait(call, handle),
            Operation::Issued { context, .. } => {
                order::quiet(call, context);
                0
            }
            Operation::Over => panic_of_over(),
        };
        self.operation.end(value)
    }

    /// Returns the result if the operation is complete, otherwise this value again
    /// (`shmemx_ctx_quiet_test`, or `shmemx_req_test` for a collective). Does not block.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (own, sum) = (shmem.boxed(1), shmem.boxed(0));
    /// let mut request = shmem.world().start_all_reduce_into(&own, &sum, shmem::Sum);
    /// while let Err(again) = request.try_wait() {
    ///     request = again;                    // a place for other work
    /// }
    /// assert_eq!(sum.load(), shmem.n_pes());
    /// ```
    ///
    /// # Errors
    /// If the operation is not complete.
    ///
    /// # Panics
    /// If the future was ready before, so that its result was taken.
    #[doc(alias = "shmemx_req_test")]
    #[track_caller]
    pub fn try_wait(self) -> Result<R, Self> {
        let call = call!("Pending::try_wait");
        let value = match self.operation {
            Operation::Collective { handle, .. } => requests::test(call, handle),
            Operation::Issued { context, .. } => {
                let is_complete = order::quiet_test(call, context) != 0;
                if is_complete { Some(0) } else { None }
            }
            Operation::Over => panic_of_over(),
        };

        self.end_if_complete(value)
    }

    /// Waits as [`wait`](Self::wait) does, but for `limit` at the longest. Returns the result, or
    /// this value again (`shmemx_ctx_quiet_timed`, or `shmemx_req_wait_timed` for a collective).
    /// Limits are as those of [`Shmem::wait_for`](crate::Shmem::wait_for).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let shmem = shmem::init();
    /// let mut sync = shmem.world().start_sync();
    /// while let Err(again) = sync.wait_for(Duration::from_secs(1)) {
    ///     println!("PE {} still waits for the others", shmem.my_pe());
    ///     sync = again;
    /// }
    /// ```
    ///
    /// # Errors
    /// When the limit has passed. The operation goes on.
    ///
    /// # Panics
    /// If the future was ready before, so that its result was taken.
    #[doc(alias = "shmemx_req_wait_timed")]
    #[doc(alias = "shmemx_ctx_quiet_timed")]
    #[doc(alias = "shmemx_quiet_timed")]
    #[track_caller]
    pub fn wait_for(self, limit: Duration) -> Result<R, Self> {
        let call = call!("Pending::wait_for");
        let limit = limits::of_duration(limit);
        let value = match self.operation {
            Operation::Collective { handle, .. } => requests::wait_within(call, handle, limit).ok(),
            Operation::Issued { context, .. } => {
                let is_complete = order::quiet_within(call, context, limit);
                if is_complete { Some(0) } else { None }
            }
            Operation::Over => panic_of_over(),
        };

        self.end_if_complete(value)
    }

    /// Returns the result if the operation is complete, so that there is a value for it.
    fn end_if_complete(mut self, value: Option<usize>) -> Result<R, Self> {
        match value {
            Some(value) => Ok(self.operation.end(value)),
            None => Err(self),
        }
    }
}

impl<C: Threads> Pending<'_, (), C> {
    pub(crate) fn quiet(context: ContextHandle) -> Self {
        Self::new(Operation::Issued {
            context,
            vector: None,
            result: |_| (),
        })
    }
}

impl<T: Copy, C: Threads> Pending<'_, Vec<T>, C> {
    /// Returns a transfer that owns `vector`, and the address of the vector's elements, with which
    /// the caller starts the transfer.
    pub(crate) fn transfer(context: ContextHandle, vector: Vec<T>) -> (Self, *mut T) {
        let vector = OwnedVector::new(vector);
        let start = vector.start.cast();
        let operation = Operation::Issued {
            context,
            vector: Some(vector),
            result: |vector| {
                let vector = vector.expect("a transfer has a vector");
                // SAFETY: `vector` was made of a vector of `T` above. The result is made when all
                // operations on the context are complete, so none accesses the elements.
                unsafe { vector.into_vector() }
            },
        };
        (Self::new(operation), start)
    }
}

impl<R> Operation<R> {
    /// Takes the result of the complete operation. `value` is what the blocking routine of a
    /// collective returns, and is not used for other operations.
    fn end(&mut self, value: usize) -> R {
        match std::mem::replace(self, Operation::Over) {
            Operation::Collective { result, .. } => result(value),
            Operation::Issued { vector, result, .. } => result(vector),
            Operation::Over => panic_of_over(),
        }
    }
}

#[track_caller]
fn panic_of_over() -> ! {
    panic!("a future was polled after its end")
}

impl<R, C: Threads> Future for Pending<'_, R, C> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<R> {
        let call = call!("Pending::poll");
        let task = context.waker();
        let operation = &mut self.get_mut().operation;
        let value = match *operation {
            Operation::Collective { handle, .. } => requests::poll(call, handle, task),
            Operation::Issued { context, .. } => {
                let is_complete = order::when_quiet(call, context, task);
                if is_complete { Some(0) } else { None }
            }
            Operation::Over => panic_of_over(),
        };

        match value {
            Some(value) => Poll::Ready(operation.end(value)),
            None => Poll::Pending,
        }
    }
}

// No reference points into a `Pending`, so it may be moved while it is polled.
impl<R, C: Threads> Unpin for Pending<'_, R, C> {}

impl<R, C: Threads> Drop for Pending<'_, R, C> {
    fn drop(&mut self) {
        let call = call!("Pending::drop");
        match std::mem::replace(&mut self.operation, Operation::Over) {
            Operation::Collective { handle, .. } => requests::detach(call, handle),
            Operation::Issued {
                context,
                vector: Some(vector),
                ..
            } => free_when_quiet(call, context, vector),
            Operation::Issued { vector: None, .. } | Operation::Over => {}
        }
    }
}

/// Frees a vector when the operations on a context are complete: at once if they are.
fn free_when_quiet(call: Call, context: ContextHandle, vector: OwnedVector) {
    if order::quiet_test(call, context) == 0 {
        // The library drops the waker, and with it the vector, when the operations are complete.
        order::when_quiet(call, context, &Waker::from(Arc::new(vector)));
    }
}

impl<R, C: Threads> fmt::Debug for Pending<'_, R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.operation {
            Operation::Collective { .. } => "Pending(collective)",
            Operation::Issued {
                vector: Some(_), ..
            } => "Pending(transfer)",
            Operation::Issued { vector: None, .. } => "Pending(quiet)",
            Operation::Over => "Pending(over)",
        })
    }
}

/// A vector of plain data to whose elements no reference exists. It is also a waker that wakes
/// nobody: the library keeps the waker, and so the vector, until operations are complete.
struct OwnedVector {
    start: *mut u8,
    len: usize,
    capacity: usize,
    /// Frees the vector with these parts.
    free: unsafe fn(*mut u8, usize, usize),
}

// SAFETY: another thread can only free the vector, whose elements need no drop. Only a `Pending`
// returns the elements, and it is `Send` only if the vector is.
unsafe impl Send for OwnedVector {}
// SAFETY: no method accesses the elements by a shared reference.
unsafe impl Sync for OwnedVector {}

impl OwnedVector {
    fn new<T: Copy>(vector: Vec<T>) -> OwnedVector {
        /// Frees a vector.
        ///
        /// # Safety
        /// The parts are those of a vector of `T` that was forgotten, and that is freed by nothing
        /// else.
        unsafe fn free<T>(start: *mut u8, len: usize, capacity: usize) {
            // SAFETY: `start`, `len` and `capacity` are the parts of a vector of `T` that was
            // forgotten and is not freed, as the caller promises.
            drop(unsafe { Vec::<T>::from_raw_parts(start.cast(), len, capacity) });
        }

        let mut vector = ManuallyDrop::new(vector);
        OwnedVector {
            start: vector.as_mut_ptr().cast(),
            len: vector.len(),
            capacity: vector.capacity(),
            free: free::<T>,
        }
    }

    /// # Safety
    /// The vector is one of `T`, and nothing else accesses its elements any more.
    unsafe fn into_vector<T>(self) -> Vec<T> {
        let parts = ManuallyDrop::new(self);
        // SAFETY: `new` has taken these parts of a vector of `T`, as the caller promises, and has
        // forgotten it. It is not freed, since `parts` is not dropped.
        unsafe { Vec::from_raw_parts(parts.start.cast(), parts.len, parts.capacity) }
    }
}

impl Drop for OwnedVector {
    fn drop(&mut self) {
        // SAFETY: `new` has taken the parts of a vector that it has forgotten, and `free` is for
        // the type of its elements. Nothing else frees it: `into_vector` prevents this drop.
        unsafe { (self.free)(self.start, self.len, self.capacity) };
    }
}

impl Wake for OwnedVector {
    fn wake(self: Arc<Self>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_comes_back_as_it_was() {
        let mut vector = Vec::with_capacity(10);
        vector.extend([1u64, 2, 3]);
        let owned = OwnedVector::new(vector);

        // SAFETY: `start` is the address of the first of three elements, and no reference to it
        // exists.
        unsafe { owned.start.cast::<u64>().write(17) };

        // SAFETY: `owned` was made of a vector of `u64`, and the write has ended.
        let vector = unsafe { owned.into_vector::<u64>() };
        assert_eq!(vector, [17, 2, 3]);
        assert_eq!(vector.capacity(), 10);
    }

    #[test]
    fn a_waker_keeps_a_vector() {
        let owned = OwnedVector::new(vec![0u32; 3]);
        let last = owned.start.cast::<u32>().wrapping_add(2);
        let waker = Waker::from(Arc::new(owned));
        let other = waker.clone();
        waker.wake();

        // SAFETY: `last` is the address of the last of three elements, which `other` keeps. No
        // reference to it exists.
        unsafe { last.write(17) };
        drop(other);
    }
}
