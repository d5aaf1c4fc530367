//! `oshrun` starts a program as the PEs of an OpenSHMEM job, and supervises the job until none of
//! its processes is left.
//!
//! - What to start: `args`, `foreign` (options of other launchers), `program`. Where: `hosts`,
//!   `placement`. Environment: `environment`.
//! - Checks before the start: `prepare`, `capacity`; what they report: `failure`. Start: `aslr`,
//!   `limits`, `spawn`.
//! - PEs of this process: `local_pes`, `processes`, `memory_kills`. Other processes and hosts:
//!   `tree`.
//! - Forwarding: `output` and `input` (streams), `pe_socket` (frames), `signals`.
//! - Cleanup: `guard` (if oshrun is killed), `mark`, `descendants`, `liveness` and `leftovers`.
//! - Examination of the hosts before a job: `doctor`.
//! - Monitoring: `host_starts`, `progress_line`, `timings`, `debugger`, `dry_run`, `watchdog`.
//! - What hangs: `explain`.
//! - `job`, on an `event_loop`, applies the rules of `rushmem_bootstrap::server`; `retries` starts
//!   it again after the loss of a host (`host_losses`).
//!
//! The executable has three roles: the launcher, a daemon (`tree::daemon`) and a guard. It does not
//! interpret the records that PEs exchange.

mod args;
mod aslr;
mod capacity;
mod debugger;
mod descendants;
mod doctor;
mod dry_run;
mod environment;
mod event_loop;
mod explain;
mod failure;
mod foreign;
mod guard;
mod host_losses;
mod host_starts;
mod hosts;
mod input;
mod job;
mod leftovers;
mod limits;
mod liveness;
mod local_pes;
mod mark;
mod memory_kills;
mod output;
mod pe_socket;
mod placement;
mod prepare;
mod processes;
mod program;
mod progress_line;
mod retries;
mod signals;
mod spawn;
mod timings;
mod tree;
mod watchdog;

use std::process::ExitCode;

use failure::{StartFailure, complain};

fn main() -> ExitCode {
    if guard::is_guard() {
        return guard::run();
    }
    if tree::daemon::is_daemon() {
        return tree::daemon::serve();
    }
    watchdog::report_panics();
    let status = start().unwrap_or_else(|failure| {
        complain(&format!("oshrun: {}", failure.sentence));
        failure.status
    });
    // Exits without joining the writer threads, which may be blocked by a reader that has stopped.
    std::process::exit(status)
}

fn start() -> Result<i32, StartFailure> {
    if documents::printed(args::command) {
        return Ok(0);
    }
    let Some(options) = args::parse(std::env::args_os())? else {
        return Ok(0);
    };
    if let Some(examined) = &options.doctor {
        return Err(doctor::run(examined));
    }
    event_loop::block_on(retries::run(&options))?
}
