//! What tells series apart: a colour for each operation, and for each run a kind of line and of marker.
//!
//! The colours themselves are in `drawing.css`, where they differ by light and dark. This file must never know what a figure is.

use super::markup::{Element, px};

/// The style sheet of all drawings.
pub const DRAWINGS: &str = include_str!("drawing.css");

/// Colours that a chart can tell apart; they are the classes `c0` to `c5`.
pub const N_COLOURS: usize = 6;

/// Lengths of dashes and gaps, by run; further runs begin again, with other markers.
const DASHES: [&str; 5] = ["", "7 4", "2 3", "10 3 2 3", "14 5"];
/// Kinds of markers, by run.
const MARKERS: usize = 4;

/// The dashes of a run's lines.
pub fn dashes(run: usize) -> &'static str {
    DASHES[run % DASHES.len()]
}

/// The letter of a run.
pub fn letter(run: usize) -> String {
    let letter = char::from(b'A' + (run % 26) as u8);
    match run / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// A run's marker: a circle, a square, a triangle or a diamond.
pub fn marker(run: usize, x: f64, y: f64, colour: &str) -> Element {
    let path = match run % MARKERS {
        0 => {
            return Element::new("circle")
                .class(format!("dot {colour}"))
                .with("cx", px(x))
                .with("cy", px(y))
                .with("r", 2.6);
        }
        1 => format!("M{} {}h5v5h-5z", px(x - 2.5), px(y - 2.5)),
        2 => format!("M{} {}l3.2 5.6h-6.4z", px(x), px(y - 3.5)),
        _ => format!("M{} {}l3.4 3.4l-3.4 3.4l-3.4-3.4z", px(x), px(y - 3.4)),
    };
    Element::new("path").class(format!("dot {colour}")).with("d", path)
}

/// A piece of line as a legend shows it.
pub fn swatch(classes: &str, run: Option<usize>) -> Element {
    let line = Element::new("path").class(format!("line {classes}")).with("d", "M1 7H31");
    let line = match run.map(dashes) {
        Some("") | None => line,
        Some(dashes) => line.with("stroke-dasharray", dashes),
    };
    let svg = Element::new("svg")
        .class("swatch")
        .with("viewBox", "0 0 32 14")
        .with("width", 32)
        .with("height", 14)
        .with("aria-hidden", true)
        .child(line);
    match run {
        Some(run) => svg.child(marker(run, 16.0, 7.0, classes)),
        None => svg,
    }
}

/// A colour for each name: that of its place among the names of its kind, so that an operation looks alike in all charts, unless two of
/// them would look alike.
pub fn colours(operations: &[&str], kind: &[String]) -> Vec<usize> {
    let place = |name: &str| kind.iter().position(|other| other == name).unwrap_or(0);
    let own: Vec<usize> = operations.iter().map(|name| place(name) % N_COLOURS).collect();
    let is_own = |i: usize| own[..i].iter().all(|colour| *colour != own[i]);
    match (0..own.len()).all(is_own) {
        true => own,
        false => (0..own.len()).map(|i| i % N_COLOURS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_keeps_its_colour_if_no_other_has_it() {
        let kind = ["put", "get", "p", "g"].map(String::from);
        assert_eq!(colours(&["get", "g"], &kind), [1, 3]);
        assert_eq!(colours(&["get", "get"], &kind), [0, 1]);
    }

    #[test]
    fn runs_have_letters() {
        assert_eq!([0, 25, 26].map(letter), ["A", "Z", "A1"]);
    }
}
