//! Members of a team that have called different collectives.

use crate::cause::{Cause, Kind};
use crate::graph::Graph;
use crate::job::{Description, Job};
use crate::ranges::{self, enumerate};
use crate::status::{Subject, Wait};
use crate::steps::Step;
use crate::wording::{self, ordinal};
use std::cmp::Reverse;

/// Different calls that are named.
const NAMED: usize = 3;

pub fn find(graph: &Graph) -> Vec<Cause> {
    let mismatched = (0..graph.steps.len()).filter(|index| graph.steps[*index].is_mismatched);
    let cause = |index: usize| {
        let step = &graph.steps[index];
        let (team, nth) = (&step.collective.team, ordinal(step.collective.nth));
        let mut told = Vec::new();
        let mut called = |step, verbs| called(graph.job, step, verbs, &mut told);
        let what = if step.is_out_of_step {
            let next = &graph.steps[index + 1];
            let here = called(step, ["is in", "are in"]);
            let there = called(next, ["is in", "are in"]);
            let next_nth = ordinal(next.collective.nth);
            format!("{here}, the {nth} one, but {there}, already the {next_nth} one")
        } else {
            format!("as the {nth} one, {}", called(step, ["has called", "have called"]))
        };
        let pes = if told.is_empty() { step.pes() } else { told.clone() };
        let waited = graph.job.durations(&pes);
        let sentences = vec![
            format!("Mismatched collectives on {team}: {what}. They have waited {waited}."),
            "All members must call the same collectives in the same order.".to_owned(),
        ];
        let (nodes, description) = (vec![graph.step(index)], Description { sentences, told });
        Cause { kind: Kind::Mismatch, nodes, pes: step.pes(), description }
    };
    mismatched.map(cause).collect()
}

/// Returns the PEs in each call of a step, and adds those to `told` that wait for nothing else.
fn called(job: &Job, step: &Step, [one, many]: [&str; 2], told: &mut Vec<u32>) -> String {
    let is_in = |wait: &Wait| match &wait.subject {
        Subject::Collective(of) => {
            (of.number, of.nth) == (step.collective.number, step.collective.nth)
        }
        _ => false,
    };
    let waits = |pe: u32| job.pes[pe as usize].waits().map(|(wait, _)| wait);
    let call = |pe: u32| waits(pe).find(|wait| is_in(wait)).map(wording::call);
    let mut calls = ranges::fold(&step.pes(), |pe| call(pe).unwrap_or_default());
    calls.sort_by_key(|(call, pes)| (Reverse(pes.len()), call.to_lowercase()));
    let text = |(call, pes): &(String, Vec<u32>)| {
        format!("{} {} {call}", ranges::pes(pes), if pes.len() == 1 { one } else { many })
    };
    let mut texts: Vec<String> = calls.iter().take(NAMED).map(text).collect();
    if calls.len() > NAMED {
        texts.push(format!("other PEs {many} {} other routines", calls.len() - NAMED));
    }
    let named = calls.into_iter().take(NAMED).flat_map(|(_, pes)| pes);
    told.extend(named.filter(|pe| waits(*pe).all(is_in)));
    enumerate(texts)
}
