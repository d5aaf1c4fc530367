//! Members of a team that have called different collectives.

use crate::cause::{Cause, Kind};
use crate::graph::Graph;
use crate::ranges::{self, enumerate};
use crate::steps::Step;
use crate::wording::ordinal;
use std::cmp::Reverse;

/// Different calls that are named.
const NAMED: usize = 3;

pub fn find(graph: &Graph) -> Vec<Cause> {
    let mismatched = (0..graph.steps.len()).filter(|index| graph.steps[*index].is_mismatched);
    let cause = |index: usize| {
        let step = &graph.steps[index];
        let nth = ordinal(step.collective.nth);
        let what = if step.is_out_of_step {
            let next = &graph.steps[index + 1];
            let here = called(step, ["is in", "are in"]);
            let there = called(next, ["is in", "are in"]);
            let next_nth = ordinal(next.collective.nth);
            format!("{here}, the {nth} one, but {there}, already the {next_nth} one")
        } else {
            format!("as the {nth} one, {}", called(step, ["has called", "have called"]))
        };
        let sentences = vec![
            format!("Mismatched collectives on {}: {what}.", step.collective.team),
            "All members must call the same collectives in the same order.".to_owned(),
        ];
        let nodes = vec![graph.step(index)];
        Cause { kind: Kind::Mismatch, nodes, pes: step.pes(), sentences }
    };
    mismatched.map(cause).collect()
}

/// Returns the PEs in each call of a step.
fn called(step: &Step, [one, many]: [&str; 2]) -> String {
    let mut calls: Vec<_> = step.calls.iter().collect();
    calls.sort_by_key(|(call, pes)| (Reverse(pes.len()), call.to_lowercase()));
    let text = |(call, pes): &&(&str, Vec<u32>)| {
        format!("{} {} {call}", ranges::pes(pes), if pes.len() == 1 { one } else { many })
    };
    let mut texts: Vec<String> = calls.iter().take(NAMED).map(text).collect();
    if calls.len() > NAMED {
        texts.push(format!("other PEs {many} {} other routines", calls.len() - NAMED));
    }
    enumerate(texts)
}
