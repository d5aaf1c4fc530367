//! The network of this PE, which all its wires share: the connections to peers and the service.

use crate::service::Service;
use crate::shared::SharedState;
use rushmem_transport::engine::{NetworkPe, WireNetwork};
use rushmem_transport::thread::try_lock;
use rushmem_transport::{Error, Pe, Segment};
use std::sync::Mutex;

/// The number of idle polls that take as long as receiving a message and sending the next one,
/// unless PEs outnumber the CPUs.
const POLLS_PER_MESSAGE: u64 = 8;

/// The connections to peers and the service.
pub(crate) struct Network {
    pub(crate) shared: SharedState,
    pub(crate) service: Mutex<Service>,
}

impl Network {
    /// Sends queued data and serves peers, unless another thread does, on behalf of a thread that
    /// waits. Returns true if there was work for peers.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        let (shared, state) = (&self.shared, &self.shared.local().state);
        state.polled();
        if shared.send_held_back() {
            state.request_flush();
        }
        let worked = try_lock(&self.service).is_some_and(|mut service| service.poll(shared));
        if worked && !state.oversubscribed() {
            state.add_polls(POLLS_PER_MESSAGE);
        }
        shared.local().loss.check().map(|()| worked)
    }
}

impl WireNetwork for Network {
    type Extra = ();

    #[inline]
    fn local(&self) -> &NetworkPe {
        self.shared.local()
    }

    #[inline]
    fn nbytes(&self, pe: Pe, segment: Segment) -> Result<u64, Error> {
        Ok(self.shared.peers.get(pe)?.sizes[segment as usize])
    }

    fn host_of(&self, pe: Pe) -> Option<String> {
        self.shared.host_of(pe)
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        self.shared.lose(pe, why)
    }
}
