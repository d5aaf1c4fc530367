//! How an endpoint waits: it polls its ep and, at times, the service, and confirms after a long
//! wait that the PEs that owe something are still there.

use super::OfiEndpoint;
use crate::ep::{EpFailure, FiEndpoint};
use rushmem_transport::kit::backoff::Backoff;
use rushmem_transport::kit::lock::lock;
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::wait::{Attempt, Waiter, wait};
use rushmem_transport::{Error, Host, Pe};
use std::time::Duration;

/// Polls of the ep between two polls of the service, while no reply is due.
const POLLS_PER_SERVICE: u32 = 16;
/// After a sleep of this length without any event, the peer of a wait is checked, and again after
/// as long.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(1);

impl Waiter for OfiEndpoint {
    fn state(&self) -> &ProgressState {
        &self.shared().state
    }

    fn poll(&mut self, mut worked: bool, backoff: &mut Backoff) -> Result<bool, Error> {
        if backoff.since_first_sleep() > UNCONFIRMED_AFTER {
            backoff.forget_sleep();
            self.confirm()?;
        }
        self.state().polled();
        self.polls = self.polls.wrapping_add(1);
        let in_turn = self.polls.is_multiple_of(POLLS_PER_SERVICE);
        let is_expected = self.awaits_ack || self.any_due();
        if is_expected || in_turn || self.state().oversubscribed() {
            let served = self.progress.poll_service();
            worked |= self.or_close(served)?;
        }
        worked |= self.collect()?;
        if worked {
            backoff.forget_sleep();
        }
        Ok(worked)
    }

    fn sleep(&mut self, at_most: Duration) {
        self.shared().sleep(at_most);
    }

    fn in_flight(&self) -> u64 {
        let of_ep = lock(&self.ep.ep).as_ref().map_or(0, FiEndpoint::in_flight);
        let requests = self.requests();
        u64::from(of_ep) + (requests.due.len() + requests.gather.n_operations()) as u64
    }

    fn host(&self) -> &dyn Host {
        &*self.shared().host
    }

    fn awaited(&self) -> Vec<Pe> {
        self.owing().into_iter().map(Pe).collect()
    }
}

impl OfiEndpoint {
    /// Does `step` until it yields something; everything works meanwhile. `towards` is who is
    /// waited for.
    pub(super) fn until<T>(
        &mut self,
        towards: Option<u32>,
        mut step: impl FnMut(&mut FiEndpoint) -> Result<Option<T>, EpFailure>,
    ) -> Result<T, Error> {
        self.wait_for(towards, |this| {
            this.with_ep(|ep| {
                // The first time there is most often room, and nothing to take.
                if let Some(done) = step(ep)? {
                    return Ok(Attempt::Done(done));
                }
                match ep.poll(|_| ())? {
                    0 => Ok(Attempt::Idle),
                    _ => Ok(step(ep)?.map_or(Attempt::Worked, Attempt::Done)),
                }
            })
        })
    }

    /// Repeats an attempt until it is done; everything works meanwhile. `towards` is the PE that is
    /// waited for.
    pub(super) fn wait_for<T>(
        &mut self,
        towards: Option<u32>,
        attempt: impl FnMut(&mut OfiEndpoint) -> Result<Attempt<T>, Error>,
    ) -> Result<T, Error> {
        self.towards = towards;
        wait(self, attempt)
    }

    /// Completes everything.
    pub(crate) fn complete(&mut self) -> Result<(), Error> {
        // Ask before waiting.
        self.ask_for_acks()?;
        self.all_completed()?;
        self.flush(None)?;
        self.due_at_most(0, |_| true)?;
        self.all_carried_out()?;
        self.settle();
        self.check()
    }

    /// Polls the ep and sends what found no room; whether there was work.
    pub(super) fn poll_ep<T>(&mut self) -> Result<Attempt<T>, Error> {
        self.ep.send_unsent().map_err(|failure| self.give_up(&failure))?;
        let taken = self.with_ep(|ep| ep.poll(|_| ()))?;
        Ok(if taken > 0 { Attempt::Worked } else { Attempt::Idle })
    }

    /// The PEs that owe something that is waited for.
    fn owing(&self) -> Vec<u32> {
        let due = self.requests().due.iter().map(|due| due.pe).collect::<Vec<_>>();
        let mut owing: Vec<u32> = due.into_iter().chain(self.towards).collect();
        owing.sort_unstable();
        owing.dedup();
        owing
    }

    /// After a long wait: whether the PEs that owe something are there at all. Not every provider
    /// says so when a message is lost; a read that fails does.
    fn confirm(&mut self) -> Result<(), Error> {
        for pe in self.owing() {
            let from = self.shared().some_byte(pe);
            let confirmed = self.shared().confirm(pe);
            confirmed.map_err(|failure| self.give_up(&failure))?;
            self.with_ep(|ep| {
                if let Some(from) = from
                    && ep.pending(pe) == 0
                    && ep.is_connected(pe)
                {
                    let started = ep.read_and_forget(&from);
                    started.map_err(|code| EpFailure {
                        pe: Some(pe),
                        why: ep.why_refused(pe, code),
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
