//! Unit tests of `outcome`.

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
    assert!(is_refused(&outcome(0, "n_pes 1\nPASS\nn_pes 1\nPASS\n", ""), 2));
    assert!(is_refused(&outcome(0, "n_pes 2\nFAIL point 1 PE 0: no\nPASS\n", ""), 2));
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
