//! Judges every figure that two runs have in common: slower, faster, equal, or too few batches to say.
//!
//! This file must never know how a verdict is printed.

use super::mann_whitney::{least_p_value, p_value};
use crate::record::{Measure, Point, Record, Series};

/// How often something may be called different that is not, of all that are called different.
pub const LEVEL: f64 = 0.05;

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is worse beyond noise, by more than the threshold.
    Slower,
    /// It is better beyond noise, by more than the threshold.
    Faster,
    /// Neither.
    Equal,
    /// No difference of so few batches would be one beyond noise.
    TooFew,
}

/// One figure in both runs.
pub struct Compared<'a> {
    /// The series, of the run before.
    pub series: &'a Series,
    /// Bytes.
    pub nbytes: u64,
    /// The medians of the batches, before and after.
    pub medians: (f64, f64),
    /// How many times as long the same work takes after.
    pub ratio: f64,
    /// The probability of this difference by noise, corrected for the number of comparisons.
    pub p: f64,
    /// What became of it.
    pub verdict: Verdict,
}

/// All that was compared, and what could not be.
pub struct Found<'a> {
    /// Series by series in the order of the run before, each by size.
    pub compared: Vec<Compared<'a>>,
    /// Series in one of the runs only: before, after.
    pub alone: (Vec<&'a Series>, Vec<&'a Series>),
}

impl Found<'_> {
    /// Whether something but a floor is slower.
    pub fn is_slower(&self) -> bool {
        let mut compared = self.compared.iter();
        compared.any(|one| one.verdict == Verdict::Slower && !one.series.is_floor)
    }
}

/// Compares two runs. `threshold` is a fraction.
pub fn judge<'a>(before: &'a Record, after: &'a Record, threshold: f64) -> Found<'a> {
    let mut compared = Vec::new();
    let mut can_tell = Vec::new();
    for old in &before.series {
        let Some(new) = after.series.iter().find(|new| is_same(old, new)) else { continue };
        for point in &old.points {
            let same_size = |other: &&Point| other.nbytes == point.nbytes;
            let Some(other) = new.points.iter().find(same_size) else { continue };
            let (a, b) = (finite(&point.summary.batches), finite(&other.summary.batches));
            let medians = match (median(&a), median(&b)) {
                (Some(a), Some(b)) => (a, b),
                _ => (point.summary.p50, other.summary.p50),
            };
            can_tell.push(least_p_value(a.len(), b.len()) <= LEVEL);
            compared.push(Compared {
                series: old,
                nbytes: point.nbytes,
                medians,
                ratio: ratio(cost(old.measure, medians.0), cost(old.measure, medians.1)),
                p: p_value(&a, &b),
                verdict: Verdict::TooFew,
            });
        }
    }
    correct(&mut compared);
    for (one, can_tell) in compared.iter_mut().zip(can_tell) {
        one.verdict = match () {
            () if !can_tell => Verdict::TooFew,
            () if one.p <= LEVEL && one.ratio > 1.0 + threshold => Verdict::Slower,
            () if one.p <= LEVEL && one.ratio < 1.0 / (1.0 + threshold) => Verdict::Faster,
            () => Verdict::Equal,
        };
    }
    let missing = |from: &'a Record, of: &'a Record| {
        let series = from.series.iter();
        series.filter(|one| !of.series.iter().any(|other| is_same(one, other))).collect()
    };
    Found { compared, alone: (missing(before, after), missing(after, before)) }
}

fn is_same(a: &Series, b: &Series) -> bool {
    (a.measure, &a.operation, a.is_floor, &a.shape)
        == (b.measure, &b.operation, b.is_floor, &b.shape)
}

fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        0 => Some((sorted[sorted.len() / 2 - 1] + middle) / 2.0),
        _ => Some(*middle),
    }
}

/// How long the same work takes, up to a factor. Of overlap it is a transfer and as long a computation together.
fn cost(measure: Measure, value: f64) -> f64 {
    match measure {
        Measure::Latency | Measure::Collective | Measure::Event => value,
        Measure::Bandwidth | Measure::BidirectionalBandwidth | Measure::MessageRate => 1.0 / value,
        Measure::Overlap => 200.0 - value,
    }
}

/// `after` over `before`, also where both are nothing or without limit.
fn ratio(before: f64, after: f64) -> f64 {
    if before == after { 1.0 } else { after / before }
}

/// The correction of Benjamini and Hochberg: each probability becomes the least level at which its figure would be called different.
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
