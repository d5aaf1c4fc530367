//! The trace of the job for `SHMEM_TRACE`. Each PE creates its file; at the last finalize PE 0
//! merges the files into one trace, unless that would take too long.

use crate::coll::collectives::gather_words;
use crate::own_pe::OwnPe;
use crate::reports::clock::clock_offset;
use rushmem_communication::observers::trace::{self, Ring};
use rushmem_communication::observers::{self, Observer};
use rushmem_pe::call::{Call, fail, warning::warning};
use rushmem_pe::job::Job;
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

    ring.set_first_clock(clock_offset(pe, call));
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
    ring.set_last_clock(clock_offset(pe, call));
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
