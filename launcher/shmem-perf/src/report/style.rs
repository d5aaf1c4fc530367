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
    match DASHES[run % DASHES.len()] {
        "" => None,
        dashes => Some(dashes),
    }
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
    let fill = if is_hollow { CARD } else { color };
    let stroke = if is_hollow { Some(color) } else { None };
    let path = match run % 4 {
        0 => {
            return html! {
                circle cx=(px(x)) cy=(px(y)) r="2.6" fill=(fill) stroke=[stroke]
                    stroke-width="1.4" {}
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
        html! {
            svg viewBox="0 0 32 14" x=(px(x)) y=(px(y)) width="32" height="14" aria-hidden="true" {
                path stroke=(self.color) stroke-width="2" stroke-dasharray=[self.dashes]
                    d="M1 7H31" {}
                @if let Some(run) = self.run { (marker(run, (16.0, 7.0), self.color, false)) }
            }
        }
    }
}

/// Returns the index of a color for each operation: its index in `kind`, so that an operation has
/// the same color in all charts, unless two operations of this chart would get the same color.
pub fn colors(operations: &[&str], kind: &[String]) -> Vec<usize> {
    let mut colors = Vec::new();
    for operation in operations {
        let index = kind.iter().position(|other| other == operation);
        let color = index.unwrap_or(0) % SERIES.len();
        if colors.contains(&color) {
            return (0..operations.len()).map(|i| i % SERIES.len()).collect();
        }
        colors.push(color);
    }
    colors
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
