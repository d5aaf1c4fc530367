//! Further tests of threads, contexts and teams: each thread level, the stress program with a new
//! random sequence in every run and under ThreadSanitizer, and 10,000 contexts and teams.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::{Job, needs_library, program, scenario};

/// Settings in which all PEs share memory, none do, and some do.
const SETTINGS: [(&str, &str); 3] = [
    ("SHMEM_ONNODE", "on"),
    ("SHMEM_ONNODE", "off"),
    ("SHMEM_VIRTUAL_NODES", "2"),
];

fn every_thread_level() {
    for level in 0..4 {
        for (n, check) in [(1, "0"), (3, "0"), (3, "1")] {
            Job::new(scenario!("levels.c"))
                .n(n)
                .arg(level)
                .env("SHMEM_CHECK", check)
                .run()
                .assert_ok(n);
        }
    }
}

fn threads_without_private_contexts_need_no_number() {
    for check in ["0", "1"] {
        Job::new(scenario!("gettid.c"))
            .n(2)
            .env("SHMEM_CHECK", check)
            .run()
            .assert_ok(2);
    }
}

fn a_pe_with_threads_among_pes_without() {
    for n in [2, 3] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mixed-{n}"));
        // An earlier run may have left the file.
        let _ = std::fs::remove_file(&file);

        Job::new(scenario!("mixed_levels.c"))
            .n(n)
            .arg(file.display())
            .run()
            .assert_ok(n);
    }
}

fn the_stress_draws_anew() {
    let seed = testkit::seed();
    for (name, value) in SETTINGS {
        Job::new(program!("stress.c"))
            .n(4)
            .arg(seed)
            .env(name, value)
            .run()
            .assert_ok(4);
    }
}

fn contexts_and_teams_that_come_and_go_leave_nothing() {
    for (name, value) in SETTINGS {
        Job::new(scenario!("growth.c"))
            .n(2)
            .arg(1000)
            .env(name, value)
            .run()
            .assert_ok(2);
    }

    Job::new(scenario!("growth.c"))
        .n(4)
        .arg(10_000)
        .run()
        .assert_ok(4);
}

fn ten_thousand_contexts_and_teams_leave_nothing() {
    for n in [1, 2, 3, 4, 8, 12] {
        for (name, value) in SETTINGS {
            // One PE cannot be split into two nodes.
            if n == 1 && name == "SHMEM_VIRTUAL_NODES" {
                continue;
            }
            Job::new(scenario!("growth.c"))
                .n(n)
                .arg(10_000)
                .env(name, value)
                .timeout(Duration::from_secs(900))
                .run()
                .assert_ok(n);
        }
    }

    // every_transport.rs does this over libfabric, where fewer turns suffice.
    for n in [2, 4] {
        Job::new(scenario!("growth.c"))
            .n(n)
            .arg(10_000)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", "ucx")
            .env("UCX_TLS", "tcp,self")
            .timeout(Duration::from_secs(900))
            .run()
            .assert_ok(n);
    }
}

/// Ignores the test if the C compiler has no ThreadSanitizer.
fn needs_thread_sanitizer() {
    let probe = Command::new("sh")
        .args([
            "-c",
            "echo 'int main(void){return 0;}' | cc -fsanitize=thread -x c - -o /dev/null",
        ])
        .output()
        .expect("a shell");
    if !probe.status.success() {
        testkit::absent("the C compiler has no ThreadSanitizer");
    }

}

/// The program is instrumented, so races between its threads are found. The library is not; the
/// step `thread-sanitizer` of `cargo xtask test --full` also instruments it.
fn the_stress_under_thread_sanitizer() {
    needs_thread_sanitizer();

    let outcome = Job::new(program!("stress.c", "-fsanitize=thread")).n(3).run();
    outcome.assert_ok(3);
    assert!(!outcome.stderr.contains("ThreadSanitizer"), "{outcome}");
}

/// Threads that hand data on by calls of the library are ordered, and others are not.
fn thread_sanitizer_knows_how_threads_synchronize() {
    needs_thread_sanitizer();
    let program = scenario!("handed_on.c", "-fsanitize=thread", "-g");
    for how in ["set", "put", "signal", "add", "lock", "way_back"] {
        let outcome = Job::new(&program).n(2).arg(how).run();
        outcome.assert_ok(2);
        assert!(!outcome.stderr.contains("ThreadSanitizer"), "{outcome}");
    }

    let outcome = Job::new(&program).n(2).arg("nothing").run();
    assert_eq!(outcome.code(), 66, "{outcome}");
    let race = "WARNING: ThreadSanitizer: data race";
    assert!(outcome.stderr.contains(race), "{outcome}");
}

/// UCX's hooks of functions that map memory crash under ThreadSanitizer.
fn a_program_runs_over_ucx_under_thread_sanitizer() {
    needs_thread_sanitizer();
    needs_library("libucp.so.0");
    Job::new(scenario!("handed_on.c", "-fsanitize=thread", "-g"))
        .n(2)
        .arg("way_back")
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "ucx")
        .run()
        .assert_ok(2);
}

/// A variable that one thread sets in the environment is not lost while another thread opens
/// endpoints, for which UCX and libfabric read variables.
fn contexts_leave_the_environment_alone() {
    for (transport, library) in [
        ("tcp", None),
        ("ucx", Some("libucp.so.0")),
        ("ofi", Some("libfabric.so.1")),
    ] {
        if let Some(library) = library {
            needs_library(library);
        }
        Job::new(scenario!("set_by_a_thread.c"))
            .n(2)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", transport)
            .run()
            .assert_ok(2);
    }
}

testkit::module_tests! {
    every_thread_level,
    threads_without_private_contexts_need_no_number,
    contexts_leave_the_environment_alone,
    a_pe_with_threads_among_pes_without,
    the_stress_draws_anew,
    contexts_and_teams_that_come_and_go_leave_nothing,
    the_stress_under_thread_sanitizer,
    thread_sanitizer_knows_how_threads_synchronize,
    a_program_runs_over_ucx_under_thread_sanitizer,
    ; ignored "minutes; part of `cargo xtask test --full`" =>
    ten_thousand_contexts_and_teams_leave_nothing,
}
