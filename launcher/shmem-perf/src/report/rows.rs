//! A chart of values at a single size: a row for each operation and run, with a dot for the median
//! and a line for the spread, on a logarithmic axis.

use maud::{Markup, html};

use super::axis::Axis;
use super::chart::WIDTH;
use super::curves::{Spot, Trace};
use crate::record::Measure;
use crate::units;
use charts::drawing::{Drawing, Tick, hit, label, px, rule, shortened, ticks_below};
use charts::palette::{INK, SOFT};

const LEFT: f64 = 218.0;
const RIGHT: f64 = WIDTH - 86.0;
const TOP: f64 = 6.0;
const ROW: f64 = 18.0;
/// The gap between two operations.
const GAP: f64 = 7.0;
const LETTERS: usize = 30;
/// From the middle of a row down to the baseline of its text.
const BASELINE: f64 = 4.0;

/// Draws the first value of each curve. Curves with the same name must follow each other.
pub fn draw(measure: Measure, curves: &[Trace], n_runs: usize) -> Drawing {
    let groups: Vec<&[Trace]> = curves.chunk_by(|a, b| a.name == b.name).collect();
    let bottom = TOP + curves.len() as f64 * ROW + groups.len() as f64 * GAP;

    let spots = curves.iter().filter_map(|curve| curve.spots.first());
    let values = spots.flat_map(|spot| [spot.value, spot.low, spot.high]);
    let axis = Axis::log(values, (LEFT, RIGHT));
    let mut ticks = Vec::new();
    for x in axis.ticks(48.0) {
        ticks.push(Tick {
            position: axis.at(x),
            text: units::tick(measure, x),
        });
    }

    let (rows, names) = lay_out(&groups);
    let content = html! {
        (ticks_below(&ticks, (TOP, bottom)))
        @for name in names { (name) }
        @for Row { curve, spot, top } in &rows {
            @let middle = top + ROW / 2.0;
            @if axis.has(spot.value) { (dot(&axis, curve, spot, middle)) }
            @let value = curve.lettered(&units::figure(measure, spot.value), n_runs);
            (label((RIGHT + 10.0, middle + BASELINE), "start", INK, &value))
        }
        (rule(SOFT, (LEFT, TOP), (LEFT, bottom)))
    };

    let hits = html! {
        @for Row { curve, spot, top } in &rows {
            (hit((0.0, WIDTH), (*top, top + ROW), &curve.words(measure, spot, n_runs)))
        }
    };

    Drawing {
        width: WIDTH,
        height: bottom + 26.0,
        content,
        hits,
    }
}

/// The row of an operation in one run.
struct Row<'a> {
    curve: &'a Trace,
    spot: &'a Spot,
    /// The y coordinate of its upper edge.
    top: f64,
}

/// Returns the rows from the top down, and the names of the operations.
fn lay_out<'a>(groups: &[&'a [Trace]]) -> (Vec<Row<'a>>, Vec<Markup>) {
    let mut rows = Vec::new();
    let mut names = Vec::new();
    let mut y = TOP + GAP / 2.0;
    for group in groups {
        // The runs of an operation have its name once, beside the middle of their rows.
        let middle = y + group.len() as f64 * ROW / 2.0;
        let name = shortened(&group[0].name, LETTERS);
        names.push(label((LEFT - 10.0, middle + BASELINE), "end", INK, &name));

        for curve in *group {
            if let Some(spot) = curve.spots.first() {
                rows.push(Row {
                    curve,
                    spot,
                    top: y,
                });
            }
            y += ROW;
        }
        y += GAP;
    }
    (rows, names)
}

fn dot(axis: &Axis, curve: &Trace, spot: &Spot, y: f64) -> Markup {
    let low = px(axis.at(spot.low));
    let high = px(axis.at(spot.high));
    let spread = format!("M{low} {y}H{high}", y = px(y));
    html! {
        path stroke=(curve.color()) stroke-width="1.5" stroke-opacity="0.65" d=(spread) {}
        (curve.mark((axis.at(spot.value), y), spot))
    }
}

#[cfg(test)]
mod tests {
    use super::super::curves::tests::trace;
    use super::*;

    fn drawn(measure: Measure, curves: &[Trace]) -> String {
        draw(measure, curves, 2).svg("").into_string()
    }

    #[test]
    fn a_rate_that_is_a_thousandth_of_another_is_seen_with_its_spread() {
        let fast = Trace {
            run: 0,
            ..trace("put", &[(8, 4e8)])
        };
        let text = drawn(Measure::MessageRate, &[fast, trace("put", &[(8, 4e5)])]);
        let spreads = text.split("stroke-opacity").skip(1);
        let start = |rest: &str| rest.split(" d=\"M").nth(1)?.split(' ').next()?.parse().ok();
        let places: Vec<f64> = spreads.filter_map(start).collect();
        assert_eq!(places.len(), 2, "{text}");
        assert!(
            LEFT < places[1] && places[1] + 100.0 < places[0],
            "{places:?}"
        );
        assert!(text.contains(">B 400 k/s</text>"), "{text}");
    }

    #[test]
    fn a_row_without_a_value_or_a_chart_without_rows_is_drawn() {
        let curves = [
            trace("put", &[]),
            Trace {
                run: 0,
                ..trace("get", &[(8, 0.0)])
            },
        ];
        let text = drawn(Measure::Latency, &curves);
        assert!(
            text.contains(">put</text>") && text.contains(">A 0 ns</text>"),
            "{text}"
        );
        assert!(!drawn(Measure::Latency, &[]).contains("NaN"));
    }
}
