//! Explains a job that hangs: what each PE does, and who waits for whom.
//!
//! Needs neither the transports of the job nor the help of the PEs: oshrun and each daemon make
//! snapshots of their PEs from the memory of the node and from /proc (`snapshots`). Daemons send
//! their snapshots to oshrun, where the [`Explainer`] collects all of them. `rushmem_explain`
//! derives the explanation.

pub mod snapshots;
mod stacks;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use rushmem_bootstrap::launcher::Server;
use rushmem_explain::snapshot::{PeSnapshot, ProcessState, WaitId};
use rushmem_explain::status::{Stage, Status};
use rushmem_explain::{explain, table};
use tokio::time::Instant;

use self::snapshots::{SnapshotBatch, SnapshotRequest, StackRequest, is_outside};

/// Time in which the snapshots of all PEs must arrive, without the time for gdb.
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(5);

/// Maximum time by which an explanation delays a signal that ends the job. The process that has
/// sent the signal may soon send SIGKILL.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(3);

/// If a PE has waited for this long when the job is ended by a signal, or when another PE or a host
/// is lost, the job is explained. After a shorter wait, the message about the end is enough.
pub const LONG_WAIT: Duration = Duration::from_secs(10);

/// Why an explanation is made, in ascending order of precedence if there are several reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A wait has lasted longer than `--explain-after`.
    Overdue,
    /// A signal ends the job. The PEs get it after their snapshots were made.
    Interrupt,
    /// The user has sent a signal that asks for an explanation.
    Request,
    /// The limit of `--timeout` has expired.
    Timeout,
    /// The job ends because of the exit of a PE, a lost host or another failure.
    Loss,
}

/// An explanation of a job.
#[derive(Debug)]
pub struct Explanation {
    pub purpose: Purpose,
    /// The lines to print; empty if there is nothing to explain.
    pub text: String,
}

/// Decides when to explain a job, and collects the snapshots for one explanation at a time.
#[derive(Debug)]
pub struct Explainer {
    /// The limit of `--explain-after`.
    limit: Option<Duration>,
    /// The number of the last request.
    number: u32,
    collection: Option<Collection>,
    /// The waits in the last explanation.
    explained: HashSet<WaitId>,
    /// When the last explanation for [`Purpose::Overdue`] was begun.
    last: Option<Instant>,
    /// True if a new overdue wait was reported that has not been explained.
    is_due: bool,
    /// True if gdb is installed on this host, or the hint to install it was printed.
    has_gdb: bool,
}

/// The snapshots for an explanation in progress.
#[derive(Debug)]
struct Collection {
    purpose: Purpose,
    snapshots: BTreeMap<u32, PeSnapshot>,
    /// The PEs whose snapshots have not arrived.
    awaited: BTreeSet<u32>,
    deadline: Instant,
}

impl Explainer {
    /// Creates an explainer that has explained nothing. `limit` is that of `--explain-after`;
    /// `has_gdb` is true if gdb is installed.
    pub fn new(limit: Option<Duration>, has_gdb: bool) -> Explainer {
        Explainer {
            limit,
            number: 0,
            collection: None,
            explained: HashSet::new(),
            last: None,
            is_due: false,
            has_gdb,
        }
    }

    /// Returns the limit of `--explain-after`.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Begins an explanation. One in progress goes on instead, for the purpose that has precedence,
    /// unless this purpose is a loss. Returns the request for snapshots to send, if any.
    pub fn begin(&mut self, purpose: Purpose, server: &Server) -> Option<SnapshotRequest> {
        // After a loss, oshrun is about to end the PEs.
        let at_once = purpose == Purpose::Loss;
        // gdb interrupts PEs, so it is not used while the job goes on without a request.
        let (stacks, limit) = match purpose {
            Purpose::Overdue | Purpose::Loss => (StackRequest::Never, SNAPSHOT_LIMIT),
            Purpose::Interrupt => (StackRequest::AfterLongWait, INTERRUPT_LIMIT),
            Purpose::Request | Purpose::Timeout => {
                (StackRequest::Always, SNAPSHOT_LIMIT + stacks::LIMIT)
            }
        };
        let deadline = Instant::now() + limit;
        if let Some(collection) = &mut self.collection
            && !at_once
        {
            collection.purpose = collection.purpose.max(purpose);
            if purpose == Purpose::Interrupt {
                collection.deadline = collection.deadline.min(deadline);
            }
            return None;
        }

        self.number = self.number.wrapping_add(1);
        self.collection = Some(Collection {
            purpose,
            snapshots: BTreeMap::new(),
            awaited: (0..server.n_pes()).filter(|pe| server.runs(*pe)).collect(),
            deadline,
        });
        Some(SnapshotRequest {
            number: self.number,
            statuses: server.statuses(),
            at_once,
            stacks,
        })
    }

    /// Returns true while an explanation is in progress.
    pub fn is_collecting(&self) -> bool {
        self.collection.is_some()
    }

    /// Returns true if the last explanation did not include this wait.
    pub fn is_new(&self, wait: &WaitId) -> bool {
        !self.explained.contains(wait)
    }

    /// Adds snapshots. Ignores those for an earlier explanation.
    pub fn add(&mut self, batch: SnapshotBatch) {
        if batch.number != self.number {
            return;
        }
        let Some(collection) = &mut self.collection else {
            return;
        };

        for snapshot in batch.snapshots {
            // After a late request, a second snapshot of a PE may arrive, which is ignored.
            if collection.awaited.remove(&snapshot.pe) {
                collection.snapshots.insert(snapshot.pe, snapshot);
            }
        }
    }

    /// Records that the process of a PE has ended, so that its snapshot is not awaited.
    pub fn record_exit(&mut self, pe: u32) {
        if let Some(collection) = &mut self.collection {
            collection.awaited.remove(&pe);
        }
    }

    /// Records that a wait is longer than `--explain-after`. Has no effect if the last explanation
    /// included this wait.
    pub fn record_overdue(&mut self, wait: WaitId) {
        self.is_due |= self.is_new(&wait);
    }

    /// Begins the explanation of an overdue wait, if there is one. Waits with a common cause become
    /// overdue one after the other, so the time of `--explain-after` must have passed since the
    /// last such explanation.
    pub fn begin_due(&mut self, server: &Server) -> Option<SnapshotRequest> {
        let now = Instant::now();
        if self.collection.is_some() || !self.is_due || self.next_overdue() > Some(now) {
            return None;
        }

        self.is_due = false;
        self.last = Some(now);
        self.begin(Purpose::Overdue, server)
    }

    fn next_overdue(&self) -> Option<Instant> {
        Some(self.last? + self.limit?)
    }

    /// Returns the time at which to call [`Explainer::finish`] or [`Explainer::begin_due`] again;
    /// `None` if nothing is in progress or due.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.collection {
            Some(collection) => Some(collection.deadline),
            None if self.is_due => self.next_overdue(),
            None => None,
        }
    }

    /// Returns a request to repeat for the PEs of this host, if snapshots are missing at the
    /// deadline. The thread that makes them may have waited for a CPU; now they are made
    /// immediately.
    pub fn late_request(&self, server: &Server) -> Option<SnapshotRequest> {
        let collection = self.collection.as_ref()?;
        if collection.awaited.is_empty() || Instant::now() < collection.deadline {
            return None;
        }

        Some(SnapshotRequest {
            number: self.number,
            statuses: server.statuses(),
            at_once: true,
            stacks: StackRequest::Never,
        })
    }

    /// Returns the explanation once all snapshots have arrived or the deadline has passed. That of
    /// a loss is left to [`Explainer::finish_last`].
    pub fn finish(&mut self, server: &Server) -> Option<Explanation> {
        let collection = self.collection.take_if(|collection| {
            let is_complete =
                collection.awaited.is_empty() || Instant::now() >= collection.deadline;
            is_complete && collection.purpose != Purpose::Loss
        })?;
        Some(self.explanation(collection, server))
    }

    /// Ends the explanation in progress, such as that of a loss, when the job has ended.
    pub fn finish_last(&mut self, server: &Server) -> Option<Explanation> {
        let collection = self.collection.take()?;
        Some(self.explanation(collection, server))
    }

    fn explanation(&mut self, collection: Collection, server: &Server) -> Explanation {
        Explanation {
            purpose: collection.purpose,
            text: self.compose(collection, server),
        }
    }

    /// Returns the text of an explanation; empty if there is nothing to explain.
    fn compose(&mut self, collection: Collection, server: &Server) -> String {
        let purpose = collection.purpose;
        let waits: HashMap<WaitId, Duration> = collection
            .snapshots
            .values()
            .flat_map(PeSnapshot::unlimited_waits)
            .collect();
        let has_new = |limit: Duration| {
            waits
                .iter()
                .any(|(id, age)| *age >= limit && self.is_new(id))
        };

        // If the job has ended meanwhile, there is nothing to explain.
        let runs = (0..server.n_pes()).any(|pe| server.runs(pe));
        let is_wanted = match purpose {
            Purpose::Loss => has_new(LONG_WAIT),
            Purpose::Interrupt => runs && has_new(LONG_WAIT),
            // The overdue wait may be in a PE whose snapshot is missing.
            Purpose::Overdue => !collection.awaited.is_empty() || self.limit.is_some_and(has_new),
            Purpose::Request => runs,
            Purpose::Timeout => true,
        };
        if !is_wanted {
            return String::new();
        }
        self.explained = waits.into_keys().collect();

        let snapshots = collection.completed(server);
        let mut text = match purpose {
            // The message about the loss has named the cause.
            Purpose::Loss => format!("when the job ended:\n{}", table(server.n_pes(), &snapshots)),
            _ => explain(server.n_pes(), &snapshots),
        };

        let uses_gdb = !matches!(purpose, Purpose::Overdue | Purpose::Loss);
        if uses_gdb && !self.has_gdb && snapshots.iter().any(is_outside) {
            text += "\nIf gdb were installed, it would show where PEs outside the library are.";
            self.has_gdb = true;
        }

        let mut lines = Vec::new();
        for line in text.lines() {
            // An empty line has no space after the colon.
            lines.push(format!("oshrun: {line}").trim_end().to_string());
        }
        lines.join("\n")
    }
}

impl Collection {
    /// Returns a snapshot of each PE: completes those that have arrived, and those that are
    /// missing, by what the messages of the PEs have shown.
    fn completed(mut self, server: &Server) -> Vec<PeSnapshot> {
        for pe in 0..server.n_pes() {
            // The snapshots of a loss describe PEs that oshrun has terminated since.
            let shows_end = self.purpose != Purpose::Loss || !self.snapshots.contains_key(&pe);
            let snapshot = self.snapshots.entry(pe).or_insert_with(|| {
                PeSnapshot::new(pe, ProcessState::HostSilent(server.host(pe).to_owned()))
            });
            if let Some(exit) = server.exit(pe)
                && shows_end
            {
                snapshot.process = ProcessState::Ended(exit.manner());
            }
            // Once PE 0 has reported where the statuses are, a PE in init that has none is not the
            // only possibility: its status may not be readable.
            let stage = server.stage(pe);
            let may_be_unreadable = stage == Stage::Starting && server.statuses().is_some();
            if snapshot.status.is_none() && !may_be_unreadable {
                snapshot.status = Some(Status::new(server.pid(pe), stage));
            }
        }
        self.snapshots.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_bootstrap::NodeMap;
    use rushmem_bootstrap::proto::{FromPe, encode};

    /// Returns the explanation of a job of 2 PEs that sleep and have no status.
    fn explained(server: &Server) -> String {
        let snapshot = |pe| (pe, PeSnapshot::new(pe, ProcessState::Sleeps));
        let collection = Collection {
            purpose: Purpose::Timeout,
            snapshots: (0..2).map(snapshot).collect(),
            awaited: BTreeSet::new(),
            deadline: Instant::now(),
        };
        explain(2, &collection.completed(server))
    }

    #[test]
    fn a_status_that_cannot_be_read_is_not_one_of_init() {
        let nodes = NodeMap::one_node(2).expect("2 PEs");
        let mut server = Server::new(nodes, vec!["a".to_owned()]);
        for pe in 0..2 {
            server.started(pe, 100 + pe);
            server.received(pe, &encode(&FromPe::Hello { pid: 100 + pe }));
        }
        let text = explained(&server);
        assert!(text.contains("in shmem_init"), "{text}");

        let statuses = FromPe::Statuses {
            stride: 4096,
            offset: 0,
        };
        server.received(0, &encode(&statuses));
        let text = explained(&server);
        assert!(
            text.contains("No PE has a status that can be read"),
            "{text}"
        );
    }
}
