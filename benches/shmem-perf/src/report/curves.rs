//! Series as curves: what they are called beside each other, their colours, their spread, and the legend that tells of these.
//!
//! This file must never know which charts there are.

use super::chart::{Spot, Trace};
use super::figure::Entry;
use super::source::{Source, called_shortly};
use super::style::colours;
use crate::naming::names;
use crate::operation::is_invalid;
use crate::record::{Ended, Measure, Point, Series, Summary};

/// A series with the place of its run and its name.
#[derive(Clone)]
pub struct Named<'a> {
    /// The place of its run.
    pub run: usize,
    /// It.
    pub series: &'a Series,
    /// What tells it from the others.
    pub name: String,
}

/// The series of a measure, each with the place of its run.
pub fn all(measure: Measure, runs: &[Source]) -> Vec<(usize, &Series)> {
    let of_run = |(i, run)| -> Vec<(usize, &Series)> {
        let run: &Source = run;
        run.record.series.iter().filter(|s| s.measure == measure).map(|s| (i, s)).collect()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// Names series beside each other, and says what all have in common.
pub fn named<'a>(series: &[(usize, &'a Series)]) -> (Vec<Named<'a>>, String) {
    let found = names(&series.iter().map(|(_, series)| *series).collect::<Vec<_>>());
    let named = series.iter().zip(found.names);
    (named.map(|((run, series), name)| Named { run: *run, series, name }).collect(), found.common)
}

/// Groups of at most so many names. The runs of a name stay together and follow each other.
pub fn grouped<'a>(all: &[Named<'a>], most: usize) -> Vec<Vec<Named<'a>>> {
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    // Groups of nearly the same number of names.
    let n_groups = names.len().div_ceil(most).max(1);
    let in_group = names.len().div_ceil(n_groups).max(1);
    let of = |name: &&str| all.iter().filter(|one| one.name == **name).cloned().collect::<Vec<_>>();
    names.chunks(in_group).map(|names| names.iter().flat_map(of).collect()).collect()
}

/// The curves of a group: a colour for each name, of an operation the same as in other charts of these operations.
pub fn coloured(group: &[Named], operations: &[String], runs: &[Source]) -> Vec<Trace> {
    let mut firsts: Vec<&Named> = Vec::new();
    for one in group {
        if !firsts.iter().any(|first| first.name == one.name) {
            firsts.push(one);
        }
    }
    let own: Vec<&str> = firsts.iter().map(|one| one.series.operation.as_str()).collect();
    let colours = colours(&own, operations);
    let colour = |one: &Named| {
        firsts.iter().position(|first| first.name == one.name).map(|place| colours[place])
    };
    group.iter().map(|one| curve(one, colour(one), runs)).collect()
}

/// A series as a curve.
pub fn curve(one: &Named, colour: Option<usize>, runs: &[Source]) -> Trace {
    let spot = |point: &Point| Spot {
        x: point.nbytes,
        value: point.summary.p50,
        spread: spread(one.series.measure, &point.summary),
        n: point.summary.n,
        is_late: point.summary.ended == Ended::TimeUp,
        is_invalid: is_invalid(&runs[one.run].record.series, one.series, point),
    };
    let spots = one.series.points.iter().map(spot).collect();
    Trace { name: one.name.clone(), colour, run: one.run, spots }
}

/// Between which figures most lie. Of times the few that are far above the median are what tells; of rates a single slow moment says
/// little, and the medians of the batches say how steady they are.
fn spread(measure: Measure, summary: &Summary) -> (f64, f64) {
    match measure {
        Measure::Latency | Measure::Collective | Measure::Event => (summary.min, summary.p99),
        _ => summary.batches.iter().fold((summary.p50, summary.p50), |(low, high), batch| {
            (low.min(*batch), high.max(*batch))
        }),
    }
}

/// What some curves have in common, and what their signs mean.
pub fn noted(common: &str, curves: &[Trace]) -> String {
    let has = |sign: fn(&Spot) -> bool| curves.iter().flat_map(|one| &one.spots).any(sign);
    let late = has(|spot| spot.is_late).then_some("hollow: cut short by the time limit");
    let invalid = has(|spot| spot.is_invalid).then_some("red cross: invalid as a floor");
    let common = Some(common).filter(|common| !common.is_empty());
    [common, late, invalid].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A colour for each name, and a kind of line for each run.
pub fn legend(curves: &[Trace], has_floors: bool, runs: &[Source]) -> Vec<Entry> {
    let entry = |classes: &str, run, text: &str| Entry {
        classes: classes.to_owned(),
        run,
        text: text.to_owned(),
    };
    let mut legend: Vec<Entry> = Vec::new();
    let mut present: Vec<usize> = Vec::new();
    for curve in curves {
        if !legend.iter().any(|entry| entry.text == curve.name) {
            legend.push(entry(&curve.class(), None, &curve.name));
        }
        if !present.contains(&curve.run) {
            present.push(curve.run);
        }
    }
    if runs.len() > 1 {
        present.sort_unstable();
        let of_run = |&run: &usize| entry("ink", Some(run), &called_shortly(runs, run));
        legend.extend(present.iter().map(of_run));
    }
    legend.extend(has_floors.then(|| entry("floor", None, "what the machine itself takes")));
    legend
}
