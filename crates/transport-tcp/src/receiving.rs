//! The state of this PE that its connections need to receive.

use crate::bounce::BounceBuffers;
use crate::settings::LIMITS;
use rushmem_transport::engine::{NetworkPe, ReplyTable};
use rushmem_transport::{Amos, Open};
use std::io;

/// The segments and acknowledgments of this PE, the replies to its requests, and buffers to receive
/// into.
pub(crate) struct ReceivingPe {
    pub(crate) local: NetworkPe,
    /// The replies to the requests of this PE's origins.
    pub(crate) replies: ReplyTable,
    pub(crate) buffers: BounceBuffers,
}

impl ReceivingPe {
    /// Returns the state of a PE that is opened with these arguments, on host `own_host`.
    pub(crate) fn new(open: &Open, own_host: String) -> io::Result<ReceivingPe> {
        // This CPU carries out the operations of peers.
        let open = Open { amos: Amos::Software, ..open.clone() };
        Ok(ReceivingPe {
            local: NetworkPe::new(&open, own_host, &LIMITS)?,
            replies: ReplyTable::default(),
            buffers: BounceBuffers::default(),
        })
    }

    /// Returns PE 0 of a job of two, without registered memory.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn for_tests() -> ReceivingPe {
        struct LoneHost;
        impl rushmem_transport::Host for LoneHost {}
        let open = Open {
            pe: rushmem_transport::Pe(0),
            n_pes: 2,
            secret: [0; 32],
            one_machine: true,
            cpus_per_pe: 1,
            amos: Amos::Software,
            part: None,
            host: std::sync::Arc::new(LoneHost),
        };
        ReceivingPe::new(&open, "here".to_owned()).expect("a timer")
    }
}
