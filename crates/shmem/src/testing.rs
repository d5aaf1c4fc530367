//! Tests whose body runs as a job: what [`test!`](crate::test) expands to.
//!
//! The test starts its own program by `oshrun`, with itself as the only test. A variable in the
//! environment tells the PEs to run the body.

use std::io::{self, PipeReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// A test that runs as a job: a `#[test]` whose body is called on each of `pes` PEs, with the
/// [`Shmem`](crate::Shmem) of [`init`](crate::init).
///
/// ```standalone_crate,test_harness
/// shmem::test!(everyone_hears_from_the_last, pes = [1, 4], |shmem| {
///     let inbox = shmem.boxed(0);
///     inbox.on(shmem.next()).write(17);
///     shmem.barrier_all();
///     assert_eq!(inbox.load(), 17);
/// });
/// ```
///
/// `pes` is a number of PEs, or an array of such numbers, for each of which a job is run. A closure
/// without an argument initializes the library itself, for example at another thread level.
/// Attributes, such as `#[ignore]`, are written before the name. Tests are items of a module: a
/// test inside a function, where no harness could find it, does not compile.
///
/// `oshrun` is found by the variable `OSHRUN`, which names the program, or by `PATH`. If a PE
/// panics, its job ends, and the test fails and shows the output of the job. The test also fails if
/// a job takes longer than a minute, or than the number of seconds in the variable
/// `SHMEM_TEST_TIMEOUT`.
#[macro_export]
macro_rules! test {
    ($(#[$attribute:meta])* $name:ident, pes = $pes:expr, |$shmem:pat_param| $body:expr $(,)?) => {
        $crate::test!($(#[$attribute])* $name, pes = $pes, || {
            let $shmem = $crate::init();
            $body
        });
    };
    ($(#[$attribute:meta])* $name:ident, pes = $pes:expr, || $body:expr $(,)?) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            // Does not compile if the test is inside a function, where no harness would find it.
            let _: fn() = self::$name;
            $crate::testing::run(concat!(module_path!(), "::", stringify!($name)), $pes, || $body);
        }
    };
}

mod sealed {
    pub trait NumbersOfPes {
        /// Returns the numbers of PEs; there is one job for each.
        fn sizes(&self) -> &[usize];
    }
}
use sealed::NumbersOfPes;

/// The numbers of PEs that a test is run with: one number, or an array of several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of PEs, or an array of such numbers",
    label = "not a `usize` or `[usize; N]`"
)]
pub trait Sizes: NumbersOfPes {}

impl Sizes for usize {}
impl<const N: usize> Sizes for [usize; N] {}

impl NumbersOfPes for usize {
    fn sizes(&self) -> &[usize] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> NumbersOfPes for [usize; N] {
    fn sizes(&self) -> &[usize] {
        self
    }
}

/// The variable that names the test whose body this process runs as a PE.
const TEST: &str = "SHMEM_TEST";
/// A variable that `oshrun` sets for every process: its number on the node.
const LOCAL_ID: &str = "SHMEM_LOCAL_ID";
/// The variable with the time limit of a job of a test, in seconds.
const TIMEOUT: &str = "SHMEM_TEST_TIMEOUT";
/// The time limit of a job of a test, unless [`TIMEOUT`] is set.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which a test checks whether its job has ended. It delays the end of each job by
/// half of that on average.
const GLANCE: Duration = Duration::from_millis(2);

/// Runs the body of the test `path` if this process is a PE of the test, otherwise its jobs.
#[doc(hidden)]
pub fn run(path: &str, pes: impl Sizes, body: impl FnOnce()) {
    // The harness knows tests without the name of the crate.
    let name = path.split_once("::").map_or(path, |(_, name)| name);

    match std::env::var(TEST) {
        Ok(test) if test == name => body(),
        Ok(test) => panic!("the PEs of the test {test} were started for the test {name}"),
        // If a runner of cargo has started this program as a job, only the first of its processes
        // on each node starts the jobs of tests.
        Err(_) if std::env::var(LOCAL_ID).is_ok_and(|number| number != "0") => {}
        Err(_) => {
            for &n in pes.sizes() {
                run_job(name, n);
            }
        }
    }
}

/// Runs the test `name` as a job of `n` PEs. Panics if the job fails or takes too long.
fn run_job(name: &str, n: usize) {
    let oshrun = oshrun();
    let limit = time_limit();

    let (output, writer) = io::pipe().expect("a pipe");
    let mut command = Command::new(&oshrun);
    command
        .args(["-n", &n.to_string()])
        .arg(std::env::current_exe().expect("a program knows its path"))
        .args([
            name,
            "--exact",
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(TEST, name)
        .stdout(writer.try_clone().expect("a descriptor"))
        .stderr(writer);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{} cannot be started: {error}", oshrun.display()));
    // Closes this process's writing ends of the pipe, so that the output ends with the job.
    drop(command);

    let printed = read_all(output);
    let status = wait(&mut child, limit);
    // Processes that the job has left behind may have the pipe open.
    let printed = printed.recv_timeout(limit).unwrap_or_default();

    let Some(status) = status else {
        panic!("{name} on {n} PEs was not over after {limit:?}; it printed\n{printed}");
    };
    if !status.success() {
        panic!(
            "{name} on {n} PEs, started by {}, failed with {status}; it printed\n{printed}",
            oshrun.display()
        );
    }

    // A harness that finds no test of this name succeeds, too.
    let passed = printed.matches("test result: ok. 1 passed").count();
    if passed != n {
        panic!("{name} was run by {passed} of {n} PEs; the job printed\n{printed}");
    }
}

/// Starts a thread that reads the output of a job to its end, so that the job does not wait for
/// room in the pipe. The receiver gets the whole text.
fn read_all(mut output: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        // After an error, the test shows what was read before.
        let _ = output.read_to_end(&mut text);
        // After the limit there is no receiver.
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    receiver
}

/// Returns the path of the launcher.
fn oshrun() -> PathBuf {
    if let Some(named) = std::env::var_os("OSHRUN") {
        return named.into();
    }

    let path = std::env::var_os("PATH").unwrap_or_default();
    for dir in std::env::split_paths(&path) {
        let file = dir.join("oshrun");
        if file.is_file() {
            return file;
        }
    }
    panic!(
        "this test runs as a job, and no directory of PATH has oshrun; install Rushmem \
         (cargo xtask install --prefix DIR) and put DIR/bin into PATH, or set OSHRUN to the program"
    )
}

fn time_limit() -> Duration {
    let Ok(text) = std::env::var(TIMEOUT) else {
        return DEFAULT_TIMEOUT;
    };

    match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => panic!("{TIMEOUT} is no number of seconds: {text}"),
    }
}

/// Returns the exit status of a job, or `None` if it was killed at its limit. The PEs end with
/// their launcher.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child
            .try_wait()
            .expect("the job is a child of this process")
        {
            return Some(status);
        }

        if start.elapsed() > limit {
            // The job may have ended meanwhile.
            let _ = child.kill();
            // Its status does not matter: the test fails since it took too long.
            let _ = child.wait();
            return None;
        }
        thread::sleep(GLANCE);
    }
}
