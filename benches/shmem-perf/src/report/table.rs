//! Tables of numbers.

use maud::{Markup, html};

use super::chart::XAxis;
use super::source::{NamedRun, called_shortly};
use crate::naming::names;
use crate::operation::is_invalid;
use crate::record::{Ended, Series};
use crate::statistics::FEWEST_OF_P99;
use crate::units;

/// Returns a table whose columns from `numbers` on are aligned at the right.
pub fn table(head: &[String], rows: &[Vec<String>], numbers: usize) -> Markup {
    let class = |column| (column >= numbers).then_some("number");
    html! {
        div .wide {
            table {
                thead { tr { @for (i, text) in head.iter().enumerate() { th class=[class(i)] { (text) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (i, text) in row.iter().enumerate() { td class=[class(i)] { (text) } } }
                    }
                }
            }
        }
    }
}

/// Returns all figures of some series, each with the place of its run.
pub fn figures(series: &[(usize, &Series)], across: Option<XAxis>, runs: &[NamedRun]) -> Markup {
    let names = names(&series.iter().map(|(_, series)| *series).collect::<Vec<_>>());
    let mut head = vec!["operation"];
    head.extend((runs.len() > 1).then_some("run"));
    head.extend(across.is_some().then_some("bytes"));
    let n_words = head.len();
    head.extend(["median", "95 % interval", "mean", "min", "90 %", "99 %", "99.9 %", "max", "n"]);
    let has_members = |(_, of): &(usize, &Series)| of.points.iter().any(|p| p.by_pe.is_some());
    let has_members = series.iter().any(has_members);
    head.extend(has_members.then_some("PE min, mean, max"));
    head.push("ended");
    let mut rows = Vec::new();
    for ((run, series), name) in series.iter().zip(&names.names) {
        for point in &series.points {
            let summary = &point.summary;
            let figure = |value: f64| units::figure(series.measure, value);
            let mut row = vec![name.clone()];
            row.extend((runs.len() > 1).then(|| called_shortly(runs, *run)));
            row.extend(across.is_some().then(|| units::size(point.nbytes)));
            let known = |value: Option<f64>| value.map_or("-".into(), figure);
            let between = |(low, high)| format!("{} to {}", figure(low), figure(high));
            let is_invalid = is_invalid(&runs[*run].record.series, series, point);
            let invalid = if is_invalid { " (invalid)" } else { "" };
            row.push(format!("{}{invalid}", figure(summary.p50)));
            row.push(summary.interval.map_or("-".into(), between));
            row.extend([summary.mean, summary.min, summary.p90].map(figure));
            let p99 = Some(summary.p99).filter(|_| summary.n >= FEWEST_OF_P99);
            row.extend([p99, summary.p999, Some(summary.max)].map(known));
            row.push(summary.n.to_string());
            let members = |(least, mean, most)| [least, mean, most].map(figure).join(", ");
            row.extend(has_members.then(|| point.by_pe.map_or(String::new(), members)));
            row.push(match summary.ended {
                Ended::Narrow => "known to 2 %".into(),
                Ended::TimeUp => "time up".into(),
                Ended::Counted => "iterations".into(),
                Ended::Once => "once".into(),
            });
            rows.push(row);
        }
    }
    let numbers = n_words - usize::from(across.is_some());
    table(&head.into_iter().map(String::from).collect::<Vec<_>>(), &rows, numbers)
}
