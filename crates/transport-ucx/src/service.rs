//! The worker to which this PE's peers send requests. While it is polled, UCX carries out their
//! puts and gets, and `target` their messages.
//!
//! One thread at a time does so. This module does not know which thread polls.
#![allow(unsafe_code)]

use crate::target::{BATCH_KIND, REQUEST_KIND, UcxTarget, batched, requested};
use crate::ucp::{UcpContext, Worker};
use rushmem_transport::kit::acks::Acks;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::violation::RefusedMessage;
use rushmem_transport::{Host, Pe};
use std::rc::Rc;
use std::sync::Arc;

/// The service worker.
pub(crate) struct Service {
    worker: Worker,
    /// Dropped after the worker, whose callbacks use it.
    target: Rc<UcxTarget>,
}

// SAFETY: what it shares by `Rc` it shares with its own worker alone, in one thread at a time.
unsafe impl Send for Service {}

impl Service {
    /// Returns the service of PE `me`, for its memory and that of its node.
    pub(crate) fn new(
        context: &Arc<UcpContext>,
        me: Pe,
        memory: (Arc<Segments>, Arc<dyn Host>),
        acks: Arc<Acks>,
    ) -> Result<Service, String> {
        let worker = Worker::new(context)?;
        let target = UcxTarget::new(context.ucp, worker.handle(), me, memory, acks);
        let target = Rc::new(target);
        let arg = Rc::as_ptr(&target).cast_mut().cast();
        // SAFETY: the callback takes a `UcxTarget`, which is dropped after the worker.
        unsafe { worker.on_message(REQUEST_KIND, Some(requested), arg) }?;
        // SAFETY: the callback takes a `UcxTarget`, which is dropped after the worker.
        unsafe { worker.on_message(BATCH_KIND, Some(batched), arg) }?;
        Ok(Service { worker, target })
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(crate) fn acks(&self) -> &Arc<Acks> {
        &self.target.acks
    }

    /// Returns a message that could not be carried out, after a poll.
    pub(crate) fn take_refused(&self) -> Option<RefusedMessage> {
        self.target.take_refused()
    }

    /// Serves peers; returns whether there was anything to do.
    pub(crate) fn poll(&self) -> bool {
        let progressed = self.worker.progress();
        self.target.take_worked() || progressed
    }
}
