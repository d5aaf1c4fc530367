//! Python's shmem4py, built with this library by the `oshcc` of an installed prefix.
//! `RUSHMEM_PYTHON` names the Python that has it; the default is `python3`. Without shmem4py the
//! tests that use it are ignored.

use std::path::Path;
use std::process::Command;

use testkit::pages::blocks;
use testkit::{Job, Outcome, absent, prefix};

/// A program that prints the path of the module of shmem4py that is linked with the library.
const EXTENSION: &str =
    "import importlib.util as util; print(util.find_spec('shmem4py.api').origin)";

const PROGRAM: &str = "\
from shmem4py import shmem

me, n = shmem.my_pe(), shmem.n_pes()
if me == 0:
    print(f'n_pes {n}', flush=True)
right, left = (me + 1) % n, (me + n - 1) % n
assert shmem.info_get_name().startswith('Rushmem'), shmem.info_get_name()
data = shmem.array([me, me * me], dtype='l')
dest = shmem.zeros(2, dtype='l')
shmem.barrier_all()
shmem.put(dest, data, right)
shmem.barrier_all()
assert list(dest) == [left, left * left], dest
shmem.sum_reduce(dest, data)
assert dest[0] == n * (n - 1) // 2, dest
count = shmem.zeros(1, dtype='l')
shmem.barrier_all()
assert 0 <= shmem.atomic_fetch_add(count, 1, 0) < n
lock = shmem.Lock()
with lock:
    shmem.put(dest, data, me)
lock.destroy()
shmem.barrier_all()
assert shmem.atomic_fetch(count, 0) == n
shmem.barrier_all()
for array in (count, dest, data):
    shmem.free(array)
if me == 0:
    print('PASS', flush=True)
";

/// The page for users, whose programs are run unchanged.
const PAGE: &str = include_str!("../../../../docs/python.md");

/// The page of jobs without a launcher, with a program of shmem4py.
const UNLAUNCHED: &str = include_str!("../../../../docs/unlaunched.md");

/// PE 1 ends by an exception while the others are in a barrier.
const RAISES: &str = "\
from shmem4py import shmem

shmem.barrier_all()
if shmem.my_pe() == 1:
    raise ValueError('what was raised')
shmem.barrier_all()
print('a barrier ended that one PE never reached')
";

/// Calls the library by ctypes, with a PE that does not exist.
const WRONG_PE: &str = "\
import ctypes, sys

shmem = ctypes.CDLL(sys.argv[1])
shmem.shmem_malloc.restype = ctypes.c_void_p
shmem.shmem_init()
block = ctypes.c_void_p(shmem.shmem_malloc(ctypes.c_size_t(8)))

def store(pe):
    shmem.shmem_long_p(block, ctypes.c_long(1), pe)

store(77)
";

/// Returns the Python whose shmem4py was built with this library. Ignores the test if there is
/// none.
fn python() -> String {
    let python = std::env::var("RUSHMEM_PYTHON").unwrap_or("python3".into());
    let found = Command::new(&python).args(["-c", EXTENSION]).output();
    let Some(found) = found.ok().filter(|found| found.status.success()) else {
        absent(format!("{python} has no shmem4py"));
    };

    let extension = String::from_utf8(found.stdout).expect("a plain name");
    let linked = std::fs::read(extension.trim_end()).expect("it can be read");
    let name = b"librushmem";
    if !linked.windows(name.len()).any(|part| part == name) {
        absent(format!(
            "the shmem4py of {python} was built with another library"
        ));
    }

    python
}

/// Returns the programs of the page that import shmem4py.
fn programs_of_page() -> Vec<String> {
    let mut programs = blocks(PAGE, "python");
    programs.retain(|program| program.contains("shmem4py"));
    programs
}

/// Runs jobs of a program with three PEs: on a node and over a network.
fn outcomes(name: &str, text: &str) -> Vec<Outcome> {
    let python = python();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&program, text).expect("a file");

    let mut outcomes = Vec::new();
    for onnode in ["on", "off"] {
        let job = Job::new(&python)
            .n(3)
            .arg(program.display())
            .env("SHMEM_ONNODE", onnode)
            .env("LD_LIBRARY_PATH", prefix().join("lib").display());
        outcomes.push(job.run());
    }
    outcomes
}

fn its_calls_reach_the_library() {
    for outcome in outcomes("shmem4py_calls.py", PROGRAM) {
        outcome.assert_ok(3);
    }
}

fn the_program_of_the_page_runs() {
    for outcome in outcomes("shmem4py_page.py", &programs_of_page()[0]) {
        assert_eq!(outcome.code(), 0, "{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}

fn a_job_forms_by_a_unique_id() {
    let python = python();
    let programs = blocks(UNLAUNCHED, "python");
    let program = programs
        .iter()
        .find(|program| program.contains("shmem4py"))
        .expect("a program");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shmem4py_by_id.py");
    std::fs::write(&file, program).expect("a file");

    let outcome = Job::direct(&python)
        .arg(file.display())
        .env("LD_LIBRARY_PATH", prefix().join("lib").display())
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
}

fn a_message_names_the_line_of_the_program() {
    let python = std::env::var("RUSHMEM_PYTHON").unwrap_or("python3".into());
    if Command::new(&python).arg("--version").output().is_err() {
        absent(format!("there is no {python}"));
    }

    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong_pe.py");
    std::fs::write(&program, WRONG_PE).expect("a file");
    let library = prefix().join("lib/librushmem.so");

    Job::new(&python)
        .n(2)
        .arg(program.display())
        .arg(library.display())
        .run()
        .assert_fails(&["shmem_long_p: argument pe is 77", "wrong_pe.py:9)"]);
}

fn an_exception_ends_the_job() {
    let raised = "ValueError: what was raised\n";
    for outcome in outcomes("shmem4py_raises.py", RAISES) {
        assert_eq!(outcome.code(), 1, "{outcome}");
        assert_eq!(outcome.stdout, "", "{outcome}");
        assert!(outcome.stderr.contains(raised), "{outcome}");
        let place = "; PE 1 in shmem_finalize; ";
        assert!(outcome.stderr.contains(place), "{outcome}");
    }

    // The second program of the page sets a hook that ends the job at once.
    let hooked = [&programs_of_page()[1], RAISES].concat();
    for outcome in outcomes("shmem4py_hooked.py", &hooked) {
        assert_eq!(outcome.code(), 1, "{outcome}");
        assert_eq!(outcome.stdout, "", "{outcome}");
        assert!(outcome.stderr.ends_with(raised), "{outcome}");
    }
}

testkit::module_tests! {
    its_calls_reach_the_library,
    the_program_of_the_page_runs,
    a_job_forms_by_a_unique_id,
    an_exception_ends_the_job,
    a_message_names_the_line_of_the_program,
}
