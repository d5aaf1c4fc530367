//! What no correct program does ends the job with one sentence: the PE, the call, the argument.

use testkit::{Job, Outcome, program};

fn misuse(how: &str) -> Outcome {
    Job::new(program!("misuse.c")).n(3).arg(how).run()
}

/// The same between PEs that share no memory.
fn off_node_misuse(how: &str) -> Outcome {
    Job::new(program!("misuse.c")).n(3).arg(how).env("SHMEM_ONNODE", "off").run()
}

#[test]
fn addresses_that_are_not_symmetric() {
    for (how, words) in [
        ("put_stack_dest", ["PE 1", "shmem_int_put", "dest"]),
        ("put_library_dest", ["PE 1", "shmem_putmem", "dest"]),
        ("put_beyond_statics", ["PE 1", "shmem_putmem", "beyond the static data"]),
        ("get_stack_source", ["PE 1", "shmem_int_get", "source"]),
        ("put_beyond_heap", ["PE 1", "shmem_putmem", "dest"]),
        ("amo_stack_dest", ["PE 1", "shmem_int_atomic_add", "dest"]),
        ("signal_stack", ["PE 1", "shmem_int_put_signal", "sig_addr"]),
        ("lock_stack", ["PE 1", "shmem_set_lock", "lock"]),
    ] {
        misuse(how).assert_fails(&words);
    }
}

/// Bytes that wrap around are not few bytes.
#[test]
fn strides_that_overflow() {
    let words = ["PE 1", "shmem_int_iput", "dest"];
    misuse("iput_stride_overflows").assert_fails(&words);
    off_node_misuse("iput_stride_overflows").assert_fails(&words);
}

/// All PEs make the same mistake at the same time; one of them is named.
#[test]
fn collectives_on_addresses_that_are_not_symmetric() {
    misuse("broadcast_stack_dest").assert_fails(&["PE ", "shmem_int_broadcast", "dest"]);
    misuse("reduce_stack_source").assert_fails(&["PE ", "shmem_int_max_reduce", "source"]);
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
        misuse(how).assert_fails(&["PE ", "shmem_free"]);
    }
}

/// The standard leaves these undefined (point 15 among others); here they are named.
#[test]
fn arguments_without_a_meaning() {
    for (how, words) in [
        ("p_invalid_ctx", ["PE 1", "shmem_ctx_int_p", "ctx"]),
        ("destroy_default_ctx", ["PE 1", "shmem_ctx_destroy", "ctx"]),
        ("wait_unknown_cmp", ["PE 1", "shmem_int_wait_until", "77"]),
        ("signal_unknown_op", ["PE 1", "shmem_int_put_signal", "77"]),
        ("iput_stride_0", ["PE 1", "shmem_int_iput", "dst"]),
        ("reduce_invalid_team", ["PE ", "shmem_int_max_reduce", "team"]),
        ("sync_destroyed_team", ["PE ", "shmem_team_sync", "team"]),
        ("destroy_world", ["PE ", "shmem_team_destroy", "predefined"]),
        ("broadcast_root_n", ["PE ", "shmem_int_broadcast", "PE_root"]),
        ("barrier_beyond_n", ["PE ", "shmem_barrier", "PE_size"]),
    ] {
        misuse(how).assert_fails(&words);
    }
}

/// Point 85: what Cray calls fatal.
#[test]
fn splits_in_cray_s_form() {
    for (how, words) in [
        ("strided_beyond_parent", ["shmemx_team_split_strided", "PE_start 1", "0 to 2"]),
        ("strided_stride_negative", ["shmemx_team_split_strided", "PE_stride", "-1"]),
        ("strided_stride_0", ["shmemx_team_split_strided", "PE_stride", "at least 1"]),
        ("strided_size_0", ["shmemx_team_split_strided", "PE_size", "at least 1"]),
        ("strided_parent_null", ["shmemx_team_split_strided", "parent_team", "SHMEM_TEAM_NULL"]),
        ("strided_parent_gone", ["shmemx_team_split_strided", "parent_team", "destroyed"]),
        ("strided_differs", ["shmemx_team_split_strided", "another team", "same arguments"]),
        ("grid_range_negative", ["shmemx_team_split_2d", "yrange", "-3"]),
        ("grid_range_differs", ["shmemx_team_split_2d", "yrange", "differ"]),
        ("colour_negative", ["shmemx_team_split", "color", "-2"]),
        ("destroy_null", ["shmemx_team_destroy", "newteam", "SHMEM_TEAM_NULL"]),
        ("destroy_node", ["shmemx_team_destroy", "team", "predefined"]),
        ("packed_target_short", ["shmemx_alltoallv_packed", "target_len is 7", "8 bytes"]),
    ] {
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
    }
}

/// A PE that would wait for itself, or give away what it has not.
#[test]
fn locks_that_are_not_held_as_they_should() {
    for (how, words) in [
        ("lock_twice", ["PE 1", "shmem_set_lock", "holds the lock already"]),
        ("clear_free_lock", ["PE 1", "shmem_clear_lock", "does not hold"]),
        ("clear_twice", ["PE 1", "shmem_clear_lock", "does not hold"]),
        ("lock_unaligned", ["PE 1", "shmem_set_lock", "aligned"]),
        ("finalize_holding", ["PE 1", "shmem_finalize", "for which PE 2 waits"]),
    ] {
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
    }
}

#[test]
fn words_that_are_not_aligned() {
    for (how, words) in [
        ("amo_unaligned", ["PE 1", "shmem_int_atomic_add", "dest"]),
        ("fetch_unaligned", ["PE 1", "shmem_int_atomic_fetch", "source"]),
        ("signal_unaligned", ["PE 1", "shmem_int_put_signal", "sig_addr"]),
        ("wait_unaligned", ["PE 1", "shmem_int_wait_until", "ivar"]),
    ] {
        assert!(misuse(how).assert_fails(&words).contains("not aligned"));
        assert!(off_node_misuse(how).assert_fails(&words).contains("not aligned"));
    }
}

/// A handle is looked up before it is believed; one of a context of the world, which was destroyed, is
/// believed on one node unless SHMEM_CHECK is set, since nothing is read for it.
#[test]
fn contexts_that_are_none() {
    for (how, words) in [
        ("garbage_ctx", ["PE 1", "shmem_ctx_int_p", "not a context"]),
        ("quiet_garbage_ctx", ["PE 1", "shmem_ctx_quiet", "not a context"]),
        ("destroyed_team_ctx", ["PE 1", "shmem_ctx_int_p", "not a context"]),
        ("destroy_ctx_twice", ["PE 1", "shmem_ctx_destroy", "not a context"]),
    ] {
        misuse(how).assert_fails(&words);
        off_node_misuse(how).assert_fails(&words);
        checked_misuse(how).assert_fails(&words);
    }
    let words = ["PE 1", "shmem_ctx_int_p", "not a context"];
    off_node_misuse("destroyed_ctx").assert_fails(&words);
    checked_misuse("destroyed_ctx").assert_fails(&words);
}

/// With SHMEM_CHECK.
fn checked_misuse(how: &str) -> Outcome {
    Job::new(program!("misuse.c")).n(3).arg(how).env("SHMEM_CHECK", "1").run()
}

#[test]
fn who_is_where_when_not_all_are_in_the_same_collective() {
    for (how, words) in [
        ("barrier_and_sync", ["PE 0, PE 2 in shmem_barrier_all", "PE 1 in shmem_sync_all"]),
        ("roots_differ", ["PE 0, PE 1 in shmem_int_broadcast with", "PE_root 1"]),
        ("lengths_differ", ["shmem_int_sum_reduce", "bytes 8"]),
        (
            "sizes_differ",
            ["PE 0, PE 2 in shmem_malloc with size 128", "PE 1 in shmem_malloc with size 64"],
        ),
        ("split_and_sync", ["PE 0 in shmem_team_sync", "PE 1, PE 2 in shmem_team_split_strided"]),
    ] {
        checked_misuse(how).assert_fails(&words);
    }
    checked_misuse("arrays_overlap").assert_fails(&["shmem_int_sum_reduce", "overlap"]);
}

/// Point 22, and point 75: a private context is its thread's, and so is the end of the library.
#[test]
fn threads_that_may_not_call() {
    for (how, words) in [
        ("ctx_of_another_thread", ["PE 1", "shmem_ctx_int_p", "SHMEM_CTX_PRIVATE"]),
        ("sync_by_another_thread", ["PE 1", "shmem_sync_all", "SHMEM_THREAD_SINGLE"]),
        ("finalize_by_another_thread", ["PE 1", "shmem_finalize", "thread"]),
        ("wait_on_the_stack", ["PE 1", "shmem_int_wait_until", "ivar"]),
    ] {
        checked_misuse(how).assert_fails(&words);
    }
}

/// Nothing joins the PEs then, so each that makes the mistake says so, all in the same words.
#[test]
fn calls_outside_of_the_library_s_life() {
    for (how, call) in [
        ("before_init", "shmem_barrier_all"),
        ("put_before_init", "shmem_int_p"),
        ("after_finalize", "shmem_n_pes"),
        ("finalize_twice", "shmem_finalize"),
    ] {
        let mut outcome = misuse(how);
        let mut lines: Vec<&str> = outcome.stderr.lines().collect();
        lines.dedup();
        outcome.stderr = lines.join("\n");
        outcome.assert_fails(&[call]);
        Job::direct(program!("misuse.c")).arg(how).run().assert_fails(&[call]);
    }
}
