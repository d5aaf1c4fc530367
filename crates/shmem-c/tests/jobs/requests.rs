//! Mistakes with the requests of non-blocking collectives, and PEs that exit before a request is
//! complete.

use testkit::{Job, Outcome, scenario};

/// The virtual nodes of the jobs: all PEs on one node, and two nodes connected by TCP.
const NODES: [&str; 2] = ["1", "1+2"];

fn outcomes(how: &str) -> impl Iterator<Item = Outcome> {
    NODES.into_iter().map(move |nodes| {
        Job::new(scenario!("requests.c"))
            .n(3)
            .arg(how)
            .env("SHMEM_CHECK", 1)
            .env("SHMEM_VIRTUAL_NODES", nodes)
            .env("SHMEM_TRANSPORT", "tcp")
            .run()
    })
}

#[test]
fn a_copy_of_a_request_that_was_waited_for() {
    for outcome in outcomes("copy") {
        outcome.assert_fails(&[
            "PE 0: shmemx_req_wait: argument req",
            "was a copy of it waited for",
        ]);
    }
}

#[test]
fn a_destination_that_is_not_symmetric() {
    for outcome in outcomes("private") {
        outcome.assert_fails(&[
            "PE 0: shmemx_long_sum_reduce_nb: argument dest",
            "symmetric",
        ]);
    }
}

#[test]
fn a_request_that_is_not_waited_for() {
    for outcome in outcomes("forgotten") {
        outcome.assert_ok(3);

        let warning =
            "warning: PE 0: shmem_finalize: neither a wait nor a test has found 1 non-blocking";
        assert!(outcome.stderr.starts_with(warning), "{outcome}");
        let first = "the first is shmemx_long_sum_reduce_nb";
        assert!(outcome.stderr.contains(first), "{outcome}");
    }
}

#[test]
fn a_member_that_exits() {
    for outcome in outcomes("death") {
        outcome.assert_fails(&["PE 1", "exited with status 3"]);
        assert_eq!(outcome.code(), 3, "{outcome}");
    }
}

/// The plans of both differ, so such calls would wait for ever.
#[test]
fn a_blocking_collective_meets_no_non_blocking_one() {
    for (how, call) in [
        ("reduce", "shmem_long_sum_reduce"),
        ("barrier", "shmem_barrier_all"),
    ] {
        for outcome in outcomes(how) {
            let where_pe_0_is = "; PE 0 in shmemx_long_sum_reduce_nb; all members must call";
            outcome.assert_fails(&[call, where_pe_0_is]);
        }
    }
}
