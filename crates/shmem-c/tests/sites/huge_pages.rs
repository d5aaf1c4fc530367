//! SHMEM_HUGE_PAGES: which parts of symmetric memory have huge pages according to the kernel. If
//! the kernel makes no huge pages on request, the tests that need them are ignored.

use std::fs;

use testkit::{Job, Outcome, absent, scenario};

fn job(value: &str) -> Job {
    Job::new(scenario!("huge_pages.c"))
        .n(2)
        .env("SHMEM_HUGE_PAGES", value)
}

/// Returns the KiB of huge pages in the memory of PE 0 that the program prints under this name.
fn kib(outcome: &Outcome, name: &str) -> u64 {
    outcome
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        .unwrap_or_else(|| panic!("{name} is missing\n{outcome}"))
}

/// Runs a job. Ignores the test if the kernel does not make huge pages.
fn run_with_huge_pages(job: Job) -> Outcome {
    let outcome = job.env("SHMEM_DEBUG", "runtime::memory=debug").run();
    for why in ["the kernel refuses", "too little memory"] {
        if outcome.stderr.contains(why) {
            absent(format!("huge pages on request: {why}"));
        }
    }

    outcome.assert_ok(2);
    outcome
}

/// Returns the number of pages of 2 MiB that are reserved and free.
fn reserved() -> u64 {
    let file = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    fs::read_to_string(file)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns true if the kernel may use huge pages for shared memory at the first touch, so that
/// small blocks have them, too.
fn everywhere() -> bool {
    let file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    fs::read_to_string(file).is_ok_and(|text| !text.contains("[never]"))
}

fn off_has_none() {
    let outcome = job("off").run();
    outcome.assert_ok(2);
    for name in ["static", "small", "for_amos", "large"] {
        assert_eq!(kib(&outcome, name), 0, "{name}\n{outcome}");
    }
}

/// Large blocks and those with the hint have huge pages; other memory has none. On a busy machine
/// only 32 MiB of the large block are certain.
fn auto_is_for_large_blocks() {
    if reserved() > 0 || everywhere() {
        absent("this machine has huge pages for everything");
    }

    let outcome = run_with_huge_pages(job("auto"));
    assert_eq!(kib(&outcome, "static"), 0, "{outcome}");
    assert_eq!(kib(&outcome, "small"), 0, "{outcome}");
    let for_amos = kib(&outcome, "for_amos");
    assert!((2048..5120).contains(&for_amos), "{outcome}");
    let large = kib(&outcome, "large");
    assert!((32 << 10..134 << 10).contains(&large), "{outcome}");
}

fn on_is_for_all_that_can_have_them() {
    let outcome = run_with_huge_pages(job("on"));
    for (name, min_mib) in [("static", 2), ("small", 2), ("for_amos", 2), ("large", 124)] {
        assert!(kib(&outcome, name) >= min_mib << 10, "{name}\n{outcome}");
    }
}

/// The heap has the pages for 512 MiB and one for the allocator.
fn reserved_pages_are_all_of_the_heap() {
    if reserved() < 2 * 257 {
        absent("fewer than 514 pages of 2 MiB are reserved and free");
    }

    for value in ["2m", "auto"] {
        let outcome = job(value).run();
        outcome.assert_ok(2);
        assert_eq!(outcome.stderr, "");
        assert_eq!(kib(&outcome, "small"), 257 << 11, "{outcome}");
    }
}

/// The job goes on with the pages that are available.
fn pages_that_nobody_reserved_are_warned_of_once() {
    let outcome = job("1g")
        .env("SHMEM_SYMMETRIC_SIZE", "4000g")
        .arg("static")
        .run();
    outcome.assert_ok(2);

    let warnings: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("1g"))
        .collect();
    assert_eq!(warnings.len(), 1, "{outcome}");
    for part in [
        "warning: SHMEM_HUGE_PAGES=1g: ",
        "hugepages-1048576kB/nr_hugepages",
        "8002",
    ] {
        assert!(warnings[0].contains(part), "{part}\n{outcome}");
    }
}

fn a_small_heap_is_no_obstacle() {
    for value in ["auto", "on", "off", "2m"] {
        for size in ["0", "1m"] {
            Job::new(scenario!("heap_size.c"))
                .n(2)
                .args([0, 0])
                .env("SHMEM_HUGE_PAGES", value)
                .env("SHMEM_SYMMETRIC_SIZE", size)
                .run()
                .assert_ok(2);
        }
    }
}

fn other_values_are_refused() {
    let words = ["SHMEM_HUGE_PAGES is 3m", "auto, on, off, 2m or 1g"];
    job("3m").run().assert_fails(&words);

    let differ = "SHMEM_HUGE_PAGES=$([ $SHMEM_LOCAL_ID = 0 ] && echo on || echo off) exec \"$0\"";
    let outcome = Job::new("/bin/sh")
        .n(2)
        .args(["-c", differ])
        .arg(scenario!("huge_pages.c").display())
        .run();
    outcome.assert_fails(&["SHMEM_HUGE_PAGES is ", "it must be the same on all"]);
}

testkit::module_tests! {
    off_has_none,
    auto_is_for_large_blocks,
    on_is_for_all_that_can_have_them,
    reserved_pages_are_all_of_the_heap,
    pages_that_nobody_reserved_are_warned_of_once,
    a_small_heap_is_no_obstacle,
    other_values_are_refused,
}
