//! The conclusion: sentences on each cause, and who waits for it.

mod deadlock;
mod facts;
mod in_flight;
mod mismatch;
mod writer;

use crate::causes::{Cause, Kind};
use crate::graph::{End, Graph};
use crate::job::Job;
use crate::ranges;
use crate::situation::Situation;
use crate::steps::Steps;
use facts::Facts;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter;

/// Calls in which PEs wait for a cause that are named.
const CALLS: usize = 3;

/// The conclusion. Each cause begins a line; the lines of its further sentences are indented. What
/// holds for several causes is on the last lines.
pub fn conclusion(job: &Job, steps: &Steps, graph: &Graph, causes: &[Cause]) -> Vec<String> {
    let facts = Facts { job, steps, graph };
    match causes {
        [] => vec![without_cause(job)],
        _ => {
            let paragraphs = causes.iter().map(|cause| paragraph(&facts, cause).join("\n  "));
            let has_exception = causes.iter().any(|cause| deadlock::has_exception(&facts, cause));
            let has_hint = causes.iter().any(|cause| writer::has_hint(&facts, cause));
            paragraphs
                .chain(has_exception.then(|| deadlock::exception(&facts)))
                .chain(has_hint.then(|| writer::HINT.to_owned()))
                .collect()
        }
    }
}

/// What there is to say when no PE waits long for another.
fn without_cause(job: &Job) -> String {
    if job.pes.iter().any(|of| of.waits().next().is_some()) {
        return "The waits are shorter than 1 s: nothing can be concluded from them.".into();
    }
    if job.pes.iter().all(|of| of.situation == Situation::NoStatus) {
        return "No PE has a status that can be read; perhaps none has passed shmem_init.".into();
    }
    let mut predicates: Vec<String> =
        job.pes.iter().map(|of| of.situation.predicate(job.pes.len())).collect();
    predicates.dedup();
    match &predicates[..] {
        [all] if job.pes.len() > 1 => format!("All PEs {all}: none waits for another."),
        _ => "No PE waits for another.".into(),
    }
}

/// The sentences on a cause.
fn paragraph(facts: &Facts, cause: &Cause) -> Vec<String> {
    let pes = &cause.pes;
    let is_one = pes.len() == 1;
    let either = |one: &'static str, many: &'static str| if is_one { one } else { many };
    let waited = || facts.waited(pes);
    let mut sentences = match &cause.kind {
        Kind::HostSilent
        | Kind::Gone
        | Kind::WaitsForDisk
        | Kind::NotStarted
        | Kind::Sleeps
        | Kind::Computes
        | Kind::Elsewhere => vec![format!("{}.", facts.what(pes))],
        Kind::Stopped => {
            let continues = either("it continues", "they continue");
            let what = facts.what(pes);
            vec![format!("{what}: {continues} after the signal CONT or the debugger's command.")]
        }
        Kind::Mismatch(index) => mismatch::sentences(facts, *index),
        Kind::Cycle(nodes) => deadlock::of_cycle(facts, nodes),
        Kind::WordOfNobody => deadlock::of_words(facts, pes),
        Kind::Open(End::Word) => {
            let word = either("this word", "these words");
            let (elsewhere, here) = facts.writers();
            let can = |pes: &[u32], verb: &str| {
                (!pes.is_empty()).then(|| format!("{} {verb} {word}.", ranges::pes(pes)))
            };
            let can =
                [can(&here, "can still write"), can(&elsewhere, "may, on other hosts, write")];
            let can = can.into_iter().flatten().chain(in_flight::sentences(facts, pes));
            let sentences = iter::once(format!("{}.", waited())).chain(can);
            sentences.chain(writer::sentence(facts, pes)).collect()
        }
        Kind::Open(End::YoungWord) => {
            vec![format!("{}, too short for a conclusion.", waited())]
        }
        Kind::Open(End::SatisfiedWord) => {
            let is = either("it is", "they are");
            vec![format!("{}: {is} about to continue.", waited())]
        }
        Kind::Open(End::Network) => {
            let why =
                "No target is known to be stopped or lost: the network is slow or loses data.";
            vec![format!("{}.", waited()), why.into()]
        }
        Kind::Open(End::Lock) => {
            vec![format!("{}.", waited()), "It is not known which PE holds the lock.".into()]
        }
        Kind::UnderWay(_) => {
            let why = "No member is missing: the collective is under way, or the members have \
                       passed different arguments.";
            vec![format!("{}.", waited()), why.into()]
        }
    };
    sentences.extend(waiters(facts, cause));
    match cause.more {
        0 => {}
        1 => sentences.push("There is one more case of this kind.".into()),
        more => sentences.push(format!("There are {more} more cases of this kind.")),
    }
    sentences
}

/// Who waits for the cause.
fn waiters(facts: &Facts, cause: &Cause) -> Vec<String> {
    let direct = &cause.direct;
    if direct.is_empty() {
        return Vec::new();
    }
    let object = if cause.pes.len() == 1 { ranges::pes(&cause.pes) } else { "them".into() };
    let mut by_call: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for pe in direct {
        by_call.entry(facts.call(*pe)).or_default().push(*pe);
    }
    let mut calls: Vec<(String, Vec<u32>)> = by_call.into_iter().collect();
    calls.sort_by_key(|(_, pes)| Reverse(pes.len()));
    let wait = |pes: &[u32]| match pes {
        _ if cause.kind == Kind::Elsewhere => "may wait",
        [_] => "waits",
        _ => "wait",
    };
    let of_call = |(call, pes): &(String, Vec<u32>)| {
        format!("{} {} for {object} in {call}.", ranges::pes(pes), wait(pes))
    };
    let mut sentences: Vec<String> = if calls.len() <= CALLS {
        calls.iter().map(of_call).collect()
    } else {
        let n = calls.len();
        vec![format!("{} {} for {object} in {n} calls.", ranges::pes(direct), wait(direct))]
    };
    if !cause.indirect.is_empty() {
        let pes = ranges::pes(&cause.indirect);
        sentences.push(format!("{pes} {} for {}.", wait(&cause.indirect), ranges::pes(direct)));
    }
    sentences
}
