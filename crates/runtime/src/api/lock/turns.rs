//! The locks that this PE holds or waits for, and the order of its threads.
//!
//! A lock knows PEs, not threads: a PE has one node in its queue. So the threads of one PE first
//! decide which of them uses the node, in the order of their calls; each of them then joins the
//! queue of PEs again. This file must not know the form of a lock in symmetric memory.

use crate::memory::primitive::AtomicU32;
use crate::net::flags;
use crate::process;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A thread, by a number that no other has: quicker to have than what the standard library offers.
type ThreadNumber = u64;

fn current() -> ThreadNumber {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local!(static OWN: ThreadNumber = NEXT.fetch_add(1, Relaxed));
    OWN.with(|own| *own)
}

/// A lock that a thread of this PE uses: waits for, holds, or is giving back.
struct LockTurn {
    /// The address of the lock in this process.
    lock: usize,
    /// Bytes of its word.
    nbytes: usize,
    /// The thread that took the turn, `None` between two; any thread may give the lock back.
    owner: Option<ThreadNumber>,
    /// True if the PE has the lock.
    held: bool,
    /// The number that the next thread draws.
    next: u64,
    /// The number whose turn it is.
    serving: u64,
}

static TURNS: Mutex<Vec<LockTurn>> = Mutex::new(Vec::new());
/// The number of turns that were passed on, on which the threads that wait for theirs sleep.
static PASSED: AtomicU32 = AtomicU32::new(0);

/// The result of a request for a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnResult {
    /// It is the caller's.
    Yours,
    /// Another thread of this PE uses the lock.
    Taken,
    /// The caller does, or a thread that may not run before the caller returns.
    Own,
}

/// Asks for the turn of a lock, which counts as held then, until [`hold`] says otherwise. With
/// `wait` no answer is [`TurnResult::Taken`]; where other threads may call at the same time
/// (`threads`), the caller waits for its turn then: `sleep` returns once the word no longer has the
/// value, or earlier.
pub(super) fn take(
    lock: usize,
    nbytes: usize,
    threads: bool,
    wait: bool,
    mut sleep: impl FnMut(&AtomicU32, u32),
) -> TurnResult {
    let me = Some(current());
    let mut turns = process::lock(&TURNS);
    let Some(turn) = turns.iter_mut().find(|turn| turn.lock == lock) else {
        turns.push(LockTurn { lock, nbytes, owner: me, held: true, next: 1, serving: 0 });
        return TurnResult::Yours;
    };
    if turn.owner == me || !threads {
        return TurnResult::Own;
    }
    if !wait {
        return TurnResult::Taken;
    }
    let mine = turn.next;
    turn.next += 1;
    loop {
        // Changed under the mutex, so that no change between the look and the sleep is missed.
        let passed = PASSED.load(Relaxed);
        // While this thread sleeps, the status lists the locks that this PE holds.
        drop(turns);
        sleep(&PASSED, passed);
        turns = process::lock(&TURNS);
        let turn = turns.iter_mut().find(|turn| turn.lock == lock);
        let Some(turn) = turn.filter(|turn| turn.serving <= mine) else {
            unreachable!("a turn is kept while threads wait for it");
        };
        if turn.serving == mine {
            turn.owner = me;
            turn.held = true;
            return TurnResult::Yours;
        }
    }
}

/// Records whether the PE has the lock; returns whether that changed.
pub(super) fn hold(lock: usize, held: bool) -> bool {
    let mut turns = process::lock(&TURNS);
    match turns.iter_mut().find(|turn| turn.lock == lock) {
        Some(turn) => std::mem::replace(&mut turn.held, held) != held,
        None => false,
    }
}

/// Passes the turn to the next thread, if there is one. The lock is not held.
pub(super) fn pass(lock: usize) {
    let mut turns = process::lock(&TURNS);
    let Some(at) = turns.iter().position(|turn| turn.lock == lock) else { return };
    turns[at].serving += 1;
    turns[at].owner = None;
    turns[at].held = false;
    if turns[at].serving == turns[at].next {
        turns.swap_remove(at);
    } else {
        PASSED.fetch_add(1, Relaxed);
        drop(turns);
        flags::wake(&PASSED);
    }
}

/// Returns the locks that this PE has: where, and how many bytes each has.
pub(super) fn held() -> Vec<(usize, usize)> {
    let turns = process::lock(&TURNS);
    turns.iter().filter(|turn| turn.held).map(|turn| (turn.lock, turn.nbytes)).collect()
}

/// Forgets the locks in memory that is freed, but for those that threads wait for.
pub(super) fn forget(block: Range<usize>) {
    // One more than the owner; between two owners, the next one has not looked yet.
    let wanted = |turn: &LockTurn| turn.next - turn.serving > u64::from(turn.owner.is_some());
    process::lock(&TURNS).retain(|turn| !block.contains(&turn.lock) || wanted(turn));
}

#[cfg(test)]
mod tests;
