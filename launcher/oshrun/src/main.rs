//! `oshrun` starts a program as the PEs of an OpenSHMEM job, and supervises the job until its end.
//!
//! - `options`: the command line. `settings`: the environment and files. `hosts`: the hosts and the
//!   number of PEs on each. `errors`: errors.
//! - `spawn`: starts processes, after checks of the program, the limits of the host and the
//!   placement.
//! - `pes`: the PEs of this host. `daemons`: those of other hosts. `supervisor`: both.
//! - `output` and `input`: the streams of PEs. `progress`: how far the start has come.
//! - `ends`: ends all processes of a job, also if oshrun itself is killed.
//! - `hang_report`: explains which PE of a job that hangs waits for which.
//! - `job`: applies the rules of `rushmem_bootstrap::launcher` to events and signals.
//!
//! The executable has three roles: the launcher, a daemon (`daemons::daemon`) and a guard
//! (`ends::guard`). No role interprets the records that PEs exchange.

mod daemons;
mod ends;
mod errors;
mod hang_report;
mod hosts;
mod input;
mod job;
mod options;
mod output;
mod pes;
mod progress;
mod settings;
mod spawn;
mod supervisor;

use std::process::ExitCode;

use ends::guard;
use errors::StartFailure;
use rushmem_system::stderr::print_line;

fn main() -> ExitCode {
    if guard::is_guard() {
        return guard::run();
    }
    if daemons::daemon::is_daemon() {
        return daemons::daemon::serve();
    }

    errors::report_panics();
    let status = match start() {
        Ok(status) => status,
        Err(StartFailure { status, sentence }) => {
            let places = settings::places_in(&sentence);
            print_line(format_args!("oshrun: {sentence}{places}"));
            status
        }
    };

    // Exits without joining the writer threads, which may be blocked by a reader that has stopped.
    std::process::exit(status)
}

fn start() -> Result<i32, StartFailure> {
    if man_pages::print_if_requested(options::command) {
        return Ok(0);
    }
    let Some(mut options) = options::parse(std::env::args_os())? else {
        return Ok(0);
    };

    settings::apply(&options.exported);
    if options.doctor {
        return Err(options.examine());
    }

    options.enter_directory()?;
    supervisor::block_on(job::run(&options))?
}
