//! oshrun explains a job that hangs: the conclusion names the PE and the cause, on a node, over a
//! network and with virtual nodes.

use testkit::{Job, Outcome, program};

/// Ways to hang, and words that the explanation must contain, in lines of their own or in one.
const HANGS: [(&str, &[&str]); 8] = [
    ("mismatch", &["Mismatched collectives on SHMEM_TEAM_WORLD", "PE 1", "shmem_long_broadcast"]),
    ("word", &["PE 1", "shmem_long_wait_until on flag[2] >= 8, which is 7"]),
    ("locks", &["Deadlock", "PE 0", "PE 1", "locks[0]", "locks[1]"]),
    ("computes", &["PE 1 computes", "wait for PE 1 in shmem_barrier_all"]),
    ("sleeps", &["PE 1 sleeps outside the library", "wait for PE 1 in shmem_barrier_all"]),
    ("stopped", &["PE 1 is stopped by a signal", "wait for PE 1 in shmem_barrier_all"]),
    ("tokens", &["Deadlock", "token == 1, which is 0"]),
    ("teams", &["Deadlock of collectives on different teams"]),
];

/// Runs the job until its time limit, and longer if the explanation is not complete: on a busy
/// machine, PEs may not have come to the hang.
fn explained(how: &str, words: &[&str], n: usize, environment: &[(&str, &str)]) -> Outcome {
    let run = |limit: &str| {
        let options = ["--timeout", limit];
        let job = Job::new(program!("hangs.c")).n(n).launcher_options(options).arg(how);
        environment.iter().fold(job, |job, (name, value)| job.env(name, value)).run()
    };
    let is_complete = |outcome: &Outcome| words.iter().all(|word| outcome.stderr.contains(word));
    let outcomes = ["4", "15", "40"].into_iter().map(run);
    let mut last = None;
    for outcome in outcomes {
        assert_eq!(outcome.code(), 124, "{outcome}");
        if is_complete(&outcome) {
            return outcome;
        }
        last = Some(outcome);
    }
    let last = last.expect("there are limits");
    panic!("{how} with {n} PEs and {environment:?}: no {words:?} in\n{last}");
}

fn all_explained(n: usize, environment: &[(&str, &str)], except: &str) {
    for (how, words) in HANGS.into_iter().filter(|(how, _)| *how != except) {
        explained(how, words, n, environment);
    }
}

#[test]
fn hangs_on_a_node_are_explained() {
    all_explained(4, &[], "");
}

#[test]
fn hangs_over_a_network_are_explained() {
    all_explained(4, &[("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "tcp")], "");
}

#[test]
fn hangs_of_virtual_nodes_are_explained() {
    // The library itself notices teams in different orders then, and ends the job.
    let environment = [("SHMEM_VIRTUAL_NODES", "2"), ("SHMEM_TRANSPORT", "tcp")];
    all_explained(4, &environment, "teams");
}

#[test]
fn hangs_of_many_pes_are_explained() {
    for index in [0, 1, 3, 7] {
        let (how, words) = HANGS[index];
        let outcome = explained(how, words, 64, &[]);
        assert!(outcome.stderr.lines().count() < 20, "{outcome}");
    }
}
