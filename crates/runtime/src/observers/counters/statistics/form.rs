//! The counters of the PEs in the form in which they cross to PE 0 and go to the file.

use crate::job::Job;
use crate::net::network;
use crate::observers::counters::{ContextCounters, Counters, Tally};
use crate::observers::{AccessKind, CallKind};
use rushmem_transport::NetworkActivity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A number of operations, and their bytes.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Traffic {
    pub(super) operations: u64,
    pub(super) bytes: u64,
}

/// A number of calls, and the time in them.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct CallTime {
    pub(super) calls: u64,
    pub(super) nanoseconds: u64,
}

/// By the names of kinds.
pub(super) type TrafficByKind = BTreeMap<String, Traffic>;

/// The operations issued on the contexts that had one index.
#[derive(Serialize, Deserialize)]
pub(super) struct ContextStatistics {
    pub(super) context: usize,
    pub(super) on_node: TrafficByKind,
    pub(super) off_node: TrafficByKind,
}

/// The operations sent to one PE.
#[derive(Serialize, Deserialize)]
pub(super) struct PeerStatistics {
    pub(super) pe: u32,
    pub(super) operations: u64,
    pub(super) bytes: u64,
}

/// The counters of a PE, without those that are zero.
#[derive(Serialize, Deserialize)]
pub(super) struct PeStatistics {
    pub(super) pe: u32,
    pub(super) node: u32,
    pub(super) calls: BTreeMap<String, CallTime>,
    pub(super) contexts: Vec<ContextStatistics>,
    pub(super) peers: Vec<PeerStatistics>,
    /// The network activity of its threads.
    pub(super) network: BTreeMap<String, u64>,
}

/// The file.
#[derive(Serialize)]
pub(super) struct JobStatistics {
    /// The version of this form.
    version: u32,
    n_pes: u32,
    pes: Vec<PeStatistics>,
}

const VERSION: u32 = 1;

impl PeStatistics {
    pub(super) fn new(job: &Job, counters: &Counters) -> PeStatistics {
        let calls = CallKind::NAMES.iter().zip(&counters.calls).map(|(name, tally)| {
            let (calls, nanoseconds) = tally.read();
            ((*name).to_owned(), CallTime { calls, nanoseconds })
        });
        let peers = (0..).zip(&counters.peers).map(|(pe, peer)| {
            let Traffic { operations, bytes } = Traffic::of(&peer.traffic);
            PeerStatistics { pe, operations, bytes }
        });
        let contexts = counters.contexts().into_iter();
        let network = network::activity().into_iter().flat_map(NetworkActivity::by_name);
        PeStatistics {
            pe: job.me.0,
            node: job.nodes.node_of(job.me.0),
            calls: calls.filter(|(_, time)| time.calls > 0).collect(),
            contexts: contexts.map(|(place, of)| ContextStatistics::new(place, of)).collect(),
            peers: peers.filter(|peer| peer.operations > 0).collect(),
            network: network
                .map(|(name, n)| (name.to_owned(), n))
                .filter(|(_, n)| *n > 0)
                .collect(),
        }
    }
}

impl ContextStatistics {
    fn new(context: usize, counters: &ContextCounters) -> ContextStatistics {
        let by_kind = |place: usize| {
            let kinds = AccessKind::NAMES.iter().zip(&counters.accesses);
            kinds
                .map(|(name, tallies)| ((*name).to_owned(), Traffic::of(&tallies[place])))
                .filter(|(_, traffic)| traffic.operations > 0)
                .collect()
        };
        ContextStatistics { context, on_node: by_kind(0), off_node: by_kind(1) }
    }
}

impl Traffic {
    fn of(tally: &Tally) -> Traffic {
        let (operations, bytes) = tally.read();
        Traffic { operations, bytes }
    }
}

impl JobStatistics {
    pub(super) fn new(job: &Job, pes: Vec<PeStatistics>) -> JobStatistics {
        JobStatistics { version: VERSION, n_pes: job.n_pes, pes }
    }

    pub(super) fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(file)?);
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.flush()
    }
}
