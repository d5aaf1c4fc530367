//! Waits that cannot end: members of a team in different collectives, PEs that wait for each other,
//! and words that no PE is left to write.

use super::{in_flight, writer};
use crate::cause::{Cause, Kind, MAX_OF_KIND};
use crate::graph::{End, Graph};
use crate::job::{Description, Detail, Job};
use crate::ranges::{self, Group, enumerate};
use crate::status::{AwaitedObject, Wait};
use crate::steps::{Step, StepId};
use crate::wording::{self, ordinal};
use std::cmp::Reverse;

/// Maximum number of PEs of a cycle that are named.
const NAMED: usize = 6;

/// Finds cycles of waits, and PEs that wait for words that no PE is left to write.
pub fn find(graph: &Graph) -> Vec<Cause> {
    let mut words = ranges::sorted(&graph.pes_with(End::Word));
    words.retain(|pe| !graph.can_continue[*pe as usize]);

    let mut causes = causes_of_cycles(graph, &words);
    if !words.is_empty() {
        causes.push(Cause {
            kind: Kind::WordOfNobody,
            description: describe_words(graph, &words),
            nodes: words.clone(),
            pes: words,
        });
    }
    causes
}

/// Returns the causes that are cycles of waits. `words` are the PEs that wait for words that no PE
/// is left to write.
fn causes_of_cycles(graph: &Graph, words: &[u32]) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    let mut cycles = cycles(graph, words);
    cycles.sort_unstable();
    for nodes in cycles {
        let mut pes = nodes.clone();
        pes.retain(|node| graph.is_pe(*node));
        // The description begins with the lowest PE, wherever the cycle was entered.
        let lowest = (0..pes.len()).min_by_key(|index| pes[*index]).unwrap_or(0);
        pes.rotate_left(lowest);

        // The other descriptions are not shown.
        let description = if causes.len() < MAX_OF_KIND {
            describe_cycle(graph, &pes)
        } else {
            Description::default()
        };
        causes.push(Cause {
            kind: Kind::Cycle,
            nodes,
            pes: ranges::sorted(&pes),
            description,
        });
    }
    causes
}

/// Returns the cycles among the nodes that cannot continue. Left out are nodes with another cause:
/// those that wait, also indirectly, for a mismatch, for a PE that has left the job, or for
/// `words`.
fn cycles(graph: &Graph, words: &[u32]) -> Vec<Vec<u32>> {
    let n_nodes = graph.forward.len();
    let mut explained = graph.job.all(|pe| pe.state.is_gone());
    for (index, step) in graph.steps.iter().enumerate() {
        if step.is_mismatched {
            explained.push(graph.node_of_step(index));
        }
    }
    explained.extend(words);

    // Everything that waits for what is explained is explained, too.
    let mut is_left: Vec<bool> = graph.can_continue.iter().map(|can| !can).collect();
    while let Some(node) = explained.pop() {
        if std::mem::replace(&mut is_left[node as usize], false) {
            explained.extend(&graph.backward[node as usize]);
        }
    }

    // A node that is left waits for one that is left, so each path ends in a cycle or in a node of
    // an earlier path. Each node is visited once.
    let mut is_visited = vec![false; n_nodes];
    let mut cycles = Vec::new();
    for start in 0..n_nodes as u32 {
        if !is_left[start as usize] {
            continue;
        }

        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(node) = next
            && !is_visited[node as usize]
        {
            is_visited[node as usize] = true;
            path.push(node);
            next = graph.forward[node as usize]
                .iter()
                .copied()
                .find(|next| is_left[*next as usize]);
        }

        if let Some(first) = path.iter().position(|node| Some(*node) == next) {
            cycles.push(path.split_off(first));
        }
    }
    cycles
}

/// Describes a cycle of PEs: each waits for the next one, and the last one for the first.
fn describe_cycle(graph: &Graph, pes: &[u32]) -> Description {
    let kind = cycle_kind(graph, pes);
    let mut sentences = vec![format!("{}:", kind.title)];

    for (index, &pe) in pes.iter().enumerate().take(NAMED) {
        let next = pes[(index + 1) % pes.len()];
        let next = if next == pe {
            "itself".to_owned()
        } else {
            format!("PE {next}")
        };
        let waits = graph.job.waits(pe, Detail::Peers);
        let lasted = graph.job.durations(&[pe]);
        sentences.push(format!("PE {pe} has waited {lasted} for {next} {waits}."));
    }
    if pes.len() > NAMED {
        sentences.push(format!("This cycle goes on: it has {} PEs.", pes.len()));
    }

    sentences.extend(kind.rule.map(str::to_owned));
    Description {
        sentences,
        described: pes.iter().copied().take(NAMED).collect(),
    }
}

/// What a cycle of waits is called.
struct CycleKind {
    title: &'static str,
    /// The rule that the program breaks, if there is one.
    rule: Option<&'static str>,
}

fn cycle_kind(graph: &Graph, pes: &[u32]) -> CycleKind {
    let are_collectives =
        subjects(graph, pes).all(|subject| matches!(subject, AwaitedObject::Collective(_)));
    let are_active_sets = subjects(graph, pes).all(|subject| match subject {
        AwaitedObject::Collective(collective) => collective.is_active_set,
        _ => false,
    });

    if are_active_sets {
        CycleKind {
            title: "Mismatched active sets",
            rule: Some("All members must pass the same active set."),
        }
    } else if are_collectives {
        CycleKind {
            title: "Deadlock of collectives on different teams",
            rule: Some("PEs must call collectives in the same order on all teams that they share."),
        }
    } else {
        CycleKind {
            title: title(graph),
            rule: None,
        }
    }
}

fn subjects<'a>(graph: &'a Graph, pes: &'a [u32]) -> impl Iterator<Item = &'a AwaitedObject> {
    pes.iter()
        .flat_map(|pe| graph.job.pes[*pe as usize].waits())
        .map(|(wait, _)| &wait.subject)
}

/// Describes PEs that wait for words that no PE is left to write.
fn describe_words(graph: &Graph, pes: &[u32]) -> Description {
    let mut others = graph.job.all(|_| true);
    others.retain(|pe| pes.binary_search(pe).is_err());

    let mut description = graph.job.describe(pes);
    let sentences = &mut description.sentences;

    // A single PE that waits while the others are at work is no deadlock.
    let is_waiting = |pe: &u32| graph.job.pes[*pe as usize].is_waiting();
    if pes.len() > 1 || others.iter().any(is_waiting) {
        sentences[0].insert_str(0, &format!("{}: ", title(graph)));
    }

    let writer = match other_threads(graph) {
        None => "No PE".to_owned(),
        Some(threads) => format!("At most a thread {}", threads.clause),
    };
    let word = if pes.len() == 1 {
        "this word"
    } else {
        "these words"
    };
    let why = why_none_writes(graph, pes, &others);
    sentences.push(format!("{writer} is left to write {word}: {why}."));
    sentences.extend(in_flight::on_operations(graph.job, pes));
    sentences.extend(writer::sentences(graph.job, pes));
    description
}

/// Returns the reason, as a clause, why none of the `others` writes a word for which `pes` wait.
fn why_none_writes(graph: &Graph, pes: &[u32], others: &[u32]) -> String {
    let groups = ranges::group_by(others, |pe| Activity {
        of_one: graph.job.activity(pe, 1),
        of_many: graph.job.activity(pe, 2),
    });

    match &groups[..] {
        [] if pes.len() == 1 => "there is no other PE".to_owned(),
        [] => "all PEs wait for such words".to_owned(),
        [all] if all.pes.len() > 1 => format!("all others {}", all.key.of_many),
        several => {
            let clauses = several.iter().map(|group| {
                let activity = if group.pes.len() == 1 {
                    &group.key.of_one
                } else {
                    &group.key.of_many
                };
                format!("{} {activity}", ranges::pes(&group.pes))
            });
            enumerate(clauses.collect())
        }
    }
}

/// The predicate of a sentence about what one PE does, and about what several do.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Activity {
    of_one: String,
    of_many: String,
}

/// Returns the title of waits that cannot end, except by what [`exception`] names.
fn title(graph: &Graph) -> &'static str {
    if other_threads(graph).is_some() {
        "Perhaps a deadlock"
    } else {
        "Deadlock"
    }
}

/// Waiting PEs that have other threads which may continue.
struct OtherThreads {
    pes: Vec<u32>,
    /// A clause about such a thread.
    clause: &'static str,
}

/// Returns the waiting PEs with threads whose waits the status only counts or, if there are none,
/// those with threads that sleep outside the library.
fn other_threads(graph: &Graph) -> Option<OtherThreads> {
    let unlisted = graph
        .job
        .all(|pe| pe.is_waiting() && pe.further_waits() > 0);
    if !unlisted.is_empty() {
        return Some(OtherThreads {
            pes: unlisted,
            clause: "whose wait is not listed",
        });
    }

    let sleeping = graph.job.all(|pe| {
        pe.is_waiting()
            && pe
                .snapshot
                .is_some_and(|snapshot| snapshot.other_threads.sleeping > 0)
    });
    if sleeping.is_empty() {
        return None;
    }
    Some(OtherThreads {
        pes: sleeping,
        clause: "that sleeps outside the library",
    })
}

/// Returns a sentence on the only threads and operations that could still end the waits of these
/// causes, if there are any. Another thread of a waiting PE can end a wait for words, a lock,
/// operations or a message. It cannot end a collective or finalize, which the waiting members have
/// entered themselves.
pub fn exception(graph: &Graph, causes: &[Cause]) -> Option<String> {
    const OPERATION: &str = "operation that is still in flight over a network";

    let applies = causes.iter().any(|cause| match cause.kind {
        Kind::WordOfNobody => true,
        Kind::Cycle => subjects(graph, &cause.pes).any(another_thread_can_end),
        _ => false,
    });
    if !applies {
        return None;
    }

    let threads = other_threads(graph).map(|threads| {
        format!(
            "A thread of {} {}",
            ranges::pes(&threads.pes),
            threads.clause
        )
    });
    let who = match (threads, in_flight::is_nothing(graph.job)) {
        (None, true) => return None,
        (None, false) => format!("An {OPERATION}"),
        (Some(threads), true) => threads,
        (Some(threads), false) => format!("{threads}, or an {OPERATION},"),
    };
    Some(format!("{who} could end such waits; nothing else can."))
}

/// Returns a hint on how to learn more, if a collective takes part in a deadlock, or if its members
/// may have passed different arguments, and no PE checks collectives.
pub fn hint(graph: &Graph, causes: &[Cause]) -> Option<String> {
    let applies = causes.iter().any(|cause| match cause.kind {
        Kind::Cycle => subjects(graph, &cause.pes)
            .any(|subject| matches!(subject, AwaitedObject::Collective(_))),
        // All members have entered it, so arguments that differ may keep it from its end.
        Kind::UnderWay => true,
        _ => false,
    });
    if !applies {
        return None;
    }

    // With the checks, the call itself would have named such a mistake.
    let are_checked = graph.job.pes.iter().any(|pe| {
        pe.snapshot
            .and_then(|snapshot| snapshot.status.as_ref())
            .is_some_and(|status| status.checks)
    });
    if are_checked {
        return None;
    }

    Some(
        "Run with SHMEM_CHECK=1 to learn which members call another collective, or pass other \
         arguments."
            .to_owned(),
    )
}

/// Returns true if another thread of a waiting PE can end a wait for this object.
fn another_thread_can_end(subject: &AwaitedObject) -> bool {
    match subject {
        AwaitedObject::Words(_)
        | AwaitedObject::Lock { .. }
        | AwaitedObject::Operations { .. }
        | AwaitedObject::Message { .. } => true,
        AwaitedObject::Collective(_) | AwaitedObject::Exit | AwaitedObject::Leaving => false,
    }
}

/// Maximum number of different calls of a step that are named.
const NAMED_CALLS: usize = 3;

/// Finds steps in which members of a team have called different collectives.
pub fn find_mismatches(graph: &Graph) -> Vec<Cause> {
    (0..graph.steps.len())
        .filter(|index| graph.steps[*index].is_mismatched)
        .map(|index| Cause {
            kind: Kind::Mismatch,
            nodes: vec![graph.node_of_step(index)],
            pes: graph.steps[index].pes(),
            description: describe_mismatch(graph, index),
        })
        .collect()
}

/// Describes a step in which members have called different collectives.
fn describe_mismatch(graph: &Graph, index: usize) -> Description {
    let step = &graph.steps[index];
    let team = &step.collective.team;
    let nth = ordinal(step.collective.nth);

    let mut described = Vec::new();
    let what = if step.is_out_of_step {
        // The next step is on the same team, or no member could be in it.
        let next = &graph.steps[index + 1];
        let next_nth = ordinal(next.collective.nth);
        let here = describe_calls(graph.job, step, Verb::IsIn);
        let there = describe_calls(graph.job, next, Verb::IsIn);
        described.extend(here.described);
        described.extend(there.described);
        format!(
            "{}, the {nth} one, but {}, already the {next_nth} one",
            here.clause, there.clause
        )
    } else {
        let calls = describe_calls(graph.job, step, Verb::HasCalled);
        described.extend(calls.described);
        format!("as the {nth} one, {}", calls.clause)
    };

    let waited = if described.is_empty() {
        graph.job.durations(&step.pes())
    } else {
        graph.job.durations(&described)
    };
    Description {
        sentences: vec![
            format!("Mismatched collectives on {team}: {what}. They have waited {waited}."),
            "All members must call the same collectives in the same order.".to_owned(),
        ],
        described,
    }
}

/// The verb between PEs and their call.
#[derive(Clone, Copy)]
enum Verb {
    IsIn,
    HasCalled,
}

impl Verb {
    fn of(self, n_pes: usize) -> &'static str {
        match self {
            _ if n_pes != 1 => self.of_many(),
            Verb::IsIn => "is in",
            Verb::HasCalled => "has called",
        }
    }

    fn of_many(self) -> &'static str {
        match self {
            Verb::IsIn => "are in",
            Verb::HasCalled => "have called",
        }
    }
}

/// A clause on the calls of a step.
struct CallsOfStep {
    clause: String,
    /// The PEs that the clause names and that wait for nothing else.
    described: Vec<u32>,
}

/// Describes which PEs are in each call of a step.
fn describe_calls(job: &Job, step: &Step, verb: Verb) -> CallsOfStep {
    let is_in_step = |wait: &Wait| match &wait.subject {
        AwaitedObject::Collective(other) => StepId::of(other) == StepId::of(step.collective),
        _ => false,
    };
    let waits = |pe: u32| job.pes[pe as usize].waits().map(|(wait, _)| wait);

    let mut calls = ranges::group_by(&step.pes(), |pe| {
        let call = waits(pe).find(|wait| is_in_step(wait)).map(wording::call);
        call.unwrap_or_default()
    });
    calls.sort_by_key(|group| (Reverse(group.pes.len()), group.key.to_lowercase()));
    let rest = calls.split_off(NAMED_CALLS.min(calls.len()));

    let mut clauses = Vec::new();
    let mut described = Vec::new();
    for Group { key: call, pes } in calls {
        let names = ranges::pes(&pes);
        clauses.push(format!("{names} {} {call}", verb.of(pes.len())));
        described.extend(pes.into_iter().filter(|pe| waits(*pe).all(is_in_step)));
    }
    if !rest.is_empty() {
        let have = verb.of_many();
        clauses.push(format!("other PEs {have} {} other routines", rest.len()));
    }
    CallsOfStep {
        clause: enumerate(clauses),
        described,
    }
}
