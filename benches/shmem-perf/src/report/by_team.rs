//! Charts of collectives by the number of members.

use super::chart::{self, XAxis};
use super::curves::{colored, grouped, legend, named, noted};
use super::figure::Figure;
use super::figure::titled;
use super::source::NamedRun;
use crate::record::{Measure, Series, Shape};
use crate::units;
use charts::palette::SERIES;

/// Collectives by the size of the team, at their smallest and at their largest size.
pub fn by_team(
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
        let merged = merged(series, is_largest);
        // One team is no curve.
        if merged.iter().all(|(_, one, _)| one.points.len() < 2) {
            continue;
        }
        let all: Vec<(usize, &Series)> = merged.iter().map(|(run, s, _)| (*run, s)).collect();
        let (mut names, common) = named(&all);
        for (one, (_, _, nbytes)) in names.iter_mut().zip(&merged) {
            if *nbytes > 0 {
                one.name += &format!(", {} bytes", units::size(*nbytes));
            }
        }
        for (group, part) in grouped(&names, SERIES.len()) {
            let drawn = colored(&group, operations, runs);
            let drawing = chart::draw(measure, XAxis::Team, &drawn, runs.len());
            let title = titled(measure, "", &format!(" by team, {which} size{part}"));
            let legend = legend(&drawn, false, runs);
            charts.push(Figure::new(title, noted(&common, &drawn), drawing, legend));
        }
    }
    charts
}

/// Series that differ in nothing but the team, as one curve each: its run, its points by team, and
/// its bytes.
fn merged(series: &[(usize, &Series)], is_largest: bool) -> Vec<(usize, Series, u64)> {
    let mut merged: Vec<(usize, Series, u64)> = Vec::new();
    for (run, one) in series {
        let mut points = one.points.iter().filter(|point| !is_largest || point.nbytes > 0);
        let point = if is_largest { points.next_back() } else { points.next() };
        let (Some(point), Some(team)) = (point, one.shape.team_size) else { continue };
        let shape = Shape { team_size: None, ..one.shape.clone() };
        let mut across_teams = point.clone();
        let nbytes = std::mem::replace(&mut across_teams.nbytes, u64::from(team));
        let is_same = |(other, kept, size): &&mut (usize, Series, u64)| {
            (*other, &kept.operation, &kept.shape, *size) == (*run, &one.operation, &shape, nbytes)
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
}
