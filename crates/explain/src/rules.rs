//! The conclusion: what each rule finds to be the cause of waits, and who waits for it.

mod computing;
mod deadlock;
mod gone;
mod in_flight;
mod mismatch;
mod stopped;
mod writer;

use crate::graph::Graph;
use crate::job::{Job, Pe, Situation};
use crate::ranges;
use std::cmp::Reverse;

/// The rules, in the order of what they conclude.
const RULES: [fn(&Graph) -> Vec<Finding>; 6] =
    [gone::find, stopped::find, mismatch::find, deadlock::find, computing::find, in_flight::find];

/// Findings of a kind that are told.
const OF_A_KIND: usize = 3;

/// Calls in which PEs wait for a cause that are named.
const CALLS: usize = 3;

/// What a rule has found.
struct Finding {
    kind: Kind,
    /// The nodes of the graph that are the cause, and the PEs that are.
    nodes: Vec<u32>,
    pes: Vec<u32>,
    /// What is said of it.
    sentences: Vec<String>,
}

/// A cause of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The members of a team have called different collectives.
    // Cause: PEs of a team have made different calls, as where `if (me == 0) shmem_barrier_all();`.
    // Remedy: make the same calls in the same order on all members.
    Mismatch,
    /// PEs wait for each other, each for the next one and the last one for the first.
    // Cause: locks that are taken in different orders, or each PE waits before it writes. Remedy:
    // follow the rule that the explanation names.
    Cycle,
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
    /// PEs wait for words that others can still write.
    // Cause: a word is not written yet. Remedy: wait; look at the PEs that can write it.
    WordOfOthers,
    /// PEs wait without an end in sight, though nothing is known to prevent it.
    // Cause: the network is slow, or a wait has just begun. Remedy: wait, and ask again.
    Open,
    /// All members are in the collective.
    // Cause: the collective is long, or the members pass different arguments. Remedy: wait, or run
    // with `SHMEM_CHECK=1`.
    UnderWay,
}

/// The conclusion. Each finding begins a line; the lines of its further sentences are indented. What
/// holds for several findings is on the last lines.
pub fn conclusion(job: &Job) -> Vec<String> {
    let graph = Graph::new(job);
    let findings: Vec<Finding> = RULES.iter().flat_map(|find| find(&graph)).collect();
    let mut lines = Vec::new();
    if findings.is_empty() {
        lines.push(without_cause(job));
    }
    for of_kind in findings.chunk_by(|one, other| one.kind == other.kind) {
        for (index, finding) in of_kind.iter().take(OF_A_KIND).enumerate() {
            let mut sentences = finding.sentences.clone();
            sentences.extend(waiters(&graph, finding));
            match of_kind.len() - index - 1 {
                more if index < OF_A_KIND - 1 || more == 0 => {}
                1 => sentences.push("There is one more case of this kind.".into()),
                more => sentences.push(format!("There are {more} more cases of this kind.")),
            }
            let indented = |(n, sentence)| if n == 0 { sentence } else { format!("  {sentence}") };
            lines.extend(sentences.into_iter().enumerate().map(indented));
        }
    }
    lines.extend(stacks(job));
    lines.extend(deadlock::exception(&graph, &findings));
    lines.extend(writer::hint(job, &findings));
    lines
}

/// Where PEs are that are outside the library.
fn stacks(job: &Job) -> Vec<String> {
    let snapshots = job.pes.iter().filter_map(|of| of.snapshot);
    let stacks = snapshots.flat_map(|of| of.stacks.iter().map(|stack| (of.pe, stack)));
    stacks.map(|(pe, stack)| format!("PE {pe} is in {stack}")).collect()
}

/// What there is to say when no PE waits long for another.
fn without_cause(job: &Job) -> String {
    if job.pes.iter().any(Pe::is_waiting) {
        return "The waits are shorter than 1 s: nothing can be concluded from them.".into();
    }
    let first = job.pes.first().map(|of| of.situation);
    match first.filter(|first| job.pes.iter().all(|of| of.situation == *first)) {
        Some(Situation::NoStatus) => {
            "No PE has a status that can be read; perhaps none has passed shmem_init.".into()
        }
        Some(all) if job.n_pes() > 1 => {
            format!("All PEs {}: none waits for another.", all.predicate(job.pes.len()))
        }
        _ => "No PE waits for another.".into(),
    }
}

/// The PEs in this kind of situation, if there are any. `awaited`: only those for which others
/// wait.
fn states(graph: &Graph, kind: Kind, awaited: bool, is: impl Fn(&Pe) -> bool) -> Option<Finding> {
    let mut pes = graph.job.all(is);
    pes.retain(|pe| !awaited || !graph.backward[*pe as usize].is_empty());
    let sentences = graph.job.sentences(&pes);
    (!pes.is_empty()).then(|| Finding { kind, nodes: pes.clone(), pes, sentences })
}

/// Sentences on who waits for the cause.
fn waiters(graph: &Graph, finding: &Finding) -> Vec<String> {
    let mut is_seen = vec![false; graph.backward.len()];
    let start = [&finding.nodes[..], &finding.pes].concat();
    let direct = next_pes(graph, &start, &mut is_seen);
    let mut indirect = Vec::new();
    let mut next = direct.clone();
    while !next.is_empty() {
        next = next_pes(graph, &next, &mut is_seen);
        indirect.extend(&next);
    }
    let object = if finding.pes.len() == 1 { ranges::pes(&finding.pes) } else { "them".into() };
    let wait = |pes: &[u32]| match pes {
        _ if finding.kind == Kind::Elsewhere => "may wait",
        [_] => "waits",
        _ => "wait",
    };
    let mut calls = ranges::fold(&direct, |pe| graph.job.waits(pe, false));
    calls.sort_by_key(|(_, pes)| Reverse(pes.len()));
    if calls.len() > CALLS {
        calls = vec![(format!("in {} calls", calls.len()), direct.clone())];
    }
    let of_call = |(call, pes): &(String, Vec<u32>)| {
        format!("{} {} for {object} {call}.", ranges::pes(pes), wait(pes))
    };
    let mut sentences: Vec<String> = calls.iter().map(of_call).collect();
    if !indirect.is_empty() {
        let (pes, direct) = (ranges::pes(&ranges::sorted(&indirect)), ranges::pes(&direct));
        sentences.push(format!("{pes} {} for {direct}.", wait(&indirect)));
    }
    sentences
}

/// The PEs that wait for these nodes without another PE between, in ascending order.
fn next_pes(graph: &Graph, of: &[u32], is_seen: &mut [bool]) -> Vec<u32> {
    let mut pes = Vec::new();
    let mut nodes = of.to_vec();
    of.iter().for_each(|node| is_seen[*node as usize] = true);
    while let Some(node) = nodes.pop() {
        for &waiter in &graph.backward[node as usize] {
            if !std::mem::replace(&mut is_seen[waiter as usize], true) {
                if graph.is_pe(waiter) { pes.push(waiter) } else { nodes.push(waiter) }
            }
        }
    }
    pes.sort_unstable();
    pes
}
