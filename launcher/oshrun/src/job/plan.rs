//! The plan of a job: the program that it runs on each host, and its description for `--dry-run`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

use crate::daemons::agent::{DaemonCommand, quoted};
use crate::daemons::connection::{HostPes, JobSpec};
use crate::failure::{StartFailure, cannot};
use crate::options::Options;
use crate::spawn::{PreparedStart, program};

/// Describes the program to start. PEs on other hosts get the environment that local PEs inherit.
pub fn job_spec(options: &Options, has_other_hosts: bool) -> Result<JobSpec, StartFailure> {
    let dir = has_other_hosts.then(program::working_dir).transpose();
    let dir = dir.map_err(|error| cannot("find the working directory", &error))?;
    Ok(JobSpec {
        program: options.program.clone(),
        arguments: options.arguments.clone(),
        exported: options.exported.clone(),
        forwarded: if has_other_hosts { program::forwarded_variables() } else { Vec::new() },
        dir,
        placement: options.placement(),
        no_aslr: options.no_aslr,
        // A dry run does not create the directory.
        output_files: options.output_files.clone().filter(|_| !options.dry_run),
        debugged: options.gdb.clone(),
        prompts: rustix::termios::isatty(rustix::stdio::stdin()),
        host_limit: options.silence,
    })
}

/// Returns the file of oshrun on other hosts.
pub fn oshrun_elsewhere(options: &Options) -> Result<PathBuf, StartFailure> {
    match &options.prefix {
        Some(prefix) => Ok(prefix.join("bin/oshrun")),
        None => std::env::current_exe().map_err(|error| cannot("find its own file", &error)),
    }
}

/// Describes the start of a job: the PEs of this host, if it has any, and those of others.
pub fn describe(
    spec: &JobSpec,
    own: Option<(&HostPes, &PreparedStart)>,
    command: &DaemonCommand,
    others: &[HostPes],
) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut add = |label: &str, words: &OsStr| {
        lines.extend(label.as_bytes());
        lines.extend(words.as_bytes());
        lines.push(b'\n');
    };
    let file = own.map_or(spec.program.as_os_str(), |(_, launch)| launch.file.as_os_str());
    add("program: ", &joined([file].into_iter().chain(spec.arguments.iter().map(|word| &**word))));
    for (name, value) in &spec.exported {
        let set = [name.as_os_str(), &quoted(value)].join(OsStr::new("="));
        add("variable: ", &set);
    }
    if let Some((part, launch)) = own {
        add(&format!("host {}: {}, started by this oshrun", part.host, pes(part)), OsStr::new(""));
        launch.placements.notices.iter().for_each(|notice| add("  ", OsStr::new(notice)));
    }
    for part in others {
        let label = format!("host {}: {}, started by ", part.host, pes(part));
        add(&label, &words_of(&command.agent.command(&part.host, &command.oshrun)));
    }
    lines
}

fn pes(HostPes { pes, .. }: &HostPes) -> String {
    match pes.len() {
        1 => format!("PE {}", pes.start),
        n => format!("PE {} to {} ({n} PEs)", pes.start, pes.end - 1),
    }
}

fn words_of(command: &Command) -> OsString {
    joined([command.get_program()].into_iter().chain(command.get_args()))
}

/// Returns words quoted for a shell.
fn joined<'a>(words: impl Iterator<Item = &'a OsStr>) -> OsString {
    let words: Vec<Vec<u8>> = words.map(|word| quoted(word).into_vec()).collect();
    OsString::from_vec(words.join(&b' '))
}
