//! The state that every provider keeps of this PE, for its endpoints and its service thread.

use super::acks::Acks;
use super::backoff::WaitLimits;
use super::loss::Loss;
use super::progress_state::ProgressState;
use super::segments::Segments;
use crate::{Amos, Host, Open, Pe};
use std::io;
use std::sync::Arc;

/// This PE, as its network knows it. `X` is what a provider knows of a segment.
pub struct NetworkPe<X = ()> {
    /// Its number.
    pub me: Pe,
    /// The party that carries out atomic operations.
    pub amos: Amos,
    /// The interface to the runtime.
    pub host: Arc<dyn Host>,
    /// The state that threads that wait share with the service thread.
    pub state: ProgressState,
    /// The first loss.
    pub loss: Loss,
    /// The acknowledgments between this PE's streams of requests and those of the others.
    pub acks: Acks,
    /// The memory that peers may use.
    pub segments: Segments<X>,
}

impl<X> NetworkPe<X> {
    /// Returns the state of a transport that is opened with these arguments, on a machine of this
    /// name. Its threads wait as `limits` says.
    ///
    /// # Errors
    /// If the kernel refuses a timer.
    pub fn new(
        open: &Open,
        own_host: String,
        limits: &'static WaitLimits,
    ) -> io::Result<NetworkPe<X>> {
        Ok(NetworkPe {
            me: open.pe,
            amos: open.amos,
            host: Arc::clone(&open.host),
            state: ProgressState::new(limits, open.cpus_per_pe)?,
            loss: Loss::new(open.pe, own_host, Arc::clone(&open.host)),
            acks: Acks::new(open.n_pes),
            segments: Segments::default(),
        })
    }
}
