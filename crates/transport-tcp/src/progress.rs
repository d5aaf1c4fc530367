//! Makes progress on the sockets of this PE: by a thread that waits in the library, or by the
//! service thread (`kit::engine`).
//!
//! Locking: the service is only ever tried, except when this PE leaves.

use crate::service::Service;
use crate::shared::SharedState;
use rushmem_transport::Error;
use rushmem_transport::kit::backoff::FLUSH_DELAY;
use rushmem_transport::kit::engine::{
    Driver, MAX_SLEEP_IN_FLIGHT, Served, Sleeper, flush_or_request,
};
use rushmem_transport::kit::lock::{lock, try_lock};
use rushmem_transport::kit::progress_state::ProgressState;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Instant;

/// The number of idle polls that take as long as receiving a message and sending the next one,
/// unless PEs outnumber the CPUs.
const POLLS_PER_MESSAGE: u64 = 8;

/// One PE's share in the network, with what serves its peers.
pub(crate) struct Progress {
    pub(crate) shared: SharedState,
    service: Mutex<Service>,
}

impl Progress {
    pub(crate) fn new(shared: SharedState, service: Service) -> Progress {
        Progress { shared, service: Mutex::new(service) }
    }

    /// Sends held-back data and serves peers, if no other thread does. Returns true if it worked.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        let shared = &self.shared;
        shared.state.polled();
        flush_or_request(self);
        let worked = try_lock(&self.service).is_some_and(|mut service| service.poll(shared));
        if worked && !shared.state.oversubscribed() {
            shared.state.add_polls(POLLS_PER_MESSAGE);
        }
        shared.loss.check().map(|()| worked)
    }

    /// Accepts no connection any more.
    pub(crate) fn leave(&self) {
        lock(&self.service).leave();
    }
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.shared.state
    }

    fn flush(&self) -> bool {
        self.shared.send_held_back()
    }

    fn serve(&self) -> Served {
        let service = try_lock(&self.service);
        service.map_or(Served::Contended, |mut service| service.poll_all(&self.shared))
    }

    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let sockets = [self.shared.epoll.as_fd()];
        match is_left {
            true if self.shared.only_batches_left() => {
                sleeper.briefly(&sockets, MAX_SLEEP_IN_FLIGHT)
            }
            true => sleeper.briefly(&sockets, FLUSH_DELAY),
            false => sleeper.until(&sockets, self.shared.tuning.round),
        }
    }

    fn checks(&self) -> impl FnMut() {
        let shared = &self.shared;
        let mut last = Instant::now();
        move || {
            if last.elapsed() >= shared.tuning.round {
                last = Instant::now();
                if let Some(mut service) = try_lock(&self.service) {
                    service.look_around(shared);
                }
            }
        }
    }
}
