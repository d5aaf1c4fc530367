//! The service thread: progress while nobody waits in the library.
//!
//! It sleeps in the kernel until a socket has news or the timer rings. While threads of the PE wait in the
//! library and poll, waking for every message would only disturb them: then it looks just at the timer,
//! and every now and then whether they still poll.

use crate::shared::{Shared, timespec, try_lock};
use crate::sys;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long nobody may have polled before it takes over.
const TAKE_OVER: Duration = Duration::from_micros(100);
/// How often it looks for guests and silent hosts.
const ROUND: Duration = Duration::from_secs(1);

/// Start it; it ends when `closing` is set and the timer rings.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    sys::spawn_quietly("rushmem-tcp".to_owned(), move || run(&shared))
}

fn run(shared: &Shared) {
    let mut seen = 0;
    let mut round = Instant::now();
    while !shared.closing.load(Ordering::Acquire) {
        let polls = shared.polls.load(Ordering::Relaxed);
        let others_poll = polls != seen || shared.sleepers.load(Ordering::Relaxed) > 0;
        seen = polls;
        let timer = PollFd::new(&shared.timer, PollFlags::IN);
        let sockets = PollFd::new(&shared.epoll, PollFlags::IN);
        let mut fds = [timer, sockets];
        let (watched, at_most) = match others_poll {
            true => (&mut fds[..1], TAKE_OVER),
            false => (&mut fds[..], ROUND),
        };
        // Interrupted or not, what there is to do is looked up.
        let _ = poll(watched, Some(&timespec(at_most)));
        if !fds[0].revents().is_empty() {
            shared.rang();
        }
        let polled = shared.polls.load(Ordering::Relaxed) != seen;
        if !(others_poll || polled)
            && let Some(mut service) = try_lock(&shared.service)
        {
            service.poll_all(shared);
        }
        if round.elapsed() >= ROUND {
            round = Instant::now();
            if let Some(mut service) = try_lock(&shared.service) {
                service.look_around(shared);
            }
        }
    }
}
