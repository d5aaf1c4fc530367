//! The sections of a report, and the charts of each: the series of all runs by measure and by kind
//! of operation.

use super::by_size::by_size;
use super::by_team::by_team;
use super::chart::XAxis;
use super::curves::all;
use super::distributions::distributions;
use super::figure::Figure;
use super::figure::kinds;
use super::figure::{Part, ReportSection};
use super::header::folded;
use super::heat;
use super::source::{NamedRun, called};
use super::table::figures;
use crate::operation::{bounds, kind_of};
use crate::record::{Measure, Series};
use crate::units;

/// Returns the sections that have something to show.
pub fn sections(runs: &[NamedRun]) -> Vec<ReportSection> {
    let both = [Measure::Bandwidth, Measure::BidirectionalBandwidth];
    let mut sections = vec![
        of("latency", &[Measure::Latency], runs),
        of("bandwidth", &both, runs),
        of("rate", &[Measure::MessageRate], runs),
        of("overlap", &[Measure::Overlap], runs),
        of("collectives", &[Measure::Collective], runs),
        of("events", &[Measure::Event], runs),
        ReportSection { id: "maps", title: "PE by PE", body: maps(runs) },
        ReportSection { id: "distributions", title: "Distributions", body: distributions(runs) },
    ];
    sections.retain(|section| !section.body.is_empty());
    sections
}

/// Returns the charts of some measures, and the tables of their figures.
fn of(id: &'static str, measures: &[Measure], runs: &[NamedRun]) -> ReportSection {
    let (mut all_charts, mut tables) = (Vec::new(), Vec::new());
    for &measure in measures {
        let series = all(measure, runs);
        if !series.is_empty() {
            let across = (measure != Measure::Event).then_some(XAxis::Bytes);
            all_charts.extend(charts(measure, &series, runs));
            let title = format!("Numbers of {}", units::name(measure).to_lowercase());
            tables.push(Part::Text(folded(&title, &figures(&series, across, runs))));
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
    ReportSection { id, title: units::name(measures[0]), body }
}

fn charts(measure: Measure, series: &[(usize, &Series)], runs: &[NamedRun]) -> Vec<Figure> {
    let mut charts = Vec::new();
    let (floors, own): (Vec<_>, Vec<_>) = series.iter().partition(|(_, series)| series.is_floor);
    for (kind, operations) in kinds(&own) {
        let of_kind: Vec<_> =
            own.iter().filter(|(_, series)| kind_of(&series.operation) == kind).copied().collect();
        let largest = of_kind.iter().filter_map(|(_, series)| series.shape.team_size).max();
        let is_shown = |series: &Series| series.shape.team_size == largest;
        let shown: Vec<_> =
            of_kind.iter().filter(|(_, series)| is_shown(series)).copied().collect();
        let is_bound = |floor: &Series| operations.iter().any(|of| bounds(&floor.operation, of));
        let floors: Vec<_> = floors.iter().filter(|(_, floor)| is_bound(floor)).copied().collect();
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
            let title =
                format!("{}, {} bytes: {name}", matrix.operation, units::size(matrix.nbytes));
            let run = if runs.len() > 1 { called(runs, i) } else { String::new() };
            let figure = Figure::new(title, run, drawing, Vec::new());
            maps.push(Figure { found: Some(sentences), ..figure });
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
