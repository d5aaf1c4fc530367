//! Algorithms of collectives that the user forces.

use testkit::{Job, program};

const REDUCE: &str = "SHMEM_REDUCE_ALGORITHM";

/// Every algorithm gives the results of the others, at sizes where it is never chosen, too.
#[test]
fn forced_algorithms_are_right() {
    for (variable, algorithms, program) in [
        (REDUCE, &["recursive_doubling", "direct", "central"][..], program!("reductions.c")),
        ("SHMEM_SYNC_ALGORITHM", &["dissemination", "binomial", "central"], program!("barriers.c")),
        ("SHMEM_COLLECT_ALGORITHM", &["bruck", "ring"], program!("collectives_team.c")),
    ] {
        for algorithm in algorithms {
            for (onnode, n) in [("on", 2), ("on", 5), ("off", 3)] {
                let job = Job::new(&program).n(n).env("SHMEM_ONNODE", onnode);
                job.env(variable, algorithm).run().assert_ok(n);
            }
        }
    }
}

#[test]
fn an_algorithm_that_is_none_is_an_error() {
    let outcome = Job::new(program!("reductions.c")).n(2).env(REDUCE, "fastest").run();
    outcome.assert_fails(&[REDUCE, "fastest", "recursive_doubling"]);
}
