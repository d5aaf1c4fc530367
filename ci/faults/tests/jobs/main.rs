//! Jobs of 4 PEs in which one system call fails once. Either the results of the program are right,
//! or one message says what is wrong. Nothing hangs, and nothing is left behind.

mod faults;
mod signals;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use faults::{FailingCall, OF_OSHRUN, OF_PES};
use rustix::io::Errno;
use tempfile::TempDir;
use testkit::{Job, LIMIT, Outcome, Test, Traces, absent, patient};

const N_PES: usize = 4;

/// The maximum number of jobs for a system call and an error. In each job, a different one of the
/// program's calls fails.
const TURNS: u64 = 24;

/// The step of the tests that runs a job for each call and setting, and that which runs all.
const SAMPLE: &str = "the step faults-sample";
const ALL: &str = "the step faults";

/// The tests of jobs whose calls are not made to fail.
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
    calls: &'static [FailingCall],
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
    calls: &'static [FailingCall],
) -> Setting {
    Setting {
        name,
        environment,
        daemons: false,
        program,
        calls,
    }
}

fn main() -> ExitCode {
    let mut tests = Vec::new();
    for &(name, test) in SIGNALS {
        let name = format!("faults_sample::signals::{name}");
        tests.push(Test::new(name, test).ignored(SAMPLE));
    }

    for setting in SETTINGS {
        for call in setting.calls {
            let name = format!("faults_sample::{}::{}", setting.name, call.name);
            let sample = Test::new(name, || fail_in_the_middle(setting, call));
            tests.push(sample.ignored(SAMPLE));

            let name = format!("faults_at_every_turn::{}::{}", setting.name, call.name);
            let all = Test::new(name, || fail_at_many_turns(setting, call));
            tests.push(all.ignored(ALL));
        }
    }
    testkit::run(tests)
}

/// Runs a job in which one call in the middle fails with the first of the errors.
fn fail_in_the_middle(setting: &Setting, call: &FailingCall) {
    let n_calls = count(setting, call);
    let turn = 1 + n_calls / 2;
    assert_is_harmless(&run(setting, call, call.errors[0], turn).outcome);
}

/// Runs jobs in which a call fails with each of the errors, at up to [`TURNS`] turns.
fn fail_at_many_turns(setting: &Setting, call: &FailingCall) {
    let n_calls = count(setting, call);
    let n_turns = n_calls.min(TURNS);
    for &error in call.errors {
        for i in 0..n_turns {
            let turn = 1 + i * n_calls / n_turns;
            assert_is_harmless(&run(setting, call, error, turn).outcome);
        }
    }
}

/// Returns how often the program makes this call in a job in which none fails. The test is ignored
/// if it never does.
fn count(setting: &Setting, call: &FailingCall) -> u64 {
    // The error is not used, since no call has the number 0.
    let FaultyJob { outcome, n_calls } = run(setting, call, Errno::INVAL, 0);
    outcome.assert_ok(N_PES);
    assert!(
        outcome.stderr.is_empty(),
        "there is nothing to complain about\n{outcome}"
    );
    if n_calls == 0 {
        absent(format!("{} does not make this call here", setting.program));
    }
    n_calls
}

/// A job that has ended, and how often its program has made the call.
struct FaultyJob {
    outcome: Outcome,
    n_calls: u64,
}

/// Runs a job in which the call number `turn` fails with this error, none if `turn` is 0.
fn run(setting: &Setting, call: &FailingCall, error: Errno, turn: u64) -> FaultyJob {
    let dir = TempDir::new().expect("a temporary directory");
    let report = dir.path().join("calls");
    let temporary = dir.path().join("of-the-job");
    fs::create_dir(&temporary).expect("a directory");

    let inject = [
        env!("CARGO_BIN_EXE_inject"),
        &call.number.to_string(),
        &error.raw_os_error().to_string(),
        setting.program,
        &turn.to_string(),
        report.to_str().expect("a plain name"),
    ];
    let traces = Traces::now(&temporary);
    let mut job = Job::new(program())
        .n(N_PES)
        .wrap(inject)
        .env("TMPDIR", temporary.display())
        .envs(setting.environment);
    if setting.daemons {
        let agent = agent(dir.path());
        job = job.launcher_options(["-H", "a:2,b:2", "--launch-agent", &agent]);
        // A process that waits for a CPU must not seem silent.
        job = job.env("SHMEM_HOST_LIMIT", patient(LIMIT).as_secs());
    }
    let outcome = job.run();

    let left = traces.new_since();
    assert!(
        left.is_empty(),
        "the job left {}\n{outcome}",
        left.join(", ")
    );

    let n_calls = fs::read_to_string(&report).expect("inject writes its report");
    FaultyJob {
        outcome,
        n_calls: n_calls.parse().expect("a number"),
    }
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
    let message = if by_pe.len() == 1 && by_oshrun.len() == 1 {
        by_pe[0]
    } else {
        outcome.one_message()
    };

    // After the kernel's text and the number, such as `12)`, a remedy must follow.
    let is_bare = message
        .rsplit_once(" (os error ")
        .is_some_and(|(_, end)| end.len() < 5);
    assert!(!is_bare, "the message has no remedy\n{outcome}");
}
