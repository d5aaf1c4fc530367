//! `main` returns an error by `?` on one PE while the others are in a call that waits for it: the
//! job ends with that error on the screen, and with the exit status of that PE.
//!
//! This program is the job, too: each test runs it with the name of a call.

use shmem::Sum;
use std::error::Error;
use std::process::ExitCode;
use testkit::{Job, Test};

/// The calls in which the others wait.
const CALLS: [&str; 5] = ["barrier", "wait", "epoch", "reduce", "drop"];

fn read_configuration(me: usize) -> Result<usize, Box<dyn Error>> {
    if me == 1 {
        Err("the configuration has no number of steps")?;
    }
    Ok(17)
}

/// The program of a PE.
fn pe(call: &str) -> Result<(), Box<dyn Error>> {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(100);
    let flag = shmem.atomic(0u64);
    let other = shmem.boxed(0u64);
    shmem.barrier_all();

    let steps = read_configuration(shmem.my_pe())?;
    match call {
        "barrier" => shmem.barrier_all(),
        "wait" => _ = shmem.wait(flag.eq(1)),
        "epoch" => array.epoch(|_| ()),
        "reduce" => assert!(shmem.world().all_reduce(steps, Sum) > 0),
        _ => drop(other),
    }

    // The others do not end: with another object, they are in the call that they make next.
    drop(shmem.boxed(0u64));
    Ok(())
}

fn ends_with_its_error(call: &'static str, onnode: &str) {
    let this = std::env::current_exe().expect("a test program knows its path");
    let outcome = Job::new(this)
        .n(4)
        .env("EARLY_RETURN", call)
        .env("SHMEM_ONNODE", onnode)
        .run();
    assert_eq!(outcome.code(), 1, "{outcome}");

    let error = r#"Error: "the configuration has no number of steps""#;
    let report = "PE 1: exited with status 1 while other PEs go on";
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let [first, second] = lines[..] else {
        panic!("not two lines\n{outcome}");
    };
    assert_eq!(first, error, "{outcome}");
    assert!(second.starts_with(report), "{outcome}");
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Ok(call) = std::env::var("EARLY_RETURN") {
        return pe(&call).map(|()| ExitCode::SUCCESS);
    }

    let mut tests = Vec::new();
    for onnode in ["on", "off"] {
        for call in CALLS {
            let name = format!("{onnode}_node::{call}");
            tests.push(Test::new(name, move || ends_with_its_error(call, onnode)));
        }
    }
    Ok(testkit::run(tests))
}
