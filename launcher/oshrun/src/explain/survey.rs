//! The reports on the PEs of this process.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rushmem_bootstrap::env;
use rushmem_bootstrap::process_state::{self, Look};
use rushmem_bootstrap::server::Statuses;
use rushmem_explain::report::{OtherThreads, PeReport, ProcessState};
use rushmem_explain::status::{Place, Stage, Status, Subject};
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::memory::NodeStatuses;
use super::stacks;
use super::symbols::{self, Variable};
use crate::ends::descendants;

/// Time between two looks at a process.
const LOOK_TIME: Duration = Duration::from_millis(200);

/// The size of a lock.
const LOCK_BYTES: u64 = 8;

/// Maximum number of reports in a message, far below the limit of messages.
const BATCH: usize = 8;

/// A request for reports on all PEs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inquiry {
    /// Its number, which the reports repeat.
    pub number: u32,
    /// Where the statuses are, if that is known.
    pub statuses: Option<Statuses>,
    /// Whether the PEs are about to be ended, so that there is no time.
    pub at_once: bool,
    /// Whether gdb may be attached, which ends some system calls of a PE with EINTR.
    pub with_stacks: bool,
}

/// What is found out about PEs for an inquiry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SurveyResult {
    /// Reports on some PEs.
    Reports {
        /// The number of the inquiry.
        number: u32,
        /// The reports.
        reports: Vec<PeReport>,
        /// The PEs of which a [`SurveyResult::Stack`] follows.
        inspected: Vec<u32>,
    },
    /// Where a PE is that is outside the library.
    Stack {
        /// The PE.
        pe: u32,
        /// The innermost functions of each thread; nothing if they cannot be found out.
        threads: Vec<String>,
    },
}

/// A PE of this process.
#[derive(Clone, Copy, Debug)]
pub struct RunningPe {
    /// The PE.
    pub pe: u32,
    /// Its local number.
    pub local: u32,
    /// The process that was started for it, which may be a wrapper.
    pub pid: u32,
}

/// What is needed for the reports.
#[derive(Debug)]
pub struct Survey {
    /// The PEs that run.
    pub pes: Vec<RunningPe>,
    /// Their statuses.
    pub statuses: Option<NodeStatuses>,
    /// The mark of the job.
    pub mark: OsString,
}

/// The first look at a PE.
struct FirstLook {
    pe: RunningPe,
    /// The process of the PE.
    pid: u32,
    process: Option<Look>,
}

impl FirstLook {
    fn at(pe: RunningPe, status: Option<&Status>) -> FirstLook {
        let pid = process(pe, status);
        FirstLook { pe, pid, process: process_state::look(pid, status) }
    }
}

/// Nanoseconds of the clock by which PEs say when a wait began.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Survey {
    /// Makes the reports without waiting for anything.
    pub fn at_once(&self, number: u32) -> Vec<SurveyResult> {
        let report = |pe: &RunningPe| {
            let status = self.status(pe.local);
            let look = process_state::look_at_state(process(*pe, status.as_ref()));
            self.report(*pe, status, process_state::between(look.as_ref(), look.as_ref()))
        };
        let reports: Vec<PeReport> = self.pes.iter().map(report).collect();
        batches(number, &reports, &[]).collect()
    }

    /// Makes the reports, and then finds out where PEs are that are outside the library, if that is
    /// wanted. `send` gets the results.
    pub fn make(&self, inquiry: &Inquiry, send: impl Fn(SurveyResult) + Sync) {
        let look = |pe: &RunningPe| FirstLook::at(*pe, self.status(pe.local).as_ref());
        let looks: Vec<FirstLook> = self.pes.iter().map(look).collect();
        std::thread::sleep(LOOK_TIME);
        let mut reports: Vec<PeReport> = looks.iter().map(|first| self.second(first)).collect();
        let pids: Vec<u32> = looks.iter().map(|first| first.pid).collect();
        add_symbols(&mut reports, &pids);
        let outside: Vec<(u32, u32)> = (0..reports.len())
            .filter(|&index| inquiry.with_stacks && is_outside(&reports[index]))
            .map(|index| (reports[index].pe, pids[index]))
            .filter(|&(_, pid)| !is_traced(pid))
            .take(stacks::MAX_PES)
            .collect();
        let inspected: Vec<u32> = outside.iter().map(|(pe, _)| *pe).collect();
        batches(inquiry.number, &reports, &inspected).for_each(&send);
        stacks::of(&outside, &self.mark, |pe, threads| send(SurveyResult::Stack { pe, threads }));
    }

    /// The report on a PE after a first look.
    fn second(&self, first: &FirstLook) -> PeReport {
        let status = self.status(first.pe.local);
        let look = process_state::look(first.pid, status.as_ref());
        let (before, now) = (first.process.as_ref(), look.as_ref());
        let state = process_state::between(before, now);
        let other_threads = process_state::other_threads(first.pid, status.as_ref(), before, now);
        PeReport { other_threads, ..self.report(first.pe, status, state) }
    }

    fn status(&self, local: u32) -> Option<Status> {
        self.statuses.as_ref()?.of(local)
    }

    fn report(&self, pe: RunningPe, status: Option<Status>, process: ProcessState) -> PeReport {
        let values = match (&self.statuses, &status) {
            (Some(statuses), Some(status)) => statuses.values(status),
            _ => Vec::new(),
        };
        PeReport {
            pe: pe.pe,
            process,
            status,
            read_at: now(),
            values,
            symbols: Vec::new(),
            writes: self.statuses.as_ref().and_then(|statuses| statuses.writes(pe.local)),
            other_threads: OtherThreads::default(),
        }
    }
}

/// The reports, for the inquiry of this number.
fn batches(
    number: u32,
    reports: &[PeReport],
    inspected: &[u32],
) -> impl Iterator<Item = SurveyResult> {
    reports.chunks(BATCH).map(move |reports| {
        let is_here = |pe: &&u32| reports.iter().any(|report| report.pe == **pe);
        let inspected = inspected.iter().filter(is_here).copied().collect();
        SurveyResult::Reports { number, reports: reports.to_vec(), inspected }
    })
}

/// Whether the PE runs and waits for nothing in the library, as far as is known.
pub fn is_outside(report: &PeReport) -> bool {
    let runs = matches!(report.process, ProcessState::Runs { .. } | ProcessState::Sleeps);
    let waits_not = |status: &Status| status.waits.is_empty() && status.stage != Stage::Finalized;
    runs && report.status.as_ref().is_none_or(waits_not)
}

/// The process of the PE: the one that its status names, if that runs on this host as this PE, or
/// else the one that was started.
fn process(pe: RunningPe, status: Option<&Status>) -> u32 {
    let named = status.map_or(pe.pid, |status| status.pid);
    let Some(pid) = Pid::from_raw(named as i32).filter(|_| named != pe.pid) else {
        return pe.pid;
    };
    // In a container, its number may be that of another process here.
    let own = format!("{}={}", env::LOCAL_ID, pe.local);
    let environment = descendants::environment(pid);
    let is_pe = environment.split(|&byte| byte == 0).any(|variable| variable == own.as_bytes());
    if is_pe { named } else { pe.pid }
}

/// Whether a debugger is attached.
fn is_traced(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
}

/// Adds the names of the static variables that the statuses mention.
fn add_symbols(reports: &mut [PeReport], pids: &[u32]) {
    let mut programs: HashMap<(u64, u64), (u32, BTreeSet<u64>)> = HashMap::new();
    let program = |pid: u32| fs::metadata(format!("/proc/{pid}/exe")).ok();
    let key = |pid: u32| program(pid).map(|file| (file.dev(), file.ino()));
    for (report, &pid) in reports.iter().zip(pids) {
        let addresses = static_places(report.status.as_ref());
        if !addresses.is_empty()
            && let Some(key) = key(pid)
        {
            let (_, all) = programs.entry(key).or_insert((pid, BTreeSet::new()));
            all.extend(addresses.keys());
        }
    }
    let find = |(key, (pid, addresses)): (_, (u32, BTreeSet<u64>))| {
        let file = File::open(format!("/proc/{pid}/exe")).ok()?;
        Some((key, symbols::find(file, &addresses)))
    };
    let found: HashMap<(u64, u64), HashMap<u64, Variable>> =
        programs.into_iter().filter_map(find).collect();
    for (report, &pid) in reports.iter_mut().zip(pids) {
        let places = static_places(report.status.as_ref());
        if let Some(variables) =
            key(pid).filter(|_| !places.is_empty()).and_then(|key| found.get(&key))
        {
            let name = |(address, nbytes): (u64, u64)| {
                Some((address, variables.get(&address)?.part(nbytes)))
            };
            report.symbols = places.into_iter().filter_map(name).collect();
        }
    }
}

/// The addresses of static variables that a status mentions, and the size of what is there.
fn static_places(status: Option<&Status>) -> HashMap<u64, u64> {
    let mut places = HashMap::new();
    let mut add = |place: &Place, nbytes: u64| {
        if let Place::Static { address } = place {
            places.insert(*address, nbytes);
        }
    };
    if let Some(status) = status {
        status.held_locks.iter().for_each(|lock| add(lock, LOCK_BYTES));
        for wait in &status.waits {
            match &wait.subject {
                Subject::Words(words) => {
                    words.words.iter().for_each(|word| add(&word.place, word.nbytes.into()));
                }
                Subject::Lock { lock, .. } => add(lock, LOCK_BYTES),
                _ => {}
            }
        }
    }
    places
}
