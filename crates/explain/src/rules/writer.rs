//! Who wrote a word last that a PE waits for.

use super::{Finding, Kind};
use crate::job::{Job, Pe};
use crate::status::Word;
use crate::wording;
use crate::words;
use crate::writes::{ENTRIES, LastWrite};

/// How to learn more where PEs wait for words and record no writes.
pub fn hint(job: &Job, findings: &[Finding]) -> Option<String> {
    let kinds = [Kind::WordOfNobody, Kind::WordOfOthers];
    let is_of_words = |finding: &Finding| kinds.contains(&finding.kind);
    (!job.pes.iter().any(is_recorded) && findings.iter().any(is_of_words)).then(|| {
        "Run with --explain-after or SHMEM_CHECK=1 to learn who wrote words last.".to_owned()
    })
}

fn is_recorded(of: &Pe) -> bool {
    of.snapshot.is_some_and(|snapshot| snapshot.writes.is_some())
}

/// A sentence on who wrote a word of the first of these PEs last, if PEs record their writes and
/// one of these waits for a word that does not compare.
pub fn sentence(job: &Job, pes: &[u32]) -> Option<String> {
    let (pe, word) = pes.iter().find_map(|pe| Some((*pe, awaited(job, *pe)?)))?;
    let name = if pes.len() == 1 { "it".to_owned() } else { format!("that of PE {pe}") };
    let snapshots = job.pes.iter().filter_map(|of| of.snapshot);
    let last = snapshots
        .flat_map(|of| of.writes.iter().flatten().map(move |write| (of, write)))
        .filter(|(_, write)| write.is_of(pe, &word.place, word.nbytes.into()))
        .map(|(of, write)| (of.read_at.saturating_sub(write.at), of.pe, write))
        .min_by_key(|(age, writer, _)| (*age, *writer));
    match last {
        Some((age, writer, LastWrite { call, .. })) => {
            let age = wording::durations((age, age));
            Some(format!("PE {writer} wrote {name} last, {age} ago, in {call}."))
        }
        // The writes of PEs on other hosts may not be known.
        None => job
            .pes
            .iter()
            .all(is_recorded)
            .then(|| format!("No PE has written {name} in its last {ENTRIES} writes.")),
    }
}

/// The first word for which a PE waits that does not compare.
fn awaited<'a>(job: &Job<'a>, pe: u32) -> Option<&'a Word> {
    job.pes[pe as usize].waits().find_map(|(wait, values)| {
        let words = words::words_of(wait)?;
        let first = *words.unmet(values).first()?;
        Some(&words.words[first])
    })
}
