//! Which charts a report has: the series of all runs, by measure and kind of operation, in charts of as many as can be told apart.

use std::collections::BTreeSet;

use super::chart::{self, Across, Spot, Trace};
use super::drawing::Drawing;
use super::figure::{Entry, Figure};
use super::header::folded;
use super::heat;
use super::histogram;
use super::markup::Element;
use super::rows::{self, Mark};
use super::source::{Source, called, called_shortly};
use super::style::{N_COLOURS, colours, dashes};
use super::table::figures;
use crate::naming::names;
use crate::record::{Measure, Point, Series, Shape, Summary};
use crate::units;

/// Rows of a chart of single sizes.
const MOST_ROWS: usize = 14;

/// A part of the page.
pub struct Section {
    /// What links to it.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its charts and tables.
    pub body: Vec<Part>,
}

/// A piece of a section.
pub enum Part {
    /// Words or a table.
    Text(Element),
    /// Figures beside each other.
    Figures(Vec<Figure>),
    /// The same of small ones.
    SmallFigures(Vec<Figure>),
}

impl Part {
    /// It as a part of the page.
    pub fn element(self) -> Element {
        let (classes, figures) = match self {
            Part::Text(text) => return text,
            Part::Figures(figures) => ("charts", figures),
            Part::SmallFigures(figures) => ("charts small", figures),
        };
        Element::new("div").class(classes).children(figures.into_iter().map(Figure::part))
    }

    /// The figures in it.
    pub fn figures(self) -> Vec<Figure> {
        match self {
            Part::Text(_) => Vec::new(),
            Part::Figures(figures) | Part::SmallFigures(figures) => figures,
        }
    }
}

/// A series with the place of its run and its name.
#[derive(Clone)]
struct Named<'a> {
    run: usize,
    series: &'a Series,
    name: String,
}

/// The sections that have something to show.
pub fn sections(runs: &[Source]) -> Vec<Section> {
    let both = [Measure::Bandwidth, Measure::BidirectionalBandwidth];
    let mut sections = vec![
        of("latency", &[Measure::Latency], runs),
        of("bandwidth", &both, runs),
        of("rate", &[Measure::MessageRate], runs),
        of("overlap", &[Measure::Overlap], runs),
        of("collectives", &[Measure::Collective], runs),
        of("events", &[Measure::Event], runs),
        Section { id: "maps", title: "PE by PE", body: maps(runs) },
        Section { id: "distributions", title: "Distributions", body: distributions(runs) },
    ];
    sections.retain(|section| !section.body.is_empty());
    sections
}

/// The charts of some measures, and the tables of their figures.
fn of(id: &'static str, measures: &[Measure], runs: &[Source]) -> Section {
    let (mut all_charts, mut tables) = (Vec::new(), Vec::new());
    for &measure in measures {
        let series = all(measure, runs);
        if !series.is_empty() {
            let across = (measure != Measure::Event).then_some(Across::Bytes);
            all_charts.extend(charts(measure, &series, runs));
            let title = format!("Numbers of {}", units::name(measure).to_lowercase());
            tables.push(folded(&title, figures(&series, across, runs)));
        }
    }
    let note = match measures[0] {
        Measure::MessageRate => {
            "Bars are medians at the smallest size. Lines are medians; bands reach over the medians of all batches."
        }
        Measure::Bandwidth | Measure::Overlap => {
            "Lines are medians; bands reach over the medians of all batches."
        }
        Measure::Event => {
            "Dots are medians; lines reach from the least to what 99 % are not above."
        }
        _ => {
            "Lines and dots are medians; bands and thin lines reach from the least to what 99 % are not above."
        }
    };
    let mut body = Vec::new();
    if !tables.is_empty() {
        body.push(Part::Text(Element::new("p").class("note").text(note)));
        body.push(Part::Figures(all_charts));
        body.extend(tables.into_iter().map(Part::Text));
    }
    Section { id, title: units::name(measures[0]), body }
}

/// The charts of a measure.
fn charts(measure: Measure, series: &[(usize, &Series)], runs: &[Source]) -> Vec<Figure> {
    let mut charts = Vec::new();
    let (floors, own): (Vec<_>, Vec<_>) = series.iter().partition(|(_, series)| series.is_floor);
    for (kind, operations) in kinds(&own) {
        let of_kind: Vec<_> =
            own.iter().filter(|(_, series)| kind_of(&series.operation) == kind).copied().collect();
        let largest = of_kind.iter().filter_map(|(_, series)| series.shape.team_size).max();
        let is_shown = |series: &Series| series.shape.team_size == largest;
        let shown: Vec<_> =
            of_kind.iter().filter(|(_, series)| is_shown(series)).copied().collect();
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

fn all(measure: Measure, runs: &[Source]) -> Vec<(usize, &Series)> {
    let of_run = |(i, run)| -> Vec<(usize, &Series)> {
        let run: &Source = run;
        run.record.series.iter().filter(|s| s.measure == measure).map(|s| (i, s)).collect()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// What is drawn together: of one measure, routines of a kind.
fn kind_of(operation: &str) -> &'static str {
    let routine = operation.trim_end_matches("_nbi");
    match routine {
        _ if operation.ends_with("round trip") => "round trips",
        "p" | "g" | "put" | "get" => "puts and gets",
        "add" | "inc" | "set" | "swap" | "compare_swap" | "and" | "or" | "xor" | "fetch" => {
            "atomics"
        }
        _ if routine.starts_with("fetch_") => "atomics",
        _ if ["wait", "signal", "test"].iter().any(|start| routine.starts_with(start)) => {
            "waits and signals"
        }
        _ if ["iput", "iget", "ibput", "ibget", "put_", "get_"]
            .iter()
            .any(|start| routine.starts_with(start)) =>
        {
            "other transfers"
        }
        _ => "",
    }
}

/// Kinds in the order of their first series, each with its operations.
fn kinds(series: &[(usize, &Series)]) -> Vec<(&'static str, Vec<String>)> {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for (_, series) in series {
        let kind = kind_of(&series.operation);
        let at = kinds.iter().position(|(other, _)| *other == kind).unwrap_or_else(|| {
            kinds.push((kind, Vec::new()));
            kinds.len() - 1
        });
        if !kinds[at].1.contains(&series.operation) {
            kinds[at].1.push(series.operation.clone());
        }
    }
    kinds
}

fn titled(measure: Measure, kind: &str, more: &str) -> String {
    let name = units::name(measure);
    let of = if kind.is_empty() { String::new() } else { format!(" of {kind}") };
    format!("{name}{of}{more}")
}

fn n_sizes(series: &Series) -> usize {
    series.points.len()
}

fn by_size(
    measure: Measure,
    kind: &str,
    operations: &[String],
    series: &[(usize, &Series)],
    floors: &[(usize, &Series)],
    runs: &[Source],
) -> Vec<Figure> {
    let (names, common) = named(series);
    let is_curve = |one: &&Named| n_sizes(one.series) > 1;
    let curves: Vec<Named> = names.iter().filter(is_curve).cloned().collect();
    let mut single: Vec<Named> = match measure {
        // Bars for all, also those that have a curve.
        Measure::MessageRate => names,
        _ => names.iter().filter(|one| n_sizes(one.series) == 1).cloned().collect(),
    };
    let (floor_names, _) = named(floors);
    let floor_curves: Vec<Named> = floor_names.iter().filter(is_curve).cloned().collect();
    let is_row = |one: &&Named| n_sizes(one.series) == 1;
    if !single.is_empty() || series.is_empty() {
        single.extend(floor_names.iter().filter(is_row).cloned());
    }
    let mut charts = Vec::new();
    let mut groups = grouped(&curves, N_COLOURS);
    if groups.is_empty() && series.is_empty() && !floor_curves.is_empty() {
        groups.push(Vec::new());
    }
    let n_groups = groups.len();
    for (i, group) in groups.into_iter().enumerate() {
        let part = if n_groups > 1 { format!(" ({} of {n_groups})", i + 1) } else { String::new() };
        let mut drawn = coloured(&group, operations);
        let legend = legend(&drawn, !floor_curves.is_empty(), runs);
        drawn.extend(floor_curves.iter().map(|floor| curve(floor, None)));
        let svg = chart::draw(measure, Across::Bytes, &drawn, runs.len());
        let by = if measure == Measure::Collective { " by size" } else { "" };
        charts.push(figure(&titled(measure, kind, &format!("{by}{part}")), &common, svg, legend));
    }
    let mark = if measure == Measure::MessageRate { Mark::Bar } else { Mark::Dot };
    let groups = grouped(&single, MOST_ROWS);
    let n_groups = groups.len();
    for (i, mut group) in groups.into_iter().enumerate() {
        let part = if n_groups > 1 { format!(" ({} of {n_groups})", i + 1) } else { String::new() };
        let sizes: Vec<u64> =
            group.iter().filter_map(|one| one.series.points.first()).map(|p| p.nbytes).collect();
        let size = sizes.first().copied().unwrap_or(0);
        let are_same = sizes.iter().all(|other| *other == size);
        if !are_same {
            for one in &mut group {
                let nbytes = one.series.points.first().map_or(0, |point| point.nbytes);
                one.name = format!("{}, {} bytes", one.name, units::size(nbytes));
            }
        }
        let at = match size {
            0 if measure == Measure::Collective => " without data".into(),
            0 => String::new(),
            _ if !are_same => String::new(),
            size => format!(" at {} bytes", units::size(size)),
        };
        let colour = |one: &Named| (!one.series.is_floor).then_some(0);
        let drawn: Vec<Trace> = group.iter().map(|one| curve(one, colour(one))).collect();
        let svg = rows::draw(measure, mark, &drawn, runs.len());
        let title = titled(measure, kind, &format!("{at}{part}"));
        charts.push(figure(&title, &common, svg, Vec::new()));
    }
    charts
}

/// Collectives by the size of the team, at their smallest and at their largest size.
fn by_team(
    measure: Measure,
    operations: &[String],
    series: &[(usize, &Series)],
    runs: &[Source],
) -> Vec<Figure> {
    let mut teams: Vec<u32> = series.iter().filter_map(|(_, s)| s.shape.team_size).collect();
    teams.sort_unstable();
    teams.dedup();
    if teams.len() < 2 {
        return Vec::new();
    }
    // Series that differ in nothing but the team are one curve.
    let merged = |is_largest: bool| -> Vec<(usize, Series, u64)> {
        let mut merged: Vec<(usize, Series, u64)> = Vec::new();
        for (run, one) in series {
            let mut points = one.points.iter().filter(|point| !is_largest || point.nbytes > 0);
            let point = if is_largest { points.next_back() } else { points.next() };
            let (Some(point), Some(team)) = (point, one.shape.team_size) else { continue };
            let shape = Shape { team_size: None, ..one.shape.clone() };
            let mut across_teams = point.clone();
            let nbytes = std::mem::replace(&mut across_teams.nbytes, u64::from(team));
            let is_same = |(other, kept, size): &&mut (usize, Series, u64)| {
                (*other, &kept.operation, &kept.shape, *size)
                    == (*run, &one.operation, &shape, nbytes)
            };
            match merged.iter_mut().find(is_same) {
                Some((_, kept, _)) => kept.points.push(across_teams),
                None => {
                    let points = vec![across_teams];
                    merged.push((*run, Series { shape, points, ..(*one).clone() }, nbytes));
                }
            }
        }
        merged.iter_mut().for_each(|(_, s, _)| s.points.sort_by_key(|point| point.nbytes));
        merged
    };
    let mut charts = Vec::new();
    for (is_largest, which) in [(false, "smallest"), (true, "largest")] {
        let merged = merged(is_largest);
        if is_largest && series.iter().all(|(_, s)| s.points.len() < 2) {
            continue;
        }
        let all: Vec<(usize, &Series)> = merged.iter().map(|(run, s, _)| (*run, s)).collect();
        let (mut names, common) = named(&all);
        for (one, (_, _, nbytes)) in names.iter_mut().zip(&merged) {
            if *nbytes > 0 {
                one.name += &format!(", {} bytes", units::size(*nbytes));
            }
        }
        let groups = grouped(&names, N_COLOURS);
        let n_groups = groups.len();
        for (i, group) in groups.into_iter().enumerate() {
            let part =
                if n_groups > 1 { format!(" ({} of {n_groups})", i + 1) } else { String::new() };
            let drawn = coloured(&group, operations);
            let svg = chart::draw(measure, Across::Team, &drawn, runs.len());
            let title = titled(measure, "", &format!(" by team, {which} size{part}"));
            charts.push(figure(&title, &common, svg, legend(&drawn, false, runs)));
        }
    }
    charts
}

fn named<'a>(series: &[(usize, &'a Series)]) -> (Vec<Named<'a>>, String) {
    let found = names(&series.iter().map(|(_, series)| *series).collect::<Vec<_>>());
    let named = series.iter().zip(found.names);
    (named.map(|((run, series), name)| Named { run: *run, series, name }).collect(), found.common)
}

/// Groups of at most so many names. The runs of a name stay together and follow each other.
fn grouped<'a>(all: &[Named<'a>], most: usize) -> Vec<Vec<Named<'a>>> {
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

fn coloured(group: &[Named], operations: &[String]) -> Vec<Trace> {
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
    group.iter().map(|one| curve(one, colour(one))).collect()
}

fn curve(one: &Named, colour: Option<usize>) -> Trace {
    let spot = |point: &Point| Spot {
        x: point.nbytes,
        value: point.summary.p50,
        spread: spread(one.series.measure, &point.summary),
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

/// A colour for each name, and a kind of line for each run.
fn legend(curves: &[Trace], has_floors: bool, runs: &[Source]) -> Vec<Entry> {
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

fn figure(title: &str, note: &str, drawing: Drawing, legend: Vec<Entry>) -> Figure {
    Figure { title: title.to_owned(), note: note.to_owned(), drawing, legend, found: None }
}

/// For each operation whose calls were timed singly, the histogram of its smallest size.
fn distributions(runs: &[Source]) -> Vec<Part> {
    let (mut charts, mut seen) = (Vec::new(), BTreeSet::new());
    for measure in [Measure::Latency, Measure::Collective, Measure::Event] {
        let series: Vec<_> = all(measure, runs)
            .into_iter()
            .filter(|(_, series)| {
                !series.is_floor && series.points.iter().any(|p| !p.histogram.is_empty())
            })
            .collect();
        let largest = series.iter().filter_map(|(_, series)| series.shape.team_size).max();
        let shown: Vec<_> = series
            .into_iter()
            .filter(|(_, series)| {
                series.shape.team_size == largest || series.shape.team_size.is_none()
            })
            .collect();
        let (names, _) = named(&shown);
        for group in grouped(&names, 1) {
            let Some(first) = group.first() else { continue };
            let point = |series: &Series, nbytes: u64| {
                let mut points = series.points.iter();
                points.position(|p| p.nbytes == nbytes && !p.histogram.is_empty())
            };
            let mut sizes = first.series.points.iter().map(|point| point.nbytes);
            // 8 bytes are what most programs send, and if all runs have them the histograms are comparable.
            let in_all =
                |nbytes: &u64| group.iter().all(|one| point(one.series, *nbytes).is_some());
            let nbytes = if in_all(&8) { Some(8) } else { sizes.find(in_all) };
            let nbytes = nbytes.or_else(|| {
                let first = first.series.points.iter().find(|point| !point.histogram.is_empty());
                first.map(|point| point.nbytes)
            });
            let Some(nbytes) = nbytes else { continue };
            let histograms: Vec<(usize, &[(f64, u64)])> = group
                .iter()
                .filter_map(|one| {
                    let place = point(one.series, nbytes)?;
                    Some((one.run, one.series.points[place].histogram.as_slice()))
                })
                .collect();
            seen.extend(histograms.iter().map(|(run, _)| *run));
            let at =
                if nbytes > 0 { format!(", {} bytes", units::size(nbytes)) } else { String::new() };
            let svg = histogram::draw(measure, &histograms, runs.len());
            charts.push(figure(&format!("{}{at}", first.name), "", svg, Vec::new()));
        }
    }
    if charts.is_empty() {
        return Vec::new();
    }
    let text = "The share of the operations by their time, both axes logarithmic, so that one in a thousand is still seen.";
    let mut body = vec![Part::Text(Element::new("p").class("note").text(text))];
    if runs.len() > 1 {
        let entry = |run| {
            let line = Element::new("path")
                .class(format!("line c{}", run % N_COLOURS))
                .with("stroke-dasharray", dashes(run))
                .with("d", "M1 7H31");
            let svg = Element::new("svg").class("swatch").with("viewBox", "0 0 32 14");
            let svg = svg.with("width", 32).with("height", 14).child(line);
            Element::new("span").child(svg).text(called(runs, run))
        };
        let legend = Element::new("div").class("legend");
        body.push(Part::Text(legend.children(seen.into_iter().map(entry))));
    }
    body.push(Part::SmallFigures(charts));
    body
}

fn maps(runs: &[Source]) -> Vec<Part> {
    let mut maps = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for matrix in &run.record.matrices {
            let (svg, sentences) = heat::draw(matrix, &run.record.job);
            let name = units::name(matrix.measure).to_lowercase();
            let title =
                format!("{}, {} bytes: {name}", matrix.operation, units::size(matrix.nbytes));
            let whose = if runs.len() > 1 { called(runs, i) } else { String::new() };
            let figure = figure(&title, &whose, svg, Vec::new());
            maps.push(Figure { found: Some(sentences), ..figure });
        }
    }
    if maps.is_empty() {
        return Vec::new();
    }
    let text = "Rows are the PE that issues, columns its target; lines divide nodes. Dark is a small value. Red marks what is far slower than pairs of its kind.";
    vec![Part::Text(Element::new("p").class("note").text(text)), Part::Figures(maps)]
}
