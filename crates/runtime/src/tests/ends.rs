//! What a job of several PEs in one process leaves behind: nothing. And how a job ends whose PEs
//! do not.

use super::kit::{Shape, WORLD, job};
use super::model::{Case, Collective, OPERATORS, Place};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

/// What a process has: mappings, descriptors, and resident memory in bytes.
#[derive(Debug)]
struct Owned {
    mappings: usize,
    descriptors: usize,
    resident: usize,
}

fn owned() -> Owned {
    let maps = fs::read_to_string("/proc/self/maps").expect("a file of the kernel");
    let statm = fs::read_to_string("/proc/self/statm").expect("a file of the kernel");
    let resident = statm
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse::<usize>().ok());
    Owned {
        mappings: maps.lines().count(),
        descriptors: fs::read_dir("/proc/self/fd").expect("a directory").count(),
        resident: resident.expect("a number of pages") * rustix::param::page_size(),
    }
}

fn run_jobs(n: usize, shape: &Shape) {
    for _ in 0..n {
        job(shape, |pe| {
            let members: Vec<usize> = (0..pe.n()).collect();
            let place = Place {
                team: WORLD,
                members: &members,
                source: 0,
                dest: 4096,
            };
            Case::of(Collective::Reduce(&OPERATORS[0]), 8, 1).run(pe, place);
        });
    }
}

/// The variable that tells this program to run the test below, and no other one.
const IS_ALONE: &str = "RUSHMEM_TEST_IS_ALONE";

/// In a process of its own, since other tests run beside this one.
#[test]
fn nothing_is_left_of_many_jobs() {
    if std::env::var_os(IS_ALONE).is_none() {
        let own = std::env::current_exe().expect("a program");
        let status = Command::new(own)
            .args(["--exact", "tests::ends::nothing_is_left_of_many_jobs"])
            .env(IS_ALONE, "1")
            .status();
        assert!(status.expect("it starts").success());
        return;
    }

    let on_node = Shape::of(&[4]);
    let over_tcp = Shape::over_tcp(&[2, 2]);
    run_jobs(20, &on_node);
    run_jobs(10, &over_tcp);

    let n = if testkit::every_size() { 2000 } else { 400 };
    let before = owned();
    run_jobs(n, &on_node);
    run_jobs(n / 20, &over_tcp);
    let after = owned();

    // A leak of a mapping or descriptor of each job is hundreds, that of a table is megabytes.
    let has_grown = after.mappings >= before.mappings + 50
        || after.descriptors >= before.descriptors + 5
        || after.resident >= before.resident + (16 << 20);
    assert!(!has_grown, "before {before:?}, after {after:?}");
}

/// A panic ends the test with its message, although the other PE waits for ever.
#[test]
fn a_panic_of_a_pe_fails_its_job() {
    let failed = catch_unwind(AssertUnwindSafe(|| {
        job(&Shape::of(&[2]), |pe| {
            assert_eq!(pe.me(), 0, "PE 1 fails");
            pe.sync_all();
        })
    }));
    let failed = failed.expect_err("PE 1 panics");
    let text = failed.downcast_ref::<String>().expect("a message");
    assert!(
        text.contains("PE 1: ") && text.contains("PE 1 fails"),
        "{text}"
    );
}
