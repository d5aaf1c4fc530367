//! One job from its start until nothing of it is left.
//!
//! It moves what happens (frames, exits, signals, time) into the rules of `rushmem_bootstrap::server` and carries out what
//! they decide. Everything runs on one thread, so what a PE has sent can be read before its exit is judged.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rushmem_bootstrap::server::{Decision, Server};
use rushmem_bootstrap::{Exit, NodeMap};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::args::Options;
use crate::failure::Failure;
use crate::link::Link;
use crate::output::Output;
use crate::processes::Processes;
use crate::signals::{Event, Request, Signals};
use crate::spawn::Launch;
use crate::{input, limits, placement, program, spawn};

/// Time between SIGTERM and SIGKILL when a job is ended.
const GRACE: Duration = Duration::from_millis(500);

/// Time that killed processes get to disappear.
const PATIENCE: Duration = Duration::from_secs(1);

/// Exit status when `--timeout` ended the job.
const TIMED_OUT: i32 = 124;

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Runs a job and returns its exit status.
///
/// # Errors
/// When nothing could be started.
pub async fn run(options: &Options) -> Result<i32, Failure> {
    let launch = prepare(options)?;
    let nodes =
        NodeMap::one_node(options.n_pes).map_err(|error| Failure::usage(error.to_string()))?;
    let mut signals = Signals::listen().map_err(|error| cannot("listen to signals", &error))?;
    let processes = Processes::new().map_err(|error| cannot("start the guard process", &error))?;
    let (readable, mut arrivals) = mpsc::unbounded_channel();
    let mut job = Job {
        server: Server::new(
            nodes,
            rustix::system::uname().nodename().to_string_lossy().into_owned(),
        ),
        links: Vec::new(),
        processes,
        output: Output::new(options.tag_output),
        end: End::Open,
        interrupted: false,
    };
    let words = &launch.placements.words;
    if !words.is_empty() {
        job.output.message(&format!("oshrun: {}", words.join("\noshrun: ")));
    }
    job.start(&launch, options.n_pes, &readable);
    drop(launch);
    let limit = options.timeout.map(|limit| (limit, Instant::now() + limit));
    while !job.processes.all_exited() && job.end != End::GivenUp {
        let deadline = job.end.deadline().or(limit.map(|(_, at)| at));
        tokio::select! {
            event = signals.next() => match event {
                Event::Child => job.exits(),
                Event::Request(request) => job.request(request),
            },
            Some(pe) = arrivals.recv() => if job.receive(pe) {
                // The receiver is in this very function.
                let _ = readable.send(pe);
            },
            () = until(deadline) => match (job.end, limit) {
                (End::Open, Some((limit, _))) => job.time_out(limit),
                _ => job.escalate(),
            },
        }
    }
    Ok(job.finish(signals, limit.map(|(_, at)| at)).await)
}

/// Everything that can be wrong before a process is started.
fn prepare(options: &Options) -> Result<Launch, Failure> {
    let variable = |name: &str| {
        let exported = options.export.iter().rev().find(|(exported, _)| exported == name);
        exported.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    };
    let file = program::find(&options.program, variable("PATH").as_deref())?;
    let mut variables: Vec<(OsString, OsString)> = options.export.clone();
    let oshrun = std::env::current_exe().map_err(|error| cannot("find its own file", &error))?;
    if let Some(path) = program::library_path(&oshrun, variable(LIBRARY_PATH).as_deref()) {
        variables.push((OsStr::new(LIBRARY_PATH).to_os_string(), path));
    }
    let placements =
        placement::place(options.n_pes, options.wish, |name| variable(name).is_some())?;
    let limit = limits::make_room(options.n_pes)?;
    let memory = spawn::node_memory()
        .map_err(|error| cannot("make the shared memory of the job", &error))?;
    Ok(Launch {
        file,
        program: options.program.clone(),
        arguments: options.arguments.clone(),
        variables,
        memory,
        limit,
        placements,
    })
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::general(format!("cannot {what}: {}", program::reason(error)))
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// How far the end of the job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It runs.
    Open,
    /// The PEs were asked to end and will be killed at this time.
    Asked(Instant),
    /// The PEs were killed and have until this time to disappear.
    Killed(Instant),
    /// Some of them do not disappear.
    GivenUp,
}

impl End {
    fn deadline(self) -> Option<Instant> {
        match self {
            End::Asked(at) | End::Killed(at) => Some(at),
            End::Open | End::GivenUp => None,
        }
    }
}

struct Job {
    server: Server,
    /// The connection to each PE, until it exits.
    links: Vec<Option<Link>>,
    processes: Processes,
    output: Output,
    end: End,
    /// Whether a SIGINT was forwarded.
    interrupted: bool,
}

impl Job {
    /// Starts the PEs, up to the first that cannot be started.
    fn start(&mut self, launch: &Launch, n_pes: u32, readable: &mpsc::UnboundedSender<u32>) {
        for pe in 0..n_pes {
            if let Err(error) = self.start_one(launch, pe, readable) {
                let status = match error.kind() {
                    io::ErrorKind::NotFound => 127,
                    io::ErrorKind::PermissionDenied => 126,
                    _ if error.raw_os_error() == Some(libc::ENOEXEC) => 126,
                    _ => 1,
                };
                let (file, reason) = (launch.file.display(), program::reason(&error));
                let cure = match error.kind() {
                    io::ErrorKind::NotFound => " (of its interpreter or loader)",
                    io::ErrorKind::WouldBlock => " (see ulimit -u)",
                    _ => "",
                };
                let decision = self.server.end(
                    status,
                    Some(format!("oshrun: cannot start {file} as PE {pe}: {reason}{cure}")),
                );
                self.carry_out(decision);
                return;
            }
        }
    }

    fn start_one(
        &mut self,
        launch: &Launch,
        pe: u32,
        readable: &mpsc::UnboundedSender<u32>,
    ) -> io::Result<()> {
        let stdin = if pe == 0 { input::of_first_pe()? } else { Stdio::null() };
        let started = launch.start(pe, stdin, self.processes.guard())?;
        self.processes.add(started.pid);
        self.server.started(pe, started.pid.as_raw_nonzero().get().unsigned_abs());
        self.links.push(None);
        self.output.carry(pe, started.stdout, started.stderr)?;
        self.links[pe as usize] = Some(Link::new(pe, started.socket, readable.clone())?);
        Ok(())
    }

    /// Gives what `pe` has sent to the rules, some at a time, so that no PE can keep oshrun busy with itself. Returns
    /// whether there may be more.
    fn receive(&mut self, pe: u32) -> bool {
        let mut bytes = [0; 16 * 1024];
        for _ in 0..16 {
            let nbytes = match &self.links[pe as usize] {
                Some(link) if self.end == End::Open => link.read(&mut bytes),
                _ => 0,
            };
            if nbytes == 0 {
                return false;
            }
            let decisions = self.server.received(pe, &bytes[..nbytes]);
            self.carry_out(decisions);
        }
        true
    }

    /// Gives the exits of PEs to the rules, each after what the PE has sent.
    fn exits(&mut self) {
        for (pe, exit) in self.processes.reap() {
            // A PE's last words fit its socket; a child of it that goes on writing is not waited for.
            let _ = self.receive(pe);
            self.links[pe as usize] = None;
            let decision = self.server.exited(pe, exit);
            self.carry_out(decision);
        }
    }

    fn carry_out(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send { pe, frame } => {
                    if let Some(Some(link)) = self.links.get(pe as usize) {
                        link.send(frame);
                    }
                }
                Decision::SendAll { frame } => {
                    self.links.iter().flatten().for_each(|link| link.send(frame.clone()));
                }
                Decision::EndJob { message, .. } => {
                    if let Some(message) = message {
                        self.output.message(&message);
                    }
                    self.processes.signal(Signal::TERM);
                    // A stopped process ends only when it goes on.
                    self.processes.signal(Signal::CONT);
                    self.end = End::Asked(Instant::now() + GRACE);
                }
            }
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Forward(libc::SIGINT) if self.interrupted => {
                let message = "oshrun: the job was killed by a second SIGINT";
                let decision =
                    self.server.end(Exit::Signal(libc::SIGINT).status(), Some(message.to_string()));
                self.carry_out(decision);
                self.kill();
            }
            Request::Forward(number) => {
                self.interrupted |= number == libc::SIGINT;
                if request.is_end() {
                    self.server.interrupted(number);
                }
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.processes.signal(signal);
                }
            }
            Request::Stop => {
                self.processes.signal(Signal::STOP);
                stop_self();
            }
            Request::Continue => self.processes.signal(Signal::CONT),
        }
    }

    fn time_out(&mut self, limit: Duration) {
        let message = format!(
            "oshrun: the job did not end within {} seconds (--timeout)",
            limit.as_secs_f64()
        );
        let decision = self.server.end(TIMED_OUT, Some(message));
        self.carry_out(decision);
    }

    /// The PEs had their time to end.
    fn escalate(&mut self) {
        match self.end {
            End::Asked(_) => self.kill(),
            End::Killed(_) => {
                self.end = End::GivenUp;
                for pe in self.processes.alive() {
                    self.output.message(&format!(
                        "oshrun: {} does not end though it was killed",
                        self.server.name(pe)
                    ));
                }
            }
            End::Open | End::GivenUp => {}
        }
    }

    fn kill(&mut self) {
        self.processes.signal(Signal::KILL);
        self.end = End::Killed(Instant::now() + PATIENCE);
    }

    /// Clears away what is left of the job, passes on the last output, and returns the exit status.
    async fn finish(self, mut signals: Signals, limit: Option<Instant>) -> i32 {
        let status = self.server.status();
        self.processes.clear(PATIENCE).await;
        let limit = limit.map(|at| at.max(Instant::now() + PATIENCE));
        let mut written = std::pin::pin!(self.output.finish());
        loop {
            // Only a reader that has stopped reading makes this long.
            tokio::select! {
                () = &mut written => return status,
                request = signals.request() => match request {
                    Request::Stop => stop_self(),
                    Request::Forward(number) if request.is_end() => return Exit::Signal(number).status(),
                    Request::Forward(_) | Request::Continue => {}
                },
                () = until(limit) => return if status == 0 { TIMED_OUT } else { status },
            }
        }
    }
}

fn stop_self() {
    // Nothing refuses it.
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
