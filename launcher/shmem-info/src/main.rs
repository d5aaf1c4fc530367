//! `shmem-info`: prints the version, the settings, the transports that work here, and the placement
//! of the PEs of a job.
//!
//! It starts and decides nothing: placements come from `rushmem_topology`, like those of oshrun. As
//! a hidden command it is `shmem-perf tune`.

mod args;
mod doctor;
mod json;
mod map;
mod svg;
mod text;
mod trace;
mod tune;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use rushmem_runtime::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_runtime::settings::{self, Settings};
use rushmem_runtime::setup::{OnThisMachine, on_this_machine};
use rushmem_topology::{BindTo, Level, Topology, cpus_at_once, plan};
use rushmem_transport::Setting;
use rushmem_transport::setting::environment;

use crate::args::{InfoCommand, InfoFlags};
use crate::map::MachineMap;

fn main() -> ExitCode {
    if documents::printed(InfoFlags::command) {
        return ExitCode::SUCCESS;
    }
    let flags = InfoFlags::parse();
    let mut status = ExitCode::SUCCESS;
    let shown = if let Some(command) = &flags.command {
        match command {
            InfoCommand::Trace { folder } => trace::show(folder),
            InfoCommand::Tune(flags) => {
                tune::run(flags);
                Ok(String::new())
            }
        }
    } else if flags.topology {
        topology(&flags)
    } else if flags.doctor {
        doctor::this_machine().map(|(text, is_ok)| {
            status = ExitCode::from(u8::from(!is_ok));
            text
        })
    } else if let [transport, part @ ..] = &flags.doctor_transport[..] {
        doctor::report(transport, part.first().map(String::as_str))
    } else if let Some(role) = flags.doctor_pe {
        doctor::run(role)
    } else if !flags.doctor_job.is_empty() {
        let layout = flags.doctor_layout.split_whitespace().map(str::to_owned).collect();
        let examined = doctor::Examined { oshrun: flags.doctor_job, layout };
        doctor::examine(&examined).map(|is_ok| {
            status = ExitCode::from(u8::from(!is_ok));
            String::new()
        })
    } else if flags.transports {
        transports()
    } else if flags.json {
        Ok(json::everything(all_settings()))
    } else if flags.markdown {
        Ok(markdown())
    } else {
        Ok(everything())
    };
    // A reader that has seen enough is no failure.
    let printed = shown.map(|text| std::io::stdout().write_all(text.as_bytes()));
    match printed {
        Ok(_) => status,
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

/// The version, every environment variable with its meaning, and what each is now.
fn everything() -> String {
    let mut text = format!(
        "{SHMEM_VENDOR_STRING} (OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION})\n\nEnvironment:\n"
    );
    for row in all_settings() {
        text += &format!("  {}\n      {}\n", row.names(), row.description());
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
        only where the first one is not set. A value that a variable may not have ends the job with a message. PE 0 warns of\n\
        variables whose names are nearly those of settings, of interfaces and NICs that its host does not have, and of empty lists.\n\n\
        `oshrun` has options instead of variables ([launching.md](launching.md)). It sets `SHMEM_LOCAL_ID` to the number of the PE\n\
        on its node and, on a machine with several NICs, `SHMEM_NIC` unless it is set.\n\n\
        `shmem-info --markdown` writes this page.\n\n| variable | default | meaning |\n|---|---|---|\n"
        .to_owned();
    for row in all_settings() {
        let default = row.default.map(|default| format!("`{default}`")).unwrap_or_default();
        let old: Vec<String> = row.old_names.iter().map(|old| format!("`{old}`")).collect();
        let old = if old.is_empty() { String::new() } else { format!(" (or {})", old.join(", ")) };
        text += &format!("| `{}`{old} | {default} | {} |\n", row.name, row.meaning);
    }
    text
}

/// The transports of this build, what each finds here, and who carries out atomic operations over
/// it.
fn transports() -> Result<String, String> {
    let settings = Settings::read(environment).map_err(|invalid| invalid.to_string())?;
    let mut text = String::new();
    for provider in rushmem_providers::ALL {
        let name = provider.name;
        text += &match on_this_machine(&settings, provider) {
            Err(error) => format!("{name}: not available: {error}\n"),
            Ok(OnThisMachine { found, amos }) => format!(
                "{name}: available: {found}\n{:indent$}  atomic operations: {amos}\n",
                "",
                indent = name.len()
            ),
        };
    }
    Ok(text)
}

/// The map of a machine and of the PEs on it.
fn topology(flags: &InfoFlags) -> Result<String, String> {
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
    let map = MachineMap::new(&machine, &plan, map_by, bind_to);
    let Some(file) = &flags.svg else { return Ok(text::draw(&map)) };
    let drawn = svg::draw(&map);
    if file.as_os_str() == "-" {
        return Ok(drawn);
    }
    std::fs::write(file, drawn)
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    Ok(String::new())
}
