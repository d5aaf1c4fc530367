//! The order that atomic operations and fences of the language establish between threads (C11,
//! 7.17.3 and 7.17.4; C++20, [atomics.order] and [atomics.fences]). An operation with release order
//! publishes the clock of its thread at the word, and one with acquire order takes what was
//! published there.
//!
//! A relaxed operation does neither. It publishes what its thread had at its last release fence,
//! and the next acquire fence takes what it has found. A word keeps all clocks that were published
//! at it, so an update continues the release sequence whatever its order is.
//!
//! The program's operation and its record are one step for other operations of the program on that
//! word. Without that, a thread that has loaded an old value could take what another thread has
//! published with a newer one since, and their race would be missed.

use super::ProcessDetector;
use crate::areas::{Memory, WORD_LOCKS};
use crate::shared::{Held, lock};
use crate::sync_words::of_word;
use core::cell::Cell;
use core::ffi::c_int;

thread_local! {
    /// True while the thread holds a word. A signal handler that interrupts it must not wait for
    /// the same lock.
    static HOLDS_WORD: Cell<bool> = const { Cell::new(false) };
}

/// A word on which the calling thread executes an atomic operation, and nobody else does.
pub struct HeldWord(Option<Held<'static>>);

impl Drop for HeldWord {
    fn drop(&mut self) {
        // A handler may interrupt the thread between the two statements.
        self.0 = None;
        HOLDS_WORD.set(false);
    }
}

/// The order of an atomic operation or a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOrder {
    /// True if it orders what follows after what it finds published.
    pub acquires: bool,
    /// True if it publishes what precedes it.
    pub releases: bool,
}

impl MemoryOrder {
    /// The order of a sequentially consistent operation.
    pub const BOTH: MemoryOrder = MemoryOrder {
        acquires: true,
        releases: true,
    };

    /// Returns the order with this number in C (`__ATOMIC_RELAXED` and the like). The order
    /// `consume` counts as `acquire`, as the compilers treat it.
    pub fn of(number: c_int) -> MemoryOrder {
        // GCC adds hints for lock elision in upper bits.
        let number = number & 0x7fff;
        MemoryOrder {
            acquires: matches!(number, 1 | 2 | 4 | 5),
            releases: number >= 3,
        }
    }
}

impl ProcessDetector {
    /// Waits until no other thread of the job holds the word, and holds it until the result is
    /// dropped. `None` in a signal handler that has interrupted an atomic operation: the handler's
    /// own operation is executed at once.
    pub fn hold_word(&self, word: usize) -> Option<HeldWord> {
        if HOLDS_WORD.replace(true) {
            return None;
        }

        // Operations of different sizes on the same 16 bytes, the largest size, share a lock.
        let block = match self.find(word & !15) {
            Memory::Symmetric(place) => of_word(place),
            Memory::Private(addr) => addr as u64,
        };
        let hash = block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let word_lock = &self.areas.word_locks[hash as usize % WORD_LOCKS];
        Some(HeldWord(Some(lock(word_lock))))
    }

    /// Records that the calling thread is about to store to a word by an atomic operation: those
    /// who find the value may take what is published now.
    pub fn publish(&self, word: usize, order: MemoryOrder) {
        if order.releases {
            return self.release_object(word);
        }
        self.with_accessing(|thread| self.release_clock(word, &thread.at_fence));
    }

    /// Records that the calling thread has loaded a word by an atomic operation.
    pub fn take(&self, word: usize, order: MemoryOrder) {
        if order.acquires {
            return self.acquire(word);
        }
        self.with_accessing(|thread| self.join_released(word, &mut thread.found));
    }

    /// Records a fence between threads.
    pub fn fence(&self, order: MemoryOrder) {
        self.with_thread(|thread| {
            if order.acquires {
                let found = std::mem::take(&mut thread.found);
                thread.clock.join(&found);
            }
            if order.releases {
                thread.mark_fence();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_the_numbers_of_c() {
        let of = |number| {
            let MemoryOrder { acquires, releases } = MemoryOrder::of(number);
            (acquires, releases)
        };
        let relaxed = of(0);
        let [consume, acquire, release, both, sequential] = [1, 2, 3, 4, 5].map(of);
        assert_eq!(relaxed, (false, false));
        assert_eq!([consume, acquire], [(true, false); 2]);
        assert_eq!(release, (false, true));
        assert_eq!([both, sequential], [(true, true); 2]);
        const ELIDES_LOCK: c_int = 1 << 16;
        assert_eq!(of(2 | ELIDES_LOCK), (true, false));
    }
}
