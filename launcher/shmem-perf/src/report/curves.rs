//! Series as curves: their names, their values with spreads, their colors and markers, and the
//! legend.

use maud::{Markup, html};

use super::source::{NamedRun, short_run_name};
use super::style::{Entry, FLOOR_DASHES, colors, letter, marker};
use crate::naming::names;
use crate::operation::is_invalid;
use crate::record::{Ended, Measure, Series};
use crate::units;
use charts::drawing::px;
use charts::palette::{FLOOR, INK, RED, SERIES};

/// One value of a curve.
#[derive(Clone, Copy)]
pub struct Spot {
    /// The size in bytes, or the number of members of the team.
    pub x: u64,
    /// The median.
    pub value: f64,
    /// The ends of the range in which most values are.
    pub low: f64,
    pub high: f64,
    /// The number of measured values of which `value` is the median.
    pub n: u64,
    /// True if the measurement was cut short by the time limit.
    pub is_late: bool,
    /// True if it belongs to a floor that takes longer than an operation that it should bound.
    pub is_invalid: bool,
}

impl Spot {
    /// Returns a value without a spread.
    pub fn exact(x: u64, value: f64) -> Self {
        Self {
            x,
            value,
            low: value,
            high: value,
            n: 1,
            is_late: false,
            is_invalid: false,
        }
    }
}

/// The curve of one operation in one run.
pub struct Trace {
    pub name: String,
    /// The index of its color in `SERIES`; `None` for a floor, which is gray.
    pub color: Option<usize>,
    /// The index of the run, in the list of runs.
    pub run: usize,
    /// The values, one for each size or team.
    pub spots: Vec<Spot>,
}

impl Trace {
    pub fn color(&self) -> &'static str {
        self.color.map_or(FLOOR, |color| SERIES[color])
    }

    /// Returns the marker of a value: hollow if the time limit cut it short, a cross if it is
    /// invalid as a floor.
    pub fn mark(&self, (x, y): (f64, f64), spot: &Spot) -> Markup {
        if spot.is_invalid {
            let path = format!("M{} {}l7 7m0-7l-7 7", px(x - 3.5), px(y - 3.5));
            return html! { path stroke=(RED) stroke-width="2.2" fill="none" d=(path) {} };
        }
        marker(self.run, (x, y), self.color(), spot.is_late)
    }

    /// Returns a text of this curve, after the letter of its run if there are several runs.
    pub fn lettered(&self, text: &str, n_runs: usize) -> String {
        match n_runs {
            1 => text.to_owned(),
            _ => format!("{} {text}", letter(self.run)),
        }
    }

    /// Returns a value and its spread in words.
    pub fn words(&self, measure: Measure, spot: &Spot, n_runs: usize) -> String {
        let name = self.lettered(&self.name, n_runs);
        let value = units::figure(measure, spot.value);
        let low = units::figure(measure, spot.low);
        let high = units::figure(measure, spot.high);

        let mut words = format!("{name}: {value} ({low} to {high}), n {}", spot.n);
        if spot.is_late {
            words += ", time up";
        }
        if spot.is_invalid {
            words += ", invalid as a floor";
        }
        words
    }
}

/// A series, and the run that measured it.
#[derive(Clone, Copy)]
pub struct RunSeries<'a> {
    /// The index of the run.
    pub run: usize,
    pub series: &'a Series,
}

/// A series with the run that measured it, and its name.
#[derive(Clone)]
pub struct NamedSeries<'a> {
    /// The index of its run.
    pub run: usize,
    pub series: &'a Series,
    /// The operation, and the parts of its shape in which it differs from the others.
    pub name: String,
}

/// Series that are shown together, by the names that tell them apart.
pub struct SeriesNames<'a> {
    pub series: Vec<NamedSeries<'a>>,
    /// The parts of their shapes that all have in common.
    pub common: String,
}

/// The series of one chart, if there are too many for a single one.
pub struct SeriesGroup<'a> {
    pub series: Vec<NamedSeries<'a>>,
    /// The end of the chart's title, such as ` (1 of 2)`; empty if there is one group.
    pub title_end: String,
}

/// Returns the series of a measure, run by run.
pub fn series_of(measure: Measure, runs: &[NamedRun]) -> Vec<RunSeries<'_>> {
    let mut all = Vec::new();
    for (run, named) in runs.iter().enumerate() {
        for series in &named.record.series {
            if series.measure == measure {
                all.push(RunSeries { run, series });
            }
        }
    }
    all
}

/// Names series by the parts in which they differ.
pub fn name_series<'a>(series: &[RunSeries<'a>]) -> SeriesNames<'a> {
    let all: Vec<&Series> = series.iter().map(|one| one.series).collect();
    let names = names(&all);

    let mut named = Vec::new();
    for (one, name) in series.iter().zip(names.names) {
        named.push(NamedSeries {
            run: one.run,
            series: one.series,
            name,
        });
    }
    SeriesNames {
        series: named,
        common: names.common,
    }
}

/// Divides series into groups of at most `most` names. Series with the same name are in one group.
pub fn grouped<'a>(all: &[NamedSeries<'a>], most: usize) -> Vec<SeriesGroup<'a>> {
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }

    // All groups have nearly the same number of names.
    let n_groups = names.len().div_ceil(most).max(1);
    let in_group = names.len().div_ceil(n_groups).max(1);

    // Rounding up may have left nothing for the last one.
    let n_groups = names.chunks(in_group).len();
    let mut groups = Vec::new();
    for (i, names) in names.chunks(in_group).enumerate() {
        let mut series = Vec::new();
        for name in names {
            series.extend(all.iter().filter(|one| one.name == *name).cloned());
        }
        let title_end = match n_groups {
            1 => String::new(),
            n => format!(" ({} of {n})", i + 1),
        };
        groups.push(SeriesGroup { series, title_end });
    }
    groups
}

/// Returns the curves of a group. Curves with the same name have the same color, which is that of
/// the operation in other charts where possible.
pub fn color_curves(group: &[NamedSeries], operations: &[String], runs: &[NamedRun]) -> Vec<Trace> {
    let mut firsts: Vec<&NamedSeries> = Vec::new();
    for one in group {
        if !firsts.iter().any(|first| first.name == one.name) {
            firsts.push(one);
        }
    }

    let own: Vec<&str> = firsts
        .iter()
        .map(|one| one.series.operation.as_str())
        .collect();
    let colors = colors(&own, operations);

    let mut curves = Vec::new();
    for one in group {
        let place = firsts.iter().position(|first| first.name == one.name);
        curves.push(curve(one, place.map(|place| colors[place]), runs));
    }
    curves
}

/// Returns the curve of a series; `color` is the index of its color, `None` for a floor.
pub fn curve(one: &NamedSeries, color: Option<usize>, runs: &[NamedRun]) -> Trace {
    let mut spots = Vec::new();
    for point in &one.series.points {
        let summary = &point.summary;
        let mut spot = Spot {
            x: point.nbytes,
            value: summary.p50,
            low: summary.min,
            high: summary.p99,
            n: summary.n,
            is_late: summary.ended == Ended::TimeUp,
            is_invalid: is_invalid(&runs[one.run].record.series, one.series, point),
        };

        let is_time = matches!(
            one.series.measure,
            Measure::Latency | Measure::Collective | Measure::Event
        );
        if !is_time {
            // A single slow moment matters little for a rate or overlap: the range is that of the
            // medians of batches.
            let medians = summary.batches.iter().copied();
            spot.low = medians.clone().fold(summary.p50, f64::min);
            spot.high = medians.fold(summary.p50, f64::max);
        }
        spots.push(spot);
    }

    Trace {
        name: one.name.clone(),
        color,
        run: one.run,
        spots,
    }
}

/// Returns the note on some curves: what they have in common, and the meaning of their signs.
pub fn note_on(common: &str, curves: &[Trace]) -> String {
    let mut notes = Vec::new();
    if !common.is_empty() {
        notes.push(common);
    }

    let spots: Vec<&Spot> = curves.iter().flat_map(|one| &one.spots).collect();
    if spots.iter().any(|spot| spot.is_late) {
        notes.push("hollow: cut short by the time limit");
    }
    if spots.iter().any(|spot| spot.is_invalid) {
        notes.push("red cross: invalid as a floor");
    }
    notes.join("; ")
}

/// Returns the legend: a color for each name, a kind of line for each run if there are several, and
/// the line of floors.
pub fn legend(curves: &[Trace], has_floors: bool, runs: &[NamedRun]) -> Vec<Entry> {
    let mut legend: Vec<Entry> = Vec::new();
    for curve in curves {
        if !legend.iter().any(|entry| entry.text == curve.name) {
            legend.push(Entry {
                color: curve.color(),
                dashes: None,
                run: None,
                text: curve.name.clone(),
            });
        }
    }

    if runs.len() > 1 {
        for run in 0..runs.len() {
            if curves.iter().any(|curve| curve.run == run) {
                legend.push(Entry::of_run(run, INK, short_run_name(runs, run)));
            }
        }
    }

    if has_floors {
        legend.push(Entry {
            color: FLOOR,
            dashes: Some(FLOOR_DASHES),
            run: None,
            text: "what the machine itself takes".to_owned(),
        });
    }
    legend
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn spot(x: u64, value: f64) -> Spot {
        Spot {
            low: value * 0.9,
            high: value * 2.0,
            ..Spot::exact(x, value)
        }
    }

    /// Returns a curve of run B.
    pub fn trace(name: &str, spots: &[(u64, f64)]) -> Trace {
        let spots = spots.iter().map(|&(x, value)| spot(x, value)).collect();
        Trace {
            name: name.into(),
            color: Some(0),
            run: 1,
            spots,
        }
    }
}
