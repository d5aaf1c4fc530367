//! Series as curves: their names, their values with spreads, their colors and markers, and the
//! legend.

use maud::{Markup, html};

use super::source::{NamedRun, short_run_name};
use super::style::{Entry, FLOOR_DASHES, colors, letter, marker};
use crate::naming::names;
use crate::operation::is_invalid;
use crate::record::{Ended, Measure, Point, Series, Summary};
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
    /// The range in which most values are.
    pub spread: (f64, f64),
    /// The number of values.
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
            spread: (value, value),
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
        let [value, low, high] =
            [spot.value, spot.spread.0, spot.spread.1].map(|value| units::figure(measure, value));
        let late = if spot.is_late { ", time up" } else { "" };
        let invalid = if spot.is_invalid {
            ", invalid as a floor"
        } else {
            ""
        };
        format!(
            "{name}: {value} ({low} to {high}), n {}{late}{invalid}",
            spot.n
        )
    }
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

/// Returns the series of a measure, each with the index of its run.
pub fn series_of(measure: Measure, runs: &[NamedRun]) -> Vec<(usize, &Series)> {
    runs.iter()
        .enumerate()
        .flat_map(|(i, run)| run.record.series.iter().map(move |series| (i, series)))
        .filter(|(_, series)| series.measure == measure)
        .collect()
}

/// Names series by the parts in which they differ. Also returns the parts that all have in common.
pub fn name_series<'a>(series: &[(usize, &'a Series)]) -> (Vec<NamedSeries<'a>>, String) {
    let all: Vec<&Series> = series.iter().map(|(_, series)| *series).collect();
    let found = names(&all);
    let named = series
        .iter()
        .zip(found.names)
        .map(|((run, series), name)| NamedSeries {
            run: *run,
            series,
            name,
        })
        .collect();
    (named, found.common)
}

/// Divides series into groups of at most `most` names, each with a suffix for its title. Series
/// with the same name are in one group.
pub fn grouped<'a>(all: &[NamedSeries<'a>], most: usize) -> Vec<(Vec<NamedSeries<'a>>, String)> {
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }

    // All groups have nearly the same number of names.
    let n_groups = names.len().div_ceil(most).max(1);
    let in_group = names.len().div_ceil(n_groups).max(1);

    let n_groups = names.chunks(in_group).len();
    let mut groups = Vec::new();
    for (i, names) in names.chunks(in_group).enumerate() {
        let mut group = Vec::new();
        for name in names {
            group.extend(all.iter().filter(|one| one.name == *name).cloned());
        }
        let part = match n_groups {
            1 => String::new(),
            n => format!(" ({} of {n})", i + 1),
        };
        groups.push((group, part));
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

    let color = |one: &NamedSeries| {
        firsts
            .iter()
            .position(|first| first.name == one.name)
            .map(|place| colors[place])
    };

    group
        .iter()
        .map(|one| curve(one, color(one), runs))
        .collect()
}

pub fn curve(one: &NamedSeries, color: Option<usize>, runs: &[NamedRun]) -> Trace {
    let spot = |point: &Point| Spot {
        x: point.nbytes,
        value: point.summary.p50,
        spread: spread(one.series.measure, &point.summary),
        n: point.summary.n,
        is_late: point.summary.ended == Ended::TimeUp,
        is_invalid: is_invalid(&runs[one.run].record.series, one.series, point),
    };
    let spots = one.series.points.iter().map(spot).collect();
    Trace {
        name: one.name.clone(),
        color,
        run: one.run,
        spots,
    }
}

/// Returns the range in which most values are. For times it is from the minimum to the 99th
/// percentile. For rates and overlap, where a single slow moment matters little, it is the range of
/// the medians of batches.
fn spread(measure: Measure, summary: &Summary) -> (f64, f64) {
    match measure {
        Measure::Latency | Measure::Collective | Measure::Event => (summary.min, summary.p99),
        _ => summary
            .batches
            .iter()
            .fold((summary.p50, summary.p50), |(low, high), batch| {
                (low.min(*batch), high.max(*batch))
            }),
    }
}

/// Returns the note on some curves: what they have in common, and the meaning of their signs.
pub fn note_on(common: &str, curves: &[Trace]) -> String {
    let has = |sign: fn(&Spot) -> bool| curves.iter().flat_map(|one| &one.spots).any(sign);
    let late = has(|spot| spot.is_late).then_some("hollow: cut short by the time limit");
    let invalid = has(|spot| spot.is_invalid).then_some("red cross: invalid as a floor");
    let common = Some(common).filter(|common| !common.is_empty());
    [common, late, invalid]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the legend: a color for each name, a kind of line for each run if there are several, and
/// the line of floors.
pub fn legend(curves: &[Trace], has_floors: bool, runs: &[NamedRun]) -> Vec<Entry> {
    let mut legend: Vec<Entry> = Vec::new();
    for curve in curves {
        if !legend.iter().any(|entry| entry.text == curve.name) {
            let (color, text) = (curve.color(), curve.name.clone());
            legend.push(Entry {
                color,
                dashes: None,
                run: None,
                text,
            });
        }
    }

    let is_present = |run: &usize| runs.len() > 1 && curves.iter().any(|curve| curve.run == *run);
    let present = (0..runs.len()).filter(is_present);
    legend.extend(present.map(|run| Entry::of_run(run, INK, short_run_name(runs, run))));

    let text = "what the machine itself takes".to_owned();
    let floors = Entry {
        color: FLOOR,
        dashes: Some(FLOOR_DASHES),
        run: None,
        text,
    };
    legend.extend(has_floors.then_some(floors));
    legend
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn spot(x: u64, value: f64) -> Spot {
        Spot {
            spread: (value * 0.9, value * 2.0),
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
