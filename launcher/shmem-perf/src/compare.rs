//! `shmem-perf compare`: says which figures of two sides, each of one or more runs, differ beyond
//! noise.
//!
//! A figure differs if its values do by a two-sided Mann-Whitney test at 5 %, corrected for the
//! number of comparisons by the method of Benjamini and Hochberg, and if its median differs by more
//! than a threshold. With several records of each side the values are those of runs; with one, of
//! batches.

mod judge;
mod mann_whitney;
mod words;

use std::path::PathBuf;

use clap::Parser;

use crate::options;
use crate::print::print;
use crate::record::{self, Record};

/// The default threshold in percent with several runs of a side, which show how runs differ. A
/// smaller one would also report differences that are certain but do not matter.
const AMONG_RUNS: f64 = 5.0;
/// The default threshold in percent with one run of each side. It has to exceed the difference of
/// two runs of the same program, which the test does not see.
const OF_ONE_RUN: f64 = 50.0;

/// Say what differs beyond noise between runs before and runs after.
///
///   shmem-perf compare BEFORE.json AFTER.json
///   shmem-perf compare BEFORE.json... --with AFTER.json...
///
/// A figure counts as different if a two-sided Mann-Whitney test says so at 5 %, corrected for the
/// number of comparisons by the method of Benjamini and Hochberg, and if its median differs by more
/// than the threshold.
///
/// With several records of each side, preferably of alternating runs, the test is between runs:
/// each has one value, its median. At least 4 runs of each side are required; to find one slower
/// figure among 100 takes 8. With one record of each side the test is between the batches of one
/// run and those of the other, and the variation between runs is not known: a larger threshold
/// allows for it.
///
/// Floors are compared as well, but only to show whether the machine was the same.
///
/// Exit status: 0 if nothing is slower, 1 if something is, 2 if the records cannot be compared,
/// such as one of an incomplete run.
#[derive(Parser)]
#[command(name = "shmem-perf compare", verbatim_doc_comment)]
struct CompareFlags {
    /// Records to compare with; without --with, one, and the record to judge
    #[arg(required = true, value_name = "RECORD.json")]
    records: Vec<PathBuf>,
    /// Records to judge
    #[arg(long, num_args = 1.., value_name = "AFTER.json")]
    with: Vec<PathBuf>,
    /// Percent by which a median must differ to count; by default 5 with several records of each
    /// side, and 50 with one
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    threshold: Option<f64>,
    /// Also list what is equal, and all that only one side has
    #[arg(long)]
    all: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("it must be a number that is not negative".into()),
    }
}

/// Runs the subcommand with the arguments after `compare`, and returns its exit status.
pub fn run(args: &[String]) -> Result<u8, String> {
    let Some(flags) = options::subcommand::<CompareFlags>("shmem-perf compare", args)? else {
        return Ok(0);
    };
    let files = Sides::of_flags(flags.records, flags.with)?;
    // Before any is judged, so that a missing file is named even if another one is incomplete.
    let before = loaded(&files.before)?;
    let after = loaded(&files.after)?;
    refuse_incomplete(&files.before, &before)?;
    refuse_incomplete(&files.after, &after)?;

    let default_threshold = if before.len() == 1 && after.len() == 1 {
        OF_ONE_RUN
    } else {
        AMONG_RUNS
    };
    let threshold = flags.threshold.unwrap_or(default_threshold);
    let found = judge::judge(&before, &after, threshold / 100.0)?;
    if found.compared.is_empty() {
        return Err(format!(
            "{} and {} have no series in common that can be compared: an operation, its shape and a size must be in both.",
            listed(&files.before),
            listed(&files.after)
        ));
    }

    let text = words::words(&before, &after, &found, threshold, flags.all);
    print(&text)?;
    Ok(u8::from(found.is_slower()))
}

/// The files of the runs to compare with, and of those to judge.
struct Sides {
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
}

impl Sides {
    /// Refuses a file that one side names twice, since it would count as two runs.
    fn of_flags(mut before: Vec<PathBuf>, mut after: Vec<PathBuf>) -> Result<Self, String> {
        if after.is_empty() {
            if before.len() != 2 {
                return Err(format!(
                    "two records are expected, or --with before those to judge: there are {}.",
                    before.len()
                ));
            }
            after = before.split_off(1);
        }

        for side in [&before, &after] {
            for (index, path) in side.iter().enumerate() {
                if side[..index].contains(path) {
                    return Err(format!(
                        "{} is named twice, but it is one run.",
                        path.display()
                    ));
                }
            }
        }
        Ok(Self { before, after })
    }
}

fn loaded(paths: &[PathBuf]) -> Result<Vec<Record>, String> {
    paths.iter().map(|path| record::load(path)).collect()
}

fn refuse_incomplete(paths: &[PathBuf], runs: &[Record]) -> Result<(), String> {
    for (path, run) in paths.iter().zip(runs) {
        if !run.complete {
            return Err(format!("the run of {} is incomplete.", path.display()));
        }
    }
    Ok(())
}

fn listed(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::Measure;

    fn answer(words: &[&str]) -> Result<u8, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(&words)
    }

    #[test]
    fn a_flag_separates_the_sides() {
        let refused = |words: &[&str]| answer(words).expect_err("it is refused");
        assert!(refused(&["a"]).contains("there are 1"));
        assert!(refused(&["a", "b", "c"]).contains("there are 3"));
        assert!(refused(&["a", "b", "a", "--with", "c"]).contains("a is named twice"));
        assert!(refused(&["a", "--threshold=-1", "b"]).contains("not negative"));
        // Both sides may be the same, which shows that nothing differs.
        assert!(refused(&["no/a", "--with", "no/a"]).contains("no/a cannot be read"));
    }

    #[test]
    fn the_answer_is_the_exit_status() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, seed, factor: f64| {
            let path = dir.path().join(name);
            let rng = &mut fastrand::Rng::with_seed(seed);
            let pair = fixture::pair("one", 2);
            let medians = [(8, 1000.0 * factor)];
            let put = fixture::series(rng, Measure::Latency, "put", pair, medians);
            let record = Record {
                series: vec![put],
                ..fixture::empty()
            };
            let text = serde_json::to_string(&record).expect("a record");
            std::fs::write(&path, text).expect("it is written");
            path.display().to_string()
        };
        let compared = |before: &[String], after: &[String]| {
            let with = ["--with".to_owned()];
            let words = [before, &with, after].concat();
            run(&words)
        };

        let mut files = Vec::new();
        let mut slow = Vec::new();
        for i in 0..4 {
            files.push(write(&format!("old{i}"), i, 1.0));
            slow.push(write(&format!("new{i}"), 9 + i, 1.2));
        }

        assert_eq!(compared(&files, &slow), Ok(1));
        assert_eq!(compared(&slow, &files), Ok(0));

        // With one run of each side, 20 % is below the default threshold.
        assert_eq!(compared(&files[..1], &slow[..1]), Ok(0));
        assert_eq!(answer(&["--threshold", "5", &files[0], &slow[0]]), Ok(1));

        let torn = dir.path().join("torn").display().to_string();
        let whole = std::fs::read_to_string(&files[0]).expect("a record");
        let text = whole.replace("\"complete\":true", "\"complete\":false");
        std::fs::write(&torn, text).expect("it is written");
        let refused = answer(&[&files[0], &torn]).expect_err("it is refused");
        assert!(refused.contains("torn is incomplete"), "{refused}");

        let few = compared(&files[..3], &slow[..3]).expect_err("it is refused");
        assert!(few.contains("the minimum is 4 of each side"), "{few}");
    }
}
