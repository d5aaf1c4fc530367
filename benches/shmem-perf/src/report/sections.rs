//! The sections of a report. They show the series of all runs as charts and tables, by measure and
//! by kind of operation, then maps and distributions.

use std::collections::BTreeSet;

use maud::Markup;

use super::chart::{self, XAxis};
use super::curves::{
    NamedSeries, Trace, color_curves, curve, grouped, legend, name_series, note_on, series_of,
};
use super::figure::{Figure, Part, ReportSection, chart_title, kinds, legend_markup, table};
use super::header::folded;
use super::source::{NamedRun, run_name, short_run_name};
use super::style::{Entry, dashes};
use super::{heat, histogram, rows};
use crate::naming::names;
use crate::operation::{bounds, is_invalid, kind_of};
use crate::record::{Ended, Measure, Point, Series, Shape};
use crate::statistics::FEWEST_OF_P99;
use crate::units;
use charts::palette::SERIES;

/// Returns the sections that have something to show.
pub fn sections(runs: &[NamedRun]) -> Vec<ReportSection> {
    let both = [Measure::Bandwidth, Measure::BidirectionalBandwidth];
    let mut sections = vec![
        section("latency", &[Measure::Latency], runs),
        section("bandwidth", &both, runs),
        section("rate", &[Measure::MessageRate], runs),
        section("overlap", &[Measure::Overlap], runs),
        section("collectives", &[Measure::Collective], runs),
        section("events", &[Measure::Event], runs),
        ReportSection {
            id: "maps",
            title: "PE by PE",
            body: maps(runs),
        },
        ReportSection {
            id: "distributions",
            title: "Distributions",
            body: distributions(runs),
        },
    ];
    sections.retain(|section| !section.body.is_empty());
    sections
}

/// Returns the section of some measures: their charts, then tables of their values.
fn section(id: &'static str, measures: &[Measure], runs: &[NamedRun]) -> ReportSection {
    let (mut all_charts, mut tables) = (Vec::new(), Vec::new());
    for &measure in measures {
        let series = series_of(measure, runs);
        if !series.is_empty() {
            let has_sizes = measure != Measure::Event;
            all_charts.extend(charts(measure, &series, runs));
            let title = format!("Numbers of {}", units::name(measure).to_lowercase());
            tables.push(Part::Text(folded(
                &title,
                &figures_table(&series, has_sizes, runs),
            )));
        }
    }
    let note = match measures[0] {
        Measure::MessageRate => {
            "Dots and lines are medians, dots at the smallest size; bands and thin lines show the \
             range of the medians of all batches."
        }
        Measure::Bandwidth | Measure::Overlap => {
            "Lines are medians; bands show the range of the medians of all batches."
        }
        Measure::Event => "Dots are medians; lines extend from the minimum to the 99th percentile.",
        _ => {
            "Lines and dots are medians; bands and thin lines extend from the minimum to the 99th \
             percentile."
        }
    };
    let mut body = Vec::new();
    if !tables.is_empty() {
        body.extend([Part::note(note), Part::Figures(all_charts)]);
        body.extend(tables);
    }
    ReportSection {
        id,
        title: units::name(measures[0]),
        body,
    }
}

fn charts(measure: Measure, series: &[(usize, &Series)], runs: &[NamedRun]) -> Vec<Figure> {
    let mut charts = Vec::new();
    let (floors, own): (Vec<_>, Vec<_>) = series.iter().partition(|(_, series)| series.is_floor);
    for (kind, operations) in kinds(&own) {
        let of_kind: Vec<_> = own
            .iter()
            .filter(|(_, series)| kind_of(&series.operation) == kind)
            .copied()
            .collect();
        let largest = of_kind
            .iter()
            .filter_map(|(_, series)| series.shape.team_size)
            .max();
        let is_shown = |series: &Series| series.shape.team_size == largest;
        let shown: Vec<_> = of_kind
            .iter()
            .filter(|(_, series)| is_shown(series))
            .copied()
            .collect();
        let is_bound = |floor: &Series| operations.iter().any(|one| bounds(&floor.operation, one));
        let floors: Vec<_> = floors
            .iter()
            .filter(|(_, floor)| is_bound(floor))
            .copied()
            .collect();
        charts.extend(by_size(measure, kind, &operations, &shown, &floors, runs));
        if largest.is_some() {
            charts.extend(by_team(measure, &operations, &of_kind, runs));
        }
    }
    if own.is_empty() {
        charts.extend(by_size(measure, "", &[], &[], &floors, runs));
    }
    charts
}

fn maps(runs: &[NamedRun]) -> Vec<Part> {
    let mut maps = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for matrix in &run.record.matrices {
            let (drawing, sentences) = heat::draw(matrix, &run.record.job);
            let name = units::name(matrix.measure).to_lowercase();
            let title = format!(
                "{}, {} bytes: {name}",
                matrix.operation,
                units::size(matrix.nbytes)
            );
            let run = if runs.len() > 1 {
                run_name(runs, i)
            } else {
                String::new()
            };
            let figure = Figure::new(title, run, drawing, Vec::new());
            maps.push(Figure {
                found: Some(sentences),
                ..figure
            });
        }
    }
    if maps.is_empty() {
        return Vec::new();
    }
    let note = Part::note(
        "Rows are the PEs that issue, columns their targets; lines separate nodes. Light is good, \
         dark is bad: a long time or a low bandwidth. Red marks pairs that are far slower than \
         others of their kind.",
    );
    vec![note, Part::Figures(maps)]
}

/// The maximum number of rows of a chart.
const MOST_ROWS: usize = 14;

/// Returns the charts of operations of one kind, with their floors. Series with several sizes are
/// curves, series with one size are rows. Message rates with several sizes are both.
fn by_size(
    measure: Measure,
    kind: &str,
    operations: &[String],
    series: &[(usize, &Series)],
    floors: &[(usize, &Series)],
    runs: &[NamedRun],
) -> Vec<Figure> {
    let (names, common) = name_series(series);
    let is_curve = |one: &&NamedSeries| one.series.points.len() > 1;
    let is_row = |one: &&NamedSeries| one.series.points.len() == 1;
    let curves: Vec<NamedSeries> = names.iter().filter(is_curve).cloned().collect();
    let mut single: Vec<NamedSeries> = match measure {
        // All series have a row, also those that have a curve.
        Measure::MessageRate => names,
        _ => names.iter().filter(is_row).cloned().collect(),
    };
    let (floor_names, _) = name_series(floors);
    let floor_curves: Vec<NamedSeries> = floor_names.iter().filter(is_curve).cloned().collect();
    if !single.is_empty() || series.is_empty() {
        single.extend(floor_names.iter().filter(is_row).cloned());
    }
    let mut charts = Vec::new();
    let mut groups = grouped(&curves, SERIES.len());
    if groups.is_empty() && series.is_empty() && !floor_curves.is_empty() {
        groups.push((Vec::new(), String::new()));
    }
    for (group, part) in groups {
        let mut drawn = color_curves(&group, operations, runs);
        let legend = legend(&drawn, !floor_curves.is_empty(), runs);
        drawn.extend(floor_curves.iter().map(|floor| curve(floor, None, runs)));
        let drawing = chart::draw(measure, XAxis::Bytes, &drawn, runs.len());
        let by = if measure == Measure::Collective {
            " by size"
        } else {
            ""
        };
        let title = chart_title(measure, kind, &format!("{by}{part}"));
        charts.push(Figure::new(
            title,
            note_on(&common, &drawn),
            drawing,
            legend,
        ));
    }
    for (mut group, part) in grouped(&single, MOST_ROWS) {
        let size = |one: &NamedSeries| one.series.points.first().map_or(0, |point| point.nbytes);
        let first = group.first().map_or(0, size);
        let are_same = group.iter().all(|one| size(one) == first);
        if !are_same {
            for one in &mut group {
                one.name = format!("{}, {} bytes", one.name, units::size(size(one)));
            }
        }
        let at = match first {
            _ if !are_same => String::new(),
            0 if measure == Measure::Collective => " without data".into(),
            0 => String::new(),
            size => format!(" at {} bytes", units::size(size)),
        };
        let color = |one: &NamedSeries| (!one.series.is_floor).then_some(0);
        let drawn: Vec<Trace> = group
            .iter()
            .map(|one| curve(one, color(one), runs))
            .collect();
        let drawing = rows::draw(measure, &drawn, runs.len());
        let title = chart_title(measure, kind, &format!("{at}{part}"));
        charts.push(Figure::new(
            title,
            note_on(&common, &drawn),
            drawing,
            Vec::new(),
        ));
    }
    charts
}

/// Returns the charts of collectives by the size of the team, at their smallest and at their
/// largest number of bytes.
fn by_team(
    measure: Measure,
    operations: &[String],
    series: &[(usize, &Series)],
    runs: &[NamedRun],
) -> Vec<Figure> {
    let mut charts = Vec::new();
    for (is_largest, which) in [(false, "smallest"), (true, "largest")] {
        if is_largest && series.iter().all(|(_, s)| s.points.len() < 2) {
            continue;
        }
        let merged = merge_teams(series, is_largest);
        // A curve needs teams of at least two sizes.
        if merged.iter().all(|(_, one, _)| one.points.len() < 2) {
            continue;
        }
        let all: Vec<(usize, &Series)> = merged.iter().map(|(run, s, _)| (*run, s)).collect();
        let (mut names, common) = name_series(&all);
        for (one, (_, _, nbytes)) in names.iter_mut().zip(&merged) {
            if *nbytes > 0 {
                one.name += &format!(", {} bytes", units::size(*nbytes));
            }
        }
        for (group, part) in grouped(&names, SERIES.len()) {
            let drawn = color_curves(&group, operations, runs);
            let drawing = chart::draw(measure, XAxis::Team, &drawn, runs.len());
            let title = chart_title(measure, "", &format!(" by team, {which} size{part}"));
            let legend = legend(&drawn, false, runs);
            charts.push(Figure::new(
                title,
                note_on(&common, &drawn),
                drawing,
                legend,
            ));
        }
    }
    charts
}

/// Merges series that differ only in the size of the team. Returns for each merged series its run,
/// the series, whose points have the size of the team instead of the bytes, and its number of
/// bytes.
fn merge_teams(series: &[(usize, &Series)], is_largest: bool) -> Vec<(usize, Series, u64)> {
    let mut merged: Vec<(usize, Series, u64)> = Vec::new();
    for (run, one) in series {
        let mut points = one
            .points
            .iter()
            .filter(|point| !is_largest || point.nbytes > 0);
        let point = if is_largest {
            points.next_back()
        } else {
            points.next()
        };
        let (Some(point), Some(team)) = (point, one.shape.team_size) else {
            continue;
        };
        let shape = Shape {
            team_size: None,
            ..one.shape.clone()
        };
        let mut across_teams = point.clone();
        let nbytes = std::mem::replace(&mut across_teams.nbytes, u64::from(team));
        let is_same = |(other, kept, size): &&mut (usize, Series, u64)| {
            (*other, &kept.operation, &kept.shape, *size) == (*run, &one.operation, &shape, nbytes)
        };
        match merged.iter_mut().find(is_same) {
            Some((_, kept, _)) => kept.points.push(across_teams),
            None => {
                let points = vec![across_teams];
                merged.push((
                    *run,
                    Series {
                        shape,
                        points,
                        ..(*one).clone()
                    },
                    nbytes,
                ));
            }
        }
    }
    merged
        .iter_mut()
        .for_each(|(_, s, _)| s.points.sort_by_key(|point| point.nbytes));
    merged
}

/// Returns the histogram of each timed operation at one size, and the legend if there are several
/// runs. Collectives are those of the largest team.
fn distributions(runs: &[NamedRun]) -> Vec<Part> {
    let (mut charts, mut seen) = (Vec::new(), BTreeSet::new());
    for measure in [Measure::Latency, Measure::Collective, Measure::Event] {
        let is_timed =
            |(_, s): &(usize, &Series)| !s.is_floor && s.points.iter().any(has_histogram);
        let mut series = series_of(measure, runs);
        series.retain(is_timed);
        let largest = series
            .iter()
            .filter_map(|(_, series)| series.shape.team_size)
            .max();
        series.retain(|(_, s)| s.shape.team_size == largest || s.shape.team_size.is_none());
        let (names, _) = name_series(&series);
        for (group, _) in grouped(&names, 1) {
            let Some(nbytes) = common_size(&group) else {
                continue;
            };
            let histograms: Vec<(usize, &[(f64, u64)])> = group
                .iter()
                .filter_map(|one| histogram_of(one, nbytes))
                .collect();
            seen.extend(histograms.iter().map(|(run, _)| *run));
            let at = if nbytes > 0 {
                format!(", {} bytes", units::size(nbytes))
            } else {
                String::new()
            };
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
            text: run_name(runs, run),
        };
        body.push(Part::Text(legend_markup(
            &seen.into_iter().map(entry).collect::<Vec<_>>(),
        )));
    }
    body.push(Part::SmallFigures(charts));
    body
}

fn has_histogram(point: &Point) -> bool {
    !point.histogram.is_empty()
}

/// Returns the run of a series, and its histogram at a size.
fn histogram_of<'a>(one: &NamedSeries<'a>, nbytes: u64) -> Option<(usize, &'a [(f64, u64)])> {
    let point = one
        .series
        .points
        .iter()
        .find(|p| p.nbytes == nbytes && has_histogram(p));
    point.map(|point| (one.run, point.histogram.as_slice()))
}

/// Returns the size at which the runs of an operation are shown: 8 bytes, which is common in
/// programs, if all runs have it, or else the smallest that all have, or else any.
fn common_size(group: &[NamedSeries]) -> Option<u64> {
    let points = || group.first().into_iter().flat_map(|one| &one.series.points);
    let sizes = points()
        .filter(|point| has_histogram(point))
        .map(|point| point.nbytes);
    let in_all = |nbytes: &u64| group.iter().all(|it| histogram_of(it, *nbytes).is_some());
    std::iter::once(8)
        .chain(sizes.clone())
        .find(in_all)
        .or(sizes.clone().next())
}

/// Returns a table of all figures of some series, each of which is given with the index of its run.
fn figures_table(series: &[(usize, &Series)], has_sizes: bool, runs: &[NamedRun]) -> Markup {
    let names = names(&series.iter().map(|(_, series)| *series).collect::<Vec<_>>());
    let mut head = vec!["operation"];
    head.extend((runs.len() > 1).then_some("run"));
    head.extend(has_sizes.then_some("bytes"));
    let n_words = head.len();
    head.extend([
        "median",
        "95 % interval",
        "mean",
        "min",
        "90 %",
        "99 %",
        "99.9 %",
        "max",
        "n",
    ]);
    let has_members =
        |(_, series): &(usize, &Series)| series.points.iter().any(|p| p.by_pe.is_some());
    let has_members = series.iter().any(has_members);
    head.extend(has_members.then_some("PE min, mean, max"));
    head.push("ended");
    let mut rows = Vec::new();
    for ((run, series), name) in series.iter().zip(&names.names) {
        for point in &series.points {
            let summary = &point.summary;
            let figure = |value: f64| units::figure(series.measure, value);
            let mut row = vec![name.clone()];
            row.extend((runs.len() > 1).then(|| short_run_name(runs, *run)));
            row.extend(has_sizes.then(|| units::size(point.nbytes)));
            let known = |value: Option<f64>| value.map_or("-".into(), figure);
            let between = |(low, high)| format!("{} to {}", figure(low), figure(high));
            let is_invalid = is_invalid(&runs[*run].record.series, series, point);
            let invalid = if is_invalid { " (invalid)" } else { "" };
            row.push(format!("{}{invalid}", figure(summary.p50)));
            row.push(summary.interval.map_or("-".into(), between));
            row.extend([summary.mean, summary.min, summary.p90].map(figure));
            let p99 = Some(summary.p99).filter(|_| summary.n >= FEWEST_OF_P99);
            row.extend([p99, summary.p999, Some(summary.max)].map(known));
            row.push(summary.n.to_string());
            let members = |(least, mean, most)| [least, mean, most].map(figure).join(", ");
            row.extend(has_members.then(|| point.by_pe.map_or(String::new(), members)));
            row.push(match summary.ended {
                Ended::Narrow => "known to 2 %".into(),
                Ended::TimeUp => "time up".into(),
                Ended::Counted => "iterations".into(),
                Ended::Once => "once".into(),
            });
            rows.push(row);
        }
    }
    let numbers = n_words - usize::from(has_sizes);
    table(
        &head.into_iter().map(String::from).collect::<Vec<_>>(),
        &rows,
        numbers,
    )
}
