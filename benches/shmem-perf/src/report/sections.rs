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
    let mut all_charts = Vec::new();
    let mut tables = Vec::new();
    for &measure in measures {
        let series = series_of(measure, runs);
        if series.is_empty() {
            continue;
        }
        all_charts.extend(charts(measure, &series, runs));

        let title = format!("Numbers of {}", units::name(measure).to_lowercase());
        let has_sizes = measure != Measure::Event;
        let figures = figures_table(&series, has_sizes, runs);
        tables.push(Part::Text(folded(&title, &figures)));
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
    let mut floors = series.to_vec();
    floors.retain(|(_, series)| series.is_floor);
    let mut own = series.to_vec();
    own.retain(|(_, series)| !series.is_floor);

    for (kind, operations) in kinds(&own) {
        let mut of_kind = own.clone();
        of_kind.retain(|(_, series)| kind_of(&series.operation) == kind);

        // By size, collectives are those of the largest team.
        let largest = of_kind
            .iter()
            .filter_map(|(_, series)| series.shape.team_size)
            .max();
        let mut shown = of_kind.clone();
        shown.retain(|(_, series)| series.shape.team_size == largest);

        let mut floors = floors.clone();
        floors.retain(|(_, floor)| operations.iter().any(|one| bounds(&floor.operation, one)));
        charts.extend(by_size(measure, kind, &operations, &shown, &floors, runs));
        if largest.is_some() {
            charts.extend(by_team(measure, &operations, &of_kind, runs));
        }
    }

    // Without operations, the floors are all that there is to show.
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
    let (floor_names, _) = name_series(floors);
    let is_curve = |one: &NamedSeries| one.series.points.len() > 1;
    let is_row = |one: &NamedSeries| one.series.points.len() == 1;

    let mut curves = names.clone();
    curves.retain(is_curve);
    let mut floor_curves = floor_names.clone();
    floor_curves.retain(is_curve);
    let mut groups = grouped(&curves, SERIES.len());
    if groups.is_empty() && series.is_empty() && !floor_curves.is_empty() {
        // A chart of floors alone.
        groups.push((Vec::new(), String::new()));
    }
    let mut charts = Vec::new();
    for (group, part) in groups {
        let mut drawn = color_curves(&group, operations, runs);
        let legend = legend(&drawn, !floor_curves.is_empty(), runs);
        drawn.extend(floor_curves.iter().map(|floor| curve(floor, None, runs)));

        let by = if measure == Measure::Collective {
            " by size"
        } else {
            ""
        };
        let title = chart_title(measure, kind, &format!("{by}{part}"));
        let drawing = chart::draw(measure, XAxis::Bytes, &drawn, runs.len());
        let note = note_on(&common, &drawn);
        charts.push(Figure::new(title, note, drawing, legend));
    }

    let mut single = names;
    // Of message rates all series have a row, also those that have a curve.
    if measure != Measure::MessageRate {
        single.retain(is_row);
    }
    if !single.is_empty() || series.is_empty() {
        single.extend(floor_names.into_iter().filter(is_row));
    }
    for (group, part) in grouped(&single, MOST_ROWS) {
        charts.push(rows_chart(measure, kind, &common, group, &part, runs));
    }
    charts
}

/// Returns a chart of rows: each series has one, at its smallest number of bytes. `common` is what
/// all series of the chart have in common, `part` the end of its title.
fn rows_chart(
    measure: Measure,
    kind: &str,
    common: &str,
    mut group: Vec<NamedSeries>,
    part: &str,
    runs: &[NamedRun],
) -> Figure {
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

    let drawn: Vec<Trace> = group
        .iter()
        .map(|one| {
            let color = if one.series.is_floor { None } else { Some(0) };
            curve(one, color, runs)
        })
        .collect();
    let title = chart_title(measure, kind, &format!("{at}{part}"));
    let drawing = rows::draw(measure, &drawn, runs.len());
    Figure::new(title, note_on(common, &drawn), drawing, Vec::new())
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
        if merged.iter().all(|of| of.series.points.len() < 2) {
            continue;
        }

        let all: Vec<(usize, &Series)> = merged.iter().map(|of| (of.run, &of.series)).collect();
        let (mut names, common) = name_series(&all);
        for (one, of) in names.iter_mut().zip(&merged) {
            if of.nbytes > 0 {
                one.name += &format!(", {} bytes", units::size(of.nbytes));
            }
        }

        for (group, part) in grouped(&names, SERIES.len()) {
            let drawn = color_curves(&group, operations, runs);
            let title = chart_title(measure, "", &format!(" by team, {which} size{part}"));
            let drawing = chart::draw(measure, XAxis::Team, &drawn, runs.len());
            let legend = legend(&drawn, false, runs);
            let note = note_on(&common, &drawn);
            charts.push(Figure::new(title, note, drawing, legend));
        }
    }
    charts
}

/// Series of one run that differ only in the size of the team, at one number of bytes.
struct TeamSeries {
    run: usize,
    /// The points have the size of the team instead of the bytes.
    series: Series,
    nbytes: u64,
}

/// Merges series that differ only in the size of the team, each at its largest number of bytes, or
/// else at its smallest one.
fn merge_teams(series: &[(usize, &Series)], is_largest: bool) -> Vec<TeamSeries> {
    let mut merged: Vec<TeamSeries> = Vec::new();
    for &(run, one) in series {
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

        let nbytes = point.nbytes;
        let across_teams = Point {
            nbytes: u64::from(team),
            ..point.clone()
        };
        let shape = Shape {
            team_size: None,
            ..one.shape.clone()
        };
        let same = merged.iter_mut().find(|of| {
            let is_like = of.series.operation == one.operation && of.series.shape == shape;
            of.run == run && of.nbytes == nbytes && is_like
        });
        match same {
            Some(of) => of.series.points.push(across_teams),
            None => merged.push(TeamSeries {
                run,
                series: Series {
                    shape,
                    points: vec![across_teams],
                    ..one.clone()
                },
                nbytes,
            }),
        }
    }

    for of in &mut merged {
        of.series.points.sort_by_key(|point| point.nbytes);
    }
    merged
}

/// Returns the histogram of each timed operation at one size, and the legend if there are several
/// runs. Collectives are those of the largest team.
fn distributions(runs: &[NamedRun]) -> Vec<Part> {
    let mut charts = Vec::new();
    let mut seen = BTreeSet::new();
    for measure in [Measure::Latency, Measure::Collective, Measure::Event] {
        let mut series = series_of(measure, runs);
        series.retain(|(_, series)| !series.is_floor && series.points.iter().any(has_histogram));
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
        let entries: Vec<Entry> = seen
            .into_iter()
            .map(|run| Entry {
                color: SERIES[run % SERIES.len()],
                dashes: dashes(run),
                run: None,
                text: run_name(runs, run),
            })
            .collect();
        body.push(Part::Text(legend_markup(&entries)));
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
