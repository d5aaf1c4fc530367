//! Decides how long a waiting thread polls, and when it yields and sleeps.
//!
//! A PE with a CPU of its own first polls with the pause that CPUs have for such loops, so that it
//! sees a peer's store as fast as the caches move it: without the pause, the loads that the CPU
//! starts ahead delay the store. When PEs outnumber the usable CPUs, polling keeps the peer from
//! running, so no thread spins. How to sleep depends on what the PE waits for: the library's own
//! words have a doorbell. A user's word may be written by a plain store, so its waiter polls it
//! every 50 us, unless only the network can write it, which ends a sleep.

use crate::call::thread;
use crate::constants::SHMEM_THREAD_SINGLE;
use crate::diagnosis::status::{LongWait, WaitDescription};
use crate::job::Job;
use crate::memory::primitive::{AtomicU32, Ordering};
use crate::net::flags;
use crate::net::network;
use rushmem_transport::progress::backoff::{Backoff, Pause};
use rushmem_transport::progress::cpu_sharing::{self, CpuSharing};
use rushmem_transport::progress::events::AwaitedWord;
use std::time::{Duration, Instant};

/// Polls with a pause: some tens of microseconds.
const POLLS: u32 = 3_000;
/// Polls while a network is open: some milliseconds.
const NETWORK_POLLS: u32 = 5_000;
/// Longest sleep in the network if only a message, which ends the sleep, can change the awaited
/// words. An idle PE uses hardly any CPU time then.
const NETWORK_SLEEP: Duration = Duration::from_millis(100);
/// Longest such sleep if not every message ends it.
const UNSIGNALED_SLEEP: Duration = Duration::from_millis(10);
/// The maximum sleep if other threads of this PE may change the words.
const SLEEP_AMONG_THREADS: Duration = Duration::from_millis(1);
/// A sleep of this length is worth the system call that informs the network of its end.
const LONG: Duration = Duration::from_millis(2);
/// Yields before sleeping where PEs outnumber the CPUs.
const YIELDS: u32 = 20;
/// The time for which a waiter yields elsewhere before it sleeps. The kernel takes some 50 us to
/// wake a thread on an idle CPU, and a barrier of 64 PEs that all sleep takes six such times. If
/// waiters yielded for less than that, one PE that is late once would have all of them sleep in
/// each of the barriers that follow.
const YIELD_TIME: Duration = Duration::from_millis(2);
/// Longest sleep before a user's word is polled again.
const SLEEP: Duration = Duration::from_micros(50);

/// Waits until `ready`, which reads words that the library writes and rings for. `describe` says
/// what for.
#[inline]
pub(crate) fn until_rung(
    job: &Job,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if network::is_open() && job.alone {
        // Only a message, or a thread of this PE, can change the words that are waited for.
        wait_in_network(job, sleep_limit(job), [], describe, ready);
    } else if !poll(job.oversubscribed, &mut ready) {
        sleep_until_rung(describe, ready);
    }
}

/// Works as [`until_rung`], where `ready` reads the flags of this PE at the offsets `flags` and
/// nothing else that changes. Only other PEs raise these.
#[inline]
pub(crate) fn until_raised<const N: usize>(
    job: &Job,
    flags: [usize; N],
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if network::is_open() && job.alone {
        let at_most = if network::wakes_waits() { NETWORK_SLEEP } else { sleep_limit(job) };
        wait_in_network(job, at_most, flags, describe, ready);
    } else if !poll(job.oversubscribed, &mut ready) {
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

/// Waits until `ready`, which reads words that any store may change. `describe` says what for, if
/// it takes long.
#[inline]
pub(crate) fn until_seen(
    job: &Job,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if network::is_open() {
        wait_in_network(job, sleep_limit(job), [], describe, ready);
    } else if !poll(job.oversubscribed, &mut ready) {
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

/// Returns whether `ready`, which reads words that any store may change. A caller that gets `false`
/// usually asks again, so the network progresses in the meantime, as it does during a wait.
#[inline]
pub(crate) fn is_seen(mut ready: impl FnMut() -> bool) -> bool {
    let is_seen = ready() || network::is_open() && is_seen_after_work(&mut ready);
    network::count_test(is_seen);
    is_seen
}

#[cold]
fn is_seen_after_work(ready: &mut impl FnMut() -> bool) -> bool {
    network::progress();
    ready()
}

/// Returns the longest single sleep in the network.
fn sleep_limit(job: &Job) -> Duration {
    match (job.alone, job.thread_level) {
        (true, SHMEM_THREAD_SINGLE) if !thread::has_requests() => match network::wakes_waits() {
            true => NETWORK_SLEEP,
            false => UNSIGNALED_SLEEP,
        },
        (true, _) => SLEEP_AMONG_THREADS,
        (false, _) => SLEEP,
    }
}

/// Waits until `ready` and serves peers in the meantime: polls as long as there is work for them,
/// then sleeps until there is more, or until one of the `flags` that are waited for has changed. A
/// sleep lasts for `at_most`, and for no longer than the wait so far, since some providers make
/// progress unnoticed when they prepare a sleep.
#[cold]
fn wait_in_network<const N: usize>(
    job: &Job,
    at_most: Duration,
    flags: [usize; N],
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    let mut wait = LongWait::new(describe);
    let is_woken = network::wakes_waits() && at_most > SLEEP;
    let mut has_slept = false;
    'waiting: while !poll_network(job.oversubscribed, is_woken, &mut ready) {
        wait.check();
        loop {
            let awaited = flags.map(|at| AwaitedWord::new(flags::area().awaited(at)));
            if ready() {
                break 'waiting;
            }
            has_slept = true;
            if network::wait(wait.lasted().clamp(SLEEP, at_most), &awaited) {
                break;
            }
            wait.check();
        }
    }
    if has_slept {
        network::end_wait();
    }
    if wait.lasted() > LONG {
        // The thread that serves peers while no thread waits sleeps too, longer in longer waits.
        network::stop_polling();
    }
}

/// Waits until a word is set by another thread of this PE, which may need the CPU meanwhile.
/// `describe` says what for, if it takes long.
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

/// Returns true if this thread of the library works beside the program, which may compute
/// meanwhile.
fn is_in_background() -> bool {
    thread::has_requests() && thread::request_call().is_some()
}

/// Polls until `ready`, or until a sleep is better: because a yield had a thread run that computes,
/// or after some time.
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

/// Polls and yields until `ready`, or until a sleep is better.
fn yielding(oversubscribed: bool, ready: &mut impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    let mut yields = 0;
    while !ready() {
        let is_enough =
            if oversubscribed { yields >= YIELDS } else { since.elapsed() > YIELD_TIME };
        let is_computing = |with| with == CpuSharing::Computing;
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

/// Polls the network less often, since a poll takes a system call, until a sleep is better. Work for
/// peers renews the number of polls. `is_woken` says whether an event ends that sleep.
#[cold]
fn poll_network(oversubscribed: bool, is_woken: bool, ready: &mut impl FnMut() -> bool) -> bool {
    let oversubscribed = oversubscribed || is_in_background();
    let mut backoff = Backoff::new(NETWORK_POLLS, oversubscribed, is_woken);
    loop {
        if ready() {
            return true;
        }
        if network::progress() {
            // The event may be the one that is waited for.
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
