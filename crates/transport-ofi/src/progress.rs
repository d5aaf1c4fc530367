//! What makes progress on this PE's endpoints: threads that wait in the library, and the service
//! thread.
//!
//! The service thread blocks in the kernel until its completion queue has an event or the flush
//! timer expires. If the provider has no wait object, it sleeps for short intervals instead.

use crate::fabric::WaitObject;
use crate::settings::{self, LIMITS};
use crate::shared::SharedState;
use crate::wire::OfiWire;
use rushmem_system::descriptors::DescriptorWatch;
use rushmem_transport::engine::{Issuers, Issuing, PollingThread};
use rushmem_transport::progress::backoff::WaitLimits;
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::progress::service_thread::{
    Driver, MAX_SLEEP, MAX_SLEEP_IN_FLIGHT, Served, Sleeper,
};
use rushmem_transport::progress::state::ProgressState;
use rushmem_transport::{Amos, Error};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum sleep of a thread if no descriptor signals an event for which threads may wait: without
/// a wait object of the provider, or if a NIC writes words.
const MAX_SLEEP_WITHOUT_WAIT_OBJECT: Duration = Duration::from_millis(1);

/// The fabric of this PE and its issuers. Fields are dropped in this order.
pub(crate) struct Progress {
    pub(crate) issuers: Issuers<OfiWire>,
    pub(crate) shared: Arc<SharedState>,
}

impl Issuing for Progress {
    type Wire = OfiWire;

    fn issuers(&self) -> &Issuers<OfiWire> {
        &self.issuers
    }

    fn poll(&self) -> Result<bool, Error> {
        let state = &self.shared.local.state;
        state.count_poll();
        // A provider over sockets moves hundreds of kilobytes within one poll, which takes long.
        // Counting as a waiter makes the service thread leave the CPU to this thread meanwhile.
        state.enter_wait();
        if self.issuers.finish(PollingThread::Waiter) {
            state.request_flush();
        }
        let worked = self.shared.poll_service();
        state.leave_wait();
        worked
    }
}

impl Progress {
    pub(crate) fn new(shared: SharedState) -> Progress {
        Progress {
            issuers: Issuers::default(),
            shared: Arc::new(shared),
        }
    }

    /// Works as [`Transport::wait`](rushmem_transport::Transport::wait).
    pub(crate) fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        // Long if an event ends the sleep; the service thread polls operations in flight meanwhile.
        // Short if the network carries out atomic operations, since nothing signals a word that a
        // NIC writes. Shortest without a wait object, where this thread has to poll.
        let at_most = match (self.shared.cq.can_sleep(), self.shared.local.amos) {
            (true, Amos::Software) => at_most.min(self.shared.tuning.max_sleep),
            (true, Amos::Network) => at_most.min(MAX_SLEEP_WITHOUT_WAIT_OBJECT),
            (false, _) => at_most.min(LIMITS.sleep),
        };
        let signaled = self.shared.sleep(Some(awaited), at_most, is_over);
        self.poll().map(|worked| worked || signaled)
    }

    /// Wakes threads that sleep, after a poll by the service thread: providers do not report which
    /// memory they have written, and may make progress on all endpoints when one is polled.
    fn wake_sleepers(&self) {
        self.shared.local.state.record_event();
    }

    /// Records that the caller stops polling and sleeps elsewhere. See `Transport::stop_polling`.
    pub(crate) fn stop_polling(&self) {
        self.shared.stopped_polling.store(true, Ordering::Relaxed);
        self.shared.local.state.stop_polling();
        // The service thread may be in a sleep that is too long now that no other thread polls.
        self.shared.local.state.wake();
    }
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.shared.local.state
    }

    fn flush(&self) -> bool {
        let polls = self.issuers.are_any_unfinished();
        let is_left = self.issuers.finish(PollingThread::Service);
        if polls {
            self.wake_sleepers();
        }
        is_left
    }

    fn serve(&self) -> Served {
        // A loss has been reported to the host. The thread that polls next returns the error.
        let served = self.shared.try_serve().unwrap_or(Served::Idle);
        self.wake_sleepers();
        served
    }

    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let shared = &self.shared;
        let object = shared.fabric.wait_object(&shared.cq);
        // `wait_object` may have made progress, as a poll does.
        self.wake_sleepers();
        let queue = match object {
            WaitObject::Ready => return,
            WaitObject::Absent => None,
            WaitObject::Descriptor(queue) => Some(queue),
        };
        if is_left || shared.has_backlog() {
            sleeper.briefly(queue.as_slice(), MAX_SLEEP_IN_FLIGHT);
        } else if queue.is_none() {
            sleeper.briefly(&[], MAX_SLEEP_WITHOUT_WAIT_OBJECT);
        } else {
            // A word that a device writes is not signaled: only a poll by this thread wakes those
            // that sleep on it.
            let is_unsignaled = shared.local.amos == Amos::Network
                || shared.stopped_polling.load(Ordering::Relaxed);
            let at_most = if is_unsignaled {
                MAX_SLEEP_WITHOUT_WAIT_OBJECT
            } else {
                MAX_SLEEP
            };
            sleeper.until(queue.as_slice(), at_most);
        }
    }

    /// Short, since the software providers move data only while they are polled.
    fn longest_backoff(&self) -> Duration {
        WaitLimits::LONGEST
    }

    fn checks(&self) -> impl FnMut() {
        let shared = &self.shared;
        let mut descriptors = DescriptorWatch::default();
        move || {
            // Over sockets, libfabric lets connecting peers wait forever, without an error, if this
            // process has no file descriptor left.
            if shared.fabric.info.sockets && descriptors.is_over(shared.local.state.timer()) {
                shared.local.loss.of_self(&settings::no_descriptors());
            }
        }
    }
}
