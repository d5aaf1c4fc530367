//! The collectives that PEs are in. A step is the collective of one number on one team, with the
//! PEs that wait in it; members that wait in no collective of the team are elsewhere.

use crate::job::Job;
use crate::situation::is_long;
use crate::status::{Collective, Members, Subject};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The steps, those of a team one after another in order of their numbers.
pub struct Steps<'a> {
    pub list: Vec<Step<'a>>,
    of: HashMap<(u64, u64), usize>,
}

/// A step.
pub struct Step<'a> {
    /// One of the calls.
    pub collective: &'a Collective,
    /// The PEs in it by their call, each list in ascending order.
    pub calls: Vec<(&'a str, Vec<u32>)>,
    /// The PEs that its PEs await and that have not come to it.
    pub awaited: Vec<u32>,
    /// The members that are in no step of the team, on the first step of the team: only those that
    /// are awaited, if the PEs in the step name them.
    pub elsewhere: Vec<u32>,
    /// The step before it on the same team.
    pub before: Option<usize>,
    /// Whether a later step shows that a member has left this one, which it cannot have: it has not
    /// called the same collectives.
    pub is_out_of_step: bool,
    /// Whether the calls belong to different routines.
    differs: bool,
    is_long: bool,
}

impl Step<'_> {
    /// The PEs in it.
    pub fn pes(&self) -> Vec<u32> {
        let mut pes: Vec<u32> = self.calls.iter().flat_map(|(_, pes)| pes).copied().collect();
        pes.sort_unstable();
        pes
    }

    /// Whether no member leaves it before all have entered it. Broadcasts and scans are left by
    /// members whose data nobody else changes.
    pub fn needs_all(&self) -> bool {
        let call = self.calls[0].0.to_lowercase();
        !["broadcast", "scan"].iter().any(|part| call.contains(part))
    }

    /// Whether its PEs, or those of the next step, have not called the same collectives.
    pub fn is_mismatched(&self) -> bool {
        self.differs && self.is_long || self.is_out_of_step
    }
}

impl<'a> Steps<'a> {
    pub fn new(job: &Job<'a>) -> Steps<'a> {
        let mut entered: BTreeMap<(u64, u64), Vec<Entered>> = BTreeMap::new();
        for (pe, of) in (0..).zip(&job.pes) {
            for (wait, _) in of.waits() {
                let Subject::Collective(collective) = &wait.subject else { continue };
                let is_long = of.report.is_some_and(|report| is_long(report, wait));
                let one = Entered { pe, call: &wait.call, is_long, collective };
                entered.entry((collective.number, collective.nth)).or_default().push(one);
            }
        }
        let mut steps = Steps { list: Vec::new(), of: HashMap::new() };
        let mut last_number = None;
        for ((number, nth), entered) in entered {
            let index = steps.list.len();
            let before = (last_number == Some(number)).then(|| index - 1);
            steps.of.insert((number, nth), index);
            steps.list.push(step(&entered, before));
            last_number = Some(number);
        }
        steps.find_missing(job);
        steps.find_out_of_step();
        steps
    }

    /// The step of a collective that a PE is in.
    pub fn of(&self, collective: &Collective) -> Option<usize> {
        self.of.get(&(collective.number, collective.nth)).copied()
    }

    /// Finds the members that have not come to the steps.
    fn find_missing(&mut self, job: &Job) {
        let mut last_step: HashMap<(u64, u32), u64> = HashMap::new();
        for step in &self.list {
            let Collective { number, nth, .. } = step.collective;
            last_step.extend(step.pes().into_iter().map(|pe| ((*number, pe), *nth)));
        }
        for step in &mut self.list {
            let Collective { number, nth, .. } = step.collective;
            let has_come = |pe: &u32| last_step.get(&(*number, *pe)).is_some_and(|at| at >= nth);
            let awaited: BTreeSet<u32> =
                step.pes().into_iter().flat_map(|pe| awaited(job, pe, step.collective)).collect();
            step.awaited = awaited.iter().copied().filter(|pe| !has_come(pe)).collect();
            if step.before.is_none() {
                // Members that are not listed may be awaited.
                let mut members = awaited;
                members.extend(members_of(step.collective, job.n_pes()));
                let is_elsewhere = |pe: &u32| !last_step.contains_key(&(*number, *pe));
                step.elsewhere = members.into_iter().filter(is_elsewhere).collect();
                // Others have perhaps left the step already.
                let is_awaited = |pe: &u32| step.awaited.binary_search(pe).is_ok();
                if step.elsewhere.iter().any(is_awaited) {
                    step.elsewhere.retain(is_awaited);
                }
            }
        }
    }

    fn find_out_of_step(&mut self) {
        for later in 1..self.list.len() {
            let Some(earlier) = self.list[later].before else { continue };
            let both_long = self.list[earlier].is_long && self.list[later].is_long;
            let step = &self.list[earlier];
            let is_first = step.before.is_none() && step.elsewhere.is_empty();
            let left_together = step.calls.iter().all(|(call, _)| is_left_together(call));
            self.list[earlier].is_out_of_step = both_long && is_first && left_together;
        }
    }
}

/// A PE that is in a collective.
struct Entered<'a> {
    pe: u32,
    call: &'a str,
    is_long: bool,
    collective: &'a Collective,
}

fn step<'a>(entered: &[Entered<'a>], before: Option<usize>) -> Step<'a> {
    let mut calls: BTreeMap<String, (&str, Vec<u32>)> = BTreeMap::new();
    for one in entered {
        // Fortran does not distinguish case.
        let pes = &mut calls.entry(one.call.to_lowercase()).or_insert((one.call, Vec::new())).1;
        // A thread that waits for a request and the one that carries it out are in the same call.
        if pes.last() != Some(&one.pe) {
            pes.push(one.pe);
        }
    }
    Step {
        collective: entered[0].collective,
        differs: differ(calls.keys()),
        calls: calls.into_values().collect(),
        awaited: Vec::new(),
        elsewhere: Vec::new(),
        before,
        is_out_of_step: false,
        is_long: entered.iter().all(|one| one.is_long),
    }
}

/// Whether calls on the same team, in lower case, belong to different routines. Names of the C or
/// Fortran interface are not compared with those of the Rust interface: the same routine has
/// another name there, with a colon or spaces.
fn differ<'a>(calls: impl Iterator<Item = &'a String>) -> bool {
    let (rust, standard): (Vec<&String>, Vec<&String>) =
        calls.partition(|call| call.contains([':', ' ']));
    let differ = |calls: Vec<&String>| calls.iter().any(|call| routine(call) != routine(calls[0]));
    differ(rust) || differ(standard)
}

/// One name for all calls of a routine.
fn routine(call: &str) -> &str {
    let prefixes = ["shmemx_", "shmem_", "shmem::", "sh"];
    let name = prefixes.iter().find_map(|prefix| call.strip_prefix(prefix)).unwrap_or(call);
    match name {
        "sync_all" | "team::sync" => "team_sync",
        "memalign" => "align",
        "pdealloc" => "pdeallc",
        "team_split_color" => "team_split",
        _ => name,
    }
}

/// The PE that a PE awaits in a collective.
fn awaited(job: &Job, pe: u32, collective: &Collective) -> impl Iterator<Item = u32> {
    let (number, nth) = (collective.number, collective.nth);
    let awaited = move |subject: &Subject| match subject {
        Subject::Collective(of) if (of.number, of.nth) == (number, nth) => of.awaited,
        _ => None,
    };
    let n_pes = job.n_pes();
    let of = job.pes[pe as usize];
    of.waits().filter_map(move |(wait, _)| awaited(&wait.subject)).filter(move |pe| *pe < n_pes)
}

/// The members of the team that are listed, none of which is above what the job has.
fn members_of(collective: &Collective, n_pes: u32) -> Vec<u32> {
    match &collective.members {
        Members::Strided { start, stride, n } => (0..i64::from((*n).min(n_pes)))
            .map(|index| i64::from(*start) + index * i64::from(*stride))
            .filter_map(|pe| u32::try_from(pe).ok().filter(|pe| *pe < n_pes))
            .collect(),
        Members::Listed { pes, .. } => pes.iter().copied().filter(|pe| *pe < n_pes).collect(),
    }
}

/// Whether the members leave the collective at the same time: it transfers no data of the user's.
fn is_left_together(call: &str) -> bool {
    let call = call.to_lowercase();
    let parts = ["barrier", "sync", "alloc", "deallc", "align", "free", "finalize", "team_"];
    let transfers = ["reduce", "collect", "broadcast", "alltoall", "scan"];
    parts.iter().any(|part| call.contains(part))
        && !transfers.iter().any(|part| call.contains(part))
}
