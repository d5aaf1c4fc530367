//! Epochs: the time in which every PE has its part of an array to itself.
#![allow(unsafe_code)]

use crate::element::{PlainData, Symmetric};
use crate::job::end_if_panicking;
use crate::symmetric::array::SymArray;

impl<T: Symmetric> SymArray<'_, T> {
    /// Calls `f` with this PE's elements, which no other PE can reach until all PEs have returned
    /// from their `f`. Collective over all PEs, so one thread of a PE at a time.
    ///
    /// All of them wait for each other before and after it. A PE that is in it has the array
    /// borrowed exclusively, so it has no view of it with which it could start an operation; what
    /// it started before is complete. Other arrays may be used meanwhile. A panic in `f` ends the
    /// job. This has no form in the standard.
    ///
    /// The job ends with a message if another PE allocates or drops something instead, or
    /// finalizes. One that calls another collective is waited for.
    pub fn epoch<R>(&mut self, f: impl FnOnce(&mut [T]) -> R) -> R
    where
        T: PlainData,
    {
        let call = call!("SymArray::epoch");
        self.block.barrier(call);
        let len = self.len();
        // SAFETY: this PE's elements, aligned and initialized, whatever their bits. All PEs are in
        // this method of this object: the barrier is the object's own. Each has it borrowed
        // exclusively, so none has a view of it; a view is what every access needs. What was issued
        // before the barrier is complete.
        let own = unsafe { std::slice::from_raw_parts_mut(self.block.data::<T>(), len) };
        let result = {
            let _end = EndIfPanicking;
            f(own)
        };
        self.block.barrier(call);
        result
    }
}

/// Ends the job when it is dropped by a panic: the others wait in the second barrier.
struct EndIfPanicking;

impl Drop for EndIfPanicking {
    fn drop(&mut self) {
        end_if_panicking();
    }
}
