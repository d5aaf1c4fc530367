//! The Mann-Whitney test: the probability that two samples of one distribution differ in rank as
//! much as two given samples do.
//!
//! It assumes nothing about the distribution. For up to [`EXACT`] values it counts all ways to
//! divide them into the two samples, including ties; for more it uses the normal approximation with
//! the correction for ties. It is implemented here because no crate that we know has an exact test
//! with ties.

/// The maximum number of values of both samples together for which the test is exact.
const EXACT: usize = 20;

/// Returns the two-sided probability of a difference as large as that of these samples or larger.
/// It is 1 if a sample is empty.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(a, b);
    let sum: usize = ranks[..a.len()].iter().sum();
    if ranks.len() <= EXACT {
        exact(&ranks, a.len(), sum)
    } else {
        approximate(&ranks, a.len(), sum)
    }
}

/// Returns the lowest two-sided probability that samples of these sizes can have. It is that of
/// samples that do not overlap: 2 of all ways to divide the values, but at most 1.
pub fn least_p_value(n_a: usize, n_b: usize) -> f64 {
    let ways: f64 = (1..=n_a).map(|i| (n_b + i) as f64 / i as f64).product();
    (2.0 / ways).min(1.0)
}

/// Returns twice the rank of each value among all values, those of `a` first. Equal values get the
/// mean of their ranks. Twice that is an integer.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));

    let mut ranks = vec![0; values.len()];
    let mut start = 0;
    for tie in order.chunk_by(|&i, &j| values[i] == values[j]) {
        for &i in tie {
            // The ranks from start + 1 to start + len have this mean, doubled.
            ranks[i] = 2 * start + tie.len() + 1;
        }
        start += tie.len();
    }
    ranks
}

/// Returns the share of the subsets of `n` ranks whose sum is at least as far from the mean as
/// `sum`.
fn exact(ranks: &[usize], n: usize, sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // ways[k][s]: subsets of k of the ranks so far with the sum s.
    let mut ways = vec![vec![0.0f64; total + 1]; n + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        // Downward, so that `k - 1` still counts the subsets without this rank.
        for k in (1..=n).rev() {
            let (fewer, these) = ways.split_at_mut(k);
            for s in rank..=total {
                these[0][s] += fewer[k - 1][s - rank];
            }
        }
    }

    // The mean of the sum is total * n / ranks.len(); both sides are multiplied by ranks.len() to
    // stay whole.
    let distance = |s: usize| (s * ranks.len()).abs_diff(total * n);
    let mut far = 0.0;
    for (s, ways) in ways[n].iter().enumerate() {
        if distance(s) >= distance(sum) {
            far += ways;
        }
    }
    far / ways[n].iter().sum::<f64>()
}

/// Returns the same probability as [`exact`] by the normal approximation.
fn approximate(ranks: &[usize], n: usize, sum: usize) -> f64 {
    let n_all = ranks.len() as f64;
    let n = n as f64;
    let mean = n * (n_all + 1.0) / 2.0;

    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let mut ties = 0.0;
    for tie in sorted.chunk_by(|a, b| a == b) {
        let length = tie.len() as f64;
        ties += length.powi(3) - length;
    }
    let variance = n * (n_all - n) / 12.0 * ((n_all + 1.0) - ties / (n_all * (n_all - 1.0)));
    if variance <= 0.0 {
        // All values are equal.
        return 1.0;
    }

    // Minus a half: the continuity correction, since sums of ranks are discrete.
    let distance = ((sum as f64 / 2.0 - mean).abs() - 0.5).max(0.0);
    libm::erfc(distance / (2.0 * variance).sqrt()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 0.002 * expected.max(0.01),
            "{found}, not {expected}"
        );
    }

    #[test]
    fn small_samples_are_counted() {
        // Two of the 252 ways to choose 5 of 10 are as extreme.
        near(
            p_value(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]),
            2.0 / 252.0,
        );
        near(least_p_value(5, 5), 2.0 / 252.0);
        near(least_p_value(1, 1), 1.0);
        near(least_p_value(0, 3), 1.0);
        // Sums of 2 of 4 ranks: 3, 4, 5, 5, 6, 7; two are as far from 5 as 4 is or farther, on each
        // side.
        near(p_value(&[1.0, 3.0], &[2.0, 4.0]), 4.0 / 6.0);
        near(p_value(&[7.0; 6], &[7.0; 6]), 1.0);
        near(p_value(&[], &[1.0]), 1.0);
    }

    #[test]
    fn ties_are_counted_as_they_are() {
        // The ranks are 1, 2.5, 2.5, 4. Sums of two: 3.5, 3.5, 5, 5, 6.5, 6.5.
        near(p_value(&[1.0, 2.0], &[2.0, 3.0]), 4.0 / 6.0);
    }

    #[test]
    fn the_approximation_agrees_with_the_count() {
        let a: Vec<f64> = (0..12).map(|i| f64::from(i * 7 % 12)).collect();
        let b: Vec<f64> = (0..12).map(|i| f64::from(i * 5 % 12) + 3.5).collect();
        let ranks = doubled_ranks(&a, &b);
        let sum = ranks[..12].iter().sum();
        let counted = exact(&ranks, 12, sum);
        let normal = approximate(&ranks, 12, sum);
        assert!(counted < 0.05, "{counted}");
        assert!((counted - normal).abs() < 0.003, "{counted} and {normal}");
        near(approximate(&[60; 60], 30, 1800), 1.0);
    }

    #[test]
    fn the_two_samples_may_change_places() {
        let a = [1.0, 5.0, 2.0, 8.0, 2.0];
        let b = [3.0, 2.0, 9.0, 9.5, 7.0, 11.0];
        near(p_value(&a, &b), p_value(&b, &a));
    }
}
