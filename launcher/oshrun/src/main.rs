//! `oshrun`: starts a program as the PEs of one OpenSHMEM job and owns that job until nothing of it is left.
//!
//! One file or folder per subject:
//!
//! - what to start: `args`, `program`; where: `hosts`, `placement`; with which variables: `environment`;
//! - starting: `prepare` and `capacity` check first, `aslr`, `limits` and `spawn` start PEs,
//!   `guard` ends them if oshrun is killed;
//! - `mark`, `descendants` and `liveness` ensure that no process remains, `leftovers` that no file of libfabric's does;
//! - `local_pes` holds the PEs of this process, `tree` those of other processes and hosts;
//! - `output` and `input` forward streams, `link` frames, `signals` the signals of the user;
//! - `watchdog` ends oshrun if it can decide nothing any more;
//! - `debugger`, `progress` and `timings` help to watch a job, `dry_run` shows one that is not
//!   started;
//! - `job` decides, by the rules of `rushmem_bootstrap::server`.
//!
//! The same program has three roles: oshrun itself, a daemon (`tree::daemon`) and a guard. It never interprets the
//! records that PEs exchange.

mod args;
mod aslr;
mod capacity;
mod debugger;
mod descendants;
mod dry_run;
mod environment;
mod failure;
mod guard;
mod hosts;
mod input;
mod job;
mod leftovers;
mod limits;
mod link;
mod liveness;
mod local_pes;
mod mark;
mod output;
mod placement;
mod prepare;
mod processes;
mod program;
mod progress;
mod signals;
mod spawn;
mod timings;
mod tree;
mod watchdog;

use std::process::ExitCode;

use failure::{Failure, cannot, complain};

fn main() -> ExitCode {
    if guard::is_guard() {
        return guard::stand();
    }
    if tree::daemon::is_daemon() {
        return tree::daemon::serve();
    }
    watchdog::report_panics();
    let status = start().unwrap_or_else(|failure| {
        complain(&format!("oshrun: {}", failure.sentence));
        failure.status
    });
    // At once: a writer whose reader has stopped must not hold the exit.
    std::process::exit(status)
}

fn start() -> Result<i32, Failure> {
    if documents::printed(args::command()) {
        return Ok(0);
    }
    let Some(options) = args::parse(std::env::args_os())? else {
        return Ok(0);
    };
    // The event loop needs descriptors, too.
    limits::make_room(0, 0, false)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot("wait for events", &error))?;
    let status = runtime.block_on(job::run(&options));
    // Its destructors would wait for nothing useful.
    std::mem::forget(runtime);
    status
}
