//! Waits that can still end: for words that other PEs may write, and for operations and collectives
//! that are in progress.

use super::writer;
use crate::cause::{Cause, Kind};
use crate::graph::{End, Graph};
use crate::job::{Job, ObservedState, Pe};
use crate::ranges;
use crate::status::{InFlight, Stage};

/// Maximum number of PEs with operations in flight that are named.
const NAMED: usize = 3;

/// Finds PEs whose waits can still end, and PEs in collectives that no member is missing in.
pub fn find(graph: &Graph) -> Vec<Cause> {
    // Threads of a PE may wait for different events; only the first one is described.
    let mut described = DescribedPes(vec![false; graph.job.pes.len()]);
    for (pe, observed) in (0..).zip(&graph.job.pes) {
        // A PE that also computes is described by `cause::outside` if others wait for it.
        described.0[pe as usize] = observed.is_busy() && graph.is_awaited(pe);
    }

    let mut causes = open_waits(graph, &mut described);
    causes.extend(complete_steps(graph, &mut described));
    causes
}

/// True for each PE that a cause describes.
struct DescribedPes(Vec<bool>);

impl DescribedPes {
    /// Removes the PEs that are described already, and marks the others as described.
    fn retain_new(&mut self, pes: &mut Vec<u32>) {
        pes.retain(|pe| {
            let is_described = &mut self.0[*pe as usize];
            let is_new = !*is_described;
            *is_described = true;
            is_new
        });
    }
}

/// Finds PEs with waits for which no single PE is known to be responsible: one cause for all PEs
/// whose waits end in the same way.
fn open_waits(graph: &Graph, described: &mut DescribedPes) -> Vec<Cause> {
    let mut causes = Vec::new();
    for end in [
        End::Word,
        End::YoungWord,
        End::SatisfiedWord,
        End::Limit,
        End::Network,
        End::Lock,
    ] {
        let mut pes = ranges::sorted(&graph.pes_with(end));
        if end == End::Word {
            // The others wait for words that no PE is left to write.
            pes.retain(|pe| graph.can_continue[*pe as usize]);
        }
        described.retain_new(&mut pes);
        if pes.is_empty() {
            continue;
        }

        let mut description = graph.job.describe(&pes);
        description
            .sentences
            .extend(how_waits_end(graph, end, &pes));
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
    causes
}

/// Finds collectives that all members have entered, and which are not over.
fn complete_steps(graph: &Graph, described: &mut DescribedPes) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, step) in graph.steps.iter().enumerate() {
        let node = graph.node_of_step(index);
        if step.is_mismatched || !graph.forward[node as usize].is_empty() {
            continue;
        }

        let mut pes = step.pes();
        described.retain_new(&mut pes);
        if pes.is_empty() {
            continue;
        }

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
    causes
}

/// Returns sentences on how the waits of these PEs may end.
fn how_waits_end(graph: &Graph, end: End, pes: &[u32]) -> Vec<String> {
    let either = |one: &str, many: &str| if pes.len() == 1 { one } else { many }.to_owned();
    match end {
        End::Word => {
            let mut sentences = who_can_write(graph, &either("this word", "these words"));
            sentences.extend(on_operations(graph.job, pes));
            sentences.extend(writer::sentences(graph.job, pes));
            sentences
        }
        End::YoungWord => vec!["This is too short for a conclusion.".to_owned()],
        End::SatisfiedWord => {
            vec![either(
                "It is about to continue.",
                "They are about to continue.",
            )]
        }
        End::Limit => Vec::new(),
        End::Network => vec![
            "No target is known to be stopped or lost: the network is slow or loses data.".into(),
        ],
        End::Lock => vec!["It is not known which PE holds the lock.".to_owned()],
    }
}

/// Returns sentences on the PEs that can write `word`, `this word` or `these words`: those that do
/// not wait, or if there are none, those whose waits can end even if no PE writes an awaited word.
fn who_can_write(graph: &Graph, word: &str) -> Vec<String> {
    let is_free = |pe: &u32| {
        let observed = &graph.job.pes[*pe as usize];
        observed.is_busy() || !observed.is_waiting()
    };
    let mut writers = graph.unaided.clone();
    if writers.iter().any(is_free) {
        writers.retain(is_free);
    }

    // Nothing is known of the PEs on other hosts.
    let (elsewhere, here): (Vec<u32>, Vec<u32>) = writers
        .into_iter()
        .partition(|pe| graph.job.pes[*pe as usize].state == ObservedState::Elsewhere);
    let mut sentences = Vec::new();
    if !here.is_empty() {
        sentences.push(format!("{} can still write {word}.", ranges::pes(&here)));
    }
    if !elsewhere.is_empty() {
        let names = ranges::pes(&elsewhere);
        sentences.push(format!("{names} may, on other hosts, write {word}."));
    }
    sentences
}

/// Returns sentences on the operations in flight that may end the waits of these PEs for words.
/// Says that there are none only if the operations of all PEs are known.
pub fn on_operations(job: &Job, pes: &[u32]) -> Vec<String> {
    let targeting: Vec<String> = (0..)
        .zip(&job.pes)
        .filter_map(|(pe, observed)| on_operations_of(pe, &in_flight(observed)?, pes))
        .take(NAMED)
        .collect();
    if !targeting.is_empty() {
        return targeting;
    }

    let are_all_known = job.pes.iter().all(|pe| in_flight(pe).is_some());
    if !are_all_known {
        return Vec::new();
    }
    let it = if pes.len() == 1 { "it" } else { "them" };
    vec![format!("Nothing in flight targets {it}.")]
}

/// Returns true if it is known that nothing is in flight in the whole job.
pub fn is_nothing(job: &Job) -> bool {
    job.pes
        .iter()
        .all(|pe| in_flight(pe).is_some_and(|operations| operations.n == 0))
}

/// Returns the operations of a PE in flight, if they are known.
fn in_flight(pe: &Pe) -> Option<InFlight> {
    let status = pe.snapshot?.status.as_ref()?;
    match status.stage {
        // No operation begins before init or survives finalize, whatever the status says.
        Stage::Uninitialized | Stage::Finalized => Some(InFlight::default()),
        Stage::Starting | Stage::Initialized => status.in_flight.clone(),
    }
}

/// Returns a sentence on the operations of a PE in flight, if they target one of these PEs, or may.
fn on_operations_of(pe: u32, operations: &InFlight, pes: &[u32]) -> Option<String> {
    let mut targets = ranges::sorted(&operations.targets);
    let is_meant = |pe: &u32| pes.binary_search(pe).is_ok();
    if targets.iter().any(is_meant) {
        targets.retain(is_meant);
    } else if !operations.more {
        return None;
    }

    let to = if targets.is_empty() {
        "other PEs".to_owned()
    } else {
        ranges::pes(&targets)
    };

    match operations.n {
        0 => None,
        1 => Some(format!("PE {pe} has an operation in flight, to {to}.")),
        n => Some(format!(
            "PE {pe} has {n} operations in flight, among them to {to}."
        )),
    }
}
