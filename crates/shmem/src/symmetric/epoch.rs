//! Epochs: times in which every PE has its part of an array for itself.
#![allow(unsafe_code)]

use crate::element::{Element, PlainData};
use crate::panics::EndIfPanicking;
use crate::symmetric::array::SymArray;

impl<T: Element> SymArray<'_, T> {
    /// Calls `f` with this PE's elements, which no other PE can access until all PEs have returned
    /// from their `f`. Collective over all PEs, so one thread of a PE at a time. The standard has
    /// no such routine.
    ///
    /// All PEs wait for each other before and after `f`. A PE in an epoch borrows the array
    /// exclusively, so it has no view with which it could start an operation on the array; the
    /// operations that it started before are complete. Other arrays may be used meanwhile. A panic
    /// in `f` ends the job.
    ///
    /// The job ends with a message if another PE allocates something instead, or finalizes. If
    /// another PE calls another collective, this PE waits for it.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut numbers = shmem.array::<u64>(4);
    /// let largest = numbers.epoch(|own| {
    ///     own.copy_from_slice(&[3, 1, 4, 1]);
    ///     own.sort_unstable();
    ///     own[3]
    /// });
    /// assert_eq!((largest, numbers.to_vec()), (4, vec![1, 1, 3, 4]));
    /// ```
    pub fn epoch<R>(&mut self, f: impl FnOnce(&mut [T]) -> R) -> R
    where
        T: PlainData,
    {
        let call = call!("SymArray::epoch");
        self.block.barrier(call);

        let len = self.len();
        // SAFETY: the block has `len` elements of this PE, aligned, initialized, and valid with any
        // bits. All PEs are in this method of this object, since the barrier is the object's own.
        // Each has borrowed the object exclusively, so none has a view of it, which every access
        // needs. The operations issued before the barrier are complete.
        let own = unsafe { std::slice::from_raw_parts_mut(self.block.data::<T>(), len) };
        let result = {
            let _end = EndIfPanicking;
            f(own)
        };

        self.block.barrier(call);
        result
    }
}
