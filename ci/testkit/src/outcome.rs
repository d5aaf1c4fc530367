//! The outcome of a job, and the expectations that most tests have of it.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A job that has ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The command line, with the variables that the test has set.
    pub command: String,
    /// The status of oshrun, of the wrapper before it, or of the program if there was neither.
    pub status: ExitStatus,
    /// The standard output of all processes.
    pub stdout: String,
    /// The standard error output of all processes.
    pub stderr: String,
}

impl Outcome {
    /// Checks that a test program that reports as `check.h` does ran on `n` PEs and found no fault:
    /// status 0, one line `n_pes n` (PEs without a job would each print `n_pes 1`), a line `PASS`
    /// of PE 0, and no line with FAIL.
    #[track_caller]
    pub fn assert_ok(&self, n: usize) {
        // First, since the message of a failed check says more than the status.
        let has_failed = self.stdout.contains("FAIL") || self.stderr.contains("FAIL");
        assert!(!has_failed, "a check failed\n{self}");
        assert!(self.status.success(), "the job failed\n{self}");

        let counts: Vec<&str> = self
            .lines()
            .filter(|line| line.starts_with("n_pes "))
            .collect();
        assert_eq!(
            counts,
            [format!("n_pes {n}")],
            "not one job of {n} PEs\n{self}"
        );
        assert!(
            self.lines().any(|line| line == "PASS"),
            "PE 0 did not come to its end\n{self}"
        );
    }

    /// Checks that the job failed with one line on stderr, which contains all `words`. Returns the
    /// line.
    #[track_caller]
    pub fn assert_fails(&self, words: &[&str]) -> &str {
        assert!(!self.status.success(), "the job succeeded\n{self}");
        let sentence = self.one_message();
        for word in words {
            assert!(
                sentence.contains(word),
                "the message does not say {word:?}\n{self}"
            );
        }
        sentence
    }

    /// Checks that the job failed after a crash: the first line on stderr, that of the PE, contains
    /// `crash`, and the one line after it, that of the launcher, contains all `words`.
    #[track_caller]
    pub fn assert_crashes(&self, crash: &str, words: &[&str]) {
        let (first, rest) = self.stderr.split_once('\n').unwrap_or_default();
        assert!(
            first.contains(crash),
            "the first line does not say {crash:?}\n{self}"
        );
        let rest = Outcome {
            stderr: rest.to_owned(),
            ..self.clone()
        };
        rest.assert_fails(words);
    }

    /// Returns the one line on stderr. A table at the end does not count, which `oshrun` adds if a
    /// PE had waited for long, as it may on a busy machine.
    #[track_caller]
    pub fn one_message(&self) -> &str {
        let lines = self.stderr.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines
            .take_while(|line| *line != "oshrun: when the job ended:")
            .collect();
        assert_eq!(lines.len(), 1, "not exactly one message\n{self}");
        lines[0]
    }

    /// Returns the PEs that have printed a warning with these words. oshrun joins equal messages of
    /// a short time, so there is one line for all PEs, or one for the first and another one for
    /// those that printed it later.
    #[track_caller]
    pub fn warned_pes(&self, words: &str) -> Vec<u32> {
        let lines: Vec<&str> = self
            .stderr
            .lines()
            .filter(|line| line.contains(words))
            .collect();
        assert!(
            (1..=2).contains(&lines.len()),
            "not joined: {words}\n{self}"
        );

        let mut pes = Vec::new();
        for line in lines {
            pes.extend(pes_of_warning(line));
        }
        pes.sort_unstable();
        pes
    }

    /// Returns the status as a number, as shells do: 128 plus the signal for a death by a signal.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or_default())
    }

    /// Returns the lines of stdout.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "command: {}\nstatus: {}", self.command, self.status)?;
        write!(
            f,
            "stdout:\n{}\nstderr:\n{}",
            shortened(&self.stdout),
            shortened(&self.stderr)
        )
    }
}

/// Returns the PEs of a line such as `warning: PE 1: ..` or `warning: all 4 PEs: ..`; none if it is
/// another line.
fn pes_of_warning(line: &str) -> Vec<u32> {
    let Some(rest) = line.strip_prefix("warning: ") else {
        return Vec::new();
    };
    let Some((pes, _)) = rest.split_once(": ") else {
        return Vec::new();
    };
    let numbers: Vec<u32> = pes
        .split(|c: char| !c.is_ascii_digit())
        .flat_map(str::parse)
        .collect();
    if pes.starts_with("all") {
        return (0..numbers[0]).collect();
    }
    numbers
}

/// Returns a text, of which the middle is left out if it is long.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * SHOWN {
        return text.trim_end().to_owned();
    }
    let left_out = lines.len() - 2 * SHOWN;
    let head = lines[..SHOWN].join("\n");
    let tail = lines[lines.len() - SHOWN..].join("\n");
    format!("{head}\n... {left_out} lines ...\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(raw_status: i32, stdout: &str, stderr: &str) -> Outcome {
        Outcome {
            command: "program".into(),
            status: ExitStatus::from_raw(raw_status),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    fn is_refused(outcome: &Outcome, n: usize) -> bool {
        std::panic::catch_unwind(|| outcome.assert_ok(n)).is_err()
    }

    #[test]
    fn a_good_job_passes() {
        outcome(0, "n_pes 2\nPASS\n", "").assert_ok(2);
    }

    #[test]
    fn singletons_failures_and_early_ends_do_not_pass() {
        assert!(is_refused(
            &outcome(0, "n_pes 1\nPASS\nn_pes 1\nPASS\n", ""),
            2
        ));
        assert!(is_refused(
            &outcome(0, "n_pes 2\nFAIL point 1 PE 0: no\nPASS\n", ""),
            2
        ));
        assert!(is_refused(&outcome(0, "n_pes 2\n", ""), 2));
        assert!(is_refused(&outcome(256, "n_pes 2\nPASS\n", ""), 2));
    }

    #[test]
    fn a_death_by_signal_counts_as_shells_do() {
        assert_eq!(outcome(9, "", "").code(), 137);
    }

    #[test]
    #[should_panic(expected = "not exactly one message")]
    fn two_messages_are_one_too_many() {
        outcome(256, "", "PE 1 died\nPE 1 died\n").assert_fails(&["PE 1"]);
    }
}
