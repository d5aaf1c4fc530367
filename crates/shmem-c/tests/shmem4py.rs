//! Python's shmem4py, built with this library by the `oshcc` of an installed prefix.
//! `RUSHMEM_PYTHON` names the Python that has it, `python3` where it is not set; elsewhere the test
//! is ignored.

use std::path::Path;
use std::process::{Command, ExitCode};

use testkit::{Job, Test, absent, prefix};

/// Where the part of shmem4py is that is linked with the library.
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

fn its_calls_reach_the_library() {
    let python = std::env::var("RUSHMEM_PYTHON").unwrap_or("python3".into());
    let found = Command::new(&python).args(["-c", EXTENSION]).output();
    let Some(found) = found.ok().filter(|found| found.status.success()) else {
        absent(format!("{python} has no shmem4py"));
    };
    let extension = String::from_utf8(found.stdout).expect("a plain name");
    let linked = std::fs::read(extension.trim_end()).expect("it can be read");
    let name = b"librushmem";
    if !linked.windows(name.len()).any(|part| part == name) {
        absent(format!("the shmem4py of {python} was built with another library"));
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shmem4py_calls.py");
    std::fs::write(&program, PROGRAM).expect("a file");
    for onnode in ["on", "off"] {
        let job = Job::new(&python).n(3).arg(program.display()).env("SHMEM_ONNODE", onnode);
        job.env("LD_LIBRARY_PATH", prefix().join("lib").display()).run().assert_ok(3);
    }
}

fn main() -> ExitCode {
    testkit::run(vec![Test::new("its_calls_reach_the_library", its_calls_reach_the_library)])
}
