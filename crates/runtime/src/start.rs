//! Initialization (OpenSHMEM 1.6, §9.1.1): how a process becomes a PE of its job. Inits are
//! counted. The first one joins the job; the first one after the last finalize returns to it.
//!
//! Each step of `start` makes a type that the next one consumes, so that none can be omitted or
//! made too early. It is in the file with its name (`publish` is in `map`, `observe` and `meet` are
//! in `open`):
//!
//! ```text
//! identify -> Identified -> exchange -> Exchanged -> agree -> Compatible -> map -> Mapped
//! -> publish -> Published -> join -> Joined -> connect -> Connected
//! -> observe -> Observed -> open -> Opened -> meet
//! ```
//!
//! An init after the last finalize begins with `Joined`. What the PEs decide together, they decide
//! by functions of the records that all have (`agree`, `connect::negotiation`), without a look at
//! their own process, so that all decide alike.

mod agree;
mod by_id;
mod child;
pub(crate) mod connect;
pub(crate) mod diagnose;
pub(crate) mod error;
mod exchange;
mod identify;
mod join;
mod map;
mod open;
mod record;
#[cfg(test)]
mod simulated;
mod user_settings;

pub use by_id::{UNIQUE_ID_BYTES, unique_id};

use crate::exit::{at_exit, finalize, threads};
use crate::own_pe;
use by_id::ById;
use core::ffi::c_int;
use error::StartError;
use identify::identify;
use join::Joined;
use rushmem_pe::call::{Call, call, fail};
use rushmem_pe::constants::{SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE};
use rushmem_pe::job::{self, Job};
use rushmem_pe::process;
use rushmem_system::lock::lock;
use rushmem_transport::Provider;
use std::sync::Mutex;

/// `shmem_init` (§9.1.1). `providers` are the transports that this build has.
pub fn init(call: Call, providers: &[Provider]) {
    enter(call, providers, SHMEM_THREAD_SINGLE, None);
}

/// `shmem_init_thread` (§9.2.1): an init that requests a thread level. Returns the provided level,
/// which is the one that the first init has requested. Returns `None`, without an init, if
/// `requested` is not a level.
pub fn init_thread(call: Call, providers: &[Provider], requested: c_int) -> Option<c_int> {
    if !is_thread_level(requested) {
        return None;
    }
    Some(enter(call, providers, requested, None).thread_level)
}

/// `shmemx_init_attr`: an init as PE `rank` of the `n_ranks` PEs of the job that the unique id
/// names; otherwise [`init_thread`]. Ends the job with an error if the rank or the id is invalid,
/// or if the process has joined by other arguments before.
pub fn init_by_id(
    call: Call,
    providers: &[Provider],
    requested: c_int,
    rank: c_int,
    n_ranks: c_int,
    id: &[u8; UNIQUE_ID_BYTES],
) -> Option<c_int> {
    let by_id = ById::new(call, rank, n_ranks, id);
    by_id.require_same(call);

    if !is_thread_level(requested) {
        return None;
    }
    Some(enter(call, providers, requested, Some(&by_id)).thread_level)
}

fn is_thread_level(level: c_int) -> bool {
    (SHMEM_THREAD_SINGLE..=SHMEM_THREAD_MULTIPLE).contains(&level)
}

/// `start_pes` (§9.1.13): an init that is finalized when the program exits. Has no effect while the
/// library is initialized. A PE that exits with another status than 0 while others go on is not
/// finalized: it has failed, which ends the job.
pub fn start_pes(call: Call, providers: &[Provider]) {
    if process::inits() > 0 {
        return;
    }
    enter(call, providers, SHMEM_THREAD_SINGLE, None);
    at_exit::finalize_at_exit(call!("start_pes (at exit)"), finalize::finalize);
}

/// Counts an init, and starts the PE if it is not initialized. Ends the job if the start is
/// refused.
fn enter(
    call: Call,
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> &'static Job {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if process::is_child() {
        job::refuse_child(call);
    }

    let _entering = lock(&ONE_AT_A_TIME);
    if process::inits() > 0 {
        process::increment_inits();
        return job::require(call);
    }

    process::begin_start();
    match start(call, providers, thread_level, by_id) {
        Ok(job) => {
            process::end_start();
            job
        }
        Err(why) => fail!(call, "{why}"),
    }
}

/// Makes the process a PE: the steps of a start, in their order. The log names each, so that one
/// can see in which a start hangs or ends.
fn start(
    call: Call,
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> Result<&'static Job, StartError> {
    let connected = threads::record_threads(|| {
        let joined = match own_pe::known() {
            Some(pe) => Joined::again(pe)?,
            None => identify(providers, thread_level, by_id)?
                .exchange()?
                .agree()?
                .map()?
                .publish()
                .join()?,
        };
        joined.connect(call, providers)
    })?;
    Ok(connected.observe(call).open(call).meet(call))
}
