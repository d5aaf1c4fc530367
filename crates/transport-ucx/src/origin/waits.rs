//! How an origin waits: it polls its worker and, at times, the service.

use super::Origin;
use crate::shared::SharedState;
use crate::ucp::{UcpRequest, said};
use rushmem_transport::kit::backoff::Backoff;
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::wait::{Waiter, wait};
use rushmem_transport::{Error, Host, Pe};
use std::time::Duration;

/// Polls of a spinning waiter per poll of the service, since the reply is likely to come to its own
/// worker.
const POLLS_PER_SERVICE: u32 = 4;

/// An origin whose owner waits.
struct Waiting<'a> {
    origin: &'a mut Origin,
    shared: &'a SharedState,
    /// The PE that it waits for, if it is one.
    towards: Option<Pe>,
}

impl Waiter for Waiting<'_> {
    fn state(&self) -> &ProgressState {
        &self.shared.state
    }

    fn poll(&mut self, _: bool, backoff: &mut Backoff) -> Result<bool, Error> {
        let worked = self.origin.progress(self.shared)?;
        Ok(worked || backoff.is_in_turn(POLLS_PER_SERVICE) && self.shared.serve())
    }

    fn sleep(&mut self, at_most: Duration) {
        self.shared.sleep(Some(&self.origin.worker), at_most);
    }

    fn in_flight(&self) -> u64 {
        (self.origin.pending.in_flight() + self.origin.gather.n_operations()) as u64
    }

    fn host(&self) -> &dyn Host {
        &*self.shared.host
    }

    fn awaited(&self) -> Vec<Pe> {
        match self.towards {
            Some(pe) => vec![pe],
            None => self.origin.touched.iter().map(|&pe| Pe(pe)).collect(),
        }
    }
}

impl Origin {
    /// Waits until `ready`, and serves peers meanwhile. `towards` is the PE that is waited for.
    pub(super) fn until(
        &mut self,
        shared: &SharedState,
        towards: Option<Pe>,
        mut ready: impl FnMut(&mut Origin) -> bool,
    ) -> Result<(), Error> {
        let ready = |this: &mut Waiting<'_>| Ok(ready(this.origin).then_some(()).into());
        wait(&mut Waiting { origin: self, shared, towards }, ready)
    }

    /// Waits until an operation has ended.
    pub(super) fn end(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        request: Option<UcpRequest>,
    ) -> Result<(), Error> {
        let Some(request) = request else { return Ok(()) };
        let ucp = self.ucp();
        let mut status = None;
        let waited = self.until(shared, Some(pe), |_| {
            status = request.status(ucp);
            status.is_some()
        });
        if let Err(error) = waited {
            self.given_up.push(request);
            return Err(error);
        }
        request.free(ucp);
        match status {
            Some(Err(status)) => Err(shared.lose(pe, &said(ucp, status))),
            _ => Ok(()),
        }
    }

    /// Waits until there is room for one more.
    #[inline]
    pub(super) fn room(&mut self, shared: &SharedState) -> Result<(), Error> {
        let max = shared.tuning.max_in_flight;
        if self.pending.in_flight() < max {
            return Ok(());
        }
        shared.state.count_retry();
        self.until(shared, None, |origin| origin.pending.in_flight() < max)
    }
}
