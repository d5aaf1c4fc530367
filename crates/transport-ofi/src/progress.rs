//! Makes progress on this PE's endpoints: by a thread that waits in the library, or by the service
//! thread (`kit::engine`).
//!
//! The service thread blocks in the kernel until its completion queue has an event or the flush
//! timer expires. If the provider has no wait object, it sleeps for short intervals instead.
//!
//! Locking: threads that poll only try the service lock. `while_paused` acquires it, to open
//! resources that must not be opened while the service runs.
//!
//! This module does not interpret completions; see `origin` and `service`.

use crate::ep::FiEndpoint;
use crate::fabric::WaitObject;
use crate::service::{Service, ServiceFailure};
use crate::settings::{DESCRIPTORS, LIMITS};
use crate::shared::SharedState;
use rushmem_transport::Amos;
use rushmem_transport::Error;
use rushmem_transport::descriptors::DescriptorWatch;
use rushmem_transport::kit::engine::{
    Driver, MAX_SLEEP, MAX_SLEEP_IN_FLIGHT, Served, Sleeper, flush_or_request,
};
use rushmem_transport::kit::lock::{lock, try_lock};
use rushmem_transport::kit::progress_state::ProgressState;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum sleep of any thread if the provider cannot signal events through a file descriptor.
const MAX_SLEEP_WITHOUT_WAIT_OBJECT: Duration = Duration::from_millis(1);

/// One PE's share in the fabric, with what serves its peers, which is dropped last.
pub(crate) struct Progress {
    pub(crate) shared: SharedState,
    service: Mutex<Service>,
}

impl Progress {
    pub(crate) fn new(shared: SharedState, service: Service) -> Progress {
        Progress { shared, service: Mutex::new(service) }
    }

    /// Does something with the service's ep while the service does not run.
    pub(crate) fn while_paused<T>(&self, act: impl FnOnce(&FiEndpoint) -> T) -> T {
        act(lock(&self.service).ep())
    }

    /// Polls all endpoints with operations in flight and the service, unless other threads do;
    /// returns whether there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        let state = &self.shared.state;
        state.polled();
        // A provider over sockets moves hundreds of kilobytes within one poll.
        state.enter_wait();
        flush_or_request(self);
        let worked = self.poll_service();
        state.leave_wait();
        worked
    }

    /// Serves peers, if no other thread does; returns whether there was work.
    ///
    /// # Errors
    /// When a PE was lost, now or before.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        let handed_over = &self.shared.handed_over;
        if handed_over.load(Ordering::Relaxed) {
            handed_over.store(false, Ordering::Relaxed);
        }
        let served = self.try_serve()?;
        self.shared.loss.check().map(|()| served == Served::Worked)
    }

    fn try_serve(&self) -> Result<Served, Error> {
        let Some(mut service) = try_lock(&self.service) else { return Ok(Served::Contended) };
        let worked = service.poll(&self.shared);
        drop(service);
        // The provider itself may have written to this PE's memory, which nothing signals.
        self.shared.host.arrived();
        match worked {
            Ok(true) => Ok(Served::Worked),
            Ok(false) => Ok(Served::Idle),
            Err(ServiceFailure::Ep(failure)) => Err(self.shared.lose(&failure)),
            Err(ServiceFailure::Message(message)) => Err(self.shared.refuse(&message)),
        }
    }

    /// Polls, and if there was nothing to do sleeps until there may be, for `at_most` at the
    /// longest.
    ///
    /// # Errors
    /// When a PE was lost.
    pub(crate) fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        if self.poll()? {
            return Ok(true);
        }
        // The service thread polls what is in flight while this thread sleeps. Without a wait
        // object this thread polls by itself; and nothing signals what a NIC writes.
        let at_most = match (self.shared.cq.can_sleep(), self.shared.amos) {
            (true, Amos::Software) => at_most,
            (true, Amos::Network) => at_most.min(MAX_SLEEP_WITHOUT_WAIT_OBJECT),
            (false, _) => at_most.min(LIMITS.sleep),
        };
        let signaled = self.shared.sleep(at_most);
        self.poll().map(|worked| worked || signaled)
    }

    /// The caller sleeps elsewhere from now on.
    pub(crate) fn hand_over(&self) {
        self.shared.handed_over.store(true, Ordering::Relaxed);
        self.shared.state.hand_over();
        // The service thread may be in a sleep that is longer than the caller's may be.
        self.shared.state.wake();
    }
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.shared.state
    }

    fn flush(&self) -> bool {
        self.shared.poll_eps()
    }

    fn serve(&self) -> Served {
        // The host knows of a loss; the thread that polls next gets the error.
        self.try_serve().unwrap_or(Served::Idle)
    }

    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let shared = &self.shared;
        let queue = match shared.fabric.wait_object(&shared.cq) {
            WaitObject::Ready => return,
            WaitObject::Absent => None,
            WaitObject::Descriptor(queue) => Some(queue),
        };
        let replies_wait = || try_lock(&self.service).is_some_and(|service| service.has_backlog());
        if is_left || replies_wait() {
            sleeper.briefly(queue.as_slice(), MAX_SLEEP_IN_FLIGHT);
        } else if queue.is_none() {
            sleeper.briefly(&[], MAX_SLEEP_WITHOUT_WAIT_OBJECT);
        } else {
            // Only polls of this thread wake a thread that sleeps on a word that a device writes.
            let is_unsignaled =
                shared.amos == Amos::Network || shared.handed_over.load(Ordering::Relaxed);
            let at_most = if is_unsignaled { MAX_SLEEP_WITHOUT_WAIT_OBJECT } else { MAX_SLEEP };
            sleeper.until(queue.as_slice(), at_most);
        }
    }

    fn checks(&self) -> impl FnMut() {
        let shared = &self.shared;
        let mut descriptors = DescriptorWatch::default();
        move || {
            // Over sockets, libfabric lets peers that connect wait forever if it has none left.
            if shared.fabric.facts.sockets && descriptors.is_over(shared.state.timer()) {
                shared.loss.of_self(&DESCRIPTORS.exhausted());
            }
        }
    }
}
