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
    /// Returns the PE of a tag without its brackets.
    fn parse(text: &str) -> Option<Tag> {
        let (pe, host) = match text.split_once('@') {
            Some((pe, host)) => (pe, Some(host.to_owned())),
            None => (text, None),
        };
        Some(Tag {
            pe: pe.parse().ok()?,
            host,
        })
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

/// The text of a line that a PE has printed, or the report in the text.
pub struct Tagged<T> {
    pub tag: Tag,
    pub content: T,
}

impl<'a> Tagged<&'a str> {
    /// Splits a line into its tag and the rest.
    fn split(line: &'a str) -> Option<Self> {
        let (tag, content) = line.strip_prefix('[')?.split_once("] ")?;
        Some(Tagged {
            tag: Tag::parse(tag)?,
            content,
        })
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
    pub fn reports<T: DeserializeOwned>(&self) -> Vec<Tagged<T>> {
        let mut reports = Vec::new();
        for Tagged { tag, content } in self.tagged_lines() {
            if let Some(content) = read(content) {
                reports.push(Tagged { tag, content });
            }
        }
        reports.sort_by_key(|report| report.tag.pe);
        reports
    }

    /// Returns the lines of stdout that PEs have printed.
    pub fn tagged_lines(&self) -> impl Iterator<Item = Tagged<&str>> {
        self.stdout.lines().filter_map(Tagged::split)
    }

    /// Returns why the job failed: the messages of PEs and of oshrun, or else the last line of
    /// stderr.
    pub fn complaints(&self) -> Vec<String> {
        let mut ours = Vec::new();
        let mut last = None;
        for line in self.stderr.lines() {
            // Lines of oshrun itself have no tag.
            let line = Tagged::split(line).map_or(line, |tagged| tagged.content);
            if OUR_MESSAGES.iter().any(|start| line.starts_with(start)) {
                ours.push(line.to_owned());
            }
            last = Some(line.to_owned());
        }

        if ours.is_empty() {
            ours.extend(last);
        }
        ours
    }
}

/// The starts of the messages of PEs and of our programs.
const OUR_MESSAGES: [&str; 4] = ["PE ", "oshrun: ", "shmem-info: ", "shmem-perf: "];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_names_of_the_user() {
        let other = Tagged::split("[7@a] x] y").expect("a tag");
        assert_eq!(other.tag.pe, 7);
        assert_eq!(other.tag.host_name("own"), "a (own)");
        assert_eq!(other.content, "x] y");

        let same = Tagged::split("[7@own] x").expect("a tag");
        assert_eq!(same.tag.host_name("own"), "own");
        let single = Tagged::split("[0] x").expect("a tag");
        assert_eq!(single.tag.host_name("own"), "own");

        assert!(Tagged::split("PE 0: x").is_none());
        assert!(Tagged::split("[a] x").is_none());
    }
}
