//! Checks the ends of jobs: statuses, messages, and nothing left.

use crate::support::{TestJob, pids, state};
use rustix::process::Signal;
use testkit::eventually;

const PE_1: &str = "oshrun: PE 1 (pid PID, host HOST)";

#[test]
fn a_good_job_ends_with_0() {
    TestJob::steps(4, &["init", "barrier", "finalize"])
        .run()
        .expect(0, "");
}

#[test]
fn programs_without_init_end_with_the_first_failure() {
    assert_eq!(
        TestJob::new(&["-n", "2", "hostname"])
            .run()
            .expect(0, "")
            .stdout
            .lines()
            .count(),
        2
    );

    let steps = ["1?pid", "1?exit:7", "0?cat", "0?exit:5", "2?sleep:100"];
    let mut job = TestJob::steps(3, &steps).input_later().start();
    let first = pids(&mut job.stdout(), 1)[0];
    eventually("oshrun has waited for PE 1", || state(first) == 'X');

    job.end_input();
    let how = "exited with status 7 without calling shmem_init; 1 other PE failed, too";
    job.wait().expect(7, &format!("{PE_1} {how}\n"));

    let how = "exited with status 1 without calling shmem_init; 2 other PEs failed, too";
    let outcome = TestJob::new(&["-n", "3", "false"])
        .run()
        .expect_nothing_left();
    assert!(
        outcome.stderr.starts_with("oshrun: PE ") && outcome.stderr.ends_with(&format!("{how}\n"))
    );
    assert_eq!(
        (outcome.status, outcome.stderr.lines().count()),
        (1, 1),
        "{outcome:?}"
    );

    // Messages of oshrun itself do not count as an error that the program has printed.
    let outcome = TestJob::new(&["--report-bindings", "-n", "3", "false"])
        .run()
        .expect_nothing_left();
    assert!(outcome.stderr.ends_with(&format!("{how}\n")), "{outcome:?}");

    // A program that has printed an error needs no other one.
    TestJob::new(&["-n", "1", "sh", "-c", "echo why >&2; exit 3"])
        .run()
        .expect(3, "why\n");
}

#[test]
fn a_killed_pe_ends_the_job() {
    for (signal, name) in [(9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT")] {
        let kill = format!("1?kill:{signal}");
        for steps in [
            &["init", "barrier", &kill, "barrier"][..],
            &[&kill, "sleep:600000"],
            &["init", &kill, "sleep:600000"],
        ] {
            let outcome = TestJob::steps(3, steps).run();
            outcome.expect(128 + signal, &format!("{PE_1} was killed by {name}\n"));
        }
    }

    let alone = "oshrun: PE 0 (pid PID, host HOST) was killed by SIGSEGV\n";
    TestJob::steps(1, &["init", "kill:11"])
        .run()
        .expect(139, alone);
}

#[test]
fn an_exit_before_finalize_ends_the_job() {
    for (own, status) in [(3, 3), (0, 1)] {
        let exit = format!("1?exit:{own}");
        let outcome = TestJob::steps(4, &["init", "barrier", &exit, "barrier"]).run();
        outcome.expect(
            status,
            &format!("{PE_1} exited with status {own} before shmem_finalize\n"),
        );
    }

    TestJob::steps(1, &["init", "exit:3"]).run().expect(3, "");
}

#[test]
fn pes_that_all_exit_before_finalize_are_warned() {
    let warning = "oshrun: warning: no PE called shmem_finalize; call it before the program ends\n";
    for n_pes in [1, 4] {
        TestJob::steps(n_pes, &["init", "unfinalized"])
            .run()
            .expect(0, warning);
        TestJob::steps(n_pes, &["init", "unfinalized", "finalized"])
            .run()
            .expect(0, "");
    }
}

#[test]
fn a_crash_after_a_refusal_names_it() {
    let steps = [
        "init",
        "1?refused:8 bytes",
        "barrier",
        "1?kill:11",
        "barrier",
    ];
    let message = format!(
        "{PE_1} was killed by SIGSEGV; if it used a null pointer, that may be because it was refused 8 bytes\n"
    );
    TestJob::steps(3, &steps).run().expect(139, &message);

    let steps = [
        "init",
        "1?refused:8 bytes",
        "finalize",
        "1?kill:11",
        "sleep:300",
    ];
    TestJob::steps(2, &steps)
        .run()
        .expect(139, &format!("{PE_1} was killed by SIGSEGV\n"));

    TestJob::steps(2, &["init", "refused:8 bytes", "finalize"])
        .run()
        .expect(0, "");
}

#[test]
fn an_exit_without_init_ends_the_job_of_those_who_called_it() {
    let message =
        format!("{PE_1} exited with status 0 without calling shmem_init, which PE 0 has called\n");

    let before = TestJob::steps(2, &["1?exit:0", "sleep:300", "init", "barrier"]).run();
    before.expect(1, &message);

    let after = TestJob::steps(2, &["1?sleep:300", "1?exit:0", "init", "barrier"]).run();
    after.expect(1, &message);
}

#[test]
fn an_init_after_the_last_finalize_is_collective_too() {
    let again = format!(
        "{PE_1} exited with status 0 without calling shmem_init again, which PE 0 has called\n"
    );
    let outcome = TestJob::steps(
        2,
        &[
            "init",
            "finalize",
            "1?sleep:200",
            "1?exit:0",
            "resume",
            "barrier",
        ],
    )
    .run();
    outcome.expect(1, &again);

    let resumed = TestJob::steps(
        2,
        &[
            "init", "finalize", "resume", "barrier", "1?exit:4", "barrier",
        ],
    )
    .run();
    resumed.expect(
        4,
        &format!("{PE_1} exited with status 4 before shmem_finalize\n"),
    );
}

#[test]
fn a_failure_after_finalize_lets_the_others_finish() {
    let outcome = TestJob::steps(
        2,
        &[
            "init",
            "finalize",
            "1?exit:7",
            "sleep:700",
            "print:finished",
        ],
    )
    .run()
    .expect(7, "");
    assert_eq!(outcome.stdout, "finished\n");
}

#[test]
fn a_second_program_in_one_job_is_refused() {
    let script = format!("{0} init finalize; {0} init finalize", crate::support::pe());
    let message = "oshrun: PE 0 (pid PID, host HOST) started a second OpenSHMEM program in one job: give each program an \
                   oshrun of its own\n";
    TestJob::new(&["sh", "-c", &script])
        .run()
        .expect(1, message);
}

#[test]
fn an_abort_prints_the_first_message_once() {
    let outcome = TestJob::steps(
        4,
        &["init", "barrier", "2?abort:6:PE 2: no heap", "barrier"],
    )
    .run();
    outcome.expect(6, "PE 2: no heap\n");

    let outcome = TestJob::steps(8, &["init", "barrier", "abort:0:all of us"]).run();
    outcome.expect(1, "all 8 PEs: all of us\n");

    let outcome = TestJob::steps(
        2,
        &[
            "init",
            "1?abort_from_thread",
            "barrier",
            "1?barrier",
            "sleep:600000",
        ],
    )
    .run();
    outcome.expect(5, "PE 1: from a thread\n");
}

#[test]
fn what_a_pe_has_sent_is_handled_before_its_exit() {
    let go = std::env::temp_dir().join(format!("oshrun-ends-{}", std::process::id()));
    let wait = format!("1?run:until [ -e {} ]; do sleep 0.01; done", go.display());

    for (last, status, stderr) in [
        (
            &["1?abort_from_thread", "1?join"][..],
            5,
            "PE 1: from a thread\n",
        ),
        (&["1?finalized"], 9, ""),
    ] {
        // PE 0 finalizes when its input ends.
        let last = [last, &["1?exit:9", "0?cat", "0?finalized"]].concat();
        let steps = [&["init", "barrier", "1?pid", &wait], &last[..]].concat();

        let mut job = TestJob::steps(2, &steps).input_later().start();
        let first = pids(&mut job.stdout(), 1)[0];

        // PE 1 sends and exits while oshrun is stopped, so that oshrun finds both at once.
        job.signal(Signal::STOP);
        eventually("oshrun has stopped", || {
            state(job.pid().as_raw_nonzero().get() as u32) == 'T'
        });
        std::fs::write(&go, "").expect("a file");

        eventually("PE 1 has ended", || ['Z', 'X'].contains(&state(first)));
        std::fs::remove_file(&go).expect("the file");

        job.signal(Signal::CONT);
        job.end_input();
        job.wait().expect(status, stderr);
    }
}

#[test]
fn a_global_exit_is_silent() {
    for status in [0, 3] {
        let exit = format!("1?global_exit:{status}");
        TestJob::steps(4, &["init", "barrier", &exit, "barrier"])
            .run()
            .expect(status, "");
        TestJob::steps(1, &["init", &format!("global_exit:{status}")])
            .run()
            .expect(status, "");
    }

    TestJob::steps(8, &["init", "global_exit:9"])
        .run()
        .expect(9, "");
}

#[test]
fn pes_that_ignore_sigterm_are_killed() {
    let outcome = TestJob::steps_after(
        3,
        "trap '' TERM",
        &["init", "barrier", "1?exit:2", "sleep:600000"],
    )
    .run();
    outcome.expect(
        2,
        &format!("{PE_1} exited with status 2 before shmem_finalize\n"),
    );
}

#[test]
fn stopped_pes_are_ended_too() {
    let outcome = TestJob::steps(
        2,
        &["init", "barrier", "1?sleep:300", "1?exit:2", "kill:19"],
    )
    .run();
    outcome.expect(
        2,
        &format!("{PE_1} exited with status 2 before shmem_finalize\n"),
    );
}

#[test]
fn what_a_pe_leaves_in_its_group_is_killed() {
    let leave = "background:trap '' TERM HUP; sleep 600 & sleep 600";
    TestJob::steps(2, &["init", leave, "finalize"])
        .run()
        .expect(0, "");

    let outcome = TestJob::steps(2, &["init", leave, "barrier", "1?kill:9", "barrier"]).run();
    outcome.expect(137, &format!("{PE_1} was killed by SIGKILL\n"));
}

#[test]
fn a_wrapper_passes_the_failure_on() {
    let script = format!(
        "{} init barrier '1?kill:9' barrier; exit $?",
        crate::support::pe()
    );
    let outcome = TestJob::new(&["-n", "2", "sh", "-c", &script]).run();

    assert!(
        outcome
            .stderr
            .contains("exited with status 137 before shmem_finalize\n"),
        "{outcome:?}"
    );
    assert_eq!(outcome.status, 137);
    outcome.expect_nothing_left();
}

#[test]
fn a_time_limit_ends_the_job() {
    // If PEs take their time to start, a short limit is over before they print.
    let has_printed = |limit: &&str| {
        let words = [
            "-n",
            "2",
            "--timeout",
            limit,
            &crate::support::pe(),
            "print:before",
            "sleep:600000",
        ];

        let outcome = TestJob::new(&words).run().expect_nothing_left();
        let sentence = format!("oshrun: the job did not end within {limit} seconds (--timeout)\n");

        assert!(outcome.stderr.starts_with(&sentence), "{outcome:?}");
        assert_eq!(outcome.status, 124, "{outcome:?}");
        outcome.stdout == "before\nbefore\n"
    };
    assert!(
        ["0.5", "4", "20"].iter().any(has_printed),
        "what was printed is lost"
    );

    TestJob::new(&[
        "-n",
        "2",
        "--timeout",
        "60",
        &crate::support::pe(),
        "init",
        "finalize",
    ])
    .run()
    .expect(0, "");
}
