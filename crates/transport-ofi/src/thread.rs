//! The service thread: progress while nobody waits in the library.
//!
//! It sleeps in the kernel until the service's queue has news or the timer rings, where the provider lets
//! it, else for a short while at a time. While threads of the PE wait in the library and poll, it only
//! looks now and then whether they still do.

use crate::settings::DESCRIPTORS;
use crate::shared::{Shared, UNATTENDED, try_lock};
use rushmem_transport::descriptors::Watch;
use rushmem_transport::kit::amos::Amos;
use rushmem_transport::thread::spawn_service;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

/// Others who look as often as this on average count as waiting, not just passing by: a look takes one microsecond, but
/// twenty and more where much data comes.
const OFTEN: Duration = Duration::from_micros(25);
/// Longest nap while others wait and look: each costs them as much as one of their looks, and more. Peers of one that looks
/// often and computes between wait as long.
const LONGEST: Duration = Duration::from_millis(2);
/// Longest nap while something is in flight.
const NAP: Duration = Duration::from_micros(200);
/// Longest nap where the fabric may have news that the kernel does not tell of.
pub(crate) const UNTOLD: Duration = Duration::from_millis(1);
/// Longest sleep.
const ROUND: Duration = Duration::from_secs(1);

/// Start it; it ends when `closing` is set and the timer rings.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    spawn_service("rushmem-ofi", move || run(&shared))
}

fn run(shared: &Shared) {
    let mut seen = 0;
    let mut nap = UNATTENDED;
    let mut descriptors = Watch::default();
    while !shared.closing.load(Ordering::Acquire) {
        // Over sockets the library lets peers that connect wait for ever.
        if shared.fabric.facts.sockets && descriptors.is_over(&shared.timer) {
            shared.give_up(&DESCRIPTORS.exhausted());
        }
        let all = shared.looks.load(Ordering::Relaxed);
        let looks = all.wrapping_sub(seen);
        seen = all;
        if looks > 0 && !shared.handed_over.load(Ordering::Relaxed) {
            // Others serve: leave their CPU alone for longer and longer.
            let often = OFTEN.saturating_mul(u32::try_from(looks).unwrap_or(u32::MAX)) >= nap;
            nap = if often { LONGEST.min(nap * 2) } else { UNATTENDED };
            shared.poll_eps();
            wait_for_the_timer(shared, nap);
            continue;
        }
        // Whoever polls next learns of a loss; the host was told.
        let worked = shared.serve().unwrap_or(false);
        let backlog = try_lock(&shared.service).is_some_and(|service| service.has_backlog());
        let busy = shared.poll_eps() || backlog;
        nap = if worked { UNATTENDED } else { nap * 2 };
        if busy {
            nap = nap.min(NAP);
            shared.sleep_or_be_woken(nap);
        } else if !shared.cq.can_sleep() {
            nap = nap.min(UNTOLD);
            shared.attended.store(true, Ordering::Relaxed);
            wait_for_the_timer(shared, nap);
        } else {
            sleep(shared);
            nap = UNATTENDED;
        }
        shared.rang();
    }
}

/// Sleep until there is news, unless something was begun meanwhile.
fn sleep(shared: &Shared) {
    shared.attended.store(false, Ordering::Relaxed);
    // Either this thread sees what was begun, or whoever began it sees that nobody attends.
    fence(Ordering::SeqCst);
    if any_busy(shared) {
        shared.attended.store(true, Ordering::Relaxed);
        return;
    }
    // Whoever sleeps on a word that a device writes is woken by this thread's looks alone.
    let untold = shared.amos == Amos::Network || shared.handed_over.load(Ordering::Relaxed);
    let at_most = if untold { UNTOLD } else { ROUND };
    shared.sleep_or_be_woken(at_most);
    shared.attended.store(true, Ordering::Relaxed);
}

fn wait_for_the_timer(shared: &Shared, at_most: Duration) {
    crate::fabric::sleep_on(&shared.timer, at_most);
    shared.rang();
}

fn any_busy(shared: &Shared) -> bool {
    let cells = shared.cells.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    cells.iter().any(|cell| cell.busy.load(Ordering::Relaxed))
}
