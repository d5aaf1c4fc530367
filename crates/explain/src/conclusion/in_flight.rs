//! What is in flight over networks towards PEs that wait for words.

use super::facts::Facts;
use crate::job::Pe;
use crate::ranges;
use crate::status::{InFlight, Stage};

/// PEs with operations in flight that are named.
const NAMED: usize = 3;

/// Sentences on the operations in flight that may end the waits of these PEs for words; none if it
/// is not known whether there are any.
pub fn sentences(facts: &Facts, pes: &[u32]) -> Vec<String> {
    let operations = (0..).zip(&facts.job.pes).filter_map(|(pe, of)| Some((pe, of_pe(of)?)));
    let targeting: Vec<String> = operations
        .filter(|(_, operations)| targets_one(operations, pes))
        .map(|(pe, operations)| sentence(pe, operations, pes))
        .take(NAMED)
        .collect();
    if targeting.is_empty() && facts.job.pes.iter().all(|of| of_pe(of).is_some()) {
        let it = if pes.len() == 1 { "it" } else { "them" };
        return vec![format!("Nothing in flight targets {it}.")];
    }
    targeting
}

/// Whether it is known that nothing is in flight in the whole job.
pub fn is_nothing(facts: &Facts) -> bool {
    facts.job.pes.iter().all(|of| of_pe(of).is_some_and(|operations| operations.n == 0))
}

/// What a PE has in flight, if that is known.
fn of_pe(of: &Pe) -> Option<InFlight> {
    let status = of.report?.status.as_ref()?;
    match status.stage {
        Stage::Uninitialized | Stage::Finalized => Some(InFlight::default()),
        Stage::Starting | Stage::Initialized => status.in_flight.clone(),
    }
}

/// Whether some of the operations target one of these PEs, or may.
fn targets_one(operations: &InFlight, pes: &[u32]) -> bool {
    operations.n > 0 && (operations.more || has_one(&operations.targets, pes))
}

/// Whether one of these PEs, which are in order, is among the targets.
fn has_one(targets: &[u32], pes: &[u32]) -> bool {
    targets.iter().any(|pe| pes.binary_search(pe).is_ok())
}

fn sentence(pe: u32, operations: InFlight, pes: &[u32]) -> String {
    let InFlight { n, mut targets, .. } = operations;
    if has_one(&targets, pes) {
        targets.retain(|pe| pes.binary_search(pe).is_ok());
    }
    targets.sort_unstable();
    targets.dedup();
    let to = if targets.is_empty() { "other PEs".to_owned() } else { ranges::pes(&targets) };
    match n {
        1 => format!("PE {pe} has an operation in flight, to {to}."),
        _ => format!("PE {pe} has {n} operations in flight, among them to {to}."),
    }
}
