//! `oshrun`: starts a program as the PEs of one OpenSHMEM job and owns that job until nothing of it is left.
//!
//! One file per subject: `args` and `program` say what to start, `placement` where,
//! `limits`, `spawn` and `guard` start it, `output` and
//! `input` carry its streams, `link` its frames, `signals` what the user sends, and `job` decides, by the rules of
//! `rushmem_bootstrap::server`. The launcher never looks into the records that PEs exchange.

mod args;
mod failure;
mod guard;
mod input;
mod job;
mod limits;
mod lines;
mod link;
mod output;
mod placement;
mod processes;
mod program;
mod signals;
mod spawn;

use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    if guard::is_guard() {
        return guard::stand();
    }
    let status = start().unwrap_or_else(|failure| {
        eprintln!("oshrun: {}", failure.sentence);
        failure.status
    });
    // At once: a writer whose reader has stopped must not hold the exit.
    std::process::exit(status)
}

fn start() -> Result<i32, Failure> {
    let Some(options) = args::parse(std::env::args_os())? else {
        return Ok(0);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::general(format!("cannot wait for events: {error}")))?;
    let status = runtime.block_on(job::run(&options));
    // Its destructors would wait for nothing useful.
    std::mem::forget(runtime);
    status
}
