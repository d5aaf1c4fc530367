//! Programs that start themselves as the PEs of a job, with `shmem::launch`.
//!
//! This program is the one that is started, too: each test runs it with the name of a case.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use shmem::{JobStatus, Shmem, Sum};
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio, Termination};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::{Job, Test};

const CASE: &str = "LAUNCH_CASE";
/// The line of each PE that hangs.
const WAITS: &str = "it waits";
/// The time limit of a job.
const LIMIT: Duration = Duration::from_secs(60);

fn report(shmem: &Shmem) {
    let sum = shmem.world().all_reduce(shmem.my_pe(), Sum);
    let argument = std::env::args().nth(1).unwrap_or_default();
    println!(
        "PE {} of {}: {sum} {argument}",
        shmem.my_pe(),
        shmem.n_pes()
    );
}

/// Runs as the program of a case.
fn program(case: &str) -> JobStatus {
    match case {
        "work" => {
            let status = shmem::launch(4, |shmem| report(&shmem));
            println!("after {}", status.success());
            status
        }
        "usual" => shmem::launch(None, |shmem| report(&shmem)),
        "lines" => shmem::launch(4, |shmem| {
            for _ in 0..20 {
                print!("PE {} ", shmem.my_pe());
                std::io::stdout().flush().expect("a pipe");
                shmem.barrier_all();
                println!("ends");
            }
        }),
        "panic" => shmem::launch(4, |shmem| {
            assert_ne!(shmem.my_pe(), 2, "on request");
            shmem.barrier_all();
        }),
        "exit" => shmem::launch(3, |shmem| {
            if shmem.my_pe() == 1 {
                std::process::exit(7);
            }
            shmem.barrier_all();
        }),
        "error" => shmem::launch(3, |shmem| {
            if shmem.my_pe() == 1 {
                return Err("the input has no lines");
            }
            shmem.barrier_all();
            Ok(())
        }),
        "no error" => shmem::launch(2, |shmem| {
            shmem.barrier_all();
            Ok::<(), std::num::ParseIntError>(())
        }),
        "status" => shmem::launch(2, |shmem| ExitCode::from(shmem.my_pe() as u8 * 200)),
        "hang" => shmem::launch(3, |shmem| {
            let signal = shmem.zeroed::<shmem::Signal>();
            eprintln!("{WAITS}");
            if shmem.my_pe() != 2 {
                shmem.wait(signal.eq(1));
            } else {
                sleep(LIMIT);
                std::process::exit(1);
            }
        }),
        "nobody" => shmem::launch(0, |_| ()),
        "twice" => {
            assert!(shmem::launch(2, |_| ()).success());
            shmem::launch(2, |_| ())
        }
        "nested" => shmem::launch(2, |_| {
            let _ = shmem::launch(2, |_| ());
        }),
        "thread" => std::thread::Builder::new()
            .name("tests::mine".into())
            .spawn(|| shmem::launch(2, |_| ()))
            .expect("a thread")
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        "unnamed" => std::thread::spawn(|| shmem::launch(2, |_| ()))
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        "deleted" => {
            fs::remove_file(std::env::current_exe().expect("a path")).expect("it is a copy");
            shmem::launch(2, |_| ())
        }
        "endless" => shmem::launch(3, |shmem| {
            shmem.barrier_all();
            println!("{}", std::process::id());
            sleep(LIMIT);
        }),
        other => unreachable!("there is no case {other}"),
    }
}

fn this() -> PathBuf {
    std::env::current_exe().expect("a test program knows its path")
}

fn command(case: &str, file: PathBuf) -> Command {
    let mut command = Command::new(file);
    command.arg("argument").env(CASE, case);
    command
}

fn run(case: &str) -> Output {
    command(case, this()).output().expect("it starts")
}

#[track_caller]
fn is_refused(output: &Output, words: &str) {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains(words), "no {words:?} in\n{printed}");
    assert!(!output.status.success(), "{output:?}");
}

/// A running job of the endless case.
struct Endless {
    starter: Child,
    pes: [Pid; 3],
}

impl Endless {
    fn start() -> Endless {
        let mut starter = command("endless", this())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(starter.stdout.take().expect("a pipe")).lines();
        let pes = [(); 3].map(|()| {
            let line = lines.next().expect("a line of each PE").expect("a text");
            Pid::from_raw(line.parse().expect("a number")).expect("a process")
        });
        Endless { starter, pes }
    }

    /// Waits until the PEs have ended, for less than the time after which they end by themselves. A
    /// PE whose parent was killed counts until init has awaited it, which may take seconds.
    #[track_caller]
    fn require_no_pe(&self) {
        let start = Instant::now();
        while self.pes.iter().any(|&pe| test_kill_process(pe).is_ok()) {
            let is_late = start.elapsed() > LIMIT / 3;
            assert!(!is_late, "a PE is left of {:?}", self.pes);
            sleep(Duration::from_millis(10));
        }
    }
}

fn a_program_runs_as_a_job() {
    let output = run("work");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.pop(), Some("after true"), "{output:?}");
    lines.sort_unstable();
    let expected = [0, 1, 2, 3].map(|pe| format!("PE {pe} of 4: 6 argument"));
    assert_eq!(lines, expected, "{output:?}");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// Returns the command of the program that gives no number of PEs.
fn usual(n_pes: &str) -> Command {
    let mut command = command("usual", this());
    command.env("SHMEM_N_PES", n_pes);
    command
}

fn a_program_without_a_number_has_that_of_the_environment() {
    let output = usual("3").output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let expected = [0, 1, 2].map(|pe| format!("PE {pe} of 3: 3 argument"));
    assert_eq!(lines, expected, "{output:?}");

    let output = run("usual");
    let n_cpus = std::thread::available_parallelism().expect("it is known");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_all = format!(" of {n_cpus}: ");
    assert_eq!(printed.matches(&of_all).count(), n_cpus.get(), "{printed}");

    for n_pes in ["0", "four", "", "-1"] {
        let words = format!("SHMEM_N_PES is {n_pes:?}; set it to a number of PEs, at least 1");
        is_refused(&usual(n_pes).output().expect("it starts"), &words);
    }

    // The launcher's number is the one that counts.
    let job = Job::new(this()).n(2).env(CASE, "usual");
    let outcome = job.env("SHMEM_N_PES", "3").run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stdout.matches(" of 2: 1").count(), 2, "{outcome}");
}

fn lines_of_pes_are_not_mixed() {
    let output = run("lines");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for pe in 0..4 {
        let line = format!("PE {pe} ends");
        let count = printed.lines().filter(|printed| *printed == line).count();
        assert_eq!(count, 20, "{printed}");
    }
}

fn the_status_is_that_of_the_first_pe_that_fails() {
    let output = run("panic");
    is_refused(&output, "PE 2: a panic:");
    assert_eq!(output.status.code(), Some(101), "{output:?}");
    assert_eq!(run("exit").status.code(), Some(7));
}

fn an_error_ends_the_job_as_one_of_main_does() {
    let output = run("error");
    is_refused(&output, r#"Error: "the input has no lines""#);
    is_refused(&output, "PE 1: exited with status 1");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(run("no error").status.code(), Some(0));
    assert_eq!(run("status").status.code(), Some(200));
}

fn a_job_that_hangs_explains_itself_on_request_and_goes_on() {
    let mut child = command("hang", this())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    let n_waiting = lines.by_ref().filter(|line| line == WAITS).take(3).count();
    assert_eq!(n_waiting, 3);

    // A PE may not have begun to wait at the first request.
    let is_explained = AtomicBool::new(false);
    let pid = Pid::from_child(&child);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_explained.load(Relaxed) {
                // If the job has ended, the test fails below.
                let _ = kill_process(pid, Signal::QUIT);
                sleep(Duration::from_secs(1));
            }
        });

        let are_waiting = |line: &String| line.starts_with("PEs 0-1 have waited");
        let n_explained = lines.by_ref().filter(are_waiting).take(2).count();
        is_explained.store(true, Relaxed);
        assert_eq!(n_explained, 2);
    });

    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let status = child.wait().expect("it is our child");
    assert_eq!(status.code(), Some(128 + 15), "{status}");
}

fn what_cannot_be_started_is_refused() {
    is_refused(&run("nobody"), "argument n is 0; a job has at least one PE");
    is_refused(&run("twice"), "called for the second time in this process");
    is_refused(&run("nested"), "called for the second time in this process");
    is_refused(
        &run("thread"),
        "called in the thread tests::mine; call it in main, and use shmem::test!",
    );
    is_refused(
        &run("unnamed"),
        "called in the thread without a name; call it in main, and use shmem::test!",
    );

    let copy = std::env::temp_dir().join(format!("launch-{}", std::process::id()));
    fs::copy(this(), &copy).expect("a copy");
    let output = command("deleted", copy).output().expect("it starts");
    is_refused(
        &output,
        "was deleted or replaced since this process has started",
    );
}

fn signals_are_passed_on() {
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2)] {
        let mut job = Endless::start();
        kill_process(Pid::from_child(&job.starter), signal).expect("it runs");
        let status = job.starter.wait().expect("it is our child");
        assert_eq!(status.code(), Some(128 + number), "{status}");
        job.require_no_pe();
    }
}

fn nothing_remains_of_a_program_that_is_killed() {
    let mut job = Endless::start();
    job.starter.kill().expect("it runs");
    let status = job.starter.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(9));
    job.require_no_pe();
}

fn under_a_launcher_it_is_a_pe() {
    let outcome = Job::new(this()).n(4).env(CASE, "work").run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stdout.matches(" of 4: 6").count(), 4, "{outcome}");

    let outcome = Job::new(this()).n(2).env(CASE, "work").run();
    let words = "argument n is 4, but the launcher has started 2 PEs; start 4 PEs, or pass";
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stderr.contains(words), "{outcome}");
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Ok(case) = std::env::var(CASE) {
        return Ok(program(&case).report());
    }

    let tests: [(&str, fn()); 10] = [
        ("a_program_runs_as_a_job", a_program_runs_as_a_job),
        (
            "a_program_without_a_number_has_that_of_the_environment",
            a_program_without_a_number_has_that_of_the_environment,
        ),
        ("lines_of_pes_are_not_mixed", lines_of_pes_are_not_mixed),
        (
            "the_status_is_that_of_the_first_pe_that_fails",
            the_status_is_that_of_the_first_pe_that_fails,
        ),
        (
            "what_cannot_be_started_is_refused",
            what_cannot_be_started_is_refused,
        ),
        (
            "an_error_ends_the_job_as_one_of_main_does",
            an_error_ends_the_job_as_one_of_main_does,
        ),
        (
            "a_job_that_hangs_explains_itself_on_request_and_goes_on",
            a_job_that_hangs_explains_itself_on_request_and_goes_on,
        ),
        ("signals_are_passed_on", signals_are_passed_on),
        (
            "nothing_remains_of_a_program_that_is_killed",
            nothing_remains_of_a_program_that_is_killed,
        ),
        ("under_a_launcher_it_is_a_pe", under_a_launcher_it_is_a_pe),
    ];
    let tests = tests.map(|(name, test)| Test::new(name.to_owned(), test));
    Ok(testkit::run(tests.into()))
}
