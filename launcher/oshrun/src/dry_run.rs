//! What oshrun would start: `--dry-run` prints it instead.
//!
//! It describes the plan that `job` would carry out. What another host decides by itself, such as
//! the bindings of its PEs, is not known before its daemon runs.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

use rushmem_bootstrap::env;

use crate::spawn::Launch;
use crate::tree::Plan;
use crate::tree::agent::quoted;
use crate::tree::orders::{Growth, Part, Task, deal};

/// The plan as lines for the user.
pub fn describe(plan: &Plan, task: &Task, growth: &Growth) -> Vec<u8> {
    let mut lines = Lines(Vec::new());
    let launch = plan.own.as_ref().map(|(_, launch)| launch);
    let file = launch.map_or(task.program.as_os_str(), |launch| launch.file.as_os_str());
    let words = [file].into_iter().chain(task.arguments.iter().map(OsString::as_os_str));
    lines.add([OsStr::new("program: "), &joined(words)]);
    if let Some(folder) = &task.folder {
        lines.add([OsStr::new("working directory: "), folder.as_os_str()]);
    }
    // The variables of this process are inherited here and passed on to other hosts.
    let n_carried = task.carried.len();
    let set = launch.map_or(task.exported.as_slice(), |launch| &launch.variables[n_carried..]);
    for (name, value) in set {
        lines.add([OsStr::new("variable: "), name, OsStr::new("="), &quoted(value)]);
    }
    if n_carried > 0 {
        let text = format!("variables of this environment that other hosts get: {n_carried}");
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
    others(plan.others.clone(), growth, "this host", &mut lines);
    lines.0
}

/// Where each PE of this host goes, its variables, and its debugger if it has one.
fn own_pes(part: &Part, launch: &Launch, lines: &mut Lines) {
    for words in &launch.placements.words {
        lines.add([OsStr::new("  "), OsStr::new(words)]);
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

/// The daemons on other hosts that `parent` starts, and those that they start in turn.
fn others(parts: Vec<Part>, growth: &Growth, parent: &str, lines: &mut Lines) {
    for (part, behind) in deal(parts, growth.fan_out) {
        let text = format!("host {}: {}, started from {parent} by ", part.host, pes(&part.pes));
        let command = growth.agent.command(&part.host, Path::new(&growth.oshrun));
        lines.add([OsStr::new(&text), &words_of(&command)]);
        others(behind, growth, &format!("host {}", part.host), lines);
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

/// Words as a shell would read them.
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
