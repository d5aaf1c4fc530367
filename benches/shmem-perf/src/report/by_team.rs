//! Charts of collectives by the number of members.

use super::chart::{self, Across};
use super::curves::{coloured, grouped, legend, named, noted};
use super::figure::Figure;
use super::kinds::titled;
use super::source::Source;
use super::style::N_COLOURS;
use crate::record::{Measure, Series, Shape};
use crate::units;

/// Collectives by the size of the team, at their smallest and at their largest size.
pub fn by_team(
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
            let drawn = coloured(&group, operations, runs);
            let svg = chart::draw(measure, Across::Team, &drawn, runs.len());
            let title = titled(measure, "", &format!(" by team, {which} size{part}"));
            charts.push(Figure::new(
                &title,
                &noted(&common, &drawn),
                svg,
                legend(&drawn, false, runs),
            ));
        }
    }
    charts
}
