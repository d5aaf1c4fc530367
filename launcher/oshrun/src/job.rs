//! The event loop of a job, from its start until no process is left.
//!
//! Passes events (frames, exits, signals, timeouts) to the rules of `rushmem_bootstrap::server` and
//! executes their decisions. It is single-threaded and handles what a PE has sent before its exit.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::server::{Decision, Server, Statuses};
use rushmem_bootstrap::{Exit, env};
use rustix::process::Signal;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::args::Options;
use crate::explain::collection::{Explainer, Purpose};
use crate::failure::{StartFailure, cannot, complain};
use crate::host_losses::HostLosses;
use crate::host_starts::HostStarts;
use crate::hosts::Hosts;
use crate::input::JobInput;
use crate::output::{Output, Tags};
use crate::prepare::prepare;
use crate::progress_line::ProgressLine;
use crate::signals::{SignalRequest, Signals};
use crate::timings::Timings;
use crate::tree::orders::{JobSpec, TreeConfig, n_children};
use crate::tree::wire::{FailedHost, Up};
use crate::tree::{LaunchPlan, MAX_INPUT_PIECES, Subtree};
use crate::watchdog::StartLimit;
use crate::{dry_run, environment, limits, program};

/// Time between SIGTERM and SIGKILL.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Time for killed processes to disappear: enough on a busy machine, and less than a host may be
/// silent.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Additional time for processes that survive that limit, and for the reader of the output.
const FINAL_LIMIT: Duration = Duration::from_secs(1);

/// Maximum number of PEs per process with `--output-files`, so that 1,024 descriptors suffice.
const MAX_WITH_FILES: u32 = 128;

/// Exit status if `--timeout` ends the job.
const TIMED_OUT: i32 = 124;

/// What all tries of a job share.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The signals, from the start of the first try on.
    signals: Option<Signals>,
    /// The standard input, if oshrun reads it.
    pub input: JobInput,
    /// When `--timeout` ends the job.
    deadline: Option<Instant>,
}

/// How a try has ended.
#[derive(Debug)]
pub enum TryEnd {
    /// The job has ended with this exit status.
    Final(i32),
    /// The job may be started again without the hosts that were lost.
    HostsLost {
        /// The exit status if it is not.
        status: i32,
        /// The names of the hosts.
        hosts: BTreeSet<String>,
    },
}

/// Runs the try `number` of a job, from 1 on.
pub async fn run(
    options: &Options,
    hosts: Hosts,
    number: u32,
    mut timings: Timings,
    surroundings: &mut Surroundings,
) -> Result<TryEnd, StartFailure> {
    let nodes = hosts.nodes()?;
    let names = hosts.names();
    let has_other_hosts = hosts.parts.len() > usize::from(hosts.own.is_some());
    let (spec, tree) = (job_spec(options, has_other_hosts, number)?, tree_config(options, &hosts)?);
    let plan = plan(hosts, &spec, &tree)?;
    if options.dry_run {
        let text = dry_run::describe(&plan, &spec, &tree);
        let printed = std::io::stdout().write_all(&text);
        return printed.map(|()| TryEnd::Final(0)).map_err(|error| cannot("print", &error));
    }
    let has_pe_0 = plan.own.as_ref().is_some_and(|(part, _)| part.pes.contains(&0));
    let Surroundings { signals, input, deadline } = surroundings;
    let sends_input = !has_pe_0 || options.retries > 0;
    if sends_input {
        input.begin().map_err(|error| cannot("read the input", &error))?;
    }
    let signals = match signals {
        Some(signals) => signals,
        none => {
            none.insert(Signals::listen().map_err(|error| cannot("listen to signals", &error))?)
        }
    };
    let start_limit = StartLimit::of(nodes.n_pes());
    let start_limit = start_limit.map_err(|error| cannot("start a thread", &error))?;
    let subtree = Subtree::new(sends_input, tree.limit)
        .map_err(|error| cannot("start the guard process", &error))?;
    let tags = match options.tag_output {
        true => Tags::new(nodes.clone(), names.clone()),
        false => Tags::default(),
    };
    timings.planned(nodes.n_pes());
    let mut job = Job {
        progress_line: ProgressLine::new(nodes.n_pes()),
        timings,
        host_starts: HostStarts::new(nodes.clone(), &names),
        server: Server::new(nodes, names),
        subtree,
        output: Output::to_streams(tags).map_err(|error| cannot("start a thread", &error))?,
        end: Termination::Open,
        explainer: Explainer::new(options.explain_after, has_gdb()),
        watched: None,
        late: None,
        interrupted: false,
        losses: HostLosses::new(number <= options.retries, tree.limit),
        input_window: Arc::new(Semaphore::new(MAX_INPUT_PIECES)),
    };
    let notices = plan.own.as_ref().map(|(_, launch)| launch.placements.notices.join("\noshrun: "));
    if let Some(notices) = notices.filter(|notices| !notices.is_empty()) {
        job.output.message(&format!("oshrun: {notices}"));
    }
    job.subtree.start(&spec, &tree, plan, &mut job.output);
    drop(start_limit);
    job.timings.mark("daemons and own PEs started");
    let limit =
        options.timeout.map(|limit| *deadline.get_or_insert_with(|| Instant::now() + limit));
    while !job.subtree.is_idle() && job.end != Termination::GivenUp {
        let is_late = job.late.is_some();
        let deadline = job.end.deadline().or(limit.filter(|_| !is_late));
        let explanation = job.explainer.deadline().filter(|_| job.end == Termination::Open);
        let window = job.input_window.clone();
        tokio::select! {
            event = job.subtree.next() => job.handle(event),
            sentence = job.output.lost() => job.handle(Up::failed(sentence)),
            request = signals.request() => job.request(request).await,
            piece = input.next(&window) => job.subtree.send_input(piece),
            () = job.progress_line.due(), if job.end == Termination::Open => {
                job.progress_line.update(job.host_starts.waits_for().as_deref());
            }
            () = until(deadline) => match (job.end, options.timeout) {
                (Termination::Open, Some(limit)) => job.time_out(limit),
                _ => job.escalate(),
            },
            () = until(explanation) => {}
        }
        job.explain();
    }
    if let Some((purpose, text)) = job.explainer.last(&job.server) {
        job.explained(purpose, text);
    }
    let end = job.finish(signals, limit).await;
    if options.timings {
        job.timings.mark("nothing left");
        complain(&job.timings.table());
    }
    Ok(end)
}

/// PEs on other hosts get the environment that local PEs inherit.
fn job_spec(
    options: &Options,
    has_other_hosts: bool,
    number: u32,
) -> Result<JobSpec, StartFailure> {
    let number_of_try = (env::TRY.into(), number.to_string().into());
    let folder = has_other_hosts.then(environment::folder).transpose();
    let folder = folder.map_err(|error| cannot("find the working directory", &error))?;
    Ok(JobSpec {
        program: options.program.clone(),
        arguments: options.arguments.clone(),
        exported: options.export.iter().cloned().chain([number_of_try]).collect(),
        forwarded: if has_other_hosts { environment::forwarded() } else { Vec::new() },
        folder,
        placement: options.placement,
        no_aslr: options.no_aslr,
        // A dry run does not create the folder.
        output_files: options.output_files.clone().filter(|_| !options.dry_run),
        debugged: options.gdb.clone(),
        prompts: rustix::termios::isatty(rustix::stdio::stdin()),
    })
}

fn tree_config(options: &Options, hosts: &Hosts) -> Result<TreeConfig, StartFailure> {
    let oshrun = match &options.prefix {
        Some(prefix) => prefix.join("bin/oshrun"),
        None => std::env::current_exe().map_err(|error| cannot("find its own file", &error))?,
    };
    Ok(TreeConfig {
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

/// Whether gdb is installed on this host.
fn has_gdb() -> bool {
    program::find(OsStr::new("gdb"), std::env::var_os("PATH").as_deref()).is_ok()
}

/// Divides the job among this process and others. Detects errors on this host before any process
/// is started.
fn plan(hosts: Hosts, spec: &JobSpec, tree: &TreeConfig) -> Result<LaunchPlan, StartFailure> {
    let mut others = hosts.parts;
    let Some(own) = hosts.own.map(|own| others.remove(own)) else {
        limits::make_room(0, n_children(&[], &others, tree.fan_out), false)?;
        return Ok(LaunchPlan { others, ..LaunchPlan::default() });
    };
    let (own, pieces) = own.split(tree.pes_per_process);
    let launch = prepare(spec, tree, &own, n_children(&pieces, &others, tree.fan_out), None)?;
    Ok(LaunchPlan { host: None, own: Some((own, launch)), pieces, others })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// How far the job has been terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Termination {
    /// The job runs.
    Open,
    /// The PEs got SIGTERM, and will be killed at this time.
    Terminating(Instant),
    /// The PEs were killed, and must disappear by this time.
    Killed(Instant),
    /// Some PEs did not disappear.
    GivenUp,
}

impl Termination {
    fn deadline(self) -> Option<Instant> {
        match self {
            Termination::Terminating(at) | Termination::Killed(at) => Some(at),
            Termination::Open | Termination::GivenUp => None,
        }
    }
}

struct Job {
    progress_line: ProgressLine,
    timings: Timings,
    host_starts: HostStarts,
    server: Server,
    subtree: Subtree,
    output: Output,
    end: Termination,
    explainer: Explainer,
    /// Where daemons look for long waits.
    watched: Option<Statuses>,
    /// The time limit, if it is over.
    late: Option<Duration>,
    /// Whether a SIGINT was forwarded.
    interrupted: bool,
    losses: HostLosses,
    /// Number of further pieces of input that may be sent to PE 0.
    input_window: Arc<Semaphore>,
}

impl Job {
    /// Passes an event to the rules.
    fn handle(&mut self, event: Up) {
        match event {
            Up::Greeted { pe } => self.timings.mark_some(self.host_starts.greeted(pe)),
            Up::Started { pe, pid } => {
                self.server.started(pe, pid);
                self.progress_line.started();
                self.timings.started();
                self.timings.mark_some(self.host_starts.started(pe));
            }
            Up::Frames { pe, bytes } if self.end == Termination::Open => {
                self.timings.mark_some(self.host_starts.entered(pe));
                let decisions = self.server.received(pe, &bytes);
                self.timings.initialized(self.server.initialized());
                self.execute(decisions);
                self.watch();
            }
            Up::Exited { pe, exit } => {
                self.timings.exited();
                let decision = self.server.exited(pe, exit);
                self.explainer.ended(pe);
                self.ask_about_loss(decision.as_ref());
                self.execute(decision);
            }
            Up::Failed { status, sentence, host } => {
                let decision = self.server.end(status, Some(format!("oshrun: {sentence}")));
                if decision.is_some() && host.is_some() {
                    self.losses.may_be_reason();
                }
                host.into_iter().for_each(|host| self.losses.add(host));
                self.ask_about_loss(decision.as_ref());
                self.execute(decision);
            }
            Up::Found(result) => self.explainer.add(result),
            Up::Overdue(wait) => self.explainer.overdue(wait),
            Up::Notice(notice) => {
                self.progress_line.clear();
                self.output.message(&format!("oshrun: {notice}"));
            }
            Up::InputConsumed => self.input_window.add_permits(1),
            Up::Frames { .. } | Up::Printed(_) | Up::Idle | Up::Done | Up::Pong => {}
        }
    }

    /// Makes daemons look for long waits, as soon as it is known where the statuses are.
    fn watch(&mut self) {
        let statuses = self.server.statuses();
        if let Some(limit) = self.explainer.limit()
            && let Some(places) = statuses
            && self.watched != statuses
        {
            self.watched = statuses;
            self.subtree.watch(places, limit);
        }
    }

    /// If the job ends because a PE or a host was lost: asks what the others are doing before they
    /// are ended. This does not delay the end.
    fn ask_about_loss(&mut self, decision: Option<&Decision>) {
        if let Some(Decision::EndJob { .. }) = decision
            && let Some(inquiry) = self.explainer.begin(Purpose::Loss, &self.server)
        {
            self.subtree.explain(inquiry);
        }
    }

    /// Begins an explanation.
    fn ask(&mut self, purpose: Purpose) {
        if self.end == Termination::Open
            && let Some(inquiry) = self.explainer.begin(purpose, &self.server)
        {
            self.subtree.explain(inquiry);
        }
    }

    /// Prints an explanation that is complete, and begins one that is due.
    fn explain(&mut self) {
        if let Some(inquiry) = self.explainer.overtime(&self.server) {
            let results = self.subtree.results(&inquiry);
            results.into_iter().for_each(|result| self.explainer.add(result));
        }
        if let Some((purpose, text)) = self.explainer.finish(&self.server) {
            self.explained(purpose, text);
        }
        if self.end == Termination::Open
            && let Some(inquiry) = self.explainer.begin_due(&self.server)
        {
            self.subtree.explain(inquiry);
        }
    }

    fn explained(&mut self, purpose: Purpose, text: String) {
        if purpose == Purpose::Timeout
            && let Some(limit) = self.late
        {
            // Cause: the time of `--timeout` has passed; the explanation of the waits follows.
            // Remedy: read the explanation, or give it more time.
            let message = format!(
                "oshrun: the job did not end within {} seconds (--timeout)\n{text}",
                limit.as_secs_f64()
            );
            self.progress_line.clear();
            self.output.message(message.trim_end());
            self.end_late();
        } else if !text.is_empty() {
            self.progress_line.clear();
            self.output.message(&text);
        }
    }

    /// Ends the job, which was late.
    fn end_late(&mut self) {
        let decision = self.server.end(TIMED_OUT, None);
        self.execute(decision);
    }

    fn execute(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send { pe, frame } => self.subtree.send(pe, frame),
                Decision::SendAll { to, frame } => {
                    self.timings.exchanged();
                    self.subtree.send_all(to, &frame);
                }
                Decision::Warn { message } => {
                    self.progress_line.clear();
                    self.output.message(&message);
                }
                Decision::EndJob { message, lost_peer, .. } => {
                    // A PE may notice the loss of a host before oshrun does.
                    if lost_peer {
                        self.losses.may_be_reason();
                    }
                    self.progress_line.clear();
                    if let Some(message) = message {
                        self.output.message(&message);
                    }
                    self.subtree.signal(Signal::TERM);
                    // A stopped process handles SIGTERM only after SIGCONT.
                    self.subtree.signal(Signal::CONT);
                    self.end = Termination::Terminating(Instant::now() + GRACE_PERIOD);
                }
            }
        }
    }

    async fn request(&mut self, request: SignalRequest) {
        // The effect of a signal may depend on which PEs have started.
        for event in self.subtree.take_events() {
            self.handle(event);
        }
        match request {
            SignalRequest::Forward(libc::SIGINT) if self.interrupted => {
                // Cause: Ctrl-C was pressed twice. Remedy: none is needed.
                let message = "oshrun: the job was killed by a second SIGINT";
                let decision =
                    self.server.end(Exit::Signal(libc::SIGINT).status(), Some(message.to_string()));
                self.execute(decision);
                self.kill();
            }
            SignalRequest::Forward(number) => {
                self.interrupted |= number == libc::SIGINT;
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.subtree.signal(signal);
                }
                if number == libc::SIGUSR1 {
                    self.ask(Purpose::Request);
                }
                if request.is_end() {
                    self.losses.forbid();
                    let decision = self.server.interrupted(number);
                    self.execute(decision);
                }
            }
            SignalRequest::Explain => self.ask(Purpose::Request),
            SignalRequest::Stop => stop(&self.subtree).await,
            SignalRequest::Continue => self.subtree.resume(),
        }
    }

    /// Begins the explanation after which the job ends.
    fn time_out(&mut self, limit: Duration) {
        self.late = Some(limit);
        self.losses.forbid();
        self.ask(Purpose::Timeout);
    }

    /// Handles the end of the grace period, or of the time limit of killed PEs.
    fn escalate(&mut self) {
        match self.end {
            Termination::Terminating(_) => self.kill(),
            Termination::Killed(_) => {
                self.end = Termination::GivenUp;
                let (pes, hosts) = self.subtree.remains();
                let own = pes.first().map(|pe| self.server.host(*pe).to_string());
                // They are no reason for another try, but are not used in one.
                if self.losses.is_repeated() {
                    for name in hosts.iter().cloned().chain(own) {
                        self.losses.add(FailedHost { name, may_run: true });
                    }
                }
                let pes = pes.into_iter().map(|pe| self.server.name(pe));
                let hosts = hosts.into_iter().map(|host| format!("what runs on host {host}"));
                for what in pes.chain(hosts) {
                    self.output
                        // Cause: the kernel cannot end a process, as one that waits for a file
                        // system. Remedy: look at that host.
                        .message(&format!("oshrun: {what} has been killed, but does not end"));
                }
            }
            Termination::Open | Termination::GivenUp => {}
        }
    }

    fn kill(&mut self) {
        self.subtree.signal(Signal::KILL);
        self.end = Termination::Killed(Instant::now() + KILL_LIMIT);
    }

    /// Ends the remaining processes, forwards the remaining output, and waits until nothing is left
    /// on lost hosts if the job may be started again.
    async fn finish(&mut self, signals: &mut Signals, limit: Option<Instant>) -> TryEnd {
        self.subtree
            .clear(if self.end == Termination::GivenUp { FINAL_LIMIT } else { KILL_LIMIT })
            .await;
        let limit = limit.map(|at| at.max(Instant::now() + FINAL_LIMIT));
        let cleared_at = self.losses.cleared_at();
        let lost = {
            let mut written = std::pin::pin!(async {
                let lost = self.output.finish().await;
                if let Some(at) = cleared_at {
                    sleep_until(at).await;
                }
                lost
            });
            loop {
                // This blocks only if the reader of the output has stopped.
                tokio::select! {
                    // A daemon reports lost output before its own output ends.
                    biased;
                    event = self.subtree.next() => if let Up::Failed { status, sentence, host } = event {
                        fail_late(&mut self.server, status, &sentence);
                        host.into_iter().for_each(|host| self.losses.add(host));
                    },
                    request = signals.request() => match request {
                        SignalRequest::Stop => stop(&self.subtree).await,
                        SignalRequest::Continue => self.subtree.resume(),
                        SignalRequest::Forward(number) if request.is_end() => {
                            return TryEnd::Final(Exit::Signal(number).status());
                        }
                        SignalRequest::Forward(_) | SignalRequest::Explain => {}
                    },
                    () = until(limit) => {
                        if cleared_at.is_some() {
                            // Cause: a PE of the failed try may still run on a lost host. Remedy:
                            // a longer --timeout, or a shorter --host-limit.
                            complain(
                                "oshrun: the job is not started again: the time of --timeout has passed, and PEs may still \
                                 run on the lost hosts",
                            );
                        }
                        let status = self.server.status();
                        return TryEnd::Final(if status == 0 { TIMED_OUT } else { status });
                    }
                    lost = &mut written => break lost,
                }
            }
        };
        if let Some(sentence) = lost {
            fail_late(&mut self.server, 1, &sentence);
        } else if !self.output.has_pe_errors().await
            && let Some(message) = self.server.failed_without_init()
        {
            complain(&message);
        }
        self.subtree.dismiss(FINAL_LIMIT).await;
        let status = self.server.status();
        match self.losses.take() {
            Some(hosts) => TryEnd::HostsLost { status, hosts },
            None => TryEnd::Final(status),
        }
    }
}

/// Reports an error after the end of all PEs. The status of a PE that failed before has precedence.
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
    // A process can always stop itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
