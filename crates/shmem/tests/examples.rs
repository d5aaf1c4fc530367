//! Runs the examples, each a program as a user builds it, on 1, 2, 4 and 7 PEs: on one node, over
//! TCP and over virtual nodes. Each example checks its own result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use testkit::{Job, Test};

/// The examples. For each of them there is a test with its name in every setting.
const EXAMPLES: [&str; 18] = [
    "conjugate_gradient",
    "hash_table",
    "heat",
    "hello",
    "histogram",
    "lock",
    "mandelbrot",
    "max_reduction",
    "pi",
    "pipeline",
    "ring",
    "sample_sort",
    "sort",
    "splits",
    "threads",
    "transpose",
    "work_queue",
    "work_stealing",
];

const PES: [usize; 4] = [1, 2, 4, 7];
const VIRTUAL_NODES: [(&str, usize); 3] = [("1+1", 2), ("2+2", 4), ("1+2+4", 7)];

/// Cargo builds examples beside the tests when it builds all tests of a package.
fn program(example: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test program knows its path");
    let built = this
        .parent()
        .and_then(Path::parent)
        .expect("it is in target/PROFILE/deps");
    let program = built.join("examples").join(example);
    assert!(
        program.exists(),
        "{} is missing: build it by cargo build --examples",
        program.display()
    );
    program
}

fn runs(example: &str, n: usize, environment: &[(&str, &str)]) {
    let mut job = Job::new(program(example))
        .n(n)
        .env("SHMEM_SYMMETRIC_SIZE", "64m");
    for (name, value) in environment {
        job = job.env(name, value);
    }
    let outcome = job.run();
    assert!(
        outcome.status.success() && outcome.stderr.is_empty(),
        "{outcome}"
    );
    assert!(
        outcome.lines().count() >= 1,
        "it says nothing of its result\n{outcome}"
    );
}

fn on_node(example: &'static str) {
    PES.iter().for_each(|&n| runs(example, n, &[]));
}

fn over_tcp(example: &'static str) {
    let tcp = ("SHMEM_TRANSPORT", "tcp");
    PES.iter()
        .for_each(|&n| runs(example, n, &[tcp, ("SHMEM_ONNODE", "off")]));
    for (nodes, n) in VIRTUAL_NODES {
        runs(example, n, &[tcp, ("SHMEM_VIRTUAL_NODES", nodes)]);
    }
}

/// A way to run examples, and the reason if it is not always used.
type Setting = (&'static str, fn(&'static str), Option<&'static str>);

const SETTINGS: [Setting; 2] = [
    ("on_node", on_node, None),
    (
        "tcp_sample",
        over_tcp,
        Some("part of `cargo xtask test --providers`"),
    ),
];

fn no_example_is_forgotten() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let present: BTreeSet<String> = std::fs::read_dir(dir)
        .expect("the examples are there")
        .map(|entry| entry.expect("it can be read").path())
        .map(|file| {
            file.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(
        present,
        EXAMPLES.iter().map(|name| (*name).to_owned()).collect()
    );
}

fn every_pe_of_the_ring_hears_from_the_one_before() {
    let outcome = Job::new(program("ring")).n(3).run();
    let heard: BTreeSet<&str> = outcome.lines().collect();
    let expected = [
        "PE 0 heard from PE 2",
        "PE 1 heard from PE 0",
        "PE 2 heard from PE 1",
    ];
    assert_eq!(heard, expected.into(), "{outcome}");
}

fn without_a_launcher_an_example_is_a_job_of_one_pe() {
    let outcome = Job::direct(program("hello")).run();
    assert_eq!(outcome.stdout, "Hello from PE 0 of 1\n", "{outcome}");
}

fn main() -> ExitCode {
    let mut tests = Vec::new();
    for (setting, body, ignored) in SETTINGS {
        tests.extend(EXAMPLES.map(|example| {
            let test = Test::new(format!("{setting}::{example}"), move || body(example));
            ignored.into_iter().fold(test, Test::ignored)
        }));
    }
    tests.extend([
        Test::new("no_example_is_forgotten", no_example_is_forgotten),
        Test::new(
            "every_pe_of_the_ring_hears_from_the_one_before",
            every_pe_of_the_ring_hears_from_the_one_before,
        ),
        Test::new(
            "without_a_launcher_an_example_is_a_job_of_one_pe",
            without_a_launcher_an_example_is_a_job_of_one_pe,
        ),
    ]);
    testkit::run(tests)
}
