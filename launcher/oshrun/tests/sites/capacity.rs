//! A job that exceeds the capacity of this host is refused before its first PE starts. At the limit
//! of processes, oshrun ends with one message.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Outcome, TestAgent, TestJob, oshrun, pe};
use testkit::absent;

/// Returns a user ID without processes, new for each job: the processes of another test or of the
/// job before would count until they are reaped.
fn new_user() -> String {
    static N_USERS: AtomicU32 = AtomicU32::new(0);
    let user = process::id() * 131 + N_USERS.fetch_add(1, Ordering::Relaxed);
    (20_000 + user % 40_000).to_string()
}

/// Makes a job of `oshrun` with these arguments, run by a user with a limit of processes. For root,
/// that is a new user, otherwise the user who runs the tests, whose processes count.
fn with_processes(limit: u32, oshrun: &str, words: &[&str]) -> TestJob {
    let limit = format!("--nproc={limit}");
    let mut command = vec![limit.as_str()];

    let user = new_user();
    if rustix::process::getuid().is_root() {
        let as_user = ["--reuid", &user, "--regid", &user, "--clear-groups"];
        // Agents start oshrun by its path. The home directory of root is closed to other users.
        let finds = Command::new("setpriv")
            .args(as_user)
            .args(["test", "-x", oshrun])
            .status();
        if !finds.is_ok_and(|status| status.success()) {
            absent(format!(
                "an ordinary user may not run {oshrun}, where this checkout is"
            ));
        }

        command.push("setpriv");
        command.extend(as_user);
    }

    TestJob::by("prlimit", &[&command[..], &[oshrun], words].concat())
}

/// Asserts that oshrun refused the job with one message that contains these words.
#[track_caller]
fn expect_refused(outcome: Outcome, words: &[&str]) {
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (1, ""),
        "{outcome:?}"
    );

    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    let is_there = |word: &&str| outcome.stderr.contains(word);
    assert!(words.iter().all(is_there), "{outcome:?}");

    outcome.expect_nothing_left();
}

fn more_pes_than_the_user_may_have_processes_are_refused() {
    let pes = "oshrun: 200 PEs on this host need at least 203 processes and threads, but the limit of this user's \
               processes (RLIMIT_NPROC) leaves room for ";
    let outcome = with_processes(60, oshrun(), &["-n", "200", "echo", "started"]).run();
    expect_refused(outcome, &[pes, "(limit 60, in use ", "ulimit -u"]);

    let agent = TestAgent::new("");
    let words = [
        "--launch-agent",
        agent.path(),
        "-H",
        "a:200",
        "echo",
        "started",
    ];
    expect_refused(
        with_processes(60, oshrun(), &words).run(),
        &["host a: 200 PEs", "ulimit -u"],
    );
}

/// Tries limits at which different processes and threads fail to start: a PE, the guard, an agent
/// or a daemon.
fn at_the_limit_of_processes_a_job_ends_with_one_message() {
    let agent = TestAgent::new("");
    let pe = pe();

    let steps = [pe.as_str(), "init", "barrier", "finalize"];
    let here = ["-n", "4"];
    let hosts = ["--launch-agent", agent.path(), "-H", "localhost:2,b:2"];

    for words in [&here[..], &hosts] {
        let mut n_failed = 0;
        for limit in 1..40 {
            let outcome = with_processes(limit, oshrun(), &[words, &steps].concat()).run();
            if outcome.status != 0 {
                n_failed += 1;

                let message = &outcome.stderr;
                assert!(!message.contains("panicked"), "{limit}: {outcome:?}");
                let from_oshrun = message.lines().filter(|line| line.starts_with("oshrun: "));
                assert_eq!(from_oshrun.count(), 1, "{limit}: {outcome:?}");
            }

            crate::support::eventually_nothing_left(&outcome.mark());
        }

        assert!(n_failed > 0);
    }
}

/// A control group for processes, of version 1 or 2, that is removed at the end.
struct Group(PathBuf);

impl Group {
    /// Creates a control group. Returns `None` if that is not possible on this machine or for this
    /// user.
    fn with_processes(limit: u32) -> Option<Group> {
        let name = format!("oshrun-test-{}-{limit}", process::id());
        let roots = [
            "/sys/fs/cgroup/pids",
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/unified",
        ];

        for root in roots {
            let dir = Path::new(root).join(&name);
            if fs::create_dir(&dir).is_err() {
                continue;
            }

            let group = Group(dir);
            if fs::write(group.0.join("pids.max"), limit.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }

    fn job(&self, words: &str) -> TestJob {
        let procs = self.0.join("cgroup.procs");
        let script = format!("echo $$ > {} && exec {} {words}", procs.display(), oshrun());
        TestJob::by("sh", &["-c", &script])
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn more_pes_than_a_control_group_holds_are_refused() {
    let Some(group) = Group::with_processes(60) else {
        absent("no control group for processes can be made here");
    };

    let outcome = group.job("-n 200 echo started").run();
    let bound = format!("{}/pids.max leaves room for ", group.0.display());
    expect_refused(
        outcome,
        &[
            "oshrun: 200 PEs on this host need at least 203 ",
            &bound,
            "(limit 60, in use ",
        ],
    );
    expect_refused(
        group.job("-n 100000 echo started").run(),
        &["oshrun: 100000 PEs on this host need "],
    );

    group.job("-n 4 true").run().expect(0, "");

    // Enough for the minimum that is checked, but not for what the job needs later.
    let outcome = group
        .job("-n 20 sh -c 'sleep 600 & sleep 600 & sleep 600 & wait'")
        .run();

    assert_ne!(outcome.status, 0, "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome.expect_nothing_left();
}

fn more_pes_than_the_memory_holds_are_refused() {
    let outcome = TestJob::new(&["-n", "4000000000", "echo", "started"]).run();
    expect_refused(
        outcome,
        &["oshrun: 4000000000 PEs on this host need at least "],
    );
}

testkit::module_tests! {
    more_pes_than_the_user_may_have_processes_are_refused,
    at_the_limit_of_processes_a_job_ends_with_one_message,
    more_pes_than_a_control_group_holds_are_refused,
    more_pes_than_the_memory_holds_are_refused,
}
