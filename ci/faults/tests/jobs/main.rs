//! Jobs of 4 PEs in which one system call fails once. Either the results of the program are right,
//! or one message says what is wrong. Nothing hangs, and nothing is left behind.

mod faults;
mod signals;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use faults::{Fault, OF_OSHRUN, OF_PES};
use rustix::io::Errno;
use tempfile::TempDir;
use testkit::{Job, LIMIT, Outcome, Test, Traces, absent, patient};

const N_PES: usize = 4;

/// The maximum number of jobs for a system call and an error. In each job, a different one of the
/// program's calls fails.
const TURNS: u64 = 24;

const SAMPLE: &str = "the step faults-sample";

const SIGNALS: &[(&str, fn())] = &[
    ("interrupted_pes", signals::interrupted_pes),
    ("interrupted_oshrun", signals::interrupted_oshrun),
    ("stopped_pe", signals::stopped_pe),
    ("killed_injector", signals::killed_injector),
    (
        "killed_in_each_step_of_the_start",
        signals::killed_in_each_step_of_the_start,
    ),
];

/// The nodes of the PEs, and the program in which a call fails.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    environment: &'static [(&'static str, &'static str)],
    /// The job has two hosts, `a` and `b`, each with a daemon on this machine.
    daemons: bool,
    program: &'static str,
    faults: &'static [Fault],
}

const TCP: &[(&str, &str)] = &[("SHMEM_VIRTUAL_NODES", "2"), ("SHMEM_TRANSPORT", "tcp")];

const SETTINGS: &[Setting] = &[
    on_node("node", &[], "exchange", OF_PES),
    on_node("node_oshrun", &[], "oshrun", OF_OSHRUN),
    on_node("tcp", TCP, "exchange", OF_PES),
    Setting {
        daemons: true,
        ..on_node("daemons", &[], "oshrun", OF_OSHRUN)
    },
];

const fn on_node(
    name: &'static str,
    environment: &'static [(&'static str, &'static str)],
    program: &'static str,
    faults: &'static [Fault],
) -> Setting {
    Setting {
        name,
        environment,
        daemons: false,
        program,
        faults,
    }
}

fn main() -> ExitCode {
    let mut tests: Vec<Test> = SIGNALS
        .iter()
        .map(|&(name, test)| {
            Test::new(format!("faults_sample::signals::{name}"), test).ignored(SAMPLE)
        })
        .collect();
    for setting in SETTINGS {
        for &(call, number, errors) in setting.faults {
            let name = |tier| format!("{tier}::{}::{call}", setting.name);
            let sample = move || one_turn(setting, number, errors);
            tests.push(Test::new(name("faults_sample"), sample).ignored(SAMPLE));
            let all = move || every_turn(setting, number, errors);
            tests.push(Test::new(name("faults_at_every_turn"), all).ignored("the step faults"));
        }
    }
    testkit::run(tests)
}

/// Runs a job in which one call in the middle fails with the first of the errors.
fn one_turn(setting: &Setting, call: i64, errors: &[Errno]) {
    let calls = calls_of(setting, call);
    assert_is_harmless(&run(setting, call, errors[0], 1 + calls / 2).0);
}

fn every_turn(setting: &Setting, call: i64, errors: &[Errno]) {
    let calls = calls_of(setting, call);
    let turns = calls.min(TURNS);
    for error in errors {
        for turn in (0..turns).map(|turn| 1 + turn * calls / turns) {
            assert_is_harmless(&run(setting, call, *error, turn).0);
        }
    }
}

/// Returns how often the program makes this call in a job in which none fails.
fn calls_of(setting: &Setting, call: i64) -> u64 {
    let (outcome, calls) = run(setting, call, Errno::INVAL, 0);
    outcome.assert_ok(N_PES);
    assert!(
        outcome.stderr.is_empty(),
        "there is nothing to complain about\n{outcome}"
    );
    if calls == 0 {
        absent(format!("{} does not make this call here", setting.program));
    }
    calls
}

/// Runs a job in which the call number `turn` fails with this error, none if `turn` is 0. Returns
/// the outcome and the number of calls.
fn run(setting: &Setting, call: i64, error: Errno, turn: u64) -> (Outcome, u64) {
    let dir = TempDir::new().expect("a temporary directory");
    let (report, temporary) = (dir.path().join("calls"), dir.path().join("of-the-job"));
    fs::create_dir(&temporary).expect("a directory");
    let numbers = [
        call.to_string(),
        error.raw_os_error().to_string(),
        turn.to_string(),
    ];
    let [call, error, turn] = numbers.each_ref().map(String::as_str);
    let report_name = report.to_str().expect("a plain name");
    let inject = env!("CARGO_BIN_EXE_inject");
    let traces = Traces::now();
    let mut job = Job::new(program())
        .n(N_PES)
        .wrap([inject, call, error, setting.program, turn, report_name])
        .env("TMPDIR", temporary.display());
    for (name, value) in setting.environment {
        job = job.env(name, value);
    }
    if setting.daemons {
        let agent = agent(dir.path());
        job = job.launcher_options(["-H", "a:2,b:2", "--launch-agent", &agent]);
        // A process that waits for a CPU must not seem silent.
        job = job.env("SHMEM_HOST_LIMIT", patient(LIMIT).as_secs());
    }
    let outcome = job.run();
    let mut left = traces.new_since();
    // The job has a temporary directory of its own; files in /tmp are those of other tests.
    left.retain(|name| !name.starts_with("/tmp/"));
    left.extend(names_in(&temporary));
    assert!(
        left.is_empty(),
        "the job left {}\n{outcome}",
        left.join(", ")
    );
    let calls = fs::read_to_string(&report).expect("inject writes its report");
    (outcome, calls.parse().expect("a number"))
}

fn program() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/exchange.c");
    testkit::compile(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &[])
}

/// Returns a launch agent that starts the daemon of any host on this machine.
fn agent(dir: &Path) -> String {
    let file = dir.join("agent");
    fs::write(&file, "#!/bin/sh\nshift\nexec sh -c \"$*\"\n").expect("it can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    file.to_str().expect("a plain name").to_owned()
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("it is there").flatten();
    entries
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Checks that the job has right results, or has failed with one message that ends with more than
/// the kernel's text.
fn assert_is_harmless(outcome: &Outcome) {
    assert!(!outcome.stderr.contains("panicked"), "a panic\n{outcome}");
    if outcome.status.success() {
        return outcome.assert_ok(N_PES);
    }
    // A PE that cannot reach oshrun prints its own message, and oshrun then prints one about the
    // PE.
    let (by_pe, by_oshrun): (Vec<&str>, Vec<&str>) = outcome
        .stderr
        .lines()
        .partition(|line| line.starts_with("shmem_init: "));
    let message = match (&by_pe[..], &by_oshrun[..]) {
        ([message], [_]) => message,
        _ => outcome.one_message(),
    };
    let is_bare = message
        .rsplit_once(" (os error ")
        .is_some_and(|(_, end)| end.len() < 5);
    assert!(!is_bare, "the message has no remedy\n{outcome}");
}
