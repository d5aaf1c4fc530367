//! The causes for which PEs wait, and the rules for causes that are the state of a single PE: its
//! process has ended, is stopped, or is outside the library.

use crate::graph::Graph;
use crate::job::{Description, ObservedState};
use crate::ranges::{self, Group};
use crate::snapshot::ProcessState;

/// Maximum number of causes of one kind that are shown.
pub const MAX_OF_KIND: usize = 3;

/// One reason for which PEs wait.
pub struct Cause {
    pub kind: Kind,
    /// The nodes of the graph that are the cause.
    pub nodes: Vec<u32>,
    /// The PEs that the cause is about: those among the nodes, or those in the step.
    pub pes: Vec<u32>,
    /// The sentences about the cause.
    pub description: Description,
}

/// The kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hosts do not answer.
    HostSilent,
    /// PEs have ended, finalized or reached their exit.
    Gone,
    /// Signals or debuggers have stopped PEs.
    Stopped,
    /// PEs wait for a disk.
    WaitsForDisk,
    /// The members of a team have called different collectives.
    Mismatch,
    /// PEs wait for each other, each for the next one and the last one for the first.
    Cycle,
    /// PEs wait for words that no PE can write any more.
    WordOfNobody,
    /// PEs have not completed `shmem_init`, as far as is known.
    NotStarted,
    /// PEs sleep outside the library.
    Sleeps,
    /// PEs compute, or repeat a call.
    Computes,
    /// PEs are on other hosts, and nothing is known of them.
    Elsewhere,
    /// PEs wait for words that others can still write.
    WordOfOthers,
    /// PEs wait, and nothing is known that prevents the end of their waits.
    Open,
    /// No member is known to be missing in the collective.
    UnderWay,
    /// PEs have finalized, as all others, but have not exited.
    Remains,
}

/// Finds hosts that do not answer, and PEs that have left the job although others wait for them.
pub fn gone(graph: &Graph) -> Vec<Cause> {
    let silent = graph
        .job
        .all(|pe| matches!(pe.state, ObservedState::HostSilent(_)));
    let mut gone = graph.job.all(|pe| pe.state.is_gone());
    gone.retain(|pe| graph.is_awaited(*pe));

    let causes = [
        cause(graph, Kind::HostSilent, silent),
        cause(graph, Kind::Gone, gone),
    ];
    causes.into_iter().flatten().collect()
}

/// Finds PEs that a signal or a debugger has stopped, or that wait for a disk.
pub fn stopped(graph: &Graph) -> Vec<Cause> {
    let stopped = graph
        .job
        .all(|pe| matches!(pe.state, ObservedState::Stopped | ObservedState::Traced));
    let mut stopped = cause(graph, Kind::Stopped, stopped);
    if let Some(cause) = &mut stopped {
        let continues = if cause.pes.len() == 1 {
            "It continues"
        } else {
            "They continue"
        };
        cause.description.sentences.push(format!(
            "{continues} after the signal CONT or the debugger's command."
        ));
    }

    let on_disk = graph.job.all(|pe| pe.state == ObservedState::WaitsForDisk);
    let on_disk = cause(graph, Kind::WaitsForDisk, on_disk);
    stopped.into_iter().chain(on_disk).collect()
}

/// Finds PEs for which others wait, and that do not just wait in the library: they are before the
/// end of `shmem_init`, sleep, compute (perhaps while another thread waits), repeat a call, or are
/// on other hosts.
pub fn outside(graph: &Graph) -> Vec<Cause> {
    use ObservedState::{
        Computes, Elsewhere, NoStatus, Polls, Sleeps, Starting, Uninitialized, WaitsForChild,
    };
    let mut not_started = Vec::new();
    let mut sleeping = Vec::new();
    let mut computing = Vec::new();
    let mut elsewhere = Vec::new();
    for (pe, observed) in (0..).zip(&graph.job.pes) {
        if !graph.is_awaited(pe) {
            continue;
        }
        match observed.state {
            NoStatus | Uninitialized | Starting => not_started.push(pe),
            Sleeps | WaitsForChild => sleeping.push(pe),
            Computes | Polls(_) => computing.push(pe),
            Elsewhere => elsewhere.push(pe),
            _ if observed.is_busy() => computing.push(pe),
            _ => {}
        }
    }

    let causes = [
        cause(graph, Kind::NotStarted, not_started),
        cause(graph, Kind::Sleeps, sleeping),
        cause(graph, Kind::Computes, computing),
        cause(graph, Kind::Elsewhere, elsewhere),
    ];
    causes.into_iter().flatten().collect()
}

/// Finds the PEs that keep a job from its end after all PEs have finalized: their processes have
/// not exited.
pub fn remaining(graph: &Graph) -> Vec<Cause> {
    let job = graph.job;
    if !job.pes.iter().all(|pe| pe.state.is_gone()) {
        return Vec::new();
    }

    let remaining = job.all(|pe| pe.state == ObservedState::Finalized);
    let groups = ranges::group_by(&remaining, |pe| {
        job.pes[pe as usize]
            .snapshot
            .is_some_and(|snapshot| matches!(snapshot.process, ProcessState::Runs { .. }))
    });
    let mut sentences = Vec::new();
    for Group { key: runs, pes } in groups {
        let (has, it) = if pes.len() == 1 {
            ("has", "it")
        } else {
            ("have", "they")
        };
        let does = match (runs, pes.len()) {
            (true, 1) => "computes",
            (true, _) => "compute",
            (false, 1) => "sleeps",
            (false, _) => "sleep",
        };
        let names = ranges::pes(&pes);
        sentences.push(format!(
            "{names} {has} finalized, but not exited: {it} {does} outside the library."
        ));
    }
    if sentences.is_empty() {
        return Vec::new();
    }
    vec![Cause {
        kind: Kind::Remains,
        nodes: remaining.clone(),
        pes: remaining.clone(),
        description: Description {
            sentences,
            described: remaining,
        },
    }]
}

/// Returns the state of these PEs as a cause; `None` if there are none.
fn cause(graph: &Graph, kind: Kind, pes: Vec<u32>) -> Option<Cause> {
    if pes.is_empty() {
        return None;
    }

    Some(Cause {
        kind,
        description: graph.job.describe(&pes),
        nodes: pes.clone(),
        pes,
    })
}
