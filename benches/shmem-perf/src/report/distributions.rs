//! Histograms of operations whose calls were timed singly.

use std::collections::BTreeSet;

use super::curves::{Named, all, grouped, named};
use super::figure::Part;
use super::figure::{Figure, legend};
use super::histogram;
use super::source::{NamedRun, called};
use super::style::{Entry, dashes};
use crate::record::{Measure, Point, Series};
use crate::units;
use charts::palette::SERIES;

/// Returns the histogram of each operation at one size, and the legend of all.
pub fn distributions(runs: &[NamedRun]) -> Vec<Part> {
    let (mut charts, mut seen) = (Vec::new(), BTreeSet::new());
    for measure in [Measure::Latency, Measure::Collective, Measure::Event] {
        let is_timed =
            |(_, s): &(usize, &Series)| !s.is_floor && s.points.iter().any(has_histogram);
        let mut series = all(measure, runs);
        series.retain(is_timed);
        let largest = series.iter().filter_map(|(_, series)| series.shape.team_size).max();
        series.retain(|(_, s)| s.shape.team_size == largest || s.shape.team_size.is_none());
        let (names, _) = named(&series);
        for (group, _) in grouped(&names, 1) {
            let Some(nbytes) = size(&group) else { continue };
            let histograms: Vec<(usize, &[(f64, u64)])> =
                group.iter().filter_map(|one| histogram_of(one, nbytes)).collect();
            seen.extend(histograms.iter().map(|(run, _)| *run));
            let at =
                if nbytes > 0 { format!(", {} bytes", units::size(nbytes)) } else { String::new() };
            let drawing = histogram::draw(measure, &histograms, runs.len());
            let title = format!("{}{at}", group[0].name);
            charts.push(Figure::new(title, String::new(), drawing, Vec::new()));
        }
    }
    if charts.is_empty() {
        return Vec::new();
    }
    let mut body = vec![Part::note(
        "The share of the operations by their time, both axes logarithmic, so that one in a \
         thousand is still visible.",
    )];
    if runs.len() > 1 {
        let entry = |run: usize| Entry {
            color: SERIES[run % SERIES.len()],
            dashes: dashes(run),
            run: None,
            text: called(runs, run),
        };
        body.push(Part::Text(legend(&seen.into_iter().map(entry).collect::<Vec<_>>())));
    }
    body.push(Part::SmallFigures(charts));
    body
}

fn has_histogram(point: &Point) -> bool {
    !point.histogram.is_empty()
}

/// Returns the run of a series, and its histogram at a size.
fn histogram_of<'a>(one: &Named<'a>, nbytes: u64) -> Option<(usize, &'a [(f64, u64)])> {
    let point = one.series.points.iter().find(|p| p.nbytes == nbytes && has_histogram(p));
    point.map(|point| (one.run, point.histogram.as_slice()))
}

/// Returns the size at which the runs of an operation are shown: 8 bytes, which most programs send,
/// if all have it, or else the smallest that all have, or else any.
fn size(group: &[Named]) -> Option<u64> {
    let points = || group.first().into_iter().flat_map(|one| &one.series.points);
    let sizes = points().filter(|point| has_histogram(point)).map(|point| point.nbytes);
    let in_all = |nbytes: &u64| group.iter().all(|it| histogram_of(it, *nbytes).is_some());
    std::iter::once(8).chain(sizes.clone()).find(in_all).or(sizes.clone().next())
}
