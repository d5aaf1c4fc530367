//! The sections of a report. They show the series of all runs as charts and tables, by measure and
//! by kind of operation, then maps and distributions.

use std::collections::BTreeSet;

use maud::Markup;

use super::chart::{self, XAxis};
use super::curves::{
    NamedSeries, RunSeries, SeriesGroup, SeriesNames, color_curves, curve, grouped, legend,
    name_series, note_on, series_of,
};
use super::figure::{Figure, Part, ReportSection, chart_title, kinds, legend_markup, table};
use super::header::folded;
use super::histogram::{self, RunHistogram};
use super::source::{NamedRun, run_name, short_run_name};
use super::style::{Entry, dashes};
use super::{heat, rows};
use crate::operation::{bounds, is_invalid, kind_of};
use crate::record::{Ended, Interval, Measure, MemberTimes, Point, Series, Shape, ValueCount};
use crate::statistics::FEWEST_OF_P99;
use crate::units;
use charts::palette::SERIES;

/// Returns the sections that have something to show.
pub fn sections(runs: &[NamedRun]) -> Vec<ReportSection> {
    let bandwidths = [Measure::Bandwidth, Measure::BidirectionalBandwidth];
    let mut sections = vec![
        section("latency", &[Measure::Latency], runs),
        section("bandwidth", &bandwidths, runs),
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

fn charts(measure: Measure, series: &[RunSeries], runs: &[NamedRun]) -> Vec<Figure> {
    let (floors, own): (Vec<RunSeries>, Vec<RunSeries>) =
        series.iter().partition(|one| one.series.is_floor);

    let mut charts = Vec::new();
    for kind in kinds(&own) {
        let mut of_kind = own.clone();
        of_kind.retain(|one| kind_of(&one.series.operation) == kind.name);

        // By size, collectives are those of the largest team.
        let largest = largest_team(&of_kind);
        let mut shown = of_kind.clone();
        shown.retain(|one| one.series.shape.team_size == largest);

        let mut floors = floors.clone();
        floors.retain(|floor| {
            let mut operations = kind.operations.iter();
            operations.any(|operation| bounds(&floor.series.operation, operation))
        });

        let chart = SizeCharts {
            measure,
            kind: kind.name,
            operations: &kind.operations,
            runs,
        };
        charts.extend(chart.draw(&shown, &floors));
        if largest.is_some() {
            charts.extend(by_team(measure, &kind.operations, &of_kind, runs));
        }
    }

    // Without operations, the floors are all that there is to show.
    if own.is_empty() {
        let chart = SizeCharts {
            measure,
            kind: "",
            operations: &[],
            runs,
        };
        charts.extend(chart.draw(&[], &floors));
    }
    charts
}

/// Returns the size of the largest team; `None` if no series is that of a collective.
fn largest_team(series: &[RunSeries]) -> Option<u32> {
    series
        .iter()
        .filter_map(|one| one.series.shape.team_size)
        .max()
}

fn maps(runs: &[NamedRun]) -> Vec<Part> {
    let mut maps = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for matrix in &run.record.matrices {
            let title = format!(
                "{}, {} bytes: {}",
                matrix.operation,
                units::size(matrix.nbytes),
                units::name(matrix.measure).to_lowercase()
            );
            let note = if runs.len() > 1 {
                run_name(runs, i)
            } else {
                String::new()
            };

            let map = heat::draw(matrix, &run.record.job);
            maps.push(Figure {
                title,
                note,
                drawing: map.drawing,
                legend: Vec::new(),
                found: Some(map.sentences),
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

/// The charts of operations of one kind by size, with their floors.
struct SizeCharts<'a> {
    measure: Measure,
    kind: &'a str,
    operations: &'a [String],
    runs: &'a [NamedRun],
}

impl SizeCharts<'_> {
    /// Draws series with several sizes as curves, those with one size as rows, and message rates
    /// with several sizes as both.
    fn draw(&self, series: &[RunSeries], floors: &[RunSeries]) -> Vec<Figure> {
        let SeriesNames { series, common } = name_series(series);
        let floors = name_series(floors).series;
        let has_curve = |one: &NamedSeries| one.series.points.len() > 1;
        let has_one_size = |one: &NamedSeries| one.series.points.len() == 1;

        let mut curves = series.clone();
        curves.retain(has_curve);
        let mut floor_curves = floors.clone();
        floor_curves.retain(has_curve);
        let mut groups = grouped(&curves, SERIES.len());
        if groups.is_empty() && series.is_empty() && !floor_curves.is_empty() {
            // A chart of floors alone.
            groups.push(SeriesGroup {
                series: Vec::new(),
                title_end: String::new(),
            });
        }
        let mut charts = Vec::new();
        for group in groups {
            charts.push(self.curves_chart(&group, &floor_curves, &common));
        }

        let has_operations = !series.is_empty();
        let mut rows = series;
        // Of message rates all series have a row, also those that have a curve.
        if self.measure != Measure::MessageRate {
            rows.retain(has_one_size);
        }
        if !rows.is_empty() || !has_operations {
            rows.extend(floors.into_iter().filter(has_one_size));
        }
        for group in grouped(&rows, MOST_ROWS) {
            charts.push(self.rows_chart(group, &common));
        }
        charts
    }

    fn curves_chart(&self, group: &SeriesGroup, floors: &[NamedSeries], common: &str) -> Figure {
        let mut curves = color_curves(&group.series, self.operations, self.runs);
        let legend = legend(&curves, !floors.is_empty(), self.runs);
        for floor in floors {
            curves.push(curve(floor, None, self.runs));
        }

        // Collectives also have charts by team.
        let by = if self.measure == Measure::Collective {
            " by size"
        } else {
            ""
        };
        let title_end = format!("{by}{}", group.title_end);
        let title = chart_title(self.measure, self.kind, &title_end);
        let drawing = chart::draw(self.measure, XAxis::Bytes, &curves, self.runs.len());
        Figure::new(title, note_on(common, &curves), drawing, legend)
    }

    /// Returns a chart of rows: each series has one, at its smallest number of bytes.
    fn rows_chart(&self, mut group: SeriesGroup, common: &str) -> Figure {
        let size = |one: &NamedSeries| one.series.points.first().map_or(0, |point| point.nbytes);
        let first = group.series.first().map_or(0, size);
        let are_same = group.series.iter().all(|one| size(one) == first);

        // The size is in the title, or else in each name.
        let mut common_size = String::new();
        if !are_same {
            for one in &mut group.series {
                one.name = format!("{}, {} bytes", one.name, units::size(size(one)));
            }
        } else if first > 0 {
            common_size = format!(" at {} bytes", units::size(first));
        } else if self.measure == Measure::Collective {
            common_size = " without data".into();
        }

        let mut rows = Vec::new();
        for one in &group.series {
            let color = if one.series.is_floor { None } else { Some(0) };
            rows.push(curve(one, color, self.runs));
        }

        let title_end = format!("{common_size}{}", group.title_end);
        let title = chart_title(self.measure, self.kind, &title_end);
        let drawing = rows::draw(self.measure, &rows, self.runs.len());
        Figure::new(title, note_on(common, &rows), drawing, Vec::new())
    }
}

/// Returns the charts of collectives by the size of the team, at their smallest and at their
/// largest number of bytes.
fn by_team(
    measure: Measure,
    operations: &[String],
    series: &[RunSeries],
    runs: &[NamedRun],
) -> Vec<Figure> {
    let mut charts = Vec::new();
    for (is_largest, which) in [(false, "smallest"), (true, "largest")] {
        // With one size, the second chart would be the first one.
        if is_largest && series.iter().all(|one| one.series.points.len() < 2) {
            continue;
        }

        let merged = merge_teams(series, is_largest);
        // A curve needs teams of at least two sizes.
        if merged.iter().all(|teams| teams.series.points.len() < 2) {
            continue;
        }

        let mut all = Vec::new();
        for teams in &merged {
            all.push(RunSeries {
                run: teams.run,
                series: &teams.series,
            });
        }
        let mut names = name_series(&all);
        for (named, teams) in names.series.iter_mut().zip(&merged) {
            if teams.nbytes > 0 {
                named.name += &format!(", {} bytes", units::size(teams.nbytes));
            }
        }

        for group in grouped(&names.series, SERIES.len()) {
            let curves = color_curves(&group.series, operations, runs);
            let title_end = format!(" by team, {which} size{}", group.title_end);
            let title = chart_title(measure, "", &title_end);
            let note = note_on(&names.common, &curves);
            let drawing = chart::draw(measure, XAxis::Team, &curves, runs.len());
            let legend = legend(&curves, false, runs);
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
fn merge_teams(series: &[RunSeries], is_largest: bool) -> Vec<TeamSeries> {
    let mut merged: Vec<TeamSeries> = Vec::new();
    for &RunSeries { run, series: one } in series {
        let point = if is_largest {
            // What moves no data has no largest size.
            one.points.iter().rfind(|point| point.nbytes > 0)
        } else {
            one.points.first()
        };
        let Some(point) = point else { continue };
        let Some(team_size) = one.shape.team_size else {
            continue;
        };

        let nbytes = point.nbytes;
        let across_teams = Point {
            nbytes: u64::from(team_size),
            ..point.clone()
        };
        let shape = Shape {
            team_size: None,
            ..one.shape.clone()
        };
        let same = merged.iter_mut().find(|teams| {
            teams.run == run
                && teams.nbytes == nbytes
                && teams.series.operation == one.operation
                && teams.series.shape == shape
        });
        match same {
            Some(teams) => teams.series.points.push(across_teams),
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

    for teams in &mut merged {
        teams.series.points.sort_by_key(|point| point.nbytes);
    }
    merged
}

/// Returns the histogram of each timed operation at one size, and the legend if there are several
/// runs. Collectives are those of the largest team.
fn distributions(runs: &[NamedRun]) -> Vec<Part> {
    let mut charts = Vec::new();
    let mut seen = BTreeSet::new();
    for measure in [Measure::Latency, Measure::Collective, Measure::Event] {
        let series = series_with_histograms(measure, runs);
        // Each operation has a chart of its own, with all runs.
        let names = name_series(&series);
        for group in grouped(&names.series, 1) {
            let group = group.series;
            let Some(nbytes) = common_size(&group) else {
                continue;
            };

            let mut histograms = Vec::new();
            for one in &group {
                if let Some(counts) = histogram_of(one, nbytes) {
                    seen.insert(one.run);
                    let run = one.run;
                    histograms.push(RunHistogram { run, counts });
                }
            }

            let mut title = group[0].name.clone();
            if nbytes > 0 {
                title += &format!(", {} bytes", units::size(nbytes));
            }
            let drawing = histogram::draw(measure, &histograms, runs.len());
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
        let mut entries = Vec::new();
        for run in seen {
            entries.push(Entry {
                color: SERIES[run % SERIES.len()],
                dashes: dashes(run),
                run: None,
                text: run_name(runs, run),
            });
        }
        body.push(Part::Text(legend_markup(&entries)));
    }

    body.push(Part::SmallFigures(charts));
    body
}

/// Returns the series of a measure that have histograms, of collectives only those of the largest
/// team.
fn series_with_histograms(measure: Measure, runs: &[NamedRun]) -> Vec<RunSeries<'_>> {
    let mut series = series_of(measure, runs);
    series.retain(|one| {
        let mut points = one.series.points.iter();
        !one.series.is_floor && points.any(|point| !point.histogram.is_empty())
    });
    let largest = largest_team(&series);
    series.retain(|one| {
        let team_size = one.series.shape.team_size;
        team_size == largest || team_size.is_none()
    });
    series
}

/// Returns the histogram of a series at a size; `None` if it has none there.
fn histogram_of<'a>(one: &NamedSeries<'a>, nbytes: u64) -> Option<&'a [ValueCount]> {
    let mut points = one.series.points.iter();
    let point = points.find(|point| point.nbytes == nbytes && !point.histogram.is_empty())?;
    Some(&point.histogram)
}

/// Returns the size at which the runs of an operation are shown: 8 bytes, which is common in
/// programs, if all runs have it, or else the smallest that all have, or else any.
fn common_size(group: &[NamedSeries]) -> Option<u64> {
    let mut sizes = Vec::new();
    for point in &group.first()?.series.points {
        if !point.histogram.is_empty() {
            sizes.push(point.nbytes);
        }
    }

    let all_have = |nbytes| group.iter().all(|one| histogram_of(one, nbytes).is_some());
    if all_have(8) {
        return Some(8);
    }
    let of_all = sizes.iter().find(|nbytes| all_have(**nbytes));
    of_all.or(sizes.first()).copied()
}

/// Returns a table of all figures of some series.
fn figures_table(series: &[RunSeries], has_sizes: bool, runs: &[NamedRun]) -> Markup {
    let has_runs = runs.len() > 1;
    let has_members = series
        .iter()
        .any(|one| one.series.points.iter().any(|point| point.by_pe.is_some()));

    let mut head = vec!["operation"];
    if has_runs {
        head.push("run");
    }
    // The numbers, which are aligned at the right, begin with the sizes.
    let numbers = head.len();
    if has_sizes {
        head.push("bytes");
    }
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
    if has_members {
        head.push("PE min, mean, max");
    }
    head.push("ended");

    let mut rows = Vec::new();
    for one in name_series(series).series {
        for point in &one.series.points {
            let mut row = vec![one.name.clone()];
            if has_runs {
                row.push(short_run_name(runs, one.run));
            }
            if has_sizes {
                row.push(units::size(point.nbytes));
            }
            row.extend(figures(&one, point, runs));
            row.push(point.summary.n.to_string());
            if has_members {
                row.push(members(one.series.measure, point));
            }
            row.push(match point.summary.ended {
                Ended::Narrow => "known to 2 %".into(),
                Ended::TimeUp => "time up".into(),
                Ended::Counted => "iterations".into(),
                Ended::Once => "once".into(),
            });
            rows.push(row);
        }
    }

    let head: Vec<String> = head.into_iter().map(String::from).collect();
    table(&head, &rows, numbers)
}

/// Returns the cells of a point from its median to its maximum; `-` for what too few values do not
/// tell.
fn figures(one: &NamedSeries, point: &Point, runs: &[NamedRun]) -> [String; 8] {
    let summary = &point.summary;
    let figure = |value: f64| units::figure(one.series.measure, value);
    let known = |value: Option<f64>| value.map_or("-".into(), figure);

    let is_invalid = is_invalid(&runs[one.run].record.series, one.series, point);
    let invalid = if is_invalid { " (invalid)" } else { "" };
    let interval = match summary.interval {
        Some(Interval { low, high }) => format!("{} to {}", figure(low), figure(high)),
        None => "-".into(),
    };
    let p99 = if summary.n >= FEWEST_OF_P99 {
        Some(summary.p99)
    } else {
        None
    };

    [
        format!("{}{invalid}", figure(summary.p50)),
        interval,
        figure(summary.mean),
        figure(summary.min),
        figure(summary.p90),
        known(p99),
        known(summary.p999),
        figure(summary.max),
    ]
}

/// Returns the times of the members of a collective; an empty text for another operation.
fn members(measure: Measure, point: &Point) -> String {
    match point.by_pe {
        Some(MemberTimes { min, mean, max }) => {
            let figures = [min, mean, max].map(|value| units::figure(measure, value));
            figures.join(", ")
        }
        None => String::new(),
    }
}
