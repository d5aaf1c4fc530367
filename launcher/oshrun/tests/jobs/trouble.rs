//! Checks that a job ends on all hosts with one message if a process dies or a host is silent.
//!
//! All hosts are this machine, as in `hosts`; ci/scripts/hosts.sh tests several real ones.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::time::Duration;

use rushmem_bootstrap::proto;

use crate::support::{Running, TestAgent, eventually_nothing_left, pids, state};
use rustix::process::{Pid, Signal, kill_process};
use testkit::eventually;

type Stdout = BufReader<ChildStdout>;

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).expect("a process"), signal).expect("it is there");
}

/// Starts a job of one PE on each of three hosts. Returns the job, the processes of its PEs in any
/// order, and its stdout. `before` and `after` surround the PE in the script of a shell.
fn job(
    agent: &TestAgent,
    options: &str,
    [before, after]: [&str; 2],
) -> (Running, Vec<u32>, Stdout) {
    let script = format!(
        "{before} {} init pid barrier sleep:600000 {after}",
        crate::support::pe()
    );

    let mut job = agent
        .job("localhost,b,c", options, &["sh", "-c", &script])
        .start();

    let mut stdout = job.stdout();
    let pes = pids(&mut stdout, 3);
    (job, pes, stdout)
}

/// The shell that oshrun starts becomes the PE.
const PLAIN: [&str; 2] = ["exec", ""];

/// The shell that oshrun starts has the PE as its child.
const WRAPPED: [&str; 2] = ["", "; true"];

/// Returns an agent that sets the variable AT to the name of the host.
fn agent() -> TestAgent {
    TestAgent::new("export AT=$1")
}

/// Returns the daemon on a host.
fn daemon(job: &Running, host: &str) -> u32 {
    let is_daemon = |pid: &u32| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let variable = format!("AT={host}");
        read("cmdline").ends_with(b"oshrun\0--daemon\0")
            && read("environ")
                .split(|byte| *byte == 0)
                .any(|set| set == variable.as_bytes())
    };

    let daemons: Vec<u32> = job.processes().into_iter().filter(is_daemon).collect();
    assert_eq!(daemons.len(), 1, "on host {host}");
    daemons[0]
}

/// Returns the process, its parent, and so on.
fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    std::iter::successors(Some(pid), parent)
}

/// Asserts that the job ends with one message that starts with `begin`, and that no process is
/// left. Returns the message.
#[track_caller]
fn expect_lost(job: Running, status: i32, begin: &str) -> String {
    let mark = job.mark();
    let outcome = job.wait();

    assert_eq!(outcome.status, status, "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(outcome.stderr.starts_with(begin), "{outcome:?}");

    eventually_nothing_left(&mark);
    outcome.stderr
}

#[test]
fn a_killed_pe_ends_the_job_on_all_hosts() {
    let agent = agent();
    for number in 0..3 {
        let (job, pes, _stdout) = job(&agent, "", PLAIN);

        send(pes[number], Signal::KILL);
        let outcome = expect_lost(job, 137, "oshrun: PE ");
        let end = " was killed by SIGKILL\n";
        let pid = format!("(pid {}, host ", pes[number]);
        assert!(
            outcome.contains(&pid) && outcome.ends_with(end),
            "{outcome}"
        );
    }
}

#[test]
fn a_killed_daemon_ends_the_job() {
    let agent = agent();
    for host in ["b", "c"] {
        let (job, _, _stdout) = job(&agent, "", WRAPPED);
        send(daemon(&job, host), Signal::KILL);
        expect_lost(job, 1, &format!("oshrun: host {host} was lost: "));
    }
}

#[test]
fn a_killed_oshrun_leaves_nothing_on_any_host() {
    let agent = agent();
    let (job, _, _stdout) = job(&agent, "", WRAPPED);

    let mark = job.mark();
    job.signal(Signal::KILL);
    assert_eq!(job.wait().status, 137);
    eventually_nothing_left(&mark);
}

#[test]
#[ignore = "half a minute and more; part of `cargo xtask test --full`"]
fn an_oshrun_killed_while_it_starts_leaves_nothing_on_any_host() {
    let agent = agent();

    // Kills oshrun at 20 stages of the start of three daemons, four guards and two processes for
    // each PE.
    for n_processes in 0..20 {
        let job = agent
            .job("a:3,b:3,c:3", "", &["sh", "-c", "sleep 600; true"])
            .start();

        eventually("so much of the job is there", || {
            job.processes().len() >= n_processes
        });

        job.signal(Signal::KILL);
        let mark = job.mark();
        job.wait();
        eventually_nothing_left(&mark);
    }
}

#[test]
fn a_killed_agent_ends_the_job() {
    // Like ssh, this agent runs as long as the daemon, and is its parent.
    let agent =
        TestAgent::new("export AT=$1; shift; sh -c \"$*\" <&3 3<&- & exec 3<&-; wait $!; exit");

    let (job, _, _stdout) = job(&agent, "", WRAPPED);
    let oshrun = job.pid().as_raw_nonzero().get() as u32;
    let way: Vec<u32> = ancestors(daemon(&job, "b"))
        .take_while(|pid| *pid != oshrun)
        .collect();
    assert!(way.len() > 1, "{way:?}");

    send(way[way.len() - 1], Signal::KILL);
    expect_lost(job, 1, "oshrun: host b was lost: ");
}

#[test]
fn a_silent_host_ends_the_job_within_the_limit() {
    let agent = agent();
    let (job, _, _stdout) = job(&agent, "--host-limit 5", WRAPPED);

    send(daemon(&job, "b"), Signal::STOP);
    let begin = "oshrun: host b was lost: it has been silent for 3 s\n";
    expect_lost(job, 1, begin);
}

#[test]
fn a_silent_oshrun_ends_the_job_on_other_hosts() {
    let agent = agent();
    let (job, _, _stdout) = job(&agent, "--host-limit 5", WRAPPED);

    let mark = job.mark();
    let daemons = ["b", "c"].map(|host| daemon(&job, host));

    job.signal(Signal::STOP);
    eventually("its daemons have ended", || {
        daemons.iter().all(|pid| ['X', 'Z'].contains(&state(*pid)))
    });

    job.signal(Signal::CONT);
    let outcome = job.wait();

    assert_eq!(
        (outcome.status, outcome.stderr.lines().count()),
        (1, 1),
        "{outcome:?}"
    );

    let end = ": the host that started this daemon does not answer\n";
    assert!(outcome.stderr.starts_with("oshrun: host "), "{outcome:?}");
    assert!(outcome.stderr.ends_with(end), "{outcome:?}");

    eventually_nothing_left(&mark);
}

/// The groups of the PEs keep a dead process, whose parent has left the group and does not wait for
/// it. So oshrun and the daemon wait longer for them than a host may be silent.
#[test]
fn a_host_that_clears_processes_is_not_silent() {
    let agent = agent();
    let leaves = format!(
        "run:f=$(mktemp -u); {} 'background:exec sleep 600' own_group \"run:touch $f\" sleep:600000 & \
         until [ -e $f ]; do sleep 0.05; done; rm $f",
        crate::support::pe()
    );

    let steps = [&leaves, "init", "barrier", "finalize"];
    let job = agent.steps("localhost,b", "--host-limit 5", &steps).start();
    let mark = job.mark();
    job.wait().expect(0, "");
    eventually_nothing_left(&mark);
}

#[test]
fn a_suspended_job_is_not_lost() {
    let agent = agent();
    let steps = [
        "init", "pid", "barrier", "0?cat", "barrier", "print:on", "finalize",
    ];
    let mut job = agent
        .steps("a,b,c", "--host-limit 5", &steps)
        .input_later()
        .start();

    let mut stdout = job.stdout();
    let pes = pids(&mut stdout, 3);

    job.signal(Signal::TSTP);
    let oshrun = job.pid().as_raw_nonzero().get() as u32;
    eventually("all are stopped", || {
        pes.iter().chain([&oshrun]).all(|pid| state(*pid) == 'T')
    });

    // Longer than a host may be silent.
    std::thread::sleep(Duration::from_millis(4000));
    job.signal(Signal::CONT);
    eventually("all go on", || pes.iter().all(|pid| state(*pid) != 'T'));

    job.end_input();
    assert_eq!(
        stdout
            .lines()
            .map(|line| line.expect("text"))
            .collect::<Vec<_>>(),
        ["on"; 3]
    );

    job.wait().expect(0, "");
}

#[test]
fn signals_reach_all_hosts() {
    let agent = agent();
    let script = "trap 'echo caught; exit 0' USR2; echo ready; sleep 600 & wait";
    let mut job = agent.job("a,b,c", "", &["sh", "-c", script]).start();
    let mut stdout = job.stdout();

    for _ in 0..3 {
        stdout.read_line(&mut String::new()).expect("stdout");
    }

    job.signal(Signal::USR2);
    let lines: Vec<String> = stdout.lines().map(|line| line.expect("text")).collect();
    assert_eq!(lines, ["caught"; 3]);
    job.wait().expect(0, "");

    let (job, _, _stdout) = self::job(&agent, "", PLAIN);
    job.signal(Signal::INT);
    job.wait()
        .expect(130, "oshrun: the job was ended by SIGINT\n");
}

/// Returns a command of a shell that acts as the daemon of a host: it sends the greeting and these
/// messages without their frames, and then waits.
fn daemon_that_sends(messages: &[&[u8]]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut bytes = format!("\noshrun-daemon {version}/{}\n", proto::VERSION).into_bytes();
    for message in messages {
        let nbytes = message.len() as u32 + 1;
        bytes.extend(nbytes.to_le_bytes());
        bytes.push(proto::VERSION);
        bytes.extend(*message);
        bytes.push(b'\n');
    }

    let escapes: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{escapes}'; exec cat > /dev/null")
}

/// Host b has PEs 1 and 2. The first byte of a message is the variant of `HostEvent`.
#[test]
fn what_a_daemon_cannot_mean_ends_the_job() {
    let start_1: &[u8] = &[1, 1, 77];
    let start_2: &[u8] = &[1, 2, 77];
    for (messages, error) in [
        (
            &[&[1, 99, 77][..]][..],
            "it reported on PE 99, but runs PEs 1-2 only",
        ),
        (
            &[&[3, 0, 0, 0]],
            "it reported on PE 0, but runs PEs 1-2 only",
        ),
        (
            &[&[4, 99, 0, 1, 10, 0]],
            "it reported on PE 99, but runs PEs 1-2 only",
        ),
        (
            &[start_1, &[3, 1, 1, 0]],
            "it reported that PE 1 was killed by signal 0, which cannot be",
        ),
        (
            &[start_1, start_2, &[10]],
            "it reported that all PEs have ended, but PE 1 runs",
        ),
        (&[start_1, start_2, &[11]], "it ended before the job"),
        (&[&[77]], "its body is not a known message"),
    ] {
        let agent = TestAgent::new(&daemon_that_sends(messages));
        let steps = ["init", "barrier", "sleep:600000"];
        let job = agent.steps("localhost:1,b:2", "", &steps).start();
        let error = format!("its daemon sent an invalid message: {error}; check that");
        expect_lost(job, 1, &format!("oshrun: host b was lost: {error}"));
    }
}
