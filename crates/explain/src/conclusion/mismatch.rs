//! Sentences on the members of a team that have called different collectives.

use super::facts::Facts;
use crate::ranges::{self, enumerate};
use crate::wording;
use std::cmp::Reverse;

/// Different calls that are named.
const NAMED: usize = 3;

/// The members in the step with this index, and in the next one if that is why they do not match.
pub fn sentences(facts: &Facts, index: usize) -> Vec<String> {
    let step = &facts.steps.list[index];
    let of = step.collective;
    let nth = wording::ordinal(of.nth);
    let finding = if step.is_out_of_step {
        let next = &facts.steps.list[index + 1];
        let here = called(&step.calls, ["is in", "are in"]);
        let there = called(&next.calls, ["is in", "are in"]);
        let next_nth = wording::ordinal(next.collective.nth);
        format!("{here}, the {nth} one, but {there}, already the {next_nth} one")
    } else {
        format!("as the {nth} one, {}", called(&step.calls, ["has called", "have called"]))
    };
    vec![
        format!("Mismatched collectives on {}: {finding}.", of.team),
        "All members must call the same collectives in the same order.".to_owned(),
    ]
}

fn called(calls: &[(&str, Vec<u32>)], [one, many]: [&str; 2]) -> String {
    let mut calls: Vec<_> = calls.iter().collect();
    calls.sort_by_key(|(_, pes)| Reverse(pes.len()));
    let text = |(call, pes): &&(&str, Vec<u32>)| {
        format!("{} {} {call}", ranges::pes(pes), if pes.len() == 1 { one } else { many })
    };
    let mut texts: Vec<String> = calls.iter().take(NAMED).map(text).collect();
    if calls.len() > NAMED {
        texts.push(format!("other PEs {many} {} other routines", calls.len() - NAMED));
    }
    enumerate(texts)
}
