//! A job: a program under `oshrun`, or without a launcher, with a hard time limit. After its end it
//! is checked for processes that it has left behind.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::limits::{LIMIT, POLL_INTERVAL};
use crate::mark::Process;
use crate::outcome::Outcome;
use crate::permits::{self, Permit};
use crate::prefix;
use crate::started::{Overdue, Started, listed};

/// The launcher of the program: `oshrun` of the prefix, another one, or none.
#[derive(Debug, Clone)]
enum Launcher {
    OfPrefix,
    At(PathBuf),
    None,
}

/// The description of a job; [`Job::run`] runs it.
#[derive(Debug, Clone)]
pub struct Job {
    program: PathBuf,
    arguments: Vec<String>,
    launcher: Launcher,
    launcher_options: Vec<String>,
    wrapper: Vec<String>,
    environment: Vec<(String, String)>,
    dir: Option<PathBuf>,
    limit: Duration,
}

impl Job {
    /// Returns a job of one PE that runs `program` under the prefix's oshrun.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            launcher: Launcher::OfPrefix,
            launcher_options: Vec::new(),
            wrapper: Vec::new(),
            environment: Vec::new(),
            dir: None,
            limit: LIMIT,
        }
    }

    /// Returns a job of one PE that runs `program` without a launcher.
    pub fn direct(program: impl AsRef<Path>) -> Self {
        Self {
            launcher: Launcher::None,
            ..Self::new(program)
        }
    }

    /// Sets the number of PEs. Has no effect without a launcher.
    pub fn n(self, n: usize) -> Self {
        self.launcher_options(["-n", &n.to_string()])
    }

    /// Adds options of oshrun.
    pub fn launcher_options<'a>(mut self, options: impl IntoIterator<Item = &'a str>) -> Self {
        self.launcher_options
            .extend(options.into_iter().map(str::to_owned));
        self
    }

    /// Uses this oshrun instead of that of the prefix.
    pub fn launcher(mut self, oshrun: impl AsRef<Path>) -> Self {
        self.launcher = Launcher::At(oshrun.as_ref().to_owned());
        self
    }

    /// Adds an argument of the program.
    pub fn arg(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Adds arguments of the program.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl ToString>) -> Self {
        for argument in arguments {
            self = self.arg(argument);
        }
        self
    }

    /// Sets a variable in the environment of the launcher and the program.
    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets variables in the environment of the launcher and the program.
    pub fn envs(mut self, variables: &[(&str, &str)]) -> Self {
        for (name, value) in variables {
            self = self.env(name, value);
        }
        self
    }

    /// Puts words before the whole command line, for example `setpriv --reuid=65534`.
    pub fn wrap<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.wrapper.extend(words.into_iter().map(str::to_owned));
        self
    }

    /// Sets the working directory.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets the hard time limit, which is [`LIMIT`] by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the job to its end.
    ///
    /// # Panics
    /// If the job takes longer than its limit or leaves a process behind.
    #[track_caller]
    pub fn run(self) -> Outcome {
        self.start().finish()
    }

    /// Runs [sleepers](Self::start_sleeper) at the same time, and returns their outcomes in the
    /// same order.
    ///
    /// # Panics
    /// If one takes longer than its limit or leaves a process behind.
    #[track_caller]
    pub fn run_sleepers(jobs: impl IntoIterator<Item = Job>) -> Vec<Outcome> {
        let running: Vec<Running> = jobs.into_iter().map(Job::start_sleeper).collect();
        running.into_iter().map(Running::finish).collect()
    }

    /// Starts the job and returns without waiting for its end. Waits for a permit first, since few
    /// jobs may run at the same time.
    #[track_caller]
    pub fn start(self) -> Running {
        self.start_with(Some(permits::take()))
    }

    /// Starts a job that sleeps most of the time, without a permit.
    pub fn start_sleeper(self) -> Running {
        self.start_with(None)
    }

    fn start_with(self, permit: Option<Permit>) -> Running {
        let mut words = self.wrapper.clone();
        let launcher = match &self.launcher {
            Launcher::OfPrefix => Some(prefix::launcher()),
            Launcher::At(path) => Some(path.clone()),
            Launcher::None => None,
        };
        if let Some(launcher) = launcher {
            words.push(launcher.display().to_string());
            words.extend(self.launcher_options.clone());
        }
        words.extend(prefix::emulator());
        words.push(self.program.display().to_string());
        words.extend(self.arguments.clone());

        // Ignored signals are inherited, such as those of a shell's background job; `env` resets
        // them.
        let mut command = Command::new("env");
        command.arg("--default-signal").args(&words);
        let mut shown = String::new();
        for (name, value) in &self.environment {
            command.env(name, value);
            shown += &format!("{name}={value} ");
        }
        shown += &words.join(" ");

        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        let stdout = temporary();
        let stderr = temporary();
        command.stdin(Stdio::null());
        command.stdout(stdout.try_clone().expect("a descriptor is free"));
        command.stderr(stderr.try_clone().expect("a descriptor is free"));

        Running {
            started: Started::new(&mut command, self.limit),
            shown,
            stdout,
            stderr,
            _permit: permit,
        }
    }
}

/// A running job. A drop ends its processes, unless the first one has ended and no test panics.
pub struct Running {
    started: Started,
    shown: String,
    stdout: File,
    stderr: File,
    _permit: Option<Permit>,
}

impl Running {
    /// Returns the process ID of oshrun, of the wrapper before it, or of the program without a
    /// launcher.
    pub fn pid(&self) -> i32 {
        self.started.pid()
    }

    /// Returns all running processes of the job, including oshrun.
    pub fn processes(&self) -> Vec<Process> {
        self.started.mark().processes()
    }

    /// Waits until `found` returns a value for the whole lines of standard output so far. Returns
    /// the value.
    ///
    /// # Panics
    /// If the job ends first or reaches its time limit.
    #[track_caller]
    pub fn wait_for<T>(&mut self, found: impl Fn(&[&str]) -> Option<T>) -> T {
        loop {
            // The end is looked for before the output is read, so that the output of a job that has
            // ended is complete.
            let has_ended = match self.started.try_wait() {
                Ok(status) => status.is_some(),
                Err(overdue) => self.complain(&overdue),
            };

            let text = text_of(&self.stdout);
            let whole_lines = match text.rfind('\n') {
                Some(end) => &text[..end],
                None => "",
            };
            let lines: Vec<&str> = whole_lines.lines().collect();
            if let Some(value) = found(&lines) {
                return value;
            }

            assert!(
                !has_ended,
                "{}\nended before what was waited for; it printed\n{text}",
                self.shown
            );
            sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the job has printed this line on standard output.
    ///
    /// # Panics
    /// If the job ends first or reaches its time limit.
    #[track_caller]
    pub fn wait_for_line(&mut self, line: &str) {
        self.wait_for(|lines| {
            if lines.contains(&line) {
                Some(())
            } else {
                None
            }
        });
    }

    /// Waits for the end of the job and of all of its processes.
    ///
    /// # Panics
    /// If the job takes longer than its limit or leaves a process behind.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let status = match self.started.wait() {
            Ok(status) => status,
            Err(overdue) => self.complain(&overdue),
        };
        let left = self.started.left_behind();
        let outcome = self.outcome(status);
        assert!(
            left.is_empty(),
            "processes outlived their job: {}\n{outcome}",
            listed(&left)
        );
        outcome
    }

    #[track_caller]
    fn complain(&self, overdue: &Overdue) -> ! {
        panic!("{overdue}\n{}", self.outcome(overdue.status));
    }

    fn outcome(&self, status: ExitStatus) -> Outcome {
        Outcome {
            command: self.shown.clone(),
            status,
            stdout: text_of(&self.stdout),
            stderr: text_of(&self.stderr),
        }
    }
}

/// Returns a file without a name, for output. Unlike a pipe, it cannot fill up, and reading it does
/// not wait for a process that still has it open.
fn temporary() -> File {
    tempfile::tempfile().expect("a temporary file can be had")
}

/// Returns the text of the file, read without moving the position at which the job writes.
fn text_of(file: &File) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 16];
    loop {
        let position = bytes.len() as u64;
        let nbytes = file.read_at(&mut part, position).expect("it can be read");
        if nbytes == 0 {
            break;
        }
        bytes.extend_from_slice(&part[..nbytes]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::eventually;

    fn shell(script: &str) -> Job {
        Job::direct("/bin/sh").arg("-c").arg(script)
    }

    fn complaint(job: Running) -> String {
        let panic = catch_unwind(AssertUnwindSafe(|| job.finish())).expect_err("it must not pass");
        *panic.downcast::<String>().expect("a sentence")
    }

    #[test]
    fn an_outcome_holds_status_and_both_outputs() {
        let outcome = shell("echo $WORD; echo two >&2; exit 3")
            .env("WORD", "one")
            .run();
        assert_eq!(outcome.code(), 3);
        assert_eq!(outcome.stdout, "one\n");
        assert_eq!(outcome.stderr, "two\n");
        assert_eq!(outcome.assert_fails(&["two"]), "two");
    }

    #[test]
    fn a_job_that_hangs_is_ended_and_reported() {
        let mut job = shell("echo begun; sleep 1000")
            .timeout(Duration::from_secs(50))
            .start();
        job.wait_for_line("begun");

        job.started.limit = Duration::ZERO;
        let complaint = complaint(job);
        for words in ["not over after ", "begun", "sleep 1000"] {
            assert!(complaint.contains(words), "not {words}: {complaint}");
        }
    }

    #[test]
    fn a_process_that_outlives_its_job_is_found_and_ended() {
        let mut job = shell("setsid sleep 1001 & echo $!; exit 0").start();
        let pid = job.wait_for(|lines| lines.first().map(ToString::to_string));

        job.started.grace = Duration::from_millis(100);
        let complaint = complaint(job);
        for words in ["outlived", "sleep 1001"] {
            assert!(complaint.contains(words), "not {words}: {complaint}");
        }
        // The kernel ends it some time after the signal. A process that has ended has no command
        // line, even if nobody has waited for it.
        eventually("the process has ended", || {
            let command = std::fs::read(format!("/proc/{pid}/cmdline"));
            command.unwrap_or_default().is_empty()
        });
    }

    #[test]
    fn lines_are_seen_while_the_job_runs() {
        let mut job = shell("echo first; read nothing; sleep 1002").start();
        job.wait_for_line("first");

        let sleeper = loop {
            let processes = job.processes();
            if let Some(process) = processes.iter().find(|p| p.command == "sleep 1002") {
                break process.pid;
            }
        };
        crate::kill(sleeper);
        assert_eq!(job.finish().code(), 137);
    }
}
