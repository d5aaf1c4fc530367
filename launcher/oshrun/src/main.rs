//! `oshrun` starts a program as the PEs of an OpenSHMEM job, and supervises the job until its end.
//!
//! - `options`: the command line. `hosts`: the hosts and the number of PEs on each. `failure`:
//!   errors.
//! - `spawn`: starts processes, after checks of the program, the limits of the host and the
//!   placement.
//! - `pes`: the PEs of this host. `daemons`: those of other hosts. `supervisor`: both.
//! - `output` and `input`: the streams of PEs. `progress`: how far the start has come.
//! - `ends`: ends all processes of a job, also if oshrun itself is killed.
//! - `hang_report`: explains which PE of a job that hangs waits for which.
//! - `job`: applies the rules of `rushmem_bootstrap::server` to events and signals.
//!
//! The executable has three roles: the launcher, a daemon (`daemons::daemon`) and a guard
//! (`ends::guard`). No role interprets the records that PEs exchange.

#![allow(unsafe_code)]

mod daemons;
mod ends;
mod failure;
mod hang_report;
mod hosts;
mod input;
mod job;
mod options;
mod output;
mod pes;
mod progress;
mod spawn;
mod supervisor;

use std::ffi::OsStr;
use std::process::ExitCode;

use ends::guard;
use failure::{StartFailure, complain};
use rushmem_bootstrap::config;
use spawn::program;

fn main() -> ExitCode {
    if guard::is_guard() {
        return guard::run();
    }
    if daemons::daemon::is_daemon() {
        return daemons::daemon::serve();
    }
    failure::report_panics();
    apply_files();
    let status = start().unwrap_or_else(|failure| {
        complain(&format!("oshrun: {}", failure.sentence));
        failure.status
    });
    // Exits without joining the writer threads, which may be blocked by a reader that has stopped.
    std::process::exit(status)
}

fn start() -> Result<i32, StartFailure> {
    if man_pages::print_if_requested(options::command) {
        return Ok(0);
    }
    let Some(options) = options::parse(std::env::args_os())? else {
        return Ok(0);
    };
    if options.doctor {
        return Err(options.examine());
    }
    supervisor::block_on(job::run(&options))?
}

/// Puts the settings in the files of the site and the user into the environment of this process,
/// which its PEs on all hosts get. Variables that are already set keep their values. Warns of files
/// and lines that it ignores. Must be called before a thread is started.
fn apply_files() {
    let lookup = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into());
    let own = program::own_file();
    let prefix = own.parent().and_then(std::path::Path::parent);
    let (variables, mistakes) = config::defaults(lookup, prefix);
    mistakes
        .iter()
        .for_each(|mistake| complain(&format!("oshrun: warning: {mistake}")));
    for (name, value) in &variables {
        // SAFETY: `main` has started no thread that could read the environment meanwhile.
        unsafe { std::env::set_var(OsStr::new(name), value) };
    }
}
