//! Support for the tests of oshrun: command lines, the program `pe`, and expectations.
#![allow(dead_code)] // Each test file uses its part.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use testkit::{LIMIT, Started, TestMark, absent, patient};

/// Returns the executable of oshrun.
pub fn oshrun() -> &'static str {
    env!("CARGO_BIN_EXE_oshrun")
}

/// Returns the program `pe`, which performs steps.
pub fn pe() -> String {
    let dir = PathBuf::from(oshrun())
        .parent()
        .expect("a directory")
        .join("examples/pe");

    assert!(
        dir.exists(),
        "{} is not built: run cargo test -p oshrun",
        dir.display()
    );
    dir.to_str().expect("plain names").to_string()
}

/// A job that is being configured.
pub struct TestJob {
    command: Command,
    input: Option<Vec<u8>>,
}

/// A job that runs.
pub struct Running(Started);

/// The outcome of a job.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status, or 128 + signal.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    mark: TestMark,
}

impl TestJob {
    /// Makes a job of `oshrun` with these arguments.
    pub fn new(words: &[&str]) -> TestJob {
        TestJob::by(oshrun(), words)
    }

    /// Makes a job of `oshrun -n N pe STEPS`.
    pub fn steps(n_pes: u32, steps: &[&str]) -> TestJob {
        let n_pes = n_pes.to_string();
        let pe = pe();
        TestJob::new(&[&["-n", &n_pes, &pe], steps].concat())
    }

    /// Makes a job whose PEs are shells that run the command `shell` first, such as `trap`, and
    /// then execute `pe`.
    pub fn steps_after(n_pes: u32, shell: &str, steps: &[&str]) -> TestJob {
        let n_pes = n_pes.to_string();
        let pe = pe();
        let script = format!("{shell}; exec \"$@\"");
        TestJob::new(&[&["-n", &n_pes, "sh", "-c", &script, "sh", &pe], steps].concat())
    }

    /// Makes a job of another program that starts oshrun.
    pub fn by(program: &str, words: &[&str]) -> TestJob {
        // Signals that a background job ignores would be inherited as ignored.
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .arg(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());

        for (name, _) in std::env::vars() {
            if name.starts_with("RUSHMEM_") || name.starts_with("PMI") || name.starts_with("SLURM_")
            {
                command.env_remove(name);
            }
        }

        TestJob {
            command,
            input: None,
        }
    }

    pub fn env(mut self, name: &str, value: &str) -> TestJob {
        self.command.env(name, value);
        self
    }

    pub fn input(mut self, text: &str) -> TestJob {
        self.input = Some(text.into());
        self.command.stdin(Stdio::piped());
        self
    }

    /// Keeps the job's stdin open until [`Running::end_input`].
    pub fn input_later(mut self) -> TestJob {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Starts the job. Writes the text of [`TestJob::input`], if any, and then closes its stdin.
    pub fn start(mut self) -> Running {
        let mut started = Started::new(&mut self.command, LIMIT);
        if let Some(input) = self.input {
            let stdin = started.child().stdin.take();
            stdin.expect("piped").write_all(&input).expect("a reader");
        }

        Running(started)
    }

    pub fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Starts the job with these streams instead of pipes.
    pub fn start_with(mut self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Running {
        self.command.stdin(stdin).stdout(stdout).stderr(stderr);
        self.start()
    }
}

impl Running {
    /// Returns the mark of the job's processes, which stays valid after the end of the job.
    pub fn mark(&self) -> TestMark {
        self.0.mark().clone()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.0.pid()).expect("a process")
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("oshrun is there");
    }

    pub fn has_ended(&mut self) -> bool {
        self.0
            .try_wait()
            .unwrap_or_else(|overdue| panic!("{overdue}"))
            .is_some()
    }

    /// Returns a reader of the job's stdout.
    pub fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.child().stdout.take().expect("piped"))
    }

    pub fn input(&mut self, text: &str) {
        let stdin = self.0.child().stdin.as_mut().expect("it was to come later");
        stdin.write_all(text.as_bytes()).expect("a reader");
    }

    pub fn end_input(&mut self) {
        self.0.child().stdin = None;
    }

    /// Returns the job's stderr, unbuffered.
    pub fn stderr(&mut self) -> ChildStderr {
        self.0.child().stderr.take().expect("piped")
    }

    /// Returns the processes of the job, oshrun and its guard among them.
    pub fn processes(&self) -> Vec<u32> {
        pids_of(self.0.mark())
    }

    /// Returns the guard of the job's oshrun, if it runs.
    pub fn guard(&self) -> Option<u32> {
        let is_guard = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line == b"oshrun-guard\0")
        };
        self.processes().into_iter().find(is_guard)
    }

    /// Waits for the end within the time limit.
    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        let out = self.0.child().stdout.take().map(collect);
        let err = self.0.child().stderr.take().map(collect);
        let ended = self.0.wait();

        let text = |thread: Option<thread::JoinHandle<Vec<u8>>>| {
            let bytes = thread
                .map(|thread| thread.join().expect("reader"))
                .unwrap_or_default();
            String::from_utf8(bytes).expect("text")
        };

        let status = match ended {
            Ok(status) => status,
            // The writers of the pipes have been killed.
            Err(overdue) => panic!("{overdue}\nstdout:\n{}\nstderr:\n{}", text(out), text(err)),
        };

        let stdout = text(out);
        let stderr = text(err);
        Outcome {
            status: shell_status(status),
            stdout,
            stderr,
            mark: self.mark(),
        }
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("read");
        bytes
    })
}

fn shell_status(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().expect("a signal"))
}

impl Outcome {
    /// Asserts the status and stderr of the job, and that no process is left of it.
    #[track_caller]
    pub fn expect(self, status: i32, stderr: &str) -> Outcome {
        assert_eq!(
            (self.status, masked(&self.stderr).as_str()),
            (status, stderr),
            "{self:?}"
        );
        self.expect_nothing_left()
    }

    #[track_caller]
    pub fn expect_nothing_left(self) -> Outcome {
        let left = self.left();
        assert!(left.is_empty(), "left: {left:?} of {self:?}");
        self
    }

    /// Returns the processes of the job that still run.
    pub fn left(&self) -> Vec<u32> {
        pids_of(&self.mark)
    }

    /// Returns the mark of the job's processes.
    pub fn mark(&self) -> TestMark {
        self.mark.clone()
    }

    /// Returns the lines of stdout in a fixed order.
    pub fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// Replaces what differs between runs by `PID` and `HOST`.
fn masked(text: &str) -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();

    let mut masked = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("(pid ") {
        masked += before;
        masked += "(pid PID";
        rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }

    (masked + rest).replace(&format!("host {host})"), "host HOST)")
}

fn pids_of(mark: &TestMark) -> Vec<u32> {
    mark.processes()
        .into_iter()
        .map(|process| process.pid as u32)
        .collect()
}

/// Waits until no process of a job is left. Fails after half of the time limit of tests, before the
/// processes would end by themselves.
#[track_caller]
pub fn eventually_nothing_left(mark: &TestMark) {
    let start = Instant::now();
    let within = patient(LIMIT) / 2;

    loop {
        let left = mark.processes();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < within, "left after {within:?}: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the state letter of a process in /proc, `X` when it is gone.
pub fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next())
        .unwrap_or('X')
}

/// Reads lines until `count` of them end with `pid N`. Returns these numbers.
pub fn pids(reader: &mut impl BufRead, count: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    while pids.len() < count {
        let mut line = String::new();
        assert!(
            reader.read_line(&mut line).expect("stdout") > 0,
            "stdout ended after {pids:?}"
        );

        // On a terminal, the progress line may precede it, erased or not.
        let pid = line.trim().rsplit_once("pid ").map(|(_, pid)| pid);
        pids.extend(pid.and_then(|pid| pid.parse::<u32>().ok()));
    }

    pids
}

/// Ignores the test if this command, which checks a requirement of the test, is missing or fails.
pub fn needs(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        absent(format!("{} does not work here", words.join(" ")));
    }
}

/// Creates an executable file. A shell writes it: a descriptor of this process could be inherited
/// by a child of another test, and the kernel does not execute a file that is open for writing.
pub fn executable(file: &Path, text: &str) {
    let mut command = Command::new("sh");
    command
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(file)
        .stdin(Stdio::piped());

    let mut shell = command.spawn().expect("sh");
    shell
        .stdin
        .take()
        .expect("piped")
        .write_all(text.as_bytes())
        .expect("it reads");

    assert!(shell.wait().expect("own child").success());
}

/// Returns a file without a name that contains `text`, at its beginning.
pub fn tempfile(text: &str) -> std::fs::File {
    let memory =
        rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
    let mut file = std::fs::File::from(memory);
    file.write_all(text.as_bytes()).expect("memory");
    std::io::Seek::rewind(&mut file).expect("memory");
    file
}

/// A command for `--launch-agent`: like ssh, but every host is this machine. `script` runs first;
/// `$1` is the host, and descriptor 3 is standard input, also for background processes.
pub struct TestAgent {
    file: PathBuf,
}

impl TestAgent {
    pub fn new(script: &str) -> TestAgent {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);

        let name = format!("oshrun-agent-{}-{number}", std::process::id());
        let file = std::env::temp_dir().join(name);

        let text = format!("#!/bin/sh\nexec 3<&0\n{script}\nexec 3<&-\nshift\nexec sh -c \"$*\"\n");
        executable(&file, &text);
        TestAgent { file }
    }

    pub fn path(&self) -> &str {
        self.file.to_str().expect("plain names")
    }

    /// Makes a job of `oshrun -H HOSTS OPTIONS PROGRAM`, with this agent.
    pub fn job(&self, hosts: &str, options: &str, program: &[&str]) -> TestJob {
        let options: Vec<&str> = options.split_whitespace().collect();
        let first = ["--launch-agent", self.path(), "-H", hosts];
        // Long enough that a process that waits for a CPU does not count as silent.
        TestJob::new(&[&first[..], &options, program].concat()).env("SHMEM_HOST_LIMIT", "50")
    }

    /// Makes a job of `oshrun -H HOSTS OPTIONS pe STEPS`, with this agent.
    pub fn steps(&self, hosts: &str, options: &str, steps: &[&str]) -> TestJob {
        self.job(hosts, options, &[&[pe().as_str()], steps].concat())
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
