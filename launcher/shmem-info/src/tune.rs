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
use rushmem_runtime::{TeamHandle, collectives, setup, start, team};

use crate::args::TuneFlags;

use measure::{Arrays, CALL};
use rows::{CallTime, MeasuredRow, MeasuredSize};

/// The number of measurements of each algorithm at a size; the best time counts.
const PASSES: usize = 5;

/// Runs a PE of the job that measures.
pub fn run(flags: &TuneFlags) {
    start::init(CALL, rushmem_providers::ALL);
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
         # operation     bytes         members  nodes    per-node  oversubscribed  algorithm\n",
        env!("CARGO_PKG_VERSION")
    );

    let mut least = 2;
    for size in sizes(n) {
        let config = team::TeamConfig::default();
        let team = team::split_strided(CALL, TeamHandle::WORLD, 0, 1, size as i32, config)
            .ok_or("no team is left")?;

        // The PEs that are not members get no team.
        if team != TeamHandle::INVALID {
            let measurement = TeamMeasurement {
                flags,
                arrays: &arrays,
                team,
                facts: collectives::choice_facts(CALL, team),
            };
            for &operation in Table::OPERATIONS {
                let measured = measurement.measure_operation(operation);
                if !measured.sizes.is_empty() {
                    text += "\n";
                    text += &measured.rows(least, size == n);
                }
            }
            team::destroy(CALL, team);
        }

        // The other PEs wait here, so that they do not use the CPUs while this team is measured.
        collectives::barrier_all(CALL);
        least = size + 1;
    }
    Ok(text)
}

/// Returns the sizes of the teams: the powers of two below `n`, and `n`. A team of one has no
/// choice.
fn sizes(n: u32) -> Vec<u32> {
    let mut sizes = Vec::new();
    let mut power = 2;
    while power < n {
        sizes.push(power);
        power *= 2;
    }
    if n > 1 {
        sizes.push(n);
    }
    sizes
}

/// The measurements on a team. All members make the same ones.
struct TeamMeasurement<'a> {
    flags: &'a TuneFlags,
    arrays: &'a Arrays,
    team: TeamHandle,
    facts: ChoiceFacts,
}

impl TeamMeasurement<'_> {
    /// Measures the algorithms of an operation for each number of bytes for which there is a
    /// choice.
    fn measure_operation(&self, operation: &'static str) -> MeasuredRow {
        let mut sizes = Vec::new();
        for nbytes in self.numbers_of_bytes(operation) {
            let candidates = candidates(operation, nbytes, &self.facts);
            if candidates.len() > 1 {
                let times = self.measure_algorithms(operation, nbytes, &candidates);
                sizes.push(MeasuredSize { nbytes, times });
            }
        }
        MeasuredRow {
            operation,
            facts: self.facts,
            sizes,
        }
    }

    fn numbers_of_bytes(&self, operation: &str) -> Vec<usize> {
        if operation == "sync" {
            return vec![0];
        }

        let mut numbers = Vec::new();
        let mut nbytes = 8;
        while nbytes <= self.flags.max_bytes as usize {
            if self.arrays.fit(operation, self.facts.members, nbytes) {
                numbers.push(nbytes);
            }
            nbytes *= 4;
        }
        numbers
    }

    /// Returns the best time of a call with each algorithm.
    fn measure_algorithms(
        &self,
        operation: &str,
        nbytes: usize,
        candidates: &[Candidate],
    ) -> Vec<CallTime> {
        let mut best = Vec::new();
        for candidate in candidates {
            best.push(CallTime {
                algorithm: candidate.algorithm,
                seconds: f64::INFINITY,
            });
        }

        let enough = self.flags.time as f64 * 1e-3;
        let time = |count| self.arrays.time(operation, self.team, nbytes, count);
        let mut count = 1;
        for pass in 0..PASSES {
            for (candidate, best) in candidates.iter().zip(&mut best) {
                // The table may be replaced: no PE is in a collective of the team, and all members
                // use the same table in the next one.
                let former = collectives::replace_table(CALL, candidate.table);
                // `time` returns the same value on all members, so they agree on `count`.
                let mut seconds = time(count);
                while pass == 0 && seconds < enough {
                    count *= 2;
                    seconds = time(count);
                }
                collectives::replace_table(CALL, former);

                best.seconds = best.seconds.min(seconds / count as f64);
            }
        }
        best
    }
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
