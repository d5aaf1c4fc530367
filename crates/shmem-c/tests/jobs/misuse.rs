//! Checks that mistakes of a program end the job with one sentence that names the PE, the call and
//! the argument, and that harmless ones are warned of.

mod arrays;

use testkit::{Job, Outcome, scenario};

#[track_caller]
fn misuse(how: &str) -> Outcome {
    run(Job::new(scenario!("misuse.c")).n(3).arg(how))
}

/// Runs the program with PEs that share no memory.
#[track_caller]
fn off_node_misuse(how: &str) -> Outcome {
    run(off_node_job(how))
}

/// Runs the program with SHMEM_CHECK.
#[track_caller]
fn checked_misuse(how: &str) -> Outcome {
    run(Job::new(scenario!("misuse.c"))
        .n(3)
        .arg(how)
        .env("SHMEM_CHECK", "1"))
}

/// Runs the program with SHMEM_CHECK and PEs that share no memory.
#[track_caller]
fn checked_off_node_misuse(how: &str) -> Outcome {
    run(off_node_job(how).env("SHMEM_CHECK", "1"))
}

fn off_node_job(how: &str) -> Job {
    Job::new(scenario!("misuse.c"))
        .n(3)
        .arg(how)
        .env("SHMEM_ONNODE", "off")
}

/// Runs a job, and checks that output which the C library had buffered is not lost.
#[track_caller]
fn run(job: Job) -> Outcome {
    let outcome = job.run();
    assert!(
        outcome.stdout.contains("printed before the misuse"),
        "it is lost\n{outcome}"
    );
    outcome
}

#[test]
fn addresses_that_are_not_symmetric() {
    for (how, words) in [
        ("put_stack_dest", ["PE 1", "shmem_int_put", "dest"]),
        (
            "put_library_dest",
            [
                "PE 1",
                "shmem_putmem: argument dest",
                "libc.so.6, whose variables are not symmetric",
            ],
        ),
        (
            "put_constant_dest",
            [
                "PE 1",
                "shmem_int_put: argument dest",
                "is constant; remove const",
            ],
        ),
        (
            "get_relocated_source",
            [
                "PE 1",
                "shmem_getmem: argument source",
                "contains addresses, which differ from PE to PE; remove const",
            ],
        ),
        (
            "get_beyond_constants",
            [
                "PE 1",
                "shmem_getmem: argument source",
                "fewer than 1048576 bytes of constants",
            ],
        ),
        (
            "put_beyond_statics",
            ["PE 1", "shmem_putmem", "beyond the static data"],
        ),
        (
            "put_string_dest",
            [
                "PE 1",
                "shmem_putmem: argument dest",
                "is in a string or a function of the program",
            ],
        ),
        (
            "put_function_dest",
            [
                "PE 1",
                "shmem_putmem: argument dest",
                "is in a string or a function of the program",
            ],
        ),
        (
            "p_to_pointer_of_other_pe",
            [
                "PE 1",
                "shmem_int_p: argument dest",
                "is memory of PE 0; pass the address of the same object on this PE",
            ],
        ),
        (
            "p_to_static_of_other_pe",
            [
                "PE 1",
                "shmem_int_p: argument dest",
                "is memory of PE 2; pass the address of the same object on this PE",
            ],
        ),
        (
            "p_to_no_memory",
            [
                "PE 1",
                "shmem_int_p: argument dest",
                "the PE has no memory there",
            ],
        ),
        (
            "put_negative_count",
            [
                "PE 1",
                "shmem_int_put: argument dest",
                "the count is negative or too large",
            ],
        ),
        ("get_stack_source", ["PE 1", "shmem_int_get", "source"]),
        ("put_beyond_heap", ["PE 1", "shmem_putmem", "dest"]),
        ("amo_stack_dest", ["PE 1", "shmem_int_atomic_add", "dest"]),
        ("signal_stack", ["PE 1", "shmem_int_put_signal", "sig_addr"]),
        ("lock_stack", ["PE 1", "shmem_set_lock", "lock"]),
        (
            "wait_on_the_stack",
            ["PE 1", "shmem_int_wait_until", "ivar"],
        ),
        ("test_on_the_stack", ["PE 1", "shmem_uint64_test", "ivar"]),
    ] {
        misuse(how).assert_fails(&words);
    }
}

/// A number of bytes that overflows is not taken for a small one.
#[test]
fn strides_that_overflow() {
    let words = ["PE 1", "shmem_int_iput", "dest"];
    misuse("iput_stride_overflows").assert_fails(&words);
    off_node_misuse("iput_stride_overflows").assert_fails(&words);
}

/// All PEs make the same mistake at the same time; the message names one of them.
#[test]
fn collectives_on_addresses_that_are_not_symmetric() {
    misuse("broadcast_stack_dest").assert_fails(&["PE", "shmem_int_broadcast", "dest"]);
    misuse("reduce_stack_source").assert_fails(&["PE", "shmem_int_max_reduce", "source"]);
}

#[test]
fn pes_that_do_not_exist() {
    for (how, words) in [
        ("put_pe_n", ["PE 1", "shmem_int_put", "3"]),
        ("p_pe_negative", ["PE 1", "shmem_int_p", "-1"]),
        ("g_pe_n", ["PE 1", "shmem_int_g", "3"]),
        ("amo_pe_n", ["PE 1", "shmem_int_atomic_inc", "10"]),
        ("p_beyond_team", ["PE 1", "shmem_ctx_int_p", "2"]),
    ] {
        misuse(how).assert_fails(&words);
    }
}

#[test]
fn memory_that_is_not_allocated() {
    for how in ["free_twice", "free_foreign", "free_inside"] {
        misuse(how).assert_fails(&["PE", "shmem_free"]);
    }
}

#[test]
fn blocks_that_this_pe_has_released() {
    let released = "shmemx_release has released the block of";
    for (how, call) in [
        ("release_twice", "shmemx_release: argument ptr: "),
        ("free_released", "shmem_free: argument ptr: "),
        ("realloc_released", "shmem_realloc: argument ptr: "),
    ] {
        misuse(how).assert_fails(&["PE", call, released, "shmemx_reclaim frees it"]);
    }
    for how in ["release_inside", "release_foreign"] {
        misuse(how).assert_fails(&["PE", "shmemx_release: argument ptr: "]);
    }
    let of_peer = ["is memory of PE", "instead of what shmem_ptr returns"];
    misuse("release_of_peer").assert_fails(&of_peer);

    assert_eq!(
        misuse("put_released").code(),
        98,
        "found without SHMEM_CHECK"
    );
    checked_misuse("put_released").assert_fails(&[
        "PE",
        "shmem_int_p: argument dest",
        "are in the block of",
        "which this PE has released by shmemx_release",
    ]);
    let freed = "shmemx_reclaim has freed the block of";
    checked_misuse("use_reclaimed").assert_fails(&["PE", "shmem_int_p: argument dest", freed]);
}

#[test]
fn a_limit_that_is_no_number() {
    assert_eq!(misuse("limit_is_no_number").code(), 98);
    checked_misuse("limit_is_no_number")
        .assert_fails(&["PE", "shmemx_int_wait_until_timed: argument seconds is NaN"]);
}

#[test]
fn a_block_beside_a_damaged_part_of_the_heap() {
    misuse("free_damaged").assert_fails(&[
        "PE",
        "shmem_free: the symmetric heap is damaged beside the block of 100 bytes",
        "SHMEM_CHECK=1",
    ]);
}

/// Between PEs that share memory, this is found even without SHMEM_CHECK, since later blocks of the
/// heap would have different addresses.
#[test]
fn changes_of_the_heap_that_differ() {
    let same = "all PEs must make the same calls in the same order, and pass the same sizes";
    let words = [" allocates 64 bytes", " allocates 128 bytes", same];
    misuse("sizes_differ").assert_fails(&words);

    let words = [
        " allocates 64 bytes",
        " frees the block at heap offset 0x",
        same,
    ];
    misuse("free_and_malloc").assert_fails(&words);

    let words = [" allocates 64 bytes", " reclaims the released blocks", same];
    misuse("reclaim_and_malloc").assert_fails(&words);
}

/// The standard leaves these undefined (point 15 among others); this library reports them.
#[test]
fn arguments_without_a_meaning() {
    for (how, words) in [
        ("p_invalid_ctx", ["PE 1", "shmem_ctx_int_p", "ctx"]),
        ("destroy_default_ctx", ["PE 1", "shmem_ctx_destroy", "ctx"]),
        ("wait_unknown_cmp", ["PE 1", "shmem_int_wait_until", "77"]),
        ("signal_unknown_op", ["PE 1", "shmem_int_put_signal", "77"]),
        ("iput_stride_0", ["PE 1", "shmem_int_iput", "dst"]),
        (
            "reduce_invalid_team",
            ["PE", "shmem_int_max_reduce", "team"],
        ),
        ("sync_destroyed_team", ["PE", "shmem_team_sync", "team"]),
        ("destroy_world", ["PE", "shmem_team_destroy", "predefined"]),
        ("broadcast_root_n", ["PE", "shmem_int_broadcast", "PE_root"]),
        (
            "reduce_to_root_n",
            ["PE", "shmemx_int_sum_reduce_to", "PE_root is 3"],
        ),
        (
            "gather_root_negative",
            ["PE", "shmemx_gathermem", "PE_root is -1"],
        ),
        (
            "reduce_scatter_huge",
            ["PE", "shmemx_int_sum_reduce_scatter", "dest"],
        ),
        ("gather_huge", ["PE", "shmemx_int_gather", "dest"]),
        ("barrier_beyond_n", ["PE", "shmem_barrier", "PE_size"]),
    ] {
        misuse(how).assert_fails(&words);
    }
}

/// Point 85: mistakes that are fatal according to Cray's documentation.
#[test]
fn splits_in_cray_s_form() {
    for (how, words) in [
        (
            "strided_beyond_parent",
            ["shmemx_team_split_strided", "PE_start 1", "0 to 2"],
        ),
        (
            "strided_stride_negative",
            ["shmemx_team_split_strided", "PE_stride", "-1"],
        ),
        (
            "strided_stride_0",
            ["shmemx_team_split_strided", "PE_stride", "strides are 1 to"],
        ),
        (
            "strided_size_0",
            ["shmemx_team_split_strided", "PE_size", "has 1 to"],
        ),
        (
            "strided_parent_null",
            [
                "shmemx_team_split_strided",
                "parent_team",
                "SHMEM_TEAM_NULL",
            ],
        ),
        (
            "strided_parent_gone",
            ["shmemx_team_split_strided", "parent_team", "destroyed"],
        ),
        (
            "strided_differs",
            [
                "shmemx_team_split_strided",
                "another team",
                "same arguments",
            ],
        ),
        (
            "grid_range_negative",
            ["shmemx_team_split_2d", "yrange", "-3"],
        ),
        (
            "grid_range_differs",
            ["shmemx_team_split_2d", "yrange", "differ"],
        ),
        ("color_negative", ["shmemx_team_split", "color", "-2"]),
        (
            "destroy_null",
            ["shmemx_team_destroy", "newteam", "SHMEM_TEAM_NULL"],
        ),
        (
            "destroy_node",
            ["shmemx_team_destroy", "team", "predefined"],
        ),
        (
            "packed_target_short",
            ["shmemx_alltoallv_packed", "target_len is 7", "8 bytes"],
        ),
    ] {
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
    }
}

/// A PE that acquires a lock that it holds, or releases one that it does not hold.
#[test]
fn locks_that_are_not_held_as_they_should() {
    for (how, words) in [
        (
            "lock_twice",
            ["PE 1", "shmem_set_lock", "holds the lock already"],
        ),
        (
            "clear_free_lock",
            ["PE 1", "shmem_clear_lock", "does not hold"],
        ),
        ("clear_twice", ["PE 1", "shmem_clear_lock", "does not hold"]),
        ("lock_unaligned", ["PE 1", "shmem_set_lock", "aligned"]),
        (
            "finalize_holding",
            ["PE 1", "shmem_finalize", "for which PE 2 waits"],
        ),
        (
            "lock_not_zero",
            [
                "PE 1: shmem_set_lock: argument lock",
                "at 0x",
                "was not zero",
            ],
        ),
        (
            "test_lock_not_zero",
            [
                "PE 1: shmem_test_lock: argument lock",
                "at 0x",
                "was not zero",
            ],
        ),
        (
            "lock_overwritten",
            [
                "PE 1: shmem_clear_lock: argument lock",
                "at 0x",
                "overwritten",
            ],
        ),
    ] {
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
    }
}

/// A thread has locked the stream, so the program's own output cannot be written, but the message
/// is.
#[test]
fn a_stream_that_is_locked_holds_up_no_message() {
    let outcome = Job::new(scenario!("misuse.c"))
        .n(3)
        .arg("stream_locked")
        .run();
    outcome.assert_fails(&["PE 1", "shmem_int_p", "-1"]);
}

/// The message is lost, and the status is the same as with it.
#[test]
fn a_standard_error_that_is_full_does_no_harm() {
    for (how, status) in [("put_before_init", 1), ("finalize_before_init", 0)] {
        let outcome = Job::direct("sh")
            .args(["-c", r#"exec "$0" "$1" 2> /dev/full"#])
            .arg(scenario!("misuse.c").display())
            .arg(how)
            .run();
        assert_eq!(outcome.code(), status, "{outcome}");
    }
}

#[test]
fn words_that_are_not_aligned() {
    for (how, words) in [
        ("amo_unaligned", ["PE 1", "shmem_int_atomic_add", "dest"]),
        (
            "fetch_unaligned",
            ["PE 1", "shmem_int_atomic_fetch", "source"],
        ),
        (
            "signal_unaligned",
            ["PE 1", "shmem_int_put_signal", "sig_addr"],
        ),
        ("wait_unaligned", ["PE 1", "shmem_int_wait_until", "ivar"]),
    ] {
        let words = [&words[..], &["not aligned"]].concat();
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
    }
}

/// Handles are validated. The only exception is the handle of a destroyed context of the world on
/// one node without SHMEM_CHECK, where no state of the context is read.
#[test]
fn contexts_that_are_none() {
    for (how, words) in [
        ("invalid_ctx", ["PE 1", "shmem_ctx_int_p", "not a context"]),
        (
            "quiet_invalid_ctx",
            ["PE 1", "shmem_ctx_quiet", "not a context"],
        ),
        (
            "destroyed_team_ctx",
            ["PE 1", "shmem_ctx_int_p", "not a context"],
        ),
        (
            "destroy_ctx_twice",
            ["PE 1", "shmem_ctx_destroy", "not a context"],
        ),
    ] {
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
        checked_misuse(how).assert_fails(&words);
    }

    let words = ["PE 1", "shmem_ctx_int_p", "not a context"];
    off_node_misuse("destroyed_ctx").assert_fails(&words);
    checked_misuse("destroyed_ctx").assert_fails(&words);
}

#[test]
fn who_is_where_when_not_all_are_in_the_same_collective() {
    for (how, words) in [
        (
            "barrier_and_sync",
            ["PE 0, PE 2 in shmem_barrier_all", "PE 1 in shmem_sync_all"],
        ),
        (
            "roots_differ",
            ["PE 0, PE 1 in shmem_int_broadcast with", "PE_root 1"],
        ),
        (
            "gather_roots_differ",
            ["PE 0, PE 1 in shmemx_int_gather with", "PE_root 1"],
        ),
        (
            "lengths_differ",
            [
                "PE 0, PE 2 in shmem_int_sum_reduce with nelems 1",
                "PE 1 in shmem_int_sum_reduce with nelems 2",
            ],
        ),
        (
            "sizes_differ",
            [
                "PE 0, PE 2 in shmem_malloc with size 128",
                "PE 1 in shmem_malloc with size 64",
            ],
        ),
        (
            "split_and_sync",
            [
                "PE 0 in shmem_team_sync",
                "PE 1, PE 2 in shmem_team_split_strided",
            ],
        ),
    ] {
        checked_misuse(how).assert_fails(&words);
    }
}

/// A message names a team by the number of the split that made it, which is the same on all
/// members.
#[test]
fn who_is_on_which_team() {
    let second = "the team of 3 PEs from split 2 (shmem_team_split_strided) of SHMEM_TEAM_WORLD";
    checked_misuse("teams_differ").assert_fails(&[
        "PE 0 in shmem_team_sync with SHMEM_TEAM_WORLD",
        "PE 1 in shmem_team_sync with SHMEM_TEAM_SHARED",
        &format!("PE 2 in shmem_team_sync with {second}"),
    ]);

    let outcome = checked_misuse("split_teams_differ");
    let first = "in shmem_team_sync with the team of 2 PEs from split 1 (";
    let sentence = outcome.assert_fails(&[first]);
    // PE 2 is not a member of the first team, so the message need not name both PE 0 and PE 2.
    let row = "from split 1 (shmem_team_split_2d) of a team split from SHMEM_TEAM_WORLD";
    let names_other = sentence.contains(row) || sentence.contains(second);
    assert!(names_other, "{outcome}");
    assert!(!sentence.contains("with team "), "{outcome}");
}

/// Addresses that are not the start of an allocated block.
#[test]
fn what_is_no_block() {
    for (how, words) in [
        (
            "realloc_static",
            [
                "shmem_realloc: argument ptr: 0x",
                "is static data of the program",
                "misuse.c:",
            ],
        ),
        (
            "free_foreign",
            [
                "shmem_free: argument ptr: 0x",
                "is static data of the program",
                "misuse.c:",
            ],
        ),
        (
            "free_stack",
            [
                "shmem_free: argument ptr: 0x",
                "is not in the symmetric heap",
                "misuse.c:",
            ],
        ),
        (
            "free_within",
            [
                "shmem_free: argument ptr: 0x",
                "is inside the block of 16 bytes at 0x",
                "misuse.c:",
            ],
        ),
        (
            "free_again",
            [
                "shmem_free: argument ptr: 0x",
                "shmem_free has freed the block of 16",
                "misuse.c:",
            ],
        ),
    ] {
        checked_misuse(how).assert_fails(&words);
        checked_off_node_misuse(how).assert_fails(&words);
    }

    misuse("realloc_static").assert_fails(&["shmem_realloc", "is static data of the program"]);
}

#[test]
fn waits_signals_and_configurations() {
    for (how, words) in [
        (
            "wait_null",
            [
                "PE 1: shmem_int_wait_until_all: argument ivars",
                "not symmetric",
            ],
        ),
        (
            "wait_many",
            [
                "PE 1: shmem_int_wait_until_all: argument ivars",
                "the count is negative or too large",
            ],
        ),
        (
            "wait_some_null",
            [
                "PE 1: shmem_int_wait_until_some: argument indices",
                "null pointer",
            ],
        ),
        (
            "test_vector_null",
            [
                "PE 1: shmem_int_test_some_vector: argument cmp_values",
                "null pointer",
            ],
        ),
        (
            "test_on_the_stack",
            ["PE 1: shmem_uint64_test: argument ivar", "not symmetric"],
        ),
        (
            "signal_fetch_stack",
            [
                "PE 1: shmem_signal_fetch: argument sig_addr",
                "not symmetric",
            ],
        ),
        (
            "signal_in_dest",
            [
                "PE 1: shmem_int_put_signal: argument sig_addr",
                "lies in the 16 bytes of dest",
            ],
        ),
        (
            "contexts_negative",
            [
                "shmem_team_split_strided: argument config",
                "num_contexts is -5",
            ],
        ),
    ] {
        checked_misuse(how).assert_fails(&words);
        checked_off_node_misuse(how).assert_fails(&words);
    }
}

/// Collectives on active sets are distinguished from those of teams, and from those on other active
/// sets.
#[test]
fn who_is_where_when_some_are_in_a_collective_on_an_active_set() {
    for (how, others) in [
        (
            "barrier_all_and_broadcast",
            "PE 1, PE 2 in shmem_broadcast32",
        ),
        ("barrier_all_and_collect", "PE 1, PE 2 in shmem_collect32"),
        (
            "barrier_all_and_to_all",
            "PE 1, PE 2 in shmem_int_sum_to_all",
        ),
    ] {
        let words = ["PE 0 in shmem_barrier_all", others];
        checked_misuse(how).assert_fails(&words);
        checked_off_node_misuse(how).assert_fails(&words);
    }

    let words = ["in shmem_barrier_all", "PE 1 in shmem_broadcast32"];
    checked_misuse("barrier_all_and_pair").assert_fails(&words);

    let words = [
        "PE 0",
        "logPE_stride 0, PE_size 3",
        "PE 2",
        "logPE_stride 1, PE_size 2",
    ];
    checked_misuse("sets_differ").assert_fails(&words);
}

/// Without SHMEM_CHECK, this is found only if one of the two PEs waits for the other.
#[test]
fn active_sets_that_differ() {
    let words = [
        "PE",
        "shmem_barrier",
        "on another active set",
        "SHMEM_CHECK",
    ];
    misuse("sets_differ").assert_fails(&words);
    off_node_misuse("sets_differ").assert_fails(&words);

    // Here the root waits until the other members have entered the broadcast.
    let words = ["PE", "on another active set", "SHMEM_CHECK"];
    misuse("broadcast_and_barrier").assert_fails(&words);
    off_node_misuse("broadcast_and_barrier").assert_fails(&words);
}

/// Point 22, and point 75: a private context belongs to one thread, and only the thread that has
/// initialized the library may finalize it.
#[test]
fn threads_that_may_not_call() {
    for (how, words) in [
        (
            "ctx_of_another_thread",
            ["PE 1", "shmem_ctx_int_p", "SHMEM_CTX_PRIVATE"],
        ),
        (
            "finalize_by_another_thread",
            ["PE 1", "shmem_finalize", "thread"],
        ),
    ] {
        checked_misuse(how).assert_fails(&words);
    }
}

/// The lowest thread level does not allow this, but it is harmless as long as the threads take
/// turns, so the program is only warned.
#[test]
fn threads_that_call_in_turn() {
    let outcome = checked_misuse("barriers_by_another_thread");
    // The status of a program that has come to its end.
    assert_eq!(outcome.code(), 98, "{outcome}");

    let warning = ": shmem_barrier_all: called by another thread";
    assert_eq!(outcome.warned_pes(warning), [0, 1, 2], "{outcome}");
}

/// The same for accesses to the heap and to static data.
#[test]
fn threads_that_access_memory() {
    let how = "accesses_by_other_threads";
    for outcome in [checked_misuse(how), checked_off_node_misuse(how)] {
        // The status of a program that has come to its end.
        assert_eq!(outcome.code(), 98, "{outcome}");

        for call in ["shmem_int_g", "shmem_int_p", "shmem_int_atomic_inc"] {
            let warning = format!(": {call}: called by another thread");
            assert_eq!(outcome.warned_pes(&warning), [0, 1, 2], "{outcome}");
        }
    }
}

/// All PEs make the mistake, and oshrun prints the message of one.
#[test]
fn calls_outside_of_the_library_s_life() {
    for (how, call) in [
        ("before_init", "shmem_barrier_all"),
        ("put_before_init", "shmem_int_p"),
        ("after_finalize", "shmem_n_pes"),
    ] {
        misuse(how).assert_fails(&[call]);
        run(Job::direct(scenario!("misuse.c")).arg(how)).assert_fails(&[call]);
    }
}

/// The program is warned and goes on, since an example of the specification does this.
#[test]
fn a_finalize_too_many_has_no_effect() {
    let warning = "shmem_finalize: called more often than shmem_init; the call has no effect";

    let outcome = misuse("finalize_twice");
    outcome.assert_ok(3);
    assert_eq!(outcome.warned_pes(warning), [0, 1, 2], "{outcome}");

    let outcome = Job::direct(scenario!("misuse.c"))
        .arg("finalize_twice")
        .run();
    outcome.assert_ok(1);
    let message = format!("warning: PE 0: {warning}");
    assert_eq!(outcome.one_message(), message, "{outcome}");

    // The library can be used afterwards.
    let outcome = misuse("finalize_before_init");
    outcome.assert_ok(3);
    let message = "warning: shmem_finalize: called";
    assert_eq!(outcome.stderr.matches(message).count(), 3, "{outcome}");
}

/// The message for a mistake of all PEs is one line of at most 130 columns, without the place of
/// the call.
#[test]
fn a_mistake_of_all_pes_is_one_short_line() {
    for how in [
        "before_init",
        "put_stack_dest",
        "wait_on_the_stack",
        "free_twice",
    ] {
        let outcome = misuse(how);
        let message = outcome.one_message();

        let end = message.find(" (called at ").unwrap_or(message.len());
        assert!(end <= 130, "{end} columns\n{outcome}");
    }
}

/// The standard leaves an alignment that is not a power of two undefined. `shmem_align` returns a
/// null pointer, as for other failures, and ends the job with SHMEM_CHECK.
#[test]
fn an_alignment_that_is_none() {
    misuse("align_63").assert_ok(3);
    checked_misuse("align_63").assert_fails(&["shmem_align", "alignment is 63"]);
}
