//! Jobs of the installed `shmem-perf`, and checks of what they write.

use std::fs;
use std::path::{Path, PathBuf};

use shmem_perf::record::{FORMAT, Interval, Measure, Record, Series};
use testkit::{Job, Outcome, prefix};

pub fn program() -> PathBuf {
    prefix().join("bin/shmem-perf")
}

/// Returns a job of `n` PEs that measures for about a second.
pub fn short(n: usize, words: &[&str]) -> Job {
    Job::new(program()).n(n).args(["--time", "1"]).args(words)
}

/// Returns the path of a file for a test, after removing what an earlier run left there.
pub fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shmem-perf");
    fs::create_dir_all(&dir).expect("a directory for tests");
    let file = dir.join(name);
    _ = fs::remove_file(&file);
    file
}

/// Runs a job that writes a record, and checks that the record is complete and plausible.
#[track_caller]
pub fn record(name: &str, job: Job) -> (Record, Outcome) {
    let file = file(name);
    let outcome = job.arg("--output").arg(file.display()).run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    let record = read(&file);
    assert!(record.complete);
    assert_eq!(record.format, FORMAT);
    for series in &record.series {
        require_plausible(series);
    }
    (record, outcome)
}

pub fn read(file: &Path) -> Record {
    serde_json::from_str(&fs::read_to_string(file).expect("a file")).expect("a record")
}

/// Checks that sizes and percentiles ascend, and that each median is in its interval.
#[track_caller]
pub fn require_plausible(series: &Series) {
    let name = &series.operation;
    let points = &series.points;
    assert!(!points.is_empty(), "{name}");
    assert!(points.is_sorted_by_key(|point| point.nbytes), "{name}");

    for point in points {
        let s = &point.summary;
        assert!(s.n > 0, "{name}: {s:?}");
        let growing = [s.min, s.p50, s.p90, s.p99, s.p999.unwrap_or(s.p99), s.max];
        assert!(growing.is_sorted(), "{name}: {s:?}");
        // No operation takes no time, but a transfer may not overlap at all.
        let has_time = s.min > 0.0 || series.measure == Measure::Overlap;
        assert!(has_time, "{name}: {s:?}");

        if let Some(Interval { low, high }) = s.interval {
            assert!(low <= s.p50 && s.p50 <= high, "{name}: {s:?}");
        }
        assert!(!s.batches.is_empty(), "{name}: {s:?}");
        assert_eq!(s.interval.is_some(), s.batches.len() >= 6, "{name}: {s:?}");
        assert_eq!(s.p999.is_some(), s.n >= 1000, "{name}: {s:?}");
    }
}

pub fn find<'a>(record: &'a Record, measure: Measure, operation: &str) -> Option<&'a Series> {
    record
        .series
        .iter()
        .find(|s| s.measure == measure && s.operation == operation)
}

#[track_caller]
pub fn has(record: &Record, measure: Measure, operations: &[&str]) {
    for operation in operations {
        let series = find(record, measure, operation);
        assert!(series.is_some(), "{measure:?} of {operation}");
    }
}

/// Checks that the job failed with exactly one message of the program. `oshrun` may print another
/// one about the end of the job.
#[track_caller]
pub fn refused(outcome: &Outcome, words: &[&str]) {
    assert_ne!(outcome.code(), 0, "{outcome}");
    let messages: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("shmem-perf"))
        .collect();
    assert_eq!(messages.len(), 1, "not exactly one message\n{outcome}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
    }
}
