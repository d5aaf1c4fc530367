//! `--retries` and `--spare`: a job that has lost a host starts again, and nothing of the failed
//! try stays.
//!
//! Hosts are this machine, as in `hosts`. PEs find the name of theirs in `AT`.

mod support;

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::{Agent, Job, Running, eventually_nothing_left, pe, pids, state, tempfile};

/// An agent that runs `script`, which knows the host as `$AT`.
fn agent(script: &str) -> Agent {
    Agent::new(&format!("export AT=$1; {script}"))
}

/// A job of which one try runs one list of steps, and all later ones another.
fn tries(agent: &Agent, hosts: &str, options: &str, first: &str, later: &str) -> Job {
    let pe = pe();
    let script =
        format!("if [ $SHMEM_TRY = 1 ]; then exec {pe} {first}; else exec {pe} {later}; fi");
    agent.job(hosts, options, &["sh", "-c", &script])
}

/// Steps in which this machine's PE ends the job by the last one once it has input, and the PE of
/// another host stays.
fn ends_by(abort: &str) -> String {
    format!(
        "init barrier pid 'run:test -n \"$AT\" || read line' \
         'run:test -z \"$AT\" || sleep 600' '{abort}'"
    )
}

/// Steps that say on which host and in which try the PE is.
const PLACE: &str = "init who 'run:echo try $SHMEM_TRY at ${AT:-here}' finalize";

/// The daemon on a host.
fn daemon(job: &Running, host: &str) -> Pid {
    process(job, host, "oshrun\0--daemon")
}

/// The process on a host whose command line ends so.
fn process(job: &Running, host: &str, command: &str) -> Pid {
    let end = format!("{command}\0");
    let is_it = |pid: &u32| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let at = format!("AT={host}");
        read("cmdline").ends_with(end.as_bytes())
            && read("environ").split(|byte| *byte == 0).any(|set| set == at.as_bytes())
    };
    let found: Vec<u32> = job.processes().into_iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{command} on host {host}");
    Pid::from_raw(found[0] as i32).expect("a process")
}

/// Starts a job whose first try never ends, on this machine and the hosts b and c. Returns the
/// PEs of that try.
fn start(
    agent: &Agent,
    options: &str,
) -> (Running, Vec<u32>, BufReader<ChildStdout>, BufReader<ChildStderr>) {
    let options = format!("--host-limit 5 {options}");
    // As a killed process of libfabric leaves it.
    let leftover = "'run:: > /dev/shm/$PPID:$(id -u):0'";
    let first = format!("init {leftover} pid barrier sleep:600000");
    let mut job = tries(agent, "localhost,b,c", &options, &first, PLACE).start();
    let mut stdout = job.stdout();
    let stderr = BufReader::new(job.stderr());
    let pes = pids(&mut stdout, 3);
    pes.iter().for_each(|pe| assert!(leftover_of(*pe).exists()));
    (job, pes, stdout, stderr)
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("text");
    line
}

/// The rest of a stream, in a fixed order.
fn rest(mut reader: impl Read) -> Vec<String> {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines.sort_unstable();
    lines
}

fn leftover_of(pe: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/{pe}:{}:0", rustix::process::getuid().as_raw()))
}

/// Asserts that nothing is left of the PEs of a try.
#[track_caller]
fn assert_gone(pes: &[u32]) {
    for pe in pes {
        assert_eq!(state(*pe), 'X', "process {pe}");
        assert!(!leftover_of(*pe).exists(), "of process {pe}");
    }
}

#[test]
fn a_spare_host_takes_the_place_of_a_lost_one() {
    for (options, message, places) in [
        (
            "--retries 2 --spare d",
            "oshrun: starting again with d instead of b: try 2 of 3\n",
            ["try 2 at c", "try 2 at d", "try 2 at here"],
        ),
        // c is behind b, and what runs there ends before it is used again.
        (
            "--retries 1 --fan-out 1",
            "oshrun: starting again without b: try 2 of 2\n",
            ["try 2 at c", "try 2 at here", "try 2 at here"],
        ),
    ] {
        let agent = agent("");
        let (job, pes, stdout, mut stderr) = start(&agent, options);
        kill_process(daemon(&job, "b"), Signal::KILL).expect("it is there");
        let lost = line(&mut stderr);
        assert!(lost.starts_with("oshrun: host b") && lost.contains(" was lost: "), "{lost}");
        assert_eq!(line(&mut stderr), message);
        assert_gone(&pes);
        let lines = rest(stdout);
        assert_eq!(lines[3..], places, "{lines:?}");
        assert!(lines[0].starts_with("PE 0 of 3, 0 of its node"), "{lines:?}");
        assert_eq!(rest(stderr), [""; 0]);
        job.wait().expect(0, "");
    }
}

#[test]
fn a_host_that_learns_late_of_its_loss_has_ended_its_pes() {
    // As a network that fails in one direction: what kills the agent does not reach the daemon.
    let agent = agent(
        "if [ $AT = b ]; then shift; setsid sh -c \"(cat; sleep 2) | $* | tee -i\" <&3 3<&- & exec 3<&-; wait $!; exit; fi",
    );
    let (job, pes, stdout, mut stderr) = start(&agent, "--retries 1 --spare d");
    let relay = process(&job, "b", "tee\0-i");
    kill_process(relay, Signal::STOP).expect("it is there");
    assert_eq!(line(&mut stderr), "oshrun: host b was lost: it has been silent for 3 s\n");
    assert_eq!(line(&mut stderr), "oshrun: starting again with d instead of b: try 2 of 2\n");
    assert_gone(&pes);
    kill_process(relay, Signal::KILL).expect("it is there");
    assert_eq!(rest(stdout)[3..], ["try 2 at c", "try 2 at d", "try 2 at here"]);
    job.wait().expect(0, "");
}

#[test]
fn a_pe_that_notices_the_loss_first_does_not_prevent_another_try() {
    let agent = agent("");
    let steps = ends_by("abort_after_loss:1:PE 1 was lost");
    let options = "--host-limit 5 --retries 1 --spare c";
    let mut job = tries(&agent, "localhost,b", options, &steps, PLACE).input_later().start();
    let mut stdout = job.stdout();
    pids(&mut stdout, 2);
    kill_process(daemon(&job, "b"), Signal::STOP).expect("it is there");
    job.input("now\n");
    assert_eq!(rest(stdout)[2..], ["try 2 at c", "try 2 at here"]);
    let outcome = job.wait();
    let again = "oshrun: starting again with c instead of b: try 2 of 2; PE 0 gets only the \
                 rest of the input\n";
    let first = outcome.stderr.strip_suffix(again).unwrap_or_else(|| panic!("{outcome:?}"));
    // On a busy machine, the message of oshrun may come first.
    assert!(first == "PE 1 was lost\n" || first.starts_with("oshrun: host b "), "{outcome:?}");
    assert_eq!(outcome.status, 0);
}

#[test]
fn a_pe_that_fails_by_itself_prevents_another_try_although_a_host_is_lost_then() {
    let agent = agent("");
    let options = "--retries 1 --spare c";
    let steps = ends_by("abort:4:no heap");
    let mut job = tries(&agent, "localhost,b", options, &steps, PLACE).input_later().start();
    let mut stdout = job.stdout();
    pids(&mut stdout, 2);
    let daemon = daemon(&job, "b");
    // The job cannot end before it is killed.
    kill_process(daemon, Signal::STOP).expect("it is there");
    job.input("now\n");
    let mut stderr = BufReader::new(job.stderr());
    assert_eq!(line(&mut stderr), "no heap\n");
    kill_process(daemon, Signal::KILL).expect("it is there");
    let (more, mark) = (rest(stderr), job.mark());
    assert_eq!(job.wait().status, 4, "{more:?}");
    assert_eq!(rest(stdout), [""; 0], "{more:?}");
    eventually_nothing_left(&mark);
}

#[test]
fn a_host_that_cannot_be_reached_is_replaced_as_often_as_permitted() {
    let refusing = |hosts: &str| agent(&format!("case $AT in {hosts}) exit 255 ;; esac"));
    let run = |bad: &str, hosts: &str, options: &str| {
        let agent = refusing(bad);
        let outcome = tries(&agent, hosts, options, PLACE, PLACE).run().expect_nothing_left();
        let file = agent.path().rsplit('/').next().expect("a name");
        let stderr = outcome.stderr.replace(file, "AGENT");
        (outcome.status, stderr, rest(outcome.stdout.as_bytes()).join("; "))
    };
    let refused = |host: &str| {
        format!("oshrun: cannot start the PEs of host {host}: AGENT exited with status 255\n")
    };
    let (status, stderr, stdout) = run("b|d", "localhost:1,b:1", "--retries 2 --spare d,e");
    let again = [
        "oshrun: starting again with d instead of b: try 2 of 3\n",
        "oshrun: starting again with e instead of d: try 3 of 3\n",
    ];
    assert_eq!(stderr, [&refused("b"), again[0], &refused("d"), again[1]].concat());
    assert!(stdout.ends_with("try 3 at e; try 3 at here"), "{stdout}");
    assert_eq!(status, 0);

    // The last try fails, too.
    let (status, stderr, stdout) = run("b|d", "localhost:1,b:1", "--retries 1 --spare d,e");
    let again = "oshrun: starting again with d instead of b: try 2 of 2\n";
    assert_eq!((status, stderr), (1, [&refused("b"), again, &refused("d")].concat()), "{stdout}");

    // The last hosts of the list are the spare ones.
    let (status, stderr, _) = run("a", "a:2,b:2,c:2", "--retries 1 --spare 1");
    let again = "oshrun: starting again with c instead of a: try 2 of 2\n";
    assert_eq!((status, stderr), (0, refused("a") + again));

    for (bad, hosts, why) in [
        ("b", "b", "b: no host is left\n"),
        (
            "b",
            "localhost:2,b:2",
            "b: 4 PEs do not fit the 2 slots of the hosts; give the hosts more slots, or start fewer PEs\n",
        ),
    ] {
        let (status, stderr, _) = run(bad, hosts, "--retries 3");
        let end = format!("oshrun: cannot start again without {why}");
        assert_eq!((status, stderr), (1, refused("b") + &end));
    }
}

#[test]
fn a_job_that_fails_by_itself_is_not_started_again() {
    let agent = agent("");
    let run = |options: &str, steps: &[&str]| {
        let options = format!("--retries 3 --spare c {options}");
        agent.steps("localhost,b", &options, &[&["0?print:once"], steps].concat()).run()
    };
    let message =
        "oshrun: PE 0 (pid PID, host localhost) exited with status 3 before shmem_finalize\n";
    let exits = ["init", "barrier", "run:test -z \"$AT\" || sleep 600", "exit:3"];
    assert_eq!(run("", &exits).expect(3, message).sorted(), ["once"; 2]);
    run("", &["init", "barrier", "abort:4:no heap"]).expect(4, "no heap\n");
    run("", &["init", "barrier", "global_exit:5"]).expect(5, "");
    let late = run("--timeout 1", &["init", "sleep:600000"]);
    assert_eq!((late.status, late.stdout.matches("once").count()), (124, 2), "{late:?}");
    let missing = "oshrun: host b: the program no-such-program was not found in PATH\n";
    agent.job("b", "--retries 3 --spare c", &["no-such-program"]).run().expect(127, missing);
}

#[test]
fn a_user_who_ends_the_job_is_not_contradicted() {
    let agent = agent("");
    let (job, pes, stdout, mut stderr) = start(&agent, "--retries 2 --spare d");
    kill_process(daemon(&job, "b"), Signal::KILL).expect("it is there");
    line(&mut stderr);
    // oshrun waits until nothing can run on host b any more.
    job.signal(Signal::INT);
    let mark = job.mark();
    assert_eq!((rest(stderr), rest(stdout)), (vec![], vec![]));
    let status = job.wait().status;
    assert!([1, 130].contains(&status), "{status}");
    eventually_nothing_left(&mark);
    assert_gone(&pes);

    // PEs that have received the signal may take their time.
    let script = "trap 'echo pid 1' TERM; echo pid $$; while :; do sleep 1; done";
    let options = "--retries 2 --spare d";
    let mut job = agent.job("localhost,b", options, &["sh", "-c", script]).start();
    let mut stdout = job.stdout();
    pids(&mut stdout, 2);
    job.signal(Signal::TERM);
    pids(&mut stdout, 2);
    kill_process(daemon(&job, "b"), Signal::KILL).expect("it is there");
    let outcome = job.wait();
    let is_own = |line: &&str| line.starts_with("oshrun: ");
    let messages: Vec<&str> = outcome.stderr.lines().filter(is_own).collect();
    assert_eq!((outcome.status, messages.len()), (1, 1), "{outcome:?}");
}

#[test]
fn each_try_receives_a_file_from_its_place() {
    let agent = agent("");
    for hosts in ["localhost,b", "c,b"] {
        let options = "--host-limit 5 --retries 1 --spare d";
        let (first, later) = ("init cat barrier pid sleep:600000", "init cat finalize");
        let mut file = tempfile("before\none\ntwo\n");
        file.seek(SeekFrom::Start(7)).expect("a file");
        let mut job = tries(&agent, hosts, options, first, later).start_with(
            file.into(),
            Stdio::piped(),
            Stdio::piped(),
        );
        let mut stdout = job.stdout();
        assert_eq!([line(&mut stdout), line(&mut stdout)], ["one\n", "two\n"], "{hosts}");
        pids(&mut stdout, 2);
        kill_process(daemon(&job, "b"), Signal::KILL).expect("it is there");
        assert_eq!(rest(stdout), ["one", "two"], "{hosts}");
        let outcome = job.wait();
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr.ends_with("with d instead of b: try 2 of 2\n"), "{outcome:?}");
    }
}
