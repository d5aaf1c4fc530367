//! The trace of the job for `SHMEM_TRACE`. Each PE creates its file and measures the offset of the
//! clock of PE 0 from its own; at the last finalize PE 0 merges the files into one trace, unless
//! that would take too long.

use crate::coll::collectives::{barrier_all, gather_words};
use crate::teams::registry::teams;
use rushmem_communication::net::flags;
use rushmem_communication::observers::trace::{self, Ring};
use rushmem_communication::observers::{self, Observer};
use rushmem_communication::sync::waits;
use rushmem_pe::call::{Call, fail, warning::warning};
use rushmem_pe::job::Job;
use rushmem_pe::memory::areas::MIN_RECEIVE_BUFFER;
use rushmem_pe::process::time::nanoseconds;
use rushmem_trace::chrome;
use rushmem_trace::job::{FILE, JobTrace};
use rushmem_trace::layout::{RECORD_WORDS, WORD, file_name};
use rushmem_transport::Pe;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The minimum number of records of a ring.
const MIN_RECORDS: usize = 16;
/// Maximum number of records of all PEs that PE 0 merges in finalize. They fit into memory, and
/// merging them takes some seconds.
const MAX_RECORDS: u64 = 4 << 20;
/// The number of times that a PE asks PE 0 for its time. The fastest answer counts, so one question
/// that is not delayed suffices. The number was chosen without a measurement.
const QUESTIONS: u64 = 32;
/// Maximum number of PEs that ask at the same time.
const MAX_ASKERS: usize = MIN_RECEIVE_BUFFER / (3 * WORD);

/// Starts recording if `SHMEM_TRACE` is set, in the first init. The first init after the last
/// finalize continues the same ring.
pub(crate) fn start(call: Call, job: &Job) {
    let Some(directory) = &job.settings.trace else {
        return;
    };

    // The number distinguishes the files of this job from others in the directory.
    let number = gather_words(
        call,
        teams().world(),
        u64::from(std::process::id()) << 40 ^ nanoseconds(),
    )[0];

    let ring = trace::get().unwrap_or_else(|| {
        let me = job.me.0;
        let own = [number, me.into(), job.n_pes.into(), job.nodes.node_of(me).into()];
        let capacity = job.settings.trace_size as usize / (RECORD_WORDS * WORD);
        let ring = create_ring(Path::new(directory), me, capacity.max(MIN_RECORDS), &own);
        ring.unwrap_or_else(|error| {
            fail!(
                call,
                "SHMEM_TRACE: {directory} cannot be used: {error}; name a directory that each PE can \
                 write to, with room for SHMEM_TRACE_SIZE bytes for each of its PEs"
            )
        })
    });

    ring.set_clock(false, clock_offset(call, job));
    observers::add(Observer::Trace);
}

/// Creates the file of this PE, and the ring in it. `own` are the words of its header.
fn create_ring(
    directory: &Path,
    me: u32,
    capacity: usize,
    own: &[u64],
) -> io::Result<&'static Ring> {
    fs::create_dir_all(directory)?;
    // Another job may start in the directory at the same time, so the file gets its name only when
    // it is whole. The job that comes last has the name. A process that has mapped an older file of
    // this name still has that file.
    let file = directory.join(file_name(me));
    let unfinished = directory.join(format!("{}-{:x}", file_name(me), own[0]));
    let opened = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&unfinished)?;
    let ring = trace::start(&opened, capacity, own)?;
    fs::rename(unfinished, file)?;
    Ok(ring)
}

/// Ends the trace of this PE. All PEs call this; PE 0 writes the trace of the job if it has at most
/// [`MAX_RECORDS`] records, and otherwise says how to get it.
pub(crate) fn finish(call: Call, job: &Job) {
    let (Some(directory), Some(ring)) = (&job.settings.trace, trace::get()) else {
        return;
    };
    observers::remove(Observer::Trace);
    ring.set_clock(true, clock_offset(call, job));
    trace::await_places();
    // The gather also synchronizes: all files are complete afterwards.
    let [n_records, n_dropped] = [ring.n_records(), ring.n_dropped()]
        .map(|own| gather_words(call, teams().world(), own).iter().sum::<u64>());
    if job.me != Pe(0) {
        return;
    }

    // The program has produced its result, so a failure is only a warning.
    if n_dropped > 0 {
        warning!(
            "SHMEM_TRACE: {n_dropped} of the oldest records were dropped; set SHMEM_TRACE_SIZE to more than {} bytes",
            job.settings.trace_size
        );
    }

    let file = Path::new(directory).join(FILE);
    if n_records > MAX_RECORDS {
        warning!(
            "SHMEM_TRACE: there are {n_records} records; run shmem-info trace {directory} for {FILE}"
        );
        return;
    }

    match write(Path::new(directory), &file, ring) {
        Ok(0) => {}
        Ok(n) => warning!(
            "SHMEM_TRACE: the files of {n} PEs are not in {directory} here; copy those of other hosts into it, \
             and run shmem-info trace {directory}; jobs that run at once need a directory each"
        ),
        Err(why) => warning!("SHMEM_TRACE: {} cannot be written: {why}", file.display()),
    }
}

/// Writes the trace of the job to which `ring` belongs. Returns the number of PEs whose files are
/// missing.
fn write(directory: &Path, file: &Path, ring: &Ring) -> Result<u32, String> {
    let job = JobTrace::of_dir(directory)?;
    if job.pes[0].job != ring.job() {
        return Err(format!(
            "another job has written its trace to {}; name a directory for each job",
            directory.display()
        ));
    }
    let written = File::create(file).map(BufWriter::new).and_then(|mut out| {
        chrome::write(&job, &mut out)?;
        out.flush()
    });
    written.map_err(|error| error.to_string())?;
    Ok(job.missing().n)
}

/// Returns the number of nanoseconds to add to this PE's clock for the clock of PE 0: 0 on the
/// machine of PE 0. On each other machine the first PE asks PE 0 many times. The fastest exchange
/// is used, and PE 0 is assumed to have read its clock in the middle of it, so that the error is at
/// most half of its duration.
fn clock_offset(call: Call, job: &Job) -> i64 {
    let machines = job.session().nodes().clone();
    let n_askers = machines.n_nodes() as usize - 1;
    if n_askers == 0 {
        return 0;
    }
    let area = flags::area();
    // A receive buffer is only in use during collectives. It has three words for each asker: the
    // number of the question, the number of the answer, and the answer. If there are more askers
    // than room, they ask in several turns.
    let words_of = |asker: usize| area.areas().packed(0) + asker % MAX_ASKERS * 3 * WORD;

    // The askers are the first PEs of the machines other than that of PE 0.
    let first = |machine| machines.members(machine).next();
    let others = (0..machines.n_nodes()).filter(|&machine| machine != machines.node_of(0));
    let own_asker = others.map(first).position(|pe| pe == Some(job.me.0));

    let mut offset = 0;
    for turn in (0..n_askers).step_by(MAX_ASKERS) {
        let askers = turn..n_askers.min(turn + MAX_ASKERS);
        for asker in askers.clone() {
            area.write_own(words_of(asker), &[0; 3]);
        }
        // No PE asks before the words are cleared.
        barrier_all(call);

        if job.me == Pe(0) {
            answer(askers.map(words_of).collect());
        } else if let Some(asker) = own_asker.filter(|asker| askers.contains(asker)) {
            offset = ask(words_of(asker));
        }
        // The askers of the next turn use the same words.
        barrier_all(call);
    }

    let offsets = gather_words(call, teams().world(), offset.cast_unsigned());
    first(machines.node_of(job.me.0)).map_or(0, |pe| offsets[pe as usize].cast_signed())
}

/// Answers questions with the time of this PE, until each asker has asked its last question.
/// `askers` has the offset of each asker's words in the internal area.
fn answer(mut askers: Vec<usize>) {
    let area = flags::area();
    let mut answer = || {
        askers.retain(|&at| {
            let question = area.flag(at);
            if question != area.flag(at + WORD) {
                area.write_own(at + 2 * WORD, &[nanoseconds()]);
                area.raise(Pe(0), at + WORD, question);
            }
            question < QUESTIONS
        });
        askers.is_empty()
    };
    while !waits::test(&mut answer) {}
}

/// Asks PE 0 for its time, by the words at offset `at` of its internal area. Returns the number of
/// nanoseconds to add to this PE's clock for the clock of PE 0.
fn ask(at: usize) -> i64 {
    let mut fastest = u64::MAX;
    let mut ahead = 0;
    for question in 1..=QUESTIONS {
        let Exchange {
            before,
            after,
            answer,
        } = ask_once(at, question);

        let duration = after - before;
        if duration < fastest {
            fastest = duration;
            ahead = answer.wrapping_sub(before + duration / 2).cast_signed();
        }
    }
    ahead
}

/// A question for the time of PE 0. The times are in nanoseconds.
struct Exchange {
    /// The time of this PE before the question.
    before: u64,
    /// The time of this PE after the answer.
    after: u64,
    /// The time of PE 0 between them.
    answer: u64,
}

fn ask_once(at: usize, question: u64) -> Exchange {
    let area = flags::area();
    let before = nanoseconds();
    area.raise(Pe(0), at, question);

    loop {
        let answered = area.words_of(std::iter::once(Pe(0)), at + WORD)[0];
        let after = nanoseconds();

        // PE 0 stores the answer before it raises the number. One get of both words might read
        // them in another order, so the answer is read after the number.
        if answered == question {
            let answer = area.words_of(std::iter::once(Pe(0)), at + 2 * WORD)[0];
            return Exchange {
                before,
                after,
                answer,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of all jobs have the same names.
    #[test]
    fn jobs_may_start_in_one_directory_at_once() {
        let directory = std::env::temp_dir().join(format!("rushmem-traces-{}", std::process::id()));
        let start = |job: u64| {
            let ring = create_ring(&directory, 0, MIN_RECORDS, &[job, 0, 1, 0]);
            ring.map(|_| ()).expect("a ring")
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || (0..100).for_each(|turn| start(thread << 32 | turn)));
            }
        });
        let files = fs::read_dir(&directory).expect("the directory").count();
        fs::remove_dir_all(&directory).expect("own directory");
        assert_eq!(files, 1);
    }
}
