//! Prepares the start of PEs, and detects errors on this host before the first one starts.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

use crate::failure::{StartFailure, cannot};
use crate::output::Files;
use crate::spawn::PreparedStart;
use crate::tree::orders::{HostPes, JobSpec, TreeConfig};
use crate::{aslr, capacity, debugger, limits, placement, program, spawn};

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Prepares the start of the PEs of `part` and of `n_daemons` daemons. If `memory` was inherited,
/// the parent has checked the capacity of this host; otherwise the node's memory is created.
pub fn prepare(
    spec: &JobSpec,
    tree: &TreeConfig,
    part: &HostPes,
    n_daemons: u32,
    memory: Option<OwnedFd>,
) -> Result<PreparedStart, StartFailure> {
    let variable = |name: &str| {
        let set = spec.forwarded.iter().chain(&spec.exported);
        let last = set.rev().find(|(set, _)| set == name);
        last.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    };
    let file = program::find(&spec.program, variable("PATH").as_deref())?;
    if memory.is_none() {
        capacity::check(part.node.len() as u32, tree.pes_per_process)?;
    }
    let mut variables: Vec<(OsString, OsString)> =
        spec.forwarded.iter().chain(&spec.exported).cloned().collect();
    let oshrun = std::env::current_exe().map_err(|error| cannot("find its own file", &error))?;
    if let Some(path) = program::library_path(&oshrun, variable(LIBRARY_PATH).as_deref()) {
        variables.push((OsStr::new(LIBRARY_PATH).to_os_string(), path));
    }
    let debugged = match &spec.debugged {
        Some(debugged) => {
            program::find(OsStr::new("gdb"), variable("PATH").as_deref())?;
            let (display, path) = (variable("DISPLAY"), variable("PATH"));
            Some((debugged.clone(), debugger::has_display(display.as_deref(), path.as_deref())))
        }
        None => None,
    };
    let mut placements =
        placement::place(part.node.clone(), spec.placement, |name| variable(name).is_some())?;
    if part.pes.start != part.node.start {
        // The process that starts the first PE of this host prints them.
        placements.notices.clear();
    }
    if spec.no_aslr {
        aslr::disable()?;
    }
    let limit = limits::make_room(part.pes.len() as u32, n_daemons, spec.output_files.is_some())?;
    let files = match &spec.output_files {
        Some(folder) => Some(Files::create(folder, part.pes.clone())?),
        None => None,
    };
    let memory = match memory {
        Some(memory) => memory,
        None => spawn::node_memory()
            .map_err(|error| cannot("make the shared memory of the job", &error))?,
    };
    Ok(PreparedStart {
        file,
        program: spec.program.clone(),
        arguments: spec.arguments.clone(),
        variables,
        files,
        debugged,
        first_of_node: part.node.start,
        memory,
        limit,
        placements,
    })
}
