//! What all endpoints and the service thread of a PE share: the peers, the first loss, the worker that serves the peers, and how
//! to wait beside it.
//!
//! Locks: the service is only ever tried, never waited for. This file must never know who issues, nor what.

use crate::connect::{self, Peer};
use crate::service::Service;
use crate::settings::Tuning;
use crate::ucp::{Context, Worker};
use rushmem_transport::kit::answers::Answers;
use rushmem_transport::kit::attendance::Attendance;
use rushmem_transport::kit::backoff::{
    Backoff, BackoffLimits, Pause, ServiceBackoff, ServiceBackoffLimits,
};
use rushmem_transport::kit::lock::try_lock;
use rushmem_transport::kit::loss::Loss;
use rushmem_transport::kit::peers::Peers;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::timer::sleep_on;
use rushmem_transport::{Amos, Error, Host, Open, Pe};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a context leaves unfinished is attended to within about this time.
pub(crate) const SOON: Duration = Duration::from_micros(50);

/// A waiter spins for some tens of microseconds, since a poll is a function call into UCX.
const BACKOFF: BackoffLimits = BackoffLimits { spins: 200, yields: 100, yields_oversubscribed: 20 };
/// A waiter that spins serves peers every so many polls: what it waits for is likely to come to its own worker.
const POLLS_PER_SERVICE: u32 = 4;
/// Longest sleep of a waiter: whatever may end the wait wakes it.
const SLEEP: Duration = Duration::from_millis(10);

/// Whoever has waited for longer than the longest sleep hands over. Who polls more than 10 times within the shortest sleep, or
/// a quarter as often in longer ones, waits; others just pass by.
pub(crate) const SERVICE_BACKOFF: ServiceBackoffLimits = ServiceBackoffLimits {
    shortest: SOON,
    often: Duration::from_micros(20),
    min_polls: 11,
    longest: Duration::from_millis(2),
    longest_asleep: Duration::from_millis(20),
};

/// Where PEs share CPUs, a thread that waits polls only when it has one; a service thread that wakes takes it from all of them.
const SERVICE_BACKOFF_OVERSUBSCRIBED: ServiceBackoffLimits =
    ServiceBackoffLimits { often: Duration::from_millis(1), min_polls: 1, ..SERVICE_BACKOFF };

/// One PE's share in the network. Fields are dropped in this order: the worker before the memory that it serves.
pub(crate) struct Shared {
    pub(crate) me: Pe,
    pub(crate) oversubscribed: bool,
    pub(crate) tuning: Tuning,
    pub(crate) amos: Amos,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) peers: Peers<Peer>,
    /// Between this PE's streams of requests and those of the others.
    pub(crate) answers: Arc<Answers>,
    pub(crate) attendance: Attendance,
    pub(crate) loss: Loss,
    service: Mutex<Service>,
    /// The descriptor of its worker.
    service_efd: OwnedFd,
    pub(crate) segments: Arc<Segments>,
    pub(crate) context: Arc<Context>,
}

impl Shared {
    pub(crate) fn new(
        open: &Open,
        tuning: Tuning,
        own_host: String,
        context: Arc<Context>,
        service: Service,
        segments: Arc<Segments>,
    ) -> io::Result<Shared> {
        Ok(Shared {
            me: open.pe,
            oversubscribed: open.oversubscribed,
            tuning,
            amos: open.amos,
            host: Arc::clone(&open.host),
            peers: Peers::new(open.n_pes),
            answers: Arc::clone(service.answers()),
            attendance: Attendance::new()?,
            loss: Loss::new(open.pe, own_host, Arc::clone(&open.host)),
            service_efd: service.worker().efd().try_clone_to_owned()?,
            service: Mutex::new(service),
            segments,
            context,
        })
    }

    /// A PE is gone: from now on everything fails. Returns the first loss.
    pub(crate) fn lose(&self, pe: Pe, why: &str) -> Error {
        let address = self.peers.record(pe).and_then(|record| connect::address(pe, record).ok());
        self.loss.of_peer(pe, address.as_ref().map(|address| &*address.host), why)
    }

    /// A PE has not answered for too long, as `why` says. UCX's addresses are not for people, so
    /// its devices are named.
    pub(crate) fn give_up(&self, pe: Pe, why: &str) {
        let resources = self.context.resources();
        let used: Vec<String> =
            resources.iter().map(|(t, device)| format!("{t} on {device}")).collect();
        let why = format!(
            "{why} (UCX with {}); see whether both hosts let such connections through, or name other devices or \
             transports (UCX_NET_DEVICES, SHMEM_UCX_TLS)",
            used.join(", ")
        );
        self.lose(pe, &why);
    }

    /// A thread that waits serves peers, if nobody else does; returns whether there was work.
    pub(crate) fn serve(&self) -> bool {
        self.attendance.polled();
        self.serve_uncounted()
    }

    /// The same by the service thread.
    pub(crate) fn serve_uncounted(&self) -> bool {
        let worked = try_lock(&self.service).is_some_and(|service| service.poll());
        if worked {
            self.host.arrived();
        }
        worked
    }

    /// Has the service's descriptor tell of what comes; false when there is something to do already, and `None` while
    /// somebody else serves.
    pub(crate) fn arm(&self) -> Option<bool> {
        try_lock(&self.service).map(|service| service.worker().arm())
    }

    /// Readable when a peer asks for something, after [`arm`](Shared::arm).
    pub(crate) fn service_efd(&self) -> BorrowedFd<'_> {
        self.service_efd.as_fd()
    }

    /// How the service thread backs off.
    pub(crate) fn service_backoff(&self) -> ServiceBackoff {
        ServiceBackoff::new(match self.oversubscribed {
            true => SERVICE_BACKOFF_OVERSUBSCRIBED,
            false => SERVICE_BACKOFF,
        })
    }

    /// A wait that begins: until its [`end`](Shared::end) this thread polls.
    pub(crate) fn begin(&self) -> Backoff {
        self.attendance.begin_wait();
        Backoff::new(BACKOFF, self.oversubscribed)
    }

    /// Between two polls of a worker, of which the first found nothing.
    pub(crate) fn pause(&self, backoff: &mut Backoff, worker: &Worker) {
        let pause = backoff.pause();
        let serves = pause != Pause::Spin || backoff.polls().is_multiple_of(POLLS_PER_SERVICE);
        if serves && self.serve() {
            backoff.renew();
        } else {
            pause.take(|| self.sleep(Some(worker), SLEEP));
        }
    }

    /// The wait has ended: after a long one the service thread, which backed off meanwhile, is told that nobody polls.
    pub(crate) fn end(&self, backoff: &Backoff) {
        self.attendance.end_wait();
        if backoff.since_asleep() > SERVICE_BACKOFF.longest {
            self.attendance.hand_over();
        }
    }

    /// Sleeps until there is news of peers or of the worker, but not longer than `at_most`.
    pub(crate) fn sleep(&self, worker: Option<&Worker>, at_most: Duration) {
        let armed = self.arm();
        if armed == Some(false) || worker.is_some_and(|worker| !worker.arm()) {
            return;
        }
        // Whoever serves already may be without a CPU: to wake for what it has not taken yet would keep it so.
        let service = armed.is_some().then(|| self.service_efd());
        let at_most = if service.is_some() { at_most } else { at_most.min(SOON) };
        let fds = service.into_iter().chain(worker.map(Worker::efd));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        self.attendance.fall_asleep();
        sleep_on(&mut fds, at_most);
        self.attendance.wake_up();
    }
}
