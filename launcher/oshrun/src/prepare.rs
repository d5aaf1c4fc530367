//! Checks everything that can be wrong on this host before the first of its PEs is started.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

use crate::failure::{Failure, cannot};
use crate::output::Files;
use crate::spawn::Launch;
use crate::tree::orders::{Growth, Part, Task};
use crate::{aslr, capacity, debugger, limits, placement, program, spawn};

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Prepares the start of `part` and of `n_daemons` daemons. The node's memory is new unless it was inherited: then another
/// process of this host has checked that there is room for all PEs.
///
/// # Errors
/// When the PEs cannot be started.
pub fn prepare(
    task: &Task,
    growth: &Growth,
    part: &Part,
    n_daemons: u32,
    memory: Option<OwnedFd>,
) -> Result<Launch, Failure> {
    let variable = |name: &str| {
        let set = task.carried.iter().chain(&task.exported);
        let last = set.rev().find(|(set, _)| set == name);
        last.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    };
    let file = program::find(&task.program, variable("PATH").as_deref())?;
    if memory.is_none() {
        capacity::check(part.node.len() as u32, growth.pes_per_process)?;
    }
    let mut variables: Vec<(OsString, OsString)> =
        task.carried.iter().chain(&task.exported).cloned().collect();
    let oshrun = std::env::current_exe().map_err(|error| cannot("find its own file", &error))?;
    if let Some(path) = program::library_path(&oshrun, variable(LIBRARY_PATH).as_deref()) {
        variables.push((OsStr::new(LIBRARY_PATH).to_os_string(), path));
    }
    let debugged = match &task.debugged {
        Some(debugged) => {
            program::find(OsStr::new("gdb"), variable("PATH").as_deref())?;
            let (display, path) = (variable("DISPLAY"), variable("PATH"));
            Some((debugged.clone(), debugger::shows(display.as_deref(), path.as_deref())))
        }
        None => None,
    };
    let mut placements =
        placement::place(part.node.clone(), task.wish, |name| variable(name).is_some())?;
    if part.pes.start != part.node.start {
        // Another process of this host prints it.
        placements.words.clear();
    }
    if task.no_aslr {
        aslr::disable()?;
    }
    let limit = limits::make_room(part.pes.len() as u32, n_daemons, task.output_files.is_some())?;
    let files = match &task.output_files {
        Some(folder) => Some(Files::create(folder, part.pes.clone())?),
        None => None,
    };
    let memory = match memory {
        Some(memory) => memory,
        None => spawn::node_memory()
            .map_err(|error| cannot("make the shared memory of the job", &error))?,
    };
    Ok(Launch {
        file,
        program: task.program.clone(),
        arguments: task.arguments.clone(),
        variables,
        files,
        debugged,
        first_of_node: part.node.start,
        memory,
        limit,
        placements,
    })
}
