//! What makes progress on this PE's endpoints: threads that wait in the library, and the service
//! thread.
//!
//! The service thread blocks in the kernel until its completion queue has an event or the flush
//! timer expires. If the provider has no wait object, it sleeps for short intervals instead.

use crate::fabric::WaitObject;
use crate::quirks::Quirk;
use crate::settings::{self, LIMITS};
use crate::shared::SharedState;
use crate::transport::open_ep;
use crate::wire::OfiWire;
use rushmem_system::descriptors::DescriptorWatch;
use rushmem_system::lock::lock;
use rushmem_transport::engine::Issuers;
use rushmem_transport::engine::driver::{
    Driver, MAX_SLEEP, MAX_SLEEP_IN_FLIGHT, Progress, Served, Sleeper, Woken,
};
use rushmem_transport::progress::backoff::{UNSIGNALED_SLEEP, WaitLimits};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{Amos, EndpointUser, Error};
use std::sync::Arc;
use std::time::Duration;

/// Maximum sleep of a thread if no descriptor signals an event for which threads may wait: without
/// a wait object of the provider, or if a NIC writes words. A longer sleep would delay these
/// threads; a shorter one would take more CPU time from the program.
const MAX_SLEEP_WITHOUT_WAIT_OBJECT: Duration = Duration::from_millis(1);

impl SharedState {
    /// Wakes threads that sleep, after a poll by the service thread: providers do not report which
    /// memory they have written, and may make progress on all endpoints when one is polled.
    fn wake_sleepers(&self) {
        // Not only `try_serve` polls: `wait_object` and the eps of unfinished issuers do, too.
        self.local.host.arrived(0);
        self.local.state.record_event();
    }
}

impl Driver for SharedState {
    type Wire = OfiWire;

    fn open_wire(self: &Arc<Self>, _: EndpointUser) -> Result<OfiWire, Error> {
        self.local.loss.check()?;
        Ok(OfiWire::new(self, open_ep(self)?, self.replies.add()))
    }

    fn poll(&self, issuers: &Issuers<OfiWire>) -> Result<bool, Error> {
        let state = &self.local.state;
        state.count_poll();
        // A provider over sockets moves hundreds of kilobytes within one poll, which takes long.
        // Counting as a waiter makes the service thread leave the CPU to this thread meanwhile.
        state.enter_wait();
        if issuers.finish_in_wait() {
            state.request_flush();
        }

        let worked = self.poll_service();
        state.leave_wait();
        worked
    }

    fn flush(&self, issuers: &Issuers<OfiWire>) -> bool {
        // Unfinished issuers poll their eps.
        let is_ep_polled = issuers.are_any_unfinished();
        let is_left = issuers.finish_in_service();
        if is_ep_polled {
            self.wake_sleepers();
        }
        is_left
    }

    fn serve(&self) -> Served {
        // A loss has been reported to the host. The thread that polls next returns the error.
        let served = self.try_serve().unwrap_or(Served::Idle);
        self.wake_sleepers();
        served
    }

    fn sleep(&self, _: &Issuers<OfiWire>, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let object = self.fabric.wait_object(&self.cq);
        // `wait_object` may have made progress, as a poll does.
        self.wake_sleepers();

        let queue = match object {
            WaitObject::Ready => return,
            WaitObject::Absent => None,
            WaitObject::Descriptor(queue) => Some(queue),
        };

        if is_left || self.has_backlog() {
            sleeper.briefly_unless_stalled(queue.as_slice(), MAX_SLEEP_IN_FLIGHT);
        } else if queue.is_none() {
            sleeper.briefly(&[], MAX_SLEEP_WITHOUT_WAIT_OBJECT);
        } else {
            // A word that a device writes is not signaled: only a poll by this thread wakes those
            // that sleep on it.
            let at_most = if self.local.amos == Amos::Network {
                MAX_SLEEP_WITHOUT_WAIT_OBJECT
            } else if self.local.state.any_elsewhere() {
                MAX_SLEEP_WITHOUT_WAIT_OBJECT.max(sleeper.stalled())
            } else {
                MAX_SLEEP
            };
            sleeper.until(queue.as_slice(), at_most);
        }
    }

    fn sleep_in_wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Woken {
        // Long if an event ends the sleep; the service thread polls operations in flight meanwhile.
        // Short if the network carries out atomic operations, since nothing signals a word that a
        // NIC writes. Shortest without a wait object, where this thread has to poll.
        let longest = if !self.cq.can_sleep() {
            LIMITS.sleep
        } else if self.local.amos == Amos::Network {
            MAX_SLEEP_WITHOUT_WAIT_OBJECT
        } else {
            self.tuning.max_sleep
        };

        if self.sleep_until_event(Some(awaited), at_most.min(longest), is_over) {
            Woken::ByEvent
        } else {
            Woken::ToPoll
        }
    }

    /// Short while data are in flight, since the software providers move them only while they are
    /// polled.
    fn longest_backoff(&self, issuers: &Issuers<OfiWire>) -> Duration {
        if issuers.moves_data() || self.has_backlog() {
            WaitLimits::LONGEST
        } else {
            UNSIGNALED_SLEEP
        }
    }

    fn checks(&self) -> impl FnMut() {
        let mut descriptors = DescriptorWatch::default();
        move || {
            // Over sockets, libfabric lets connecting peers wait forever, without an error, if this
            // process has no file descriptor left.
            if self.fabric.info.sockets && descriptors.is_over(self.local.state.timer()) {
                self.local.loss.of_self(&settings::no_descriptors());
            }
        }
    }

    fn leave(progress: &Arc<Progress<SharedState>>) {
        let shared = progress.network();
        if shared.fabric.info.has(Quirk::FailsAtClose) {
            // Registrations can be closed, and must be: their memory is freed after this call. The
            // leaked reference keeps everything else open until the process ends.
            lock(&shared.registrations).clear();
            std::mem::forget(Arc::clone(progress));
        }
    }
}
