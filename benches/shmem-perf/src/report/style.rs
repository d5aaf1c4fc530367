//! The styles of series: a color for each operation, and a kind of line and a marker for each run.

use maud::{Markup, html};

use charts::drawing::px;
use charts::palette::{CARD, SERIES};

/// The lengths of dashes and gaps by run. Runs beyond the fifth repeat them, with other markers.
const DASHES: [&str; 5] = ["", "7 4", "2 3", "10 3 2 3", "14 5"];
/// The dashes of floors.
pub const FLOOR_DASHES: &str = "3 3";

/// Returns the dashes of a run's lines; the first one has none.
pub fn dashes(run: usize) -> Option<&'static str> {
    Some(DASHES[run % DASHES.len()]).filter(|dashes| !dashes.is_empty())
}

pub fn letter(run: usize) -> String {
    let letter = char::from(b'A' + (run % 26) as u8);
    match run / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// Returns a run's marker: a circle, a square, a triangle or a diamond.
pub fn marker(run: usize, (x, y): (f64, f64), color: &str, is_hollow: bool) -> Markup {
    let (fill, stroke) = if is_hollow {
        (CARD, Some(color))
    } else {
        (color, None)
    };
    let path = match run % 4 {
        0 => {
            let (x, y) = (px(x), px(y));
            return html! {
                circle cx=(x) cy=(y) r="2.6" fill=(fill) stroke=[stroke] stroke-width="1.4" {}
            };
        }
        1 => format!("M{} {}h5v5h-5z", px(x - 2.5), px(y - 2.5)),
        2 => format!("M{} {}l3.2 5.6h-6.4z", px(x), px(y - 3.5)),
        _ => format!("M{} {}l3.4 3.4l-3.4 3.4l-3.4-3.4z", px(x), px(y - 3.4)),
    };
    html! { path d=(path) fill=(fill) stroke=[stroke] stroke-width="1.4" {} }
}

/// An entry of a legend: the meaning of a color or a kind of line.
pub struct Entry {
    pub color: &'static str,
    pub dashes: Option<&'static str>,
    /// The run whose marker the line has, if it stands for one.
    pub run: Option<usize>,
    pub text: String,
}

impl Entry {
    pub fn of_run(run: usize, color: &'static str, text: String) -> Self {
        Self {
            color,
            dashes: dashes(run),
            run: Some(run),
            text,
        }
    }

    /// Returns a sample of the line, with its upper left corner at this position.
    pub fn swatch(&self, x: f64, y: f64) -> Markup {
        let Self {
            color, dashes, run, ..
        } = self;
        html! {
            svg viewBox="0 0 32 14" x=(px(x)) y=(px(y)) width="32" height="14" aria-hidden="true" {
                path stroke=(color) stroke-width="2" stroke-dasharray=[dashes] d="M1 7H31" {}
                @if let Some(run) = run { (marker(*run, (16.0, 7.0), color, false)) }
            }
        }
    }
}

/// Returns the index of a color for each operation: its index in `kind`, so that an operation has
/// the same color in all charts, unless two operations of this chart would get the same color.
pub fn colors(operations: &[&str], kind: &[String]) -> Vec<usize> {
    let position = |name: &str| kind.iter().position(|other| other == name).unwrap_or(0);
    let own: Vec<usize> = operations
        .iter()
        .map(|name| position(name) % SERIES.len())
        .collect();
    let is_own = |i: usize| own[..i].iter().all(|color| *color != own[i]);
    if (0..own.len()).all(is_own) {
        own
    } else {
        (0..own.len()).map(|i| i % SERIES.len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_keeps_its_color_if_no_other_has_it() {
        let kind = ["put", "get", "p", "g"].map(String::from);
        assert_eq!(colors(&["get", "g"], &kind), [1, 3]);
        assert_eq!(colors(&["get", "get"], &kind), [0, 1]);
    }

    #[test]
    fn runs_have_letters() {
        assert_eq!([0, 25, 26].map(letter), ["A", "Z", "A1"]);
    }
}
