//! `shmem-perf report`: one page of HTML that shows the results of runs.
//!
//! The page is self-contained and needs no network. Its drawings are SVG in the colors of the light
//! theme, which the style sheet of the page replaces in the dark theme.

mod axis;
mod chart;
mod curves;
mod figure;
mod header;
mod heat;
mod histogram;
mod rows;
mod sections;
mod source;
mod style;
mod suspects;

use std::path::{Path, PathBuf};

use clap::Parser;
use maud::html;

use crate::options;
use crate::print::print;
use crate::record::{self, Measure};
use figure::{Figure, Part, ReportSection, file_names};
use header::header;
use source::NamedRun;

/// Make one page of HTML from the records of some runs.
#[derive(Parser)]
#[command(name = "shmem-perf report")]
struct ReportFlags {
    /// Records of runs; what several of them measured is drawn together
    #[arg(required = true, value_name = "RECORD.json")]
    records: Vec<PathBuf>,
    /// The file for the page
    #[arg(
        short,
        long,
        value_name = "FILE.html",
        default_value = "shmem-perf.html"
    )]
    output: PathBuf,
    /// A directory for the charts: an SVG file each, for use in documents
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

/// Runs the subcommand with the arguments after `report`, and returns its exit status.
pub fn run(args: &[String]) -> Result<u8, String> {
    let Some(flags) = options::subcommand::<ReportFlags>("shmem-perf report", args)? else {
        return Ok(0);
    };
    let load = |path: PathBuf| record::load(&path).map(|record| (path, record));
    let records = flags
        .records
        .into_iter()
        .map(load)
        .collect::<Result<Vec<_>, String>>()?;
    let sources = source::name_runs(records);
    let sections = sections::sections(&sources);
    write(&flags.output, &page(&sources, &sections))?;
    print(&format!("The report is in {}.\n", flags.output.display()))?;
    if let Some(dir) = flags.charts {
        std::fs::create_dir_all(&dir)
            .map_err(|error| format!("{} cannot be made: {error}.", dir.display()))?;
        for (name, text) in pictures(&sections) {
            write(&dir.join(name), &text)?;
        }
        print(&format!("The charts are in {}.\n", dir.display()))?;
    }
    Ok(0)
}

/// Returns a chart of collectives by the size of the team as the text of an SVG file. `floor` is a
/// lower bound for all curves.
pub fn by_team_picture(title: &str, note: &str, curves: &[Curve], floor: &Curve) -> String {
    let trace = |color: Option<usize>, (name, points): &Curve| {
        let spots = points
            .iter()
            .map(|&(x, value)| curves::Spot::exact(x, value))
            .collect();
        curves::Trace {
            name: name.clone(),
            color,
            run: 0,
            spots,
        }
    };
    let mut traces: Vec<_> = curves
        .iter()
        .enumerate()
        .map(|(color, curve)| trace(Some(color), curve))
        .collect();
    let legend = curves::legend(&traces, false, &[]);
    traces.push(trace(None, floor));
    let drawing = chart::draw(Measure::Collective, chart::XAxis::Team, &traces, 1);
    Figure::new(title.into(), note.into(), drawing, legend).picture()
}

/// The name of a curve, and its points (members of the team, nanoseconds).
pub type Curve = (String, Vec<(u64, f64)>);

/// Returns the names and texts of the SVG files of all charts.
fn pictures(sections: &[ReportSection]) -> Vec<(String, String)> {
    let parts = sections.iter().flat_map(|section| &section.body);
    let figures: Vec<&Figure> = parts.flat_map(Part::figures).collect();
    file_names(&figures)
        .into_iter()
        .zip(figures.iter().map(|figure| figure.picture()))
        .collect()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("{} cannot be written: {error}.", path.display()))
}

/// Returns the report of some runs.
fn page(runs: &[NamedRun], sections: &[ReportSection]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = format!("shmem-perf: {}", names.join(", "));
    charts::page(
        &title,
        &html! {
            (header(runs))
            nav { @for it in sections { a href={ "#" (it.id) } { (it.title) } } }
            @if sections.is_empty() { p { "Nothing was measured." } }
            @for section in sections {
                section id=(section.id) {
                    h2 { (section.title) }
                    @for part in &section.body { (part.markup()) }
                }
            }
        },
    )
}

#[cfg(test)]
mod tests;
