//! Accesses beyond blocks of the symmetric heap and static variables are found with `SHMEM_CHECK`,
//! by the library, by AddressSanitizer or by valgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Job, Outcome, absent, every_size, has_library, program, scenario};

/// Accesses of calls, with the start of the message and words of it.
const BY_CALL: [(&str, &str, [&str; 2]); 18] = [
    (
        "put_beyond",
        "shmem_putmem: argument dest: 60 bytes at ",
        [
            "reach 10 bytes past the end of the block of 100 bytes",
            "which ends at 0x",
        ],
    ),
    (
        "put_nbi_beyond",
        "shmem_putmem_nbi: argument dest: 60 bytes",
        [
            "reach 10 bytes past the end of the block of 100 bytes",
            "allocated by shmem_malloc",
        ],
    ),
    (
        "get_beyond",
        "shmem_getmem: argument source: 2 bytes",
        ["reach 1 bytes past the end", "100 bytes"],
    ),
    (
        "get_to_beyond",
        "shmem_getmem: argument dest: 60 bytes",
        ["reach 10 bytes past the end", "100 bytes"],
    ),
    (
        "put_from_beyond",
        "shmem_putmem: argument source: 60 bytes",
        ["reach 10 bytes past the end", "100 bytes"],
    ),
    (
        "p_before",
        "shmem_char_p: argument dest: 1 bytes",
        ["begin 1 bytes before the start", "100 bytes"],
    ),
    (
        "g_after",
        "shmem_char_g: argument source: 1 bytes",
        ["begin at the end of", "100 bytes"],
    ),
    (
        "iput_beyond",
        "shmem_char_iput: argument dest: 111 bytes",
        ["reach 11 bytes past the end", "100 bytes"],
    ),
    (
        "amo_beyond",
        "shmem_uint64_atomic_inc: argument dest: 8 bytes",
        ["reach 4 bytes past", "100 bytes"],
    ),
    (
        "fetch_freed",
        "shmem_uint64_atomic_fetch_add: argument dest",
        [
            "are not allocated",
            "shmem_free has freed the block of 100 bytes",
        ],
    ),
    (
        "put_freed",
        "shmem_putmem: argument dest: 8 bytes",
        [
            "are not allocated",
            "shmem_free has freed the block of 100 bytes",
        ],
    ),
    (
        "signal_freed",
        "shmem_putmem_signal: argument sig_addr: 8 bytes",
        ["are not allocated", "shmem_free has freed"],
    ),
    (
        "put_nowhere",
        "shmem_putmem: argument dest: 8 bytes",
        [
            "bytes past the end of the block of 100 bytes",
            "allocated by",
        ],
    ),
    (
        "put_static_beyond",
        "shmem_long_put: argument dest: 40 bytes at ",
        [
            "reach 8 bytes past the end of the static variable table (64 bytes at 0x",
            "which ends at 0x",
        ],
    ),
    (
        "get_static_beyond",
        "shmem_get64: argument source: 72 bytes at ",
        [
            "reach 8 bytes past the end of the static variable table",
            "64 bytes",
        ],
    ),
    (
        "put_from_static_beyond",
        "shmem_put64: argument source: 72 bytes at ",
        [
            "reach 8 bytes past the end of the static variable beside",
            "64 bytes",
        ],
    ),
    (
        "iget_static_beyond",
        "shmem_long_iget: argument source: 72 bytes at ",
        [
            "reach 8 bytes past the end of the static variable table",
            "64 bytes",
        ],
    ),
    (
        "amo_static_beyond",
        "shmem_uint64_atomic_inc: argument dest: 8 bytes at ",
        [
            "reach 4 bytes past the end of the static variable half",
            "4 bytes",
        ],
    ),
];

fn job(program: &Path, how: &str) -> Job {
    Job::new(program).n(2).arg(how).env("SHMEM_CHECK", 1)
}

/// The rows of [`BY_CALL`] that are always also tested over a network: one for each kind of call.
/// In `--full`, all are.
const OVER_NETWORK: [&str; 4] = ["put_beyond", "get_beyond", "amo_beyond", "signal_freed"];

fn accesses_by_calls() {
    for (how, start, words) in BY_CALL {
        for onnode in ["on", "off"] {
            if onnode == "off" && !every_size() && !OVER_NETWORK.contains(&how) {
                continue;
            }

            let outcome = job(&scenario!("blocks.c"), how)
                .env("SHMEM_ONNODE", onnode)
                .run();
            let sentence = outcome.assert_fails(&words);
            assert!(sentence.starts_with(&format!("PE 1: {start}")), "{outcome}");
        }
    }
}

/// Stores by the program itself are found at the next barrier of the PE whose memory it is, or when
/// the block is freed.
fn stores_of_the_program() {
    let block = "the block of 100 bytes";
    for (how, start, place) in [
        (
            "store_after",
            "PE 1: shmem_barrier_all: 1 bytes",
            "at the end of ",
        ),
        (
            "store_before",
            "PE 1: shmem_barrier_all: 1 bytes",
            "2 bytes before the start of ",
        ),
        (
            "store_through_ptr",
            "PE 0: shmem_",
            "3 bytes past the end of ",
        ),
    ] {
        let outcome = job(&scenario!("blocks.c"), how).run();
        let sentence = outcome.assert_fails(&["were overwritten", &format!("{place}{block}")]);
        assert!(sentence.starts_with(start), "{outcome}");
    }

    let outcome = job(&scenario!("blocks.c"), "store_after_and_free").run();
    outcome.assert_fails(&[
        "shmem_free: 1 bytes at 0x",
        "were overwritten, at the end of",
        block,
    ]);
}

/// The checks do not change the behavior of correct programs. Without checks, an incorrect access
/// that does no harm is not an error.
fn correct_programs() {
    for (n, nodes) in [(1, "on"), (2, "on"), (3, "off")] {
        Job::new(scenario!("blocks.c"))
            .n(n)
            .arg("none")
            .env("SHMEM_CHECK", 1)
            .env("SHMEM_ONNODE", nodes)
            .run()
            .assert_ok(n);
    }

    Job::new(scenario!("blocks.c"))
        .n(2)
        .arg("get_beyond")
        .run()
        .assert_ok(2);
}

/// Without a symbol table the variables are not known, so accesses beyond them are not reported.
fn stripped_programs() {
    let dir = tempfile::tempdir().expect("a directory");
    let stripped = dir.path().join("stripped");

    let done = Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(scenario!("blocks.c"))
        .status();
    if !done.is_ok_and(|status| status.success()) {
        absent("strip is not here");
    }

    job(&stripped, "get_static_beyond").run().assert_ok(2);
    job(&stripped, "none").run().assert_ok(2);
}

/// The checks change the offsets of blocks, so either all PEs must check or none.
fn all_pes_check() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = r#"mkdir "$0" 2> /dev/null && export SHMEM_CHECK=1; exec "$@""#;

    Job::new("sh")
        .n(2)
        .args(["-c", script])
        .arg(dir.path().join("first").display())
        .arg(scenario!("blocks.c").display())
        .run()
        .assert_fails(&["SHMEM_CHECK is ", "must be the same on all"]);
}

/// Compiles the program with AddressSanitizer. Ignores the test if the compiler lacks it.
fn with_address_sanitizer() -> PathBuf {
    let trial = "echo 'int main(void){return 0;}' | cc -fsanitize=address -x c - -o /dev/null";
    let made = Command::new("sh")
        .args(["-c", trial])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        absent("the C compiler has no AddressSanitizer");
    }

    scenario!("blocks.c", "-fsanitize=address", "-g")
}

fn asan(how: &str) -> Outcome {
    job(&with_address_sanitizer(), how)
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .run()
}

fn address_sanitizer_reports_the_program_s_own_accesses() {
    for how in ["store_after", "store_before", "store_freed", "load_after"] {
        let outcome = asan(how);
        assert!(!outcome.status.success(), "{outcome}");
        for word in ["use-after-poison", "in by_itself"] {
            assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
        }
    }

    let outcome = asan("none");
    outcome.assert_ok(2);
    assert!(outcome.stderr.is_empty(), "{outcome}");
}

/// The library keeps what it has allocated for the life of the process where LeakSanitizer finds
/// it.
fn leak_sanitizer_reports_nothing_of_the_library() {
    with_address_sanitizer();
    let program = program!("contexts.c", "-fsanitize=address", "-g");

    for (transport, library) in [("ucx", "libucp.so.0"), ("ofi", "libfabric.so.1")] {
        if !has_library(library) {
            println!("left out: {library} is not here");
            continue;
        }

        let outcome = Job::new(&program)
            .n(2)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", transport)
            .run();
        outcome.assert_ok(2);
        assert!(outcome.stderr.is_empty(), "{outcome}");
    }
}

fn valgrind(how: &str, n: usize) -> Outcome {
    if Command::new("valgrind").arg("--version").output().is_err() {
        absent("valgrind is not here");
    }

    let program = scenario!("blocks.c", "-g", "-O0");
    Job::new(&program)
        .n(n)
        .arg(how)
        .env("SHMEM_CHECK", 1)
        // valgrind writes a shadow of each mapping of the heap.
        .env("SHMEM_SYMMETRIC_SIZE", "1m")
        .launcher_options(["valgrind", "-q"])
        .run()
}

fn valgrind_reports_the_program_s_own_accesses() {
    let accesses = [
        ("store_freed", "Invalid write of size 1"),
        ("load_after", "Invalid read of size 1"),
        ("store_after", "Invalid write of size 1"),
    ];

    let n_tested = if every_size() { accesses.len() } else { 2 };
    for (how, report) in &accesses[..n_tested] {
        // One PE is enough for its own accesses, and takes a third of the time of two.
        let outcome = valgrind(how, 1);
        for word in [report, "by_itself (blocks.c"] {
            assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
        }
    }

    let outcome = valgrind("none", 2);
    outcome.assert_ok(2);
    assert!(outcome.stderr.is_empty(), "{outcome}");
}

testkit::module_tests! {
    accesses_by_calls,
    stores_of_the_program,
    correct_programs,
    stripped_programs,
    all_pes_check,
    address_sanitizer_reports_the_program_s_own_accesses,
    leak_sanitizer_reports_nothing_of_the_library,
    valgrind_reports_the_program_s_own_accesses,
}
