//! Finds the PE that was the last to write each awaited word, and that PE's last write.

use crate::cause::{Cause, Kind};
use crate::job::{Job, Pe};
use crate::ranges::{enumerate, sorted};
use crate::snapshot::PeSnapshot;
use crate::status::{self, Word};
use crate::wording::{self, durations};
use crate::writes::{ENTRIES, LastWrite};

/// Maximum number of words, and of PEs, that are named.
const NAMED: usize = 4;

/// Returns a hint on how to learn more, if PEs wait for words and record no writes.
pub fn hint(job: &Job, causes: &[Cause]) -> Option<String> {
    let is_about_words = causes
        .iter()
        .any(|cause| matches!(cause.kind, Kind::WordOfNobody | Kind::WordOfOthers));
    if !is_about_words || job.pes.iter().any(records_writes) {
        return None;
    }
    Some(
        "Run with SHMEM_CHECK=1, or with oshrun --explain-after, to learn who wrote words last."
            .to_owned(),
    )
}

fn records_writes(pe: &Pe) -> bool {
    pe.snapshot
        .is_some_and(|snapshot| snapshot.writes.is_some())
}

/// Returns sentences on the last writer of each awaited word, as far as PEs record their writes.
/// They may show that a PE has written another word than it should have, or has written to another
/// PE.
pub fn sentences(job: &Job, pes: &[u32]) -> Vec<String> {
    let mut words = Vec::new();
    for &pe in pes {
        words.extend(unmet_words(job, pe));
    }

    let mut sentences = Vec::new();
    let mut writers = Vec::new();
    let mut unwritten = Vec::new();
    for awaited in words.iter().take(NAMED) {
        let name = if words.len() == 1 {
            "it".to_owned()
        } else {
            awaited.name()
        };
        let Some(last) = last_write(job, |_, write| awaited.is_in(write)) else {
            unwritten.push(name);
            continue;
        };

        let age = durations(last.age, last.age);
        let call = &last.write.call;
        let writer = last.writer;
        sentences.push(format!(
            "PE {writer} wrote {name} last, {age} ago, in {call}."
        ));
        writers.push(writer);
    }

    // The writes of PEs on other hosts may be unknown.
    if !unwritten.is_empty() && job.pes.iter().all(records_writes) {
        let names = enumerate(unwritten);
        sentences.push(format!(
            "No PE has written {names} in its last {ENTRIES} writes."
        ));
    }

    // What the writers wrote instead: if no PE has written a word, any other PE may be the one that
    // should have.
    if writers.is_empty() {
        writers = job.all(|pe| records_writes(pe));
        writers.retain(|pe| pes.binary_search(pe).is_err());
    }
    for writer in sorted(&writers).into_iter().take(NAMED) {
        let Some(last) = last_write(job, |pe, _| pe == writer) else {
            continue;
        };
        // A write of an awaited word is right, also if no sentence above names it.
        if !words.iter().any(|awaited| awaited.is_in(last.write)) {
            sentences.push(last.sentence());
        }
    }
    sentences
}

/// A write of a PE, as of the moment of its snapshot.
struct RecentWrite<'a> {
    /// Nanoseconds since the write.
    age: u64,
    /// The PE that has written.
    writer: u32,
    snapshot: &'a PeSnapshot,
    write: &'a LastWrite,
}

impl RecentWrite<'_> {
    /// Returns a sentence on the write as the last one of its PE.
    fn sentence(&self) -> String {
        let LastWrite {
            pe, location, call, ..
        } = self.write;
        let location = wording::location(self.snapshot, location);
        let age = durations(self.age, self.age);
        let writer = self.writer;
        format!(
            "The last write of PE {writer}, {age} ago, was to {location} of PE {pe}, in {call}."
        )
    }
}

/// Returns the newest of the recorded writes that `matches` accepts, of which it gets the writer
/// and the write.
fn last_write<'a>(
    job: &Job<'a>,
    matches: impl Fn(u32, &LastWrite) -> bool,
) -> Option<RecentWrite<'a>> {
    let mut all = Vec::new();
    for snapshot in job.pes.iter().filter_map(|pe| pe.snapshot) {
        // The newest one first, since writes within a tick of the clock have the same time.
        for write in snapshot.writes.iter().flatten().rev() {
            if matches(snapshot.pe, write) {
                all.push(RecentWrite {
                    age: snapshot.read_at.saturating_sub(write.began_at),
                    writer: snapshot.pe,
                    snapshot,
                    write,
                });
            }
        }
    }
    // Clocks of hosts differ, so the ages are compared and not the times.
    all.into_iter()
        .min_by_key(|recent| (recent.age, recent.writer))
}

/// A word for which a PE waits.
struct AwaitedWord<'a> {
    pe: u32,
    snapshot: &'a PeSnapshot,
    word: &'a Word,
}

impl AwaitedWord<'_> {
    /// Returns the name of the word, with its PE.
    fn name(&self) -> String {
        let location = wording::location(self.snapshot, &self.word.location);
        format!("{location} of PE {}", self.pe)
    }

    fn is_in(&self, write: &LastWrite) -> bool {
        write.is_of(self.pe, &self.word.location, self.word.nbytes.into())
    }
}

/// Returns the awaited words of a PE whose values do not satisfy the comparison.
fn unmet_words<'a>(job: &Job<'a>, pe: u32) -> Vec<AwaitedWord<'a>> {
    let observed = &job.pes[pe as usize];
    let Some(snapshot) = observed.snapshot else {
        return Vec::new();
    };

    let mut unmet = Vec::new();
    for (wait, values) in observed.waits() {
        let Some(words) = status::words_of(wait) else {
            continue;
        };
        for index in words.unmet(values) {
            unmet.push(AwaitedWord {
                pe,
                snapshot,
                word: &words.words[index],
            });
        }
    }
    unmet
}
