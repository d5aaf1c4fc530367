//! The event loop of a job, from its start to the exit status of oshrun.
//!
//! Passes events (frames, exits, signals, timeouts) to the rules of `rushmem_bootstrap::launcher`
//! and executes their decisions. It is single-threaded, and handles everything that a PE has sent
//! before it handles the exit of that PE.

pub mod plan;
mod signals;

use std::ffi::OsStr;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::launcher::{Decision, Server, Statuses};
use rushmem_bootstrap::{Exit, signal_name};
use rushmem_explain::snapshot::WaitId;
use rushmem_system::stderr::print_line;
use rustix::process::Signal;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use self::plan::JobPlan;
use self::signals::{Interrupts, SignalRequest, Signals};
use crate::daemons::connection::HostEvent;
use crate::errors::{StartFailure, StartLimit, cannot};
use crate::hang_report::{Explainer, Explanation, LONG_WAIT, Purpose};
use crate::input::JobInput;
use crate::options::Options;
use crate::output::{Output, Tags};
use crate::progress::{Phase, ProgressLine, Timings};
use crate::spawn::program;
use crate::supervisor::{MAX_INPUT_PIECES, Supervisor};

/// Time for PEs to end after SIGTERM. A second SIGINT or SIGTERM kills them earlier.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Time for killed processes to disappear. It suffices on a busy machine, and is shorter than the
/// default of `--host-limit`.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Time for each of the last steps: for processes that survive [`KILL_LIMIT`] to disappear, for
/// daemons to exit, and for the reader of the output to read it if `--timeout` has expired.
const FINAL_LIMIT: Duration = Duration::from_secs(1);

/// Maximum time for which a message of a PE is held back, so that equal ones of others are printed
/// with it.
const MESSAGE_DELAY: Duration = Duration::from_millis(100);

/// Exit status if `--timeout` ends the job.
const TIMED_OUT: i32 = 124;

/// Runs a job, or with `--dry-run` prints its plan. Returns the exit status of oshrun.
pub async fn run(options: &Options) -> Result<i32, StartFailure> {
    let timings = Timings::new();
    let plan = JobPlan::new(options)?;
    if plan.nodes.n_pes() == 1
        && let Some(note) = options.misplaced_n_pes()
    {
        print_line(format_args!("oshrun: {note}"));
    }
    if options.dry_run {
        std::io::stdout()
            .write_all(&plan.describe())
            .map_err(|error| cannot("print", &error))?;
        return Ok(0);
    }

    let mut input = if plan.has_pe_0() {
        JobInput::none()
    } else {
        JobInput::begin().map_err(|error| cannot("read the input", &error))?
    };
    // From here on a signal ends the job, and not oshrun alone.
    let mut signals = Signals::listen().map_err(|error| cannot("listen to signals", &error))?;

    let start_limit =
        StartLimit::new(plan.nodes.n_pes()).map_err(|error| cannot("start a thread", &error))?;
    let mut job = Job::new(options, &plan, timings)?;
    job.print_notices(&plan);
    job.start(&plan);
    drop(start_limit);
    job.timings.mark("daemons and own PEs started");

    let timeout = options.timeout.map(|limit| Timeout {
        limit,
        deadline: Instant::now() + limit,
    });
    job.supervise(&mut signals, &mut input, timeout).await;
    if let Some(explanation) = job.explainer.finish_last(&job.server) {
        job.print_explanation(explanation);
    }

    let status = job.finish(&mut signals, timeout).await;
    if options.timings {
        job.timings.mark("nothing left");
        print_line(job.timings.table());
    }
    Ok(status)
}

/// The limit of `--timeout`, and the time at which it expires.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    limit: Duration,
    deadline: Instant,
}

/// Waits until the deadline, or forever if there is none.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The stages of the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Termination {
    /// The job runs, or its PEs have ended by themselves.
    Open,
    /// The PEs got SIGTERM. Those that still run at this time will be killed.
    Terminating(Instant),
    /// The PEs were killed, and must disappear by this time.
    Killed(Instant),
    /// Some PEs did not disappear.
    GivenUp,
}

impl Termination {
    fn deadline(self) -> Option<Instant> {
        match self {
            Termination::Terminating(deadline) | Termination::Killed(deadline) => Some(deadline),
            Termination::Open | Termination::GivenUp => None,
        }
    }
}

struct Job {
    progress_line: ProgressLine,
    timings: Timings,
    server: Server,
    supervisor: Supervisor,
    output: Output,
    end: Termination,
    explainer: Explainer,
    /// The position of the PEs' statuses that all hosts search for long waits; `None` before the
    /// search was requested.
    watched: Option<Statuses>,
    /// The limit of `--timeout`, once it has expired.
    expired: Option<Duration>,
    /// The time until which messages of PEs are held back, so that equal ones are printed together;
    /// `None` if no printing is due.
    print_at: Option<Instant>,
    interrupts: Interrupts,
    /// The signals that end the job and that the PEs get after the explanation in progress.
    held_signals: Vec<i32>,
    /// The permits for pieces of input to PE 0 on another host: one for each piece that may be sent
    /// now.
    input_window: Arc<Semaphore>,
}

impl Job {
    /// Starts the guard and the threads that write the output, but neither PEs nor daemons.
    fn new(options: &Options, plan: &JobPlan, mut timings: Timings) -> Result<Job, StartFailure> {
        let supervisor = Supervisor::new(!plan.has_pe_0(), plan.spec.host_limit)
            .map_err(|error| cannot("start the guard process", &error))?;
        timings.record_plan(plan.nodes.n_pes());

        let tags = if options.tag_output {
            Tags::new(plan.nodes.clone(), plan.names.clone())
        } else {
            Tags::default()
        };
        let path = std::env::var_os("PATH");
        let has_gdb = program::find(OsStr::new("gdb"), path.as_deref()).is_ok();

        Ok(Job {
            progress_line: ProgressLine::new(plan.nodes.clone(), &plan.names),
            timings,
            server: Server::new(plan.nodes.clone(), plan.names.clone()),
            supervisor,
            output: Output::to_streams(tags).map_err(|error| cannot("start a thread", &error))?,
            end: Termination::Open,
            explainer: Explainer::new(options.explain_after, has_gdb),
            watched: None,
            expired: None,
            print_at: None,
            interrupts: Interrupts::default(),
            held_signals: Vec::new(),
            input_window: Arc::new(Semaphore::new(MAX_INPUT_PIECES)),
        })
    }

    /// Prints the notices about the placement of the PEs of this host.
    fn print_notices(&mut self, plan: &JobPlan) {
        if let Some(local) = &plan.local
            && !local.start.placements.notices.is_empty()
        {
            let notices = local.start.placements.notices.join("\noshrun: ");
            self.output.message(&format!("oshrun: {notices}"));
        }
    }

    /// Starts the daemons, which take longer, and then the PEs of this host. A failure becomes an
    /// event, behind the events of the PEs that were started before it.
    fn start(&mut self, plan: &JobPlan) {
        if let Err(StartFailure { status, sentence }) = self.try_start(plan) {
            self.supervisor
                .report(HostEvent::Failed { status, sentence });
        }
    }

    fn try_start(&mut self, plan: &JobPlan) -> Result<(), StartFailure> {
        self.supervisor.start_daemons(plan, &mut self.output)?;
        if let Some(local) = &plan.local {
            self.supervisor.start_pes(&local.start, &mut self.output)?;
        }
        Ok(())
    }

    /// Handles events until all PEs have ended, or some do not end although they were killed.
    async fn supervise(
        &mut self,
        signals: &mut Signals,
        input: &mut JobInput,
        timeout: Option<Timeout>,
    ) {
        while !self.supervisor.is_idle() && self.end != Termination::GivenUp {
            let deadline = match self.end.deadline() {
                None if self.expired.is_none() => timeout.map(|timeout| timeout.deadline),
                deadline => deadline,
            };
            let explanation_deadline = if self.end == Termination::Open {
                self.explainer.deadline()
            } else {
                None
            };
            let window = self.input_window.clone();

            tokio::select! {
                event = self.supervisor.next() => self.handle(event),
                sentence = self.output.next_loss() => self.handle(HostEvent::failed(sentence)),
                request = signals.next() => self.handle_signal(request).await,
                piece = input.next(&window) => self.supervisor.send_input(piece),
                () = self.progress_line.until_due(), if self.end == Termination::Open => {
                    self.progress_line.update();
                }
                () = until(deadline) => match timeout {
                    // The job ends when its explanation is complete.
                    Some(Timeout { limit, .. }) if self.end == Termination::Open => {
                        self.expired = Some(limit);
                        self.request_explanation(Purpose::Timeout);
                    }
                    _ => self.escalate(),
                },
                // The explanation is advanced below, as after every other event.
                () = until(explanation_deadline) => {}
                () = until(self.print_at) => self.print_messages(),
            }
            self.advance_explanation();
        }
    }

    /// Handles an event of this host or of a daemon.
    fn handle(&mut self, event: HostEvent) {
        match event {
            HostEvent::Greeted { pe } => self.progress_line.record_daemon(pe),
            HostEvent::Started { pe, pid } => {
                self.server.started(pe, pid);
                self.progress_line.record_start(pe);
                self.timings
                    .record_phase(Phase::Started, self.server.host(pe));
            }
            HostEvent::Frames { pe, bytes } if self.end == Termination::Open => {
                self.handle_frames(pe, &bytes);
            }
            HostEvent::Exited { pe, exit } => {
                self.timings
                    .record_phase(Phase::Ended, self.server.host(pe));
                let decision = self.server.exited(pe, exit);
                self.explainer.record_exit(pe);
                self.request_explanation_of_loss(decision.as_ref());
                self.execute(decision);
            }
            HostEvent::Failed { status, sentence } => {
                let decision = self.server.end(status, Some(format!("oshrun: {sentence}")));
                self.request_explanation_of_loss(decision.as_ref());
                self.execute(decision);
            }
            HostEvent::Snapshots(batch) => self.explainer.add(batch),
            HostEvent::Overdue(wait) => self.explainer.record_overdue(wait),
            HostEvent::Notice(notice) => {
                self.print_warnings();
                self.progress_line.clear();
                self.output.message(&format!("oshrun: {notice}"));
            }
            HostEvent::InputConsumed => self.input_window.add_permits(1),
            HostEvent::Frames { .. }
            | HostEvent::Printed(_)
            | HostEvent::Idle
            | HostEvent::Done
            | HostEvent::Pong => {}
        }
    }

    /// Handles bytes that a PE has sent.
    fn handle_frames(&mut self, pe: u32, bytes: &[u8]) {
        let n_initialized = self.server.initialized();
        let decisions = self.server.received(pe, bytes);
        if self.server.initialized() > n_initialized {
            self.timings
                .record_phase(Phase::Initialized, self.server.host(pe));
        }
        self.execute(decisions);

        // The delay counts from the first message, so that later ones do not extend it.
        if self.server.has_pending() && self.print_at.is_none() {
            self.print_at = Some(Instant::now() + MESSAGE_DELAY);
        }
        self.watch_for_long_waits();
    }

    /// Prints the warnings of PEs that were held back. Ends the job if a PE has aborted.
    fn print_messages(&mut self) {
        self.print_at = None;
        let decisions = self.server.take_messages();
        self.execute(decisions);
    }

    /// Prints all pending warnings of PEs, since they may explain what is printed next.
    fn print_warnings(&mut self) {
        let warnings = self.server.take_all_warnings();
        self.execute(warnings);
    }

    /// With `--explain-after`, makes the supervisors of all hosts search the statuses of PEs for
    /// long waits, whenever PE 0 has reported a new position of the statuses.
    fn watch_for_long_waits(&mut self) {
        let found = self.server.statuses();
        if let Some(limit) = self.explainer.limit()
            && let Some(statuses) = found
            && self.watched != found
        {
            self.watched = found;
            self.supervisor.watch(statuses, limit);
        }
    }

    /// If this decision, about an exit or a failure, ends the job, requests snapshots of the PEs
    /// that still run. They are made immediately, before the PEs are signaled.
    fn request_explanation_of_loss(&mut self, decision: Option<&Decision>) {
        if let Some(Decision::EndJob { .. }) = decision
            && let Some(request) = self.explainer.begin(Purpose::Loss, &self.server)
        {
            self.supervisor.request_snapshots(request);
        }
    }

    /// Begins an explanation or adds the purpose to the one in progress, unless the job is ending.
    fn request_explanation(&mut self, purpose: Purpose) {
        if self.end == Termination::Open
            && let Some(request) = self.explainer.begin(purpose, &self.server)
        {
            self.supervisor.request_snapshots(request);
        }
    }

    /// Prints the explanation in progress if its snapshots are complete or its deadline has passed.
    /// Then forwards the signals that were held for it, and begins one that is due.
    fn advance_explanation(&mut self) {
        if let Some(request) = self.explainer.late_request(&self.server) {
            for batch in self.supervisor.make_snapshots(&request) {
                self.explainer.add(batch);
            }
        }
        if let Some(explanation) = self.explainer.finish(&self.server) {
            self.print_explanation(explanation);
        }
        if self.end != Termination::Open || !self.explainer.is_collecting() {
            for number in std::mem::take(&mut self.held_signals) {
                self.forward(number);
            }
        }
        if self.end == Termination::Open
            && let Some(request) = self.explainer.begin_due(&self.server)
        {
            self.supervisor.request_snapshots(request);
        }
    }

    /// Prints an explanation, unless its text is empty. With that of `--timeout`, ends the job.
    fn print_explanation(&mut self, Explanation { purpose, text }: Explanation) {
        if purpose == Purpose::Timeout
            && let Some(limit) = self.expired
        {
            let message = format!(
                "oshrun: the job did not end within {} seconds (--timeout)\n{text}",
                limit.as_secs_f64()
            );
            self.progress_line.clear();
            self.output.message(message.trim_end());
            let decision = self.server.end(TIMED_OUT, None);
            self.execute(decision);
        } else if !text.is_empty() {
            self.progress_line.clear();
            self.output.message(&text);
        }
    }

    fn execute(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send { pe, frame } => self.supervisor.send(pe, frame),
                Decision::SendAll { to, frame } => {
                    self.timings.record_exchange();
                    self.supervisor.send_all(to, &frame);
                }
                Decision::Warn { message } => {
                    self.progress_line.clear();
                    self.output.message(&message);
                }
                // The launcher outlives the PEs, which need no answer.
                Decision::AllFinalized => {}
                Decision::EndJob { message, .. } => {
                    self.print_warnings();
                    self.progress_line.clear();
                    if let Some(message) = message {
                        self.output.message(&message);
                    }

                    self.supervisor.signal(Signal::TERM);
                    // A stopped process handles SIGTERM only after SIGCONT.
                    self.supervisor.signal(Signal::CONT);
                    self.end = Termination::Terminating(Instant::now() + GRACE_PERIOD);
                }
            }
        }
    }

    async fn handle_signal(&mut self, request: SignalRequest) {
        // The rules for signals depend on which PEs have started.
        for event in self.supervisor.take_events() {
            self.handle(event);
        }

        match request {
            SignalRequest::Forward(number) if self.interrupts.is_second(number, Instant::now()) => {
                let name = signal_name(number);
                let message = format!("oshrun: the job was killed by a second {name}");
                let status = Exit::Signal(number).status();
                let decision = self.server.end(status, Some(message));
                self.execute(decision);
                self.kill();
            }
            SignalRequest::Forward(number) if request.is_end() && self.may_hang() => {
                self.request_explanation(Purpose::Interrupt);
                if !self.held_signals.contains(&number) {
                    self.held_signals.push(number);
                }
            }
            SignalRequest::Forward(number) => {
                self.forward(number);
                if number == libc::SIGUSR1 {
                    self.request_explanation(Purpose::Request);
                }
            }
            SignalRequest::Explain => self.request_explanation(Purpose::Request),
            SignalRequest::Stop => stop(&self.supervisor).await,
            SignalRequest::Continue => self.supervisor.resume(),
        }
    }

    /// Returns true if the job seems to hang: a PE, which may be on another host, has a long wait
    /// that was not explained.
    fn may_hang(&self) -> bool {
        if let Some(statuses) = self.server.statuses()
            && self.end == Termination::Open
        {
            let is_new = |wait: &WaitId| self.explainer.is_new(wait);
            self.supervisor.may_wait(statuses, LONG_WAIT, is_new)
        } else {
            false
        }
    }

    /// Forwards a signal to the PEs. One that ends the job is recorded as the reason of its end.
    fn forward(&mut self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            self.supervisor.signal(signal);
        }
        if SignalRequest::Forward(number).is_end() {
            let decision = self.server.interrupted(number);
            self.execute(decision);
        }
    }

    /// Goes on to the next stage of the end of the job, after the time limit of the present one.
    fn escalate(&mut self) {
        match self.end {
            Termination::Terminating(_) => self.kill(),
            Termination::Killed(_) => {
                self.end = Termination::GivenUp;
                let mut remains = Vec::new();
                for pe in self.supervisor.remaining_pes() {
                    remains.push(self.server.name(pe));
                }
                for host in self.supervisor.remaining_hosts() {
                    remains.push(format!("what runs on host {host}"));
                }
                for what in remains {
                    self.output
                        .message(&format!("oshrun: {what} has been killed, but does not end"));
                }
            }
            Termination::Open | Termination::GivenUp => {}
        }
    }

    fn kill(&mut self) {
        self.supervisor.signal(Signal::KILL);
        self.end = Termination::Killed(Instant::now() + KILL_LIMIT);
    }

    /// Ends the remaining processes and forwards the remaining output. Returns the exit status.
    async fn finish(&mut self, signals: &mut Signals, timeout: Option<Timeout>) -> i32 {
        self.print_warnings();
        // Processes that were given up have had that time already.
        let limit = if self.end == Termination::GivenUp {
            FINAL_LIMIT
        } else {
            KILL_LIMIT
        };
        self.supervisor.finish(limit).await;

        match self.forward_rest(signals, timeout).await {
            RestOfOutput::CutOff { status } => return status,
            RestOfOutput::Lost(sentence) => fail_late(&mut self.server, 1, &sentence),
            RestOfOutput::Written => {
                // If a PE has printed an error, that says more than this message would.
                if !self.output.has_pe_errors().await
                    && let Some(message) = self.server.failed_without_init()
                {
                    print_line(message);
                }
            }
        }

        self.supervisor.dismiss(FINAL_LIMIT).await;
        self.server.status()
    }

    /// Forwards the remaining output, which may block if its reader has stopped. A signal that
    /// requests the end sets a short time limit.
    async fn forward_rest(
        &mut self,
        signals: &mut Signals,
        timeout: Option<Timeout>,
    ) -> RestOfOutput {
        let Job {
            supervisor,
            output,
            server,
            ..
        } = self;
        // A reader that reads gets the output also if the job has used up all of its time.
        let mut limit = timeout.map(|timeout| timeout.deadline.max(Instant::now() + FINAL_LIMIT));
        let mut signal = None;

        let mut written = std::pin::pin!(output.finish());
        loop {
            let event = tokio::select! {
                // A daemon reports lost output before its own output ends.
                biased;
                event = supervisor.next() => LateEvent::Host(event),
                request = signals.next() => LateEvent::Signal(request),
                () = until(limit) => LateEvent::TimeLimit,
                lost = &mut written => LateEvent::Written(lost),
            };

            match event {
                LateEvent::Host(HostEvent::Failed { status, sentence }) => {
                    fail_late(server, status, &sentence);
                }
                LateEvent::Signal(SignalRequest::Stop) => stop(supervisor).await,
                LateEvent::Signal(SignalRequest::Continue) => supervisor.resume(),
                LateEvent::Signal(request @ SignalRequest::Forward(number)) if request.is_end() => {
                    // The output may say why the job has ended, so a reader that still reads gets
                    // it.
                    if signal.is_none() {
                        signal = Some(Exit::Signal(number));
                        limit = Some(Instant::now() + FINAL_LIMIT);
                    }
                }
                LateEvent::Host(_) | LateEvent::Signal(_) => {}
                LateEvent::TimeLimit => {
                    let status = if let Some(signal) = signal {
                        signal.status()
                    } else if server.status() == 0 {
                        TIMED_OUT
                    } else {
                        // A PE has failed before.
                        server.status()
                    };
                    return RestOfOutput::CutOff { status };
                }
                LateEvent::Written(None) => return RestOfOutput::Written,
                LateEvent::Written(Some(lost)) => return RestOfOutput::Lost(lost),
            }
        }
    }
}

/// The outcome of forwarding the remaining output.
enum RestOfOutput {
    Written,
    /// Some of it was lost, for this reason.
    Lost(String),
    /// A time limit ends oshrun, with this status, before all is forwarded.
    CutOff {
        status: i32,
    },
}

/// An event while the remaining output is forwarded.
enum LateEvent {
    Host(HostEvent),
    Signal(SignalRequest),
    TimeLimit,
    /// All output is written, except what was lost for this reason.
    Written(Option<String>),
}

/// Reports an error while the remaining output is forwarded, unless oshrun has ended the job. If a
/// PE has failed before, its status is kept.
fn fail_late(server: &mut Server, status: i32, sentence: &str) {
    let status = match server.status() {
        0 => status,
        failed => failed,
    };
    if server.end(status, None).is_some() {
        print_line(format_args!("oshrun: {sentence}"));
    }
}

/// Stops the PEs, then oshrun.
async fn stop(supervisor: &Supervisor) {
    supervisor.suspend();
    supervisor.flush().await;
    // A process can always stop itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
