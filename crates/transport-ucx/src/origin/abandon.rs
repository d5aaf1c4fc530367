//! The end of an origin: after a loss, when UCX may still use memory of callers, or in order.

use super::Origin;
use std::thread;
use std::time::{Duration, Instant};

impl Origin {
    /// After a loss: ends what is in flight, so that UCX uses no caller's memory any more.
    /// Endpoints are closed by force, since UCX cancels receives alone.
    ///
    /// # Errors
    /// How many operations have not ended within the limit.
    pub(crate) fn abandon(&mut self, limit: Duration) -> Result<(), usize> {
        self.gather.forget();
        self.pending.forget_fetched();
        for route in self.routes.iter_mut() {
            self.given_up.extend(route.flush.take());
            if self.worker.closes_by_force()
                && let Some(open) = route.open.take()
            {
                self.given_up.extend(self.worker.close_by_force(&open.endpoint));
                self.closed.push(open);
            }
        }
        let until = Instant::now() + limit;
        while self.unended() > 0 {
            if Instant::now() >= until {
                return Err(self.unended());
            }
            if !self.worker.progress() {
                thread::yield_now();
            }
        }
        let ucp = self.ucp();
        for closed in &mut self.closed {
            closed.endpoint.forget_keys(ucp);
        }
        Ok(())
    }

    /// Returns how many operations UCX is not done with. Requests that have ended are freed.
    pub(crate) fn unended(&mut self) -> usize {
        let ucp = self.ucp();
        self.given_up.retain(|request| {
            let is_in_flight = request.status(ucp).is_none();
            if !is_in_flight {
                request.free(ucp);
            }
            is_in_flight
        });
        self.given_up.len() + self.pending.transfers()
    }

    /// Makes ready for the worker's end, which ends all connections: everything was completed or
    /// given up.
    pub(crate) fn leave(&mut self) {
        self.unended();
        let ucp = self.ucp();
        for route in self.routes.iter_mut() {
            route.flush.take().inspect(|flush| flush.free(ucp));
            if let Some(open) = &mut route.open {
                open.endpoint.forget_keys(ucp);
            }
        }
    }
}
