//! The causes of waits: what each PE waits for in the end, directly or through others.

use crate::graph::{End, Graph};
use crate::job::Job;
use crate::situation::Situation;
use crate::steps::Steps;
use std::collections::BTreeMap;
use std::mem::discriminant;

/// Causes of a kind that are followed: each takes a walk through the graph.
const OF_A_KIND: usize = 3;

/// A cause, and who waits for it.
pub struct Cause {
    pub kind: Kind,
    /// The PEs that are the cause, in ascending order.
    pub pes: Vec<u32>,
    /// Other PEs that wait for one of them.
    pub direct: Vec<u32>,
    /// Other PEs that wait for those.
    pub indirect: Vec<u32>,
    /// How many more causes of the kind there are, which are left out.
    pub more: usize,
}

/// What kind of cause it is, in the order of conclusions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Hosts do not answer.
    // Cause: the host is down, or the network between the hosts. Remedy: look at the host; the job
    // ends after SHMEM_HOST_LIMIT.
    HostSilent,
    /// PEs have ended, finalized or come to their exit.
    // Cause: a PE returned from `main` or exited before a collective that others are in. Remedy:
    // look for the first message of that PE, or for a path on which it leaves early.
    Gone,
    /// Signals or debuggers have stopped PEs.
    // Cause: SIGSTOP, Ctrl-Z, a breakpoint, or a container that is paused. Remedy: send SIGCONT, or
    // continue in the debugger.
    Stopped,
    /// PEs wait for a disk.
    // Cause: a file system that does not answer, or swapping. Remedy: look at the disk, and use
    // less memory on the host.
    WaitsForDisk,
    /// The members of a team have called different collectives, in the step with this index.
    // Cause: PEs of a team have made different calls, as where `if (me == 0) shmem_barrier_all();`.
    // Remedy: make the same calls in the same order on all members.
    Mismatch(usize),
    /// PEs wait for each other: these nodes, each for the next one and the last one for the first.
    // Cause: locks that are taken in different orders, or each PE waits before it writes. Remedy:
    // follow the rule that the explanation names.
    Cycle(Vec<u32>),
    /// PEs wait for words that no PE can write any more.
    // Cause: the put or the signal was forgotten, or went to another PE or element. Remedy: look at
    // the writers of that word.
    WordOfNobody,
    /// PEs have not come through `shmem_init`, by what is known.
    // Cause: the program is still in its start, or is no program of OpenSHMEM. Remedy: wait, or
    // look at the process.
    NotStarted,
    /// PEs sleep outside the library.
    // Cause: a system call of the program, such as `read` or `sleep`. Remedy: look at the stack
    // that the explanation shows.
    Sleeps,
    /// PEs compute.
    // Cause: the program works between two calls. Remedy: wait, or attach a debugger if it takes
    // too long.
    Computes,
    /// PEs are on other hosts, of which nothing is known.
    Elsewhere,
    /// PEs wait without an end in sight, though others can still end it.
    // Cause: a word is not written yet, or the network is slow. Remedy: wait; look at the PEs that
    // can write it.
    Open(End),
    /// All members are in the step with this index.
    // Cause: the collective is long, or the members pass different arguments. Remedy: wait, or run
    // with `SHMEM_CHECK=1`.
    UnderWay(usize),
}

/// The causes of all waits, in the order of conclusions.
pub fn find(job: &Job, steps: &Steps, graph: &Graph) -> Vec<Cause> {
    let mut roots: BTreeMap<Kind, Vec<u32>> = BTreeMap::new();
    for (pe, of) in (0..).zip(&job.pes) {
        let kind = match of.situation {
            Situation::Waits(_) if of.is_busy() => Kind::Computes,
            Situation::Waits(_) => continue,
            situation => of_situation(&situation),
        };
        let is_awaited = !graph.backward[pe as usize].is_empty();
        if is_awaited || matches!(kind, Kind::HostSilent | Kind::Stopped | Kind::WaitsForDisk) {
            roots.entry(kind).or_default().push(pe);
        }
    }
    for &(pe, end) in &graph.ends {
        let is_dead = end == End::Word && !graph.can_continue[pe as usize];
        let kind = if is_dead { Kind::WordOfNobody } else { Kind::Open(end) };
        roots.entry(kind).or_default().push(pe);
    }
    for (index, step) in steps.list.iter().enumerate() {
        let node = graph.step(index);
        if step.is_mismatched() {
            roots.entry(Kind::Mismatch(index)).or_default().push(node);
        } else if graph.forward[node as usize].is_empty() {
            roots.entry(Kind::UnderWay(index)).or_default().push(node);
        }
    }
    for cycle in cycles(graph, &roots) {
        roots.insert(Kind::Cycle(cycle.clone()), cycle);
    }
    let mut causes: Vec<Cause> = Vec::new();
    for (kind, nodes) in roots {
        let n_of_kind =
            causes.iter().filter(|cause| discriminant(&cause.kind) == discriminant(&kind)).count();
        match causes.last_mut() {
            Some(last) if n_of_kind == OF_A_KIND => last.more += 1,
            _ => causes.push(cause(steps, graph, kind, nodes)),
        }
    }
    causes
}

fn of_situation(situation: &Situation) -> Kind {
    match situation {
        Situation::Elsewhere => Kind::Elsewhere,
        Situation::HostSilent(_) => Kind::HostSilent,
        Situation::Ended(_) | Situation::Finalized | Situation::Leaving => Kind::Gone,
        Situation::Stopped | Situation::Traced => Kind::Stopped,
        Situation::WaitsForDisk => Kind::WaitsForDisk,
        Situation::NoStatus | Situation::Uninitialized | Situation::Starting => Kind::NotStarted,
        Situation::Sleeps => Kind::Sleeps,
        Situation::Computes | Situation::Waits(_) => Kind::Computes,
    }
}

/// Follows the edges back from the nodes of a cause.
fn cause(steps: &Steps, graph: &Graph, kind: Kind, nodes: Vec<u32>) -> Cause {
    let mut pes: Vec<u32> = nodes.iter().copied().filter(|node| graph.is_pe(*node)).collect();
    if let Kind::Mismatch(index) | Kind::UnderWay(index) = &kind {
        pes = steps.list[*index].pes();
    }
    pes.sort_unstable();
    pes.dedup();
    let mut is_seen = vec![false; graph.backward.len()];
    let mut start = nodes;
    start.extend(&pes);
    let direct = next_pes(graph, &start, &mut is_seen);
    let mut indirect = Vec::new();
    let mut next = direct.clone();
    while !next.is_empty() {
        next = next_pes(graph, &next, &mut is_seen);
        indirect.extend(&next);
    }
    indirect.sort_unstable();
    Cause { kind, pes, direct, indirect, more: 0 }
}

/// The PEs that wait for these nodes without another PE between, in ascending order.
fn next_pes(graph: &Graph, of: &[u32], is_seen: &mut [bool]) -> Vec<u32> {
    let mut pes = Vec::new();
    let mut nodes = of.to_vec();
    for node in of {
        is_seen[*node as usize] = true;
    }
    while let Some(node) = nodes.pop() {
        for &waiter in &graph.backward[node as usize] {
            if std::mem::replace(&mut is_seen[waiter as usize], true) {
                continue;
            }
            if graph.is_pe(waiter) { pes.push(waiter) } else { nodes.push(waiter) }
        }
    }
    pes.sort_unstable();
    pes
}

/// The cycles among nodes that cannot continue, except those that wait for another cause anyway.
fn cycles(graph: &Graph, roots: &BTreeMap<Kind, Vec<u32>>) -> Vec<Vec<u32>> {
    let is_final =
        |kind: &Kind| matches!(kind, Kind::Gone | Kind::Mismatch(_) | Kind::WordOfNobody);
    let mut is_left: Vec<bool> = graph.can_continue.iter().map(|can| !can).collect();
    let mut explained: Vec<u32> = roots
        .iter()
        .filter(|(kind, _)| is_final(kind))
        .flat_map(|(_, nodes)| nodes)
        .copied()
        .collect();
    while let Some(node) = explained.pop() {
        if std::mem::replace(&mut is_left[node as usize], false) {
            explained.extend(&graph.backward[node as usize]);
        }
    }
    let next = |node: u32| {
        graph.forward[node as usize].iter().copied().find(|next| is_left[*next as usize])
    };
    // The start of the way on which each node was met first.
    let mut met_from: Vec<Option<u32>> = vec![None; graph.forward.len()];
    let mut cycles = Vec::new();
    for start in (0..graph.forward.len() as u32).filter(|node| is_left[*node as usize]) {
        let mut node = start;
        let mut way = Vec::new();
        while met_from[node as usize].is_none() {
            met_from[node as usize] = Some(start);
            way.push(node);
            match next(node) {
                Some(next) => node = next,
                None => break,
            }
        }
        let first = way.iter().position(|met| *met == node);
        if let Some(first) = first.filter(|_| next(*way.last().unwrap_or(&node)) == Some(node)) {
            cycles.push(way.split_off(first));
        }
    }
    cycles
}
