//! Tables of numbers.

use super::chart::Across;
use super::markup::Element;
use super::source::{Source, called_shortly};
use crate::naming::names;
use crate::record::{Ended, Series};
use crate::units;

/// A table whose columns from `numbers` on are aligned at the right.
pub fn table(head: &[String], rows: &[Vec<String>], numbers: usize) -> Element {
    let cells = |tag: &'static str, row: &[String]| {
        let cell = |(column, text): (usize, &String)| match column >= numbers {
            true => Element::new(tag).class("number").text(text),
            false => Element::new(tag).text(text),
        };
        Element::new("tr").children(row.iter().enumerate().map(cell))
    };
    let head = Element::new("thead").child(cells("th", head));
    let body = Element::new("tbody").children(rows.iter().map(|row| cells("td", row)));
    Element::new("div").class("wide").child(Element::new("table").child(head).child(body))
}

/// All figures of some series, each with the place of its run.
pub fn figures(series: &[(usize, &Series)], across: Option<Across>, runs: &[Source]) -> Element {
    let names = names(&series.iter().map(|(_, series)| *series).collect::<Vec<_>>());
    let mut head = vec!["operation"];
    head.extend((runs.len() > 1).then_some("run"));
    head.extend(across.is_some().then_some("bytes"));
    let n_words = head.len();
    head.extend([
        "p50",
        "95 % interval",
        "mean",
        "min",
        "p90",
        "p99",
        "p99.9",
        "max",
        "n",
        "ended",
    ]);
    let mut rows = Vec::new();
    for ((run, series), name) in series.iter().zip(&names.names) {
        for point in &series.points {
            let summary = &point.summary;
            let figure = |value: f64| units::figure(series.measure, value);
            let mut row = vec![name.clone()];
            row.extend((runs.len() > 1).then(|| called_shortly(runs, *run)));
            row.extend(across.is_some().then(|| units::size(point.nbytes)));
            row.push(figure(summary.p50));
            row.push(format!("{} to {}", figure(summary.interval.0), figure(summary.interval.1)));
            row.extend(
                [summary.mean, summary.min, summary.p90, summary.p99, summary.p999, summary.max]
                    .map(figure),
            );
            row.push(summary.n.to_string());
            row.push(match summary.ended {
                Ended::Narrow => "narrow".into(),
                Ended::TimeUp => "time up".into(),
            });
            rows.push(row);
        }
    }
    let numbers = n_words - usize::from(across.is_some());
    table(&head.into_iter().map(String::from).collect::<Vec<_>>(), &rows, numbers)
}
