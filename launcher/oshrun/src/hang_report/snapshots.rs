//! Snapshots of the PEs of this host, and the search for waits that last longer than
//! `--explain-after`.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::launcher::Statuses;
use rushmem_explain::collect::{Collector, LocalPe, PAUSE, SharedMemory};
use rushmem_explain::process;
use rushmem_explain::snapshot::{PeSnapshot, ProcessState, WaitId};
use rushmem_explain::status::Stage;
use serde::{Deserialize, Serialize};
use tokio::time::{Interval, MissedTickBehavior};

use super::LONG_WAIT;
use super::stacks::{self, ExaminedProcess};

/// Maximum number of snapshots in a message, so that its size is far below `MAX_EVENT`.
const BATCH: usize = 8;

/// Time between two searches for long waits.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// A request for snapshots of all PEs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SnapshotRequest {
    /// The number of the explanation, which the results repeat.
    pub number: u32,
    /// The position of the PEs' statuses, if PE 0 has reported it.
    pub statuses: Option<Statuses>,
    /// True if the snapshots must be made immediately: the PEs are about to be signaled, or the
    /// deadline for the snapshots has passed.
    pub at_once: bool,
    pub stacks: StackRequest,
}

/// When gdb may be attached to PEs outside the library. That makes some of their system calls fail
/// with EINTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StackRequest {
    Never,
    /// If a PE of the host has waited for [`LONG_WAIT`], and for a short time only: the PEs are
    /// about to be signaled.
    AfterLongWait,
    Always,
}

/// The snapshots of some PEs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SnapshotBatch {
    /// The number of the request.
    pub number: u32,
    /// Snapshots of PEs of one host. One request may have several batches from it.
    pub snapshots: Vec<PeSnapshot>,
}

/// The shared memory of this node; `None` until the position of the statuses in it is known.
#[derive(Clone, Debug)]
pub struct NodeMemfd(pub Option<Arc<OwnedFd>>);

/// Makes snapshots from the memory of this node.
pub type NodeCollector = Collector<NodeMemfd>;

impl SharedMemory for NodeMemfd {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let Some(memory) = &self.0 else {
            return false;
        };
        rustix::io::pread(memory, &mut *bytes, offset) == Ok(bytes.len())
    }

    /// Always returns false: the static data of PEs that oshrun has started are in the memory of
    /// the node, which `read` reads.
    fn read_static(&self, _: u32, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// The data from which a thread makes the snapshots of this host.
#[derive(Debug)]
pub struct SnapshotTask {
    /// The PEs that run.
    pub pes: Vec<LocalPe>,
    pub collector: NodeCollector,
    /// The mark of the job, which gdb gets.
    pub mark: OsString,
}

impl SnapshotTask {
    /// Makes the snapshots, in batches. If the request permits gdb, those of some PEs outside the
    /// library (`stacks::MAX_PES` at most) include the functions that it shows.
    pub fn run(&self, request: &SnapshotRequest) -> Vec<SnapshotBatch> {
        let pause = if request.at_once { None } else { Some(PAUSE) };
        let mut snapshots = self.collector.snapshots(&self.pes, pause);
        match request.stacks {
            StackRequest::Always => self.add_stacks(&mut snapshots, stacks::LIMIT),
            StackRequest::AfterLongWait if snapshots.iter().any(waits_long) => {
                self.add_stacks(&mut snapshots, stacks::SHORT_LIMIT);
            }
            StackRequest::AfterLongWait | StackRequest::Never => {}
        }

        let mut batches = Vec::new();
        for batch in snapshots.chunks(BATCH) {
            batches.push(SnapshotBatch {
                number: request.number,
                snapshots: batch.to_vec(),
            });
        }
        batches
    }

    fn add_stacks(&self, snapshots: &mut [PeSnapshot], limit: Duration) {
        let mut outside: Vec<(&mut PeSnapshot, &LocalPe)> = snapshots
            .iter_mut()
            .zip(&self.pes)
            .filter(|(snapshot, _)| is_outside(snapshot))
            .collect();
        // Others may wait for those that have not finalized.
        outside.sort_by_key(|(snapshot, _)| {
            let status = snapshot.status.as_ref();
            status.is_some_and(|status| status.stage == Stage::Finalized)
        });

        let mut processes = Vec::new();
        for (snapshot, pe) in outside {
            if processes.len() == stacks::MAX_PES {
                break;
            }
            let Some(pid) = pe.process(snapshot.status.as_ref()) else {
                continue;
            };
            if is_traced(pid) {
                continue;
            }
            // gdb would end the call early.
            if process::is_writing(pid) {
                snapshot
                    .stacks
                    .push("a system call that writes or sends, which gdb would cut short".into());
                continue;
            }
            processes.push(ExaminedProcess {
                pid,
                stacks: &mut snapshot.stacks,
            });
        }
        stacks::add(processes, &self.mark, limit);
    }
}

/// Returns true if the PE runs outside the library: its status, if there is one, shows no wait.
pub fn is_outside(snapshot: &PeSnapshot) -> bool {
    let runs = matches!(
        snapshot.process,
        ProcessState::Runs { .. } | ProcessState::Sleeps
    );
    let is_in_library = snapshot
        .status
        .as_ref()
        .is_some_and(|status| !status.waits.is_empty());
    runs && !is_in_library
}

fn waits_long(snapshot: &PeSnapshot) -> bool {
    snapshot.unlimited_waits().any(|(_, age)| age >= LONG_WAIT)
}

/// Returns true if a debugger is attached to the process, so that another one cannot be.
fn is_traced(pid: u32) -> bool {
    // A process that has ended has no status, and counts as not traced.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|pid| pid.trim() != "0")
}

/// Searches the statuses of the PEs of this host for waits that last longer than a limit.
#[derive(Debug)]
pub struct Watch {
    collector: NodeCollector,
    limit: Duration,
    ticks: Interval,
    /// The long waits that the last search has found.
    known: Vec<WaitId>,
}

impl Watch {
    /// Creates a search for waits longer than `limit`.
    pub fn new(collector: NodeCollector, limit: Duration) -> Watch {
        let mut ticks = tokio::time::interval(SEARCH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Watch {
            collector,
            limit,
            ticks,
            known: Vec::new(),
        }
    }

    /// Waits until the next search is due; forever if there is no watch. Cancel safe.
    pub async fn tick(watch: &mut Option<Watch>) {
        match watch {
            Some(watch) => {
                watch.ticks.tick().await;
            }
            None => std::future::pending().await,
        }
    }

    /// Searches the statuses of these PEs. Returns the long waits that the last search did not
    /// find.
    pub fn search(&mut self, pes: &[LocalPe]) -> Vec<WaitId> {
        let waits = self.collector.long_waits(pes, self.limit);
        let mut new = waits.clone();
        new.retain(|wait| !self.known.contains(wait));
        self.known = waits;
        new
    }
}
