//! The conclusion: what each rule finds to be the cause of waits, and who waits for it.

mod computing;
mod deadlock;
mod gone;
mod in_flight;
mod mismatch;
mod stopped;
mod writer;

use crate::cause::{Cause, Kind, OF_A_KIND};
use crate::graph::Graph;
use crate::job::{Job, Pe, Situation};
use crate::ranges;
use std::cmp::Reverse;

/// The rules, in the order of what they conclude.
const RULES: [fn(&Graph) -> Vec<Cause>; 6] =
    [gone::find, stopped::find, mismatch::find, deadlock::find, computing::find, in_flight::find];

/// Calls in which PEs wait for a cause that are named.
const CALLS: usize = 3;

/// Returns the conclusion. Each cause begins a line; the lines of its further sentences are
/// indented. What holds for several causes is on the last lines.
pub fn conclusion(job: &Job) -> Vec<String> {
    let graph = Graph::new(job);
    let causes: Vec<Cause> = RULES.iter().flat_map(|find| find(&graph)).collect();
    let mut lines = Vec::new();
    if causes.is_empty() {
        lines.push(without_cause(job));
    }
    for of_kind in causes.chunk_by(|one, other| one.kind == other.kind) {
        for (index, cause) in of_kind.iter().take(OF_A_KIND).enumerate() {
            let mut sentences = cause.sentences.clone();
            sentences.extend(waiters(&graph, cause));
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
    lines.extend(deadlock::exception(&graph, &causes));
    lines.extend(writer::hint(job, &causes));
    lines
}

/// Returns where PEs are that are outside the library.
fn stacks(job: &Job) -> Vec<String> {
    let snapshots = job.pes.iter().filter_map(|of| of.snapshot);
    let stacks = snapshots.flat_map(|of| of.stacks.iter().map(|stack| (of.pe, stack)));
    stacks.map(|(pe, stack)| format!("PE {pe} is in {stack}")).collect()
}

/// Returns what there is to say when no PE waits long for another.
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

/// Returns sentences on the PEs that wait for the cause.
fn waiters(graph: &Graph, cause: &Cause) -> Vec<String> {
    let mut is_seen = vec![false; graph.backward.len()];
    let start = [&cause.nodes[..], &cause.pes].concat();
    let direct = next_pes(graph, &start, &mut is_seen);
    let mut indirect = Vec::new();
    let mut next = direct.clone();
    while !next.is_empty() {
        next = next_pes(graph, &next, &mut is_seen);
        indirect.extend(&next);
    }
    let object = if cause.pes.len() == 1 { ranges::pes(&cause.pes) } else { "them".into() };
    let wait = |pes: &[u32]| match pes {
        _ if cause.kind == Kind::Elsewhere => "may wait",
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

/// Returns the PEs that wait for these nodes without another PE between, in ascending order.
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
