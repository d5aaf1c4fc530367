//! The Python package, by its own tests, which pytest runs, and by the programs and commands of
//! docs/python.md. `RUSHMEM_PYTHON` names the Python; by default it is the first of `python3` and
//! `/usr/bin/python3` that has NumPy and pytest. If none has, the tests are ignored.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::pages::{Page, blocks};
use testkit::{Job, absent, prefix};

/// The directory of the package.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shmem-python");

/// The time limit of a file of tests. One of them runs a score of jobs.
const LIMIT: Duration = Duration::from_secs(900);

/// Returns a Python with NumPy and pytest. Ignores the test if there is none.
fn python() -> String {
    let named = std::env::var("RUSHMEM_PYTHON").ok();
    let usual = ["python3", "/usr/bin/python3"].map(str::to_owned);
    for python in named.into_iter().chain(usual) {
        let imports = Command::new(&python)
            .args(["-c", "import numpy, pytest"])
            .output();
        if imports.is_ok_and(|output| output.status.success()) {
            return python;
        }
    }
    absent("no python3 has NumPy and pytest");
}

/// Runs pytest on a file of tests as this job.
#[track_caller]
fn run(job: Job, file: &str) {
    let tests = Path::new(PACKAGE).join("tests").join(file);
    let outcome = job
        .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(tests.display())
        .env("PYTHONPATH", PACKAGE)
        .env("OSHRUN", prefix().join("bin/oshrun").display())
        .timeout(LIMIT)
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stdout.contains(" passed in "), "{outcome}");
}

/// Runs the tests of calls as one job, whose PEs run them one after the other.
fn calls(onnode: &str) {
    let job = Job::new(python()).n(3).env("RUSHMEM_PYTEST_PE", "1");
    run(job.env("SHMEM_ONNODE", onnode), "test_calls.py");
}

fn calls_on_a_node() {
    calls("on");
}

fn calls_over_a_network() {
    calls("off");
}

fn buffers() {
    let job = Job::new(python()).n(3).env("RUSHMEM_PYTEST_PE", "1");
    run(job, "test_buffers.py");
}

fn mistakes(onnode: &str) {
    let job = Job::new(python()).n(2).env("RUSHMEM_PYTEST_PE", "1");
    run(job.env("SHMEM_ONNODE", onnode), "test_mistakes.py");
}

fn mistakes_on_a_node() {
    mistakes("on");
}

fn mistakes_over_a_network() {
    mistakes("off");
}

fn examples() {
    run(Job::direct(python()), "test_examples.py");
}

fn lifetimes() {
    run(Job::direct(python()), "test_lifetimes.py");
}

/// Blocks of commands of the page that are not run, since they need a registry of packages. The
/// step `release` installs the wheel.
const LEFT_OUT: [&str; 2] = ["python3 -m venv", "pip install 'numpy"];

const FIRST_HOUR: &str = include_str!("../../../../docs/first-hour.md");

/// Runs the programs of the page and of docs/first-hour.md, and the page's commands by this package
/// and this Python.
fn the_page() {
    let python = python();
    let page = Page::open("python", env!("CARGO_TARGET_TMPDIR"));
    let in_tree = format!("PYTHONPATH='{PACKAGE}' exec '{python}' -B");
    page.stand_in("python", &format!("{in_tree} \"$@\""));
    page.stand_in(
        "pytest",
        &format!("{in_tree} -m pytest -p rushmem.testing \"$@\""),
    );

    let mut n_programs = 0;
    for program in page.blocks("python") {
        if program.contains("def test_") {
            page.write("test_ring.py", &program);
        } else if program.contains("ipyparallel") {
            page.write("cluster.py", &program);
            page.shell("if python -c 'import ipyparallel'; then python cluster.py; fi");
        } else if program.contains("import rushmem") {
            n_programs += 1;
            page.write(&format!("program{n_programs}.py"), &program);
            page.shell(&format!("python -m rushmem -n 4 program{n_programs}.py"));
        }
    }
    assert_eq!(n_programs, 4);

    page.write("ring.py", &blocks(FIRST_HOUR, "python")[0]);
    page.shell("oshrun -n 4 python ring.py");

    page.shell("mv program1.py program.py");
    for commands in page.blocks("sh") {
        if !LEFT_OUT.iter().any(|start| commands.starts_with(start)) {
            page.shell(&commands);
        }
    }
    page.end();
}

testkit::module_tests! {
    calls_on_a_node,
    calls_over_a_network,
    buffers,
    mistakes_on_a_node,
    mistakes_over_a_network,
    examples,
    lifetimes,
    the_page,
}
