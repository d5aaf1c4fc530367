//! Finds the PE that was the last to write each awaited word, and that PE's last write.

use crate::cause::{Cause, Kind};
use crate::job::{Job, Pe};
use crate::ranges::{enumerate, sorted};
use crate::status::{self, Word};
use crate::wording::{self, durations};
use crate::writes::{ENTRIES, LastWrite};

/// Maximum number of words, and of PEs, that are named.
const NAMED: usize = 4;

/// Returns a hint on how to learn more, if PEs wait for words and record no writes.
pub fn hint(job: &Job, causes: &[Cause]) -> Option<String> {
    let kinds = [Kind::WordOfNobody, Kind::WordOfOthers];
    let is_of_words = |cause: &Cause| kinds.contains(&cause.kind);
    (!job.pes.iter().any(records_writes) && causes.iter().any(is_of_words)).then(|| {
        "Run with --explain-after or SHMEM_CHECK=1 to learn who wrote words last.".to_owned()
    })
}

fn records_writes(of: &Pe) -> bool {
    of.snapshot
        .is_some_and(|snapshot| snapshot.writes.is_some())
}

/// Returns sentences on the last writer of each awaited word, as far as PEs record their writes.
/// They may show that a PE has written another word than it should have, or has written to another
/// PE.
pub fn sentences(job: &Job, pes: &[u32]) -> Vec<String> {
    let words: Vec<(u32, &Word)> = pes
        .iter()
        .flat_map(|pe| awaited(job, *pe).map(|word| (*pe, word)))
        .collect();
    let name = |pe: u32, word: &Word| match (&words[..], job.pes[pe as usize].snapshot) {
        ([_], _) | (_, None) => "it".to_owned(),
        (_, Some(snapshot)) => {
            format!("{} of PE {pe}", wording::location(snapshot, &word.location))
        }
    };
    let is_of = |write: &LastWrite, pe: u32, word: &Word| {
        write.is_of(pe, &word.location, word.nbytes.into())
    };
    let (mut sentences, mut writers, mut unwritten) = (Vec::new(), Vec::new(), Vec::new());
    for &(pe, word) in words.iter().take(NAMED) {
        match newest(job, |_, write| is_of(write, pe, word)) {
            Some((age, writer, write)) => {
                let (name, age) = (name(pe, word), durations((age, age)));
                sentences.push(format!(
                    "PE {writer} wrote {name} last, {age} ago, in {}.",
                    write.call
                ));
                writers.push(writer);
            }
            None => unwritten.push(name(pe, word)),
        }
    }
    // The writes of PEs on other hosts may be unknown.
    if !unwritten.is_empty() && job.pes.iter().all(records_writes) {
        let names = enumerate(unwritten);
        sentences.push(format!(
            "No PE has written {names} in its last {ENTRIES} writes."
        ));
    }
    if writers.is_empty() {
        writers = job.all(|of| records_writes(of));
        writers.retain(|pe| pes.binary_search(pe).is_err());
    }
    for writer in sorted(&writers).into_iter().take(NAMED) {
        let Some((age, _, write)) = newest(job, |pe, _| pe == writer) else {
            continue;
        };
        let of = job.pes[writer as usize].snapshot;
        if let Some(of) = of.filter(|_| !words.iter().any(|(pe, word)| is_of(write, *pe, word))) {
            let LastWrite {
                pe, location, call, ..
            } = write;
            let (location, age) = (wording::location(of, location), durations((age, age)));
            sentences.push(format!(
                "The last write of PE {writer}, {age} ago, was to {location} of PE {pe}, in {call}."
            ));
        }
    }
    sentences
}

/// Returns the newest write that `matches` accepts, with its age and the PE that has made it.
fn newest<'a>(
    job: &Job<'a>,
    matches: impl Fn(u32, &LastWrite) -> bool,
) -> Option<(u64, u32, &'a LastWrite)> {
    let all = job.pes.iter().filter_map(|of| of.snapshot).flat_map(|of| {
        let age = |write: &'a LastWrite| (of.read_at.saturating_sub(write.at), of.pe, write);
        of.writes.iter().flatten().map(age)
    });
    all.filter(|(_, pe, write)| matches(*pe, write))
        .min_by_key(|(age, pe, _)| (*age, *pe))
}

/// Returns the awaited words of a PE whose values do not satisfy the comparison.
fn awaited<'a>(job: &Job<'a>, pe: u32) -> impl Iterator<Item = &'a Word> {
    job.pes[pe as usize].waits().flat_map(|(wait, values)| {
        let words = status::words_of(wait);
        let unmet = words.map(|words| words.unmet(values)).unwrap_or_default();
        unmet
            .into_iter()
            .filter_map(move |index| words?.words.get(index))
    })
}
