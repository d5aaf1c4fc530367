//! What every provider keeps of this PE, for its endpoints and its service thread.

use super::acks::Acks;
use super::loss::Loss;
use super::progress_state::ProgressState;
use super::segments::Segments;
use crate::{Amos, Host, Pe};
use std::sync::Arc;

/// This PE, as its network knows it. `X` is what a provider knows of a segment.
pub struct NetworkPe<X = ()> {
    /// Its number.
    pub me: Pe,
    /// Who carries out atomic operations.
    pub amos: Amos,
    /// The interface to the runtime.
    pub host: Arc<dyn Host>,
    /// What threads that wait and the service thread know of each other.
    pub state: ProgressState,
    /// The first loss.
    pub loss: Loss,
    /// The acknowledgments between this PE's streams of requests and those of the others.
    pub acks: Arc<Acks>,
    /// The memory that peers may use.
    pub segments: Arc<Segments<X>>,
}
