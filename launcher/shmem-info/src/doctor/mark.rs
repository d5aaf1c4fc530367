//! The lines by which a process reports to the doctor, among others that it may print.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The prefix of reports.
const MARK: &str = "doctor: ";

/// Returns the line of a report.
pub fn line(report: &impl Serialize) -> String {
    format!("{MARK}{}\n", serde_json::to_string(report).expect("plain data"))
}

/// Returns the report of a line, if it is one of this type.
pub fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line.strip_prefix(MARK)?).ok()
}
