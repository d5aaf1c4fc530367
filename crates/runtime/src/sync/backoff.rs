//! Decides how long a waiting thread polls, and when it yields and sleeps.
//!
//! A PE with a CPU of its own first polls with the CPU's instruction for such loops (`PAUSE` on
//! x86), so that it sees a peer's store as fast as the caches move it: without the instruction, the
//! loads that the CPU starts ahead delay the store. When PEs outnumber the usable CPUs, no thread
//! spins, since a thread that polls keeps its peer from running.
//!
//! How a thread sleeps depends on what it waits for. The library rings a doorbell after it has
//! written its own words, and the ring ends the sleep. A peer on the node may write a word of the
//! program by a plain store, which ends no sleep, so the waiter polls the word after each sleep of
//! [`SLEEP`]. If only the network can write the word, an event of the network ends the sleep.

use crate::call::thread;
use crate::constants::SHMEM_THREAD_SINGLE;
use crate::diagnosis::status::{LongWait, WaitDescription};
use crate::job::Job;
use crate::memory::primitive::{AtomicU32, Ordering};
use crate::net::flags;
use crate::net::{network, polls};
use rushmem_transport::progress::backoff::{Backoff, Pause};
use rushmem_transport::progress::cpu_sharing::{self, CpuSharing, WaitingThread};
use rushmem_transport::progress::events::AwaitedWord;
use std::time::{Duration, Instant};

/// Polls before the first yield if no network is open: some tens of microseconds.
const POLLS: u32 = 3_000;
/// Polls of the words and the network that a waiter makes almost without a pause: some
/// milliseconds.
const NETWORK_POLLS: u32 = 5_000;
/// Longest sleep in the network if only a message can change the awaited words, and every message
/// ends the sleep. An idle PE then uses hardly any CPU time. A transport may end the sleep sooner.
const NETWORK_SLEEP: Duration = Duration::from_millis(100);
/// Longest sleep in the network if only a message can change the awaited words, but not every
/// message ends the sleep.
const UNSIGNALED_SLEEP: Duration = Duration::from_millis(10);
/// Longest sleep in the network if other threads of this PE may change the words, too.
const SLEEP_AMONG_THREADS: Duration = Duration::from_millis(1);
/// After a wait in the network that was longer than this, the waiting thread wakes the service
/// thread, which then serves peers at once. This takes a system call.
const LONG: Duration = Duration::from_millis(2);
/// The number of yields before a sleep if other threads may need the CPU.
const YIELDS: u32 = 20;
/// The time for which a waiter yields before it sleeps if the CPU is its own. The kernel takes some
/// 50 us to wake a thread on an idle CPU, and a barrier of 64 PEs that all sleep takes six such
/// times. If waiters yielded for less than that, then after one PE was late once, all of them would
/// sleep in each of the barriers that follow.
const YIELD_TIME: Duration = Duration::from_millis(2);
/// The sleep between two polls of a word of the program that a plain store may change, and the
/// minimum limit of a sleep in the network. The kernel adds its timer slack, by default another
/// 50 us.
const SLEEP: Duration = Duration::from_micros(50);

/// Waits until `ready` returns true. `ready` reads words for which the library rings the doorbell
/// after each change. `describe` says what the thread waits for; it is called if the wait is long.
#[inline]
pub(crate) fn until_rung(
    job: &Job,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if network::is_open() && job.is_alone_on_node {
        // Only a message or another thread of this PE can change the awaited words.
        wait_in_network(job, sleep_limit(job), [], describe, ready);
    } else if !poll(job.is_oversubscribed, &mut ready) {
        sleep_until_rung(describe, ready);
    }
}

/// Works as [`until_rung`], for a `ready` that depends only on the flags of this PE at the offsets
/// `flags`. Only other PEs raise these flags.
#[inline]
pub(crate) fn until_raised<const N: usize>(
    job: &Job,
    flags: [usize; N],
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if network::is_open() && job.is_alone_on_node {
        let at_most = if network::wakes_waits() {
            NETWORK_SLEEP
        } else {
            sleep_limit(job)
        };
        wait_in_network(job, at_most, flags, describe, ready);
    } else if !poll(job.is_oversubscribed, &mut ready) {
        sleep_until_rung(describe, ready);
    }
}

#[cold]
fn sleep_until_rung(describe: impl Fn() -> WaitDescription, ready: impl FnMut() -> bool) {
    if network::is_open() {
        network::stop_polling();
    }
    let mut wait = LongWait::new(describe);
    flags::area().sleep_until(ready, |word, heard| wait.sleep(word, heard));
}

/// Waits until `ready` returns true. `ready` reads words that any store may change. `describe` says
/// what the thread waits for; it is called if the wait is long.
#[inline]
pub(crate) fn until_seen(
    job: &Job,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if network::is_open() {
        wait_in_network(job, sleep_limit(job), [], describe, ready);
    } else if !poll(job.is_oversubscribed, &mut ready) {
        sleep_until_seen(describe, ready);
    }
}

#[cold]
fn sleep_until_seen(describe: impl Fn() -> WaitDescription, mut ready: impl FnMut() -> bool) {
    let mut wait = LongWait::new(describe);
    while !ready() {
        std::thread::sleep(SLEEP);
        wait.check();
    }
}

/// Calls `ready`, which reads words that any store may change. If it returns false and a network is
/// open, makes progress on the network and calls it once more: a program usually repeats its test
/// in a loop, in which peers must be served as in a wait. Returns the last result.
#[inline]
pub(crate) fn test(mut ready: impl FnMut() -> bool) -> bool {
    let is_seen = ready() || network::is_open() && test_after_progress(&mut ready);
    polls::count_test(is_seen);
    is_seen
}

#[cold]
fn test_after_progress(ready: &mut impl FnMut() -> bool) -> bool {
    network::progress();
    ready()
}

/// Returns the longest single sleep in the network, in a wait for arbitrary words.
fn sleep_limit(job: &Job) -> Duration {
    match (job.is_alone_on_node, job.thread_level) {
        (true, SHMEM_THREAD_SINGLE) if !thread::has_requests() => match network::wakes_waits() {
            true => NETWORK_SLEEP,
            false => UNSIGNALED_SLEEP,
        },
        (true, _) => SLEEP_AMONG_THREADS,
        (false, _) => SLEEP,
    }
}

/// Waits until `ready` returns true, and serves peers in the meantime: polls while there is work
/// for peers, then sleeps until there is more, or until one of the awaited `flags` has changed. A
/// sleep lasts for `at_most` at the longest. If not every change ends a sleep, it also lasts no
/// longer than the wait so far. Otherwise that limit would only take time: for a short sleep the
/// kernel sets its timer anew, which can take 10 us.
#[cold]
fn wait_in_network<const N: usize>(
    job: &Job,
    at_most: Duration,
    flags: [usize; N],
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    let _counted = WaitingThread::count();
    let mut wait = LongWait::new(describe);
    let is_woken = network::wakes_waits() && at_most > SLEEP;
    let mut has_slept = false;
    // `ready` may take a message, so it is not called again once it has returned true.
    let mut is_over = false;
    let mut ready = || {
        is_over = is_over || ready();
        is_over
    };
    'waiting: while !poll_network(job.is_oversubscribed, is_woken, &mut ready) {
        wait.check();
        loop {
            let awaited = flags.map(|at| AwaitedWord::new(flags::area().awaited(at)));
            if ready() {
                break 'waiting;
            }
            has_slept = true;
            let at_most = if is_woken {
                at_most
            } else {
                wait.lasted().clamp(SLEEP, at_most)
            };
            if network::wait(at_most, &awaited, &mut ready) {
                break;
            }
            wait.check();
        }
    }
    if has_slept {
        network::end_wait();
    }
    if wait.lasted() > LONG {
        // The service thread also sleeps during this wait, in intervals that grow with the wait.
        network::stop_polling();
    }
}

/// Waits until another thread of this PE, which may need the CPU meanwhile, has set `word` to
/// another value than 0. `describe` says what the thread waits for; it is called if the wait is
/// long.
pub(crate) fn until_set(word: &AtomicU32, describe: impl Fn() -> WaitDescription) {
    let mut is_set = || word.load(Ordering::Acquire) != 0;
    if yielding(true, &mut is_set) {
        return;
    }
    let mut wait = LongWait::new(describe);
    while !is_set() {
        wait.sleep(word, 0);
    }
}

/// Returns true if the calling thread belongs to the library and carries out a non-blocking
/// collective. It should not take the CPU from the program, which may compute meanwhile.
fn is_in_background() -> bool {
    thread::has_requests() && thread::request_call().is_some()
}

/// Polls until `ready` returns true. Returns false when a sleep is better: after some time, or if a
/// yield has shown that the CPU is shared with a thread that computes.
#[inline]
fn poll(oversubscribed: bool, ready: &mut impl FnMut() -> bool) -> bool {
    if network::is_open() {
        return poll_network(oversubscribed, false, ready);
    }
    let oversubscribed = oversubscribed || is_in_background();
    if !oversubscribed {
        for _ in 0..POLLS {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    yielding(oversubscribed, ready)
}

/// Works as [`poll`], and yields after each poll.
fn yielding(oversubscribed: bool, ready: &mut impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    let mut yields = 0;
    while !ready() {
        let is_enough = if oversubscribed {
            yields >= YIELDS
        } else {
            since.elapsed() > YIELD_TIME
        };
        let is_computing = |sharing| sharing == CpuSharing::Computing;
        if is_enough
            || is_computing(cpu_sharing::last_seen())
            || is_computing(cpu_sharing::yield_now(oversubscribed))
        {
            return false;
        }
        yields += 1;
    }
    true
}

/// Works as [`poll`], and makes progress on the network, too. Work for peers restarts the backoff.
/// `is_woken` says whether an event ends the sleep that follows.
#[cold]
fn poll_network(oversubscribed: bool, is_woken: bool, ready: &mut impl FnMut() -> bool) -> bool {
    let oversubscribed = oversubscribed || is_in_background();
    let mut backoff = Backoff::new(NETWORK_POLLS, oversubscribed, is_woken);
    loop {
        if ready() {
            return true;
        }
        if network::progress() {
            // The work may have changed the awaited words.
            backoff.renew();
            continue;
        }
        let pause = backoff.pause();
        if pause == Pause::Sleep {
            return false;
        }
        backoff.take(pause, || ());
    }
}
