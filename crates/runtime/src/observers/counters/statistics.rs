//! Gathers the counters of all PEs at the last finalize, for `SHMEM_STATS`: PE 0 prints a table or
//! writes a file.

use crate::call::warning::warning;
use crate::call::{Call, fail};
use crate::coll::collectives;
use crate::job::Job;
use crate::memory::areas::MIN_RECEIVE_BUFFER;
use crate::observers::{self, Subscriber, counters};
use crate::settings::Statistics;
use crate::sync::flags;
use crate::teams::team;
use form::{JobStatistics, PeStatistics};
use rushmem_transport::{Pe, activity};
use rushmem_wire::STATISTICS;
use std::fs::File;
use std::io::Write;
use std::path::Path;

mod form;
mod table;

/// Counts from the first init on, if the user asks for it. PE 0 checks that the file can be
/// written.
pub(crate) fn start(call: Call, job: &Job) {
    if counters::get().is_some() {
        return;
    }
    match &job.settings.statistics {
        Statistics::No => return,
        Statistics::Json(file) if job.me == Pe(0) => {
            if let Err(error) = File::create(file) {
                // Cause: the directory does not exist or may not be written to.
                fail!(call, "SHMEM_STATS: {file} cannot be written: {error}; name another file");
            }
        }
        Statistics::Json(_) | Statistics::Table => {}
    }
    activity::enable();
    let own = job.nodes.node_of(job.me.0);
    counters::start((0..job.n_pes).map(|pe| job.nodes.node_of(pe) == own));
    observers::add(Subscriber::Counters);
}

/// Returns what this PE has counted until now; `None` if it does not.
pub(crate) fn own(job: &Job) -> Option<Vec<u8>> {
    let own = PeStatistics::new(job, counters::get()?);
    Some(rushmem_wire::encode(STATISTICS, &own))
}

/// Gathers what all PEs have counted, of which all are here, and puts it out.
pub(crate) fn put_out(call: Call, job: &Job, own: Vec<u8>) {
    let pes = gather(call, job, own);
    if job.me != Pe(0) {
        return;
    }
    let pes = pes.iter().map(|bytes| rushmem_wire::decode(STATISTICS, bytes));
    let pes = pes.collect::<Result<Vec<PeStatistics>, _>>();
    let pes = pes.unwrap_or_else(|error| fail!(call, "{error}"));
    // The program has done its work: what fails now is a warning.
    let written = match &job.settings.statistics {
        Statistics::Json(file) => {
            let all = JobStatistics::new(job, pes);
            all.write(Path::new(file)).map_err(|error| format!("{file} cannot be written: {error}"))
        }
        _ => std::io::stderr()
            .write_all(table::of(&pes).as_bytes())
            .map_err(|error| format!("the table cannot be printed: {error}")),
    };
    if let Err(why) = written {
        warning!("SHMEM_STATS: {why}");
    }
}

/// Gathers the bytes of each PE at PE 0, through a receive buffer that nothing uses outside
/// collectives.
fn gather(call: Call, job: &Job, own: Vec<u8>) -> Vec<Vec<u8>> {
    if job.n_pes == 1 {
        return vec![own];
    }
    let lengths = collectives::words(call, team::teams().world(), own.len() as u64);
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let area = flags::area();
    let receive_buffer = area.range(area.areas().packed(0), MIN_RECEIVE_BUFFER);
    let mut all = vec![Vec::new(); lengths.len()];
    for at in (0..longest).step_by(MIN_RECEIVE_BUFFER) {
        let part = |nbytes: usize| at.min(nbytes)..nbytes.min(at + MIN_RECEIVE_BUFFER);
        let shown = part(own.len());
        receive_buffer.part(0, shown.len()).write(&own[shown]);
        collectives::barrier_all(call);
        if job.me == Pe(0) {
            for (pe, (bytes, &nbytes)) in (0..).zip(all.iter_mut().zip(&lengths)) {
                bytes.extend(receive_buffer.part(0, part(nbytes as usize).len()).read(Pe(pe)));
            }
        }
        // The value that is shown next replaces this one.
        collectives::barrier_all(call);
    }
    all
}
