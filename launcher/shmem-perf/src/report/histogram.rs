//! The histogram of the times of an operation. Both axes are logarithmic, so that the tail is
//! visible.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::axis::{Axis, LABEL_HEIGHT};
use super::style::{dashes, letter};
use crate::record::{Measure, ValueCount};
use crate::units;
use charts::drawing::{Drawing, Tick, hit, px, rule, ticks_below, ticks_beside};
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

/// The histogram of one run, as its record has it.
pub struct RunHistogram<'a> {
    /// The index of the run.
    pub run: usize,
    pub counts: &'a [ValueCount],
}

/// Draws the histograms of runs.
pub fn draw(measure: Measure, histograms: &[RunHistogram], n_runs: usize) -> Drawing {
    let mut runs = Vec::new();
    let mut bars = BTreeSet::new();
    for histogram in histograms {
        let shares = shares(histogram.counts);
        bars.extend(shares.keys().copied());
        runs.push(Bars {
            run: histogram.run,
            shares,
        });
    }
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
    let mut beside = Vec::new();
    for y in ys.ticks(LABEL_HEIGHT) {
        beside.push(Tick {
            position: ys.at(y),
            text: format!("{y} %"),
        });
    }

    let mut below = Vec::new();
    for x in xs.ticks(50.0) {
        below.push(Tick {
            position: xs.at(x),
            text: units::tick(measure, x),
        });
    }

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

    for bars in runs {
        if let Some(share) = bars.shares.get(&bar) {
            tip.push('\n');
            if n_runs > 1 {
                tip += &format!("{}: ", letter(bars.run));
            }
            tip += &format!("{share:.2} % of the operations");
        }
    }
    tip
}

/// Returns the value at the lower edge of a bar.
fn edge(bar: i32) -> f64 {
    10f64.powf(f64::from(bar) / BARS)
}

/// Returns the shares of a histogram. Times of zero are in the bar of the lowest other time.
fn shares(histogram: &[ValueCount]) -> Shares {
    let total: u64 = histogram.iter().map(|one| one.count).sum();
    let values = histogram.iter().map(|one| one.value);
    let least = values.filter(|value| *value > 0.0).reduce(f64::min);

    let mut shares = Shares::new();
    for &ValueCount { value, count } in histogram {
        if value.is_finite() && count > 0 {
            // A logarithmic axis has no place for 0.
            let shown = value.max(least.unwrap_or(1.0));
            let bar = (shown.log10() * BARS).floor() as i32;
            *shares.entry(bar).or_default() += count as f64 / total as f64 * 100.0;
        }
    }
    shares
}

fn outline(bars: &Bars, xs: &Axis, ys: &Axis) -> Markup {
    let mut path = String::new();
    let mut last = None;
    for (&bar, &share) in &bars.shares {
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

    let color = SERIES[bars.run % SERIES.len()];
    html! {
        @if last.is_some() {
            path fill=(color) fill-opacity="0.1" stroke=(color) stroke-width="1.4"
                stroke-linejoin="round" stroke-dasharray=[dashes(bars.run)] d=(path) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(value: f64, count: u64) -> ValueCount {
        ValueCount { value, count }
    }

    #[test]
    fn shares_add_up_and_keep_the_tail() {
        let shares = shares(&[
            counted(0.0, 10),
            counted(100.0, 89),
            counted(101.0, 900),
            counted(1e6, 1),
        ]);
        assert_eq!(shares.len(), 2, "{shares:?}");

        let sum: f64 = shares.values().sum();
        assert!((sum - 100.0).abs() < 1e-9, "{shares:?}");
        let tail = shares.values().last().expect("a tail");
        assert!((tail - 0.1).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn an_empty_histogram_is_drawn() {
        let empty = RunHistogram {
            run: 0,
            counts: &[],
        };
        let zeros = RunHistogram {
            run: 1,
            counts: &[counted(0.0, 3)],
        };
        let drawing = draw(Measure::Latency, &[empty, zeros], 2);

        let text = drawing.svg("").into_string();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("B: 100.00 % of the operations"), "{text}");
    }
}
