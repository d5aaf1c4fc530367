//! Curves by size or by team: a line through the medians, a band for the spread, and values under the pointer.
//!
//! This file must never know which series a chart is made of.

use super::axis::{Axis, Doubling, LABEL_HEIGHT};
use super::drawing::{Drawing, label, rule};
use super::markup::{Element, px, shortened};
use super::style::{dashes, letter, marker};
use crate::record::Measure;
use crate::units;

/// The width of every drawing; a page scales it a little.
pub const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 68.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 46.0;
/// What a label of the horizontal axis needs.
const LABEL_WIDTH: f64 = 46.0;
/// What the names of floors need at the right, and how many letters that is.
const FLOOR_WIDTH: f64 = 146.0;
const FLOOR_LETTERS: usize = 20;

/// What a chart's horizontal axis counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// Bytes of a transfer.
    Bytes,
    /// Members of a team.
    Team,
}

/// One value of a curve.
#[derive(Clone, Copy)]
pub struct Spot {
    /// Bytes or members.
    pub x: u64,
    /// The median.
    pub value: f64,
    /// Between which figures most lie.
    pub spread: (f64, f64),
    /// How many values it is of.
    pub n: u64,
    /// Whether the time limit cut it short.
    pub is_late: bool,
    /// Whether it is of a floor that lies above what it should bound.
    pub is_invalid: bool,
}

impl Spot {
    /// A value that is as it should be.
    #[cfg(test)]
    pub fn at(x: u64, value: f64) -> Self {
        Self { x, value, spread: (value, value), n: 1, is_late: false, is_invalid: false }
    }
}

/// One operation of one run.
pub struct Trace {
    /// The operation.
    pub name: String,
    /// Its colour; a floor is grey.
    pub colour: Option<usize>,
    /// The run's place.
    pub run: usize,
    /// By size.
    pub spots: Vec<Spot>,
}

impl Trace {
    /// The class of its colour.
    pub fn class(&self) -> String {
        self.colour.map_or("floor".into(), |colour| format!("c{colour}"))
    }
}

/// A chart as a drawing.
pub fn draw(measure: Measure, across: Across, curves: &[Trace], n_runs: usize) -> Drawing {
    let has_floors = curves.iter().any(|curve| curve.colour.is_none());
    let right = WIDTH - if has_floors { FLOOR_WIDTH } else { 14.0 };
    let spots = || curves.iter().flat_map(|curve| curve.spots.iter());
    let xs = Doubling::new(spots().map(|spot| spot.x), (LEFT + 8.0, right - 8.0));
    let values = spots().flat_map(|spot| [spot.value, spot.spread.0, spot.spread.1]);
    let ys = match measure {
        Measure::Overlap => Axis::linear(std::iter::once(100.0), (BOTTOM, TOP)),
        _ => Axis::log(values, (BOTTOM, TOP)),
    };
    let mut svg = Drawing::new(WIDTH, HEIGHT).child(frame(measure, across, &xs, &ys, right));
    if !spots().any(|spot| ys.has(spot.value)) {
        let nothing =
            label((LEFT + right) / 2.0, (TOP + BOTTOM) / 2.0, "nothing", "there are no values");
        return svg.child(nothing.with("text-anchor", "middle"));
    }
    for curve in curves.iter().filter(|curve| curve.colour.is_some()) {
        svg = svg.children(band(curve, &xs, &ys));
    }
    // Floors first, so that they lie below.
    let (floors, others): (Vec<&Trace>, Vec<&Trace>) =
        curves.iter().partition(|curve| curve.colour.is_none());
    for curve in floors.iter().chain(&others) {
        svg = svg.children(line(curve, &xs, &ys, n_runs));
    }
    svg.children(floor_names(&floors, &xs, &ys, right, n_runs)).children(strips(
        measure,
        across,
        curves,
        &xs,
        (LEFT, right),
        n_runs,
    ))
}

fn frame(measure: Measure, across: Across, xs: &Doubling, ys: &Axis, right: f64) -> Element {
    let mut frame = Element::new("g");
    for value in ys.ticks(LABEL_HEIGHT) {
        let y = ys.at(value);
        let text = label(LEFT - 7.0, y + 4.0, "tick", &units::tick(measure, value));
        frame =
            frame.child(rule("grid", (LEFT, y), (right, y))).child(text.with("text-anchor", "end"));
    }
    for value in xs.ticks(LABEL_WIDTH) {
        let x = xs.at(value);
        let text = match across {
            Across::Bytes => units::size(value),
            Across::Team => value.to_string(),
        };
        let text = label(x, BOTTOM + 17.0, "tick", &text).with("text-anchor", "middle");
        frame = frame.child(rule("grid", (x, TOP), (x, BOTTOM))).child(text);
    }
    let title = match across {
        Across::Bytes => "bytes",
        Across::Team => "PEs in the team",
    };
    let title = label((LEFT + right) / 2.0, BOTTOM + 38.0, "axis", title);
    let corner = format!("M{} {}V{}H{}", px(LEFT), px(TOP), px(BOTTOM), px(right));
    frame
        .child(Element::new("path").class("frame").with("d", corner))
        .child(title.with("text-anchor", "middle"))
}

/// Neighbouring values that have a place, where a missing one ends a piece.
fn pieces<'a>(curve: &'a Trace, ys: &Axis) -> Vec<&'a [Spot]> {
    let pieces = curve.spots.split(|spot| !ys.has(spot.value));
    pieces.filter(|piece| !piece.is_empty()).collect()
}

fn band(curve: &Trace, xs: &Doubling, ys: &Axis) -> Vec<Element> {
    let of = |piece: &[Spot]| {
        let there = piece.iter().map(|spot| (xs.at(spot.x), ys.at(spot.spread.1)));
        let back = piece.iter().rev().map(|spot| (xs.at(spot.x), ys.at(spot.spread.0)));
        let class = format!("band {}", curve.class());
        Element::new("path").class(class).with("d", path(there.chain(back)) + "z")
    };
    pieces(curve, ys).into_iter().filter(|piece| piece.len() > 1).map(of).collect()
}

/// The marker of a value: hollow if the time limit cut it short, a cross if it is no floor.
pub fn mark(run: usize, (x, y): (f64, f64), spot: &Spot, class: &str) -> Element {
    match () {
        () if spot.is_invalid => {
            let path = format!("M{} {}l7 7m0-7l-7 7", px(x - 3.5), px(y - 3.5));
            Element::new("path").class("cross").with("d", path)
        }
        () if spot.is_late => marker(run, x, y, &format!("late {class}")),
        () => marker(run, x, y, class),
    }
}

fn line(curve: &Trace, xs: &Doubling, ys: &Axis, n_runs: usize) -> Vec<Element> {
    let class = curve.class();
    let mut parts = Vec::new();
    for piece in pieces(curve, ys) {
        let places = piece.iter().map(|spot| (xs.at(spot.x), ys.at(spot.value)));
        let line = Element::new("path").class(format!("line {class}")).with("d", path(places));
        parts.push(match (curve.colour, dashes(curve.run)) {
            (None, _) | (_, "") => line,
            (_, dashes) => line.with("stroke-dasharray", dashes),
        });
        // Floors of several runs differ by their markers.
        let is_marked = |spot: &&Spot| {
            curve.colour.is_some() || piece.len() == 1 || n_runs > 1 || spot.is_invalid
        };
        let dot = |spot: &Spot| mark(curve.run, (xs.at(spot.x), ys.at(spot.value)), spot, &class);
        parts.extend(piece.iter().filter(is_marked).map(dot));
    }
    parts
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in places {
        path.push(if path.is_empty() { 'M' } else { 'L' });
        path += &format!("{} {}", px(x), px(y));
    }
    path
}

/// The names of floors at the right end, with the letters of several runs, moved apart where they would lie on each other.
fn floor_names(
    floors: &[&Trace],
    xs: &Doubling,
    ys: &Axis,
    right: f64,
    n_runs: usize,
) -> Vec<Element> {
    let mut ends: Vec<(f64, f64, String)> = Vec::new();
    for floor in floors {
        let last = floor.spots.iter().rev().find(|spot| ys.has(spot.value));
        let letter = if n_runs > 1 { format!("{} ", letter(floor.run)) } else { String::new() };
        let name = format!("{letter}{}", floor.name);
        ends.extend(last.map(|last| (ys.at(last.value), xs.at(last.x), name)));
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = f64::MIN;
    for end in &mut ends {
        end.0 = end.0.max(above + 14.0);
        above = end.0;
    }
    let mut below = BOTTOM;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(below);
        below = end.0 - 14.0;
    }
    let name = |(y, _, name): (f64, f64, String)| {
        label(right + 2.0, y + 4.0, "floor-name", &shortened(&name, FLOOR_LETTERS))
    };
    ends.into_iter().map(name).collect()
}

/// Invisible strips, one for each place of the horizontal axis, that tell the values there.
fn strips(
    measure: Measure,
    across: Across,
    curves: &[Trace],
    xs: &Doubling,
    (left, right): (f64, f64),
    n_runs: usize,
) -> Vec<Element> {
    let mut places: Vec<u64> =
        curves.iter().flat_map(|curve| curve.spots.iter().map(|spot| spot.x)).collect();
    places.sort_unstable();
    places.dedup();
    let edge = |i: usize| match i {
        0 => left,
        i if i == places.len() => right,
        i => (xs.at(places[i - 1]) + xs.at(places[i])) / 2.0,
    };
    let strip = |(i, x): (usize, &u64)| {
        let mut tip = match across {
            Across::Bytes if *x == 1 => "1 byte".into(),
            Across::Bytes => format!("{} bytes", units::size(*x)),
            Across::Team => format!("team of {x}"),
        };
        for curve in curves {
            for spot in curve.spots.iter().filter(|spot| spot.x == *x) {
                tip += &format!("\n{}", told(measure, &curve.name, curve.run, spot, n_runs));
            }
        }
        Element::new("rect")
            .class("hit")
            .with("x", px(edge(i)))
            .with("y", px(TOP))
            .with("width", px(edge(i + 1) - edge(i)))
            .with("height", px(BOTTOM - TOP))
            .with("data-tip", tip)
    };
    places.iter().enumerate().map(strip).collect()
}

/// A value and its spread in words, with the run's letter where there are several.
pub fn told(measure: Measure, name: &str, run: usize, spot: &Spot, n_runs: usize) -> String {
    let run = if n_runs > 1 { format!("{} ", letter(run)) } else { String::new() };
    let [value, low, high] =
        [spot.value, spot.spread.0, spot.spread.1].map(|value| units::figure(measure, value));
    let late = if spot.is_late { ", time up" } else { "" };
    let invalid = if spot.is_invalid { ", invalid as a floor" } else { "" };
    format!("{run}{name}: {value} ({low} to {high}), n {}{late}{invalid}", spot.n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(spots: &[(u64, f64)]) -> Trace {
        let spot = |(x, value): &(u64, f64)| Spot {
            spread: (*value, value * 2.0),
            ..Spot::at(*x, *value)
        };
        Trace {
            name: "put".into(),
            colour: Some(0),
            run: 1,
            spots: spots.iter().map(spot).collect(),
        }
    }

    fn drawn(curves: &[Trace]) -> String {
        draw(Measure::Latency, Across::Bytes, curves, 2).svg().to_string()
    }

    #[test]
    fn nothing_and_a_single_point_are_drawn() {
        assert!(drawn(&[]).contains("there are no values"));
        assert!(drawn(&[curve(&[])]).contains("there are no values"));
        assert!(drawn(&[curve(&[(8, 0.0)])]).contains("there are no values"));
        let single = drawn(&[curve(&[(8, 100.0)])]);
        assert!(
            single.contains("class=\"dot c0\"") && !single.contains("class=\"band"),
            "{single}"
        );
    }

    #[test]
    fn a_value_of_nothing_ends_a_piece() {
        let text = drawn(&[curve(&[(1, 5.0), (2, 6.0), (4, 0.0), (8, 7.0), (16, 8.0)])]);
        assert_eq!(text.matches("class=\"line c0\"").count(), 2);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn the_pointer_finds_the_values() {
        let text = drawn(&[curve(&[(1024, 1500.0), (2048, 2500.0)])]);
        assert!(
            text.contains("data-tip=\"1 Ki bytes&#10;B put: 1.50 us (1.50 us to 3.00 us), n 1\""),
            "{text}"
        );
        assert!(text.contains(">2 us</text>") && text.contains(">2 Ki</text>"), "{text}");
    }

    #[test]
    fn floors_of_several_runs_have_markers_of_their_own_and_invalid_ones_a_cross() {
        let floor = |run, is_invalid| {
            let spot = |x| Spot { is_invalid, ..Spot::at(x, 5.0) };
            Trace { colour: None, run, spots: vec![spot(8), spot(64)], ..curve(&[]) }
        };
        let floors = drawn(&[floor(0, false), floor(1, false)]);
        assert_eq!(floors.matches("<circle class=\"dot floor\"").count(), 2, "{floors}");
        assert_eq!(floors.matches("<path class=\"dot floor\"").count(), 2, "{floors}");
        assert!(drawn(&[floor(0, true)]).matches("class=\"cross\"").count() == 2);
        let late = Trace { spots: vec![Spot { is_late: true, ..Spot::at(8, 5.0) }], ..curve(&[]) };
        assert!(drawn(&[late]).contains("class=\"dot late c0\""));
    }

    #[test]
    fn names_of_floors_keep_apart() {
        let floor =
            |name: &str| Trace { name: name.into(), colour: None, ..curve(&[(1, 5.0), (8, 5.0)]) };
        let (xs, ys) = (
            Doubling::new([1u64, 8].into_iter(), (0.0, 9.0)),
            Axis::log([5.0].into_iter(), (BOTTOM, TOP)),
        );
        let floors = [Trace { run: 0, ..floor("a") }, floor("a")];
        let names = floor_names(&floors.iter().collect::<Vec<_>>(), &xs, &ys, 9.0, 2);
        let places: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert!(places[0].contains(">A a<") && places[1].contains(">B a<"), "{places:?}");
        assert!(places[0] != places[1].replace("B a", "A a"), "{places:?}");
    }
}
