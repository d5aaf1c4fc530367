//! Who wrote a word last that a PE waits for.

use super::facts::Facts;
use crate::causes::{Cause, Kind};
use crate::graph::End;
use crate::status::{Subject, Word};
use crate::wording;
use crate::words;
use crate::writes::{ENTRIES, LastWrite};

/// How to learn more where PEs record no writes.
pub const HINT: &str = "Run with --explain-after or SHMEM_CHECK=1 to learn who wrote words last.";

/// Whether [`HINT`] helps with a cause.
pub fn has_hint(facts: &Facts, cause: &Cause) -> bool {
    matches!(cause.kind, Kind::WordOfNobody | Kind::Open(End::Word)) && !is_recorded(facts)
}

fn is_recorded(facts: &Facts) -> bool {
    facts.job.pes.iter().any(|of| of.report.is_some_and(|report| report.writes.is_some()))
}

/// Whether the writes of all PEs are known: those of other hosts may not be.
fn all_are_recorded(facts: &Facts) -> bool {
    facts.job.pes.iter().all(|of| of.report.is_some_and(|report| report.writes.is_some()))
}

/// A sentence on who wrote a word of the first of these PEs last, if PEs record their writes and
/// one of these waits for a word that does not compare.
pub fn sentence(facts: &Facts, pes: &[u32]) -> Option<String> {
    if !is_recorded(facts) {
        return None;
    }
    let (pe, word) = pes.iter().find_map(|pe| Some((*pe, awaited(facts, *pe)?)))?;
    let name = if pes.len() == 1 { "it".to_owned() } else { format!("that of PE {pe}") };
    let reports = facts.job.pes.iter().filter_map(|of| of.report);
    let last = reports
        .flat_map(|report| report.writes.iter().flatten().map(move |write| (report, write)))
        .filter(|(_, write)| write.is_of(pe, &word.place, word.nbytes.into()))
        .map(|(report, write)| (report.read_at.saturating_sub(write.at), report.pe, write))
        .min_by_key(|(age, writer, _)| (*age, *writer));
    Some(match last {
        Some((age, writer, LastWrite { call, .. })) => {
            let age = wording::durations((age, age));
            format!("PE {writer} wrote {name} last, {age} ago, in {call}.")
        }
        None if all_are_recorded(facts) => {
            format!("No PE has written {name} in its last {ENTRIES} writes.")
        }
        None => return None,
    })
}

/// The first word for which a PE waits that does not compare.
fn awaited<'a>(facts: &Facts<'a>, pe: u32) -> Option<&'a Word> {
    facts.job.pes[pe as usize].waits().find_map(|(wait, values)| {
        let Subject::Words(words) = &wait.subject else { return None };
        let compares = |(index, word): &(usize, &Word)| {
            let value = values.get(*index).copied().flatten();
            value.and_then(|value| words::compares(word, &words.comparison, value)) == Some(true)
        };
        words.words.iter().enumerate().find(|word| !compares(word)).map(|(_, word)| word)
    })
}
