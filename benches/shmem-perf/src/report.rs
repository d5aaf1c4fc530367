//! `shmem-perf report`: one page of HTML that shows what runs have found.
//!
//! The page is self-contained and asks the network for nothing. Its drawings take their colours from its style sheet, so that they follow
//! light, dark and paper; pictures of their own have the light ones. Nothing here knows how anything is measured.

mod axis;
mod by_size;
mod by_team;
mod chart;
mod concrete;
mod curves;
mod distributions;
mod drawing;
mod figure;
mod header;
mod heat;
mod histogram;
mod kinds;
mod markup;
mod nodes;
mod page;
mod ramp;
mod rows;
mod section;
mod sections;
mod source;
mod style;
mod suspects;
mod table;

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::print::print;
use crate::{flags, load};
use figure::file_names;
use section::Part;

/// Make one page of HTML from the records of some runs.
#[derive(Parser)]
#[command(name = "shmem-perf report")]
struct ReportFlags {
    /// Records of runs; what is in several of them is drawn together
    #[arg(required = true, value_name = "RECORD.json")]
    records: Vec<PathBuf>,
    /// Where the page goes
    #[arg(short, long, value_name = "FILE.html", default_value = "shmem-perf.html")]
    output: PathBuf,
    /// A folder for the charts as pictures, too: an SVG file each, as documents show them
    #[arg(long, value_name = "FOLDER")]
    charts: Option<PathBuf>,
}

/// Carries the subcommand out, and returns its exit status. `args` is what stands behind `report`.
///
/// # Errors
/// One sentence; the exit status is then 2.
pub fn run(args: &[String]) -> Result<u8, String> {
    let Some(flags) = flags::parse::<ReportFlags>("shmem-perf report", args)? else { return Ok(0) };
    let load = |path: PathBuf| load::load(&path).map(|record| (path, record));
    let records = flags.records.into_iter().map(load).collect::<Result<Vec<_>, String>>()?;
    let sources = source::named(records);
    write(&flags.output, &page::page(&sources))?;
    print(&format!("The report is in {}.\n", flags.output.display()))?;
    if let Some(folder) = flags.charts {
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{} cannot be made: {error}.", folder.display()))?;
        let parts = sections::sections(&sources).into_iter().flat_map(|section| section.body);
        let figures: Vec<_> = parts.flat_map(Part::figures).collect();
        for (name, figure) in file_names(&figures).into_iter().zip(figures) {
            write(&folder.join(name), &figure.picture())?;
        }
        print(&format!("The charts are in {}.\n", folder.display()))?;
    }
    Ok(0)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("{} cannot be written: {error}.", path.display()))
}

#[cfg(test)]
mod tests;
