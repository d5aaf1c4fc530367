//! Finds outliers in a matrix of PEs: nodes and PEs that are slow with all others, single pairs
//! that are slow, and the range of the other figures.
//!
//! Pairs within a node are compared separately from pairs of different nodes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::record::{Matrix, Measure};
use crate::statistics::{Spread, median, sorted};
use charts::palette::ColorRange;

/// The minimum ratio of the time of a pair to the median of its kind that makes it an outlier. If
/// the times of all others are almost equal, only this limit keeps noise from being an outlier.
const OUTLIER: f64 = 1.5;
/// The minimum ratio of the times of a PE or a node to those of others that makes it slow.
/// docs/measuring.md states it too.
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
    /// The range of the figures that are no outliers, widened to at least `LEAST_SPAN`.
    pub range: ColorRange,
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
    let (near, far): (Vec<&Cell>, Vec<&Cell>) = cells.iter().partition(|cell| cell.is_near);
    let slow_pes = slow(near.iter().map(|cell| cell.between_pes()));
    let slow_nodes = slow(far.iter().map(|cell| cell.between_nodes()));

    // Pairs with a slow end are compared only with each other. Among all pairs, they would hide
    // single pairs that are slow.
    let mut outliers = Vec::new();
    let (slow_near, usual_near): (Vec<&Cell>, Vec<&Cell>) = near
        .into_iter()
        .partition(|cell| has_slow_end(&slow_pes, cell.between_pes()));
    outliers.extend(outliers_of(&slow_near));
    outliers.extend(outliers_of(&usual_near));

    let (slow_far, usual_far): (Vec<&Cell>, Vec<&Cell>) = far
        .into_iter()
        .partition(|cell| has_slow_end(&slow_nodes, cell.between_nodes()));
    outliers.extend(outliers_of(&slow_far));
    outliers.extend(outliers_of(&usual_far));
    outliers.sort_by(|a, b| b.times.total_cmp(&a.times));

    Suspects {
        range: usual_range(matrix.measure, &cells, &outliers),
        nodes: slow_nodes,
        pes: slow_pes,
        outliers,
    }
}

/// Returns the range of the cells that are no outliers, widened to at least `LEAST_SPAN`.
fn usual_range(measure: Measure, cells: &[Cell], outliers: &[Outlier]) -> ColorRange {
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
        ColorRange {
            worst: high,
            best: low,
        }
    } else {
        ColorRange {
            worst: low,
            best: high,
        }
    }
}

fn has_slow_end(slow: &[Slow], transfer: Transfer) -> bool {
    slow.iter().any(|slow| {
        (slow.which == transfer.from && slow.from.is_some())
            || (slow.which == transfer.to && slow.to.is_some())
    })
}

/// The time between two PEs, or between the nodes of two PEs.
struct Transfer {
    from: usize,
    to: usize,
    cost: f64,
}

struct Cell {
    from: usize,
    to: usize,
    from_node: usize,
    to_node: usize,
    /// True if both are on one node.
    is_near: bool,
    value: f64,
    /// A time in arbitrary units: [`Measure::cost`](crate::record::Measure::cost) of the value.
    cost: f64,
}

impl Cell {
    fn between_pes(&self) -> Transfer {
        Transfer {
            from: self.from,
            to: self.to,
            cost: self.cost,
        }
    }

    fn between_nodes(&self) -> Transfer {
        Transfer {
            from: self.from_node,
            to: self.to_node,
            cost: self.cost,
        }
    }
}

fn cells(matrix: &Matrix, nodes: &[usize]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (from, row) in matrix.values.iter().enumerate() {
        for (to, value) in row.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) else {
                continue;
            };
            let from_node = nodes.get(from).copied();
            let to_node = nodes.get(to).copied();
            cells.push(Cell {
                from,
                to,
                from_node: from_node.unwrap_or(0),
                to_node: to_node.unwrap_or(0),
                is_near: from_node == to_node,
                value,
                cost: matrix.measure.cost(value),
            });
        }
    }
    cells
}

/// Returns the cells that are far above the upper quartile, by more than three times the distance
/// of the quartiles in logarithms, and above `OUTLIER` times the median. Fewer than four cells have
/// no outliers.
fn outliers_of(cells: &[&Cell]) -> Vec<Outlier> {
    if cells.len() < 4 {
        return Vec::new();
    }

    let logs: Vec<f64> = cells.iter().map(|cell| cell.cost.ln()).collect();
    let Spread { low, median, high } = Spread::of(&logs);
    let limit = (high + 3.0 * (high - low)).max(median + OUTLIER.ln());

    let mut outliers = Vec::new();
    for cell in cells {
        if cell.cost.ln() > limit {
            outliers.push(Outlier {
                from: cell.from,
                to: cell.to,
                times: cell.cost / median.exp(),
            });
        }
    }
    outliers
}

/// Returns the PEs or nodes whose row or column is slow as a whole. Rows and columns are compared
/// by their lower quartiles, since a good row also has slow cells, with bad columns.
fn slow(transfers: impl Iterator<Item = Transfer>) -> Vec<Slow> {
    let mut rows: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut columns: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for Transfer { from, to, cost } in transfers {
        rows.entry(from).or_default().push(cost);
        columns.entry(to).or_default().push(cost);
    }

    let slow_rows = excess(&rows);
    let slow_columns = excess(&columns);
    let mut slow = Vec::new();
    // A PE for whose row there was no time may still be slow as a target.
    for which in BTreeSet::from_iter(rows.into_keys().chain(columns.into_keys())) {
        let from = slow_rows.get(&which).copied();
        let to = slow_columns.get(&which).copied();
        if from.is_some() || to.is_some() {
            slow.push(Slow { which, from, to });
        }
    }
    slow
}

/// Returns the rows, or columns, whose lower quartile is `SLOW` times the median of all lower
/// quartiles or more, each with this ratio. Returns none if fewer than three have values.
fn excess(lines: &BTreeMap<usize, Vec<f64>>) -> BTreeMap<usize, f64> {
    // With two quartiles, it is not known which one is usual.
    if lines.len() < 3 {
        return BTreeMap::new();
    }

    let mut quartiles = BTreeMap::new();
    for (which, line) in lines {
        quartiles.insert(*which, sorted(line)[(line.len() - 1) / 4]);
    }
    let usual = median(&Vec::from_iter(quartiles.values().copied()));

    let mut excess = quartiles;
    for ratio in excess.values_mut() {
        *ratio /= usual;
    }
    excess.retain(|_, ratio| *ratio >= SLOW);
    excess
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Measure;

    const NODES: [usize; 12] = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3];

    fn matrix(measure: Measure, value: impl Fn(usize, usize) -> f64) -> Matrix {
        let n = NODES.len();
        let mut values = vec![vec![None; n]; n];
        for (from, row) in values.iter_mut().enumerate() {
            for (to, cell) in row.iter_mut().enumerate() {
                if from != to {
                    *cell = Some(value(from, to));
                }
            }
        }
        Matrix {
            measure,
            operation: "put".into(),
            nbytes: 8,
            values,
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
        assert!(found.outliers.is_empty());
        assert!(found.nodes.is_empty() && found.pes.is_empty());
        assert!(found.range.best == 300.0 && found.range.worst > 1500.0);
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
        assert!(found.outliers[0].times > 5.0 && found.range.worst < 1600.0);
        assert!(found.nodes.is_empty());
    }

    #[test]
    fn a_node_with_a_slow_nic_is_named() {
        let slow = |from: usize, to: usize| {
            let nodes = [NODES[from], NODES[to]];
            if nodes[0] != nodes[1] && nodes.contains(&2) {
                2.5 * usual(from, to)
            } else {
                usual(from, to)
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
        let nodes: Vec<usize> = found.nodes.iter().map(|node| node.which).collect();
        assert_eq!(nodes, [2]);
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
        assert!(found.range.worst.min(found.range.best) > 0.0);
        assert_ne!(found.range.worst, found.range.best);
        small.values = vec![vec![None, Some(5.0)], vec![Some(7.0), None]];
        let found = find(&small, &[]);
        assert!(found.outliers.is_empty());
        assert!(found.range.best <= 5.0 && found.range.worst >= 7.0);
    }
}
