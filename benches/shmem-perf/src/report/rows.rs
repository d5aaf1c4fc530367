//! Values of one size: for each operation and run a row with a dot and its spread, on a logarithmic axis, on which a rate over TCP and
//! one of shared memory are both seen.
//!
//! This file must never know which series a chart is made of.

use super::axis::Axis;
use super::chart::{Spot, Trace, WIDTH, mark, told};
use super::drawing::{Drawing, label, rule};
use super::markup::{Element, px, shortened};
use super::style::letter;
use crate::record::Measure;
use crate::units;

const LEFT: f64 = 218.0;
const RIGHT: f64 = WIDTH - 86.0;
const TOP: f64 = 6.0;
const ROW: f64 = 18.0;
/// What lies between two operations.
const GAP: f64 = 7.0;
const LETTERS: usize = 30;

/// The rows of some curves, each of which has one spot. Curves of the same name follow each other.
pub fn draw(measure: Measure, curves: &[Trace], n_runs: usize) -> Drawing {
    let groups: Vec<&[Trace]> = curves.chunk_by(|a, b| a.name == b.name).collect();
    let height = |group: &&[Trace]| group.len() as f64 * ROW + GAP;
    let bottom = TOP + groups.iter().map(height).sum::<f64>();
    let spots = curves.iter().filter_map(|curve| curve.spots.first());
    let place = (LEFT, RIGHT);
    let axis = Axis::log(spots.flat_map(|spot| [spot.value, spot.spread.0, spot.spread.1]), place);
    let mut svg = Drawing::new(WIDTH, bottom + 26.0);
    for value in axis.ticks(48.0) {
        let x = axis.at(value);
        let text = label(x, bottom + 17.0, "tick", &units::tick(measure, value));
        svg = svg
            .child(rule("grid", (x, TOP), (x, bottom)))
            .child(text.with("text-anchor", "middle"));
    }
    let mut y = TOP + GAP / 2.0;
    for group in groups {
        let middle = y + group.len() as f64 * ROW / 2.0 + 4.0;
        let name = label(LEFT - 10.0, middle, "name", &shortened(&group[0].name, LETTERS));
        svg = svg.child(name.with("text-anchor", "end"));
        for curve in group {
            if let Some(spot) = curve.spots.first() {
                svg = svg.children(row(measure, &axis, curve, spot, y, n_runs));
            }
            y += ROW;
        }
        y += GAP;
    }
    svg.child(rule("frame", (LEFT, TOP), (LEFT, bottom)))
}

fn row(
    measure: Measure,
    axis: &Axis,
    curve: &Trace,
    spot: &Spot,
    top: f64,
    n_runs: usize,
) -> Vec<Element> {
    let (class, middle) = (curve.class(), top + ROW / 2.0);
    let mut parts = Vec::new();
    if axis.has(spot.value) {
        let [low, high] = [spot.spread.0, spot.spread.1].map(|value| (axis.at(value), middle));
        parts.push(rule(&format!("spread {class}"), low, high));
        parts.push(mark(curve.run, (axis.at(spot.value), middle), spot, &class));
    }
    let run = if n_runs > 1 { format!("{} ", letter(curve.run)) } else { String::new() };
    let figure = format!("{run}{}", units::figure(measure, spot.value));
    parts.push(label(RIGHT + 10.0, middle + 4.0, "value", &figure));
    parts.push(
        Element::new("rect")
            .class("hit")
            .with("x", 0)
            .with("y", px(top))
            .with("width", px(WIDTH))
            .with("height", px(ROW))
            .with("data-tip", told(measure, &curve.name, curve.run, spot, n_runs)),
    );
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, run: usize, value: f64) -> Trace {
        let spot = Spot { spread: (value * 0.9, value * 1.5), ..Spot::at(8, value) };
        Trace { name: name.into(), colour: Some(1), run, spots: vec![spot] }
    }

    fn drawn(measure: Measure, curves: &[Trace]) -> String {
        draw(measure, curves, 2).svg().to_string()
    }

    #[test]
    fn a_rate_that_is_a_thousandth_of_another_is_seen_with_its_spread() {
        let text = drawn(Measure::MessageRate, &[curve("put", 0, 4e8), curve("put", 1, 4e5)]);
        let places: Vec<f64> = text
            .split("class=\"spread c1\" d=\"M")
            .skip(1)
            .map(|rest| rest.split(' ').next().expect("a place").parse().expect("a number"))
            .collect();
        assert_eq!(places.len(), 2, "{text}");
        assert!(LEFT < places[1] && places[1] + 100.0 < places[0], "{places:?}");
        assert!(text.contains(">B 400 k/s</text>"), "{text}");
    }

    #[test]
    fn a_row_without_a_value_or_a_chart_without_rows_is_drawn() {
        let empty = Trace { spots: Vec::new(), ..curve("put", 0, 1.0) };
        let text = drawn(Measure::Latency, &[empty, curve("get", 0, 0.0)]);
        assert!(text.contains(">put</text>") && text.contains(">A 0 ns</text>"), "{text}");
        assert!(!drawn(Measure::Latency, &[]).contains("NaN"));
    }
}
