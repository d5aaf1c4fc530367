//! The runs that a report shows: their records and names.

use std::path::PathBuf;

use super::style::letter;
use crate::record::{self, Record};
use charts::drawing::shortened;

pub struct NamedRun {
    /// The name of the file without its extension, or its whole path if another run has the same
    /// name.
    pub name: String,
    pub record: Record,
}

/// Loads records, and names their runs.
///
/// # Errors
/// A sentence that names the first file that is no record.
pub fn load(paths: &[PathBuf]) -> Result<Vec<NamedRun>, String> {
    let mut runs = Vec::new();
    for (path, name) in paths.iter().zip(names(paths)) {
        runs.push(NamedRun {
            name,
            record: record::load(path)?,
        });
    }
    Ok(runs)
}

/// Returns the names of the runs whose records are in these files.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    for path in paths {
        let same_stem = paths
            .iter()
            .filter(|other| other.file_stem() == path.file_stem());
        match path.file_stem() {
            Some(stem) if same_stem.count() == 1 => names.push(stem.to_string_lossy().into()),
            _ => names.push(path.display().to_string()),
        }
    }
    names
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
        let names = names(&paths);
        assert_eq!(names, ["a/run.json", "b/run.json", "other"]);

        let mut runs = Vec::new();
        for name in names {
            let record = fixture::empty();
            runs.push(NamedRun { name, record });
        }
        assert_eq!(run_name(&runs, 2), "C other");
    }
}
