//! Checks the reports of `SHMEM_CHECK` on locks, freed memory, handlers, children and pSync, with
//! their locations; `misuse` and `blocks` have the mistakes that concern single accesses.

use testkit::{Job, Outcome, scenario};

const SOURCE: &str = include_str!("../scenarios/checking.c");

/// The virtual nodes of the jobs: all PEs on one node, and two nodes connected by TCP.
const NODES: [&str; 2] = ["1", "1+2"];

#[track_caller]
fn checked(how: &str, nodes: &str) -> Outcome {
    Job::new(scenario!("checking.c"))
        .n(3)
        .arg(how)
        .env("SHMEM_CHECK", 1)
        .env("SHMEM_VIRTUAL_NODES", nodes)
        .env("SHMEM_TRANSPORT", "tcp")
        .run()
}

/// Returns the end of a message about a call. The call is in the first line of the program after
/// that of `how` that contains `what`.
fn called_at(how: &str, what: &str) -> String {
    let branch = format!("is(\"{how}\")");
    let mut after = (1..)
        .zip(SOURCE.lines())
        .skip_while(|(_, line)| !line.contains(&branch))
        .skip(1);

    let (number, _) = after
        .find(|(_, line)| line.contains(what))
        .expect("a line of the program");
    format!("checking.c:{number})")
}

/// Checks that the program ends with one message with these words and the place of its call.
#[track_caller]
fn ends(how: &str, words: &[&str], call: &str) {
    for nodes in NODES {
        let outcome = checked(how, nodes);
        let message = outcome.assert_fails(words);
        assert!(message.contains(" (called at "), "{outcome}");

        let is_at_call = message.ends_with(&called_at(how, call));
        assert!(is_at_call, "not {call} of {how}\n{outcome}");
    }
}

#[test]
fn a_lock_that_is_held_in_memory_that_is_freed() {
    let remedy = "call shmem_clear_lock before";

    let words = [
        "PE 1: shmem_free: argument ptr: this PE holds the lock at 0x",
        remedy,
    ];
    ends("lock_in_freed_block", &words, "shmem_free");

    let words = [
        "PE 1: shmem_realloc: argument ptr: this PE holds the lock at 0x",
        remedy,
    ];
    ends("lock_in_reallocated_block", &words, "shmem_realloc");
}

#[test]
fn memory_that_was_freed() {
    let freed = "shmem_free has freed the block of 64 bytes";

    let words = [
        "PE 1: shmem_long_wait_until: argument ivar: 8 bytes at 0x",
        freed,
    ];
    ends("wait_on_freed_block", &words, "/* freed */");

    let words = [
        "shmem_long_sum_reduce: argument source: 8 bytes at 0x",
        freed,
    ];
    ends("collective_on_freed_block", &words, "shmem_long_sum_reduce");

    // The function that calls the broadcast follows that of the child.
    for nodes in NODES {
        let outcome = checked("psync_in_freed_block", nodes);
        let message = outcome.assert_fails(&["shmem_broadcast32: argument pSync: 8 bytes", freed]);

        let place = called_at("child_of_the_kernel", "shmem_broadcast32");
        assert!(message.ends_with(&place), "{outcome}");
    }
}

#[test]
fn a_signal_in_the_data() {
    let words = [
        "PE 1: shmem_putmem_signal_nbi: argument sig_addr",
        "lies in the 8 bytes of dest",
    ];
    ends("signal_in_data", &words, "shmem_putmem_signal_nbi");
}

/// Checks handlers that interrupt a call and handlers that interrupt the program.
#[test]
fn signal_handlers_that_call() {
    for (how, call) in [
        ("handler_waits", "shmem_long_wait_until"),
        ("handler_interrupts_wait", "shmem_long_wait_until"),
        ("handler_synchronizes", "shmem_barrier_all"),
    ] {
        let outcome = checked(how, NODES[0]);
        assert_eq!(outcome.code(), 1, "{outcome}");

        let message = format!("PE 1: {call}: called by a signal handler");
        assert!(outcome.stderr.starts_with(&message), "{outcome}");
    }
}

/// The handler interrupts the program while this holds the lock of `malloc`.
#[test]
fn a_signal_handler_that_interrupts_malloc() {
    let outcome = Job::new(scenario!("handler_in_malloc.c"))
        .n(2)
        .env("SHMEM_CHECK", 1)
        .run();
    assert_eq!(outcome.code(), 1, "{outcome}");

    let message = "PE 1: shmem_barrier_all: called by a signal handler, which may have";
    assert!(outcome.stderr.starts_with(message), "{outcome}");
}

#[test]
fn a_child_of_which_only_the_kernel_knows() {
    let words = ["PE 1: shmem_long_p: only the process that called shmem_init"];
    ends("child_of_the_kernel", &words, "shmem_long_p");
}

/// Checks allocations of another size, by another call, or in another order.
#[test]
fn allocations_that_are_not_symmetric() {
    for (how, words) in [
        (
            "order_of_sizes",
            [
                "PE 0, PE 2 in shmem_malloc with size 128",
                "PE 1 in shmem_malloc",
            ],
        ),
        (
            "order_of_calls",
            ["PE 0, PE 2 in shmem_malloc", "PE 1 in shmem_calloc"],
        ),
        (
            "order_of_counts",
            [
                "PE 0, PE 2 in shmem_calloc with count 50",
                "PE 1 in shmem_calloc with count 2",
            ],
        ),
        (
            "order_of_frees",
            [
                "PE 0, PE 2 in shmem_free with ptr at",
                "PE 1 in shmem_free with",
            ],
        ),
    ] {
        ends(how, &words, "shmem_");
    }
}

/// These uses work with this library, so the program is only warned.
#[test]
fn uses_of_psync_that_are_not_portable() {
    for (how, words) in [
        (
            "psync_at_once",
            "was used by the last collective of this PE",
        ),
        (
            "psync_of_barrier",
            "was used by the last collective of this PE",
        ),
        (
            "psync_without_value",
            "does not have the value SHMEM_SYNC_VALUE",
        ),
    ] {
        let warning = format!(": shmem_broadcast32: argument pSync {words}");
        // The function that calls the broadcast follows that of the child.
        let place = called_at("child_of_the_kernel", "shmem_broadcast32");

        for nodes in NODES {
            let outcome = checked(how, nodes);
            outcome.assert_ok(3);
            assert_eq!(outcome.warned_pes(&warning), [0, 1, 2], "{outcome}");

            let mut lines = outcome.stderr.lines();
            assert!(lines.all(|line| line.ends_with(&place)), "{outcome}");
        }
    }
}

#[test]
fn nothing_is_said_of_a_correct_program() {
    for nodes in NODES {
        let outcome = checked("none", nodes);
        outcome.assert_ok(3);
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}
