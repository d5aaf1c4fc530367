//! How long to look, when to yield, when to sleep.
//!
//! A PE with a CPU of its own looks without a pause first: a peer's store is then seen as fast as the
//! caches move it. When PEs outnumber the usable CPUs, looking keeps the peer from running, so nobody
//! spins there. What is waited for decides how to sleep: the library's own words have a bell; a
//! user's word may be written by a plain store, so its waiter looks again every 50 us, unless nobody could
//! write it but the network, which ends a sleep.

use crate::base::constants::SHMEM_THREAD_SINGLE;
use crate::base::job::Job;
use crate::net::network;
use crate::sync::flags;
use std::time::{Duration, Instant};

/// Looks without a pause, then with: together some tens of microseconds.
const LOOKS: u32 = 2_000;
const PAUSED_LOOKS: u32 = 2_000;
/// Looks while a network is polled: some milliseconds.
const NETWORK_LOOKS: u32 = 5_000;
/// After so many idle ones in a row others may run: it costs nothing where nobody else wants the CPU, and PEs that
/// do not know of each other, such as those of two containers, may share one.
const LOOKS_PER_YIELD: u32 = 128;
/// Longest sleep in the network where nothing but a message can change what is waited for, which ends the
/// sleep.
const NETWORK_NAP: Duration = Duration::from_millis(10);
/// The same where other threads of this PE may change it.
const NAP_AMONG_THREADS: Duration = Duration::from_millis(1);
/// A sleep of this length is worth the system call that tells the network of its end.
const LONG: Duration = Duration::from_millis(2);
/// Yields before sleeping.
const YIELDS: u32 = 20;
/// Longest sleep before a user's word is looked at again.
const NAP: Duration = Duration::from_micros(50);

/// Wait until `ready`, which looks at words that the library writes and rings for.
#[inline]
pub(crate) fn until_rung(job: &Job, mut ready: impl FnMut() -> bool) {
    if network::is_open() && job.alone {
        // Nothing but a message, or a thread of this PE, can change what is waited for.
        wait_in_network(job, nap(job), ready);
    } else if !look(job.oversubscribed, &mut ready) {
        if network::is_open() {
            network::hand_over();
        }
        flags::area().sleep_until(ready);
    }
}

/// Wait until `ready`, which looks at words that anybody may write.
#[inline]
pub(crate) fn until_seen(job: &Job, mut ready: impl FnMut() -> bool) {
    if network::is_open() {
        wait_in_network(job, nap(job), ready);
    } else if !look(job.oversubscribed, &mut ready) {
        while !ready() {
            std::thread::sleep(NAP);
        }
    }
}

/// Whether `ready`, which looks at words that anybody may write. Whoever asks in vain asks again, so the
/// network works meanwhile, as it does for those who wait.
#[inline]
pub(crate) fn is_seen(mut ready: impl FnMut() -> bool) -> bool {
    ready() || network::is_open() && is_seen_after_work(&mut ready)
}

#[cold]
fn is_seen_after_work(ready: &mut impl FnMut() -> bool) -> bool {
    network::progress();
    ready()
}

/// For how long to sleep in the network at a time.
fn nap(job: &Job) -> Duration {
    match (job.alone, job.thread_level) {
        (true, SHMEM_THREAD_SINGLE) => NETWORK_NAP,
        (true, _) => NAP_AMONG_THREADS,
        (false, _) => NAP,
    }
}

/// Wait until `ready` and serve peers meanwhile: look as long as there is work for them, then sleep
/// for `nap` at a time until there is again.
#[cold]
fn wait_in_network(job: &Job, nap: Duration, mut ready: impl FnMut() -> bool) {
    let mut asleep = None;
    'waiting: while !look_at_network(job.oversubscribed, &mut ready) {
        asleep.get_or_insert_with(Instant::now);
        while !network::wait(nap) {
            if ready() {
                break 'waiting;
            }
        }
    }
    if asleep.is_some_and(|since| since.elapsed() > LONG) {
        // Whoever serves peers while nobody waits sleeps as well, the longer the wait the longer.
        network::hand_over();
    }
}

#[inline]
fn look(crowded: bool, ready: &mut impl FnMut() -> bool) -> bool {
    if network::is_open() {
        return look_at_network(crowded, ready);
    }
    if !crowded {
        for _ in 0..LOOKS {
            if ready() {
                return true;
            }
        }
        for _ in 0..PAUSED_LOOKS {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    for _ in 0..YIELDS {
        if ready() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// A look that lets the network work takes a system call, so there are fewer; work renews them.
#[cold]
fn look_at_network(crowded: bool, ready: &mut impl FnMut() -> bool) -> bool {
    let most = if crowded { YIELDS } else { NETWORK_LOOKS };
    let mut idle = 0;
    while idle < most {
        if ready() {
            return true;
        }
        idle = if network::progress() { 0 } else { idle + 1 };
        if crowded || idle % LOOKS_PER_YIELD == LOOKS_PER_YIELD - 1 {
            std::thread::yield_now();
        }
    }
    false
}
