//! The outcomes of the jobs of the guests.

use std::fs;
use std::path::{Path, PathBuf};

/// The end of a job in a guest.
pub struct GuestReport {
    pub name: String,
    /// The file with the output of the job.
    pub log: PathBuf,
    /// `None` if the guest ended before the job.
    end: Option<JobEnd>,
}

/// How a job has ended.
#[derive(Clone, Copy)]
struct JobEnd {
    /// The exit status.
    status: i32,
    /// The duration.
    seconds: u64,
}

impl JobEnd {
    /// Reads the line of a job in the results, which has its name, status and seconds; `None` if
    /// the line is of another job.
    fn read(line: &str, name: &str) -> Option<JobEnd> {
        let mut fields = line.split('\t');
        if fields.next()? != name {
            return None;
        }
        Some(JobEnd {
            status: fields.next()?.parse().ok()?,
            seconds: fields.next()?.parse().ok()?,
        })
    }
}

/// The statuses with which coreutils' `timeout` ends if it had to end the program, by SIGTERM or by
/// SIGKILL.
const TIMED_OUT: [i32; 2] = [124, 137];

impl GuestReport {
    /// Reads the reports of the jobs of these names from the directory of their guest.
    pub fn read<'a>(dir: &Path, names: impl Iterator<Item = &'a str>) -> Vec<GuestReport> {
        // A guest that has not started has no results.
        let results = fs::read_to_string(dir.join("results")).unwrap_or_default();
        let mut reports = Vec::new();
        for name in names {
            reports.push(GuestReport {
                name: name.into(),
                log: dir.join(format!("{name}.log")),
                end: results.lines().find_map(|line| JobEnd::read(line, name)),
            });
        }
        reports
    }

    /// Returns true if the job did not end with status 0, or if it is a suite that has run no test.
    pub fn has_failed(&self) -> bool {
        !matches!(self.end, Some(JobEnd { status: 0, .. })) || self.proof().is_none()
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the number of tests that passed, as a text, which is empty for a program; `None` for
    /// a suite of which none passed.
    fn proof(&self) -> Option<String> {
        let text = self.text();
        let result = text
            .lines()
            .find_map(|line| line.strip_prefix("test result: ok. "));
        let Some(result) = result else {
            return if self.name.contains("suite") {
                None
            } else {
                Some(String::new())
            };
        };
        let (passed, _) = result.split_once(" passed")?;
        if passed == "0" {
            return None;
        }
        Some(format!("{passed} cases"))
    }

    fn outcome(&self) -> String {
        let Some(JobEnd { status, .. }) = self.end else {
            return "FAILED: the guest did not finish it".into();
        };
        if TIMED_OUT.contains(&status) {
            return "FAILED: it took too long".into();
        }
        if status != 0 {
            return format!("FAILED: status {status}");
        }
        match self.proof() {
            Some(proof) if proof.is_empty() => "passed".into(),
            Some(proof) => format!("passed  {proof}"),
            None => "FAILED: nothing was tested".into(),
        }
    }
}

/// Returns a table of all reports, one per line.
pub fn table(reports: &[GuestReport]) -> String {
    let mut text = String::from("\n");
    for report in reports {
        let seconds = match report.end {
            Some(end) => end.seconds.to_string(),
            None => "-".to_owned(),
        };
        text += &format!("{:34} {seconds:>5} s  {}\n", report.name, report.outcome());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, output: &str, status: Option<i32>) -> GuestReport {
        let log = std::env::temp_dir().join(format!("verbs-{}-{name}.log", std::process::id()));
        fs::write(&log, output).unwrap();
        GuestReport {
            name: name.into(),
            log,
            end: status.map(|status| JobEnd { status, seconds: 3 }),
        }
    }

    #[test]
    fn the_end_of_a_job_is_found_by_its_name() {
        let end = JobEnd::read("a\t137\t60", "a").unwrap();
        assert_eq!((end.status, end.seconds), (137, 60));
        assert!(JobEnd::read("a\t137\t60", "b").is_none());
    }

    #[test]
    fn a_suite_that_tested_nothing_has_failed() {
        let says = |name, output, status| {
            let report = report(name, output, status);
            let outcome = report.outcome();
            assert_eq!(
                report.has_failed(),
                outcome.starts_with("FAILED"),
                "{outcome}"
            );
            fs::remove_file(&report.log).unwrap();
            outcome
        };
        let all_ignored = "test result: ok. 0 passed; 0 failed; 1 ignored";
        assert!(says("a-suite", all_ignored, Some(0)).starts_with("FAILED"));
        let passed = "test result: ok. 7 passed; 0 failed";
        assert_eq!(says("b-suite", passed, Some(0)), "passed  7 cases");
        assert_eq!(says("c-rma", "PASS", Some(0)), "passed");
        assert_eq!(says("d-rma", "", Some(137)), "FAILED: it took too long");
        assert_eq!(
            says("e-rma", "", None),
            "FAILED: the guest did not finish it"
        );
    }
}
