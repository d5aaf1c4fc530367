//! The reports of processes to the doctor: lines with a mark, among others that a process may
//! print; and a job that has ended, with the reports of its PEs or the reason why it failed.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The prefix of reports.
const MARK: &str = "doctor: ";

/// Returns the line of a report.
pub fn line(report: &impl Serialize) -> String {
    format!(
        "{MARK}{}\n",
        serde_json::to_string(report).expect("plain data")
    )
}

/// Returns the report of a line, if it is one of this type.
pub fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line.strip_prefix(MARK)?).ok()
}

/// The PE that has printed a line: what `oshrun --tag-output` writes before it, as `[2@host]`, or
/// `[2]` on one host.
pub struct Tag {
    pub pe: u32,
    /// The host as the user names it; `None` if the job has only one.
    host: Option<String>,
}

impl Tag {
    /// Splits a line into its tag and the rest.
    fn split(line: &str) -> Option<(Tag, &str)> {
        let (tag, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (pe, host) = match tag.split_once('@') {
            Some((pe, host)) => (pe, Some(host.to_owned())),
            None => (tag, None),
        };
        let pe = pe.parse().ok()?;
        Some((Tag { pe, host }, rest))
    }

    /// Returns the host as the user names it. If its own name `own` differs, adds that in
    /// parentheses.
    pub fn host_name(&self, own: &str) -> String {
        match &self.host {
            Some(host) if host != own => format!("{host} ({own})"),
            _ => own.to_owned(),
        }
    }
}

/// A job that has ended.
pub struct CheckOutcome {
    pub succeeded: bool,
    pub stdout: String,
    pub stderr: String,
}

impl CheckOutcome {
    /// Returns the reports of its PEs, in the order of the PEs.
    pub fn reports<T: DeserializeOwned>(&self) -> Vec<(Tag, T)> {
        let mut reports = Vec::new();
        for line in self.stdout.lines() {
            if let Some((tag, line)) = Tag::split(line)
                && let Some(report) = read(line)
            {
                reports.push((tag, report));
            }
        }
        reports.sort_by_key(|(tag, _)| tag.pe);
        reports
    }

    /// Returns the lines of stdout that PEs have printed, without the tags.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout
            .lines()
            .filter_map(|line| Some(Tag::split(line)?.1))
    }

    /// Returns why the job failed: the messages of PEs and of oshrun, or else the last line of
    /// stderr.
    pub fn complaints(&self) -> Vec<String> {
        let lines: Vec<&str> = self
            .stderr
            .lines()
            .map(|line| Tag::split(line).map_or(line, |(_, rest)| rest))
            .collect();
        let ours: Vec<String> = lines
            .iter()
            .filter(|line| OUR_MESSAGES.iter().any(|start| line.starts_with(start)))
            .map(|line| (*line).to_owned())
            .collect();
        if !ours.is_empty() {
            return ours;
        }
        lines
            .last()
            .map(|line| (*line).to_owned())
            .into_iter()
            .collect()
    }
}

/// The starts of the messages of PEs and of our programs.
const OUR_MESSAGES: [&str; 4] = ["PE ", "oshrun: ", "shmem-info: ", "shmem-perf: "];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_names_of_the_user() {
        let name = |line| Tag::split(line).map(|(tag, rest)| (tag.pe, tag.host_name("own"), rest));
        assert_eq!(name("[7@a] x] y"), Some((7, "a (own)".to_owned(), "x] y")));
        assert_eq!(name("[7@own] x"), Some((7, "own".to_owned(), "x")));
        assert_eq!(name("[0] x"), Some((0, "own".to_owned(), "x")));
        assert_eq!(name("PE 0: x").or(name("[a] x")), None);
    }
}
