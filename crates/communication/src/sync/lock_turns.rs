//! The locks that this PE holds or waits for, and the order in which its threads use them.
//!
//! A PE has one node in the queue of a lock, whatever the number of its threads. So the threads
//! take turns in using the node, in the order of their calls, and each of them enters the queue of
//! PEs anew. The form of a lock in symmetric memory is not known here.

use crate::net::flags;
use rushmem_system::lock::lock;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// The number of a thread, which takes less time to get than a `ThreadId`.
type ThreadNumber = u64;

fn current_thread() -> ThreadNumber {
    // Relaxed: the numbers only have to differ.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local!(static OWN: ThreadNumber = NEXT.fetch_add(1, Relaxed));
    OWN.with(|own| *own)
}

/// The locks that threads of a PE wait for, hold, or release.
pub struct LockTurns {
    turns: Mutex<Vec<LockTurn>>,
    /// The number of turns that have ended. Threads that wait for their turn sleep on this word. It
    /// changes under the mutex, which orders it.
    passed: AtomicU32,
}

/// A lock that threads of a PE wait for, hold, or release.
struct LockTurn {
    /// The address of the lock in this process.
    lock: usize,
    /// The size of its word in bytes.
    nbytes: usize,
    /// The thread whose turn it is; `None` between two turns. Any thread may release the lock.
    owner: Option<ThreadNumber>,
    /// True if the PE holds the lock.
    held: bool,
    /// The number that the next thread to call gets.
    next: u64,
    /// The number of the thread whose turn it is.
    serving: u64,
}

/// The result of a request for a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// It is the turn of the caller.
    Yours,
    /// Another thread of this PE uses the lock.
    Taken,
    /// The caller uses it, or a thread that cannot run before the caller returns.
    Own,
}

/// A lock that this PE holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The address of the lock in this process.
    pub address: usize,
    /// The size of its word in bytes.
    pub nbytes: usize,
}

impl LockTurns {
    pub(crate) const fn new() -> LockTurns {
        LockTurns {
            turns: Mutex::new(Vec::new()),
            passed: AtomicU32::new(0),
        }
    }

    /// Requests a turn. The lock then counts as held, until [`set_held`](LockTurns::set_held) says
    /// otherwise. If another thread has the turn, the caller waits if `wait` is set. `threads` is
    /// true if threads may call at the same time. `sleep` takes a word and its value, and returns
    /// when the value has changed, or earlier.
    pub fn take(
        &self,
        lock: usize,
        nbytes: usize,
        threads: bool,
        wait: bool,
        mut sleep: impl FnMut(&AtomicU32, u32),
    ) -> TurnResult {
        let me = Some(current_thread());
        let mut turns = self.turns();

        let Some(turn) = turns.iter_mut().find(|turn| turn.lock == lock) else {
            turns.push(LockTurn {
                lock,
                nbytes,
                owner: me,
                held: true,
                next: 1,
                serving: 0,
            });
            return TurnResult::Yours;
        };

        // If threads do not call at the same time, none could end the turn while this one waits.
        if turn.owner == me || !threads {
            return TurnResult::Own;
        }
        if !wait {
            return TurnResult::Taken;
        }

        let number = turn.next;
        turn.next += 1;
        loop {
            // Read under the mutex, so that the sleep misses no change.
            let passed = self.passed.load(Relaxed);
            // The mutex is not held during the sleep: the status lists the locks of this PE.
            drop(turns);
            sleep(&self.passed, passed);
            turns = self.turns();

            let turn = turns.iter_mut().find(|turn| turn.lock == lock);
            let Some(turn) = turn.filter(|turn| turn.serving <= number) else {
                unreachable!("a turn is kept while threads wait for it");
            };
            if turn.serving == number {
                turn.owner = me;
                turn.held = true;
                return TurnResult::Yours;
            }
        }
    }

    /// Records whether the PE holds the lock. Returns true if the record has changed.
    pub fn set_held(&self, lock: usize, held: bool) -> bool {
        let mut turns = self.turns();
        match turns.iter_mut().find(|turn| turn.lock == lock) {
            Some(turn) => std::mem::replace(&mut turn.held, held) != held,
            None => false,
        }
    }

    /// Ends a turn, and begins the turn of the next thread, if there is one. The lock then does not
    /// count as held.
    pub fn pass(&self, lock: usize) {
        let mut turns = self.turns();
        let Some(index) = turns.iter().position(|turn| turn.lock == lock) else {
            return;
        };

        let turn = &mut turns[index];
        turn.serving += 1;
        turn.owner = None;
        turn.held = false;

        let is_awaited = turn.serving < turn.next;
        if !is_awaited {
            turns.swap_remove(index);
            return;
        }

        self.passed.fetch_add(1, Relaxed);
        // The threads that wake need the mutex.
        drop(turns);
        flags::wake(&self.passed);
    }

    /// Returns the locks that this PE holds.
    pub fn held(&self) -> Vec<HeldLock> {
        let mut held = Vec::new();
        for turn in self.turns().iter().filter(|turn| turn.held) {
            held.push(HeldLock {
                address: turn.lock,
                nbytes: turn.nbytes,
            });
        }
        held
    }

    /// Returns the address of a lock that this PE holds in a range of addresses, if there is one.
    pub fn held_in(&self, range: Range<usize>) -> Option<usize> {
        let mut held = self.held().into_iter().map(|lock| lock.address);
        held.find(|address| range.contains(address))
    }

    /// Forgets the locks in a range of memory, except those for which threads wait.
    pub fn forget(&self, block: Range<usize>) {
        self.turns().retain(|turn| {
            // A thread waits if more numbers were given than that of the owner. Between two owners,
            // the next one has not woken yet.
            let is_awaited = turn.next - turn.serving > u64::from(turn.owner.is_some());
            is_awaited || !block.contains(&turn.lock)
        });
    }

    fn turns(&self) -> MutexGuard<'_, Vec<LockTurn>> {
        lock(&self.turns)
    }
}

#[cfg(test)]
mod tests;
