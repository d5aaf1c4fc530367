//! Charts of a measure by size: curves of what has several sizes, rows of what has one.

use super::chart::{self, Across, Trace};
use super::curves::{Named, coloured, curve, grouped, legend, named, noted};
use super::figure::Figure;
use super::kinds::titled;
use super::rows;
use super::source::Source;
use super::style::N_COLOURS;
use crate::record::{Measure, Series};
use crate::units;

/// Rows of a chart of single sizes.
const MOST_ROWS: usize = 14;

fn n_sizes(series: &Series) -> usize {
    series.points.len()
}

/// The charts of operations of one kind, with the floors beside them.
pub fn by_size(
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
        // Rows for all, also those that have a curve.
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
        let mut drawn = coloured(&group, operations, runs);
        let legend = legend(&drawn, !floor_curves.is_empty(), runs);
        drawn.extend(floor_curves.iter().map(|floor| curve(floor, None, runs)));
        let svg = chart::draw(measure, Across::Bytes, &drawn, runs.len());
        let by = if measure == Measure::Collective { " by size" } else { "" };
        charts.push(Figure::new(
            &titled(measure, kind, &format!("{by}{part}")),
            &noted(&common, &drawn),
            svg,
            legend,
        ));
    }
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
        let drawn: Vec<Trace> = group.iter().map(|one| curve(one, colour(one), runs)).collect();
        let svg = rows::draw(measure, &drawn, runs.len());
        let title = titled(measure, kind, &format!("{at}{part}"));
        charts.push(Figure::new(&title, &noted(&common, &drawn), svg, Vec::new()));
    }
    charts
}
