//! The root's part: requests reports, collects them, and makes the explanation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use rushmem_bootstrap::server::Server;
use rushmem_explain::explain;
use rushmem_explain::report::{OtherThreads, PeReport, ProcessState};
use rushmem_explain::status::Status;
use tokio::time::Instant;

use super::overdue::{WaitId, waits};
use super::stacks;
use super::survey::{Inquiry, SurveyResult, is_outside, now};

/// Time for the reports of all PEs.
const LIMIT: Duration = Duration::from_secs(5);

/// How long a PE must have waited when another one failed, so that the end of the job is explained.
const LONG: Duration = Duration::from_secs(10);

/// Why an explanation is made. A later one includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A wait has lasted too long.
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
    /// How long a wait may last.
    limit: Option<Duration>,
    /// The number of the last inquiry.
    number: u32,
    collection: Option<Collection>,
    /// The waits that were explained and have not ended since.
    explained: HashSet<WaitId>,
    /// When the last explanation was begun because of a wait.
    last: Option<Instant>,
    /// Whether a wait is to be explained when enough time has passed since the last explanation.
    is_due: bool,
    /// Whether the user has requested an explanation while gdb stopped PEs for the last one.
    is_requested: bool,
    /// Whether gdb is installed on this host, or it has been said that it is not.
    has_gdb: bool,
    /// The PEs that daemons still look at with gdb, and until when they may.
    inspected: BTreeSet<u32>,
    inspected_until: Instant,
    /// Where PEs are, which is printed after the explanation.
    stacks: Vec<String>,
}

#[derive(Debug)]
struct Collection {
    purpose: Purpose,
    reports: BTreeMap<u32, PeReport>,
    /// The PEs whose reports are missing.
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
            is_requested: false,
            has_gdb,
            inspected: BTreeSet::new(),
            inspected_until: Instant::now(),
            stacks: Vec::new(),
        }
    }

    /// How long a wait may last.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Begins an explanation, or adds the purpose to one that was begun. Returns what to ask the
    /// daemons.
    pub fn begin(&mut self, purpose: Purpose, server: &Server) -> Option<Inquiry> {
        let at_once = purpose == Purpose::Loss;
        // An explanation that the user did not request disturbs no PE.
        let with_stacks = purpose != Purpose::Overdue;
        let serves =
            |open: &&mut Collection| !at_once && (open.purpose != Purpose::Overdue || !with_stacks);
        if let Some(open) = self.collection.as_mut().filter(serves) {
            open.purpose = open.purpose.max(purpose);
            return None;
        }
        if purpose == Purpose::Request && !self.is_complete() {
            self.is_requested = true;
            return None;
        }
        self.number = self.number.wrapping_add(1);
        self.collection = Some(Collection {
            purpose,
            reports: BTreeMap::new(),
            awaited: (0..server.n_pes()).filter(|pe| server.runs(*pe)).collect(),
            deadline: Instant::now() + LIMIT,
        });
        Some(Inquiry { number: self.number, statuses: server.statuses(), at_once, with_stacks })
    }

    /// Takes what daemons have found out.
    pub fn add(&mut self, result: SurveyResult) {
        match result {
            SurveyResult::Reports { number, reports, inspected } => {
                if !inspected.is_empty() {
                    self.inspected_until = Instant::now() + stacks::LIMIT;
                    self.inspected.extend(inspected);
                }
                if let Some(open) = self.collection.as_mut().filter(|_| number == self.number) {
                    for report in reports {
                        if open.awaited.remove(&report.pe) {
                            open.reports.insert(report.pe, report);
                        }
                    }
                }
            }
            SurveyResult::Stack { pe, threads } => {
                self.inspected.remove(&pe);
                let line = |thread| format!("oshrun: PE {pe} is in {thread}");
                self.stacks.extend(threads.into_iter().map(line));
            }
        }
    }

    /// Where PEs are, as far as it became known since the last call, once the explanation is out.
    pub fn stacks(&mut self) -> Option<String> {
        let is_due = self.collection.is_none() && !self.stacks.is_empty();
        is_due.then(|| std::mem::take(&mut self.stacks).join("\n"))
    }

    /// Whether nothing follows the explanation that was printed.
    pub fn is_complete(&self) -> bool {
        self.inspected.is_empty() || Instant::now() >= self.inspected_until
    }

    /// The process of a PE has ended, which therefore may not report.
    pub fn ended(&mut self, pe: u32) {
        self.inspected.remove(&pe);
        if let Some(open) = &mut self.collection {
            open.awaited.remove(&pe);
        }
    }

    /// A wait has lasted too long.
    pub fn overdue(&mut self, wait: WaitId) {
        self.is_due |= !self.explained.contains(&wait);
    }

    /// Begins an explanation that was requested, or that of a wait, if there is one to explain.
    /// Many waits of one cause become overdue one after the other, so some time must have passed
    /// since the last explanation.
    pub fn begin_due(&mut self, server: &Server) -> Option<Inquiry> {
        if self.collection.is_some() || !self.is_complete() {
            return None;
        }
        if std::mem::take(&mut self.is_requested) {
            return self.begin(Purpose::Request, server);
        }
        let now = Instant::now();
        if !self.is_due || self.next_overdue() > Some(now) {
            return None;
        }
        (self.is_due, self.last) = (false, Some(now));
        self.begin(Purpose::Overdue, server)
    }

    fn next_overdue(&self) -> Option<Instant> {
        Some(self.last? + self.limit?)
    }

    /// When to call [`Explainer::finish`], [`Explainer::is_complete`] or
    /// [`Explainer::begin_due`] again.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.collection {
            Some(open) => Some(open.deadline),
            None if !self.is_complete() => Some(self.inspected_until),
            None => self.next_overdue().filter(|_| self.is_due),
        }
    }

    /// The number of the inquiry, if reports are missing although the time is over. Those on PEs of
    /// this process are then made at once: its thread may only have waited for a CPU.
    pub fn overtime(&self) -> Option<u32> {
        let open = self.collection.as_ref()?;
        let is_late = Instant::now() >= open.deadline && !open.awaited.is_empty();
        is_late.then_some(self.number)
    }

    /// The explanation, when all reports have arrived or the time is over; empty if there is
    /// nothing to say.
    pub fn finish(&mut self, server: &Server) -> Option<(Purpose, String)> {
        let is_complete = |open: &mut Collection| {
            open.purpose != Purpose::Loss
                && (open.awaited.is_empty() || Instant::now() >= open.deadline)
        };
        let open = self.collection.take_if(is_complete)?;
        Some((open.purpose, self.text(open, server)))
    }

    /// The explanation of a loss, or of an explanation that was not finished before the end of the
    /// job.
    pub fn last(&mut self, server: &Server) -> Option<(Purpose, String)> {
        let open = self.collection.take()?;
        Some((open.purpose, self.text(open, server)))
    }

    fn text(&mut self, mut open: Collection, server: &Server) -> String {
        let current: HashMap<WaitId, Duration> = open.reports.values().flat_map(waits).collect();
        let is_long = |age: &Duration| match open.purpose {
            Purpose::Overdue => self.limit.is_some_and(|limit| *age >= limit),
            Purpose::Loss => *age >= LONG,
            Purpose::Request | Purpose::Timeout => true,
        };
        let has_long =
            |(id, age): (&WaitId, &Duration)| is_long(age) && !self.explained.contains(id);
        let is_wanted = match open.purpose {
            Purpose::Loss => current.iter().any(has_long),
            // The wait may be one of a PE that has not reported.
            Purpose::Overdue => !open.awaited.is_empty() || current.iter().any(has_long),
            // A job that has ended meanwhile has nothing to explain.
            Purpose::Request => (0..server.n_pes()).any(|pe| server.runs(pe)),
            Purpose::Timeout => true,
        };
        if !is_wanted {
            return String::new();
        }
        self.explained = current.into_keys().collect();
        let mut is_any_outside = false;
        for pe in 0..server.n_pes() {
            // When a loss is explained, the PEs that have reported have been ended since.
            let has_reported = open.reports.contains_key(&pe);
            let report = open.reports.entry(pe).or_insert_with(|| silent(pe, server.host(pe)));
            if let Some(exit) = server.exit(pe)
                && !(has_reported && open.purpose == Purpose::Loss)
            {
                report.process = ProcessState::Ended(exit.to_string());
            }
            if report.status.is_none() {
                let (pid, stage) = server.progress(pe);
                report.status = Some(Status {
                    pid,
                    pid_namespace: 0,
                    stage,
                    waits: Vec::new(),
                    further_waits: Vec::new(),
                    held_locks: Vec::new(),
                    in_flight: None,
                    finalizing: None,
                });
            }
            is_any_outside |= is_outside(report);
        }
        let reports: Vec<PeReport> = open.reports.into_values().collect();
        let text = explain(server.n_pes(), &reports);
        let is_requested = matches!(open.purpose, Purpose::Request | Purpose::Timeout);
        let hint = match is_any_outside && !self.has_gdb && is_requested {
            true => "\nIf gdb were installed, it would show where PEs outside the library are.",
            false => "",
        };
        self.has_gdb |= !hint.is_empty();
        let text = match open.purpose {
            // The message on the loss has named the cause.
            Purpose::Loss => format!("when the job ended:\n{}", table(&text)),
            _ => format!("{text}{hint}"),
        };
        let line = |line| format!("oshrun: {line}").trim_end().to_string();
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The table of an explanation, which an empty line separates from the conclusion.
fn table(explanation: &str) -> &str {
    explanation.split("\n\n").next().unwrap_or_default()
}

/// The report on a PE whose daemon has not answered.
fn silent(pe: u32, host: &str) -> PeReport {
    PeReport {
        pe,
        process: ProcessState::HostSilent(host.to_string()),
        status: None,
        read_at: now(),
        values: Vec::new(),
        symbols: Vec::new(),
        writes: None,
        other_threads: OtherThreads::default(),
    }
}
