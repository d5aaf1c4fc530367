//! How the single operations of one size are distributed: their share by time, on logarithmic axes, so that the tail is seen.
//!
//! This file must never know which operation is shown.

use super::axis::{Axis, LABEL_HEIGHT};
use super::drawing::{Drawing, label, rule};
use super::markup::{Element, px};
use super::style::{N_COLOURS, dashes, letter};
use crate::record::Measure;
use crate::units;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 26.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 28.0;
/// Classes of times in a power of ten.
const CLASSES: f64 = 20.0;

/// The histograms of runs, each as (value, count), with the place of its run.
pub fn draw(measure: Measure, histograms: &[(usize, &[(f64, u64)])], n_runs: usize) -> Drawing {
    let shares: Vec<(usize, Vec<(i32, f64)>)> =
        histograms.iter().map(|(run, histogram)| (*run, shares(histogram))).collect();
    let all = || shares.iter().flat_map(|(_, shares)| shares.iter());
    let edges = all().flat_map(|(class, _)| [edge(*class), edge(class + 1)]);
    let xs = Axis::log(edges, (LEFT, RIGHT));
    // A bar of the least share still has a height.
    let ys = Axis::log(all().map(|(_, share)| share / 1.6).chain([100.0]), (BOTTOM, TOP));
    let mut svg = Drawing::new(WIDTH, HEIGHT);
    for value in ys.ticks(LABEL_HEIGHT) {
        let text = label(LEFT - 6.0, ys.at(value) + 4.0, "tick", &format!("{value} %"));
        svg = svg
            .child(rule("grid", (LEFT, ys.at(value)), (RIGHT, ys.at(value))))
            .child(text.with("text-anchor", "end"));
    }
    for value in xs.ticks(50.0) {
        let text = label(xs.at(value), BOTTOM + 17.0, "tick", &units::tick(measure, value));
        svg = svg
            .child(rule("grid", (xs.at(value), TOP), (xs.at(value), BOTTOM)))
            .child(text.with("text-anchor", "middle"));
    }
    svg = svg.child(rule("frame", (LEFT, BOTTOM), (RIGHT, BOTTOM)));
    for (run, shares) in &shares {
        svg = svg.children(outline(*run, shares, &xs, &ys));
    }
    svg.children(strips(measure, &shares, &xs, n_runs))
}

/// The lower edge of a class.
fn edge(class: i32) -> f64 {
    10f64.powf(f64::from(class) / CLASSES)
}

/// Percent by class, growing. Times of zero lie in the class of the least other one.
fn shares(histogram: &[(f64, u64)]) -> Vec<(i32, f64)> {
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    let positive = histogram.iter().map(|(value, _)| *value).filter(|value| *value > 0.0);
    let least = positive.fold(f64::MAX, f64::min);
    let mut shares: Vec<(i32, f64)> = Vec::new();
    for (value, count) in histogram.iter().filter(|(value, _)| value.is_finite()) {
        let value = if *value > 0.0 {
            *value
        } else if least < f64::MAX {
            least
        } else {
            1.0
        };
        let class = (value.log10() * CLASSES).floor() as i32;
        let share = *count as f64 / total.max(1) as f64 * 100.0;
        match shares.iter_mut().find(|(other, _)| *other == class) {
            Some((_, sum)) => *sum += share,
            None => shares.push((class, share)),
        }
    }
    shares.retain(|(_, share)| *share > 0.0);
    shares.sort_by_key(|(class, _)| *class);
    shares
}

fn outline(run: usize, shares: &[(i32, f64)], xs: &Axis, ys: &Axis) -> Vec<Element> {
    let mut path = String::new();
    for neighbours in shares.chunk_by(|a, b| a.0 + 1 == b.0) {
        path += &format!("M{} {}", px(xs.at(edge(neighbours[0].0))), px(BOTTOM));
        for (class, share) in neighbours {
            path += &format!("V{}H{}", px(ys.at(*share)), px(xs.at(edge(class + 1))));
        }
        path += &format!("V{}", px(BOTTOM));
    }
    let colour = run % N_COLOURS;
    let line = Element::new("path").class(format!("line thin c{colour}")).with("d", &path);
    let line = match dashes(run) {
        "" => line,
        dashes => line.with("stroke-dasharray", dashes),
    };
    vec![Element::new("path").class(format!("band c{colour}")).with("d", &path), line]
}

fn strips(
    measure: Measure,
    shares: &[(usize, Vec<(i32, f64)>)],
    xs: &Axis,
    n_runs: usize,
) -> Vec<Element> {
    let mut classes: Vec<i32> =
        shares.iter().flat_map(|(_, shares)| shares.iter().map(|(class, _)| *class)).collect();
    classes.sort_unstable();
    classes.dedup();
    let strip = |class: &i32| {
        let [low, high] = [edge(*class), edge(class + 1)];
        let mut tip =
            format!("{} to {}", units::figure(measure, low), units::figure(measure, high));
        for (run, shares) in shares {
            let run = if n_runs > 1 { format!("{}: ", letter(*run)) } else { String::new() };
            for (_, share) in shares.iter().filter(|(other, _)| other == class) {
                tip += &format!("\n{run}{share:.2} % of the operations");
            }
        }
        Element::new("rect")
            .class("hit")
            .with("x", px(xs.at(low)))
            .with("y", px(TOP))
            .with("width", px(xs.at(high) - xs.at(low)))
            .with("height", px(BOTTOM - TOP))
            .with("data-tip", tip)
    };
    classes.iter().map(strip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_keep_the_tail() {
        let shares = shares(&[(0.0, 10), (100.0, 89), (101.0, 900), (1e6, 1)]);
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        assert!((sum - 100.0).abs() < 1e-9 && shares.len() == 2, "{shares:?}");
        assert!((shares[1].1 - 0.1).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn an_empty_histogram_is_drawn() {
        let text = draw(Measure::Latency, &[(0, &[]), (1, &[(0.0, 3)])], 2).svg().to_string();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("B: 100.00 % of the operations"), "{text}");
    }
}
