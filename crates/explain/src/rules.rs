//! The conclusion: the causes of waits that the rules find, and the PEs that wait for each cause.

mod deadlock;
mod in_flight;
mod writer;

use crate::cause::{self, Cause, Kind, MAX_OF_KIND};
use crate::graph::Graph;
use crate::job::{Description, Detail, Job, ObservedState, Pe};
use crate::ranges::{self, Group};
use std::cmp::Reverse;
use std::collections::HashSet;

/// The rules, in the order of their conclusions.
const RULES: [fn(&Graph) -> Vec<Cause>; 7] = [
    cause::gone,
    cause::stopped,
    deadlock::find_mismatches,
    deadlock::find,
    cause::outside,
    in_flight::find,
    cause::remaining,
];

/// Maximum number of calls that are named of those in which PEs wait for a cause.
const CALLS: usize = 3;

/// Returns the conclusion. Each cause begins with a line of its own; its further lines are
/// indented. At most [`MAX_OF_KIND`] causes of each kind are described. The last lines are about no
/// single cause.
pub fn conclusion(job: &Job) -> Description {
    let graph = Graph::new(job);
    let causes: Vec<Cause> = RULES.iter().flat_map(|find| find(&graph)).collect();
    let mut conclusion = if causes.is_empty() {
        without_cause(job)
    } else {
        Description::default()
    };

    for of_kind in causes.chunk_by(|one, other| one.kind == other.kind) {
        for cause in of_kind.iter().take(MAX_OF_KIND) {
            add_cause(&mut conclusion, &graph, cause);
        }

        match of_kind.len().saturating_sub(MAX_OF_KIND) {
            0 => {}
            1 => {
                let text = "  There is one more case of this kind.";
                conclusion.sentences.push(text.to_owned());
            }
            more => {
                let text = format!("  There are {more} more cases of this kind.");
                conclusion.sentences.push(text);
            }
        }
    }

    let lines = &mut conclusion.sentences;
    for snapshot in job.pes.iter().filter_map(|pe| pe.snapshot) {
        for stack in &snapshot.stacks {
            lines.push(format!("PE {} is in {stack}", snapshot.pe));
        }
    }
    lines.extend(deadlock::exception(&graph, &causes));
    lines.extend(writer::hint(job, &causes));
    lines.extend(deadlock::hint(&graph, &causes));
    conclusion
}

/// Adds the lines of a cause to the conclusion: its description, and the PEs that wait for it.
fn add_cause(conclusion: &mut Description, graph: &Graph, cause: &Cause) {
    let waiters = waiters(graph, cause, &conclusion.described);

    let mut sentences = cause.description.sentences.clone();
    for sentence in waiters.sentences {
        // PEs may wait for several causes.
        let is_known = conclusion
            .sentences
            .iter()
            .any(|line| line.trim() == sentence);
        if !is_known {
            sentences.push(sentence);
        }
    }
    for (n, sentence) in sentences.into_iter().enumerate() {
        let indent = if n == 0 { "" } else { "  " };
        conclusion.sentences.push(format!("{indent}{sentence}"));
    }

    conclusion.described.extend(&cause.description.described);
    conclusion.described.extend(waiters.described);
}

/// Returns the conclusion if the rules have found no cause.
fn without_cause(job: &Job) -> Description {
    if job.pes.iter().any(Pe::is_waiting) {
        let sentence = "The waits are shorter than 1 s: nothing can be concluded from them.";
        return Description {
            sentences: vec![sentence.to_owned()],
            described: Vec::new(),
        };
    }

    let common_state = match &job.pes[..] {
        [first, others @ ..] if others.iter().all(|pe| pe.state == first.state) => {
            Some(first.state)
        }
        _ => None,
    };
    let all = job.all(|_| true);
    match common_state {
        Some(ObservedState::NoStatus) => Description {
            sentences: vec![
                "No PE has a status that can be read; perhaps none has passed shmem_init."
                    .to_owned(),
            ],
            described: all,
        },
        Some(_) if job.n_pes() > 1 => Description {
            sentences: vec![format!(
                "All PEs {}: none waits for another.",
                job.predicate(&all)
            )],
            described: all,
        },
        _ => Description {
            sentences: vec!["No PE waits for another.".to_owned()],
            described: Vec::new(),
        },
    }
}

/// Describes which PEs wait for a cause, and in which calls. For PEs in `described`, whose calls
/// earlier sentences name, the calls are not repeated.
fn waiters(graph: &Graph, cause: &Cause, described: &[u32]) -> Description {
    let job = graph.job;
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
        "them".to_owned()
    };
    let wait = |pes: &[u32]| match pes {
        _ if cause.kind == Kind::Elsewhere => "may wait",
        [_] => "waits",
        _ => "wait",
    };

    let waits = common_waits(job, &direct);
    let described_before: HashSet<u32> = described.iter().copied().collect();
    let mut sentences = Vec::new();
    for Group { key: call, pes } in &waits.groups {
        let call = if pes.iter().all(|pe| described_before.contains(pe)) {
            "too".to_owned()
        } else {
            format!("{call}{}", job.lasting(pes))
        };
        let names = ranges::pes(pes);
        sentences.push(format!("{names} {} for {object} {call}.", wait(pes)));
    }
    if !indirect.is_empty() {
        let names = ranges::pes(&ranges::sorted(&indirect));
        let direct = ranges::pes(&direct);
        sentences.push(format!("{names} {} for {direct}.", wait(&indirect)));
    }

    let mut described = Vec::new();
    if waits.are_detailed {
        // The sentences do not mention threads that compute.
        described = direct;
        described.retain(|pe| !job.pes[*pe as usize].is_busy());
    }
    Description {
        sentences,
        described,
    }
}

/// The waits of PEs, in a few groups.
struct CommonWaits {
    /// PEs with the same wait, the largest group first.
    groups: Vec<Group<String>>,
    /// True if the groups name the awaited words and locks.
    are_detailed: bool,
}

/// Groups PEs by their waits, with as many details as [`CALLS`] groups allow.
fn common_waits(job: &Job, pes: &[u32]) -> CommonWaits {
    let mut groups = ranges::group_by(pes, |pe| job.waits(pe, Detail::Objects));
    let are_detailed = groups.len() <= CALLS;
    if !are_detailed {
        groups = ranges::group_by(pes, |pe| job.waits(pe, Detail::Calls));
    }
    groups.sort_by_key(|group| Reverse(group.pes.len()));

    if groups.len() > CALLS {
        groups = vec![Group {
            key: format!("in {} calls", groups.len()),
            pes: pes.to_vec(),
        }];
    }
    CommonWaits {
        groups,
        are_detailed,
    }
}

/// Returns the PEs that wait directly for these nodes, in ascending order, and marks them and the
/// nodes as seen. PEs that are marked already are left out.
fn next_pes(graph: &Graph, of: &[u32], is_seen: &mut [bool]) -> Vec<u32> {
    for node in of {
        is_seen[*node as usize] = true;
    }

    let mut pes = Vec::new();
    let mut nodes = of.to_vec();
    while let Some(node) = nodes.pop() {
        for &waiter in &graph.backward[node as usize] {
            if std::mem::replace(&mut is_seen[waiter as usize], true) {
                continue;
            }

            // The PEs that wait for a step wait for what the step waits for.
            if graph.is_pe(waiter) {
                pes.push(waiter);
            } else {
                nodes.push(waiter);
            }
        }
    }
    pes.sort_unstable();
    pes
}
