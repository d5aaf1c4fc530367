//! Progress on the sockets of this PE, by threads that wait in the library and by the service
//! thread.

use crate::link::PeerLink;
use crate::shared::SharedState;
use crate::wire::TcpWire;
use rushmem_system::lock::{lock, try_lock};
use rushmem_transport::engine::service_thread::{
    Driver, MAX_SLEEP_IN_FLIGHT, Progress, Served, Sleeper, Woken,
};
use rushmem_transport::engine::{Issuers, WireNetwork};
use rushmem_transport::progress::backoff::{FLUSH_DELAY, WaitLimits};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{EndpointUser, Error};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of idle polls that take as long as receiving a message and sending the next one.
const POLLS_PER_MESSAGE: u64 = 8;

impl SharedState {
    /// Sends queued data and serves peers, unless another thread does, on behalf of a thread that
    /// waits. Returns true if there was work for peers.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        let state = &self.local().state;
        state.count_poll();
        if self.send_held_back() {
            state.request_flush();
        }

        let worked =
            try_lock(&self.service).is_some_and(|mut service| self.serve_next(&mut service));
        if worked && !state.oversubscribed() {
            state.add_polls(POLLS_PER_MESSAGE);
        }

        self.local().loss.check()?;
        Ok(worked)
    }
}

impl Driver for SharedState {
    type Wire = TcpWire;

    fn open_wire(self: &Arc<Self>, user: EndpointUser) -> Result<TcpWire, Error> {
        Ok(TcpWire::new(self, user))
    }

    fn poll(&self, issuers: &Issuers<TcpWire>) -> Result<bool, Error> {
        if issuers.finish_in_wait() {
            self.local().state.request_flush();
        }
        self.poll_service()
    }

    fn flush(&self, issuers: &Issuers<TcpWire>) -> bool {
        let is_left = issuers.finish_in_service();
        self.send_held_back() || is_left
    }

    fn serve(&self) -> Served {
        match try_lock(&self.service) {
            Some(mut service) => self.serve_all(&mut service),
            None => Served::Contended,
        }
    }

    fn sleep(&self, _: &Issuers<TcpWire>, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let sockets = [self.epoll.as_fd()];
        if !is_left {
            sleeper.until(&sockets, self.tuning.round);
        } else if self.has_held_back() {
            sleeper.briefly(&sockets, FLUSH_DELAY);
        } else if self.local().state.oversubscribed() {
            // The batches of a thread that is in a call, or has just been in one, are left. That
            // thread needs the CPU, perhaps to connect.
            sleeper.briefly(&sockets, WaitLimits::LONGEST);
        } else {
            sleeper.briefly(&sockets, MAX_SLEEP_IN_FLIGHT);
        }
    }

    fn sleep_in_wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Woken {
        if is_over() || self.sleep_until_data(awaited, at_most) {
            Woken::ToPoll
        } else {
            Woken::ByOthers
        }
    }

    fn longest_backoff(&self, _: &Issuers<TcpWire>) -> Duration {
        self.tuning.round
    }

    fn checks(&self) -> impl FnMut() {
        let mut last = Instant::now();
        move || {
            if last.elapsed() >= self.tuning.round {
                last = Instant::now();
                if let Some(mut service) = try_lock(&self.service) {
                    self.check_limits(&mut service);
                }
            }
        }
    }

    fn leave(progress: &Arc<Progress<SharedState>>) {
        let shared = progress.network();
        for (_, peer) in shared.peers.iter() {
            let mut link = lock(&peer.of_provider.link);
            if let PeerLink::Open(connection) = &mut *link {
                connection.leave();
            }
            *link = PeerLink::closed("this PE has left the job".to_owned());
        }
        lock(&shared.service).leave();
    }
}
