//! One job from its start until nothing of it is left.
//!
//! It moves what happens (frames, exits, signals, time) into the rules of
//! `rushmem_bootstrap::server` and carries out what they decide. Everything runs on one thread, so
//! what a PE has sent is decided before its exit.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::Exit;
use rushmem_bootstrap::server::{Decision, Server};
use rustix::process::Signal;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::args::Options;
use crate::failure::{Failure, cannot, complain};
use crate::hosts::{self, Hosts};
use crate::output::{Output, Tags};
use crate::prepare::prepare;
use crate::progress::Progress;
use crate::signals::{Request, Signals};
use crate::timings::Timings;
use crate::tree::orders::{Growth, Task, n_children};
use crate::tree::wire::Up;
use crate::tree::{PIECES, Plan, Subtree};
use crate::watchdog::StartLimit;
use crate::{dry_run, environment, input, limits};

/// Time between SIGTERM and SIGKILL when a job is ended.
const GRACE: Duration = Duration::from_millis(500);

/// Time in which killed processes must disappear: more than they need on a busy machine, but less
/// than the time for which a host may be silent.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Time for the remaining processes after that, and for the reader of the output.
const REST: Duration = Duration::from_secs(1);

/// Maximum number of PEs with output files that one process starts, so that 1,024 descriptors are
/// enough.
const MAX_WITH_FILES: u32 = 128;

/// Exit status when `--timeout` ended the job.
const TIMED_OUT: i32 = 124;

/// Runs a job and returns its exit status.
///
/// # Errors
/// When nothing could be started.
pub async fn run(options: &Options) -> Result<i32, Failure> {
    let mut timings = Timings::new();
    let hosts = hosts::find(&options.hosts, options.n_pes)?;
    let nodes = hosts.nodes()?;
    let names = hosts.names();
    let is_far = hosts.parts.len() > usize::from(hosts.own.is_some());
    let (task, growth) = (task(options, is_far)?, growth(options, &hosts)?);
    let plan = plan(hosts, &task, &growth)?;
    if options.dry_run {
        let text = dry_run::describe(&plan, &task, &growth);
        let printed = std::io::stdout().write_all(&text);
        return printed.map(|()| 0).map_err(|error| cannot("print", &error));
    }
    let has_first = plan.own.as_ref().is_some_and(|(part, _)| part.pes.contains(&0));
    let mut pieces = match has_first {
        true => None,
        false => Some(input::pieces().map_err(|error| cannot("read the input", &error))?),
    };
    let mut signals = Signals::listen().map_err(|error| cannot("listen to signals", &error))?;
    let start_limit = StartLimit::of(nodes.n_pes());
    let start_limit = start_limit.map_err(|error| cannot("start a thread", &error))?;
    let subtree = Subtree::new(false, growth.limit)
        .map_err(|error| cannot("start the guard process", &error))?;
    let tags = match options.tag_output {
        true => Tags::new(nodes.clone(), names.clone()),
        false => Tags::none(),
    };
    timings.planned(nodes.n_pes());
    let mut job = Job {
        progress: Progress::new(nodes.n_pes()),
        timings,
        server: Server::new(nodes, names),
        subtree,
        output: Output::to_streams(tags).map_err(|error| cannot("start a thread", &error))?,
        end: End::Open,
        interrupted: false,
        inputs_taken: Arc::new(Semaphore::new(PIECES)),
    };
    let words = plan.own.as_ref().map(|(_, launch)| launch.placements.words.join("\noshrun: "));
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        job.output.message(&format!("oshrun: {words}"));
    }
    job.subtree.start(&task, &growth, plan, &mut job.output);
    drop(start_limit);
    job.timings.mark("daemons and own PEs called");
    let limit = options.timeout.map(|limit| (limit, Instant::now() + limit));
    while !job.subtree.is_idle() && job.end != End::GivenUp {
        let deadline = job.end.deadline().or(limit.map(|(_, at)| at));
        let window = job.inputs_taken.clone();
        tokio::select! {
            news = job.subtree.next() => job.hear(news),
            sentence = job.output.lost() => job.hear(Up::Failed { status: 1, sentence }),
            request = signals.request() => job.request(request).await,
            (piece, is_last) = piece(&mut pieces, &window) => {
                job.subtree.feed(piece);
                if is_last {
                    pieces = None;
                }
            }
            () = until(deadline) => match (job.end, limit) {
                (End::Open, Some((limit, _))) => job.time_out(limit),
                _ => job.escalate(),
            },
        }
    }
    let status = job.finish(signals, limit.map(|(_, at)| at)).await;
    if options.timings {
        job.timings.mark("nothing left");
        complain(&job.timings.table());
    }
    Ok(status)
}

/// What all PEs have in common. PEs on other hosts get the environment that PEs here inherit.
fn task(options: &Options, is_far: bool) -> Result<Task, Failure> {
    let folder = is_far.then(environment::folder).transpose();
    let folder = folder.map_err(|error| cannot("find the working directory", &error))?;
    Ok(Task {
        program: options.program.clone(),
        arguments: options.arguments.clone(),
        exported: options.export.clone(),
        carried: if is_far { environment::carried() } else { Vec::new() },
        folder,
        wish: options.wish,
        no_aslr: options.no_aslr,
        // A folder for output is not made either if nothing is started.
        output_files: options.output_files.clone().filter(|_| !options.dry_run),
        debugged: options.gdb.clone(),
        prompts: rustix::termios::isatty(rustix::stdio::stdin()),
    })
}

fn growth(options: &Options, hosts: &Hosts) -> Result<Growth, Failure> {
    let oshrun = match &options.prefix {
        Some(prefix) => prefix.join("bin/oshrun"),
        None => std::env::current_exe().map_err(|error| cannot("find its own file", &error))?,
    };
    Ok(Growth {
        agent: hosts.agent.clone(),
        oshrun,
        fan_out: options.fan_out,
        pes_per_process: match options.output_files {
            Some(_) => options.pes_per_process.min(MAX_WITH_FILES),
            None => options.pes_per_process,
        },
        limit: options.host_limit,
    })
}

/// Divides the job between this process and others, and finds everything that can be wrong on this
/// host before a process is started.
fn plan(hosts: Hosts, task: &Task, growth: &Growth) -> Result<Plan, Failure> {
    let mut others = hosts.parts;
    let Some(own) = hosts.own.map(|own| others.remove(own)) else {
        limits::make_room(0, n_children(&[], &others, growth.fan_out), false)?;
        return Ok(Plan { others, ..Plan::default() });
    };
    let (own, pieces) = own.split(growth.pes_per_process);
    let launch = prepare(task, growth, &own, n_children(&pieces, &others, growth.fan_out), None)?;
    Ok(Plan { host: None, own: Some((own, launch)), pieces, others })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The next piece of input, and whether it is the last, when PE 0 has room for it.
async fn piece(
    pieces: &mut Option<mpsc::Receiver<Vec<u8>>>,
    window: &Semaphore,
) -> (Vec<u8>, bool) {
    let Some(pieces) = pieces else {
        return std::future::pending().await;
    };
    let Ok(room) = window.acquire().await else {
        return std::future::pending().await;
    };
    let piece = pieces.recv().await.unwrap_or_default();
    room.forget();
    let is_last = piece.is_empty();
    (piece, is_last)
}

/// The progress of the end of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It runs.
    Open,
    /// The PEs were asked to end and will be killed at this time.
    Asked(Instant),
    /// The PEs were killed and have until this time to disappear.
    Killed(Instant),
    /// Some PEs do not disappear.
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
    progress: Progress,
    timings: Timings,
    server: Server,
    subtree: Subtree,
    output: Output,
    end: End,
    /// Whether a SIGINT was forwarded.
    interrupted: bool,
    /// Room for pieces of input on their way to PE 0.
    inputs_taken: Arc<Semaphore>,
}

impl Job {
    /// Passes an event to the rules.
    fn hear(&mut self, news: Up) {
        match news {
            Up::Started { pe, pid } => {
                self.server.started(pe, pid);
                self.progress.started();
                self.timings.started();
            }
            Up::Frames { pe, bytes } if self.end == End::Open => {
                let decisions = self.server.received(pe, &bytes);
                self.timings.initialised(self.server.initialized());
                self.carry_out(decisions);
            }
            Up::Exited { pe, exit } => {
                self.timings.exited();
                let decision = self.server.exited(pe, exit);
                self.carry_out(decision);
            }
            Up::Failed { status, sentence } => {
                let decision = self.server.end(status, Some(format!("oshrun: {sentence}")));
                self.carry_out(decision);
            }
            Up::Words(words) => {
                self.progress.clear();
                self.output.message(&format!("oshrun: {words}"));
            }
            Up::InputTaken => self.inputs_taken.add_permits(1),
            Up::Frames { .. } | Up::Printed(_) | Up::Idle | Up::Done | Up::Pong => {}
        }
    }

    fn carry_out(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send { pe, frame } => self.subtree.send(pe, frame),
                Decision::SendAll { frame } => {
                    self.timings.exchanged();
                    self.subtree.send_all(&frame);
                }
                Decision::Warn { message } => {
                    self.progress.clear();
                    self.output.message(&message);
                }
                Decision::EndJob { message, .. } => {
                    self.progress.clear();
                    if let Some(message) = message {
                        self.output.message(&message);
                    }
                    self.subtree.signal(Signal::TERM);
                    // A stopped process ends only when it continues.
                    self.subtree.signal(Signal::CONT);
                    self.end = End::Asked(Instant::now() + GRACE);
                }
            }
        }
    }

    async fn request(&mut self, request: Request) {
        // Which PEs have started may decide what a signal does.
        for news in self.subtree.arrived() {
            self.hear(news);
        }
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
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.subtree.signal(signal);
                }
                if request.is_end() {
                    let decision = self.server.interrupted(number);
                    self.carry_out(decision);
                }
            }
            Request::Stop => stop(&self.subtree).await,
            Request::Continue => self.subtree.resume(),
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

    /// The time in which PEs should end is over.
    fn escalate(&mut self) {
        match self.end {
            End::Asked(_) => self.kill(),
            End::Killed(_) => {
                self.end = End::GivenUp;
                let (pes, hosts) = self.subtree.remains();
                let pes = pes.into_iter().map(|pe| self.server.name(pe));
                let hosts = hosts.into_iter().map(|host| format!("what runs on host {host}"));
                for what in pes.chain(hosts) {
                    self.output
                        .message(&format!("oshrun: {what} has been killed, but does not end"));
                }
            }
            End::Open | End::GivenUp => {}
        }
    }

    fn kill(&mut self) {
        self.subtree.signal(Signal::KILL);
        self.end = End::Killed(Instant::now() + KILL_LIMIT);
    }

    /// Removes what is left of the job, forwards the last output, and returns the exit status.
    async fn finish(&mut self, mut signals: Signals, limit: Option<Instant>) -> i32 {
        self.subtree.clear(if self.end == End::GivenUp { REST } else { KILL_LIMIT }).await;
        let limit = limit.map(|at| at.max(Instant::now() + REST));
        let lost = {
            let mut written = std::pin::pin!(self.output.finish());
            loop {
                // This takes long only if the reader of the output has stopped.
                tokio::select! {
                    // A daemon reports lost output before its own output ends.
                    biased;
                    news = self.subtree.next() => if let Up::Failed { status, sentence } = news {
                        fail_late(&mut self.server, status, &sentence);
                    },
                    request = signals.request() => match request {
                        Request::Stop => stop(&self.subtree).await,
                        Request::Continue => self.subtree.resume(),
                        Request::Forward(number) if request.is_end() => return Exit::Signal(number).status(),
                        Request::Forward(_) => {}
                    },
                    () = until(limit) => {
                        let status = self.server.status();
                        return if status == 0 { TIMED_OUT } else { status };
                    }
                    lost = &mut written => break lost,
                }
            }
        };
        if let Some(sentence) = lost {
            fail_late(&mut self.server, 1, &sentence);
        } else if !self.output.has_complaint().await
            && let Some(message) = self.server.failed_without_init()
        {
            complain(&message);
        }
        self.subtree.dismiss(REST).await;
        self.server.status()
    }
}

/// An error after the end of all PEs. If a PE has failed before, its status remains that of the
/// job.
fn fail_late(server: &mut Server, status: i32, sentence: &str) {
    let status = match server.status() {
        0 => status,
        failed => failed,
    };
    if server.end(status, None).is_some() {
        complain(&format!("oshrun: {sentence}"));
    }
}

/// Stops the PEs, then oshrun.
async fn stop(subtree: &Subtree) {
    subtree.suspend();
    subtree.flush().await;
    // Nothing refuses it.
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
