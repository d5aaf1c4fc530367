//! The figures of one run, which may consist of several jobs, as one record. `shmem-perf compare`
//! counts each record as one run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use shmem_perf::compare;
use shmem_perf::record::{FORMAT, Measure, Point, Record, Series, Shape};

/// The minimum number of runs of each side that can be compared.
pub const FEWEST: i64 = 4;

pub struct RunRecord(Record);

impl RunRecord {
    pub fn new() -> Self {
        Self(Record {
            format: FORMAT,
            complete: true,
            ..Record::default()
        })
    }

    /// Adds the figures of a job of shmem-perf. They replace those of the same series of an earlier
    /// job: several jobs may measure the same floor.
    pub fn add_job(&mut self, job: Record) {
        let Self(run) = self;
        run.series
            .retain(|old| !job.series.iter().any(|new| new.is_same_as(old)));
        run.series.extend(job.series);
        run.library = job.library;
        run.job = job.job;
    }

    /// Adds the nanoseconds of an event in a job of `n_pes`. An event whose name begins with
    /// `bare_` is a floor: the program does it without the library.
    pub fn add_event(&mut self, name: &str, n_pes: usize, ns: f64) {
        self.0.series.push(Series {
            measure: Measure::Event,
            operation: name.to_owned(),
            is_floor: name.starts_with("bare_"),
            shape: Shape {
                n_pes: n_pes as u32,
                ..Shape::default()
            },
            points: vec![Point::once(ns)],
        });
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, serde_json::to_string(&self.0)?)
            .with_context(|| format!("could not write {}", path.display()))
    }
}

/// Prints the comparison of the records of runs `before` and `after`, including equal figures.
pub fn compare(before: &[PathBuf], after: &[PathBuf], flags: &[&str]) -> Result<()> {
    const NO_TEXT: &str = "the path of a record is not in UTF-8";

    let mut words: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    words.push("--all".to_owned());
    for path in before {
        words.push(path.to_str().context(NO_TEXT)?.to_owned());
    }
    words.push("--with".to_owned());
    for path in after {
        words.push(path.to_str().context(NO_TEXT)?.to_owned());
    }

    // The exit status is ignored, since the text also says whether something is slower.
    let _status = compare::run(&words).map_err(Error::msg)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmem_perf::record;

    #[test]
    fn a_run_has_each_figure_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let series = |operation: &str, ns| Series {
            measure: Measure::Latency,
            operation: operation.to_owned(),
            is_floor: operation == "memcpy",
            shape: Shape::default(),
            points: vec![Point::once(ns)],
        };
        let job = |series| Record {
            series,
            ..Record::default()
        };
        let mut run = RunRecord::new();
        run.add_job(job(vec![series("put", 2.0), series("memcpy", 1.0)]));
        run.add_job(job(vec![series("get", 3.0), series("memcpy", 1.5)]));
        run.add_event("bare_update", 2, 4.0);
        let path = dir.path().join("run.json");
        run.write(&path).expect("it is written");
        let found = record::load(&path).expect("it is a record");
        let mut figures = Vec::new();
        for one in &found.series {
            let ns = one.points[0].summary.p50;
            figures.push((one.operation.as_str(), one.is_floor, ns));
        }
        let expected = [
            ("put", false, 2.0),
            ("get", false, 3.0),
            ("memcpy", true, 1.5),
            ("bare_update", true, 4.0),
        ];
        assert_eq!(figures, expected);
        assert!(found.complete);
    }

    #[test]
    fn runs_of_two_sides_are_compared() {
        let dir = tempfile::tempdir().expect("a directory");
        let side = |name: &str, ns: f64| -> Vec<PathBuf> {
            let mut paths = Vec::new();
            for number in 0..FEWEST as u32 {
                let mut run = RunRecord::new();
                run.add_event("start", 2, ns + f64::from(number));
                let path = dir.path().join(format!("{name} {number}.json"));
                run.write(&path).expect("it is written");
                paths.push(path);
            }
            paths
        };
        let before = side("theirs", 100.0);
        let after = side("ours", 50.0);
        compare(&before, &after, &[]).expect("there are enough runs");
        let few = compare(&before[1..], &after[1..], &[]).expect_err("there are too few");
        assert!(few.to_string().contains("the minimum is 4"), "{few}");
    }
}
