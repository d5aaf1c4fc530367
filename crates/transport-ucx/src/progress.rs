//! What makes progress on the workers of this PE: threads that wait in the library, and the service
//! thread.

use crate::shared::SharedState;
use crate::wire::UcxWire;
use rushmem_system::lock::lock;
use rushmem_transport::engine::Issuers;
use rushmem_transport::engine::driver::{
    Driver, MAX_SLEEP, MAX_SLEEP_IN_FLIGHT, Progress, Served, Sleeper, Woken,
};
use rushmem_transport::progress::backoff::{FLUSH_DELAY, UNSIGNALED_SLEEP, WaitLimits};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{EndpointUser, Error};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

impl Driver for SharedState {
    type Wire = UcxWire;

    fn open_wire(self: &Arc<Self>, _: EndpointUser) -> Result<UcxWire, Error> {
        UcxWire::new(self).map_err(Error::Unavailable)
    }

    fn poll(&self, issuers: &Issuers<UcxWire>) -> Result<bool, Error> {
        issuers.finish_in_wait();
        let worked = self.serve_for_waiter();
        self.local.loss.check()?;
        Ok(worked)
    }

    fn flush(&self, issuers: &Issuers<UcxWire>) -> bool {
        issuers.finish_in_service()
    }

    /// Serves until there is no more work, since the worker can be armed only then.
    fn serve(&self) -> Served {
        let first = self.try_serve();
        if first == Served::Worked {
            while self.try_serve() == Served::Worked {}
        }
        first
    }

    fn sleep(&self, issuers: &Issuers<UcxWire>, is_left: bool, sleeper: &mut Sleeper<'_>) {
        if self.arm() != Some(true) {
            // There is an event already, or another thread is serving.
            return;
        }

        let service = self.service_efd();
        if is_left {
            // The threads that use these workers will poll them, but may have no CPU at present.
            let at_most = self.longest_backoff(issuers).min(WaitLimits::LONGEST);
            return sleeper.briefly(&[service], at_most);
        }

        let Some(events) = issuers.events() else {
            // Another thread is polling an unfinished issuer, and may leave it unfinished.
            return sleeper.briefly(&[service], FLUSH_DELAY);
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![service];
        descriptors.extend(events.iter().map(AsFd::as_fd));
        sleeper.until(&descriptors, MAX_SLEEP);
    }

    fn sleep_in_wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Woken {
        let at_most = at_most.min(self.tuning.max_sleep);
        self.sleep_until_event(None, awaited, at_most, is_over);
        Woken::ToPoll
    }

    /// Shorter while data are in flight: over sockets, UCX moves data only while it is polled.
    fn longest_backoff(&self, issuers: &Issuers<UcxWire>) -> Duration {
        if issuers.moves_data() {
            MAX_SLEEP_IN_FLIGHT
        } else {
            UNSIGNALED_SLEEP
        }
    }

    /// Checks nothing: UCX itself detects failures.
    fn checks(&self) -> impl FnMut() {
        || ()
    }

    fn leave(progress: &Arc<Progress<SharedState>>) {
        progress
            .issuers()
            .each(|issuer| lock(&issuer.origin).wire().leave());
    }
}
