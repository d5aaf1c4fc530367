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
mod nodes;
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
use crate::record::Measure;
use curves::{Spot, Trace};
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
    let runs = source::load(&flags.records)?;
    let sections = sections::sections(&runs);
    write(&flags.output, &page(&runs, &sections))?;
    print(&format!("The report is in {}.\n", flags.output.display()))?;

    if let Some(dir) = flags.charts {
        std::fs::create_dir_all(&dir)
            .map_err(|error| format!("{} cannot be made: {error}.", dir.display()))?;
        for picture in pictures(&sections) {
            write(&dir.join(picture.file_name), &picture.text)?;
        }
        print(&format!("The charts are in {}.\n", dir.display()))?;
    }
    Ok(0)
}

/// A curve of a collective over the size of the team.
pub struct TeamCurve {
    /// The name in the legend.
    pub name: String,
    /// The points in ascending order of the size.
    pub points: Vec<TeamPoint>,
}

/// The time of a collective of a team.
pub struct TeamPoint {
    /// The number of members of the team.
    pub n_members: u64,
    /// The time in nanoseconds.
    pub ns: f64,
}

/// Returns a chart of collectives by the size of the team as the text of an SVG file. `floor` is a
/// lower bound for all curves.
pub fn by_team_picture(title: &str, note: &str, curves: &[TeamCurve], floor: &TeamCurve) -> String {
    let mut traces = Vec::new();
    for (color, curve) in curves.iter().enumerate() {
        traces.push(trace(curve, Some(color)));
    }
    // The floor has its name beside its line, and no entry in the legend.
    let legend = curves::legend(&traces, false, &[]);
    traces.push(trace(floor, None));

    let drawing = chart::draw(Measure::Collective, chart::XAxis::Team, &traces, 1);
    Figure::new(title.into(), note.into(), drawing, legend).picture()
}

fn trace(curve: &TeamCurve, color: Option<usize>) -> Trace {
    let mut spots = Vec::new();
    for point in &curve.points {
        spots.push(Spot::exact(point.n_members, point.ns));
    }
    Trace {
        name: curve.name.clone(),
        color,
        run: 0,
        spots,
    }
}

/// A chart as an SVG file.
struct Picture {
    file_name: String,
    text: String,
}

/// Returns all charts of a report.
fn pictures(sections: &[ReportSection]) -> Vec<Picture> {
    let parts = sections.iter().flat_map(|section| &section.body);
    let figures: Vec<&Figure> = parts.flat_map(Part::figures).collect();

    let mut pictures = Vec::new();
    for (figure, file_name) in figures.iter().zip(file_names(&figures)) {
        pictures.push(Picture {
            file_name,
            text: figure.picture(),
        });
    }
    pictures
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("{} cannot be written: {error}.", path.display()))
}

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
