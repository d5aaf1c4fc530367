//! Non-blocking transfers that own their vector until they are complete: futures for any executor,
//! or for [`block_on`](crate::block_on).
//!
//! A future that is leaked keeps its vector forever, so no transfer writes to memory that was
//! freed. One that is dropped completes the transfer first.
#![allow(unsafe_code)]

use crate::context::Context;
use crate::element::{Element, Plain, PlainData};
use crate::peer::{Peer, Remote};
use crate::rma::require_same_length;
use crate::symmetric::view::SymSlice;
use crate::threads::{Local, Threads};
use rushmem_runtime::{ContextHandle, ExistingPe, order, rma};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{self, Poll};

/// The number of idle polls after which a transfer blocks in a quiet. Operations that are issued on
/// its context meanwhile could keep the context busy forever.
const POLLS: u32 = 1000;

/// Tests whether operations are complete: those of a context, or simulated ones in the tests of
/// this file.
trait CompletionTest {
    fn is_complete(&self) -> bool;
    fn complete(&self);
}

/// The context of a transfer.
struct Issuer<'c, C: Threads> {
    context: ContextHandle,
    owner: PhantomData<&'c Context<'c, C>>,
}

impl<C: Threads> CompletionTest for Issuer<'_, C> {
    fn is_complete(&self) -> bool {
        order::quiet_test(call!("Transfer::poll"), self.context) != 0
    }

    fn complete(&self) {
        order::quiet(call!("Transfer::drop"), self.context);
    }
}

/// A transfer in progress (§9.6.2), which owns its vector: a future of the vector. The transfer has
/// already started.
#[must_use = "a transfer that is dropped is waited for"]
pub struct Transfer<'c, T, C: Threads = Local>(Owning<T, Issuer<'c, C>>);

/// A vector that the program cannot access before the operations on it are complete. No reference
/// to its elements exists until then.
struct Owning<T, C: CompletionTest> {
    elements: VectorParts<T>,
    is_taken: bool,
    polls: u32,
    completion: C,
}

/// The parts of a vector.
struct VectorParts<T> {
    start: *mut T,
    len: usize,
    capacity: usize,
}

// SAFETY: it owns the elements as a vector does, and a vector of `Send` elements is `Send`.
unsafe impl<T: Send> Send for VectorParts<T> {}
// SAFETY: it gives no access to the elements at all.
unsafe impl<T: Sync> Sync for VectorParts<T> {}

impl<T, C: CompletionTest> Owning<T, C> {
    fn new(vector: Vec<T>, completion: C) -> Self {
        let mut vector = ManuallyDrop::new(vector);
        let (start, len, capacity) = (vector.as_mut_ptr(), vector.len(), vector.capacity());
        let elements = VectorParts {
            start,
            len,
            capacity,
        };
        Owning {
            elements,
            is_taken: false,
            polls: 0,
            completion,
        }
    }

    /// Returns the vector. The operations on it must be complete.
    fn take(&mut self) -> Vec<T> {
        assert!(!self.is_taken, "a transfer was polled after its end");
        self.is_taken = true;
        let VectorParts {
            start,
            len,
            capacity,
        } = self.elements;
        // SAFETY: the parts of a vector that `new` has forgotten; `is_taken` ensures that it is
        // made again only once.
        unsafe { Vec::from_raw_parts(start, len, capacity) }
    }

    fn poll(&mut self, context: &mut task::Context<'_>) -> Poll<Vec<T>> {
        if !self.completion.is_complete() {
            self.polls += 1;
            if self.polls < POLLS {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.completion.complete();
        }
        Poll::Ready(self.take())
    }
}

impl<T, C: CompletionTest> Drop for Owning<T, C> {
    fn drop(&mut self) {
        if !self.is_taken {
            self.completion.complete();
            self.take();
        }
    }
}

impl<T: PlainData, C: Threads> Future for Transfer<'_, T, C> {
    type Output = Vec<T>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Vec<T>> {
        self.get_mut().0.poll(context)
    }
}

impl<T, C: Threads> Unpin for Transfer<'_, T, C> {}

impl<'c, T: Element, C: Threads> Remote<'c, SymSlice<T>, Peer<'c, C>> {
    /// Works as [`put`](Self::put), from a vector. The future returns the vector when the data
    /// are at their PE (`shmem_put_nbi`, §9.6.2.1).
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// # let dest = shmem.array::<u64>(3);
    /// let buffer = shmem::block_on(dest.on(shmem.pe(0)).put_owned(vec![1, 2, 3]));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put_nbi")]
    #[track_caller]
    pub fn put_owned(self, source: Vec<T>) -> Transfer<'c, T, C>
    where
        T: PlainData,
    {
        let (call, dest) = (call!("put_owned"), self.view());
        require_same_length(call, dest.len(), source.len());
        let (transfer, (pe, context)) = self.transfer(source);
        let VectorParts { start, len, .. } = transfer.0.elements;
        let (from, to) = (start.cast::<Plain<T>>(), dest.as_ptr().cast());
        // SAFETY: equal numbers of elements; the transfer owns the source until it is complete.
        unsafe { rma::put_nbi(call, context, to, from, len, pe) };
        transfer
    }

    /// Works as [`get`](Self::get), to a vector with as many elements. The future returns the
    /// vector when the data are in it (`shmem_get_nbi`, §9.6.2.2).
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_get_nbi")]
    #[track_caller]
    pub fn get_owned(self, dest: Vec<T>) -> Transfer<'c, T, C>
    where
        T: PlainData,
    {
        let (call, source) = (call!("get_owned"), self.view());
        require_same_length(call, dest.len(), source.len());
        let (transfer, (pe, context)) = self.transfer(dest);
        let VectorParts { start, len, .. } = transfer.0.elements;
        let (from, to) = (source.as_ptr().cast::<Plain<T>>(), start.cast());
        // SAFETY: equal numbers of elements; the transfer owns the destination until it is
        // complete.
        unsafe { rma::get_nbi(call, context, to, from, len, pe) };
        transfer
    }

    /// Returns a transfer of a vector, which the caller starts, and its PE and context.
    fn transfer(self, vector: Vec<T>) -> (Transfer<'c, T, C>, (ExistingPe, ContextHandle)) {
        let (pe, context) = self.target();
        let issuer = Issuer {
            context,
            owner: PhantomData,
        };
        (Transfer(Owning::new(vector, issuer)), (pe, context))
    }
}

impl<T, C: Threads> fmt::Debug for Transfer<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transfer({} elements)", self.0.elements.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::task::Waker;

    /// A network that is complete after some polls or in a quiet, and writes to its destination
    /// then.
    struct Slow<'t> {
        polls_left: &'t Cell<u32>,
        written: &'t Cell<*mut u64>,
    }

    impl CompletionTest for Slow<'_> {
        fn is_complete(&self) -> bool {
            let left = self.polls_left.get();
            if left == 0 {
                self.complete();
            } else {
                self.polls_left.set(left - 1);
            }
            left == 0
        }

        fn complete(&self) {
            let dest = self.written.replace(std::ptr::null_mut());
            if !dest.is_null() {
                // SAFETY: the first element of a vector that a transfer owns.
                unsafe { dest.write(17) };
            }
        }
    }

    fn start<'t>(polls_left: &'t Cell<u32>, written: &'t Cell<*mut u64>) -> Owning<u64, Slow<'t>> {
        let owning = Owning::new(
            vec![0; 3],
            Slow {
                polls_left,
                written,
            },
        );
        written.set(owning.elements.start);
        owning
    }

    fn poll(owning: &mut Owning<u64, Slow<'_>>) -> Poll<Vec<u64>> {
        owning.poll(&mut task::Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_vector_comes_back_when_the_transfer_is_complete() {
        let (polls_left, written) = (Cell::new(2), Cell::default());
        let mut owning = start(&polls_left, &written);
        assert!(poll(&mut owning).is_pending() && poll(&mut owning).is_pending());
        assert_eq!(poll(&mut owning), Poll::Ready(vec![17, 0, 0]));
    }

    #[test]
    fn one_that_is_dropped_is_completed_and_one_that_is_leaked_keeps_its_memory() {
        let (polls_left, written) = (Cell::new(9), Cell::default());
        drop(start(&polls_left, &written));
        assert!(written.get().is_null(), "it was not completed");

        let leaked = ManuallyDrop::new(start(&polls_left, &written));
        // SAFETY: the first element of the vector, which was leaked and so not freed.
        unsafe { written.take().write(17) };
        drop(ManuallyDrop::into_inner(leaked));
    }

    #[test]
    fn a_context_that_is_never_quiet_is_waited_for() {
        let (polls_left, written) = (Cell::new(u32::MAX), Cell::default());
        let mut owning = start(&polls_left, &written);
        let pending = (0..).take_while(|_| poll(&mut owning).is_pending()).count();
        assert_eq!(pending, POLLS as usize - 1);
    }

    #[test]
    #[should_panic(expected = "polled after its end")]
    fn it_ends_once() {
        let (polls_left, written) = (Cell::new(0), Cell::default());
        let mut owning = start(&polls_left, &written);
        assert!(poll(&mut owning).is_ready());
        let _ = poll(&mut owning);
    }
}
