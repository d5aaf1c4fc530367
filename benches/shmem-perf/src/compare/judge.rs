//! Judges every figure that two sides have in common: slower, faster, equal, or too few values to
//! say.
//!
//! A side is one run or several. Of several, each figure has one value for each run, its median, so
//! that the test knows how runs differ; of one it has those of its batches, which do not know it.

use super::mann_whitney::{least_p_value, p_value};
use crate::record::{Point, Record, Series};
use crate::statistics::median;

/// The share of false differences among all figures that are called different.
pub const LEVEL: f64 = 0.05;

/// The source of the noise that the test knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The spread of the batches of a run: there is one run on each side.
    Batches,
    /// The spread of runs.
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

/// Returns the minimum number of runs of each side that can find a difference in one of
/// `n_figures`.
pub fn runs_to_find_one_of(n_figures: usize) -> usize {
    let finds = |n: &usize| least_p_value(*n, *n) * n_figures as f64 <= LEVEL;
    (1..).find(finds).expect("the least probability halves at least")
}

/// The verdict on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is worse beyond noise, by more than the threshold.
    Slower,
    /// It is better beyond noise, by more than the threshold.
    Faster,
    /// Neither.
    Equal,
    /// No difference of so few values would be one beyond noise.
    TooFew,
}

/// One figure of both sides.
pub struct Compared<'a> {
    /// The series, of a run before.
    pub series: &'a Series,
    pub nbytes: u64,
    /// The medians of the values that were tested, before and after.
    pub medians: (f64, f64),
    /// The time of the same work after, divided by the time before.
    pub ratio: f64,
    /// The probability of this difference by noise, corrected for the number of comparisons.
    pub p: f64,
    /// The verdict.
    pub verdict: Change,
}

/// All that was compared, and what could not be.
pub struct Comparison<'a> {
    /// The source of the noise that the test knew.
    pub basis: Basis,
    /// Series by series in the order of the runs before, each by size.
    pub compared: Vec<Compared<'a>>,
    /// Series of one side only: before, after.
    pub alone: (Vec<&'a Series>, Vec<&'a Series>),
}

impl Comparison<'_> {
    /// Returns true if something but a floor is slower.
    pub fn is_slower(&self) -> bool {
        self.compared.iter().any(|one| one.verdict == Change::Slower && !one.series.is_floor)
    }
}

/// Compares two sides. `threshold` is a fraction.
///
/// # Errors
/// One sentence if there are too few runs.
pub fn judge<'a>(
    before: &'a [Record],
    after: &'a [Record],
    threshold: f64,
) -> Result<Comparison<'a>, String> {
    let basis = Basis::of(before.len(), after.len())?;
    let mut compared = Vec::new();
    let mut has_enough_runs = Vec::new();
    let (series_before, series_after) = (all_series(before), all_series(after));
    for series in series_before.iter().filter(|series| contains(&series_after, series)) {
        let curves = [before, after].map(|runs| curves_of(runs, series));
        for nbytes in sizes(&curves[0]) {
            let [a, b] = curves.each_ref().map(|curves| values(basis, curves, nbytes));
            if a.is_empty() || b.is_empty() {
                continue;
            }
            let (old, new) = (median(&a), median(&b));
            has_enough_runs.push(least_p_value(a.len(), b.len()) <= LEVEL);
            compared.push(Compared {
                series,
                nbytes,
                medians: (old, new),
                ratio: ratio(series.measure.cost(old), series.measure.cost(new)),
                p: p_value(&a, &b),
                verdict: Change::TooFew,
            });
        }
    }
    correct(&mut compared);
    for (one, has_enough_runs) in compared.iter_mut().zip(has_enough_runs) {
        one.verdict = match () {
            () if !has_enough_runs => Change::TooFew,
            () if one.p <= LEVEL && one.ratio > 1.0 + threshold => Change::Slower,
            () if one.p <= LEVEL && one.ratio < 1.0 / (1.0 + threshold) => Change::Faster,
            () => Change::Equal,
        };
    }
    let missing = |from: &[&'a Series], of: &[&'a Series]| {
        from.iter().copied().filter(|one| !contains(of, one)).collect()
    };
    let alone = (missing(&series_before, &series_after), missing(&series_after, &series_before));
    Ok(Comparison { basis, compared, alone })
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
    let all = runs.iter().flat_map(|run| &run.series);
    all.filter(|one| one.is_same_as(series)).map(|one| one.points.as_slice()).collect()
}

fn sizes(curves: &[&[Point]]) -> Vec<u64> {
    let mut sizes: Vec<u64> = curves.iter().copied().flatten().map(|point| point.nbytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns what is tested: a median of each run, or the batches of the one run. Without batches it
/// has its median.
fn values(basis: Basis, curves: &[&[Point]], nbytes: u64) -> Vec<f64> {
    let points = curves.iter().copied().flatten().filter(|point| point.nbytes == nbytes);
    let batches: Vec<f64> = points
        .clone()
        .flat_map(|point| &point.summary.batches)
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    match basis {
        Basis::Batches if !batches.is_empty() => batches,
        Basis::Batches | Basis::Runs => points.map(|point| point.summary.p50).collect(),
    }
}

/// Returns `after` over `before`, also where both are nothing or without limit.
fn ratio(before: f64, after: f64) -> f64 {
    if before == after { 1.0 } else { after / before }
}

/// Applies the correction of Benjamini and Hochberg: each probability becomes the lowest level at
/// which its figure would be called different.
fn correct(compared: &mut [Compared]) {
    let n = compared.len() as f64;
    let mut order: Vec<usize> = (0..compared.len()).collect();
    order.sort_by(|&i, &j| compared[i].p.total_cmp(&compared[j].p));
    let mut least = 1.0f64;
    for (rank, &i) in order.iter().enumerate().rev() {
        least = least.min(compared[i].p * n / (rank as f64 + 1.0));
        compared[i].p = least;
    }
}

#[cfg(test)]
mod tests;
