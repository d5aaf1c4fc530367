//! Sentences on waits that cannot end.

use super::facts::Facts;
use super::{in_flight, writer};
use crate::causes::{Cause, Kind};
use crate::ranges::{self, enumerate};
use crate::situation::Situation;
use crate::status::Subject;
use crate::wording;
use std::collections::BTreeMap;

/// PEs of a cycle that are named.
const NAMED: usize = 6;

/// What can end waits that are not for collectives.
pub fn exception(facts: &Facts) -> String {
    let threads = match facts.with_other_threads() {
        (pes, what) if pes.is_empty() => format!("A thread {what}"),
        (pes, what) => format!("A thread of {} {what}", ranges::pes(&pes)),
    };
    let operations = match in_flight::is_nothing(facts) {
        true => "",
        false => ", or an operation that is still in flight over a network,",
    };
    format!("{threads}{operations} could end such waits; nothing else can.")
}

/// Whether [`exception`] holds for the cause: a PE that waits for words, a lock or a message is
/// helped by any thread, but members of a team have to come to a collective themselves, and all PEs
/// to finalize.
pub fn has_exception(facts: &Facts, cause: &Cause) -> bool {
    let waits = cause.pes.iter().flat_map(|pe| facts.job.pes[*pe as usize].waits());
    let mut subjects = waits.map(|(wait, _)| &wait.subject);
    match cause.kind {
        Kind::WordOfNobody => true,
        Kind::Cycle(_) => {
            subjects.any(|subject| !matches!(subject, Subject::Collective(_) | Subject::Exit))
        }
        _ => false,
    }
}

/// PEs that wait for each other, each for the next one and the last one for the first.
pub fn of_cycle(facts: &Facts, nodes: &[u32]) -> Vec<String> {
    let mut pes: Vec<u32> = nodes.iter().copied().filter(|node| facts.graph.is_pe(*node)).collect();
    let lowest = (0..pes.len()).min_by_key(|index| pes[*index]).unwrap_or(0);
    pes.rotate_left(lowest);
    let (title, rule) = kind(facts, &pes);
    let mut sentences = vec![format!("{title}:")];
    for (index, &pe) in pes.iter().enumerate().take(NAMED) {
        let next = match pes[(index + 1) % pes.len()] {
            next if next == pe => "itself".to_owned(),
            next => format!("PE {next}"),
        };
        let waits = wording::waits(facts.job, &facts.job.pes[pe as usize]);
        sentences
            .push(format!("PE {pe} has waited {} for {next} {waits}.", facts.durations(&[pe])));
    }
    if pes.len() > NAMED {
        sentences.push(format!("This cycle goes on: it has {} PEs.", pes.len()));
    }
    sentences.extend(rule.map(str::to_owned));
    sentences
}

/// What the cycle is called, and the rule that was broken.
fn kind(facts: &Facts, pes: &[u32]) -> (&'static str, Option<&'static str>) {
    let waits = pes.iter().flat_map(|pe| facts.job.pes[*pe as usize].waits());
    let teams = waits.map(|(wait, _)| match &wait.subject {
        Subject::Collective(of) => Some(&of.team[..]),
        _ => None,
    });
    match teams.collect::<Option<Vec<&str>>>() {
        Some(teams) if teams.iter().all(|team| team.contains("active set")) => {
            ("Mismatched active sets", Some("All members must pass the same active set."))
        }
        Some(_) => (
            "Deadlock of collectives on different teams",
            Some("PEs must call collectives in the same order on all teams that they share."),
        ),
        None => (title(facts), None),
    }
}

/// What waits are called that nothing ends but [`exception`].
fn title(facts: &Facts) -> &'static str {
    if facts.with_other_threads().0.is_empty() { "Deadlock" } else { "Perhaps a deadlock" }
}

/// PEs that wait for words which no PE is left to write.
pub fn of_words(facts: &Facts, pes: &[u32]) -> Vec<String> {
    let word = if pes.len() == 1 { "this word" } else { "these words" };
    let mut others: BTreeMap<[String; 2], Vec<u32>> = BTreeMap::new();
    let mut is_deadlock = pes.len() > 1;
    for (pe, of) in (0..).zip(&facts.job.pes) {
        if pes.binary_search(&pe).is_err() {
            is_deadlock |= matches!(of.situation, Situation::Waits(_));
            let predicates = [1, 2].map(|n| of.situation.predicate(n));
            others.entry(predicates).or_default().push(pe);
        }
    }
    let others: Vec<(&[String; 2], &Vec<u32>)> = others.iter().collect();
    let why = match &others[..] {
        [] if pes.len() == 1 => "there is no other PE".to_owned(),
        [] => "all PEs wait for such words".to_owned(),
        [([_, many], others)] if others.len() > 1 => format!("all others {many}"),
        several => {
            let text = |([one, many], pes): &(&[String; 2], &Vec<u32>)| {
                format!("{} {}", ranges::pes(pes), if pes.len() == 1 { one } else { many })
            };
            enumerate(several.iter().map(text).collect())
        }
    };
    let title = if is_deadlock { format!("{}: ", title(facts)) } else { String::new() };
    let writer = match facts.with_other_threads() {
        (pes, _) if pes.is_empty() => "No PE".to_owned(),
        (_, what) => format!("At most a thread {what}"),
    };
    let why = format!("{writer} is left to write {word}: {why}.");
    let sentences = [format!("{title}{}.", facts.waited(pes)), why];
    let sentences = sentences.into_iter().chain(in_flight::sentences(facts, pes));
    sentences.chain(writer::sentence(facts, pes)).collect()
}
