//! Charts of a measure by size: curves of what has several sizes, rows of what has one.

use super::chart::{self, XAxis};
use super::curves::{Named, colored, curve, grouped, legend, named, noted};
use super::figure::Figure;
use super::figure::titled;
use super::rows;
use super::source::NamedRun;
use super::trace::Trace;
use crate::record::{Measure, Series};
use crate::units;
use charts::palette::SERIES;

/// Rows of a chart of single sizes.
const MOST_ROWS: usize = 14;

/// Returns the charts of operations of one kind, with the floors beside them.
pub fn by_size(
    measure: Measure,
    kind: &str,
    operations: &[String],
    series: &[(usize, &Series)],
    floors: &[(usize, &Series)],
    runs: &[NamedRun],
) -> Vec<Figure> {
    let (names, common) = named(series);
    let is_curve = |one: &&Named| one.series.points.len() > 1;
    let is_row = |one: &&Named| one.series.points.len() == 1;
    let curves: Vec<Named> = names.iter().filter(is_curve).cloned().collect();
    let mut single: Vec<Named> = match measure {
        // All have a row, also those that have a curve.
        Measure::MessageRate => names,
        _ => names.iter().filter(is_row).cloned().collect(),
    };
    let (floor_names, _) = named(floors);
    let floor_curves: Vec<Named> = floor_names.iter().filter(is_curve).cloned().collect();
    if !single.is_empty() || series.is_empty() {
        single.extend(floor_names.iter().filter(is_row).cloned());
    }
    let mut charts = Vec::new();
    let mut groups = grouped(&curves, SERIES.len());
    if groups.is_empty() && series.is_empty() && !floor_curves.is_empty() {
        groups.push((Vec::new(), String::new()));
    }
    for (group, part) in groups {
        let mut drawn = colored(&group, operations, runs);
        let legend = legend(&drawn, !floor_curves.is_empty(), runs);
        drawn.extend(floor_curves.iter().map(|floor| curve(floor, None, runs)));
        let drawing = chart::draw(measure, XAxis::Bytes, &drawn, runs.len());
        let by = if measure == Measure::Collective { " by size" } else { "" };
        let title = titled(measure, kind, &format!("{by}{part}"));
        charts.push(Figure::new(title, noted(&common, &drawn), drawing, legend));
    }
    for (mut group, part) in grouped(&single, MOST_ROWS) {
        let size = |one: &Named| one.series.points.first().map_or(0, |point| point.nbytes);
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
        let color = |one: &Named| (!one.series.is_floor).then_some(0);
        let drawn: Vec<Trace> = group.iter().map(|one| curve(one, color(one), runs)).collect();
        let drawing = rows::draw(measure, &drawn, runs.len());
        let title = titled(measure, kind, &format!("{at}{part}"));
        charts.push(Figure::new(title, noted(&common, &drawn), drawing, Vec::new()));
    }
    charts
}
