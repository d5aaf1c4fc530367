//! Tests of how the installed `shmem-perf` fails: wrong data and options, a full disk, a PE that is
//! killed, a compiler that is missing. Also of `--help` and `build`, which need no job.

use std::fs;
use std::path::Path;
use std::time::Duration;

use shmem_perf::record::Record;
use testkit::{Job, eventually, kill, prefix};

use crate::support::{file, program, read, refused, require_plausible, short};

/// A library to preload, which does not move the last of 24 bytes, and adds 1 too much.
const FAULTY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#define REAL(NAME, TYPE) ((TYPE)dlsym(RTLD_NEXT, #NAME))
typedef void move(void *, const void *, size_t, int);
void shmem_putmem(void *to, const void *from, size_t n, int pe)
{
    REAL(shmem_putmem, move *)(to, from, n - (n == 24), pe);
}
void shmem_getmem(void *to, const void *from, size_t n, int pe)
{
    REAL(shmem_getmem, move *)(to, from, n - (n == 24), pe);
}
long shmem_long_atomic_fetch_add(long *to, long value, int pe)
{
    return REAL(shmem_long_atomic_fetch_add, long (*)(long *, long, int))(to, value + 1, pe);
}
int shmem_long_sum_reduce(void *team, long *to, const long *from, size_t n)
{
    const int status = REAL(shmem_long_sum_reduce, int (*)(void *, long *, const long *, size_t))(team, to, from, n);
    to[n - 1]++;
    return status;
}
"#;

fn data_that_was_not_moved_ends_the_job() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let faulty = testkit::compile_text("faulty.c", FAULTY, dir, &["-shared", "-fPIC"]);
    for operation in ["put", "get", "fetch_add", "sum_reduce"] {
        let job = || {
            Job::new("/usr/bin/env")
                .n(2)
                .arg(format!("LD_PRELOAD={}", faulty.display()))
                .arg(program().display())
                .args(["--time", "0.3", "--sizes", "24"])
                .args(["--operations", operation])
        };
        let unchecked = job().run();
        assert_eq!(unchecked.code(), 0, "{unchecked}");

        let outcome = job().arg("--validate").run();
        assert_ne!(outcome.code(), 0, "{outcome}");
        for part in [operation, "did not move what it should", "PE", "is wrong"] {
            assert!(outcome.stderr.contains(part), "{part}\n{outcome}");
        }
    }
}

fn what_does_not_fit_is_refused_once() {
    for (words, parts) in [
        (&["--bogus"][..], &["--bogus"][..]),
        (
            &["--operations", "teleport"],
            &["teleport", "there is no such operation", "get_nbi"],
        ),
        (
            &["--team-sizes", "9"],
            &["--team-sizes 9", "1 to 3 members"],
        ),
        (&["--pair", "0,3"], &["--pair 0,3", "3 PEs"]),
        (
            &["--measures", "overlap", "--operations", "p"],
            &["nothing is left"],
        ),
        (
            &["-o", "/nowhere/record.json"],
            &["/nowhere/record.json", "cannot be written"],
        ),
        (&["-o", "record.xml"], &["record.xml", ".json or .csv"]),
        (
            &["--samples", "/nowhere/values.csv"],
            &["/nowhere/values.csv", "cannot be written"],
        ),
        (
            &["--validate", "--off-cache", "1m"],
            &["--validate", "--off-cache"],
        ),
        (
            &["--memory", "static", "--off-cache", "1m"],
            &["--off-cache needs --memory heap"],
        ),
    ] {
        refused(&short(3, words).run(), parts);
    }

    let alone = Job::new(program()).n(1).arg("--matrix").run();
    refused(&alone, &["--matrix", "2 PEs"]);
}

fn a_full_disk_is_reported() {
    refused(
        &short(2, &["-o", "/dev/full"]).run(),
        &["/dev/full", "No space left"],
    );
    for words in ["--time 0.2 --operations p", "--help", "build --show"] {
        let command = format!("{} {words} > /dev/full", program().display());
        let outcome = Job::direct("/bin/sh").args(["-c", &command]).run();
        refused(
            &outcome,
            &["standard output cannot be written", "No space left"],
        );
    }
}

fn what_was_measured_outlives_a_peer() {
    let file = file("death.json");
    let job = Job::new(program())
        .n(2)
        .args(["--time", "600", "-o"])
        .arg(file.display())
        .timeout(Duration::from_secs(100))
        .start();
    eventually("a series is written", || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        serde_json::from_str::<Record>(&text).is_ok_and(|record| !record.series.is_empty())
    });

    let program = program().display().to_string();
    let processes = job.processes();
    let pe = processes
        .iter()
        .rfind(|process| process.command.starts_with(&program));
    kill(pe.expect("a PE").pid);

    let outcome = job.finish();
    assert_ne!(outcome.code(), 0, "{outcome}");
    let record = read(&file);
    assert!(!record.complete);
    assert!(!record.series.is_empty());
    for series in &record.series {
        require_plausible(series);
    }
}

fn help_needs_no_job() {
    for words in [&["--help"][..], &["--version"], &["build", "--help"]] {
        let outcome = Job::direct(program()).args(words).run();
        assert_eq!(outcome.code(), 0, "{outcome}");
        assert!(outcome.stdout.contains("shmem-perf"), "{outcome}");
        assert!(outcome.stderr.is_empty(), "{outcome}");
    }
}

fn it_can_be_built_again() {
    let built = file("again");
    let outcome = Job::direct(program())
        .args(["build", "-o"])
        .arg(built.display())
        .arg("--oshcc")
        .arg(prefix().join("bin/oshcc").display())
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");

    let job = Job::new(&built).n(2);
    let outcome = job.args(["--time", "0.2", "--operations", "p"]).run();
    assert_eq!(outcome.code(), 0, "{outcome}");

    let missing = Job::direct(program())
        .args(["build", "--oshcc", "/no/oshcc"])
        .run();
    refused(&missing, &["/no/oshcc", "cannot be started"]);
}

testkit::module_tests!(
    data_that_was_not_moved_ends_the_job,
    what_does_not_fit_is_refused_once,
    a_full_disk_is_reported,
    what_was_measured_outlives_a_peer,
    help_needs_no_job,
    it_can_be_built_again,
);
