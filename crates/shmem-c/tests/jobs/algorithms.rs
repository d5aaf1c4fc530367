//! Algorithms of collectives that the user forces, and files that choose algorithms by size and
//! team.

use std::path::PathBuf;
use testkit::{Job, Outcome, every_size, prefix, program};

const REDUCE: &str = "SHMEM_REDUCE_ALGORITHM";
const COLLECT: &str = "SHMEM_COLLECT_ALGORITHM";
const TUNING: &str = "SHMEM_COLL_TUNING";

/// Each algorithm has the right results, also at sizes at which it is never chosen. The tests of
/// `algorithms` in crates/runtime show it in jobs of all shapes; here it is forced by a user.
#[test]
fn forced_algorithms_are_right() {
    let reductions = [
        "recursive_doubling",
        "rabenseifner",
        "ring",
        "direct",
        "central",
        "two_level",
    ];
    force(program!("reductions.c"), &[(REDUCE, &reductions)]);

    let barriers = ["dissemination", "binomial", "central", "two_level"];
    force(
        program!("barriers.c"),
        &[("SHMEM_SYNC_ALGORITHM", &barriers)],
    );

    let collects = [
        "lines",
        "pairwise",
        "bruck",
        "recursive_doubling",
        "ring",
        "neighbor_exchange",
        "central",
    ];
    force(
        program!("collectives_team.c"),
        &[
            (COLLECT, &collects),
            (
                "SHMEM_BROADCAST_ALGORITHM",
                &["binomial", "scatter_all_gather"],
            ),
            (
                "SHMEM_ALLTOALL_ALGORITHM",
                &["lines", "pairwise", "bruck", "central"],
            ),
        ],
    );

    force(
        program!("scan.c"),
        &[(
            "SHMEM_SCAN_ALGORITHM",
            &["recursive_doubling", "direct", "central"],
        )],
    );
}

/// Runs a program repeatedly, each time with one algorithm of each variable, until all were forced.
fn force(program: PathBuf, variables: &[(&str, &[&str])]) {
    // Most algorithms go another way if the number of PEs is no power of two, and if not all PEs
    // share memory: the first job has both. Some can be used only if all PEs share memory.
    let jobs = [
        ("SHMEM_VIRTUAL_NODES", "2", 5),
        ("SHMEM_ONNODE", "on", 5),
        ("SHMEM_ONNODE", "off", 4),
        ("SHMEM_ONNODE", "on", 2),
        ("SHMEM_ONNODE", "off", 3),
    ];
    let jobs = if every_size() { &jobs[..] } else { &jobs[..2] };
    let most = variables
        .iter()
        .map(|(_, algorithms)| algorithms.len())
        .max()
        .unwrap_or(0);

    for round in 0..most {
        for &(setting, value, n) in jobs {
            let mut job = Job::new(&program).n(n).env(setting, value);
            for (name, algorithms) in variables {
                if let Some(algorithm) = algorithms.get(round) {
                    job = job.env(name, algorithm);
                }
            }
            job.run().assert_ok(n);
        }
    }
}

/// Runs a program whose teams have different numbers of members on each node, consecutive or not.
fn over_nodes(transport: &str, jobs: &[(&str, usize)]) {
    for &(nodes, n) in jobs {
        Job::new(program!("over_nodes.c"))
            .n(n)
            .env("SHMEM_VIRTUAL_NODES", nodes)
            .env("SHMEM_TRANSPORT", transport)
            .run()
            .assert_ok(n);
    }
}

#[test]
fn two_levels_are_right_however_members_are_placed() {
    over_nodes("tcp", &[("2", 3), ("1+3", 4), ("3", 7)]);
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn two_levels_are_right_over_every_transport() {
    for transport in ["tcp", "ucx", "ofi"] {
        over_nodes(transport, &[("2", 4), ("3", 5), ("1+2+3", 6), ("2", 8)]);
    }
}

#[test]
fn an_algorithm_that_is_none_is_an_error() {
    let outcome = Job::new(program!("reductions.c"))
        .n(2)
        .env(REDUCE, "fastest")
        .run();
    outcome.assert_fails(&[REDUCE, "fastest", "recursive_doubling"]);
}

/// Runs a job in which PE 0 has another value of a variable than the others.
fn unlike(variable: &str, own: &str, others: &str) -> Outcome {
    let script = format!(
        "if [ $SHMEM_LOCAL_ID = 0 ]; then export {variable}={own}; else export {variable}={others}; fi; exec \"$0\""
    );

    Job::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg(program!("barriers.c").display())
        .n(2)
        .run()
}

#[test]
fn algorithms_that_differ_between_pes_are_an_error() {
    let outcome = unlike(COLLECT, "ring", "auto");
    outcome.assert_fails(&[
        "PE 0",
        "PE 1",
        "different algorithms",
        "SHMEM_..._ALGORITHM",
    ]);
}

/// Writes these rows to a file, and returns its path.
fn tuning(name: &str, rows: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tuning_{name}"));
    std::fs::write(&path, rows).expect("the directory for tests can be written to");
    path.display().to_string()
}

#[test]
fn a_file_says_which_algorithm_is_used_where() {
    let rows = "# mine\n\nreduce  0-64  any  any  any  any  recursive_doubling  # measured\n\
                collect 1k+/pe 2-3 one any any ring\n";
    let file = tuning("rows", rows);

    for program in [program!("reductions.c"), program!("collectives_team.c")] {
        let outcome = Job::new(program)
            .n(3)
            .env(TUNING, &file)
            .env("SHMEM_DEBUG", 2)
            .run();
        outcome.assert_ok(3);

        // The file gives bytes per PE, the log bytes of all: 1 KiB of each of 3 PEs.
        for text in [
            "reduce of all PEs: recursive_doubling from 0 B (line 3 of SHMEM_COLL_TUNING), ",
            " from 0 B (built in), ring from 3072 B (line 4 of SHMEM_COLL_TUNING)",
        ] {
            let lines = outcome.stderr.lines().filter(|line| line.contains(text));
            assert_eq!(lines.count(), 1, "{text}: {}", outcome.stderr);
        }
    }
}

#[test]
fn what_is_forced_goes_before_what_a_file_says() {
    let file = tuning("before", "collect any any any any any ring");
    let outcome = Job::new(program!("barriers.c"))
        .n(2)
        .env(TUNING, file)
        .env(COLLECT, "bruck")
        .env("SHMEM_DEBUG", 2)
        .run();

    let forced = "collect of all PEs: bruck from 0 B (forced)";
    assert!(outcome.stderr.contains(forced));
}

/// Runs a job with a tuning file.
fn with_tuning(file: &str) -> Outcome {
    Job::new(program!("barriers.c"))
        .n(2)
        .env(TUNING, file)
        .run()
}

#[test]
fn a_file_that_is_not_regular_or_has_a_mistake_is_an_error() {
    let absent = "/nowhere/tuning";
    with_tuning(absent).assert_fails(&[TUNING, absent, "cannot be read"]);

    // To open a FIFO that nobody writes to would wait, and reading this device would never end.
    let fifo = tuning("fifo", "");
    std::fs::remove_file(&fifo).expect("own file");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .expect("mkfifo");
    assert!(made.success());
    with_tuning(&fifo).assert_fails(&[TUNING, &fifo, "not a regular file"]);
    std::fs::remove_file(&fifo).expect("own file");
    with_tuning("/dev/zero").assert_fails(&[TUNING, "/dev/zero", "not a regular file"]);

    let file = tuning("mistake", "\nreduce any any any any any bruck\n");
    with_tuning(&file).assert_fails(&[TUNING, &file, "line 2", "no algorithm of reduce", "direct"]);
}

/// Files may differ in comments and spaces.
#[test]
fn files_whose_rows_differ_between_pes_are_an_error() {
    let one = tuning("one", "collect any any any any any ring # a\n");
    let like = tuning("like", "# b\ncollect  any any any any any  ring");
    unlike(TUNING, &one, &like).assert_ok(2);

    let other = tuning("other", "collect any any any any any bruck\n");
    unlike(TUNING, &one, &other).assert_fails(&["PE 0", "PE 1", "different rows", TUNING]);
}

/// Checks that the output of `shmem-perf tune` can be used, and has rows for several operations and
/// sizes of teams.
#[test]
fn a_measured_file_is_used() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("measured")
        .display()
        .to_string();

    for onnode in ["on", "off"] {
        // As short as possible: the rows are not judged.
        let outcome = Job::new(prefix().join("bin/shmem-perf"))
            .n(3)
            .args(["tune", "-o", &file, "--max-bytes", "512", "--time", "0"])
            .env("SHMEM_ONNODE", onnode)
            .run();
        assert!(outcome.status.success(), "{outcome}");
        assert!(outcome.stderr.is_empty(), "{outcome}");

        let text = std::fs::read_to_string(&file).expect("it was written");
        for (operation, members) in [("sync", "2-2"), ("reduce", "2-2"), ("collect", "3+")] {
            let has_row = text.lines().any(|line| {
                let columns: Vec<&str> = line.split_whitespace().collect();
                columns.len() == 7 && columns[0] == operation && columns[2] == members
            });
            assert!(has_row, "{operation}: {text}");
        }

        let outcome = Job::new(program!("collectives_team.c"))
            .n(3)
            .env(TUNING, &file)
            .env("SHMEM_ONNODE", onnode)
            .env("SHMEM_DEBUG", 2)
            .run();
        outcome.assert_ok(3);
        let is_used = outcome.stderr.contains(" of SHMEM_COLL_TUNING)");
        assert!(is_used, "{outcome}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    Job::new(prefix().join("bin/shmem-perf"))
        .n(2)
        .args(["tune", "-o", "/nowhere/tuning"])
        .run()
        .assert_fails(&["shmem-perf tune", "/nowhere/tuning", "cannot be written"]);
}
