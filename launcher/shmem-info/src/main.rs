//! `shmem-info`: prints the version, the settings, the transports that work here, and the placement of the PEs of a job.
//!
//! It starts and decides nothing: placements come from `rushmem_topology`, like those of oshrun.
#![forbid(unsafe_code)]

mod args;
mod map;
mod svg;
mod text;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use rushmem_runtime::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_runtime::settings;
use rushmem_topology::{BindTo, Level, Topology, cpus_at_once, plan};
use rushmem_transport::Setting;

use crate::args::Flags;
use crate::map::Map;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let shown = if flags.topology {
        topology(&flags)
    } else if flags.transports {
        Ok(transports())
    } else if flags.markdown {
        Ok(markdown())
    } else {
        Ok(environment())
    };
    // A reader that has seen enough is no failure.
    let printed = shown.map(|text| std::io::stdout().write_all(text.as_bytes()));
    match printed {
        Ok(_) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("shmem-info: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// The settings of the library and of its transports.
fn all_settings() -> impl Iterator<Item = &'static Setting> {
    settings::ALL.iter().chain(rushmem_providers::ALL.iter().flat_map(|provider| provider.settings))
}

/// A setting's name, and the deprecated one if it has one.
fn names(row: &Setting) -> String {
    let old = row.old_name.map(|old| format!(" (or {old})")).unwrap_or_default();
    format!("{}{old}", row.name)
}

/// The version, every environment variable with its meaning, and what each is now.
fn environment() -> String {
    let mut text = format!(
        "{SHMEM_VENDOR_STRING} (OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION})\n\nEnvironment:\n"
    );
    for row in all_settings() {
        text += &format!("  {}\n      {}\n", names(row), row.description());
    }
    text += "\nValues now:\n";
    for row in all_settings() {
        text += &format!("  {}: {}\n", row.name, settings::state(row));
    }
    text
}

/// The page docs/settings.md.
fn markdown() -> String {
    let mut text = "# Settings\n\nThese are the environment variables that the library reads. `SHMEM_INFO=1` prints them at start-up; `shmem-info` prints\n\
        them at any time. Both show the value of each and where it comes from. A variable in parentheses is deprecated and counts\n\
        only where the other one is not set. A value that a variable may not have ends the job with a message.\n\n\
        `oshrun` has options instead of variables ([launching.md](launching.md)). It sets `SHMEM_LOCAL_ID` to the number of the PE\n\
        on its node and, on a machine with several NICs, `SHMEM_NIC` unless it is set.\n\n\
        `shmem-info --markdown` writes this page.\n\n| variable | default | meaning |\n|---|---|---|\n"
        .to_owned();
    for row in all_settings() {
        let default = row.default.map(|default| format!("`{default}`")).unwrap_or_default();
        let old = row.old_name.map(|old| format!(" (or `{old}`)")).unwrap_or_default();
        text += &format!("| `{}`{old} | {default} | {} |\n", row.name, row.meaning);
    }
    text
}

/// The transports of this build, and what each finds here.
fn transports() -> String {
    let mut text = String::new();
    for (name, found) in rushmem_runtime::setup::transports(rushmem_providers::ALL) {
        let state = match found {
            Ok(found) => format!("available: {found}"),
            Err(error) => format!("not available: {error}"),
        };
        text += &format!("{name}: {state}\n");
    }
    text
}

/// The map of a machine and of the PEs on it.
fn topology(flags: &Flags) -> Result<String, String> {
    let (machine, at_once) = match (&flags.xml, &flags.synthetic) {
        (Some(file), _) => (Topology::of_xml(file)?, None),
        (None, Some(words)) => (Topology::of_synthetic(words)?, None),
        (None, None) => (Topology::of_this_machine(), Some(cpus_at_once())),
    };
    let n_pes = flags.n_pes.unwrap_or(machine.places(Level::Core).len() as u32);
    let map_by = flags.map_by.unwrap_or_default();
    let at_once = at_once.unwrap_or(machine.usable.len());
    let bind_to = flags.bind_to.unwrap_or_else(|| BindTo::usual(&machine, n_pes, at_once));
    let plan = plan(&machine, n_pes, map_by, bind_to);
    let map = Map::new(&machine, &plan, map_by, bind_to);
    let Some(file) = &flags.svg else { return Ok(text::draw(&map)) };
    let drawn = svg::draw(&map);
    if file.as_os_str() == "-" {
        return Ok(drawn);
    }
    std::fs::write(file, drawn)
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    Ok(String::new())
}
