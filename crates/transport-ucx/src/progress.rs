//! What makes progress on the workers of this PE: threads that wait in the library, and the service
//! thread.

use crate::settings::WORKERS;
use crate::shared::SharedState;
use crate::wire::UcxWire;
use rushmem_system::lock::lock;
use rushmem_transport::Error;
use rushmem_transport::engine::{Issuer, Issuers, Issuing, Origin, PollingThread};
use rushmem_transport::progress::backoff::{FLUSH_DELAY, UNSIGNALED_SLEEP, WaitLimits};
use rushmem_transport::progress::service_thread::{
    Driver, MAX_SLEEP, MAX_SLEEP_IN_FLIGHT, Served, Sleeper,
};
use rushmem_transport::progress::state::ProgressState;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The issuers and the shared state of this PE. Fields are dropped in this order.
pub(crate) struct Progress {
    issuers: Issuers<UcxWire>,
    pub(crate) shared: Arc<SharedState>,
}

impl Progress {
    pub(crate) fn new(shared: SharedState) -> Progress {
        Progress {
            issuers: Issuers::default(),
            shared: Arc::new(shared),
        }
    }

    /// Returns an issuer for a new endpoint, and counts the endpoint among its users.
    pub(crate) fn issuer(&self) -> Result<Arc<Issuer<UcxWire>>, Error> {
        let shared = &self.shared;
        let make = || {
            let wire = UcxWire::new(shared).map_err(Error::Unavailable)?;
            Ok(Origin::new(wire, Arc::clone(shared)))
        };
        self.issuers
            .issuer((shared.tuning.max_workers, WORKERS), make)
    }

    /// Prepares all wires for the end of their workers.
    pub(crate) fn leave(&self) {
        self.issuers
            .each(|issuer| lock(&issuer.origin).wire().leave());
    }
}

impl Issuing for Progress {
    type Wire = UcxWire;

    fn issuers(&self) -> &Issuers<UcxWire> {
        &self.issuers
    }

    fn poll(&self) -> Result<bool, Error> {
        self.issuers.finish(PollingThread::Waiter);
        let worked = self.shared.serve();
        self.shared.local.loss.check().map(|()| worked)
    }
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.shared.local.state
    }

    fn flush(&self) -> bool {
        self.issuers.finish(PollingThread::Service)
    }

    /// Serves until there is no more work, since the worker can be armed only then.
    fn serve(&self) -> Served {
        let mut result = self.shared.try_serve();
        let mut last = result;
        while last == Served::Worked {
            last = self.shared.try_serve();
            result = Served::Worked;
        }
        result
    }

    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let service = self.shared.service_efd();
        if self.shared.arm() != Some(true) {
            // There is an event already, or another thread is serving.
        } else if is_left {
            // The threads that use these workers will poll them, but may have no CPU at present.
            let at_most = self.longest_backoff().min(WaitLimits::LONGEST);
            sleeper.briefly(&[service], at_most);
        } else {
            // Another thread is polling an unfinished issuer, and may leave it unfinished.
            let Some(events) = self.issuers.events() else {
                return sleeper.briefly(&[service], FLUSH_DELAY);
            };
            let events = events.iter().map(AsFd::as_fd);
            let events: Vec<BorrowedFd<'_>> = [service].into_iter().chain(events).collect();
            sleeper.until(&events, MAX_SLEEP);
        }
    }

    /// Shorter while data are in flight: over sockets, UCX moves data only while it is polled.
    fn longest_backoff(&self) -> Duration {
        if self.issuers.moves_data() {
            MAX_SLEEP_IN_FLIGHT
        } else {
            UNSIGNALED_SLEEP
        }
    }
}
