//! Series as curves: their names next to each other, their colors, their spread, and the legend.

use super::source::{NamedRun, called_shortly};
use super::style::{Entry, FLOOR_DASHES, colors};
use super::trace::{Spot, Trace};
use crate::naming::names;
use crate::operation::is_invalid;
use crate::record::{Ended, Measure, Point, Series, Summary};
use charts::palette::{FLOOR, INK};

/// A series with the place of its run and its name.
#[derive(Clone)]
pub struct Named<'a> {
    /// The place of its run.
    pub run: usize,
    pub series: &'a Series,
    /// Its name next to the others.
    pub name: String,
}

/// Returns the series of a measure, each with the place of its run.
pub fn all(measure: Measure, runs: &[NamedRun]) -> Vec<(usize, &Series)> {
    let of_run = |(i, run)| -> Vec<(usize, &Series)> {
        let run: &NamedRun = run;
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

/// Groups of at most `most` names, and a suffix for the title of each. The
/// runs of a name stay together.
pub fn grouped<'a>(all: &[Named<'a>], most: usize) -> Vec<(Vec<Named<'a>>, String)> {
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
    let groups = names.chunks(in_group).map(|names| names.iter().flat_map(of).collect());
    let n_groups = names.chunks(in_group).len();
    let part = |i: usize| match n_groups {
        1 => String::new(),
        n => format!(" ({} of {n})", i + 1),
    };
    groups.enumerate().map(|(i, group)| (group, part(i))).collect()
}

/// Returns the curves of a group: a color for each name, the same as in other charts of these
/// operations.
pub fn colored(group: &[Named], operations: &[String], runs: &[NamedRun]) -> Vec<Trace> {
    let mut firsts: Vec<&Named> = Vec::new();
    for one in group {
        if !firsts.iter().any(|first| first.name == one.name) {
            firsts.push(one);
        }
    }
    let own: Vec<&str> = firsts.iter().map(|one| one.series.operation.as_str()).collect();
    let colors = colors(&own, operations);
    let color = |one: &Named| {
        firsts.iter().position(|first| first.name == one.name).map(|place| colors[place])
    };
    group.iter().map(|one| curve(one, color(one), runs)).collect()
}

pub fn curve(one: &Named, color: Option<usize>, runs: &[NamedRun]) -> Trace {
    let spot = |point: &Point| Spot {
        x: point.nbytes,
        value: point.summary.p50,
        spread: spread(one.series.measure, &point.summary),
        n: point.summary.n,
        is_late: point.summary.ended == Ended::TimeUp,
        is_invalid: is_invalid(&runs[one.run].record.series, one.series, point),
    };
    let spots = one.series.points.iter().map(spot).collect();
    Trace { name: one.name.clone(), color, run: one.run, spots }
}

/// Returns the range of most values. Of times, the few that are far above the median matter. Of
/// rates, one slow moment matters little, and the medians of the batches show how steady they are.
fn spread(measure: Measure, summary: &Summary) -> (f64, f64) {
    match measure {
        Measure::Latency | Measure::Collective | Measure::Event => (summary.min, summary.p99),
        _ => summary.batches.iter().fold((summary.p50, summary.p50), |(low, high), batch| {
            (low.min(*batch), high.max(*batch))
        }),
    }
}

/// Returns what some curves have in common, and the meaning of their signs.
pub fn noted(common: &str, curves: &[Trace]) -> String {
    let has = |sign: fn(&Spot) -> bool| curves.iter().flat_map(|one| &one.spots).any(sign);
    let late = has(|spot| spot.is_late).then_some("hollow: cut short by the time limit");
    let invalid = has(|spot| spot.is_invalid).then_some("red cross: invalid as a floor");
    let common = Some(common).filter(|common| !common.is_empty());
    [common, late, invalid].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Returns a color for each name, and a kind of line for each run.
pub fn legend(curves: &[Trace], has_floors: bool, runs: &[NamedRun]) -> Vec<Entry> {
    let mut legend: Vec<Entry> = Vec::new();
    for curve in curves {
        if !legend.iter().any(|entry| entry.text == curve.name) {
            let (color, text) = (curve.color(), curve.name.clone());
            legend.push(Entry { color, dashes: None, run: None, text });
        }
    }
    let is_present = |run: &usize| runs.len() > 1 && curves.iter().any(|curve| curve.run == *run);
    let present = (0..runs.len()).filter(is_present);
    legend.extend(present.map(|run| Entry::of_run(run, INK, called_shortly(runs, run))));
    let text = "what the machine itself takes".to_owned();
    let floors = Entry { color: FLOOR, dashes: Some(FLOOR_DASHES), run: None, text };
    legend.extend(has_floors.then_some(floors));
    legend
}
