//! Histograms: how the times of single operations are distributed.

use std::collections::BTreeSet;

use super::curves::{all, grouped, named};
use super::figure::Figure;
use super::histogram;
use super::markup::Element;
use super::section::Part;
use super::source::{Source, called};
use super::style::{N_COLOURS, dashes};
use crate::record::{Measure, Series};
use crate::units;

/// For each operation whose calls were timed singly, the histogram of its smallest size.
pub fn distributions(runs: &[Source]) -> Vec<Part> {
    let (mut charts, mut seen) = (Vec::new(), BTreeSet::new());
    for measure in [Measure::Latency, Measure::Collective, Measure::Event] {
        let series: Vec<_> = all(measure, runs)
            .into_iter()
            .filter(|(_, series)| {
                !series.is_floor && series.points.iter().any(|p| !p.histogram.is_empty())
            })
            .collect();
        let largest = series.iter().filter_map(|(_, series)| series.shape.team_size).max();
        let shown: Vec<_> = series
            .into_iter()
            .filter(|(_, series)| {
                series.shape.team_size == largest || series.shape.team_size.is_none()
            })
            .collect();
        let (names, _) = named(&shown);
        for group in grouped(&names, 1) {
            let Some(first) = group.first() else { continue };
            let point = |series: &Series, nbytes: u64| {
                let mut points = series.points.iter();
                points.position(|p| p.nbytes == nbytes && !p.histogram.is_empty())
            };
            let mut sizes = first.series.points.iter().map(|point| point.nbytes);
            // 8 bytes are what most programs send, and if all runs have them the histograms are comparable.
            let in_all =
                |nbytes: &u64| group.iter().all(|one| point(one.series, *nbytes).is_some());
            let nbytes = if in_all(&8) { Some(8) } else { sizes.find(in_all) };
            let nbytes = nbytes.or_else(|| {
                let first = first.series.points.iter().find(|point| !point.histogram.is_empty());
                first.map(|point| point.nbytes)
            });
            let Some(nbytes) = nbytes else { continue };
            let histograms: Vec<(usize, &[(f64, u64)])> = group
                .iter()
                .filter_map(|one| {
                    let place = point(one.series, nbytes)?;
                    Some((one.run, one.series.points[place].histogram.as_slice()))
                })
                .collect();
            seen.extend(histograms.iter().map(|(run, _)| *run));
            let at =
                if nbytes > 0 { format!(", {} bytes", units::size(nbytes)) } else { String::new() };
            let svg = histogram::draw(measure, &histograms, runs.len());
            charts.push(Figure::new(&format!("{}{at}", first.name), "", svg, Vec::new()));
        }
    }
    if charts.is_empty() {
        return Vec::new();
    }
    let text = "The share of the operations by their time, both axes logarithmic, so that one in a thousand is still seen.";
    let mut body = vec![Part::Text(Element::new("p").class("note").text(text))];
    if runs.len() > 1 {
        let entry = |run| {
            let line = Element::new("path")
                .class(format!("line c{}", run % N_COLOURS))
                .with("stroke-dasharray", dashes(run))
                .with("d", "M1 7H31");
            let svg = Element::new("svg").class("swatch").with("viewBox", "0 0 32 14");
            let svg = svg.with("width", 32).with("height", 14).child(line);
            Element::new("span").child(svg).text(called(runs, run))
        };
        let legend = Element::new("div").class("legend");
        body.push(Part::Text(legend.children(seen.into_iter().map(entry))));
    }
    body.push(Part::SmallFigures(charts));
    body
}
