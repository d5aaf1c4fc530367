//! The histogram of the times of an operation. Both axes are logarithmic, so that the tail is
//! visible.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::axis::{Axis, LABEL_HEIGHT};
use super::style::{dashes, letter};
use crate::record::Measure;
use crate::units;
use charts::drawing::{Drawing, hit, px, rule, ticks_below, ticks_beside};
use charts::palette::{SERIES, SOFT};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 26.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 28.0;
/// The number of bars in a power of ten.
const BARS: f64 = 20.0;

/// The bars of a run.
struct Bars {
    run: usize,
    shares: Shares,
}

/// The percentage of the operations by the index of a bar.
type Shares = BTreeMap<i32, f64>;

/// Draws the histograms of runs, each as (value, count), with the index of its run.
pub fn draw(measure: Measure, histograms: &[(usize, &[(f64, u64)])], n_runs: usize) -> Drawing {
    let runs: Vec<Bars> = histograms
        .iter()
        .map(|(run, histogram)| Bars {
            run: *run,
            shares: shares(histogram),
        })
        .collect();

    let bars: BTreeSet<i32> = runs
        .iter()
        .flat_map(|run| run.shares.keys().copied())
        .collect();
    let edges = bars.iter().flat_map(|&bar| [edge(bar), edge(bar + 1)]);
    let xs = Axis::log(edges, (LEFT, RIGHT));

    // The axis begins below the smallest share, so that its bar has a height, too.
    let shares = runs.iter().flat_map(|run| run.shares.values());
    let heights = shares.map(|share| share / 1.6).chain([100.0]);
    let ys = Axis::log(heights, (BOTTOM, TOP));

    Drawing {
        width: WIDTH,
        height: HEIGHT,
        content: html! {
            (axes(measure, &xs, &ys))
            @for run in &runs { (outline(run, &xs, &ys)) }
        },
        hits: html! {
            @for &bar in &bars {
                (hit(
                    (xs.at(edge(bar)), xs.at(edge(bar + 1))),
                    (TOP, BOTTOM),
                    &tip(measure, &runs, n_runs, bar),
                ))
            }
        },
    }
}

fn axes(measure: Measure, xs: &Axis, ys: &Axis) -> Markup {
    let beside: Vec<_> = ys
        .ticks(LABEL_HEIGHT)
        .into_iter()
        .map(|y| (ys.at(y), format!("{y} %")))
        .collect();
    let below: Vec<_> = xs
        .ticks(50.0)
        .into_iter()
        .map(|x| (xs.at(x), units::tick(measure, x)))
        .collect();

    html! {
        (ticks_beside(&beside, (LEFT, RIGHT)))
        (ticks_below(&below, (TOP, BOTTOM)))
        (rule(SOFT, (LEFT, BOTTOM), (RIGHT, BOTTOM)))
    }
}

/// Returns the text for a bar: its values, and the share of each run that has such values. One run
/// of several is named by its letter.
fn tip(measure: Measure, runs: &[Bars], n_runs: usize, bar: i32) -> String {
    let low = units::figure(measure, edge(bar));
    let high = units::figure(measure, edge(bar + 1));
    let mut tip = format!("{low} to {high}");

    for Bars { run, shares } in runs {
        let Some(share) = shares.get(&bar) else {
            continue;
        };
        tip.push('\n');
        if n_runs > 1 {
            tip += &format!("{}: ", letter(*run));
        }
        tip += &format!("{share:.2} % of the operations");
    }
    tip
}

/// Returns the value at the lower edge of a bar.
fn edge(bar: i32) -> f64 {
    10f64.powf(f64::from(bar) / BARS)
}

/// Returns the shares of a histogram. Times of zero are in the bar of the lowest other time.
fn shares(histogram: &[(f64, u64)]) -> Shares {
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    let positive = histogram
        .iter()
        .map(|(value, _)| *value)
        .filter(|value| *value > 0.0);
    let least = positive.reduce(f64::min).unwrap_or(1.0);

    let mut shares = Shares::new();
    for (value, count) in histogram {
        if value.is_finite() && *count > 0 {
            let bar = (value.max(least).log10() * BARS).floor() as i32;
            *shares.entry(bar).or_default() += *count as f64 / total as f64 * 100.0;
        }
    }
    shares
}

fn outline(Bars { run, shares }: &Bars, xs: &Axis, ys: &Axis) -> Markup {
    let mut path = String::new();
    let mut last = None;
    for (&bar, &share) in shares {
        // Bars without a gap have one outline, which begins and ends at the axis.
        if last != Some(bar - 1) {
            if last.is_some() {
                path += &format!("V{}", px(BOTTOM));
            }
            path += &format!("M{} {}", px(xs.at(edge(bar))), px(BOTTOM));
        }
        path += &format!("V{}H{}", px(ys.at(share)), px(xs.at(edge(bar + 1))));
        last = Some(bar);
    }
    path += &format!("V{}", px(BOTTOM));

    let color = SERIES[run % SERIES.len()];
    html! {
        @if last.is_some() {
            path fill=(color) fill-opacity="0.1" stroke=(color) stroke-width="1.4"
                stroke-linejoin="round" stroke-dasharray=[dashes(*run)] d=(path) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_keep_the_tail() {
        let shares = shares(&[(0.0, 10), (100.0, 89), (101.0, 900), (1e6, 1)]);
        let sum: f64 = shares.values().sum();
        assert!(
            (sum - 100.0).abs() < 1e-9 && shares.len() == 2,
            "{shares:?}"
        );
        assert!(
            (shares.values().last().expect("a tail") - 0.1).abs() < 1e-9,
            "{shares:?}"
        );
    }

    #[test]
    fn an_empty_histogram_is_drawn() {
        let drawing = draw(Measure::Latency, &[(0, &[]), (1, &[(0.0, 3)])], 2);
        let text = drawing.svg("").into_string();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("B: 100.00 % of the operations"), "{text}");
    }
}
