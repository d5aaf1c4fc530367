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
/// Values of `SHMEM_VIRTUAL_NODES`, each with the number of PEs that it splits.
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
    let outcome = Job::new(program(example))
        .n(n)
        .env("SHMEM_SYMMETRIC_SIZE", "64m")
        .envs(environment)
        .run();
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
    let n_lines = outcome.lines().count();
    assert!(n_lines >= 1, "it says nothing of its result\n{outcome}");
}

fn on_node(example: &'static str) {
    for n in PES {
        runs(example, n, &[]);
    }
}

fn over_tcp(example: &'static str) {
    let tcp = ("SHMEM_TRANSPORT", "tcp");
    for n in PES {
        runs(example, n, &[tcp, ("SHMEM_ONNODE", "off")]);
    }
    for (nodes, n) in VIRTUAL_NODES {
        runs(example, n, &[tcp, ("SHMEM_VIRTUAL_NODES", nodes)]);
    }
}

fn no_example_is_forgotten() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut present = BTreeSet::new();
    for entry in std::fs::read_dir(dir).expect("the examples are there") {
        let file = entry.expect("it can be read").path();
        let name = file.file_stem().expect("a name");
        present.insert(name.to_string_lossy().into_owned());
    }
    assert_eq!(present, EXAMPLES.map(str::to_owned).into());
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
    for example in EXAMPLES {
        let name = format!("on_node::{example}");
        tests.push(Test::new(name, move || on_node(example)));
    }
    for example in EXAMPLES {
        let test = Test::new(format!("tcp_sample::{example}"), move || over_tcp(example));
        tests.push(test.ignored("part of `cargo xtask test --providers`"));
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
