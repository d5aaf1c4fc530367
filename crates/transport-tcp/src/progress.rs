//! Progress on the sockets of this PE, by threads that wait in the library and by the service
//! thread.

use crate::service::Network;
use crate::wire::TcpWire;
use rushmem_system::lock::try_lock;
use rushmem_transport::Error;
use rushmem_transport::engine::{Issuers, Issuing, PollingThread};
use rushmem_transport::progress::backoff::{FLUSH_DELAY, WaitLimits};
use rushmem_transport::progress::service_thread::{Driver, MAX_SLEEP_IN_FLIGHT, Served, Sleeper};
use rushmem_transport::progress::state::ProgressState;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The network of this PE and its issuers.
pub(crate) struct Progress {
    pub(crate) issuers: Issuers<TcpWire>,
    pub(crate) network: Arc<Network>,
}

impl Issuing for Progress {
    type Wire = TcpWire;

    fn issuers(&self) -> &Issuers<TcpWire> {
        &self.issuers
    }

    fn poll(&self) -> Result<bool, Error> {
        if self.issuers.finish(PollingThread::Waiter) {
            self.state().request_flush();
        }
        self.network.poll()
    }
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.network.shared.local().state
    }

    fn flush(&self) -> bool {
        let is_left = self.issuers.finish(PollingThread::Service);
        self.network.shared.send_held_back() || is_left
    }

    fn serve(&self) -> Served {
        let Network { shared, service } = &*self.network;
        let service = try_lock(service);
        service.map_or(Served::Contended, |mut service| service.poll_all(shared))
    }

    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let shared = &self.network.shared;
        let sockets = [shared.epoll.as_fd()];
        match is_left {
            true if shared.has_unsent() => sleeper.briefly(&sockets, FLUSH_DELAY),
            // The batches of a thread that is in a call, or has just been in one, are left. That
            // thread needs the CPU, perhaps to connect.
            true if self.state().oversubscribed() => sleeper.briefly(&sockets, WaitLimits::LONGEST),
            true => sleeper.briefly(&sockets, MAX_SLEEP_IN_FLIGHT),
            false => sleeper.until(&sockets, shared.tuning.round),
        }
    }

    fn longest_backoff(&self) -> Duration {
        self.network.shared.tuning.round
    }

    fn checks(&self) -> impl FnMut() {
        let Network { shared, service } = &*self.network;
        let mut last = Instant::now();
        move || {
            if last.elapsed() >= shared.tuning.round {
                last = Instant::now();
                if let Some(mut service) = try_lock(service) {
                    service.check_limits(shared);
                }
            }
        }
    }
}
