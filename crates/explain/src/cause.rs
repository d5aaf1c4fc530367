//! The causes for which PEs wait, and the rules for causes that are the state of a single PE: its
//! process has ended, is stopped, or is outside the library.

use crate::graph::Graph;
use crate::job::{Description, ObservedState, Pe};

/// Maximum number of causes of one kind that are shown.
pub const OF_A_KIND: usize = 3;

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
}

/// Finds hosts that do not answer, and PEs that have left the job although others wait for them.
pub fn gone(graph: &Graph) -> Vec<Cause> {
    let silent = states(graph, Kind::HostSilent, false, |of| {
        matches!(of.state, ObservedState::HostSilent(_))
    });
    let gone = states(graph, Kind::Gone, true, |of| of.state.is_gone());
    silent.into_iter().chain(gone).collect()
}

/// Finds PEs that a signal or a debugger has stopped, or that wait for a disk.
pub fn stopped(graph: &Graph) -> Vec<Cause> {
    let mut stopped = states(graph, Kind::Stopped, false, |of| {
        matches!(of.state, ObservedState::Stopped | ObservedState::Traced)
    });
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

    let on_disk = states(graph, Kind::WaitsForDisk, false, |of| {
        of.state == ObservedState::WaitsForDisk
    });
    stopped.into_iter().chain(on_disk).collect()
}

/// Finds PEs for which others wait, and that do not just wait in the library: they are before the
/// end of `shmem_init`, sleep, compute (perhaps while another thread waits), repeat a call, or are
/// on other hosts.
pub fn outside(graph: &Graph) -> Vec<Cause> {
    use ObservedState::{Computes, Elsewhere, NoStatus, Polls, Sleeps, Starting, Uninitialized};
    let kind = |of: &Pe| match of.state {
        NoStatus | Uninitialized | Starting => Some(Kind::NotStarted),
        Sleeps => Some(Kind::Sleeps),
        Computes | Polls(_) => Some(Kind::Computes),
        Elsewhere => Some(Kind::Elsewhere),
        _ => of.is_busy().then_some(Kind::Computes),
    };

    let kinds = [
        Kind::NotStarted,
        Kind::Sleeps,
        Kind::Computes,
        Kind::Elsewhere,
    ];
    kinds
        .into_iter()
        .filter_map(|wanted| states(graph, wanted, true, |of| kind(of) == Some(wanted)))
        .collect()
}

/// Returns the PEs that `matches` accepts as one cause; `None` if there are none. With
/// `only_awaited`, PEs for which no other PE waits are left out.
fn states(
    graph: &Graph,
    kind: Kind,
    only_awaited: bool,
    matches: impl Fn(&Pe) -> bool,
) -> Option<Cause> {
    let mut pes = graph.job.all(matches);
    if only_awaited {
        pes.retain(|pe| !graph.backward[*pe as usize].is_empty());
    }
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
