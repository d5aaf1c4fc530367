//! An origin that has issued one operation, which the network carries out.

use super::wire::{Network, NextEvent, TestWire, Wire, WireNetwork};
use crate::Error;
use std::sync::Arc;
use std::task::Waker;

/// Stands for the engine's `Origin`, whose lock and tasks are modeled.
pub(crate) struct Origin<W: Wire> {
    pub(crate) caps: Caps,
    pub(crate) tasks: Vec<Waker>,
    pub(crate) network: Arc<W::Network>,
    /// The operation is complete only once a poll has found that.
    must_be_polled: bool,
    /// A poll has found the operation complete.
    is_complete: bool,
}

pub(crate) struct Caps {
    pub(crate) flushes_in_wait: bool,
}

impl Origin<TestWire> {
    pub(crate) fn new(must_be_polled: bool, network: Arc<Network>) -> Self {
        Origin {
            caps: Caps {
                flushes_in_wait: true,
            },
            tasks: Vec::new(),
            network,
            must_be_polled,
            is_complete: false,
        }
    }
}

impl<W: Wire> Origin<W> {
    /// Polls the network. Returns true if there was work.
    pub(crate) fn advance(&mut self, _: bool) -> Result<bool, Error> {
        let worked = !self.is_complete && self.network.is_complete();
        self.is_complete |= worked;
        Ok(worked)
    }

    pub(crate) fn is_quiet(&mut self) -> Result<bool, Error> {
        self.advance(true)?;
        Ok(self.is_complete)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(crate) fn must_be_polled(&self) -> bool {
        !self.tasks.is_empty() || self.must_be_polled && !self.is_complete
    }

    pub(crate) fn may_end_in_wait(&self) -> bool {
        true
    }

    pub(crate) fn awaits_acks(&self) -> bool {
        false
    }

    pub(crate) fn next_event(&self) -> NextEvent {
        self.network.arm();
        if self.network.is_complete() {
            NextEvent::Unsignaled
        } else {
            NextEvent::OfNetwork
        }
    }

    pub(crate) fn send_old_batches(&mut self) {}

    pub(crate) fn moves_data(&self) -> bool {
        !self.is_complete
    }

    pub(crate) fn abandon(&mut self) -> Result<(), String> {
        unreachable!("no PE is lost")
    }
}
