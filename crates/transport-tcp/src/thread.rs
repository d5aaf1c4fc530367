//! The service thread: progress while nobody waits in the library.
//!
//! It sleeps in the kernel until a socket has news or the timer rings. While threads of the PE wait in the
//! library and poll, waking for every message would only disturb them: then it looks just at the timer,
//! and every now and then whether they still poll.

use crate::shared::{HELD_BACK, Shared, timespec, try_lock};
use rushmem_transport::thread::spawn_service;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Looks of others within [`HELD_BACK`] from which on they count as waiting, not just passing by; within
/// longer times a quarter as many in proportion.
const MANY: u64 = 25;
/// Longest sleep while others wait and look. Every end of a sleep disturbs them by some tens of
/// microseconds where timers are a hypervisor's. Whoever has waited for long hands over, so that this
/// is how late the thread may be after many short waits.
pub(crate) const LONGEST: Duration = Duration::from_millis(2);
/// Longest sleep while others sleep all the time until something arrives: they too hand over.
const LONGEST_WHILE_ASLEEP: Duration = Duration::from_millis(20);

/// Start it; it ends when `closing` is set and the timer rings.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    spawn_service("rushmem-tcp", move || run(&shared))
}

fn run(shared: &Shared) {
    let mut seen = 0;
    let mut nap = HELD_BACK;
    let mut round = Instant::now();
    // Somebody was serving when this thread wanted to, and may have lost its CPU over it.
    let mut taken = false;
    while !shared.closing.load(Ordering::Acquire) {
        let polls = shared.polls.load(Ordering::Relaxed);
        let looks = polls.wrapping_sub(seen);
        seen = polls;
        let asleep = shared.sleepers.load(Ordering::Relaxed) > 0;
        if (looks > 0 || asleep || taken) && shared.may_nap() {
            taken = false;
            // Others serve, and whoever waits sends what it noted by itself: this thread leaves its CPU
            // alone for longer and longer.
            let many = MANY.max(MANY * nap.div_duration_f32(HELD_BACK) as u64 / 4);
            nap = match (asleep, looks > many) {
                (true, _) if looks == 0 => LONGEST_WHILE_ASLEEP.min(nap * 2),
                (true, _) | (false, true) => LONGEST.min(nap * 2),
                (false, false) => HELD_BACK,
            };
            if asleep {
                shared.stop_attending();
            } else {
                shared.attend();
            }
            sleep(&mut [PollFd::new(&shared.timer, PollFlags::IN)], nap);
            shared.napping.store(false, Ordering::Relaxed);
            shared.rang();
        } else {
            nap = HELD_BACK;
            shared.napping.store(false, Ordering::Relaxed);
            shared.stop_attending();
            let timer = PollFd::new(&shared.timer, PollFlags::IN);
            let mut fds = [timer, PollFd::new(&shared.epoll, PollFlags::IN)];
            sleep(&mut fds, shared.tuning.round);
            if !fds[0].revents().is_empty() {
                shared.rang();
            }
            if shared.polls.load(Ordering::Relaxed) == seen {
                match try_lock(&shared.service) {
                    Some(mut service) => {
                        if service.poll_all(shared) {
                            shared.tell_sleepers();
                        }
                    }
                    None => taken = true,
                }
            }
        }
        if round.elapsed() >= shared.tuning.round {
            round = Instant::now();
            if let Some(mut service) = try_lock(&shared.service) {
                service.look_around(shared);
            }
        }
    }
}

fn sleep(fds: &mut [PollFd<'_>], at_most: Duration) {
    // Interrupted or not, what there is to do is looked up.
    let _ = poll(fds, Some(&timespec(at_most)));
}
