//! The runs that a report shows: their records and names.

use std::path::{Path, PathBuf};

use super::style::letter;
use crate::record::Record;
use charts::drawing::shortened;

pub struct NamedRun {
    /// The name of the file without its extension, or its whole path if another run has the same
    /// name.
    pub name: String,
    pub record: Record,
}

/// Names runs after the files of their records.
pub fn name_runs(records: Vec<(PathBuf, Record)>) -> Vec<NamedRun> {
    let stem = |path: &Path| {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    let stems: Vec<Option<String>> = records.iter().map(|(path, _)| stem(path)).collect();
    let is_single =
        |stem: &Option<String>| stems.iter().filter(|other| *other == stem).count() == 1;
    let name = |path: &Path| match stem(path) {
        Some(name) if is_single(&Some(name.clone())) => name,
        _ => path.display().to_string(),
    };
    records
        .into_iter()
        .map(|(path, record)| NamedRun {
            name: name(&path),
            record,
        })
        .collect()
}

/// The maximum number of letters of a name in a legend.
const LETTERS: usize = 28;

/// Returns the whole name of a run, after its letter if there are several runs.
pub fn run_name(runs: &[NamedRun], run: usize) -> String {
    lettered(runs, run, &runs[run].name)
}

/// Returns the name of a run for legends and tables, where a long name is cut.
pub fn short_run_name(runs: &[NamedRun], run: usize) -> String {
    lettered(runs, run, &shortened(&runs[run].name, LETTERS))
}

fn lettered(runs: &[NamedRun], run: usize, name: &str) -> String {
    match runs.len() {
        1 => name.to_owned(),
        _ => format!("{} {name}", letter(run)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn files_of_one_name_are_distinguished() {
        let paths = ["a/run.json", "b/run.json", "b/other.json"].map(PathBuf::from);
        let runs = name_runs(paths.map(|path| (path, fixture::empty())).into());
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["a/run.json", "b/run.json", "other"]);
        assert_eq!(run_name(&runs, 2), "C other");
    }
}
