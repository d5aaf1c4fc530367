//! Mistakes with registered buffers, and their messages; the program `registered_buffers.c` has the
//! correct uses.

use testkit::{Job, Outcome, scenario};

fn buffers(how: &str) -> Job {
    Job::new(scenario!("buffers.c")).n(3).arg(how)
}

fn checked(how: &str) -> Outcome {
    buffers(how).env("SHMEM_CHECK", 1).run()
}

#[test]
fn bytes_beyond_a_buffer() {
    let words = [
        "shmem_putmem: argument dest: 16 bytes at 0x",
        "reach beyond the registered buffer of 24000 bytes at 0x",
    ];
    buffers("beyond").run().assert_fails(&words);
    checked("beyond").assert_fails(&words);

    let words = [
        "shmem_putmem: argument dest: 16 bytes at 0x",
        "reach 8 bytes past the end of the registered buffer of 24000 bytes",
    ];
    checked("beyond_pinned").assert_fails(&words);

    let words = ["shmem_putmem: argument pe is 3, but PEs are numbered 0 to 2"];
    buffers("beyond_at_pe").run().assert_fails(&words);
}

#[test]
fn a_buffer_is_no_block_to_free() {
    let words = [
        "shmem_free: argument ptr: 0x",
        "is in the block of a registered buffer",
        "shmemx_buffer_unregister",
    ];
    buffers("free_pinned").run().assert_fails(&words);
    let words = [
        "shmem_realloc: argument ptr: 0x",
        "is in the block of a registered buffer",
    ];
    buffers("realloc_pinned").run().assert_fails(&words);
    let words = [
        "shmem_free: argument ptr: 0x",
        "is in a registered buffer of the program's own memory",
    ];
    buffers("free").run().assert_fails(&words);
}

#[test]
fn calls_that_differ() {
    let words = [
        "shmemx_buffer_register: this PE registers a buffer of 24",
        " bytes",
    ];
    buffers("sizes").run().assert_fails(&words);
    let words = [
        "shmemx_buffer_register: argument nbytes is 240",
        "pass the same size on all PEs",
    ];
    let apart = buffers("sizes").env("SHMEM_ONNODE", "off");
    apart.run().assert_fails(&words);

    let words = [
        "shmemx_buffer_unregister: argument addr: this PE passes",
        "the address of no registered buffer",
    ];
    buffers("others").run().assert_fails(&words);
    buffers("malloc_meanwhile")
        .run()
        .assert_fails(&[" allocates 64 bytes", " registers a buffer of 8 bytes"]);
}

#[test]
fn a_buffer_that_is_unmapped_first() {
    let words = "was freed or unmapped, so what other PEs put there is lost";
    let outcome = checked("unmapped");
    assert!(outcome.status.success(), "{outcome}");
    let warnings = outcome.stderr.lines().filter(|line| {
        line.contains("shmem_barrier_all: the registered buffer of 24000 bytes at 0x")
            && line.contains(words)
    });
    assert_eq!(warnings.count(), 3, "{outcome}");
    assert_eq!(outcome.lines().collect::<Vec<_>>(), ["unregistered 1"; 3]);

    // What the program has mapped there since stays.
    let outcome = buffers("unmapped_and_mapped").run();
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(
        outcome.lines().collect::<Vec<_>>(),
        ["kept 1"; 3],
        "{outcome}"
    );

    let outcome = buffers("one_page_unmapped").run();
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(
        outcome.lines().collect::<Vec<_>>(),
        ["got 1"; 3],
        "{outcome}"
    );
}
