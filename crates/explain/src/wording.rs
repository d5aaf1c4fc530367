//! How a wait reads in a sentence: durations, ordinals, places and words with their values.

use crate::job::{Job, Pe};
use crate::ranges::{self, enumerate_once};
use crate::report::PeReport;
use crate::status::{Collective, Place, Subject, Wait, Words};
use crate::words::{compares, number};

const SECOND: u64 = 1_000_000_000;

/// What a PE is in, as it follows `PE 3 is`: its waits. A thread that waits for a request and the
/// one that carries it out are in the same collective.
pub fn waits(job: &Job, pe: &Pe) -> String {
    let Some(report) = pe.report else { return String::new() };
    let text = |(wait, values)| format!("in {}", subject(job, report, wait, values));
    enumerate_once(pe.waits().map(text), pe.further_waits())
}

/// The names of the calls, as [`waits`] has them, without objects.
pub fn calls(pe: &Pe) -> String {
    enumerate_once(pe.waits().map(|(wait, _)| format!("in {}", wait.call)), pe.further_waits())
}

fn subject(job: &Job, report: &PeReport, wait: &Wait, values: &[Option<u64>]) -> String {
    let call = &wait.call;
    match &wait.subject {
        Subject::Words(words) => format!("{call} on {}", words_text(report, words, values)),
        Subject::Collective(of) => format!("{call}, {}", collective(of)),
        Subject::Lock { lock, .. } => {
            let holder = job.holder(lock).map(|pe| format!(", which PE {pe} holds"));
            format!("{call} on {}{}", place(report, lock), holder.unwrap_or_default())
        }
        Subject::Operations { peers } if peers.is_empty() => {
            format!("{call}, for operations over the network")
        }
        Subject::Operations { peers } => {
            format!("{call}, for operations on {}", ranges::pes(&sorted(peers)))
        }
        Subject::Message { from } => format!("{call}, for a message from PE {from}"),
        Subject::Exit => call.clone(),
    }
}

fn sorted(pes: &[u32]) -> Vec<u32> {
    let mut sorted = pes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// `the 41st collective on SHMEM_TEAM_WORLD`.
pub fn collective(of: &Collective) -> String {
    format!("the {} collective on {}", ordinal(of.nth), of.team)
}

fn words_text(report: &PeReport, words: &Words, values: &[Option<u64>]) -> String {
    let compares = |index: usize| {
        let value = values.get(index).copied().flatten();
        value.and_then(|value| compares(&words.words[index], &words.comparison, value))
    };
    let total = words.more.saturating_add(words.words.len() as u64);
    let left: Vec<usize> =
        (0..words.words.len()).filter(|&index| compares(index) != Some(true)).collect();
    let text = |index: usize| {
        let word = &words.words[index];
        let value = values.get(index).copied().flatten();
        let is = value.map(|value| format!(", which is {}", number(word, value)));
        let name = place(report, &word.place);
        let wanted = number(word, word.wanted);
        let now = if compares(index) == Some(true) { " by now" } else { "" };
        format!("{name} {} {wanted}{}{now}", words.comparison, is.unwrap_or_default())
    };
    let first = left.first().copied().unwrap_or(0);
    match words.words.len() {
        0 => format!("{total} words"),
        1 if total == 1 => text(0),
        _ if words.all => {
            let n = words.more.saturating_add(left.len() as u64);
            format!("all of {total} words, {n} of which do not compare: {}", text(first))
        }
        _ => format!("any of {total} words, such as {}", text(first)),
    }
}

/// The name of a place: that of a static variable if it is known, or where it is in the heap.
pub fn place(report: &PeReport, place: &Place) -> String {
    match place {
        Place::Static { address } => {
            let symbol = report.symbols.iter().find(|(of, _)| of == address);
            symbol.map_or_else(
                || format!("the static variable at {address:#x}"),
                |(_, name)| name.clone(),
            )
        }
        Place::Heap { offset, block: Some((start, nbytes)) } => format!(
            "byte {} of the allocation of {nbytes} bytes at heap offset {start:#x}",
            offset.saturating_sub(*start)
        ),
        Place::Heap { offset, block: None } => format!("heap offset {offset:#x}"),
        Place::Other { address } => format!("address {address:#x}"),
    }
}

/// `1st`, `2nd`, `11th`.
pub fn ordinal(n: u64) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

/// The durations from `min` to `max` nanoseconds: `12 s`, `10 s to 12 s`.
pub fn durations((min, max): (u64, u64)) -> String {
    let (min, max) = (duration(min), duration(max));
    if min == max { min } else { format!("{min} to {max}") }
}

/// A duration, as exactly as it matters.
fn duration(ns: u64) -> String {
    match ns / SECOND {
        0 => format!("{:.2} s", ns as f64 / SECOND as f64),
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_ordinals_read_well() {
        assert_eq!(durations((31 * SECOND, 31 * SECOND + 5)), "31 s");
        assert_eq!(durations((SECOND / 4, 200 * SECOND)), "0.25 s to 3 min");
        let ordinals: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 41, 112].map(ordinal).into();
        assert_eq!(ordinals.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 41st 112th");
    }
}
