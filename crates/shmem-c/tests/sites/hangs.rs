//! oshrun's explanations of jobs that hang name the PEs, the call and the cause, on a node, over a
//! network and with virtual nodes. A job that only takes long is not said to hang.

use std::cell::Cell;
use std::fs::{File, create_dir_all, remove_file, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::{Job, Running, absent, every_size, needs_library, scenario};

/// A way of a program to hang or to take long, which is its argument, and the words that the
/// explanation must contain. `{rest}` stands for the PEs other than 1, `{last}` for the last PE.
type Way<'a> = (&'a str, &'a [&'a str]);

/// Ways to hang.
const HANGS: &[Way<'_>] = &[
    (
        "mismatch",
        &[
            "Mismatched collectives on SHMEM_TEAM_WORLD: as the 4th one, PEs {rest} have called \
             shmem_barrier_all",
            "and PE 1 has called shmem_long_broadcast",
            "They have waited",
        ],
    ),
    (
        "split",
        &[
            "s for PE 1 in shmem_barrier_all, the 4th collective on SHMEM_TEAM_WORLD.",
            "s for PE 0 in shmem_team_split_strided, for a message from PE 0.",
        ],
    ),
    (
        "word",
        &[
            "Deadlock: PE 1 has waited",
            "in shmem_long_wait_until on flag[2] >= 8, which is 7.",
            "No PE is left to write this word: all others wait.",
            "PEs {rest} wait for PE 1 in shmem_barrier_all, the 4th collective on SHMEM_TEAM_WORLD, for ",
        ],
    ),
    (
        "words",
        &[
            "Deadlock: PE 1 has waited",
            "in shmem_long_wait_until_all on all of",
            "words[1] == 1, which is 0",
        ],
    ),
    (
        "signal",
        &[
            "Deadlock: PE 1 has waited",
            "in shmem_signal_wait_until on sig == 5, which is 0.",
        ],
    ),
    (
        "computes",
        &[
            "PE 1 computes (",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "polls_test",
        &[
            "PE 1 calls shmem_long_test again and again (",
            "hangs.c:",
            "on flag[2], which another PE must change.",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "polls_any",
        &[
            "PE 1 calls shmem_long_test_any again and again",
            "on words[1], which another PE must change.",
        ],
    ),
    (
        "polls_get",
        &[
            "PE 1 calls shmem_long_g again and again",
            "on flag[2] of PE 0, which that PE or another one must change.",
        ],
    ),
    (
        "polls_fetch",
        &[
            "PE 1 calls shmem_long_atomic_fetch again and again",
            "on flag[2] of PE 0, which that PE or another one must change.",
        ],
    ),
    (
        "polls_signal",
        &[
            "PE 1 calls shmem_signal_fetch again and again",
            "on sig, which another PE must change.",
        ],
    ),
    (
        "no_main_thread",
        &[
            "PE 1 sleeps outside the library; its main thread has ended (pthread_exit).",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "vfork",
        &[
            "PE 1 waits for a child of vfork, until it calls exec or _exit.",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "exec",
        &[
            "PE 1 has called exec and runs sleep, which is not a part of the job.",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "exit_handler",
        &["PE 1 has finalized, but not exited: it sleeps outside the library."],
    ),
    (
        "polls_lock",
        &[
            "PE 1 calls shmem_test_lock again and again",
            "on locks[0], a lock that PE 0 holds.",
        ],
    ),
    (
        "late",
        &[
            "PE 1 computes (",
            "PEs {rest} wait for PE 1 in shmem_finalize",
        ],
    ),
    (
        "holder",
        &[
            "PE 1 computes (",
            "PEs {rest} wait for PE 1 in shmem_set_lock",
        ],
    ),
    (
        "request",
        &[
            "PE 1 computes (",
            "PEs {rest} wait for PE 1 in shmemx_long_sum_reduce_nb, the 4th collective on SHMEM_TEAM_WORLD, for ",
        ],
    ),
    (
        "sleeps",
        &[
            "PE 1 sleeps outside the library.",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "stopped",
        &[
            "PE 1 is stopped by a signal",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "init",
        &[
            "PE 1 has not called shmem_init.",
            "PEs {rest} wait for PE 1 in shmem_init.",
        ],
    ),
    (
        "locks",
        &[
            "s for PE 1 in shmem_set_lock on locks[1], which PE 1 holds.",
            "s for PE 0 in shmem_set_lock on locks[0], which PE 0 holds.",
        ],
    ),
    (
        "own_lock",
        &[
            "Deadlock: PE 1 has waited",
            "s for itself in shmem_set_lock on locks[0], which PE 1 holds.",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "three_locks",
        &[
            "Deadlock:",
            "for PE 1 in shmem_set_lock",
            "for PE 2 in shmem_set_lock",
            "for PE 0 in shmem_set_lock",
        ],
    ),
    (
        "lock_and_barrier",
        &[
            "Deadlock:",
            "s for PE 1 in shmem_set_lock on locks[0], which PE 1 holds.",
            "in shmem_barrier_all",
        ],
    ),
    (
        "tokens",
        &[
            "Deadlock: PEs 0-{last} have waited",
            "on token == 1, which is 0.",
        ],
    ),
    (
        "teams",
        &[
            "Deadlock of collectives on different teams:",
            "s for PE 1 in shmem_team_sync",
            "s for PE 0 in",
        ],
    ),
    (
        "even",
        &[
            "Deadlock: PE 2 has waited",
            "in shmem_long_wait_until on token == 1, which is 0.",
            "for PE 2 in shmem_long_sum_reduce, the 1st collective on the team of",
        ],
    ),
];

/// Waits for words, all but one of which PE 2 wrote last, explained where PEs record their writes.
const WRITTEN: &[Way<'_>] = &[
    (
        "writer",
        &[
            "flag[2] >= 8, which is 7.",
            "PE 2 wrote it last, ",
            " ago, in shmem_long_put.",
        ],
    ),
    (
        "signaler",
        &[
            "sig == 5, which is 4.",
            "PE 2 wrote it last, ",
            " ago, in shmem_long_put_signal.",
        ],
    ),
    (
        "adder",
        &[
            "on byte 0 of the 32 bytes allocated at tests/scenarios/hangs.c:",
            " in main == 8, which is 3.",
            "PE 2 wrote it last, ",
            " ago, in shmem_long_atomic_add.",
        ],
    ),
    (
        "registered",
        &[
            "on byte 8 of the 4096 bytes registered at tests/scenarios/hangs.c:",
            " in of_all == 8, which is 3.",
            "PE 2 wrote it last, ",
            " ago, in shmem_long_atomic_add.",
        ],
    ),
    (
        "word",
        &[
            "hangs.c:",
            " in of_pe_1) on flag[2] >= 8",
            "No PE has written it in its last 32 writes.",
        ],
    ),
];

/// Waits for a word, explained with the operations in flight over a network that reports their
/// completion.
const IN_FLIGHT: &[Way<'_>] = &[
    (
        "word",
        &["flag[2] >= 8, which is 7.", "Nothing in flight targets it."],
    ),
    (
        "in_flight",
        &[
            "flag[2] >= 8, which is 7.",
            "PE 0 has ",
            " in flight, ",
            "to PE 3.",
        ],
    ),
    (
        "paused",
        &["flag[2] >= 8, which is 7.", "Nothing in flight targets it."],
    ),
];

/// Ways in which some or all PEs take long, but do not hang.
const HEALTHY: &[Way<'_>] = &[
    (
        "computes",
        &[
            "PE 1 computes",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "sleeps",
        &[
            "PE 1 sleeps outside the library",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "reads",
        &[
            "PE 1 sleeps outside the library",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    (
        "traced",
        &[
            "PE 1 is stopped by a debugger",
            "PEs {rest} wait for PE 1 in shmem_barrier_all",
        ],
    ),
    ("writes", &["PEs {rest} wait for PE 1 in shmem_barrier_all"]),
    ("polls", &["PEs 2-3", "in shmem_barrier_all"]),
    (
        "lock",
        &[
            "PE 1 computes",
            "PEs {rest} wait for PE 1 in shmem_set_lock",
        ],
    ),
    (
        "thread",
        &["A thread of PE 1 that sleeps outside the library"],
    ),
    ("pipeline", &["PE 0 computes", "PE 0 can still write"]),
    // On a busy machine some PEs may always be in a collective, for a moment.
    ("rounds", &[" compute ("]),
    ("nbi", &[" compute ("]),
];

/// Words that an explanation of a healthy job must not contain.
const VERDICTS: &[&str] = &["Deadlock", "Mismatch", "No PE is left", " ended"];

/// The time until the first request for an explanation. The time between requests begins at twice
/// this and doubles, since gdb stops PEs that are not in the library.
const PAUSE: Duration = Duration::from_millis(1500);

type NetworkVariables = [(&'static str, &'static str)];

const CHECKED: (&str, &str) = ("SHMEM_CHECK", "1");
const OFF: (&str, &str) = ("SHMEM_ONNODE", "off");
const TWO_NODES: (&str, &str) = ("SHMEM_VIRTUAL_NODES", "2");
const TCP: (&str, &str) = ("SHMEM_TRANSPORT", "tcp");
const UCX: (&str, &str) = ("SHMEM_TRANSPORT", "ucx");
const OFI: (&str, &str) = ("SHMEM_TRANSPORT", "ofi");

/// Returns a job that prints explanations on its standard output.
fn explaining(program: PathBuf, n: usize) -> Job {
    Job::new(program)
        .n(n)
        .wrap(["sh", "-c", "exec \"$@\" 2>&1", "sh"])
}

fn start(program: PathBuf, words: &[&str], n: usize, network: &NetworkVariables) -> Running {
    explaining(program, n)
        .args(words)
        .envs(network)
        .start_sleeper()
}

/// Requests explanations until the output has all `words`: at first, PEs may not hang yet, or a
/// busy machine may be too slow. Returns the output.
#[track_caller]
fn explained(job: &mut Running, words: &[&str], n: usize) -> String {
    let last = (n - 1).to_string();
    let rest = if n == 4 {
        "0 and 2-3".to_owned()
    } else {
        format!("0 and 2-{last}")
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("{rest}", &rest).replace("{last}", &last))
        .collect();

    let oshrun = Pid::from_raw(job.pid()).expect("a process");
    let next_request = Cell::new(Instant::now() + PAUSE);
    let pause = Cell::new(PAUSE);

    job.wait_for(|lines| {
        if Instant::now() >= next_request.get() {
            kill_process(oshrun, Signal::QUIT).expect("own");
            pause.set(2 * pause.get());
            next_request.set(Instant::now() + pause.get());
        }

        let text = unwrapped(lines);
        // On a busy machine, waits may last so long that their places are added.
        let short = without_places(&text);
        for word in &words {
            if !text.contains(word) && !short.contains(word) {
                return None;
            }
        }
        Some(text)
    })
}

/// Ends a job that hangs, and checks its exit status.
#[track_caller]
fn terminate(job: Running) {
    kill_process(Pid::from_raw(job.pid()).expect("a process"), Signal::TERM).expect("own");
    let outcome = job.finish();
    assert_eq!(outcome.code(), 143, "{outcome}");
}

/// Joins the lines that oshrun has printed.
fn unwrapped(lines: &[&str]) -> String {
    let mut sentences = Vec::new();
    for line in lines {
        sentences.push(line.trim_start_matches("oshrun:").trim());
    }
    sentences.join(" ")
}

/// Returns the text without the places of calls, such as ` (hangs.c:47 in of_pe_1)`.
fn without_places(text: &str) -> String {
    let mut parts = text.split(" (");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((inside, rest)) if inside.contains(".c:") => short += rest,
            _ => {
                short += " (";
                short += part;
            }
        }
    }
    short
}

/// The maximum number of PEs that hang at the same time.
const PES_AT_ONCE: usize = 16;

/// Lets jobs of `n` PEs hang in each way over each network, and checks that the explanations have
/// the words of each way.
fn hangs<'a>(
    ways: impl IntoIterator<Item = &'a Way<'a>>,
    n: usize,
    networks: &[&NetworkVariables],
) {
    let mut jobs = Vec::new();
    for way in ways {
        for &network in networks {
            jobs.push((way, network));
        }
    }

    for jobs in jobs.chunks((PES_AT_ONCE / n).max(1)) {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for &(way, network) in jobs {
                threads.push(scope.spawn(move || hangs_in_a_way(way, n, network)));
            }

            // The message of a check that fails in a thread is that of the test.
            for thread in threads {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
    }
}

fn hangs_in_a_way(way: &Way<'_>, n: usize, network: &NetworkVariables) {
    let (way, words) = way;
    let mut job = start(scenario!("hangs.c", "-pthread"), &[way], n, network);
    explained(&mut job, words, n);
    terminate(job);
}

/// Returns these ways to hang; all ways in `--full`.
fn selected_hangs<'a>(ways: &'a [&str]) -> impl Iterator<Item = &'static Way<'static>> + 'a {
    HANGS
        .iter()
        .filter(move |(way, _)| every_size() || ways.contains(way))
}

fn on_a_node() {
    hangs(HANGS, 4, &[&[]]);
}

fn over_tcp() {
    hangs(
        selected_hangs(&["word", "locks", "teams", "polls_get"]),
        4,
        &[&[OFF, TCP]],
    );
}

/// Hangs on two virtual nodes, except for `teams`: between nodes, the library itself finds that
/// teams are used in different orders, and ends the job.
fn of_virtual_nodes(transport: (&'static str, &'static str), ways: &[&str], n: usize) {
    hangs(
        selected_hangs(ways).filter(|(way, _)| *way != "teams"),
        n,
        &[&[TWO_NODES, transport]],
    );
}

fn of_virtual_nodes_over_tcp() {
    of_virtual_nodes(TCP, &["mismatch", "stopped"], 4);
}

fn of_virtual_nodes_over_ucx() {
    needs_library("libucp.so.0");
    of_virtual_nodes(UCX, &["word", "locks", "stopped"], 4);
}

fn of_virtual_nodes_over_libfabric() {
    needs_library("libfabric.so.1");
    of_virtual_nodes(OFI, &["word", "locks", "stopped"], 4);
}

fn of_64_pes() {
    hangs(selected_hangs(&["word", "teams"]), 64, &[&[]]);
}

fn of_64_pes_over_tcp() {
    of_virtual_nodes(TCP, &["mismatch", "computes"], 64);
}

fn with_the_last_write_of_a_word() {
    let networks: [&NetworkVariables; 3] =
        [&[CHECKED], &[CHECKED, OFF, TCP], &[CHECKED, TWO_NODES, TCP]];
    hangs(WRITTEN, 4, &networks);

    let unwritten: Way<'_> = ("writer", &["to learn who wrote words last"]);
    hangs(&[unwritten], 4, &[&[]]);
}

/// Places are found once waits have lasted for seconds, without any setting.
fn with_the_places_of_waits() {
    const PLACED: &[Way<'_>] = &[(
        "word",
        &[
            "shmem_barrier_all (tests/scenarios/hangs.c:",
            "hangs.c:",
            " in of_pe_1) on flag[2]",
        ],
    )];

    hangs(PLACED, 4, &[&[], &[OFF, TCP]]);

    needs_library("libucp.so.0");
    needs_library("libfabric.so.1");
    hangs(PLACED, 4, &[&[TWO_NODES, UCX], &[TWO_NODES, OFI]]);
}

/// Of the PEs that wait in the same call, only one searches for its place.
fn with_one_search_for_a_place_of_many_pes() {
    const N: usize = 8;

    for network in [&[] as &NetworkVariables, &[OFF, TCP]] {
        let log = [network, &[("SHMEM_DEBUG", "runtime::status=debug")]].concat();
        let mut job = start(scenario!("hangs.c", "-pthread"), &["word"], N, &log);

        let words = [
            "PEs 0 and 2-7 wait for PE 1 in shmem_barrier_all (tests/scenarios/hangs.c:",
            " in of_pe_1) on",
        ];
        let text = explained(&mut job, &words, N);
        terminate(job);

        let searches = text.matches("searches for the place").count();
        assert!((2..N).contains(&searches), "{searches} searches\n{text}");
    }
}

fn with_the_names_of_a_program_in_cxx() {
    let words = [
        "shmem_wait_until (",
        "overloads.cpp:19 in wait_for",
        ") on ns::flag == 3",
    ];

    let mut job = start(scenario!("overloads.cpp", "-O0"), &["wait"], 2, &[]);
    explained(&mut job, &words, 2);
    terminate(job);
}

/// Explanations that `--explain-after` prints without a request also have the last write.
fn with_the_last_write_on_explain_after() {
    let job = explaining(scenario!("hangs.c", "-pthread"), 4).arg("adder");
    let mut job = job.launcher_options(["--explain-after", "2s"]).start();

    job.wait_for(|lines| {
        if unwrapped(lines).contains("PE 2 wrote it last, ") {
            Some(())
        } else {
            None
        }
    });
    terminate(job);
}

fn with_what_is_in_flight() {
    hangs(&IN_FLIGHT[..1], 4, &[&[]]);
    hangs(IN_FLIGHT, 4, &[&[OFF, TCP], &[TWO_NODES, TCP]]);
}

fn with_what_is_in_flight_over_ucx() {
    needs_library("libucp.so.0");
    hangs(IN_FLIGHT, 4, &[&[TWO_NODES, UCX]]);
}

fn with_the_functions_outside_the_library() {
    if Command::new("gdb").arg("--version").output().is_err() {
        absent("gdb is not here");
    }

    let computes: Way<'_> = ("computes", &["PE 1 is in compute_row at hangs.c"]);
    hangs(&[computes], 4, &[&[]]);
}

/// A stand-in for a gdb that never answers, and that passes a signal which should end it to the PE,
/// as SIGINT. The PE must survive.
fn with_a_debugger_that_takes_too_long() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("late-debugger");
    let gdb = dir.join("gdb");
    let script = "#!/bin/sh\nwhile [ \"$1\" != -p ]; do shift; done\n\
                  trap 'kill -INT $2; exit' HUP INT TERM\nsleep 300 &\nwait\n";

    create_dir_all(&dir).expect("a directory");
    write(&gdb, script).expect("a file");
    set_permissions(&gdb, PermissionsExt::from_mode(0o755)).expect("it is ours");

    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", dir.display());
    let mut job = explaining(scenario!("hangs.c", "-pthread"), 4)
        .arg("computes")
        .env("PATH", path)
        .start();
    explained(&mut job, &["PE 1 computes ("], 4);
    terminate(job);
}

/// The threads poll, so all else waits long for a CPU.
fn with_many_waiting_threads() {
    let job = explaining(scenario!("many_waits.c", "-pthread"), 2).arg("200");
    let mut job = job.launcher_options(["--explain-after", "2s"]).start();
    let oshrun = Pid::from_raw(job.pid()).expect("a process");

    let mut n_before = 0;
    for _ in 0..2 {
        n_before = job.wait_for(|lines| {
            for line in lines {
                let is_short = line.len() <= 100 || !line.starts_with("oshrun:");
                assert!(is_short, "{lines:?}");
                assert!(!line.contains("does not answer"), "{lines:?}");
            }

            // After some seconds, the place of a call follows its name.
            let text = unwrapped(lines);
            let rows = text.split(" in shmem_long_wait_until ").skip(1);
            let n = rows.filter(|row| row.contains(" more.")).count();
            if n > n_before { Some(n) } else { None }
        });

        kill_process(oshrun, Signal::QUIT).expect("own");
    }
    terminate(job);
}

fn jobs_that_take_long_are_not_blamed() {
    for (way, words) in HEALTHY {
        let name = format!("over-{way}-{}", std::process::id());
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);

        let n = if *way == "rounds" { 16 } else { 4 };
        let network: &NetworkVariables = if *way == "nbi" { &[OFF, TCP] } else { &[] };
        let arguments = [way, file.to_str().expect("a path in UTF-8")];

        let mut job = start(scenario!("healthy.c"), &arguments, n, network);
        let text = explained(&mut job, words, n);

        File::create(&file).expect("a file");
        let outcome = job.finish();
        remove_file(file).expect("it is there");

        assert_eq!(outcome.code(), 0, "{way}: {outcome}");
        let is_blamed = VERDICTS.iter().any(|verdict| text.contains(verdict));
        assert!(!is_blamed, "{way}: {text}");
    }
}

testkit::module_tests! {
    on_a_node,
    over_tcp,
    of_virtual_nodes_over_tcp,
    of_virtual_nodes_over_ucx,
    of_virtual_nodes_over_libfabric,
    of_64_pes,
    of_64_pes_over_tcp,
    with_the_last_write_of_a_word,
    with_the_places_of_waits,
    with_one_search_for_a_place_of_many_pes,
    with_the_names_of_a_program_in_cxx,
    with_the_last_write_on_explain_after,
    with_what_is_in_flight,
    with_what_is_in_flight_over_ucx,
    with_the_functions_outside_the_library,
    with_a_debugger_that_takes_too_long,
    with_many_waiting_threads,
    jobs_that_take_long_are_not_blamed,
}
