//! What this process finds out about its PEs: their snapshots, and waits that have lasted longer than
//! `--explain-after`.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::server::Statuses;
use rushmem_explain::collect::{Collector, LocalPe, PAUSE, SharedMemory};
use rushmem_explain::snapshot::{PeSnapshot, ProcessState, WaitId};
use rushmem_explain::status::{Stage, Status};
use serde::{Deserialize, Serialize};
use tokio::time::{Interval, MissedTickBehavior};

use super::stacks;

/// Maximum number of snapshots in a message, far below the limit of messages.
const BATCH: usize = 8;

/// Time between two looks for long waits.
const INTERVAL: Duration = Duration::from_secs(1);

/// A request for snapshots of all PEs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inquiry {
    /// Its number, which the results repeat.
    pub number: u32,
    /// The position of the statuses, if that is known.
    pub statuses: Option<Statuses>,
    /// True if the PEs are about to be ended, so that there is no time.
    pub at_once: bool,
    /// True if gdb may be attached, which ends some system calls of a PE with EINTR.
    pub with_stacks: bool,
}

/// The snapshots of some PEs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SurveyResult {
    /// The number of the inquiry.
    pub number: u32,
    /// The snapshots of the PEs that answered.
    pub snapshots: Vec<PeSnapshot>,
}

/// The memory of this node. Nothing can be read before it is known where statuses are.
#[derive(Clone, Debug)]
pub struct NodeMemfd(pub Option<Arc<OwnedFd>>);

/// Makes snapshots from it.
pub type NodeCollector = Collector<NodeMemfd>;

impl SharedMemory for NodeMemfd {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let memory = self.0.as_ref();
        memory.is_some_and(|memory| rustix::io::pread(memory, &mut *bytes, at) == Ok(bytes.len()))
    }

    /// All static data that oshrun's PEs share are in the memory of the node.
    fn read_static(&self, _: u32, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// Returns the name of a variable as a program in Rust or C++ has it.
pub fn demangled(name: &str) -> Option<String> {
    let of_rust = rustc_demangle::try_demangle(name).map(|name| format!("{name:#}")).ok();
    of_rust.or_else(|| cpp_demangle::Symbol::new(name).ok()?.demangle().ok())
}

/// The data that snapshots need.
#[derive(Debug)]
pub struct Survey {
    /// The PEs that run.
    pub pes: Vec<LocalPe>,
    /// Makes the snapshots.
    pub collector: NodeCollector,
    /// The mark of the job.
    pub mark: OsString,
}

impl Survey {
    /// Makes the snapshots, with the functions in which PEs are that are outside the library, if
    /// that is wanted.
    pub fn results(&self, inquiry: &Inquiry) -> Vec<SurveyResult> {
        let pause = (!inquiry.at_once).then_some(PAUSE);
        let mut snapshots = self.collector.snapshots(&self.pes, pause);
        if inquiry.with_stacks {
            let outside = snapshots.iter_mut().zip(&self.pes).filter(|(of, _)| is_outside(of));
            let outside = outside.filter_map(|(of, pe)| {
                let pid = pe.process(of.status.as_ref()).filter(|pid| !is_traced(*pid))?;
                Some((pid, &mut of.stacks))
            });
            stacks::add(outside.take(stacks::MAX_PES).collect(), &self.mark);
        }
        let number = inquiry.number;
        let batches = snapshots.chunks(BATCH);
        batches.map(|batch| SurveyResult { number, snapshots: batch.to_vec() }).collect()
    }
}

/// Returns true if the PE runs and waits for nothing in the library, as far as is known.
pub fn is_outside(of: &PeSnapshot) -> bool {
    let runs = matches!(of.process, ProcessState::Runs { .. } | ProcessState::Sleeps);
    let waits_not = |status: &Status| status.waits.is_empty() && status.stage != Stage::Finalized;
    runs && of.status.as_ref().is_none_or(waits_not)
}

/// Returns true if a debugger is attached.
fn is_traced(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
}

/// Looks at the statuses of the PEs of this process.
#[derive(Debug)]
pub struct Watch {
    collector: NodeCollector,
    limit: Duration,
    looks: Interval,
    /// The long waits that were found before and have not ended.
    known: Vec<WaitId>,
}

impl Watch {
    /// Returns a search for waits that are older than `limit`.
    pub fn new(collector: NodeCollector, limit: Duration) -> Watch {
        let mut looks = tokio::time::interval(INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Watch { collector, limit, looks, known: Vec::new() }
    }

    /// Waits until it is time for a look. Cancel safe.
    pub async fn tick(watch: &mut Option<Watch>) {
        match watch {
            Some(watch) => drop(watch.looks.tick().await),
            None => std::future::pending().await,
        }
    }

    /// Returns the waits of these PEs that have become too old.
    pub fn look(&mut self, pes: &[LocalPe]) -> Vec<WaitId> {
        let waits = self.collector.long_waits(pes, self.limit);
        let known = std::mem::replace(&mut self.known, waits);
        self.known.iter().filter(|wait| !known.contains(wait)).copied().collect()
    }
}
