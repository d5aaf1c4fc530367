//! The output of `--dry-run`: what oshrun would start.
//!
//! What a daemon decides on its own host, such as the bindings of PEs, is not known without it.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

use rushmem_bootstrap::env;

use crate::spawn::PreparedStart;
use crate::tree::LaunchPlan;
use crate::tree::agent::quoted;
use crate::tree::orders::{HostPes, JobSpec, TreeConfig, distribute};

/// Describes a plan in lines of text.
pub fn describe(plan: &LaunchPlan, spec: &JobSpec, tree: &TreeConfig) -> Vec<u8> {
    let mut lines = Lines(Vec::new());
    let launch = plan.own.as_ref().map(|(_, launch)| launch);
    let file = launch.map_or(spec.program.as_os_str(), |launch| launch.file.as_os_str());
    let words = [file].into_iter().chain(spec.arguments.iter().map(OsString::as_os_str));
    lines.add([OsStr::new("program: "), &joined(words)]);
    if let Some(folder) = &spec.folder {
        lines.add([OsStr::new("working directory: "), folder.as_os_str()]);
    }
    // Local PEs inherit the variables that are forwarded to other hosts.
    let n_forwarded = spec.forwarded.len();
    let set = launch.map_or(spec.exported.as_slice(), |launch| &launch.variables[n_forwarded..]);
    for (name, value) in set {
        lines.add([OsStr::new("variable: "), name, OsStr::new("="), &quoted(value)]);
    }
    if n_forwarded > 0 {
        let text = format!("variables of this environment that other hosts get: {n_forwarded}");
        lines.add([OsStr::new(&text)]);
    }
    if let Some((part, launch)) = &plan.own {
        let text = format!("host {}: {}, started by this oshrun", part.host, pes(&part.pes));
        lines.add([OsStr::new(&text)]);
        for piece in &plan.pieces {
            let text = format!("  {} of them by a further process of this host", pes(&piece.pes));
            lines.add([OsStr::new(&text)]);
        }
        own_pes(part, launch, &mut lines);
    }
    others(plan.others.clone(), tree, "this host", &mut lines);
    lines.0
}

/// The placement, variables and debugger of each PE of this host.
fn own_pes(part: &HostPes, launch: &PreparedStart, lines: &mut Lines) {
    for notice in &launch.placements.notices {
        lines.add([OsStr::new("  "), OsStr::new(notice)]);
    }
    for pe in part.node.clone() {
        let local = pe - part.node.start;
        let mut line = OsString::from(format!("  PE {pe}: {}={local}", env::LOCAL_ID));
        for (name, value) in launch.placements.of(local).variables {
            line.push(" ");
            line.push(name);
            line.push("=");
            line.push(quoted(&value));
        }
        let command = launch.command(pe);
        if command.get_program() != launch.file.as_os_str() {
            line.push(": ");
            line.push(words_of(&command));
        }
        lines.add([line.as_os_str()]);
    }
}

/// The daemons on other hosts that `parent` starts, and recursively their children.
fn others(parts: Vec<HostPes>, tree: &TreeConfig, parent: &str, lines: &mut Lines) {
    for (part, behind) in distribute(parts, tree.fan_out) {
        let text = format!("host {}: {}, started from {parent} by ", part.host, pes(&part.pes));
        let command = tree.agent.command(&part.host, Path::new(&tree.oshrun));
        lines.add([OsStr::new(&text), &words_of(&command)]);
        others(behind, tree, &format!("host {}", part.host), lines);
    }
}

fn pes(pes: &Range<u32>) -> String {
    match pes.len() {
        1 => format!("PE {}", pes.start),
        n => format!("PE {} to {} ({n} PEs)", pes.start, pes.end - 1),
    }
}

fn words_of(command: &Command) -> OsString {
    joined([command.get_program()].into_iter().chain(command.get_args()))
}

/// Words quoted for a shell.
fn joined<'a>(words: impl Iterator<Item = &'a OsStr>) -> OsString {
    let words: Vec<Vec<u8>> = words.map(|word| quoted(word).into_vec()).collect();
    OsString::from_vec(words.join(&b' '))
}

/// Lines of output.
struct Lines(Vec<u8>);

impl Lines {
    fn add<const N: usize>(&mut self, parts: [&OsStr; N]) {
        parts.iter().for_each(|part| self.0.extend(part.as_bytes()));
        self.0.push(b'\n');
    }
}
