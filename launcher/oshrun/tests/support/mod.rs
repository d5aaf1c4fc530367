//! Starts oshrun for the tests, with a hard time limit and a mark by which every process of a job is found.
#![allow(dead_code)] // Each test file uses its part.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// No job may take longer.
const LIMIT: Duration = Duration::from_secs(60);

/// [`LIMIT`], times RUSHMEM_TEST_SLOWDOWN where the machine is slow.
fn limit() -> Duration {
    let factor = std::env::var("RUSHMEM_TEST_SLOWDOWN").ok().and_then(|text| text.parse().ok());
    LIMIT * factor.unwrap_or(1)
}

/// The variable that marks the processes of one job.
const MARK: &str = "OSHRUN_TEST_JOB";

/// oshrun itself.
pub fn oshrun() -> &'static str {
    env!("CARGO_BIN_EXE_oshrun")
}

/// The program made of steps.
pub fn pe() -> String {
    let folder = PathBuf::from(oshrun()).parent().expect("a folder").join("examples/pe");
    assert!(folder.exists(), "{} is not built: run cargo test -p oshrun", folder.display());
    folder.to_str().expect("plain names").to_string()
}

/// A job that is being put together.
pub struct Job {
    command: Command,
    mark: String,
    input: Option<Vec<u8>>,
}

/// A job that runs.
pub struct Running {
    child: Child,
    mark: String,
    started: Instant,
}

/// How a job ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status, or 128 + signal.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
    mark: String,
}

impl Job {
    /// `oshrun` with these words.
    pub fn new(words: &[&str]) -> Job {
        Job::by(oshrun(), words)
    }

    /// `oshrun -n N pe STEPS`.
    pub fn steps(n_pes: u32, steps: &[&str]) -> Job {
        let (n_pes, pe) = (n_pes.to_string(), pe());
        Job::new(&[&["-n", &n_pes, &pe], steps].concat())
    }

    /// The same behind a shell that first does something, such as ignoring signals.
    pub fn steps_after(n_pes: u32, shell: &str, steps: &[&str]) -> Job {
        let (n_pes, pe, script) = (n_pes.to_string(), pe(), format!("{shell}; exec \"$@\""));
        Job::new(&[&["-n", &n_pes, "sh", "-c", &script, "sh", &pe], steps].concat())
    }

    /// Another program that starts oshrun.
    pub fn by(program: &str, words: &[&str]) -> Job {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // What ignores signals, as a shell's background job does, passes that on; these tests do not want it.
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .arg(program)
            .args(words)
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars() {
            if name.starts_with("RUSHMEM_") || name.starts_with("PMI") || name.starts_with("SLURM_")
            {
                command.env_remove(name);
            }
        }
        Job { command, mark, input: None }
    }

    pub fn env(mut self, name: &str, value: &str) -> Job {
        self.command.env(name, value);
        self
    }

    pub fn input(mut self, text: &str) -> Job {
        self.input = Some(text.into());
        self.command.stdin(Stdio::piped());
        self
    }

    /// Its stdin is open until [`Running::end_input`].
    pub fn input_later(mut self) -> Job {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Starts the job; its stdin is closed after the input.
    pub fn start(mut self) -> Running {
        let mut child = self.command.spawn().expect("oshrun starts");
        if let Some(input) = self.input {
            child.stdin.take().expect("piped").write_all(&input).expect("somebody reads");
        }
        Running { child, mark: self.mark, started: Instant::now() }
    }

    pub fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Starts the job with these instead of pipes.
    pub fn start_with(mut self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Running {
        self.command.stdin(stdin).stdout(stdout).stderr(stderr);
        self.start()
    }
}

impl Running {
    /// The mark of its processes, for when it has been waited for.
    pub fn mark(&self) -> String {
        self.mark.clone()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).expect("a process")
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("oshrun is there");
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("own child").is_some()
    }

    /// A reader of the job's stdout.
    pub fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child.stdout.take().expect("piped"))
    }

    pub fn input(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().expect("it was to come later");
        stdin.write_all(text.as_bytes()).expect("somebody reads");
    }

    pub fn end_input(&mut self) {
        self.child.stdin = None;
    }

    /// Its stderr.
    pub fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("piped")
    }

    /// The processes of the job, oshrun and its guard among them.
    pub fn processes(&self) -> Vec<u32> {
        marked(&self.mark)
    }

    /// Waits for the end within the time limit, and sees that nothing is left.
    pub fn wait(mut self) -> Outcome {
        let out = self.child.stdout.take().map(collect);
        let err = self.child.stderr.take().map(collect);
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("own child") {
                break status;
            }
            assert!(self.started.elapsed() <= limit(), "oshrun did not end within {:?}", limit());
            thread::sleep(Duration::from_millis(2));
        };
        let elapsed = self.started.elapsed();
        let text = |thread: Option<thread::JoinHandle<Vec<u8>>>| {
            let bytes = thread.map(|thread| thread.join().expect("reader")).unwrap_or_default();
            String::from_utf8(bytes).expect("text")
        };
        let (stdout, stderr) = (text(out), text(err));
        Outcome { status: shell_status(status), stdout, stderr, elapsed, mark: self.mark() }
    }
}

impl Drop for Running {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        if thread::panicking() {
            for pid in marked(&self.mark).into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
                // Whoever has ended meanwhile cannot be killed.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
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
    status.code().unwrap_or_else(|| 128 + status.signal().expect("a signal"))
}

impl Outcome {
    /// Asserts status and stderr, and that no process is left the moment oshrun has ended.
    #[track_caller]
    pub fn expect(self, status: i32, stderr: &str) -> Outcome {
        assert_eq!((self.status, masked(&self.stderr).as_str()), (status, stderr), "{self:?}");
        self.expect_nothing_left()
    }

    #[track_caller]
    pub fn expect_nothing_left(self) -> Outcome {
        let left = self.left();
        assert!(left.is_empty(), "left: {left:?} of {self:?}");
        self
    }

    /// The processes of the job that still run.
    pub fn left(&self) -> Vec<u32> {
        marked(&self.mark)
    }

    /// The mark of its processes.
    pub fn mark(&self) -> String {
        self.mark.clone()
    }

    /// The lines of stdout in a fixed order.
    pub fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// Puts `PID` and `HOST` for what differs from run to run.
fn masked(text: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut masked = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("(pid ") {
        masked += before;
        masked += "(pid PID";
        rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    (masked + rest).replace(&format!("host {host})"), "host HOST)")
}

/// The living processes that carry this mark; zombies have no environment any more.
fn marked(mark: &str) -> Vec<u32> {
    let entry = format!("{MARK}={mark}");
    let pids = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|dir| dir.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
    })
    .collect()
}

/// Waits until `condition` holds, within the time limit.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit(), "not within {:?}: {what}", limit());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing of a job is left, for less time than what may be left would run by itself.
#[track_caller]
pub fn eventually_nothing_left(mark: &str) {
    let (start, within) = (Instant::now(), limit() / 2);
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < within, "left after {within:?}: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The state letter of a process in /proc, `X` when it is gone.
pub fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('X')
}

/// Reads `count` lines of the form `pid N`.
pub fn pids(reader: &mut impl BufRead, count: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    while pids.len() < count {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("stdout") > 0, "stdout ended after {pids:?}");
        // On a terminal a line that counts PEs may have stood here.
        let line = line.trim().rsplit("\x1b[K").next().unwrap_or_default();
        pids.extend(line.strip_prefix("pid ").map(|pid| pid.parse::<u32>().expect("a number")));
    }
    pids
}

/// Makes a file that can be run, by a shell: the kernel refuses one that is open for writing, as what this process opens
/// may be for a moment in the children that other tests start.
pub fn executable(file: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod +x \"$0\""]).arg(file).stdin(Stdio::piped());
    let mut shell = command.spawn().expect("sh");
    shell.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    assert!(shell.wait().expect("own child").success());
}

/// A command for `--launch-agent`: like ssh, but every host is this machine. `script` runs before; `$1` is the host, and
/// descriptor 3 is the standard input, also for what runs in the background.
pub struct Agent {
    file: PathBuf,
}

impl Agent {
    pub fn new(script: &str) -> Agent {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oshrun-agent-{}-{number}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let text = format!("#!/bin/sh\nexec 3<&0\n{script}\nexec 3<&-\nshift\nexec sh -c \"$*\"\n");
        executable(&file, &text);
        Agent { file }
    }

    pub fn path(&self) -> &str {
        self.file.to_str().expect("plain names")
    }

    /// `oshrun -H HOSTS OPTIONS PROGRAM`.
    pub fn job(&self, hosts: &str, options: &str, program: &[&str]) -> Job {
        let options: Vec<&str> = options.split_whitespace().collect();
        let first = ["--launch-agent", self.path(), "-H", hosts];
        // Nobody is silent who only waits for a processor.
        Job::new(&[&first[..], &options, program].concat()).env("SHMEM_HOST_LIMIT", "50")
    }

    /// `oshrun -H HOSTS OPTIONS pe STEPS`.
    pub fn steps(&self, hosts: &str, options: &str, steps: &[&str]) -> Job {
        self.job(hosts, options, &[&[pe().as_str()], steps].concat())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
