//! The outcomes of the jobs of the guests.

use std::fs;
use std::path::{Path, PathBuf};

/// The end of a job in a guest.
pub struct GuestReport {
    pub name: String,
    /// The file with the output of the job.
    pub log: PathBuf,
    /// The exit status of the job, and its duration in seconds; `None` if the guest ended before
    /// the job.
    pub end: Option<(i32, u64)>,
}

/// The statuses with which coreutils' `timeout` ends if it had to end the program, by SIGTERM or by
/// SIGKILL.
const TIMED_OUT: [i32; 2] = [124, 137];

impl GuestReport {
    pub fn read<'a>(dir: &Path, names: impl Iterator<Item = &'a str>) -> Vec<GuestReport> {
        let results = fs::read_to_string(dir.join("results")).unwrap_or_default();
        let end = |name: &str| {
            results.lines().find_map(|line| {
                let mut parts = line.split('\t');
                let same = parts.next()? == name;
                let end = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
                same.then_some(end)
            })
        };
        let log = |name: &str| dir.join(format!("{name}.log"));
        names
            .map(|name| GuestReport {
                name: name.into(),
                log: log(name),
                end: end(name),
            })
            .collect()
    }

    /// Returns true if the job did not end with status 0, or if it is a suite that has run no test.
    pub fn has_failed(&self) -> bool {
        !matches!(self.end, Some((0, _))) || self.proof().is_none()
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
            return (!self.name.contains("suite")).then(String::new);
        };
        match result.split_once(" passed")?.0 {
            "0" => None,
            passed => Some(format!("{passed} cases")),
        }
    }

    fn outcome(&self) -> String {
        match self.end {
            Some((0, _)) => match self.proof() {
                Some(proof) => format!("passed  {proof}").trim_end().to_owned(),
                None => "FAILED: nothing was tested".into(),
            },
            Some((status, _)) if TIMED_OUT.contains(&status) => "FAILED: it took too long".into(),
            Some((status, _)) => format!("FAILED: status {status}"),
            None => "FAILED: the guest did not finish it".into(),
        }
    }
}

/// Returns a table of all reports, one per line.
pub fn table(reports: &[GuestReport]) -> String {
    let mut text = String::from("\n");
    for report in reports {
        let seconds = report
            .end
            .map_or("-".into(), |(_, seconds)| seconds.to_string());
        text += &format!("{:34} {seconds:>5} s  {}\n", report.name, report.outcome());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, output: &str, end: Option<(i32, u64)>) -> GuestReport {
        let log = std::env::temp_dir().join(format!("verbs-{}-{name}.log", std::process::id()));
        fs::write(&log, output).unwrap();
        GuestReport {
            name: name.into(),
            log,
            end,
        }
    }

    #[test]
    fn a_suite_that_tested_nothing_has_failed() {
        let says = |name, output, end| {
            let report = report(name, output, end);
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
        assert!(says("a-suite", all_ignored, Some((0, 3))).starts_with("FAILED"));
        assert_eq!(
            says(
                "b-suite",
                "test result: ok. 7 passed; 0 failed",
                Some((0, 3))
            ),
            "passed  7 cases"
        );
        assert_eq!(says("c-rma", "PASS", Some((0, 3))), "passed");
        assert_eq!(
            says("d-rma", "", Some((137, 60))),
            "FAILED: it took too long"
        );
        assert_eq!(
            says("e-rma", "", None),
            "FAILED: the guest did not finish it"
        );
    }
}
