//! Who polls the eps and the service of this PE: a thread that waits in the library, or else the service thread. And how long a
//! thread polls before it yields and sleeps.
//!
//! The service thread sleeps in the kernel until the service's queue has news or the timer rings, where libfabric's provider
//! lets it, else for a short while at a time. This file must never know what a poll finds.
//!
//! Locks: the service is only ever tried by whoever polls; it is waited for to open what must not be opened beside its work.

use crate::ep::FiEndpoint;
use crate::fabric::News;
use crate::service::Service;
use crate::settings::DESCRIPTORS;
use crate::shared::{Shared, UNATTENDED};
use rushmem_transport::Amos;
use rushmem_transport::Error;
use rushmem_transport::descriptors::Watch;
use rushmem_transport::kit::attendance::Attendance;
use rushmem_transport::kit::backoff::{
    Backoff, BackoffLimits, ServiceBackoff, ServiceBackoffLimits,
};
use rushmem_transport::kit::lock::{lock, try_lock};
use rustix::event::{PollFd, PollFlags};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A waiter spins for some milliseconds: what a long transfer moves meanwhile is no news.
const BACKOFF: BackoffLimits =
    BackoffLimits { spins: 5_000, yields: 100, yields_oversubscribed: 20 };
/// Sleep of a waiter, which polls again afterwards: what is waited for may come without waking anybody.
const SLEEP: Duration = Duration::from_micros(50);

/// A poll takes one microsecond, but twenty and more where much data comes, so whoever polls every 25 us waits. Every end of a
/// sleep costs those who wait as much as a poll of theirs, and more. The longest sleep is also how long peers may have to wait for
/// a PE that polls often and computes between. Threads that sleep are never beside it: they poll every 50 us.
const SERVICE_BACKOFF: ServiceBackoffLimits = ServiceBackoffLimits {
    shortest: UNATTENDED,
    often: Duration::from_micros(25),
    min_polls: 1,
    longest: Duration::from_millis(2),
    longest_asleep: Duration::from_millis(2),
};

/// Where PEs share CPUs, a thread that waits polls only when it has one; a service thread that wakes takes it from all of them.
const SERVICE_BACKOFF_OVERSUBSCRIBED: ServiceBackoffLimits =
    ServiceBackoffLimits { often: Duration::from_millis(1), ..SERVICE_BACKOFF };

/// Sleeps of the service thread beside a thread that counts as waiting, but does not poll: it may be within one long call, or within one
/// after another, and then nobody serves.
const UNPOLLED: u32 = 4;
/// Longest sleep of the service thread while something is in flight.
const IN_FLIGHT: Duration = Duration::from_micros(200);
/// Longest sleep of any thread where the fabric may have news that the kernel does not tell of.
const UNTOLD: Duration = Duration::from_millis(1);
/// Longest sleep of the service thread.
const LONGEST: Duration = Duration::from_secs(1);

/// One PE's share in the fabric, with what serves its peers, which is dropped last.
pub(crate) struct Progress {
    pub(crate) shared: Shared,
    service: Mutex<Service>,
}

impl AsRef<Attendance> for Progress {
    fn as_ref(&self) -> &Attendance {
        &self.shared.attendance
    }
}

impl Progress {
    pub(crate) fn new(shared: Shared, service: Service) -> Progress {
        Progress { shared, service: Mutex::new(service) }
    }

    /// Does something with the service's ep while nobody serves.
    pub(crate) fn while_nobody_serves<T>(&self, act: impl FnOnce(&FiEndpoint) -> T) -> T {
        act(lock(&self.service).ep())
    }

    /// Lets everything work, as far as nobody else does; returns whether there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        let attendance = &self.shared.attendance;
        attendance.polled();
        // A provider over sockets moves hundreds of kilobytes within one poll.
        attendance.begin_wait();
        self.shared.poll_eps();
        let worked = self.poll_service();
        attendance.end_wait();
        worked
    }

    /// Serves peers, if nobody else does; returns whether there was work.
    ///
    /// # Errors
    /// When a PE was lost, now or before.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        let handed_over = &self.shared.handed_over;
        if handed_over.load(Ordering::Relaxed) {
            handed_over.store(false, Ordering::Relaxed);
        }
        let worked = self.serve()?;
        self.shared.loss.check().map(|()| worked)
    }

    /// As [`poll_service`](Progress::poll_service), by the service thread.
    fn serve(&self) -> Result<bool, Error> {
        let Some(mut service) = try_lock(&self.service) else { return Ok(false) };
        let worked = service.poll(&self.shared);
        drop(service);
        // What the provider itself wrote meanwhile nobody tells of.
        self.shared.host.arrived();
        worked.map_err(|failure| self.shared.lose(&failure))
    }

    /// Polls, and sleeps when there was nothing to do until there may be, but not longer than `at_most`.
    ///
    /// # Errors
    /// When a PE was lost.
    pub(crate) fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        if self.poll()? {
            return Ok(true);
        }
        // What is in flight must be polled while this thread sleeps: the service thread does. Where the
        // kernel tells of no news, this thread polls itself; nor does it tell of what a NIC writes.
        let at_most = match (self.shared.cq.can_sleep(), self.shared.amos) {
            (true, Amos::Software) => at_most,
            (true, Amos::Network) => at_most.min(UNTOLD),
            (false, _) => at_most.min(SLEEP),
        };
        let told = self.shared.sleep(at_most);
        self.poll().map(|worked| worked || told)
    }

    /// The caller sleeps elsewhere from now on.
    pub(crate) fn hand_over(&self) {
        let attendance = &self.shared.attendance;
        self.shared.handed_over.store(true, Ordering::Relaxed);
        attendance.hand_over();
        // It may be in a sleep that is longer than the caller's may be.
        attendance.timer().ring();
    }

    /// A wait that begins: until its [`end`](Progress::end) this thread polls.
    pub(crate) fn begin(&self) -> Backoff {
        self.shared.attendance.begin_wait();
        Backoff::new(BACKOFF, self.shared.oversubscribed)
    }

    /// The wait has ended.
    pub(crate) fn end(&self) {
        self.shared.attendance.end_wait();
    }

    /// Between two polls of a wait, of which the last found nothing.
    pub(crate) fn pause(&self, backoff: &mut Backoff) {
        backoff.pause().take(|| {
            self.shared.sleep(SLEEP);
        });
    }
}

/// The service thread's work. While threads of the PE wait in the library and poll, it only finds out now and then whether they
/// still do.
pub(crate) fn run(progress: &Progress) {
    let shared = &progress.shared;
    let attendance = &shared.attendance;
    let (mut seen, mut unpolled) = (0, 0);
    let limits =
        if shared.oversubscribed { SERVICE_BACKOFF_OVERSUBSCRIBED } else { SERVICE_BACKOFF };
    let mut backoff = ServiceBackoff::new(limits);
    let mut descriptors = Watch::default();
    attendance.attend();
    while !attendance.is_closing() {
        // Over sockets the library lets peers that connect wait for ever.
        if shared.fabric.facts.sockets && descriptors.is_over(attendance.timer()) {
            shared.loss.of_self(&DESCRIPTORS.exhausted());
        }
        let all = attendance.polls();
        let polls = all.wrapping_sub(seen);
        seen = all;
        let waiting = attendance.any_waiting();
        unpolled = if polls > 0 { 0 } else { unpolled + 1 };
        if (polls > 0 || waiting && unpolled < UNPOLLED) && attendance.may_back_off() {
            // Others serve: this thread leaves their CPU alone for longer and longer. Who moves much data polls rarely, but will
            // soon.
            let polls = if waiting { u64::MAX } else { polls };
            let time = backoff.while_others_poll(polls, false);
            shared.poll_eps();
            attendance.back_off(time);
            continue;
        }
        unpolled = 0;
        // Whoever polls next learns of a loss; the host was told.
        let worked = progress.serve().unwrap_or(false);
        if worked {
            backoff.reset();
        }
        let mut next =
            |at_most| if worked { backoff.limit(at_most) } else { backoff.longer(at_most) };
        let replies_wait = try_lock(&progress.service).is_some_and(|service| service.has_backlog());
        if shared.poll_eps() || replies_wait {
            sleep(shared, next(IN_FLIGHT));
        } else if !shared.cq.can_sleep() {
            sleep(shared, next(UNTOLD));
        } else {
            sleep_until_news(shared);
            backoff.reset();
        }
    }
}

/// Sleeps until there is news, unless something was begun meanwhile.
fn sleep_until_news(shared: &Shared) {
    let attendance = &shared.attendance;
    attendance.stop_attending();
    if !shared.poll_eps() {
        // Whoever sleeps on a word that a device writes is woken by this thread's polls alone.
        let is_untold = shared.amos == Amos::Network || shared.handed_over.load(Ordering::Relaxed);
        sleep(shared, if is_untold { UNTOLD } else { LONGEST });
    }
    attendance.attend();
}

/// Sleeps until the service's queue may have news or the timer rings, but not longer than `at_most`.
fn sleep(shared: &Shared, at_most: Duration) {
    let timer = PollFd::new(shared.attendance.timer(), PollFlags::IN);
    match shared.fabric.news(&shared.cq) {
        News::MayBeHere => {}
        News::Untold => shared.attendance.sleep(&mut [timer], at_most),
        News::ToldBy(queue) => {
            let queue = PollFd::from_borrowed_fd(queue, PollFlags::IN);
            shared.attendance.sleep(&mut [timer, queue], at_most);
        }
    }
}
