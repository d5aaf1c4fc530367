//! `oshrun` over ssh on four hosts in network namespaces (ci/scripts/hosts.sh), whose PEs are
//! connected by TCP: jobs that succeed, and jobs that lose a PE, a daemon, an ssh, oshrun, a host,
//! or the connection between two hosts.
//!
//! These tests are part of `--full`, whose step `hosts` provides an sshd. Without an sshd, or if
//! the user is not root, they are ignored.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::{Job, Running, absent, patient, prefix, program, scenario};

/// The maximum time until nothing is left of a job. The documented time is shorter.
const WITHIN: Duration = Duration::from_secs(40);

/// A process on one of the hosts.
#[derive(Debug)]
struct HostProcess {
    host: String,
    pid: u32,
    command: String,
}

impl HostProcess {
    /// Reads a line of the script: the host, the process number and the command line.
    fn parse(line: &str) -> Option<HostProcess> {
        let mut words = line.splitn(3, ' ');
        Some(HostProcess {
            host: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            command: words.next()?.trim().to_owned(),
        })
    }
}

/// Four hosts, h1 to h4, until this is dropped.
struct SshHosts {
    dir: PathBuf,
}

impl SshHosts {
    /// Starts the hosts. Ignores the test if there is no sshd or the user is not root.
    fn up(test: &str) -> SshHosts {
        if !rustix::process::geteuid().is_root() {
            absent("hosts in namespaces need root");
        }

        let sshd = std::env::var_os("SSHD").map(PathBuf::from);
        let system = ["/usr/sbin/sshd", "/sbin/sshd"]
            .into_iter()
            .map(PathBuf::from);
        if !sshd.into_iter().chain(system).any(|file| file.exists()) {
            absent("there is no sshd");
        }

        let dir = std::env::temp_dir().join(format!("rm{}{test}", std::process::id()));
        let hosts = SshHosts { dir };
        // A daemon must not keep the test's output open.
        let up = hosts.command("up").stdout(Stdio::null()).status();
        assert!(up.expect("a script of ours").success());

        hosts
    }

    /// Returns an action of the script for these hosts.
    fn command(&self, action: &str) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/scripts/hosts.sh");
        let mut command = Command::new("timeout");
        command
            .args(["-k", "5", "180"])
            .arg(script)
            .arg(action)
            .arg(&self.dir)
            .stdin(Stdio::null());
        command
    }

    /// Runs an action of the script, and returns what it prints.
    fn script(&self, action: &str, arguments: &[&str]) -> String {
        let output = self.command(action).args(arguments).output();
        let output = output.expect("a script of ours");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns a job that oshrun starts on h1.
    fn job(&self, source: &Path, options: &[&str]) -> Job {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/scripts/hosts.sh");
        let script = script.display().to_string();
        let dir = self.dir.display().to_string();
        let oshrun = prefix().join("bin/oshrun").display().to_string();
        let agent = format!("ssh -F {dir}/ssh_config -T -x -o BatchMode=yes");

        Job::direct(source)
            .wrap([
                script.as_str(),
                "on",
                &dir,
                "1",
                &oshrun,
                "--launch-agent",
                &agent,
            ])
            .wrap(options.iter().copied())
            .env("SHMEM_SYMMETRIC_SIZE", "64m")
    }

    /// Returns the processes on the hosts, without those of sshd, which may end a moment later than
    /// its session.
    fn processes(&self) -> Vec<HostProcess> {
        let mut processes = Vec::new();
        for line in self.script("left", &[]).lines() {
            if let Some(process) = HostProcess::parse(line)
                && !process.command.is_empty()
                && !process.command.starts_with("sshd: ")
            {
                processes.push(process);
            }
        }
        processes
    }

    /// Returns the process number of the last started process on a host whose command line `is`
    /// accepts.
    fn find(&self, host: &str, is: fn(&str) -> bool) -> u32 {
        let all = self.processes();
        let found = all
            .iter()
            .filter(|process| process.host == host && is(&process.command))
            .map(|process| process.pid);

        // A shell or `timeout` that has started it has a lower number.
        found
            .max()
            .unwrap_or_else(|| panic!("not on {host}: {all:?}"))
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        let since = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            let is_late = since.elapsed() >= patient(WITHIN);
            assert!(!is_late, "left on the hosts: {left:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Starts a job with a PE on each host, which does not end by itself, and waits until it runs.
    fn endless(&self, options: &[&str]) -> Running {
        let options = [&["-H", "h1,h2,h3,h4"], options].concat();
        let mut running = self.job(&scenario!("endless.c"), &options).start();
        running.wait_for_line("n_pes 4");
        running
    }

    /// Asserts that the job ends in time with one message that has these words, and that nothing is
    /// left.
    #[track_caller]
    fn assert_lost(&self, running: Running, trouble: &str, words: &[&str]) {
        let since = Instant::now();
        let outcome = running.finish();
        let elapsed = since.elapsed();
        println!("{trouble}: ended after {:.1} s", elapsed.as_secs_f64());
        assert!(elapsed < patient(WITHIN), "{trouble}: {outcome}");

        let messages: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(messages.len(), 1, "{trouble}: {outcome}");
        for word in words {
            assert!(messages[0].contains(word), "{trouble}: {outcome}");
        }
        self.assert_nothing_left();
    }
}

impl Drop for SshHosts {
    fn drop(&mut self) {
        self.script("down", &[]);
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a process"), Signal::KILL).expect("it is there");
}

fn is_pe(command: &str) -> bool {
    command.contains("endless") && !command.contains("oshrun")
}

fn is_daemon(command: &str) -> bool {
    command.ends_with("oshrun --daemon")
}

fn over_ssh_programs_run_on_four_hosts() {
    let hosts = SshHosts::up("p");
    for source in [
        "rma.c",
        "amo.c",
        "signal.c",
        "split_2d.c",
        "collectives_team.c",
        "lock.c",
    ] {
        let program = program!(source);
        hosts
            .job(&program, &["-H", "h1,h2,h3,h4"])
            .run()
            .assert_ok(4);
        hosts
            .job(&program, &["-H", "h2:2,h3:2,h4:2"])
            .run()
            .assert_ok(6);
    }

    hosts.assert_nothing_left();
}

fn over_ssh_what_dies_is_named_and_nothing_is_left() {
    let hosts = SshHosts::up("k");

    let running = hosts.endless(&[]);
    kill(hosts.find("h3", is_pe));
    hosts.assert_lost(
        running,
        "a killed PE",
        &["PE 2 (pid ", "host h3", "SIGKILL"],
    );

    let running = hosts.endless(&[]);
    kill(hosts.find("h3", is_daemon));
    hosts.assert_lost(running, "a killed daemon", &["host h3 was lost", "ssh"]);

    let running = hosts.endless(&[]);
    kill(hosts.find("h1", |command| {
        command.starts_with("ssh ") && command.contains(" h3 ")
    }));
    hosts.assert_lost(running, "a killed ssh", &["host h3 was lost"]);

    let running = hosts.endless(&[]);
    kill(hosts.find("h1", |command| command.contains("oshrun --launch-agent")));
    let since = Instant::now();
    running.finish();
    hosts.assert_nothing_left();

    println!(
        "a killed oshrun: nothing left after {:.1} s",
        since.elapsed().as_secs_f64()
    );
}

fn over_ssh_hosts_that_fall_silent_are_named_and_nothing_is_left() {
    let hosts = SshHosts::up("s");

    let running = hosts.endless(&[]);
    hosts.script("away", &["3"]);
    hosts.assert_lost(running, "a host that is away", &["h3", "lost"]);
    hosts.script("join", &[]);

    // oshrun on h1 reaches both.
    let running = hosts.endless(&[]);
    hosts.script("part", &["2", "3"]);
    hosts.assert_lost(running, "a partition", &["was lost", "h2", "h3"]);

    hosts.script("join", &[]);
    let program = program!("rma.c");
    hosts
        .job(&program, &["-H", "h1,h2,h3,h4"])
        .run()
        .assert_ok(4);
    hosts.assert_nothing_left();
}

fn over_ssh_hosts_that_cannot_be_reached_are_named() {
    let hosts = SshHosts::up("n");
    let program = program!("rma.c");

    let unknown = hosts.job(&program, &["-H", "h1,h9"]);
    unknown.run().assert_fails(&[
        "host h9",
        "ssh exited with status 255",
        "check that ssh h9 true works",
    ]);

    let without_oshrun = hosts.job(&program, &["-H", "h1,h2", "--prefix", "/no/where"]);
    without_oshrun
        .run()
        .assert_fails(&["host h2", "/no/where/bin/oshrun", "--prefix"]);

    let without_program = hosts.job(&program, &["-H", "h2,h3", "/no/such/program"]);
    without_program
        .run()
        .assert_fails(&["cannot run /no/such/program"]);

    hosts.assert_nothing_left();
}

testkit::module_tests! {
    ; ignored "part of `cargo xtask test --full`" =>
    over_ssh_programs_run_on_four_hosts,
    over_ssh_what_dies_is_named_and_nothing_is_left,
    over_ssh_hosts_that_fall_silent_are_named_and_nothing_is_left,
    over_ssh_hosts_that_cannot_be_reached_are_named,
}
