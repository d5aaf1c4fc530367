//! The conclusion: the causes of waits that the rules find, and the PEs that wait for each cause.

mod deadlock;
mod in_flight;
mod writer;

use crate::cause::{self, Cause, Kind, OF_A_KIND};
use crate::graph::Graph;
use crate::job::{Description, Detail, Job, Pe, Situation};
use crate::ranges;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The rules, in the order of their conclusions.
const RULES: [fn(&Graph) -> Vec<Cause>; 6] = [
    cause::gone,
    cause::stopped,
    deadlock::find_mismatches,
    deadlock::find,
    cause::outside,
    in_flight::find,
];

/// Maximum number of calls that are named of those in which PEs wait for a cause.
const CALLS: usize = 3;

/// Returns the conclusion. Each cause begins with a line of its own; its further lines are
/// indented. At most [`OF_A_KIND`] causes of each kind are described. The last lines are about no
/// single cause.
pub fn conclusion(job: &Job) -> Description {
    let graph = Graph::new(job);
    let causes: Vec<Cause> = RULES.iter().flat_map(|find| find(&graph)).collect();
    let Description {
        sentences: mut lines,
        mut described,
    } = match causes.is_empty() {
        true => without_cause(job),
        false => Description::default(),
    };
    for of_kind in causes.chunk_by(|one, other| one.kind == other.kind) {
        for (index, cause) in of_kind.iter().take(OF_A_KIND).enumerate() {
            let Description {
                mut sentences,
                described: of_cause,
            } = cause.description.clone();
            let waiters = waiters(&graph, cause, &described);
            let is_new = |sentence: &String| !lines.iter().any(|line| line.trim() == sentence);
            sentences.extend(waiters.sentences.into_iter().filter(is_new));
            described.extend(of_cause.into_iter().chain(waiters.described));
            match of_kind.len() - index - 1 {
                more if index < OF_A_KIND - 1 || more == 0 => {}
                1 => sentences.push("There is one more case of this kind.".into()),
                more => sentences.push(format!("There are {more} more cases of this kind.")),
            }
            let indented = |(n, sentence)| {
                if n == 0 {
                    sentence
                } else {
                    format!("  {sentence}")
                }
            };
            lines.extend(sentences.into_iter().enumerate().map(indented));
        }
    }
    lines.extend(stacks(job));
    lines.extend(deadlock::exception(&graph, &causes));
    lines.extend(writer::hint(job, &causes));
    Description {
        sentences: lines,
        described,
    }
}

/// Returns the stacks that gdb has found, a sentence for each.
fn stacks(job: &Job) -> Vec<String> {
    let snapshots = job.pes.iter().filter_map(|of| of.snapshot);
    let stacks = snapshots.flat_map(|of| of.stacks.iter().map(|stack| (of.pe, stack)));
    stacks
        .map(|(pe, stack)| format!("PE {pe} is in {stack}"))
        .collect()
}

/// Returns the conclusion if the rules have found no cause.
fn without_cause(job: &Job) -> Description {
    let all = job.all(|_| true);
    let of_all = |sentence: String| Description {
        sentences: vec![sentence],
        described: all.clone(),
    };
    let of_none = |sentence: &str| Description {
        sentences: vec![sentence.into()],
        described: vec![],
    };
    if job.pes.iter().any(Pe::is_waiting) {
        return of_none("The waits are shorter than 1 s: nothing can be concluded from them.");
    }
    let first = job.pes.first().map(|of| of.situation);
    match first.filter(|first| job.pes.iter().all(|of| of.situation == *first)) {
        Some(Situation::NoStatus) => of_all(
            "No PE has a status that can be read; perhaps none has passed shmem_init.".to_owned(),
        ),
        Some(_) if job.n_pes() > 1 => of_all(format!(
            "All PEs {}: none waits for another.",
            job.predicate(&all)
        )),
        _ => of_none("No PE waits for another."),
    }
}

/// Describes which PEs wait for a cause, and in which calls. For PEs in `described`, whose calls
/// earlier sentences name, the calls are not repeated.
fn waiters(graph: &Graph, cause: &Cause, described: &[u32]) -> Description {
    let mut is_seen = vec![false; graph.backward.len()];
    let start = [&cause.nodes[..], &cause.pes].concat();
    let direct = next_pes(graph, &start, &mut is_seen);
    let mut indirect = Vec::new();
    let mut next = direct.clone();
    while !next.is_empty() {
        next = next_pes(graph, &next, &mut is_seen);
        indirect.extend(&next);
    }
    let object = if cause.pes.len() == 1 {
        ranges::pes(&cause.pes)
    } else {
        "them".into()
    };
    let wait = |pes: &[u32]| match pes {
        _ if cause.kind == Kind::Elsewhere => "may wait",
        [_] => "waits",
        _ => "wait",
    };
    let job = graph.job;
    let calls = |detail| ranges::fold(&direct, |pe| job.waits(pe, detail));
    let mut shown = calls(Detail::Objects);
    let is_detailed = shown.len() <= CALLS;
    if !is_detailed {
        shown = calls(Detail::Calls);
    }
    shown.sort_by_key(|(_, pes)| Reverse(pes.len()));
    if shown.len() > CALLS {
        shown = vec![(format!("in {} calls", shown.len()), direct.clone())];
    }
    let described: HashSet<u32> = described.iter().copied().collect();
    let of_call = |(call, pes): &(String, Vec<u32>)| {
        let is_described = pes.iter().all(|pe| described.contains(pe));
        let call = if is_described {
            "too".into()
        } else {
            format!("{call}{}", job.lasting(pes))
        };
        format!("{} {} for {object} {call}.", ranges::pes(pes), wait(pes))
    };
    let mut sentences: Vec<String> = shown.iter().map(of_call).collect();
    // The sentences do not mention threads that compute.
    let is_idle = |pe: &u32| !job.pes[*pe as usize].is_busy();
    let described = direct
        .iter()
        .copied()
        .filter(|pe| is_detailed && is_idle(pe))
        .collect();
    if !indirect.is_empty() {
        let (pes, direct) = (
            ranges::pes(&ranges::sorted(&indirect)),
            ranges::pes(&direct),
        );
        sentences.push(format!("{pes} {} for {direct}.", wait(&indirect)));
    }
    Description {
        sentences,
        described,
    }
}

/// Returns the PEs that wait directly for these nodes, in ascending order, and marks them and the
/// nodes as seen. PEs that are marked already are left out.
fn next_pes(graph: &Graph, of: &[u32], is_seen: &mut [bool]) -> Vec<u32> {
    let mut pes = Vec::new();
    let mut nodes = of.to_vec();
    of.iter().for_each(|node| is_seen[*node as usize] = true);
    while let Some(node) = nodes.pop() {
        for &waiter in &graph.backward[node as usize] {
            if !std::mem::replace(&mut is_seen[waiter as usize], true) {
                if graph.is_pe(waiter) {
                    pes.push(waiter)
                } else {
                    nodes.push(waiter)
                }
            }
        }
    }
    pes.sort_unstable();
    pes
}
