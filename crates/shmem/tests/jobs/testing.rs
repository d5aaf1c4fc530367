//! Checks the output of `shmem::test!` when a job passes, fails, hangs or cannot be started.

use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

shmem::test!(the_body_runs_on_every_pe, pes = [1, 2, 4], |shmem| {
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let inbox = shmem.boxed(n_pes);
    inbox.on(shmem.next()).write(me);
    shmem.barrier_all();
    assert_eq!(inbox.load(), (me + n_pes - 1) % n_pes);
});

shmem::test!(a_body_may_initialize_the_library_itself, pes = 2, || {
    let shmem = shmem::init_shared().expect("this is the first round");
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(shmem.n_pes(), 2));
    });
});

mod inner {
    shmem::test!(a_module_may_have_tests, pes = 2, |shmem| assert_eq!(
        shmem.n_pes(),
        2
    ));
}

shmem::test!(does_as_requested, pes = 3, |shmem| {
    match std::env::var("TEST_REQUEST").as_deref() {
        Ok("panic") => assert_ne!(shmem.my_pe(), 1, "on request"),
        Ok("all panic") => _ = shmem.array::<u64>(8)[8..9].len(),
        Ok("hang") if shmem.my_pe() == 2 => sleep(Duration::from_secs(1000)),
        Ok("exit") if shmem.my_pe() == 0 => std::process::exit(3),
        Ok("exit0") if shmem.my_pe() == 0 => std::process::exit(0),
        _ => {}
    }
    shmem.barrier_all();
    println!("PE {} comes to its end", shmem.my_pe());
});

/// Runs the test `does_as_requested` in a process of its own.
fn run(what: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a program knows its path"));
    command
        .args(["--exact", "testing::does_as_requested"])
        .env("TEST_REQUEST", what)
        .env("RUST_BACKTRACE", "0")
        .envs(environment.iter().copied());
    command.output().expect("it runs")
}

/// Returns the output of a test, which must fail with these words.
#[track_caller]
fn fails(output: &Output, words: &[&str]) -> String {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{printed}");
    for word in words {
        assert!(printed.contains(word), "no {word:?} in\n{printed}");
    }
    printed
}

#[test]
fn a_job_that_passes_shows_nothing() {
    let output = run("pass", &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(!printed.contains("comes to its end"), "{printed}");
}

#[test]
fn a_panic_ends_the_job() {
    let printed = fails(
        &run("panic", &[]),
        &["does_as_requested on 3 PEs, started by ", "on request"],
    );
    assert!(!printed.contains("comes to its end"), "{printed}");
}

/// The other PEs wait before they end the job, so that the one that prints the message ends it.
#[test]
fn pes_that_make_the_same_mistake_print_one_message() {
    let printed = fails(
        &run("all panic", &[]),
        &["range 8..9 is out of bounds of 8 elements"],
    );
    let of_test = printed
        .split("it printed")
        .nth(1)
        .expect("the output of the job");
    assert_eq!(of_test.matches(": a panic:").count(), 1, "{printed}");
    assert_eq!(of_test.matches("range 8..9").count(), 1, "{printed}");
}

#[test]
fn a_job_that_hangs_is_ended_at_its_limit() {
    fails(
        &run("hang", &[("SHMEM_TEST_TIMEOUT", "1")]),
        &["was not over after 1s"],
    );
}

#[test]
fn a_pe_that_ends_early_fails_the_test() {
    fails(
        &run("exit", &[]),
        &[
            "does_as_requested on 3 PEs, started by ",
            "exited with status 3",
        ],
    );
    // It waits for the others to do the same, as in C.
    fails(
        &run("exit0", &[]),
        &["PE 0", "exited with status 0 before shmem_finalize"],
    );
}

#[test]
fn without_oshrun_a_message_says_what_to_do() {
    let output = Command::new(std::env::current_exe().expect("a program knows its path"))
        .args(["--exact", "testing::does_as_requested"])
        .env_remove("OSHRUN")
        .env("PATH", "/nowhere")
        .output();
    fails(
        &output.expect("it runs"),
        &["no directory of PATH has oshrun", "set OSHRUN"],
    );
    fails(
        &run("pass", &[("OSHRUN", "/nowhere/oshrun")]),
        &["/nowhere/oshrun cannot be started"],
    );
}

/// If `cargo test` has a runner that starts the program as a job, one process starts the jobs of
/// tests, and the others do nothing.
#[test]
fn in_a_job_one_pe_starts_the_jobs_of_tests() {
    // The job would panic, so the test fails where it is started.
    let first = run("panic", &[("SHMEM_LOCAL_ID", "0")]);
    assert!(!first.status.success(), "{first:?}");
    let second = run("panic", &[("SHMEM_LOCAL_ID", "1")]);
    assert!(second.status.success(), "{second:?}");
}
