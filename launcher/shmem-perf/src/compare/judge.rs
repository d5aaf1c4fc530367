//! Judges every figure that two sides have in common: slower, faster, equal, or too few values to
//! say.
//!
//! A side is one run or several. With several, the test compares one value of each run, its median,
//! so that the variation between runs counts as noise. With one run of each side, the test compares
//! the medians of batches, which do not include that variation.

use std::collections::BTreeSet;

use super::mann_whitney::{least_p_value, p_value};
use crate::record::{Point, Record, Series};
use crate::statistics::median;

/// The maximum expected share of false differences among all figures that are called different.
pub const LEVEL: f64 = 0.05;

/// The values that the test compares, whose variation it takes for noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The medians of batches, if there is one run on each side.
    Batches,
    /// The medians of runs.
    Runs,
}

impl Basis {
    /// Returns the basis for these numbers of runs before and after.
    ///
    /// # Errors
    /// One sentence if there are several, but too few for the test to call any figure different.
    pub fn of(n_before: usize, n_after: usize) -> Result<Self, String> {
        match (n_before, n_after) {
            (1, 1) => Ok(Self::Batches),
            _ if least_p_value(n_before, n_after) <= LEVEL => Ok(Self::Runs),
            _ => Err(format!(
                "{n_before} and {n_after} records are too few to know how runs differ; the minimum is {} of each side.",
                runs_to_find_one_of(1)
            )),
        }
    }
}

/// Returns the minimum number of runs of each side by which the test can find a difference that
/// only one of `n_figures` has.
pub fn runs_to_find_one_of(n_figures: usize) -> usize {
    let mut n_runs = 1;
    // With each further run, the least probability halves at least.
    while least_p_value(n_runs, n_runs) * n_figures as f64 > LEVEL {
        n_runs += 1;
    }
    n_runs
}

/// The verdict on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Significantly worse, by more than the threshold.
    Slower,
    /// Significantly better, by more than the threshold.
    Faster,
    /// Neither.
    Equal,
    /// There are too few values for any difference to be significant.
    TooFew,
}

/// One figure of both sides.
pub struct Compared<'a> {
    /// The series as one of the runs before has it.
    pub series: &'a Series,
    pub nbytes: u64,
    /// The median of the values of the runs before that were tested.
    pub median_before: f64,
    pub median_after: f64,
    /// The time of the same work after, divided by the time before.
    pub ratio: f64,
    /// The probability of such a difference by chance, corrected for the number of comparisons.
    pub p: f64,
    pub verdict: Change,
}

/// What only one side has of a series.
pub struct Alone<'a> {
    pub series: &'a Series,
    /// The sizes that the other side lacks; none if it lacks the whole series.
    pub sizes: Vec<u64>,
}

/// The figures of two sides that were compared, and those that only one side has.
pub struct Comparison<'a> {
    pub basis: Basis,
    /// The figures in the order of the series of the runs before, and then of their sizes.
    pub compared: Vec<Compared<'a>>,
    /// What only the runs before have.
    pub alone_before: Vec<Alone<'a>>,
    /// What only the runs after have.
    pub alone_after: Vec<Alone<'a>>,
}

impl Comparison<'_> {
    /// Returns true if a figure is slower that is not a floor.
    pub fn is_slower(&self) -> bool {
        self.compared
            .iter()
            .any(|one| one.verdict == Change::Slower && !one.series.is_floor)
    }
}

/// Compares two sides. `threshold` is the fraction by which a median must differ.
///
/// # Errors
/// One sentence if there are too few runs.
pub fn judge<'a>(
    before: &'a [Record],
    after: &'a [Record],
    threshold: f64,
) -> Result<Comparison<'a>, String> {
    let basis = Basis::of(before.len(), after.len())?;
    let series_before = all_series(before);
    let series_after = all_series(after);

    let mut compared = Vec::new();
    for &series in &series_before {
        if !contains(&series_after, series) {
            continue;
        }
        let curves_before = curves_of(before, series);
        let curves_after = curves_of(after, series);

        for nbytes in sizes(&curves_before) {
            let old = values(basis, &curves_before, nbytes);
            let new = values(basis, &curves_after, nbytes);
            if !old.is_empty() && !new.is_empty() {
                compared.push(untested(series, nbytes, &old, &new));
            }
        }
    }

    // Each probability is corrected by all others, so no figure is judged before all are compared.
    correct(&mut compared);
    for one in &mut compared {
        if one.verdict == Change::TooFew || one.p > LEVEL {
            continue;
        }
        if one.ratio > 1.0 + threshold {
            one.verdict = Change::Slower;
        } else if one.ratio < 1.0 / (1.0 + threshold) {
            one.verdict = Change::Faster;
        }
    }

    Ok(Comparison {
        basis,
        compared,
        alone_before: alone(before, &series_before, after),
        alone_after: alone(after, &series_after, before),
    })
}

/// Compares the values of both sides at one size. The probability is not corrected yet, and the
/// verdict is that there is no difference, or that there are too few values to find one.
fn untested<'a>(series: &'a Series, nbytes: u64, old: &[f64], new: &[f64]) -> Compared<'a> {
    let median_before = median(old);
    let median_after = median(new);
    let cost_before = series.measure.cost(median_before);
    let cost_after = series.measure.cost(median_after);

    let verdict = if least_p_value(old.len(), new.len()) <= LEVEL {
        Change::Equal
    } else {
        Change::TooFew
    };
    Compared {
        series,
        nbytes,
        median_before,
        median_after,
        ratio: ratio(cost_before, cost_after),
        p: p_value(old, new),
        verdict,
    }
}

/// Returns what the other runs lack of these series of some runs.
fn alone<'a>(runs: &'a [Record], series: &[&'a Series], others: &[Record]) -> Vec<Alone<'a>> {
    let others_series = all_series(others);
    let mut alone = Vec::new();
    for &series in series {
        if !contains(&others_series, series) {
            alone.push(Alone {
                series,
                sizes: Vec::new(),
            });
            continue;
        }

        let others_sizes = sizes(&curves_of(others, series));
        let mut sizes = sizes(&curves_of(runs, series));
        sizes.retain(|nbytes| !others_sizes.contains(nbytes));
        if !sizes.is_empty() {
            alone.push(Alone { series, sizes });
        }
    }
    alone
}

/// Returns the series of some runs, each once.
fn all_series(runs: &[Record]) -> Vec<&Series> {
    let mut all: Vec<&Series> = Vec::new();
    for series in runs.iter().flat_map(|run| &run.series) {
        if !contains(&all, series) {
            all.push(series);
        }
    }
    all
}

fn contains(all: &[&Series], series: &Series) -> bool {
    all.iter().any(|one| one.is_same_as(series))
}

fn curves_of<'a>(runs: &'a [Record], series: &Series) -> Vec<&'a [Point]> {
    runs.iter()
        .flat_map(|run| &run.series)
        .filter(|one| one.is_same_as(series))
        .map(|one| one.points.as_slice())
        .collect()
}

fn sizes(curves: &[&[Point]]) -> Vec<u64> {
    let mut sizes = BTreeSet::new();
    for curve in curves {
        sizes.extend(curve.iter().map(|point| point.nbytes));
    }
    sizes.into_iter().collect()
}

/// Returns the values to compare at one size: the median of each run, or the medians of the batches
/// of the only run. If this has no batches, it is the run's median.
fn values(basis: Basis, curves: &[&[Point]], nbytes: u64) -> Vec<f64> {
    let mut runs = Vec::new();
    let mut batches: Vec<f64> = Vec::new();
    for point in curves.iter().copied().flatten() {
        if point.nbytes == nbytes {
            runs.push(point.summary.p50);
            batches.extend(&point.summary.batches);
        }
    }
    // A record that was written by hand may have any numbers.
    batches.retain(|value| value.is_finite());

    match basis {
        Basis::Batches if !batches.is_empty() => batches,
        Basis::Batches | Basis::Runs => runs,
    }
}

/// Returns `after` divided by `before`; 1 if both are 0 or infinite.
fn ratio(before: f64, after: f64) -> f64 {
    if before == after { 1.0 } else { after / before }
}

/// Applies the correction of Benjamini and Hochberg: each probability becomes the lowest level at
/// which its figure would be called different.
fn correct(compared: &mut [Compared]) {
    let n = compared.len() as f64;
    let mut order: Vec<usize> = (0..compared.len()).collect();
    order.sort_by(|&i, &j| compared[i].p.total_cmp(&compared[j].p));

    // From the highest to the lowest: a figure is called different at each level at which one with
    // a higher probability is, so it gets at most the value of that one.
    let mut least = 1.0f64;
    for (rank, &i) in order.iter().enumerate().rev() {
        least = least.min(compared[i].p * n / (rank as f64 + 1.0));
        compared[i].p = least;
    }
}

#[cfg(test)]
mod tests;
