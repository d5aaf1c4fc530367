//! Waits that can still end: for words that other PEs may write, and for operations and collectives
//! that are in progress.

use super::writer;
use crate::cause::{Cause, Kind};
use crate::graph::{End, Graph};
use crate::job::{Job, Pe, Situation};
use crate::ranges;
use crate::status::{InFlight, Stage};

/// Maximum number of PEs with operations in flight that are named.
const NAMED: usize = 3;

/// Finds PEs whose waits can still end, and PEs in collectives that no member is missing in.
pub fn find(graph: &Graph) -> Vec<Cause> {
    let mut causes = Vec::new();
    // A PE that also computes is described by `cause::outside` if others wait for it.
    let is_busy = |(pe, of): (usize, &Pe)| of.is_busy() && !graph.backward[pe].is_empty();
    let mut is_described: Vec<bool> = graph.job.pes.iter().enumerate().map(is_busy).collect();
    for end in [
        End::Word,
        End::YoungWord,
        End::SatisfiedWord,
        End::Network,
        End::Lock,
    ] {
        let is_open = |pe: &u32| end != End::Word || graph.can_continue[*pe as usize];
        let pes = graph
            .ends
            .iter()
            .filter(|(_, other)| *other == end)
            .map(|(pe, _)| *pe);
        let mut pes = ranges::sorted(&pes.filter(is_open).collect::<Vec<u32>>());
        // Threads of a PE may wait for different events; only the first one is described.
        pes.retain(|pe| !std::mem::replace(&mut is_described[*pe as usize], true));
        if !pes.is_empty() {
            let mut description = graph.job.describe(&pes);
            description.sentences.extend(of_end(graph, end, &pes));
            let kind = if end == End::Word {
                Kind::WordOfOthers
            } else {
                Kind::Open
            };
            causes.push(Cause {
                kind,
                nodes: pes.clone(),
                pes,
                description,
            });
        }
    }
    for (index, step) in graph.steps.iter().enumerate() {
        let node = graph.node_of_step(index);
        let mut pes = step.pes();
        pes.retain(|pe| !is_described[*pe as usize]);
        if !pes.is_empty() && !step.is_mismatched && graph.forward[node as usize].is_empty() {
            pes.iter().for_each(|pe| is_described[*pe as usize] = true);
            let mut description = graph.job.describe(&pes);
            description.sentences.push(
                "No member is missing: the collective is under way, or the members have passed \
                 different arguments."
                    .to_owned(),
            );
            causes.push(Cause {
                kind: Kind::UnderWay,
                nodes: vec![node],
                pes,
                description,
            });
        }
    }
    causes
}

/// Returns sentences on how the waits of these PEs may end.
fn of_end(graph: &Graph, end: End, pes: &[u32]) -> Vec<String> {
    let either = |one: &str, many: &str| if pes.len() == 1 { one } else { many }.to_owned();
    match end {
        End::Word => {
            let word = either("this word", "these words");
            let (elsewhere, here) = writers(graph);
            [
                (here, "can still write"),
                (elsewhere, "may, on other hosts, write"),
            ]
            .into_iter()
            .filter(|(pes, _)| !pes.is_empty())
            .map(|(pes, verb)| format!("{} {verb} {word}.", ranges::pes(&pes)))
            .chain(self::sentences(graph.job, pes))
            .chain(writer::sentences(graph.job, pes))
            .collect()
        }
        End::YoungWord => vec!["This is too short for a conclusion.".to_owned()],
        End::SatisfiedWord => {
            vec![either(
                "It is about to continue.",
                "They are about to continue.",
            )]
        }
        End::Network => vec![
            "No target is known to be stopped or lost: the network is slow or loses data.".into(),
        ],
        End::Lock => vec!["It is not known which PE holds the lock.".to_owned()],
    }
}

/// Returns the PEs that can continue even if no PE writes an awaited word: those that do not wait,
/// or if there are none, those whose waits can end. The first list has the PEs on other hosts, of
/// which nothing is known, the second one the others.
fn writers(graph: &Graph) -> (Vec<u32>, Vec<u32>) {
    let of = |pe: &u32| &graph.job.pes[*pe as usize];
    let is_free = |pe: &u32| of(pe).is_busy() || !of(pe).is_waiting();
    let mut writers = graph.unaided.clone();
    if writers.iter().any(is_free) {
        writers.retain(is_free);
    }
    writers
        .into_iter()
        .partition(|pe| of(pe).situation == Situation::Elsewhere)
}

/// Returns sentences on the operations in flight that may end the waits of these PEs for words.
/// Says that there are none only if the operations of all PEs are known.
pub fn sentences(job: &Job, pes: &[u32]) -> Vec<String> {
    let all = (0..)
        .zip(&job.pes)
        .filter_map(|(pe, of)| Some((pe, of_pe(of)?)));
    let targeting: Vec<String> = all
        .filter_map(|(pe, operations)| sentence(pe, &operations, pes))
        .take(NAMED)
        .collect();
    if targeting.is_empty() && job.pes.iter().all(|of| of_pe(of).is_some()) {
        let it = if pes.len() == 1 { "it" } else { "them" };
        return vec![format!("Nothing in flight targets {it}.")];
    }
    targeting
}

/// Returns true if it is known that nothing is in flight in the whole job.
pub fn is_nothing(job: &Job) -> bool {
    job.pes
        .iter()
        .all(|of| of_pe(of).is_some_and(|operations| operations.n == 0))
}

/// Returns the operations of a PE in flight, if they are known.
fn of_pe(of: &Pe) -> Option<InFlight> {
    let status = of.snapshot?.status.as_ref()?;
    match status.stage {
        Stage::Uninitialized | Stage::Finalized => Some(InFlight::default()),
        Stage::Starting | Stage::Initialized => status.in_flight.clone(),
    }
}

/// Returns a sentence on the operations of a PE in flight, if they target one of these PEs, or may.
fn sentence(pe: u32, operations: &InFlight, pes: &[u32]) -> Option<String> {
    let InFlight { n, targets, more } = operations;
    let mut targets = ranges::sorted(targets);
    let is_here = |pe: &u32| pes.binary_search(pe).is_ok();
    match targets.iter().any(is_here) {
        true => targets.retain(is_here),
        false if !more => return None,
        false => {}
    }
    let to = if targets.is_empty() {
        "other PEs".to_owned()
    } else {
        ranges::pes(&targets)
    };
    match n {
        0 => None,
        1 => Some(format!("PE {pe} has an operation in flight, to {to}.")),
        _ => Some(format!(
            "PE {pe} has {n} operations in flight, among them to {to}."
        )),
    }
}
