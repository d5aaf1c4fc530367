//! Finds outliers in a matrix of PEs: nodes and PEs that are slow with all others, single pairs
//! that are slow, and the range of the other figures.
//!
//! Pairs within a node are compared separately from pairs of different nodes.

use std::collections::HashSet;

use crate::record::{Matrix, Measure};
use crate::statistics::{Spread, median, sorted};

/// The minimum ratio of the time of a pair to the median of its kind that makes it an outlier.
const OUTLIER: f64 = 1.5;
/// The minimum ratio of the times of a PE or a node to those of others that makes it slow.
const SLOW: f64 = 1.3;
/// The range of colors spans at least this factor, so that noise does not look like a pattern.
const LEAST_SPAN: f64 = 2.0;

/// A pair that is much slower than others of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// The PE that issues.
    pub from: usize,
    /// Its target.
    pub to: usize,
    /// The time divided by the median of its kind.
    pub times: f64,
}

/// A PE or a node that is slow with all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    pub which: usize,
    /// The time of the operations that it issues, divided by that of other PEs or nodes; `None` if
    /// the ratio is below `SLOW`.
    pub from: Option<f64>,
    /// The same for the operations of which it is the target.
    pub to: Option<f64>,
}

/// The outliers of a matrix.
pub struct Suspects {
    /// The worst and the best figure that is no outlier, widened to at least `LEAST_SPAN`.
    pub range: (f64, f64),
    /// The slow pairs, the slowest first.
    pub outliers: Vec<Outlier>,
    /// Nodes whose transfers with other nodes are slow.
    pub nodes: Vec<Slow>,
    /// PEs that are slow with other PEs of their node.
    pub pes: Vec<Slow>,
}

/// Finds the outliers. `nodes` has the node of each PE.
pub fn find(matrix: &Matrix, nodes: &[usize]) -> Suspects {
    let cells = cells(matrix, nodes);
    let node = |pe: usize| nodes.get(pe).copied().unwrap_or(0);
    let between_nodes = cells.iter().filter(|cell| !cell.is_near);
    let within_nodes = cells.iter().filter(|cell| cell.is_near);
    let slow_nodes = slow(between_nodes.map(|cell| (node(cell.from), node(cell.to), cell.cost)));
    let slow_pes = slow(within_nodes.map(|cell| (cell.from, cell.to, cell.cost)));

    // Pairs with a slow end are compared only with each other. Among all pairs, they would hide
    // single pairs that are slow.
    let is_slow = |cell: &Cell| {
        if cell.is_near {
            has_slow_end(&slow_pes, cell.from, cell.to)
        } else {
            has_slow_end(&slow_nodes, node(cell.from), node(cell.to))
        }
    };
    let mut outliers = Vec::new();
    for kind in [(true, true), (true, false), (false, true), (false, false)] {
        let alike = cells
            .iter()
            .filter(|cell| (cell.is_near, is_slow(cell)) == kind);
        outliers.extend(outliers_of(alike));
    }
    outliers.sort_by(|a, b| b.times.total_cmp(&a.times));

    Suspects {
        range: usual_range(matrix.measure, &cells, &outliers),
        nodes: slow_nodes,
        pes: slow_pes,
        outliers,
    }
}

/// Returns the worst and the best value of the cells that are no outliers, widened to at least
/// `LEAST_SPAN`.
fn usual_range(measure: Measure, cells: &[Cell], outliers: &[Outlier]) -> (f64, f64) {
    let pairs: HashSet<(usize, usize)> = outliers.iter().map(|one| (one.from, one.to)).collect();
    let mut low = f64::MAX;
    let mut high = 0.0f64;
    for cell in cells {
        if !pairs.contains(&(cell.from, cell.to)) {
            low = low.min(cell.value);
            high = high.max(cell.value);
        }
    }
    if low > high {
        // There are no values.
        low = 1.0;
        high = 1.0;
    }

    let wider = (LEAST_SPAN / (high / low)).max(1.0).sqrt();
    low /= wider;
    high *= wider;
    if measure.cost(low) < measure.cost(high) {
        (high, low)
    } else {
        (low, high)
    }
}

fn has_slow_end(slow: &[Slow], from: usize, to: usize) -> bool {
    slow.iter().any(|slow| {
        (slow.which == from && slow.from.is_some()) || (slow.which == to && slow.to.is_some())
    })
}

struct Cell {
    from: usize,
    to: usize,
    /// True if both are on one node.
    is_near: bool,
    value: f64,
    /// A time in arbitrary units: [`Measure::cost`](crate::record::Measure::cost) of the value.
    cost: f64,
}

fn cells(matrix: &Matrix, nodes: &[usize]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (from, row) in matrix.values.iter().enumerate() {
        for (to, value) in row.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) else {
                continue;
            };
            let cost = matrix.measure.cost(value);
            cells.push(Cell {
                from,
                to,
                is_near: nodes.get(from) == nodes.get(to),
                value,
                cost,
            });
        }
    }
    cells
}

/// Returns the cells that are far above the upper quartile, by more than three times the distance
/// of the quartiles in logarithms, and above `OUTLIER` times the median. Fewer than four cells have
/// no outliers.
fn outliers_of<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Vec<Outlier> {
    let logs: Vec<f64> = cells.clone().map(|cell| cell.cost.ln()).collect();
    if logs.len() < 4 {
        return Vec::new();
    }

    let Spread { low, median, high } = Spread::of(&logs);
    let limit = (high + 3.0 * (high - low)).max(median + OUTLIER.ln());
    let far = cells.filter(|cell| cell.cost.ln() > limit);
    far.map(|cell| Outlier {
        from: cell.from,
        to: cell.to,
        times: cell.cost / median.exp(),
    })
    .collect()
}

/// Returns the PEs or nodes whose row or column is slow as a whole. Rows and columns are compared
/// by their lower quartiles, since a good row also has slow cells, with bad columns.
fn slow(cells: impl Iterator<Item = (usize, usize, f64)>) -> Vec<Slow> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for (from, to, cost) in cells {
        for (lines, which) in [(&mut rows, from), (&mut columns, to)] {
            lines.resize_with(lines.len().max(which + 1), Vec::new);
            lines[which].push(cost);
        }
    }

    let from = excess(rows);
    let to = excess(columns);
    let slow = |which: usize| Slow {
        which,
        from: from[which],
        to: to.get(which).copied().flatten(),
    };
    (0..from.len())
        .map(slow)
        .filter(|slow| slow.from.is_some() || slow.to.is_some())
        .collect()
}

/// Returns for each row, or column, the ratio of its lower quartile to the median of all lower
/// quartiles; `None` if it is below `SLOW`, or if fewer than three rows have values.
fn excess(lines: Vec<Vec<f64>>) -> Vec<Option<f64>> {
    let level = |line: Vec<f64>| sorted(&line).get(line.len().saturating_sub(1) / 4).copied();
    let levels: Vec<Option<f64>> = lines.into_iter().map(level).collect();
    let known: Vec<f64> = levels.iter().copied().flatten().collect();
    // With two levels, it is not known which one is usual.
    let usual = if known.len() > 2 {
        median(&known)
    } else {
        f64::MAX
    };
    let much = |level: f64| Some(level / usual).filter(|times| *times >= SLOW);
    levels.into_iter().map(|level| much(level?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Measure;

    const NODES: [usize; 12] = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3];

    fn matrix(measure: Measure, value: impl Fn(usize, usize) -> f64) -> Matrix {
        let row = |from| {
            (0..12)
                .map(|to| (from != to).then(|| value(from, to)))
                .collect()
        };
        Matrix {
            measure,
            operation: "put".into(),
            nbytes: 8,
            values: (0..12).map(row).collect(),
        }
    }

    fn usual(from: usize, to: usize) -> f64 {
        let noise = 1.0 + ((from * 7 + to * 5) % 11) as f64 / 200.0;
        if NODES[from] == NODES[to] {
            300.0 * noise
        } else {
            1500.0 * noise
        }
    }

    #[test]
    fn nothing_stands_out_where_nodes_are_alike() {
        let found = find(&matrix(Measure::Latency, usual), &NODES);
        assert_eq!(
            (found.outliers.len(), found.nodes.len(), found.pes.len()),
            (0, 0, 0)
        );
        assert!(found.range.1 == 300.0 && found.range.0 > 1500.0);
    }

    #[test]
    fn one_bad_pair_is_an_outlier_and_leaves_the_range_alone() {
        let bad = |from, to| {
            if (from, to) == (4, 9) {
                9000.0
            } else {
                usual(from, to)
            }
        };
        let found = find(&matrix(Measure::Latency, bad), &NODES);
        assert_eq!(found.outliers.len(), 1);
        assert_eq!((found.outliers[0].from, found.outliers[0].to), (4, 9));
        assert!(found.outliers[0].times > 5.0 && found.range.0 < 1600.0);
        assert!(found.nodes.is_empty());
    }

    #[test]
    fn a_node_with_a_slow_nic_is_named() {
        let slow = |from: usize, to: usize| {
            let (a, b) = (NODES[from], NODES[to]);
            usual(from, to)
                * if a != b && (a == 2 || b == 2) {
                    2.5
                } else {
                    1.0
                }
        };
        let found = find(&matrix(Measure::Latency, slow), &NODES);
        assert_eq!(found.nodes.len(), 1);
        let node = found.nodes[0];
        assert_eq!(node.which, 2);
        assert!((node.from.unwrap_or(0.0) - 2.5).abs() < 0.1, "{node:?}");
        assert!((node.to.unwrap_or(0.0) - 2.5).abs() < 0.1, "{node:?}");
        let rate = |from, to| 1e9 / slow(from, to);
        let found = find(&matrix(Measure::Bandwidth, rate), &NODES);
        assert_eq!(
            found
                .nodes
                .iter()
                .map(|node| node.which)
                .collect::<Vec<_>>(),
            [2]
        );
    }

    #[test]
    fn a_pe_that_only_sends_slowly_is_named() {
        let slow = |from, to| usual(from, to) * if from == 7 { 3.0 } else { 1.0 };
        let found = find(&matrix(Measure::Latency, slow), &NODES);
        assert_eq!(found.pes.len(), 1);
        assert_eq!((found.pes[0].which, found.pes[0].to), (7, None));
        assert!(found.pes[0].from.is_some_and(|times| times > 2.5));
    }

    #[test]
    fn few_or_no_values_have_a_range() {
        let mut small = matrix(Measure::Latency, |_, _| 0.0);
        let found = find(&small, &NODES);
        assert!(found.range.0.min(found.range.1) > 0.0 && found.range.0 != found.range.1);
        small.values = vec![vec![None, Some(5.0)], vec![Some(7.0), None]];
        let found = find(&small, &[]);
        assert!(found.outliers.is_empty() && found.range.1 <= 5.0 && found.range.0 >= 7.0);
    }
}
