//! The trace of the job for `SHMEM_TRACE`. Each PE creates its file and measures the offset of the
//! clock of PE 0 from its own; at the last finalize PE 0 merges the files into one trace, unless
//! that would take too long.

use crate::coll::collectives::{barrier_all, gather_words};
use crate::own_pe::OwnPe;
use rushmem_communication::links::Links;
use rushmem_communication::net::flags::FlagArea;
use rushmem_communication::observers::trace::{self, Ring};
use rushmem_communication::observers::{self, Observer};
use rushmem_communication::sync::waits::{self, Pauses};
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

// An asker has three words in the receive buffer of PE 0. These are their offsets in bytes.

/// The number of its last question.
const QUESTION: usize = 0;
/// The number of the last question that PE 0 has answered.
const ANSWERED: usize = WORD;
/// The answer to that question.
const ANSWER: usize = 2 * WORD;
/// The number of bytes of these words.
const ASKER_BYTES: usize = 3 * WORD;
/// Maximum number of PEs that ask at the same time.
const MAX_ASKERS: usize = MIN_RECEIVE_BUFFER / ASKER_BYTES;

/// Starts recording if `SHMEM_TRACE` is set, in the first init. The first init after the last
/// finalize continues the same ring.
pub(crate) fn start(pe: &'static OwnPe, call: Call) {
    let job = pe.job();
    let Some(directory) = &job.settings.trace else {
        return;
    };

    // The number, which PE 0 chooses, distinguishes the files of this job from others in the
    // directory. It contains the process number, since two jobs may start at the same time.
    let own_number = u64::from(std::process::id()) << 40 ^ nanoseconds();
    let number = gather_words(pe, call, pe.teams.world(), own_number)[0];

    let ring = match trace::get() {
        Some(ring) => ring,
        None => match create_ring(Path::new(directory), job, number) {
            Ok(ring) => ring,
            Err(error) => fail!(
                call,
                "SHMEM_TRACE: {directory} cannot be used: {error}; name a directory that each PE can \
                 write to, with room for SHMEM_TRACE_SIZE bytes for each of its PEs"
            ),
        },
    };

    ring.set_clock(false, clock_offset(pe, call));
    observers::add(Observer::Trace);
}

/// Creates the file of this PE, and the ring in it. `number` is that of the job.
fn create_ring(directory: &Path, job: &Job, number: u64) -> io::Result<&'static Ring> {
    let me = job.me.0;
    let header = [
        number,
        me.into(),
        job.n_pes.into(),
        job.nodes.node_of(me).into(),
    ];
    let capacity = job.settings.trace_size as usize / (RECORD_WORDS * WORD);
    create_file(directory, me, capacity.max(MIN_RECORDS), &header)
}

/// Creates the file of PE `me` with these words as its header, and the ring in it.
fn create_file(
    directory: &Path,
    me: u32,
    capacity: usize,
    header: &[u64],
) -> io::Result<&'static Ring> {
    fs::create_dir_all(directory)?;

    // Another job may start in the directory at the same time, so the file gets its name only when
    // it is whole. The job that comes last has the name. A process that has mapped an older file of
    // this name still has that file.
    let file = directory.join(file_name(me));
    let unfinished = directory.join(format!("{}-{:x}", file_name(me), header[0]));
    let opened = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&unfinished)?;
    or_remove(&unfinished, || {
        let ring = trace::start(&opened, capacity, header)?;
        fs::rename(&unfinished, file)?;
        Ok(ring)
    })
}

/// Returns the result of `complete`. If it fails, as on a full disk, removes the file.
fn or_remove<T>(file: &Path, complete: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let result = complete();
    if result.is_err() {
        // The error that is reported says more than that of the removal.
        let _ = fs::remove_file(file);
    }
    result
}

/// Ends the trace of this PE. All PEs call this; PE 0 writes the trace of the job if it has at most
/// [`MAX_RECORDS`] records, and otherwise says how to get it.
pub(crate) fn finish(pe: &'static OwnPe, call: Call) {
    let job = pe.job();
    let (Some(directory), Some(ring)) = (&job.settings.trace, trace::get()) else {
        return;
    };
    observers::remove(Observer::Trace);
    ring.set_clock(true, clock_offset(pe, call));
    trace::await_places();

    // The gathers also synchronize: all files are complete afterwards.
    let records = gather_words(pe, call, pe.teams.world(), ring.n_records());
    let dropped = gather_words(pe, call, pe.teams.world(), ring.n_dropped());
    if job.me != Pe(0) {
        return;
    }

    // The program has produced its result, so a failure is only a warning.
    let n_dropped: u64 = dropped.iter().sum();
    if n_dropped > 0 {
        warning!(
            "SHMEM_TRACE: {n_dropped} of the oldest records were dropped; set SHMEM_TRACE_SIZE to more than {} bytes",
            job.settings.trace_size
        );
    }

    let n_records: u64 = records.iter().sum();
    if n_records > MAX_RECORDS {
        warning!(
            "SHMEM_TRACE: there are {n_records} records; run shmem-info trace {directory} for {FILE}"
        );
        return;
    }

    let file = Path::new(directory).join(FILE);
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

    or_remove(file, || {
        let mut file = BufWriter::new(File::create(file)?);
        chrome::write(&job, &mut file)?;
        file.flush()
    })
    .map_err(|error| error.to_string())?;
    Ok(job.missing().n)
}

/// Returns the number of nanoseconds to add to this PE's clock for the clock of PE 0: 0 on the
/// machine of PE 0. On each other machine the first PE asks PE 0 many times. The fastest exchange
/// is used, and PE 0 is assumed to have read its clock in the middle of it, so that the error is at
/// most half of its duration.
fn clock_offset(pe: &'static OwnPe, call: Call) -> i64 {
    let job = pe.job();
    let machines = job.session().nodes().clone();
    if machines.n_nodes() == 1 {
        return 0;
    }

    // The first PE of a machine asks for all PEs of the machine.
    let mut askers: Vec<u32> = Vec::new();
    for machine in 0..machines.n_nodes() {
        if machine != machines.node_of(0) {
            askers.extend(machines.members(machine).next());
        }
    }

    let area = &pe.links.area;
    // If there are more askers than the receive buffer has room for, they ask in several turns.
    let mut offset = 0;
    for askers in askers.chunks(MAX_ASKERS) {
        for place in 0..askers.len() {
            area.write_own(words_of_asker(area, place), &[0; ASKER_BYTES / WORD]);
        }
        // No PE asks before the words are cleared.
        barrier_all((pe, call));

        if job.me == Pe(0) {
            answer(pe.links, askers.len());
        } else if let Some(place) = askers.iter().position(|&pe| pe == job.me.0) {
            offset = ask(area, words_of_asker(area, place));
        }
        // The askers of the next turn use the same words.
        barrier_all((pe, call));
    }

    let offsets = gather_words(pe, call, pe.teams.world(), offset.cast_unsigned());
    match machines.members(machines.node_of(job.me.0)).next() {
        Some(asker) => offsets[asker as usize].cast_signed(),
        None => 0,
    }
}

/// Returns the offset in the internal area of the words of an asker, by its place in the turn. They
/// are in a receive buffer, which is only in use during collectives.
fn words_of_asker(area: &FlagArea, place: usize) -> usize {
    area.areas().packed(0) + place * ASKER_BYTES
}

/// Answers questions with the time of this PE, until each of the askers of this turn has asked its
/// last question.
fn answer(links: &Links, n_askers: usize) {
    let area = &links.area;
    let mut unfinished: Vec<usize> = (0..n_askers)
        .map(|place| words_of_asker(area, place))
        .collect();

    let mut answer_all = || {
        unfinished.retain(|&words| {
            let question = area.flag(words + QUESTION);
            if question != area.flag(words + ANSWERED) {
                // The asker reads the answer once it has seen the number.
                area.write_own(words + ANSWER, &[nanoseconds()]);
                area.raise(Pe(0), words + ANSWERED, question);
            }
            question < QUESTIONS
        });
        unfinished.is_empty()
    };
    while !waits::test(links, &mut answer_all) {}
}

/// Asks PE 0 for its time, by the words at this offset of its internal area. Returns the number of
/// nanoseconds to add to this PE's clock for the clock of PE 0.
fn ask(area: &FlagArea, words: usize) -> i64 {
    let mut fastest = u64::MAX;
    let mut ahead = 0;
    for question in 1..=QUESTIONS {
        let Exchange {
            before,
            after,
            answer,
        } = ask_once(area, words, question);

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

fn ask_once(area: &FlagArea, words: usize, question: u64) -> Exchange {
    // The first pauses are short beside an exchange. The later ones keep the first PEs of all nodes
    // from loading PE 0 with reads until it answers.
    let mut pauses = Pauses::begin();
    let before = nanoseconds();
    area.raise(Pe(0), words + QUESTION, question);

    loop {
        let answered = area.words_of(std::iter::once(Pe(0)), words + ANSWERED)[0];
        let after = nanoseconds();

        // PE 0 stores the answer before it raises the number. One get of both words might read
        // them in another order, so the answer is read after the number.
        if answered == question {
            let answer = area.words_of(std::iter::once(Pe(0)), words + ANSWER)[0];
            return Exchange {
                before,
                after,
                answer,
            };
        }
        pauses.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of all jobs have the same names.
    #[test]
    fn jobs_may_start_in_one_directory_at_once() {
        let directory = std::env::temp_dir().join(format!("rushmem-traces-{}", std::process::id()));
        let directory = &directory;
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                scope.spawn(move || {
                    for turn in 0..100 {
                        let header = [thread << 32 | turn, 0, 1, 0];
                        create_file(directory, 0, MIN_RECORDS, &header).expect("a ring");
                    }
                });
            }
        });

        let files = fs::read_dir(directory).expect("the directory").count();
        fs::remove_dir_all(directory).expect("own directory");
        assert_eq!(files, 1);
    }

    #[test]
    fn a_full_disk_is_left_as_it_was() {
        let directory = std::env::temp_dir().join(format!("rushmem-full-{}", std::process::id()));
        // No file can have that many bytes.
        create_file(&directory, 0, 1 << 56, &[1, 0, 1, 0])
            .map(drop)
            .expect_err("no disk has room for it");

        let trace = directory.join(FILE);
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        or_remove(&trace, || {
            File::create(&trace)?.write_all(b"[")?;
            Err::<(), _>(full())
        })
        .expect_err("it is full");

        let files = fs::read_dir(&directory).expect("the directory").count();
        fs::remove_dir_all(directory).expect("own directory");
        assert_eq!(files, 0);
    }
}
