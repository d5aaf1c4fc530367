//! Measured figures: each is stated once, under docs/performance or docs/scale; other pages link to
//! it.
//!
//! A figure is a number before a unit in which only measurements are given. Limits and defaults,
//! which are in milliseconds and seconds, are not figures.

use super::tree::Tree;

/// The directories of figures.
const PLACES: &[&str] = &["docs/performance", "docs/scale"];

/// The units that follow the number of a figure.
const UNITS: &[&str] = &[
    "ns",
    "us",
    "µs",
    "GB/s",
    "M/s",
    "instructions",
    "times as long",
    "times as fast",
    "of the time",
];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for page in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        if PLACES.iter().any(|place| page.path.starts_with(place)) {
            continue;
        }
        for (number, line) in (1..).zip(page.text.lines()) {
            if let Some(figure) = figure(line) {
                complaints.push(format!(
                    "{}:{number}: the figure `{figure}` belongs to docs/performance",
                    page.path
                ));
            }
        }
    }
    complaints
}

fn figure(line: &str) -> Option<&str> {
    let units = UNITS.iter().flat_map(|unit| line.match_indices(*unit));
    units.into_iter().find_map(|(at, unit)| {
        let end = at + unit.len();
        let number = line[..at].strip_suffix(' ')?;
        let start = number.rfind(' ').map_or(0, |space| space + 1);
        let is_figure = number[start..].starts_with(|c: char| c.is_ascii_digit())
            && !line[end..].starts_with(char::is_alphanumeric);
        is_figure.then(|| &line[start..end])
    })
}

#[cfg(test)]
mod tests;
