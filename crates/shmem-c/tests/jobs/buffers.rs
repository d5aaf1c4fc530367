//! Mistakes with registered buffers, limits that are reached, and their messages; the program
//! `registered_buffers.c` has the correct uses.

use std::path::Path;
use testkit::{Job, Outcome, compile_text, scenario};

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
    let registered = "(registered at tests/scenarios/buffers.c:";
    checked("beyond").assert_fails(&[words[0], words[1], registered]);

    let words = [
        "shmem_putmem: argument dest: 16 bytes at 0x",
        "reach 8 bytes past the end of the registered buffer of 24000 bytes",
        registered,
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
    buffers("options").run().assert_fails(&[
        "shmemx_buffer_register: argument options is ",
        "pass the same options on all PEs",
    ]);

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
            && line.contains("(registered at tests/scenarios/buffers.c:")
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

/// The other PEs do not know that a PE has unmapped a buffer, and put to its block.
#[test]
fn the_block_of_a_buffer_that_is_unmapped_first_stays() {
    assert_prints(&buffers("lost").run(), "kept 1, freed 1");

    let outcome = buffers("lost_in_part").run();
    assert_prints(&outcome, "refused 1, moved 1");
    let words = "the memory of PE 0 is connected through shared pages with a registered buffer that was freed or \
                 unmapped in part; unregister that one first";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

#[test]
fn a_buffer_that_is_protected() {
    for how in ["protected_unregister", "protected_fork", "protected_init"] {
        assert_prints(&buffers(how).run(), "kept 1");
    }
}

/// In a static program, the control block of the first thread is beside the first blocks of malloc.
/// The kernel writes to it whenever the thread gets a CPU, and ends the process if it cannot.
#[test]
fn memory_beside_the_control_block_of_a_thread() {
    let text = "
        #include <shmemx.h>
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) {
            char *beside = malloc(128);
            shmem_init();
            int n_refused = 0;
            for (int i = 0; i < 50; i++) {
                n_refused += !shmemx_buffer_register(beside, 128, 0);
                shmemx_buffer_unregister(beside);
            }
            char *pages = aligned_alloc(4096, 4096);
            const int is_registered = shmemx_buffer_register(pages, 4096, 0) == pages;
            printf(\"refused %d, registered %d\\n\", n_refused, is_registered);
            shmem_finalize();
        }
    ";

    let tmpdir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = compile_text("beside_control_block.c", text, tmpdir, &["-static"]);
    // The C library of a static program would allocate the parts of this path first.
    let outcome = Job::new(program).n(3).env("LD_LIBRARY_PATH", "").run();
    assert_prints(&outcome, "refused 50, registered 1");
    let words = "the memory of PE 0 has a page in common with the control block of the first thread, to which the \
                 kernel writes; begin and end it at pages";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

fn assert_prints(outcome: &Outcome, line: &str) {
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.lines().collect::<Vec<_>>(), [line; 3], "{outcome}");
}

#[test]
fn a_size_that_has_no_end() {
    let outcome = buffers("no_end").run();
    assert_prints(&outcome, "refused 1");
    let words = "the memory of PE 0 is not all mapped for reads and writes";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

#[test]
fn an_option_that_does_not_exist() {
    let outcome = buffers("option").run();
    assert_prints(&outcome, "refused 1");
    let words = "argument options: PE 2 passes an unknown option; pass 0 or SHMEMX_BUFFER_PINNED";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

/// Without /proc/self/maps nobody knows what is mapped, so nothing counts as unmapped.
#[test]
fn no_descriptor_is_left() {
    let outcome = checked("descriptors");
    assert_prints(&outcome, "refused 1, got 1, ended 1");
    let words = "the memory of PE 0 cannot be checked, since /proc/self/maps cannot be read there";
    assert!(outcome.stderr.contains(words), "{outcome}");
    assert!(
        !outcome.stderr.contains("was freed or unmapped"),
        "{outcome}"
    );

    buffers("descriptors_at_init").run().assert_fails(&[
        "the kernel refuses private pages for a buffer that was registered before the last finalize: Too many open files",
        "raise the limits of memory, mappings and open files",
    ]);
}

#[test]
fn a_buffer_with_a_held_lock_does_not_move() {
    let outcome = buffers("held_lock").run();
    assert_prints(&outcome, "refused 1, moved 1");
    let words = "the memory of PE 1 is connected through shared pages with a registered buffer that would move, and in \
                 which the PE holds a lock; call shmem_clear_lock first";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

#[test]
fn a_lock_is_held_when_its_buffer_ends() {
    checked("held_lock_at_end").assert_fails(&[
        "PE 2: shmemx_buffer_unregister: argument addr: this PE holds the lock at 0x",
        "which is in the buffer; call shmem_clear_lock before the registration ends",
    ]);
}

#[test]
fn memory_beside_the_stack_of_a_thread() {
    let outcome = buffers("beside_stack").run();
    assert!(outcome.status.success(), "{outcome}");
    for line in ["beside 1", "stack 0"] {
        assert_eq!(
            outcome.lines().filter(|other| *other == line).count(),
            3,
            "{outcome}"
        );
    }
}

/// The allocator of the C library enlarges large blocks by `mremap`, which must not add pages of
/// other blocks of the heap.
#[test]
fn a_buffer_that_is_reallocated() {
    assert_prints(&buffers("reallocated").run(), "kept 1");
}
