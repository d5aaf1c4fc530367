//! Waits that cannot end: members of a team in different collectives, PEs that wait for each other,
//! and words that no PE is left to write.

use super::{in_flight, writer};
use crate::cause::{Cause, Kind, OF_A_KIND};
use crate::graph::{End, Graph};
use crate::job::{Description, Detail, Job, Pe};
use crate::ranges::{self, enumerate};
use crate::status::{Subject, Wait};
use crate::steps::Step;
use crate::wording::{self, ordinal};
use std::cmp::Reverse;

/// Maximum number of PEs of a cycle that are named.
const NAMED: usize = 6;

/// Finds cycles of waits, and PEs that wait for words that no PE is left to write.
pub fn find(graph: &Graph) -> Vec<Cause> {
    let is_dead = |pe: &u32| !graph.can_continue[*pe as usize];
    let words = graph
        .ends
        .iter()
        .filter(|(_, end)| *end == End::Word)
        .map(|(pe, _)| *pe);
    let words = ranges::sorted(&words.filter(is_dead).collect::<Vec<u32>>());
    let mut causes: Vec<Cause> = Vec::new();
    let mut cycles = cycles(graph, &words);
    cycles.sort_unstable();
    for nodes in cycles {
        let mut pes: Vec<u32> = nodes
            .iter()
            .copied()
            .filter(|node| graph.is_pe(*node))
            .collect();
        let lowest = (0..pes.len()).min_by_key(|index| pes[*index]).unwrap_or(0);
        pes.rotate_left(lowest);
        // The other descriptions are not shown.
        let description = if causes.len() < OF_A_KIND {
            of_cycle(graph, &pes)
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
    if !words.is_empty() {
        let description = of_words(graph, &words);
        let nodes = words.clone();
        causes.push(Cause {
            kind: Kind::WordOfNobody,
            nodes,
            pes: words,
            description,
        });
    }
    causes
}

/// Returns the cycles among the nodes that cannot continue. Left out are nodes with another cause:
/// those that wait, also indirectly, for a mismatch, for a PE that has left the job, or for
/// `words`.
fn cycles(graph: &Graph, words: &[u32]) -> Vec<Vec<u32>> {
    let mismatched = (0..graph.steps.len()).filter(|index| graph.steps[*index].is_mismatched);
    let gone = graph.job.all(|of| of.situation.is_gone());
    let mut explained: Vec<u32> = mismatched
        .map(|index| graph.node_of_step(index))
        .chain(gone)
        .collect();
    explained.extend(words);
    let mut is_left: Vec<bool> = graph.can_continue.iter().map(|can| !can).collect();
    while let Some(node) = explained.pop() {
        if std::mem::replace(&mut is_left[node as usize], false) {
            explained.extend(&graph.backward[node as usize]);
        }
    }
    let next = |node: u32| {
        graph.forward[node as usize]
            .iter()
            .copied()
            .find(|next| is_left[*next as usize])
    };
    // For each visited node, the start of the path on which it was first visited.
    let mut met_from: Vec<Option<u32>> = vec![None; graph.forward.len()];
    let mut cycles = Vec::new();
    for start in (0..graph.forward.len() as u32).filter(|node| is_left[*node as usize]) {
        let mut path = Vec::new();
        let mut node = Some(start);
        while let Some(at) = node.filter(|at| met_from[*at as usize].is_none()) {
            met_from[at as usize] = Some(start);
            path.push(at);
            node = next(at);
        }
        if let Some(first) = path.iter().position(|met| Some(*met) == node) {
            cycles.push(path.split_off(first));
        }
    }
    cycles
}

/// Describes a cycle of PEs: each waits for the next one, and the last one for the first.
fn of_cycle(graph: &Graph, pes: &[u32]) -> Description {
    let (title, rule) = of_kind(graph, pes);
    let mut sentences = vec![format!("{title}:")];
    for (index, &pe) in pes.iter().enumerate().take(NAMED) {
        let next = match pes[(index + 1) % pes.len()] {
            next if next == pe => "itself".to_owned(),
            next => format!("PE {next}"),
        };
        let (waits, lasted) = (
            graph.job.waits(pe, Detail::Peers),
            graph.job.durations(&[pe]),
        );
        sentences.push(format!("PE {pe} has waited {lasted} for {next} {waits}."));
    }
    if pes.len() > NAMED {
        sentences.push(format!("This cycle goes on: it has {} PEs.", pes.len()));
    }
    sentences.extend(rule.map(str::to_owned));
    Description {
        sentences,
        described: pes.iter().copied().take(NAMED).collect(),
    }
}

/// Returns the title of a cycle, and the rule that the program breaks, if there is one.
fn of_kind(graph: &Graph, pes: &[u32]) -> (&'static str, Option<&'static str>) {
    let teams = subjects(graph, pes).map(|subject| match subject {
        Subject::Collective(of) => Some(of.is_active_set),
        _ => None,
    });
    match teams.collect::<Option<Vec<bool>>>() {
        Some(are_active_sets) if are_active_sets.iter().all(|is_active_set| *is_active_set) => (
            "Mismatched active sets",
            Some("All members must pass the same active set."),
        ),
        Some(_) => (
            "Deadlock of collectives on different teams",
            Some("PEs must call collectives in the same order on all teams that they share."),
        ),
        None => (title(graph), None),
    }
}

fn subjects<'a>(graph: &'a Graph, pes: &'a [u32]) -> impl Iterator<Item = &'a Subject> {
    pes.iter()
        .flat_map(|pe| graph.job.pes[*pe as usize].waits())
        .map(|(wait, _)| &wait.subject)
}

/// Describes PEs that wait for words that no PE is left to write.
fn of_words(graph: &Graph, pes: &[u32]) -> Description {
    let word = if pes.len() == 1 {
        "this word"
    } else {
        "these words"
    };
    let others: Vec<u32> = graph
        .job
        .all(|_| true)
        .into_iter()
        .filter(|pe| pes.binary_search(pe).is_err())
        .collect();
    let is_waiting = |pe: &u32| graph.job.pes[*pe as usize].is_waiting();
    let groups = ranges::fold(&others, |pe| [1, 2].map(|n| graph.job.activity(pe, n)));
    let why = match &groups[..] {
        [] if pes.len() == 1 => "there is no other PE".to_owned(),
        [] => "all PEs wait for such words".to_owned(),
        [([_, many], others)] if others.len() > 1 => format!("all others {many}"),
        several => {
            let text = |([one, many], pes): &([String; 2], Vec<u32>)| {
                format!(
                    "{} {}",
                    ranges::pes(pes),
                    if pes.len() == 1 { one } else { many }
                )
            };
            enumerate(several.iter().map(text).collect())
        }
    };
    let writer = match other_threads(graph) {
        (pes, _) if pes.is_empty() => "No PE".to_owned(),
        (_, what) => format!("At most a thread {what}"),
    };
    let mut description = graph.job.describe(pes);
    let sentences = &mut description.sentences;
    if pes.len() > 1 || others.iter().any(is_waiting) {
        sentences[0].insert_str(0, &format!("{}: ", title(graph)));
    }
    sentences.push(format!("{writer} is left to write {word}: {why}."));
    sentences.extend(in_flight::sentences(graph.job, pes));
    sentences.extend(writer::sentences(graph.job, pes));
    description
}

/// Returns the title of waits that cannot end, except by what [`exception`] names.
fn title(graph: &Graph) -> &'static str {
    if other_threads(graph).0.is_empty() {
        "Deadlock"
    } else {
        "Perhaps a deadlock"
    }
}

/// Returns the waiting PEs that have other threads which may continue: threads that sleep outside
/// the library, or threads whose waits the status only counts. Also returns a clause about such a
/// thread.
fn other_threads(graph: &Graph) -> (Vec<u32>, &'static str) {
    let is_sleeping = |of: &Pe| of.snapshot.is_some_and(|pe| pe.other_threads.sleeping > 0);
    match graph
        .job
        .all(|of| of.is_waiting() && of.further_waits() > 0)
    {
        pes if !pes.is_empty() => (pes, "whose wait is not listed"),
        _ => (
            graph.job.all(|of| of.is_waiting() && is_sleeping(of)),
            "that sleeps outside the library",
        ),
    }
}

/// Returns a sentence on the only threads and operations that could still end the waits of these
/// causes, if there are any. Another thread of a waiting PE can end a wait for words, a lock or a
/// message. It cannot end a collective or finalize, which the waiting members have entered
/// themselves.
pub fn exception(graph: &Graph, causes: &[Cause]) -> Option<String> {
    let is_helped = |subject| {
        !matches!(
            subject,
            &Subject::Collective(_) | &Subject::Exit | &Subject::Leaving
        )
    };
    let holds = causes.iter().any(|cause| match cause.kind {
        Kind::WordOfNobody => true,
        Kind::Cycle => subjects(graph, &cause.pes).any(is_helped),
        _ => false,
    });
    let threads = match other_threads(graph) {
        (pes, _) if pes.is_empty() => None,
        (pes, what) => Some(format!("A thread of {} {what}", ranges::pes(&pes))),
    };
    let operations = "n operation that is still in flight over a network";
    let who = match (threads, in_flight::is_nothing(graph.job)) {
        (None, true) => return None,
        (None, false) => format!("A{operations}"),
        (Some(threads), true) => threads,
        (Some(threads), false) => format!("{threads}, or a{operations},"),
    };
    holds.then(|| format!("{who} could end such waits; nothing else can."))
}

/// Maximum number of different calls of a step that are named.
const NAMED_CALLS: usize = 3;

/// Finds steps in which members of a team have called different collectives.
pub fn find_mismatches(graph: &Graph) -> Vec<Cause> {
    let mismatched = (0..graph.steps.len()).filter(|index| graph.steps[*index].is_mismatched);
    let cause = |index: usize| {
        let step = &graph.steps[index];
        let (team, nth) = (&step.collective.team, ordinal(step.collective.nth));
        let mut described = Vec::new();
        let mut called = |step, verbs| describe_calls(graph.job, step, verbs, &mut described);
        let what = if step.is_out_of_step {
            let next = &graph.steps[index + 1];
            let here = called(step, ["is in", "are in"]);
            let there = called(next, ["is in", "are in"]);
            let next_nth = ordinal(next.collective.nth);
            format!("{here}, the {nth} one, but {there}, already the {next_nth} one")
        } else {
            format!(
                "as the {nth} one, {}",
                called(step, ["has called", "have called"])
            )
        };
        let pes = if described.is_empty() {
            step.pes()
        } else {
            described.clone()
        };
        let waited = graph.job.durations(&pes);
        let sentences = vec![
            format!("Mismatched collectives on {team}: {what}. They have waited {waited}."),
            "All members must call the same collectives in the same order.".to_owned(),
        ];
        let (nodes, description) = (
            vec![graph.node_of_step(index)],
            Description {
                sentences,
                described,
            },
        );
        Cause {
            kind: Kind::Mismatch,
            nodes,
            pes: step.pes(),
            description,
        }
    };
    mismatched.map(cause).collect()
}

/// Describes which PEs are in each call of a step, and adds those that wait for nothing else to
/// `described`.
fn describe_calls(
    job: &Job,
    step: &Step,
    [one, many]: [&str; 2],
    described: &mut Vec<u32>,
) -> String {
    let is_in = |wait: &Wait| match &wait.subject {
        Subject::Collective(of) => {
            (of.number, of.nth) == (step.collective.number, step.collective.nth)
        }
        _ => false,
    };
    let waits = |pe: u32| job.pes[pe as usize].waits().map(|(wait, _)| wait);
    let call = |pe: u32| waits(pe).find(|wait| is_in(wait)).map(wording::call);
    let mut calls = ranges::fold(&step.pes(), |pe| call(pe).unwrap_or_default());
    calls.sort_by_key(|(call, pes)| (Reverse(pes.len()), call.to_lowercase()));
    let text = |(call, pes): &(String, Vec<u32>)| {
        format!(
            "{} {} {call}",
            ranges::pes(pes),
            if pes.len() == 1 { one } else { many }
        )
    };
    let mut texts: Vec<String> = calls.iter().take(NAMED_CALLS).map(text).collect();
    if calls.len() > NAMED_CALLS {
        texts.push(format!(
            "other PEs {many} {} other routines",
            calls.len() - NAMED_CALLS
        ));
    }
    let named = calls.into_iter().take(NAMED_CALLS).flat_map(|(_, pes)| pes);
    described.extend(named.filter(|pe| waits(*pe).all(is_in)));
    enumerate(texts)
}
