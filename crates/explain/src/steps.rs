//! The collectives in which PEs wait. A step is one collective on one team, identified by its
//! number, with the PEs that wait in it. Members of the team that wait in none of its collectives
//! are elsewhere.

use crate::job::Job;
use crate::ranges::{self, Group};
use crate::status::{AwaitedObject, Collective, Members};
use std::collections::{BTreeMap, HashMap};

/// Identifies a step: the number of the team, and the number of the collective on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId {
    team: u64,
    nth: u64,
}

impl StepId {
    pub fn of(collective: &Collective) -> StepId {
        StepId {
            team: collective.number,
            nth: collective.nth,
        }
    }
}

/// A collective on a team, and the PEs that wait in it.
pub struct Step<'a> {
    /// The collective, as the first PE in the step describes it.
    pub collective: &'a Collective,
    /// The PEs in the step by their call, each list in ascending order.
    pub calls: Vec<Group<&'a str>>,
    /// The PEs that have not entered the step and for which PEs in it wait.
    pub awaited: Vec<u32>,
    /// In the first step of a team: the members that are in no step of the team. If the PEs in the
    /// step wait for some of these in particular, only those.
    pub elsewhere: Vec<u32>,
    /// True if the step before it in the list is on the same team.
    pub is_later: bool,
    /// True if the members have called different collectives: the calls of this step belong to
    /// different routines, or it is out of step.
    pub is_mismatched: bool,
    /// True if a member is in the next step although no member can have left this one.
    pub is_out_of_step: bool,
    /// True if all its waits have lasted long enough for conclusions.
    is_long: bool,
}

/// Returns the steps of all teams; those of one team are contiguous and ordered by number.
pub fn steps<'a>(job: &Job<'a>) -> Vec<Step<'a>> {
    let last_steps = LastSteps::new(job);
    let mut steps = entered_steps(job);
    for index in 0..steps.len() {
        let (before, rest) = steps.split_at_mut(index);
        let step = &mut rest[0];
        let StepId { team, nth } = StepId::of(step.collective);
        step.is_mismatched = step.is_long && differ(&step.calls);

        let awaited = ranges::sorted(&step.awaited);
        step.awaited = awaited.clone();
        // A PE that some report as awaited may have entered the step meanwhile.
        step.awaited
            .retain(|pe| last_steps.of(team, *pe).is_none_or(|last| last < nth));

        match before.last_mut() {
            Some(before) if before.collective.number == team => {
                step.is_later = true;
                // The conditions say that all members are in some step of the team, and that none
                // can have left the one before.
                before.is_out_of_step = before.is_long
                    && step.is_long
                    && !before.is_later
                    && before.elsewhere.is_empty()
                    && before.calls.iter().all(|group| is_left_together(group.key));
                before.is_mismatched |= before.is_out_of_step;
            }
            _ => {
                // Members that are not listed may be awaited.
                let mut members = members(step.collective, job.n_pes());
                members.extend(awaited);
                step.elsewhere = missing_members(step, &members, &last_steps);
            }
        }
    }
    steps
}

/// Returns those of the members that are in no step of the team of `step`, its first one. If the
/// PEs in the step wait for some of these in particular, returns only those: the other members may
/// have left the step already.
fn missing_members(step: &Step, members: &[u32], last_steps: &LastSteps) -> Vec<u32> {
    let team = step.collective.number;
    let mut missing = ranges::sorted(members);
    missing.retain(|pe| last_steps.of(team, *pe).is_none());

    let is_awaited = |pe: &u32| step.awaited.binary_search(pe).is_ok();
    if missing.iter().any(is_awaited) {
        missing.retain(is_awaited);
    }
    missing
}

/// Returns the steps in order, with the PEs that wait in them and those for which they wait.
fn entered_steps<'a>(job: &Job<'a>) -> Vec<Step<'a>> {
    let mut steps: BTreeMap<StepId, Step> = BTreeMap::new();
    for (pe, observed) in (0..).zip(&job.pes) {
        for (wait, _) in observed.waits() {
            let AwaitedObject::Collective(collective) = &wait.subject else {
                continue;
            };

            let step = steps
                .entry(StepId::of(collective))
                .or_insert_with(|| Step::new(collective));
            step.enter(pe, &wait.call);
            step.is_long &= observed.is_long(wait);
            step.awaited
                .extend(collective.awaited.filter(|pe| *pe < job.n_pes()));
        }
    }
    steps.into_values().collect()
}

/// The number of the last step of each team in which a PE waits.
struct LastSteps(HashMap<TeamMember, u64>);

/// A PE in a team.
#[derive(PartialEq, Eq, Hash)]
struct TeamMember {
    team: u64,
    pe: u32,
}

impl LastSteps {
    fn new(job: &Job) -> LastSteps {
        let mut last_steps = HashMap::new();
        for (pe, observed) in (0..).zip(&job.pes) {
            for (wait, _) in observed.waits() {
                let AwaitedObject::Collective(collective) = &wait.subject else {
                    continue;
                };
                let member = TeamMember {
                    team: collective.number,
                    pe,
                };
                // Threads of a PE may be in different steps.
                let last: &mut u64 = last_steps.entry(member).or_default();
                *last = collective.nth.max(*last);
            }
        }
        LastSteps(last_steps)
    }

    fn of(&self, team: u64, pe: u32) -> Option<u64> {
        self.0.get(&TeamMember { team, pe }).copied()
    }
}

impl<'a> Step<'a> {
    fn new(collective: &'a Collective) -> Step<'a> {
        Step {
            collective,
            calls: Vec::new(),
            awaited: Vec::new(),
            elsewhere: Vec::new(),
            is_later: false,
            is_mismatched: false,
            is_out_of_step: false,
            is_long: true,
        }
    }

    fn enter(&mut self, pe: u32, call: &'a str) {
        // Fortran does not distinguish case.
        let group = self
            .calls
            .iter_mut()
            .find(|group| group.key.eq_ignore_ascii_case(call));
        match group {
            // A thread that waits for a request and the one that carries it out are in one call.
            Some(group) if group.pes.last() == Some(&pe) => {}
            Some(group) => group.pes.push(pe),
            None => self.calls.push(Group {
                key: call,
                pes: vec![pe],
            }),
        }
    }

    /// Returns the PEs in the step.
    pub fn pes(&self) -> Vec<u32> {
        let mut pes: Vec<u32> = self
            .calls
            .iter()
            .flat_map(|group| &group.pes)
            .copied()
            .collect();
        pes.sort_unstable();
        pes
    }

    /// Returns true if no member leaves the collective before all have entered it.
    pub fn needs_all(&self) -> bool {
        needs_all(self.calls[0].key)
    }
}

/// Returns true if no member leaves this collective before all have entered it. A member may leave
/// one with a root, or a scan, as soon as its own part is done.
fn needs_all(call: &str) -> bool {
    let call = call.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| call.contains(part));
    has(&["reduce_scatter", "all_gather"])
        || !has(&[
            "broadcast",
            "scan",
            "gather",
            "scatter",
            "reduce_to",
            "::reduce_into",
            "start_reduce_into",
        ])
}

/// Returns true if calls on the same team belong to different routines. Names of C and Fortran are
/// not compared with those of Rust, which are different for the same routine and have a colon or
/// spaces.
fn differ(calls: &[Group<&str>]) -> bool {
    let (rust, standard): (Vec<String>, Vec<String>) = calls
        .iter()
        .map(|group| group.key.to_lowercase())
        .partition(|name| name.contains([':', ' ']));
    for names in [rust, standard] {
        if names.iter().any(|name| routine(name) != routine(&names[0])) {
            return true;
        }
    }
    false
}

/// Returns one name for all calls of a routine.
fn routine(call: &str) -> &str {
    let prefixes = ["shmemx_", "shmem_", "shmem::", "sh"];
    let name = prefixes
        .iter()
        .find_map(|prefix| call.strip_prefix(prefix))
        .unwrap_or(call);
    match name {
        "sync_all" | "team::sync" => "team_sync",
        "memalign" => "align",
        "pdealloc" => "pdeallc",
        "team_split_color" => "team_split",
        _ => name,
    }
}

/// Returns the members that the status lists, as far as they are PEs of the job.
fn members(collective: &Collective, n_pes: u32) -> Vec<u32> {
    let mut members: Vec<u32> = match &collective.members {
        Members::Strided { start, stride, n } => (0..i64::from((*n).min(n_pes)))
            .map(|index| i64::from(*start) + index * i64::from(*stride))
            .filter_map(|pe| u32::try_from(pe).ok())
            .collect(),
        Members::Listed { pes, .. } => pes.clone(),
    };
    members.retain(|pe| *pe < n_pes);
    members
}

/// Returns true if the collective transfers no data of the program, so that all members leave it at
/// the same time.
fn is_left_together(call: &str) -> bool {
    let call = call.to_lowercase();
    let parts = [
        "barrier", "sync", "alloc", "deallc", "align", "free", "finalize", "team_",
    ];
    let transfers = [
        "reduce",
        "collect",
        "broadcast",
        "alltoall",
        "scan",
        "gather",
        "scatter",
    ];
    parts.iter().any(|part| call.contains(part))
        && !transfers.iter().any(|part| call.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_may_leave_before_others_enter_where_these_give_them_nothing() {
        for call in [
            "shmem_broadcastmem",
            "shmemx_int_max_exscan",
            "shmemx_gathermem",
            "shmemx_long_scatter_nb",
            "shmemx_long_sum_reduce_to",
            "Team::gather_into",
            "Team::reduce_into",
            "Team::start_reduce_into",
        ] {
            assert!(!needs_all(call), "{call}");
        }
        for call in [
            "shmem_barrier_all",
            "shmemx_long_sum_reduce",
            "shmemx_long_sum_reduce_scatter",
            "Team::all_gather_into",
            "Team::all_reduce_into",
            "Team::start_reduce_scatter_into",
        ] {
            assert!(needs_all(call), "{call}");
        }
    }
}
