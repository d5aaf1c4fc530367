//! A network that completes one operation, and the state of a PE that the models need.

use crate::Error;
use crate::wakeup::Wakeup;
use loom::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};
use loom::thread;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The part of the engine's `Wire` that the modeled files use.
pub(crate) trait Wire: Send {
    type Network: WireNetwork;
}

/// Stands for the engine's `WireNetwork`.
pub(crate) trait WireNetwork: Send + Sync {
    fn local(&self) -> &NetworkPe;

    /// Returns true if the operation is complete.
    fn is_complete(&self) -> bool;

    /// Has the completion of the operation ring the service thread, if it is not complete yet.
    fn arm(&self);
}

/// Stands for the engine's `NextEvent`.
#[expect(dead_code, reason = "the network signals events by its own descriptor")]
pub(crate) enum NextEvent {
    Unsignaled,
    OfNetwork,
    On(Arc<OwnedFd>),
}

/// Stands for the engine's `NetworkPe`: the state of a PE in a network.
#[derive(Default)]
pub(crate) struct NetworkPe {
    pub(crate) state: State,
    pub(crate) loss: Loss,
    pub(crate) host: Host,
}

/// The losses of PEs, of which the models have none.
#[derive(Default)]
pub(crate) struct Loss;

impl Loss {
    pub(crate) fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[derive(Default)]
pub(crate) struct Host;

impl Host {
    pub(crate) fn cannot_go_on(&self, _: &Error, _: &str) -> ! {
        unreachable!("no PE is lost")
    }
}

/// What the service thread shares with threads that call.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) wakeup: Wakeup,
    timer: AtomicBool,
    tasks: AtomicUsize,
    closing: AtomicBool,
}

impl State {
    pub(crate) fn request_flush(&self) {
        self.wakeup.request(|| self.ring());
    }

    /// Rings the timer.
    pub(crate) fn ring(&self) {
        // A swap with both orders, since the kernel changes a timer under a lock.
        self.timer.swap(true, AcqRel);
    }

    /// Sleeps until the timer rings. A lost ring is an execution that never ends, which loom
    /// reports.
    pub(crate) fn sleep(&self) {
        while !self.timer.swap(false, AcqRel) {
            thread::yield_now();
        }
    }

    pub(crate) fn add_task(&self) {
        self.tasks.fetch_add(1, Relaxed);
    }

    pub(crate) fn remove_tasks(&self, n: usize) {
        self.tasks.fetch_sub(n, Relaxed);
    }

    pub(crate) fn n_tasks(&self) -> usize {
        self.tasks.load(Relaxed)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Acquire)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Release);
        self.ring();
    }
}

/// A network that carries out an operation without polls, and signals its completion if it is
/// armed.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) local: NetworkPe,
    is_complete: AtomicBool,
    is_armed: AtomicBool,
}

impl Network {
    /// Completes the operation.
    pub(crate) fn complete(&self) {
        self.is_complete.store(true, Release);
        // Either this sees that the network is armed, or who arms it sees the completion.
        fence(SeqCst);
        if self.is_armed.load(Relaxed) {
            self.local.state.ring();
        }
    }
}

impl WireNetwork for Network {
    fn local(&self) -> &NetworkPe {
        &self.local
    }

    fn is_complete(&self) -> bool {
        self.is_complete.load(Acquire)
    }

    fn arm(&self) {
        self.is_armed.store(true, Relaxed);
        fence(SeqCst);
    }
}

pub(crate) struct TestWire;

impl Wire for TestWire {
    type Network = Network;
}
