//! The points of a series in a chart: a value for each size or team, with its spread.

use maud::{Markup, html};

use super::style::{letter, marker};
use crate::record::Measure;
use crate::units;
use charts::drawing::px;
use charts::palette::{FLOOR, RED, SERIES};

/// One value.
#[derive(Clone, Copy)]
pub struct Spot {
    /// Bytes or members.
    pub x: u64,
    /// The median.
    pub value: f64,
    /// The range of most values.
    pub spread: (f64, f64),
    /// The number of values.
    pub n: u64,
    /// True if the time limit cut it short.
    pub is_late: bool,
    /// True if it is of a floor that lies above what it should bound.
    pub is_invalid: bool,
}

impl Spot {
    /// Returns a value without a spread.
    pub fn exact(x: u64, value: f64) -> Self {
        Self { x, value, spread: (value, value), n: 1, is_late: false, is_invalid: false }
    }
}

/// One operation of one run.
pub struct Trace {
    pub name: String,
    /// The place of its color; a floor is gray.
    pub color: Option<usize>,
    /// The place of its run.
    pub run: usize,
    /// By size or team.
    pub spots: Vec<Spot>,
}

impl Trace {
    pub fn color(&self) -> &'static str {
        self.color.map_or(FLOOR, |color| SERIES[color])
    }

    /// Returns the marker of a value: hollow if the time limit cut it short, a cross if it is no
    /// floor.
    pub fn mark(&self, (x, y): (f64, f64), spot: &Spot) -> Markup {
        if spot.is_invalid {
            let path = format!("M{} {}l7 7m0-7l-7 7", px(x - 3.5), px(y - 3.5));
            return html! { path stroke=(RED) stroke-width="2.2" fill="none" d=(path) {} };
        }
        marker(self.run, (x, y), self.color(), spot.is_late)
    }

    /// Returns its name; of several runs with the letter of its run.
    pub fn lettered(&self, text: &str, n_runs: usize) -> String {
        match n_runs {
            1 => text.to_owned(),
            _ => format!("{} {text}", letter(self.run)),
        }
    }

    /// Returns a value and its spread in words.
    pub fn words(&self, measure: Measure, spot: &Spot, n_runs: usize) -> String {
        let name = self.lettered(&self.name, n_runs);
        let [value, low, high] =
            [spot.value, spot.spread.0, spot.spread.1].map(|value| units::figure(measure, value));
        let late = if spot.is_late { ", time up" } else { "" };
        let invalid = if spot.is_invalid { ", invalid as a floor" } else { "" };
        format!("{name}: {value} ({low} to {high}), n {}{late}{invalid}", spot.n)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn spot(x: u64, value: f64) -> Spot {
        Spot { spread: (value * 0.9, value * 2.0), ..Spot::exact(x, value) }
    }

    /// Returns a curve of run B.
    pub fn trace(name: &str, spots: &[(u64, f64)]) -> Trace {
        let spots = spots.iter().map(|&(x, value)| spot(x, value)).collect();
        Trace { name: name.into(), color: Some(0), run: 1, spots }
    }
}
