//! If a PE fails, the whole job ends with one message and with the status of that PE, or another
//! one than 0 if that is 0, and no process is left.

use testkit::{Job, Outcome, Running, every_size, kill, scenario};

/// Runs a job of `n` PEs whose PE 1 ends as `how` says.
fn death(how: &str, n: usize) -> Outcome {
    let outcome = Job::new(scenario!("death.c")).n(n).arg(how).run();
    let has_ended = outcome.stdout.contains("a barrier ended");
    assert!(!has_ended, "a barrier ended without PE 1\n{outcome}");
    outcome
}

#[test]
fn a_pe_that_is_killed_by_a_signal_ends_the_job() {
    struct Death {
        how: &'static str,
        n: usize,
        signal: &'static str,
        /// Where the PE says that it was. A PE that is killed cannot say it.
        place: Option<&'static str>,
        status: i32,
    }
    let deaths = [
        Death {
            how: "segv",
            n: 2,
            signal: "SIGSEGV",
            place: Some("in crash ("),
            status: 139,
        },
        Death {
            how: "overflow",
            n: 2,
            signal: "SIGSEGV",
            place: Some("in overflow ("),
            status: 139,
        },
        Death {
            how: "abort",
            n: 4,
            signal: "SIGABRT",
            place: Some("in abort, called by end ("),
            status: 134,
        },
        Death {
            how: "kill",
            n: 12,
            signal: "SIGKILL",
            place: None,
            status: 137,
        },
        Death {
            how: "traced",
            n: 2,
            signal: "SIGUSR2",
            place: None,
            status: 140,
        },
    ];

    for Death {
        how,
        n,
        signal,
        place,
        status,
    } in deaths
    {
        let sizes = if every_size() {
            vec![2, 4, 12]
        } else {
            vec![n]
        };
        for n in sizes {
            let outcome = death(how, n);

            let words = ["PE 1", "pid ", "killed by", signal];
            if let Some(place) = place {
                outcome.assert_crashes(&format!("PE 1: {signal} {place}"), &words);
                outcome.assert_crashes("death.c:", &words);
            } else {
                outcome.assert_fails(&words);
            }
            assert_eq!(outcome.code(), status, "{outcome}");
        }
    }
}

/// Runs a program that crashes as `how` says, compiled so that no call is inlined.
fn crash(how: &str) -> Outcome {
    Job::new(scenario!("crashes.c", "-O0")).n(2).arg(how).run()
}

/// `..` separates the words of a message that are not beside each other.
#[test]
fn a_crash_names_what_was_touched_and_who_called() {
    let in_store = "PE 1: SIGSEGV in store (";
    let overflow = "its stack overflowed; allocate large arrays or make them static, or raise the limit (ulimit -s";
    for (how, place, words) in [
        (
            "null_call",
            "PE 1: SIGSEGV in call_null (",
            "called by crash (..: it called a null function pointer; to",
        ),
        (
            "threads",
            in_store,
            "called by store_in_thread (..: it accessed address 0x8 (a null pointer); to",
        ),
        (
            "small_stack",
            in_store,
            "called by store_with_small_stack (..: it accessed address 0x8",
        ),
        (
            "pointer",
            in_store,
            "called by crash (..address 0x123456789000, where no memory is; to find the cause, run oshrun --gdb",
        ),
        (
            "text",
            in_store,
            "called by crash (..which is protected; to find",
        ),
        (
            "deep",
            "PE 1: SIGSEGV in sum_to (",
            &format!("called by crash (..: {overflow}"),
        ),
        (
            "overflow_in_thread",
            "PE 1: SIGSEGV in sum_to (",
            "the stack of a thread overflowed; ..OMP_STACKSIZE",
        ),
        (
            "null_source",
            "PE 1: SIGSEGV in shmem_long_put, called by crash (",
            "set SHMEM_CHECK=1, or",
        ),
        (
            "bad_source",
            "PE 1: SIGSEGV in shmem_long_put, called by crash (",
            "crashes.c:..set SHMEM_CHECK=1, or",
        ),
        (
            "bad_dest",
            "PE 1: SIGSEGV in shmem_long_get, called by crash (",
            "crashes.c:..set SHMEM_CHECK=1, or",
        ),
        (
            "bad_strided",
            "PE 1: SIGSEGV in shmem_long_iput, called by crash (",
            "crashes.c:..set SHMEM_CHECK=1, or",
        ),
        (
            "bad_fetch",
            "PE 1: SIGSEGV in shmem_long_atomic_fetch_nbi, called by crash (",
            "crashes.c:..set SHMEM_CHECK=1, or",
        ),
        (
            "bad_word",
            "PE 1: SIGSEGV in shmem_long_wait_until, called by crash (",
            "crashes.c:..set SHMEM_CHECK=1, or",
        ),
        (
            "early",
            "SIGSEGV in store (",
            "called by main (..address 0x8",
        ),
        ("large_array", "SIGSEGV in large_array (", overflow),
    ] {
        let outcome = crash(how);
        outcome.assert_crashes(place, &["was killed by SIGSEGV"]);

        let message = outcome.stderr.lines().next().unwrap_or_default();
        for part in words.split("..") {
            assert!(message.contains(part), "{how}: {part}\n{outcome}");
        }

        // The checks find only wrong arguments of the library's routines.
        let names_checks = message.contains("SHMEM_CHECK");
        assert_eq!(names_checks, place.contains("in shmem_"), "{outcome}");
    }
}

/// The packages of Rust in the library are not the program.
#[test]
fn a_signal_in_a_wait_over_a_network_names_the_routine() {
    let outcome = Job::new(scenario!("crashes.c", "-O0"))
        .n(2)
        .arg("abort_in_wait")
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp")
        .run();

    outcome.assert_crashes(
        "PE 1: SIGABRT in shmem_long_wait_until, called by abort_in_wait (",
        &["was killed by SIGABRT"],
    );
}

#[test]
fn a_damaged_heap_has_a_place() {
    for how in ["heap", "free_twice", "free_symmetric"] {
        let outcome = crash(how);
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        let [_of_allocator, of_pe, of_oshrun] = lines[..] else {
            panic!("not three lines\n{outcome}");
        };

        let names_call = of_pe.starts_with("PE 1: SIGABRT in free, called by ");
        assert!(names_call, "{outcome}");
        assert!(of_pe.contains("crashes.c:"), "{outcome}");
        let has_remedy = of_pe.contains("free memory of shmem_malloc by shmem_free")
            && of_pe.ends_with("compile with -fsanitize=address");
        assert!(has_remedy, "{outcome}");
        assert!(of_oshrun.ends_with("was killed by SIGABRT"), "{outcome}");
    }
}

/// The allocator follows what a store beyond a block has written.
#[test]
fn a_crash_in_a_damaged_symmetric_heap_names_the_check_that_finds_the_store() {
    let outcome = crash("symmetric_heap");
    outcome.assert_crashes(
        "the symmetric heap is damaged, which shmem_malloc has found; a store before this went beyond",
        &["was killed by SIGSEGV"],
    );
    outcome.assert_crashes("SHMEM_CHECK=1", &[]);
}

/// The inline overloads of the header are not reported as functions of the program.
#[test]
fn messages_name_the_lines_and_functions_of_a_program_in_cxx() {
    for flag in ["-O0", "-O2"] {
        let job = Job::new(scenario!("overloads.cpp", flag)).n(2);

        let outcome = job.clone().arg("wrong_pe").run();
        outcome.assert_fails(&["shmem_long_put: argument pe is 77", "overloads.cpp:13)"]);

        let outcome = job.arg("null_source").run();
        outcome.assert_crashes(
            "SIGSEGV in shmem_long_put, called by ns::Sender<long>::send(long const*, int) (",
            &["was killed by SIGSEGV"],
        );
        let place = "overloads.cpp:13): it accessed address 0x0";
        assert!(outcome.stderr.contains(place), "{outcome}");
    }
}

#[test]
fn a_pe_that_exits_without_finalize_ends_the_job() {
    for how in ["exit3", "_exit3"] {
        let outcome = death(how, 4);
        outcome.assert_fails(&["PE 1", "exited with status 3", "shmem_finalize"]);
        assert_eq!(outcome.code(), 3, "{outcome}");
    }

    for how in ["exit0", "_exit0"] {
        death(how, 4).assert_fails(&["PE 1", "exited with status 0", "shmem_finalize"]);
    }
}

/// The library finalizes such a program at its exit, so a status other than 0 may be a failure or a
/// result.
#[test]
fn a_pe_that_fails_after_start_pes_ends_the_job() {
    for (onnode, ways) in [
        ("on", &["collective", "computing", "again"][..]),
        ("off", &["collective", "again"]),
    ] {
        let mut jobs = Vec::new();
        for how in ways {
            let job = Job::new(scenario!("start_pes_exits.c")).n(3).arg(how);
            jobs.push(job.env("SHMEM_ONNODE", onnode));
        }

        // PE 1 waits for the others before it fails.
        for outcome in Job::run_sleepers(jobs) {
            outcome.assert_fails(&[
                "PE 1: exited with status 3 while other PEs go on",
                "finalize the library before",
            ]);
            assert_eq!(outcome.code(), 3, "{outcome}");
            assert!(!outcome.stdout.contains("a barrier ended"), "{outcome}");
        }
    }
}

/// If all PEs exit, their statuses are results.
#[test]
fn pes_that_all_exit_after_start_pes_are_finalized_whatever_their_status_is() {
    for onnode in ["on", "off"] {
        for how in ["all_fail", "late", "finalize"] {
            let outcome = Job::new(scenario!("start_pes_exits.c"))
                .n(3)
                .arg(how)
                .env("SHMEM_ONNODE", onnode)
                // So high that no PE stops waiting for the others on a busy machine.
                .env("SHMEM_HOST_LIMIT", "200")
                .run();
            assert_eq!(outcome.code(), 3, "{outcome}");
            assert_eq!(outcome.stderr, "", "{outcome}");
        }
    }
}

const UNFINALIZED: &str =
    "oshrun: warning: no PE called shmem_finalize; call it before the program ends";

/// If all PEs exit without finalize, the job waits for all of them, so no result is lost.
#[test]
fn pes_that_all_exit_without_finalize_are_warned() {
    for (how, n) in [
        ("all_exit0", 1),
        ("all_exit0", 2),
        ("all_exit0", 12),
        ("late_exit0", 3),
    ] {
        for onnode in ["on", "off"] {
            let job = Job::new(scenario!("death.c")).n(n).arg(how);
            let outcome = job.env("SHMEM_ONNODE", onnode).run();
            assert_eq!(outcome.code(), 0, "{outcome}");
            assert_eq!(outcome.one_message(), UNFINALIZED, "{outcome}");

            let results = outcome
                .lines()
                .filter(|line| line.starts_with("result of PE "));
            assert_eq!(results.count(), n, "{outcome}");
        }
    }
}

#[test]
fn pes_that_finalize_less_often_than_they_initialize_are_told_so() {
    let outcome = Job::new(scenario!("death.c")).n(2).arg("init_twice").run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    let warning = "oshrun: warning: shmem_init was called 2 times, but shmem_finalize once; call \
                   shmem_finalize once for each shmem_init";
    assert_eq!(outcome.one_message(), warning, "{outcome}");
}

#[test]
fn an_exit_handler_may_finalize() {
    for onnode in ["on", "off"] {
        let job = Job::new(scenario!("death.c"))
            .n(4)
            .env("SHMEM_ONNODE", onnode);

        let outcome = job.clone().arg("handler_finalizes").run();
        assert_eq!(outcome.code(), 0, "{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");

        // The other PEs may have ended before, so there may be a message.
        let outcome = job.arg("handler_finalizes_first").run();
        assert_eq!(outcome.code(), 0, "{outcome}");
    }
}

/// A program that does not check the result of an allocation may crash later, so the message on its
/// end names the allocation that failed.
#[test]
fn the_message_names_the_memory_that_a_failed_pe_was_refused() {
    const REFUSED: &str = "refused the memory of shmem_malloc (1099511627776 bytes): 1048576 of the 67108864 bytes of \
                           SHMEM_SYMMETRIC_SIZE are in use; make it larger, or check for null";

    for (how, words) in [
        (
            "exit4",
            "exited with status 4 before shmem_finalize; before that it was ",
        ),
        ("put", "shmem_int_p: argument dest: 0x8 is not symmetric"),
    ] {
        refused(how).assert_fails(&["PE", words, REFUSED]);
    }

    let killed = "was killed by SIGSEGV; if it used a null pointer, that may be because it was ";
    refused("write").assert_crashes("SIGSEGV in ", &["PE ", killed, REFUSED]);
}

/// Runs a job of `death.c` that allocates more memory than there is.
fn refused(how: &str) -> Outcome {
    Job::new(scenario!("death.c"))
        .n(2)
        .arg(format!("refused_{how}"))
        .env("SHMEM_SYMMETRIC_SIZE", "64m")
        .run()
}

#[test]
fn a_refusal_that_the_program_has_noticed_is_not_named() {
    for (how, status) in [("noticed0", 0), ("noticed5", 5)] {
        let outcome = refused(how);
        assert_eq!(outcome.code(), status, "{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");
    }

    // This program has checked the result, so its later crash is not attributed to it.
    let outcome = refused("crash");
    outcome.assert_crashes("SIGSEGV in crash (", &["was killed by SIGSEGV"]);
    let end = "was killed by SIGSEGV\n";
    assert!(outcome.stderr.ends_with(end), "{outcome}");
}

/// Without oshrun, nothing can be reported later.
#[test]
fn a_refusal_is_named_at_once_without_a_launcher() {
    let outcome = Job::direct(scenario!("death.c"))
        .arg("refused_noticed0")
        .env("SHMEM_SYMMETRIC_SIZE", "64m")
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");

    let warning = "warning: PE 0 was refused the memory of shmem_malloc";
    assert!(outcome.one_message().starts_with(warning), "{outcome}");
}

/// Calls in which PE 0 of `leaves_early.c` waits for PEs in finalize, and words of the message.
const LEFT: [(&str, &str); 12] = [
    ("barrier", "shmem_barrier_all; PEs 1-3 in shmem_finalize"),
    ("team", "PE 0 in shmem_team_sync; PE 1 in shmem_finalize"),
    (
        "broadcast",
        "PE 0 in shmem_long_broadcast; PEs 1-3 in shmem_finalize",
    ),
    (
        "alltoall",
        "PE 0 in shmem_long_alltoall; PEs 1-3 in shmem_finalize",
    ),
    ("malloc", "PE 0 in shmem_malloc; PEs 1-3 in shmem_finalize"),
    ("set", "PE 0 in shmem_barrier; PEs 1-3 in shmem_finalize"),
    (
        "request",
        "PE 0 in shmemx_long_sum_reduce_nb; PEs 1-3 in shmem_finalize",
    ),
    (
        "split",
        "shmem_team_split_strided: PE 1 is in shmem_finalize",
    ),
    (
        "lock",
        "shmem_set_lock: PE 1 holds the lock and is in shmem_finalize",
    ),
    (
        "nested",
        "PE 0 in shmem_barrier_all; PEs 1-3 in shmem_finalize",
    ),
    (
        "again",
        "PE 0 in shmem_barrier_all; PEs 1-3 in shmem_finalize",
    ),
    (
        "start_pes",
        "PE 0 in shmem_barrier_all; PEs 1-3 in shmem_finalize",
    ),
];

/// Runs `leaves_early.c` with four PEs on a node, over a network, and on two nodes.
fn leaving(how: &str) -> Vec<Outcome> {
    let nodes = [
        ("SHMEM_ONNODE", "on"),
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_VIRTUAL_NODES", "1+3"),
    ];
    Job::run_sleepers(nodes.map(|(name, value)| {
        Job::new(scenario!("leaves_early.c"))
            .n(4)
            .arg(how)
            .env("SHMEM_TRANSPORT", "tcp")
            .env(name, value)
    }))
}

#[test]
fn a_pe_that_waits_for_one_in_finalize_ends_the_job() {
    let sample = ["barrier", "alltoall", "request", "split", "nested"];
    for (how, words) in LEFT {
        if !every_size() && !sample.contains(&how) {
            continue;
        }

        for outcome in leaving(how) {
            assert_left(&outcome, words);
            assert_eq!(outcome.stdout, "n_pes 4\n", "{outcome}");
        }
    }

    // Only on a node: between nodes, PEs do not read each other's status for such a wait.
    let outcome = Job::new(scenario!("leaves_early.c")).n(4).arg("word").run();
    let words = "shmem_long_wait_until: all other PEs are in shmem_finalize";
    assert_left(&outcome, words);
}

/// Checks that the job was ended with this message while PE 0 waited.
#[track_caller]
fn assert_left(outcome: &Outcome, words: &str) {
    assert!(outcome.stderr.contains(words), "{words}\n{outcome}");
    assert_eq!(outcome.code(), 1, "{outcome}");
    assert!(!outcome.stdout.contains("the wait ended"), "{outcome}");
}

/// Finalize waits for a PE that computes, however long that takes, and also if a PE is stopped in a
/// finalize from which others have returned.
#[test]
fn a_pe_in_finalize_waits_for_those_that_can_go_on() {
    for how in ["computes", "left", "signaled", "stopped"] {
        for outcome in leaving(how) {
            outcome.assert_ok(4);
            assert_eq!(outcome.stderr, "", "{how}\n{outcome}");
        }
    }
}

#[test]
fn a_pe_that_never_initializes_ends_the_job() {
    death("never_init", 3).assert_fails(&["PE 1", "shmem_init"]);
}

#[test]
fn the_status_of_a_pe_after_finalize_is_the_jobs() {
    assert_eq!(death("finalize5", 3).code(), 5);
    assert_eq!(death("finalize0", 3).code(), 0);
}

/// Over a network, a PE waits in its main function and in an exit handler for a PE that is stopped
/// for a while.
#[test]
fn an_exit_handler_waits_for_the_network_like_the_program_before() {
    Job::new(scenario!("waits_at_exit.c"))
        .n(2)
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp")
        .run()
        .assert_ok(2);
}

/// Point 78: the program's output is not lost, and exit handlers do not run.
#[test]
fn global_exit_ends_the_job_with_its_status() {
    let outcome = death("global_exit0", 4);
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");

    // The low 8 bits are 0, which would mean success.
    assert_eq!(death("global_exit256", 3).code(), 255);
    assert_eq!(death("global_exit259", 2).code(), 3);

    for n in [2, 3, 8] {
        let outcome = death("global_exit7", n);
        assert_eq!(outcome.code(), 7, "{outcome}");

        let is_printed = outcome.stdout.contains("last words");
        assert!(is_printed, "what was printed is lost\n{outcome}");
        let has_handler_run = outcome.stdout.contains("exit handler");
        assert!(!has_handler_run, "the manual says so\n{outcome}");
        assert!(outcome.stderr.lines().count() <= 1, "{outcome}");
    }
}

/// A job of three PEs that does not end by itself.
struct Lingering {
    running: Running,
    /// The process numbers of the PEs, in any order.
    pids: Vec<i32>,
}

impl Lingering {
    fn start(job: Job) -> Lingering {
        let mut running = job.n(3).arg("forever").start();
        let pids = running.wait_for(|lines| {
            let pids: Vec<i32> = lines.iter().filter_map(|line| pid_of(line)).collect();
            if pids.len() == 3 { Some(pids) } else { None }
        });
        Lingering { running, pids }
    }
}

/// Returns the process number in a line of `soak.c`, such as `pe 1 pid 4711`.
fn pid_of(line: &str) -> Option<i32> {
    let (_, pid) = line.strip_prefix("pe ")?.split_once(" pid ")?;
    pid.parse().ok()
}

/// Returns a job in which a shell is the parent of each PE.
fn behind_a_shell() -> Job {
    // Without `exit`, the shell would become the program instead of waiting for it.
    let script = format!("{} \"$@\"; exit $?", scenario!("soak.c").display());
    Job::new("/bin/sh").args(["-c", &script, "sh"])
}

#[test]
fn nothing_outlives_oshrun() {
    let Lingering { running, .. } = Lingering::start(Job::new(scenario!("soak.c")));

    kill(running.pid());
    assert_eq!(running.finish().code(), 137);
}

#[test]
fn nothing_outlives_oshrun_with_a_shell_between() {
    let Lingering { running, pids } = Lingering::start(behind_a_shell());
    let n_processes = running.processes().len();
    assert!(n_processes > pids.len() + 3, "no shell is between");

    kill(running.pid());
    assert_eq!(running.finish().code(), 137);
}

#[test]
fn a_pe_behind_a_shell_is_missed_too() {
    let Lingering { running, pids } = Lingering::start(behind_a_shell());

    kill(pids[1]);
    assert_ne!(running.finish().code(), 0);
}

#[test]
fn a_signal_to_oshrun_ends_the_job() {
    for signal in ["TERM", "INT", "HUP"] {
        let Lingering { running, .. } = Lingering::start(Job::new(scenario!("soak.c")));

        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &running.pid().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert_ne!(running.finish().code(), 0);
    }
}
