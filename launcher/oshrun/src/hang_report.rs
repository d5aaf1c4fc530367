//! Explains a job that hangs: what each PE does, and who waits for whom.
//!
//! Works without the fabric and without the help of the PEs: each daemon makes snapshots of its PEs
//! from the memory of the node and from what the kernel shows (`survey`). They travel up the tree
//! of daemons; the root collects them and prints the explanation, which `rushmem_explain` derives
//! from them.

mod stacks;
pub mod survey;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use rushmem_bootstrap::server::Server;
use rushmem_explain::snapshot::{PeSnapshot, ProcessState, WaitId};
use rushmem_explain::status::Status;
use rushmem_explain::{explain, table};
use tokio::time::Instant;

use self::survey::{Inquiry, SurveyResult, is_outside};

/// Time for the snapshots of all PEs, without that for gdb.
const LIMIT: Duration = Duration::from_secs(5);

/// The time for which a PE must have waited when another one failed, so that the end of the job is
/// explained.
const LONG: Duration = Duration::from_secs(10);

/// Why an explanation is made. A later one includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Records that a wait has lasted too long.
    Overdue,
    /// The user asks.
    Request,
    /// The job is late (`--timeout`).
    Timeout,
    /// A PE or a host was lost, and the job ends.
    Loss,
}

/// The explanations of a job.
#[derive(Debug)]
pub struct Explainer {
    /// The maximum duration of a wait.
    limit: Option<Duration>,
    /// The number of the last inquiry.
    number: u32,
    collection: Option<Collection>,
    /// The waits that were explained and have not ended since.
    explained: HashSet<WaitId>,
    /// When the last explanation was begun because of a wait.
    last: Option<Instant>,
    /// True if a wait is to be explained when enough time has passed since the last explanation.
    is_due: bool,
    /// True if gdb is installed on this host, or it has been said that it is not.
    has_gdb: bool,
}

#[derive(Debug)]
struct Collection {
    purpose: Purpose,
    snapshots: BTreeMap<u32, PeSnapshot>,
    /// The PEs whose snapshots are missing.
    awaited: BTreeSet<u32>,
    deadline: Instant,
}

impl Explainer {
    /// Explains waits that last longer than `limit`, if there is one. `has_gdb`: whether gdb is
    /// installed.
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

    /// Returns how long a wait may last.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Begins an explanation, or adds the purpose to one that was begun. Returns what to ask the
    /// daemons.
    pub fn begin(&mut self, purpose: Purpose, server: &Server) -> Option<Inquiry> {
        let at_once = purpose == Purpose::Loss;
        // An explanation that the user did not request disturbs no PE.
        let with_stacks = !at_once && purpose != Purpose::Overdue;
        if let Some(open) = self.collection.as_mut().filter(|_| !at_once) {
            open.purpose = open.purpose.max(purpose);
            return None;
        }
        self.number = self.number.wrapping_add(1);
        self.collection = Some(Collection {
            purpose,
            snapshots: BTreeMap::new(),
            awaited: (0..server.n_pes()).filter(|pe| server.runs(*pe)).collect(),
            deadline: Instant::now()
                + LIMIT
                + if with_stacks { stacks::LIMIT } else { Duration::ZERO },
        });
        Some(Inquiry { number: self.number, statuses: server.statuses(), at_once, with_stacks })
    }

    /// Takes what daemons have found out.
    pub fn add(&mut self, SurveyResult { number, snapshots }: SurveyResult) {
        if let Some(open) = self.collection.as_mut().filter(|_| number == self.number) {
            for snapshot in snapshots {
                if open.awaited.remove(&snapshot.pe) {
                    open.snapshots.insert(snapshot.pe, snapshot);
                }
            }
        }
    }

    /// Records that the process of a PE has ended, so that no snapshot of it may come.
    pub fn ended(&mut self, pe: u32) {
        if let Some(open) = &mut self.collection {
            open.awaited.remove(&pe);
        }
    }

    /// Reports a wait that has lasted too long.
    pub fn overdue(&mut self, wait: WaitId) {
        self.is_due |= !self.explained.contains(&wait);
    }

    /// Begins the explanation of a wait, if there is one to explain. Many waits of one cause become
    /// overdue one after the other, so some time must have passed since the last explanation.
    pub fn begin_due(&mut self, server: &Server) -> Option<Inquiry> {
        let now = Instant::now();
        if self.collection.is_some() || !self.is_due || self.next_overdue() > Some(now) {
            return None;
        }
        (self.is_due, self.last) = (false, Some(now));
        self.begin(Purpose::Overdue, server)
    }

    fn next_overdue(&self) -> Option<Instant> {
        Some(self.last? + self.limit?)
    }

    /// Returns when to call [`Explainer::finish`] or [`Explainer::begin_due`] again.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.collection {
            Some(open) => Some(open.deadline),
            None => self.next_overdue().filter(|_| self.is_due),
        }
    }

    /// Returns what to ask this process again, if snapshots are missing although the time is over:
    /// those of its PEs are then made at once, since its thread may only have waited for a CPU.
    pub fn overtime(&self, server: &Server) -> Option<Inquiry> {
        let open = self.collection.as_ref()?;
        let is_late = Instant::now() >= open.deadline && !open.awaited.is_empty();
        let (number, statuses) = (self.number, server.statuses());
        is_late.then_some(Inquiry { number, statuses, at_once: true, with_stacks: false })
    }

    /// Returns the explanation, when all snapshots have arrived or the time is over; empty if there
    /// is nothing to say.
    pub fn finish(&mut self, server: &Server) -> Option<(Purpose, String)> {
        let is_complete = |open: &mut Collection| {
            open.purpose != Purpose::Loss
                && (open.awaited.is_empty() || Instant::now() >= open.deadline)
        };
        let open = self.collection.take_if(is_complete)?;
        Some((open.purpose, self.text(open, server)))
    }

    /// Returns the explanation of a loss, or of an explanation that was not finished before the end
    /// of the job.
    pub fn last(&mut self, server: &Server) -> Option<(Purpose, String)> {
        let open = self.collection.take()?;
        Some((open.purpose, self.text(open, server)))
    }

    fn text(&mut self, open: Collection, server: &Server) -> String {
        let Collection { purpose, mut snapshots, awaited, .. } = open;
        let current: HashMap<WaitId, Duration> =
            snapshots.values().flat_map(PeSnapshot::waits).collect();
        let is_long = |limit: Duration| {
            current.iter().any(|(id, age)| *age >= limit && !self.explained.contains(id))
        };
        let is_wanted = match purpose {
            Purpose::Loss => is_long(LONG),
            // The wait may be one of a PE of which no snapshot came.
            Purpose::Overdue => !awaited.is_empty() || self.limit.is_some_and(is_long),
            // A job that has ended meanwhile has nothing to explain.
            Purpose::Request => (0..server.n_pes()).any(|pe| server.runs(pe)),
            Purpose::Timeout => true,
        };
        if !is_wanted {
            return String::new();
        }
        self.explained = current.into_keys().collect();
        for pe in 0..server.n_pes() {
            // When a loss is explained, the PEs that have reported have been ended since.
            let has_ended = purpose != Purpose::Loss || !snapshots.contains_key(&pe);
            let silent =
                || PeSnapshot::new(pe, ProcessState::HostSilent(server.host(pe).to_owned()));
            let snapshot = snapshots.entry(pe).or_insert_with(silent);
            if let Some(exit) = server.exit(pe).filter(|_| has_ended) {
                snapshot.process = ProcessState::Ended(exit.to_string());
            }
            let (pid, stage) = server.progress(pe);
            snapshot.status.get_or_insert_with(|| Status::new(pid, stage));
        }
        let snapshots: Vec<PeSnapshot> = snapshots.into_values().collect();
        let mut text = match purpose {
            // The message on the loss has named the cause.
            Purpose::Loss => format!("when the job ended:\n{}", table(server.n_pes(), &snapshots)),
            _ => explain(server.n_pes(), &snapshots),
        };
        let is_requested = matches!(purpose, Purpose::Request | Purpose::Timeout);
        if is_requested && !self.has_gdb && snapshots.iter().any(is_outside) {
            text += "\nIf gdb were installed, it would show where PEs outside the library are.";
            self.has_gdb = true;
        }
        let line = |line| format!("oshrun: {line}").trim_end().to_string();
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}
