//! The plan of a job: its hosts and their PEs, the program that they run, and the command that
//! starts daemons on other hosts. No process of the job has been started yet.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use rushmem_bootstrap::NodeMap;
use rushmem_bootstrap::unlaunched::without_secret;

use crate::daemons::agent::{DaemonCommand, quoted};
use crate::daemons::connection::{HostPes, JobSpec};
use crate::errors::{StartFailure, cannot};
use crate::hosts;
use crate::options::Options;
use crate::spawn::limits::DescriptorUsers;
use crate::spawn::{PreparedStart, prepare, program};

/// A job that is ready to start.
pub struct JobPlan {
    /// The nodes of the job: one for each host.
    pub nodes: NodeMap,
    /// The name of each host.
    pub names: Vec<String>,
    /// The program and how to start it, which is the same on all hosts.
    pub spec: JobSpec,
    /// The command that starts daemons.
    pub command: DaemonCommand,
    /// The PEs of this host; `None` if it has none.
    pub local: Option<LocalPart>,
    /// The PEs of other hosts.
    pub others: Vec<HostPes>,
}

/// The PEs of this host, and the preparations for them.
pub struct LocalPart {
    pub pes: HostPes,
    pub start: PreparedStart,
}

impl JobPlan {
    /// Finds the hosts of a job, and prepares the start of the PEs of this one.
    pub fn new(options: &Options) -> Result<JobPlan, StartFailure> {
        let hosts = hosts::find(options)?;

        let mut runs = Vec::new();
        for (node, part) in (0..).zip(&hosts.parts) {
            runs.push((node, part.pes.len() as u32));
        }
        let nodes =
            NodeMap::from_runs(runs).map_err(|error| StartFailure::usage(error.to_string()))?;
        if let Some(debugged) = &options.gdb {
            debugged.check(nodes.n_pes())?;
        }
        let names = hosts.parts.iter().map(|part| part.host.clone()).collect();

        let mut others = hosts.parts;
        let local = hosts.local.map(|index| others.remove(index));
        let n_daemons = others.len() as u32;
        let spec = job_spec(options, n_daemons > 0)?;

        let oshrun = match &options.prefix {
            Some(prefix) => prefix.join("bin/oshrun"),
            None => std::env::current_exe().map_err(|error| cannot("find its own file", &error))?,
        };
        let command = DaemonCommand {
            agent: hosts.agent,
            oshrun,
            allocated_by: hosts.allocated_by,
        };

        let local = match local {
            Some(pes) => {
                let start = prepare(&spec, pes.pes.clone(), n_daemons)?;
                Some(LocalPart { pes, start })
            }
            None => {
                // `prepare` makes this check, too.
                let users = DescriptorUsers {
                    n_pes: 0,
                    n_daemons,
                    has_files: false,
                };
                users.check()?;
                None
            }
        };

        Ok(JobPlan {
            nodes,
            names,
            spec,
            command,
            local,
            others,
        })
    }

    /// Returns true if this host starts PE 0.
    pub fn has_pe_0(&self) -> bool {
        match &self.local {
            Some(local) => local.pes.pes.contains(&0),
            None => false,
        }
    }

    /// Returns the text of `--dry-run`: a line for the program, for each exported variable and for
    /// each host, with the notices about the placement on this host.
    pub fn describe(&self) -> Vec<u8> {
        // Words of the user need not be UTF-8.
        let mut lines = Vec::new();
        let mut add = |label: &str, words: &OsStr| {
            lines.extend(label.as_bytes());
            lines.extend(words.as_bytes());
            lines.push(b'\n');
        };

        // The program is searched only on a host that starts PEs.
        let program = match &self.local {
            Some(local) => local.start.file.as_os_str(),
            None => self.spec.program.as_os_str(),
        };
        let arguments = self.spec.arguments.iter().map(OsString::as_os_str);
        add("program: ", &command_line(program, arguments));

        for (name, value) in &self.spec.exported {
            let shown = match (name.to_str(), value.to_str()) {
                (Some(name), Some(value)) => without_secret(name, value.to_owned()).into(),
                _ => value.clone(),
            };
            let assignment = [name.as_os_str(), &quoted(&shown)].join(OsStr::new("="));
            add("variable: ", &assignment);
        }

        if let Some(local) = &self.local {
            let pes = shown_pes(&local.pes.pes);
            let line = format!("host {}: {pes}, started by this oshrun", local.pes.host);
            add(&line, OsStr::new(""));
            for notice in &local.start.placements.notices {
                add("  ", OsStr::new(notice));
            }
        }
        for part in &self.others {
            let agent = self.command.agent.command(&part.host, &self.command.oshrun);
            let pes = shown_pes(&part.pes);
            let label = format!("host {}: {pes}, started by ", part.host);
            add(&label, &command_line(agent.get_program(), agent.get_args()));
        }
        lines
    }
}

/// Returns the program and how to start it. With `has_daemons`, includes what PEs on other hosts do
/// not inherit from oshrun.
fn job_spec(options: &Options, has_daemons: bool) -> Result<JobSpec, StartFailure> {
    let mut dir = None;
    let mut forwarded = Vec::new();
    if has_daemons {
        let here =
            program::working_dir().map_err(|error| cannot("find the working directory", &error))?;
        dir = Some(here);
        // PEs on other hosts get the environment of oshrun, except variables that describe a host.
        forwarded = program::forwarded_variables();
    }

    // A dry run must not create the directory, so its job names none.
    let output_files = if options.dry_run {
        None
    } else {
        options.output_files.clone()
    };

    Ok(JobSpec {
        program: options.program.clone(),
        arguments: options.arguments.clone(),
        exported: options.exported.clone(),
        forwarded,
        dir,
        placement: options.placement(),
        no_aslr: options.no_aslr,
        output_files,
        debugged: options.gdb.clone(),
        prompts: rustix::termios::isatty(rustix::stdio::stdin()),
        host_limit: Options::host_limit()?,
    })
}

/// Returns a text that names consecutive PEs, such as `PE 2 to 5 (4 PEs)`.
fn shown_pes(pes: &Range<u32>) -> String {
    match pes.len() {
        1 => format!("PE {}", pes.start),
        n => format!("PE {} to {} ({n} PEs)", pes.start, pes.end - 1),
    }
}

/// Joins the words of a command line with spaces, each quoted for a shell.
fn command_line<'a>(program: &OsStr, arguments: impl Iterator<Item = &'a OsStr>) -> OsString {
    let mut line = quoted(program);
    for argument in arguments {
        line.push(" ");
        line.push(quoted(argument));
    }
    line
}
