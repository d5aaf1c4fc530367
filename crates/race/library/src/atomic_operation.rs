//! Executes and records an atomic operation of the program. The machine's operation is always
//! sequentially consistent; the detector keeps to the order that the program has asked for.

use core::ffi::c_int;
use rushmem_race::access::{AtomicityDomain, ShadowKind};
use rushmem_race::process::accesses::access_range;
use rushmem_race::process::memory_order::MemoryOrder;
use rushmem_race::process::{ProcessDetector, active};

/// An atomic operation of the program. Memory orders have the numbers that C gives them.
#[derive(Clone, Copy)]
pub struct AtomicOperation {
    /// The address of the word.
    pub addr: usize,
    /// Bytes of the word.
    pub nbytes: usize,
    /// The address to which the call of the operation returns.
    pub return_address: usize,
}

impl AtomicOperation {
    /// Executes `f`, which loads the word.
    pub fn load<R>(self, order: c_int, f: impl FnOnce() -> R) -> R {
        let Some(process) = self.record(false) else {
            return f();
        };

        let _held = process.hold_word(self.addr);
        let found = f();
        process.take(self.addr, MemoryOrder::of(order));
        found
    }

    /// Executes `f`, which stores to the word.
    pub fn store(self, order: c_int, f: impl FnOnce()) {
        let Some(process) = self.record(true) else {
            return f();
        };

        // Whoever finds the value must find what is published.
        let _held = process.hold_word(self.addr);
        process.publish(self.addr, MemoryOrder::of(order));
        f();
    }

    /// Executes `f`, which loads the word and stores to it in one step.
    pub fn update<R>(self, order: c_int, f: impl FnOnce() -> R) -> R {
        let Some(process) = self.record(true) else {
            return f();
        };

        let order = MemoryOrder::of(order);
        let _held = process.hold_word(self.addr);
        process.publish(self.addr, order);
        let found = f();
        process.take(self.addr, order);
        found
    }

    /// Executes `exchange`, a compare-and-swap of `wanted`. If `load` finds another value in the
    /// word, this is a load with the order for the failure, and publishes nothing.
    pub fn compare_exchange<T: PartialEq>(
        self,
        wanted: T,
        [success, failure]: [c_int; 2],
        load: impl FnOnce() -> T,
        exchange: impl FnOnce() -> Result<T, T>,
    ) -> Result<T, T> {
        let Some(process) = active() else {
            return exchange();
        };

        // Whether the operation stores decides what is recorded and published before it.
        let _held = process.hold_word(self.addr);
        let found = load();
        let is_equal = found == wanted;
        self.record(is_equal);

        let result = if is_equal {
            // Other PEs may see the new value at once, by a routine that holds no word.
            process.publish(self.addr, MemoryOrder::of(success));
            exchange()
        } else {
            Err(found)
        };
        let order = if result.is_ok() { success } else { failure };
        process.take(self.addr, MemoryOrder::of(order));
        result
    }

    /// Records the access, and returns the detector if it is active.
    fn record(self, writes: bool) -> Option<&'static ProcessDetector> {
        let process = active()?;
        let kind = ShadowKind::atomic(AtomicityDomain::Language, self.nbytes, false, writes);
        access_range(
            self.addr,
            self.nbytes,
            kind,
            self.return_address.wrapping_sub(1),
        );
        Some(process)
    }
}
