//! `shmem-perf tune`: measures which algorithms of collectives are the fastest in the job that it
//! runs in, and writes a file for `SHMEM_COLL_TUNING`.
//!
//! `shmem-perf` measures any OpenSHMEM library through its C routines. It starts this program,
//! which contains Rushmem, because no routine of OpenSHMEM can change the table of algorithms
//! within a job.
//!
//! It measures on teams of the first 2, 4, 8, ... PEs and of all; the other PEs wait meanwhile. The
//! algorithms of a size take turns, so that other load on the machine affects all of them. The best
//! time of each counts.

mod measure;
mod rows;

use std::fs::File;
use std::io::Write;

use rushmem_collectives::choice::{ChoiceFacts, Table};
use rushmem_runtime::{TeamHandle, collectives, setup, team};

use crate::args::TuneFlags;

use measure::{Arrays, CALL};
use rows::{CallTime, MeasuredRow, MeasuredSize};

/// The number of measurements of each algorithm at a size; the best time counts.
const PASSES: usize = 5;

/// Runs a PE of the job that measures.
pub fn run(flags: &TuneFlags) {
    setup::init(CALL, rushmem_providers::ALL);
    if let Err(sentence) = measure(flags) {
        CALL.fail(format_args!("{sentence}"));
    }
    setup::finalize(CALL);
}

/// Measures on all teams. PE 0 writes the file.
fn measure(flags: &TuneFlags) -> Result<(), String> {
    let n = setup::n_pes(CALL) as u32;
    if setup::my_pe(CALL) != 0 {
        measure_teams(flags, n)?;
        return Ok(());
    }

    // A file that cannot be written is found before the measurements, not after them.
    let mut file = output(flags)?;
    let text = measure_teams(flags, n)?;
    file.write_all(text.as_bytes())
        .map_err(|error| format!("it cannot write: {error}"))
}

/// Opens the destination of the rows: the file of `--output`, or else stdout.
fn output(flags: &TuneFlags) -> Result<Box<dyn Write>, String> {
    let Some(path) = &flags.output else {
        return Ok(Box::new(std::io::stdout()));
    };
    match File::create(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(format!("{} cannot be written: {error}", path.display())),
    }
}

/// Measures on all teams. Returns the text of the file. All PEs of the job call it.
fn measure_teams(flags: &TuneFlags, n: u32) -> Result<String, String> {
    let nbytes = flags.max_bytes as usize;
    let arrays = Arrays::new(nbytes).ok_or_else(|| {
        format!("the symmetric heap has no room for two arrays of {nbytes} bytes; enlarge SHMEM_SYMMETRIC_SIZE")
    })?;
    let mut text = format!(
        "# Measured by shmem-perf tune {} on {n} PEs; SHMEM_COLL_TUNING=FILE uses it.\n\
         # operation   bytes         members  nodes    per-node  oversubscribed  algorithm\n",
        env!("CARGO_PKG_VERSION")
    );

    let mut least = 2;
    for size in sizes(n) {
        let config = team::TeamConfig::default();
        let team = team::split_strided(CALL, TeamHandle::WORLD, 0, 1, size as i32, config)
            .ok_or("no team is left")?;
        // The other PEs get no team.
        if team != TeamHandle::INVALID {
            let facts = collectives::choice_facts(CALL, team);
            for &operation in Table::OPERATIONS {
                let sizes = measure_operation(flags, &arrays, operation, team, &facts);
                if !sizes.is_empty() {
                    let measured = MeasuredRow {
                        operation,
                        facts,
                        sizes,
                    };
                    text += "\n";
                    text += &measured.rows(least, size == n);
                }
            }
            team::destroy(CALL, team);
        }

        // The others must not use the CPUs, for a larger team, while this one is measured.
        collectives::barrier_all(CALL);
        least = size + 1;
    }
    Ok(text)
}

/// Returns the powers of two below `n`, and `n`: a team of one has no choice.
fn sizes(n: u32) -> impl Iterator<Item = u32> {
    let powers = (1..)
        .map(|log| 1 << log)
        .take_while(move |&power| power < n);
    let all = if n > 1 { Some(n) } else { None };
    powers.chain(all)
}

/// Measures the algorithms of an operation for each number of bytes for which there is a choice.
/// All members of the team call it.
fn measure_operation(
    flags: &TuneFlags,
    arrays: &Arrays,
    operation: &str,
    team: TeamHandle,
    facts: &ChoiceFacts,
) -> Vec<MeasuredSize> {
    let most = flags.max_bytes as usize;
    let sizes: Vec<usize> = match operation {
        "sync" => vec![0],
        _ => std::iter::successors(Some(8), |nbytes| Some(nbytes * 4))
            .take_while(|&nbytes| nbytes <= most)
            .filter(|&nbytes| arrays.fit(operation, facts.members, nbytes))
            .collect(),
    };

    let mut measured = Vec::new();
    for nbytes in sizes {
        let candidates = candidates(operation, nbytes, facts);
        if candidates.len() > 1 {
            let times = measure_algorithms(flags, arrays, operation, team, nbytes, &candidates);
            measured.push(MeasuredSize { nbytes, times });
        }
    }
    measured
}

/// An algorithm to measure, and a table that chooses it.
struct Candidate {
    algorithm: &'static str,
    table: &'static Table,
}

/// Returns the algorithms that the library uses for this number of bytes if a table asks for them.
fn candidates(operation: &str, nbytes: usize, facts: &ChoiceFacts) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for algorithm in Table::algorithms(operation) {
        let mut table = Table::default();
        let row = format!("{operation} any any any any any {algorithm}");
        table.read(&row).expect("a row of its own");
        table.complete();
        if table.chosen(operation, nbytes, facts) == Some(algorithm) {
            // The library needs a table that lives forever; some kilobytes for each size leak.
            let table = Box::leak(Box::new(table));
            candidates.push(Candidate { algorithm, table });
        }
    }
    candidates
}

/// Returns the best time of a call with each algorithm.
fn measure_algorithms(
    flags: &TuneFlags,
    arrays: &Arrays,
    operation: &str,
    team: TeamHandle,
    nbytes: usize,
    candidates: &[Candidate],
) -> Vec<CallTime> {
    let enough = flags.time as f64 * 1e-3;
    let mut count = 1;
    let mut best: Vec<CallTime> = candidates
        .iter()
        .map(|candidate| CallTime {
            algorithm: candidate.algorithm,
            seconds: f64::INFINITY,
        })
        .collect();
    for pass in 0..PASSES {
        for (candidate, best) in candidates.iter().zip(&mut best) {
            // No PE is in a collective of the team, and all members use the same table in the next
            // one.
            let former = collectives::replace_table(CALL, candidate.table);
            // `time` returns the same value on all members, so they agree on `count`.
            let mut seconds = arrays.time(operation, team, nbytes, count);
            while pass == 0 && seconds < enough {
                count *= 2;
                seconds = arrays.time(operation, team, nbytes, count);
            }
            collectives::replace_table(CALL, former);

            best.seconds = best.seconds.min(seconds / count as f64);
        }
    }
    best
}
