//! `shmem-info`: prints the version, the settings, the transports that work here, and the placement
//! of the PEs of a job. Examines this machine or a job (`doctor`), and shows the trace of one.
//!
//! Placements come from `rushmem_topology`, like those of oshrun. Only the doctor starts processes:
//! examinations of transports, and short jobs. The hidden command `tune` is the part of `shmem-perf
//! tune` that needs this library inside.

mod args;
mod doctor;
mod map;
mod settings;
mod svg;
mod terminal;
mod trace;
mod tune;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use rushmem_runtime::settings as rushmem_settings;
use rushmem_runtime::setup::{OnThisMachine, on_this_machine};
use rushmem_topology::{BindTo, Level, Topology, cpus_at_once, plan};

use crate::args::{InfoCommand, InfoFlags};
use crate::map::MachineMap;

fn main() -> ExitCode {
    if man_pages::print_if_requested(args::command) {
        return ExitCode::SUCCESS;
    }

    let flags = InfoFlags::parse();
    apply_files(&flags);
    match run(flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            let places = rushmem_settings::places_in(&sentence);
            eprintln!("shmem-info: {sentence}{places}");
            ExitCode::FAILURE
        }
    }
}

/// Carries out the command line. Returns false if the doctor has found that no job can run.
fn run(flags: InfoFlags) -> Result<bool, String> {
    let answer = answer(flags)?;
    print(&answer.text)?;
    Ok(answer.is_ok)
}

/// Applies the files of settings that count for this prefix, as the library beside this program
/// does, and prints warnings about them and about variables without effect.
fn apply_files(flags: &InfoFlags) {
    let prefix = || Some(std::env::current_exe().ok()?.parent()?.parent()?.to_owned());
    let mut warnings = rushmem_settings::apply_files(prefix);
    // The parent of a child of the doctor prints the warnings about names.
    if flags.doctor_pe.is_none() && flags.doctor_transport.is_empty() {
        warnings.extend(rushmem_settings::names::warnings(settings::all()));
    }
    for warning in warnings {
        eprintln!("shmem-info: warning: {warning}");
    }
}

/// The answer to a command line.
pub struct Answer {
    /// The text to print.
    pub text: String,
    /// False if the doctor has found that this machine can run no job, or that the user's job
    /// fails.
    pub is_ok: bool,
}

fn answer(flags: InfoFlags) -> Result<Answer, String> {
    if flags.doctor && flags.json {
        return doctor::findings_as_json();
    }
    if flags.doctor {
        return doctor::this_machine(flags.why);
    }
    if !flags.doctor_job.is_empty() {
        let layout = flags.doctor_layout.split_whitespace();
        return doctor::examine(&doctor::Examined {
            oshrun: flags.doctor_job,
            layout: layout.map(str::to_owned).collect(),
        });
    }

    let text = match flags.command {
        Some(InfoCommand::Trace { directory }) => trace::show(&directory)?,
        Some(InfoCommand::Tune(flags)) => {
            tune::run(&flags);
            String::new()
        }
        None => text(&flags)?,
    };
    Ok(Answer { text, is_ok: true })
}

/// Returns the text that an option asks for; without one, the settings.
fn text(flags: &InfoFlags) -> Result<String, String> {
    if flags.topology {
        return topology(flags);
    }
    if let [transport, part @ ..] = &flags.doctor_transport[..] {
        return doctor::report(transport, part.first().map(String::as_str));
    }
    if let Some(role) = flags.doctor_pe {
        return doctor::run(role);
    }
    if flags.transports {
        return transports();
    }
    if let Some(part) = &flags.describe {
        return settings::descriptions(part);
    }
    if flags.json {
        return Ok(settings::as_json());
    }
    if flags.markdown {
        return Ok(settings::page());
    }
    Ok(settings::values())
}

fn print(text: &str) -> Result<(), String> {
    let mut stdout = anstream::stdout();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        // A reader that closes the pipe early is no failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the output cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// Returns the transports of this build: what each of them finds on this machine, and whether the
/// CPU or the network executes atomic operations, or else why it is not available.
fn transports() -> Result<String, String> {
    let settings = rushmem_settings::of_this_process(rushmem_providers::ALL)?;
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

/// Returns the map of a machine and of the PEs on it as text, or with `--svg` as a drawing. A
/// drawing for a file is written to the file, and the returned text is empty.
fn topology(flags: &InfoFlags) -> Result<String, String> {
    let machine;
    let at_once;
    if let Some(file) = &flags.xml {
        machine = Topology::of_xml(file)?;
        at_once = machine.usable.len();
    } else if let Some(words) = &flags.synthetic {
        machine = Topology::of_synthetic(words)?;
        at_once = machine.usable.len();
    } else {
        machine = Topology::of_this_machine();
        // The control group of this process limits how many CPUs it may use at once here.
        at_once = cpus_at_once();
    }

    let n_cores = machine.cpu_sets(Level::Core).len() as u32;
    let n_pes = flags.n_pes.unwrap_or(n_cores);
    let map_by = flags.map_by.unwrap_or_default();
    let bind_to = match flags.bind_to {
        Some(bind_to) => bind_to,
        None => BindTo::usual(&machine, n_pes, at_once),
    };

    let plan = plan(&machine, n_pes, map_by, bind_to);
    let map = MachineMap::new(&machine, &plan, map_by, bind_to);

    let Some(file) = &flags.svg else {
        return Ok(map::text(&map));
    };

    let drawn = svg::draw(&map);
    if file.as_os_str() == "-" {
        return Ok(drawn);
    }

    std::fs::write(file, drawn)
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    Ok(String::new())
}
