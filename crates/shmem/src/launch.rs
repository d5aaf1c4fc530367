//! Programs that start themselves as the PEs of a job, without a launcher.

use crate::init::init;
use crate::job::Shmem;
use crate::panics::mistake;
use crate::unique_id::UniqueId;
use rushmem_runtime::{Call, setup};
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal, test_kill_process,
};
use rustix::thread::gettid;
use signal_hook::consts::SIGQUIT;
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::fs::metadata;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio, Termination, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that names the process that has started this PE.
const LAUNCHED_BY: &str = "SHMEM_LAUNCHED_BY";
/// The variable with the number of PEs of a program that gives none.
const N_PES: &str = "SHMEM_N_PES";
/// The interval at which the process that started the PEs looks for those that have ended, and for
/// signals. Each look is a system call for each PE, on CPUs that the PEs need.
const GLANCE: Duration = Duration::from_millis(10);
/// The time that PEs have to end after one of them has failed: the library ends them, with its
/// messages, within less.
const GRACE: Duration = Duration::from_secs(3);
/// The time that output may come after the last PE has ended: a process that a PE has left behind
/// may have the pipe open.
const LATE_OUTPUT: Duration = Duration::from_secs(1);
/// The maximum number of bytes of a line that is printed as a whole. It bounds the memory of a pipe
/// in which no line ends.
const LINE_BYTES: u64 = 1 << 20;

/// The end of a job that [`launch`] has started. As the result of `main` it is the exit status of
/// the process: that of the first PE that failed, or 128 and the number of the signal that killed
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the job may have failed; return its status from `main`"]
pub struct JobStatus(ExitStatus);

impl JobStatus {
    /// Returns true if all PEs have succeeded.
    ///
    /// ```no_run
    /// let job = shmem::launch(4, |shmem| println!("PE {}", shmem.my_pe()));
    /// assert!(job.success());
    /// ```
    pub fn success(self) -> bool {
        self.0.success()
    }

    /// Returns the status of the first PE that failed, or that of a success.
    ///
    /// ```no_run
    /// let job = shmem::launch(4, |shmem| println!("PE {}", shmem.my_pe()));
    /// assert_eq!(job.status().code(), Some(0));
    /// ```
    pub fn status(self) -> ExitStatus {
        self.0
    }
}

impl Termination for JobStatus {
    fn report(self) -> ExitCode {
        let killed_by = self.0.signal().map(|signal| 128 + signal);
        let code = self.0.code().or(killed_by).unwrap_or(1);
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}

/// Runs this program as a job of `n` PEs, each of which calls `program`: the code before this call
/// runs in each PE, too, and must not print or write anything. The standard has no such routine.
///
/// If `n` is `None`, the number of PEs is that in the variable `SHMEM_N_PES` of the environment, or
/// else the number of CPUs that this process may use.
///
/// The program is started again `n` times, with the same arguments, directory and environment, on
/// this machine; so `n` may be an argument of the program. Each of these processes calls `main`,
/// comes to this call, initializes the library and calls `program`, and then exits; so the code
/// after this call runs in this process alone, which is no PE. Meanwhile this process prints the
/// lines of the PEs, passes SIGINT and SIGTERM on to them, and waits for them. PE 0 has its
/// standard input. If this process is killed, the PEs are, too.
///
/// `program` returns what `main` may return: nothing, a status, or a [`Result`]. An error is
/// printed, and ends the job with status 1.
///
/// Started by `oshrun` or another launcher, the process is a PE of that job, which has `n` PEs or,
/// if `n` is `None`, any number, and starts no others.
///
/// The handle is that of [`init`]. A program whose threads call the library, by
/// [`init_shared`](crate::init_shared), is started by a launcher instead. If a job hangs, SIGQUIT
/// (Ctrl-\) makes PE 0 print who waits for whom, and the job goes on. With `SHMEM_WATCHDOG=10s` in
/// the environment, this is printed without a signal, when a call has waited for 10 s.
///
/// ```no_run
/// fn main() -> shmem::JobStatus {
///     shmem::launch(4, |shmem| {
///         let sum = shmem.world().all_reduce(shmem.my_pe(), shmem::Sum);
///         println!("PE {} of {}: the sum is {sum}", shmem.my_pe(), shmem.n_pes());
///     })
/// }
/// ```
///
/// ```no_run
/// fn main() -> shmem::JobStatus {
///     shmem::launch(None, |shmem| println!("PE {} of {}", shmem.my_pe(), shmem.n_pes()))
/// }
/// ```
///
/// # Panics
/// If `n` is 0, if it is `None` and `SHMEM_N_PES` is no number of PEs, if this process has called
/// it before, if the thread is not the one of `main` (a test is a [`shmem::test!`](crate::test!)
/// instead), if the program's file was deleted or replaced since the start of this process, or if
/// processes cannot be started. Under a launcher the job ends with a message if it has another
/// number of PEs.
#[track_caller]
pub fn launch<T: Termination>(
    n: impl Into<Option<usize>>,
    program: impl FnOnce(Shmem) -> T,
) -> JobStatus {
    static CALLED: AtomicBool = AtomicBool::new(false);
    let call = call!("shmem::launch");

    let n = n.into();
    if n == Some(0) {
        mistake!(call, "argument n is 0; a job has at least one PE");
    }
    if gettid() != getpid() {
        let thread = thread::current();
        let name = thread.name().unwrap_or("without a name");
        mistake!(
            call,
            "called in the thread {name}; call it in main, and use shmem::test! for a test that runs as a job"
        );
    }
    if CALLED.swap(true, Relaxed) {
        mistake!(
            call,
            "called for the second time in this process; a program is one job: pass all of its work to the first call"
        );
    }

    if setup::has_launcher() {
        run_pe(call, n, program);
    }
    let n = n.unwrap_or_else(|| usual_number(call));
    match LaunchedJob::start(call, n).and_then(LaunchedJob::wait) {
        Ok(status) => JobStatus(status),
        Err(error) => mistake!(call, "{error}"),
    }
}

/// Returns the number of PEs of a program that gives none.
#[track_caller]
fn usual_number(call: Call) -> usize {
    let Some(text) = std::env::var_os(N_PES) else {
        return thread::available_parallelism().map_or(1, usize::from);
    };

    match text.to_str().map(str::parse) {
        Some(Ok(n @ 1..)) => n,
        _ => mistake!(
            call,
            "{N_PES} is {text:?}; set it to a number of PEs, at least 1"
        ),
    }
}

/// Runs `program` as a PE, and exits with the status of its result.
fn run_pe<T: Termination>(call: Call, n: Option<usize>, program: impl FnOnce(Shmem) -> T) -> ! {
    let mut quits = None;
    if let Some(starter) = starter() {
        end_with(starter);
        // Before the initialization, during which SIGQUIT of the terminal must not end the PE,
        // either. An error, for example because no descriptors are left, only means that it does.
        quits = QuitSignals::take().ok();
    }

    let shmem = init();
    let n_pes = shmem.n_pes();
    if let Some(n) = n
        && n != n_pes
    {
        call.fail(format_args!(
            "argument n is {n}, but the launcher has started {n_pes} PEs; start {n} PEs, or pass the number that it starts"
        ));
    }

    // The other PEs receive the signals, too, and do nothing.
    if shmem.my_pe() == 0
        && let Some(quits) = quits
    {
        quits.explain();
    }
    exit(status_of(program(shmem)))
}

/// The SIGQUIT that this PE receives from now on.
struct QuitSignals(UnixStream);

impl QuitSignals {
    fn take() -> io::Result<QuitSignals> {
        let (received, sender) = UnixStream::pair()?;
        pipe::register(SIGQUIT, sender)?;
        Ok(QuitSignals(received))
    }

    /// Prints what the PEs do whenever a signal arrives.
    fn explain(mut self) {
        // Without the thread nothing is explained, and the job runs.
        let _ = setup::explain_on_request(move || self.wait().is_ok_and(|n| n > 0));
    }

    /// Waits for a signal. Returns 0 if none can arrive any more.
    fn wait(&mut self) -> io::Result<usize> {
        let mut signals = [0; 64];
        let n = self.0.read(&mut signals)?;

        // The terminal sends the same signal to this PE and to its starter, which passes it on
        // within a glance. Both are one request, so the second signal is taken off, too.
        thread::sleep(2 * GLANCE);
        self.0.set_nonblocking(true)?;
        // The error if there is no second one.
        let _ = self.0.read(&mut signals);
        self.0.set_nonblocking(false)?;
        Ok(n)
    }
}

/// Returns the exit status of a process whose `main` returns this, and prints the error if it is
/// one.
fn status_of(result: impl Termination) -> i32 {
    let code = result.report();
    // An `ExitCode` does not tell its number, but can be compared.
    let status = (0..=u8::MAX).find(|&status| ExitCode::from(status) == code);
    status.map_or(1, i32::from)
}

/// Returns the process whose [`launch`] has started this PE, if one has.
fn starter() -> Option<Pid> {
    let pid = std::env::var(LAUNCHED_BY).ok()?;
    Pid::from_raw(pid.parse().ok()?)
}

/// Has the kernel kill this PE when the process that has started it ends. The variable that names
/// the starter is inherited by processes that this PE starts, which have another parent, so the
/// kernel does not kill them.
fn end_with(starter: Pid) {
    if getppid() == Some(starter) {
        // Without this the job works, too.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }

    // The starter may have ended before the call above, which then has no effect.
    if getppid() != Some(starter) && test_kill_process(starter).is_err() {
        exit(1);
    }
}

/// The processes that this one has started.
struct LaunchedJob {
    /// Those that have not ended.
    running: Vec<Child>,
    /// The first one that failed.
    failure: Option<Failure>,
    /// Is disconnected when all output is printed.
    printed: Receiver<()>,
    signals: Vec<PassedSignal>,
}

/// The failure of a PE.
#[derive(Clone, Copy)]
struct Failure {
    status: ExitStatus,
    since: Instant,
}

/// A signal that this process passes on while its PEs run.
struct PassedSignal {
    signal: Signal,
    has_come: Arc<AtomicBool>,
    /// True once the job is over: the signal does again what it does by default.
    is_over: Arc<AtomicBool>,
}

impl PassedSignal {
    fn new(signal: Signal) -> io::Result<PassedSignal> {
        let has_come = Arc::default();
        let is_over = Arc::default();
        flag::register_conditional_default(signal.as_raw(), Arc::clone(&is_over))?;
        flag::register(signal.as_raw(), Arc::clone(&has_come))?;
        Ok(PassedSignal {
            signal,
            has_come,
            is_over,
        })
    }
}

impl LaunchedJob {
    fn start(call: Call, n: usize) -> io::Result<LaunchedJob> {
        let file = file_of_program()?;
        let id = UniqueId::new()?;
        let (sender, printed) = channel();
        let mut job = LaunchedJob {
            running: Vec::new(),
            failure: None,
            printed,
            signals: vec![
                PassedSignal::new(Signal::INT)?,
                PassedSignal::new(Signal::TERM)?,
                PassedSignal::new(Signal::QUIT)?,
            ],
        };

        for rank in 0..n {
            let mut command = Command::new(&file);
            command
                .args(std::env::args_os().skip(1))
                .env("SHMEM_JOB", id.to_string())
                .env("SHMEM_RANK", rank.to_string())
                .env("SHMEM_SIZE", n.to_string())
                .env(LAUNCHED_BY, std::process::id().to_string());
            if rank != 0 {
                command.stdin(Stdio::null());
            }

            if let Err(error) = job.start_pe(command, &sender) {
                job.kill();
                let why = format!(
                    "process {rank} of {n} cannot be started: {error}; {call} needs a process for each PE"
                );
                return Err(io::Error::new(error.kind(), why));
            }
        }
        Ok(job)
    }

    /// Starts a PE, and threads that print its output and have clones of `sender` meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "`print_lines` writes each line by one write"
    )]
    fn start_pe(&mut self, mut command: Command, sender: &Sender<()>) -> io::Result<()> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut pe = command.spawn()?;
        let output = pe.stdout.take();
        let errors = pe.stderr.take();
        // Kept before the threads start: if one cannot be started, the PE is killed with the rest.
        self.running.push(pe);

        print_lines(output, io::stdout, sender)?;
        print_lines(errors, io::stderr, sender)
    }

    /// Waits until all PEs have ended and their output is printed.
    fn wait(mut self) -> io::Result<ExitStatus> {
        while !self.running.is_empty() {
            self.pass_signals();
            self.collect_ended()?;
            if let Some(failure) = self.failure
                && failure.since.elapsed() > GRACE
            {
                self.kill();
            }
            thread::sleep(GLANCE);
        }
        for signal in &self.signals {
            signal.is_over.store(true, Relaxed);
        }

        // Nothing is sent: the channel ends with the last thread that prints.
        let _ = self.printed.recv_timeout(LATE_OUTPUT);
        match self.failure {
            Some(failure) => Ok(failure.status),
            None => Ok(ExitStatus::default()),
        }
    }

    fn pass_signals(&self) {
        for passed in &self.signals {
            // Relaxed, since a handler in the same process sets the flag, which publishes nothing.
            if !passed.has_come.swap(false, Relaxed) {
                continue;
            }

            for pe in &self.running {
                // One that has ended in the meantime needs no signal.
                let _ = kill_process(Pid::from_child(pe), passed.signal);
            }
        }
    }

    fn collect_ended(&mut self) -> io::Result<()> {
        let mut running = Vec::with_capacity(self.running.len());
        for mut pe in self.running.drain(..) {
            match pe.try_wait()? {
                None => running.push(pe),
                Some(status) if status.success() => {}
                Some(status) => {
                    let since = Instant::now();
                    self.failure.get_or_insert(Failure { status, since });
                }
            }
        }
        self.running = running;
        Ok(())
    }

    fn kill(&mut self) {
        for pe in &mut self.running {
            // It may have ended already.
            let _ = pe.kill();
        }
    }
}

/// Returns the file of this program. Another file at its path, or none, is an error: the PEs would
/// be another program.
fn file_of_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let own = metadata("/proc/self/exe")?;
    if let Ok(file) = metadata(&path)
        && file.dev() == own.dev()
        && file.ino() == own.ino()
    {
        return Ok(path);
    }

    // What the kernel appends to the path of a file that is gone.
    let path = path.to_string_lossy();
    let path = path.trim_end_matches(" (deleted)");
    Err(io::Error::other(format!(
        "the program's file {path} was deleted or replaced since this process has started; start the program again"
    )))
}

/// Starts a thread that prints what comes from `pipe` by whole lines, so that lines of PEs are not
/// mixed, and has a clone of `sender` until the pipe ends.
fn print_lines<W: Write + 'static>(
    pipe: Option<impl Read + Send + 'static>,
    output: fn() -> W,
    sender: &Sender<()>,
) -> io::Result<()> {
    let Some(pipe) = pipe else {
        return Ok(());
    };

    let sender = sender.clone();
    thread::Builder::new().spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while let Ok(1..) = pipe.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            // The last line may have no end, and one that is too long is printed in parts.
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }

            // If the output is closed or full, the line is lost and the job goes on.
            let _ = output().write_all(&line);
            line.clear();
        }
        // The channel ends when the last of these threads has come here.
        drop(sender);
    })?;
    Ok(())
}
