//! Prepares the start of PEs, and detects errors on this host before the first one starts.

use std::ffi::{OsStr, OsString};
use std::ops::Range;

use crate::daemons::orders::JobSpec;
use crate::output::Files;
use crate::report::failure::{StartFailure, cannot};
use crate::spawn::{
    self, PreparedStart, aslr, capacity, debugger, descriptors, placement, program,
};

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Prepares the start of the PEs of this host, and of `n_daemons` daemons on others.
pub fn prepare(
    spec: &JobSpec,
    pes: Range<u32>,
    n_daemons: u32,
) -> Result<PreparedStart, StartFailure> {
    let variable = |name: &str| {
        let set = spec.forwarded.iter().chain(&spec.exported);
        let last = set.rev().find(|(set, _)| set == name);
        last.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    };
    let file = program::find(&spec.program, variable("PATH").as_deref())?;
    let n_pes = pes.len() as u32;
    capacity::check(n_pes)?;
    descriptors::check(n_pes, n_daemons, spec.output_files.is_some())?;
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
    let placements =
        placement::place(pes.clone(), spec.placement, |name| variable(name).is_some())?;
    if spec.no_aslr {
        aslr::disable()?;
    }
    let files = match &spec.output_files {
        Some(dir) => Some(Files::create(dir, pes.clone())?),
        None => None,
    };
    Ok(PreparedStart {
        file,
        program: spec.program.clone(),
        arguments: spec.arguments.clone(),
        variables,
        files,
        debugged,
        pes,
        memory: spawn::node_memory()
            .map_err(|error| cannot("make the shared memory of the job", &error))?,
        placements,
    })
}
