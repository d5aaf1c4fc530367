//! Limits, and who carries out atomic operations. Tests change them; users only the latter.

use rushmem_transport::descriptors::PerPeer;

/// Connections of two workers to a peer and of a peer's two to this PE, and one back for each of these.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(6);
/// Fewer are not enough for a small job; UCX crashes then.
pub(crate) const LEAST_DESCRIPTORS: u64 = 128;

/// Who carries out the atomic operations on the symmetric heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Amos {
    /// The target's CPU, asked by messages.
    Software,
    /// Whoever UCX has do it: the network's cards, where they can do all of them.
    Network,
}

/// Limits of a transport.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// No more transfers and atomic operations than this are under way on a context.
    pub most_under_way: usize,
    /// No more workers than this; contexts beyond share them.
    pub most_workers: usize,
    /// Instead of what the environment and UCX say.
    pub amos: Option<Amos>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { most_under_way: 1024, most_workers: 32, amos: None }
    }
}

impl Tuning {
    /// So small that everything waits for everything, for tests.
    pub fn tiny() -> Tuning {
        Tuning { most_under_way: 2, most_workers: 2, ..Tuning::default() }
    }
}
