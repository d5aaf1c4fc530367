//! The daemons on other hosts: starts them, sends them messages, and detects that one is lost.
//!
//! oshrun starts one daemon on each other host, which starts the PEs there (`daemon`). The daemon
//! communicates with oshrun over its standard input and output, so neither a port nor a secret is
//! needed.

pub mod agent;
pub mod connection;
pub mod daemon;
mod remote;
mod reports;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::{Exit, proto};
use rustix::fs::MemfdFlags;
use tokio::time::{Instant, timeout};

use self::agent::DaemonCommand;
use self::connection::{DaemonOrder, HostEvent, HostJob, HostPes, JobSpec};
pub use self::remote::DaemonArrival;
use self::remote::{AgentStreams, DaemonEvent, DaemonEvents, DaemonStage, RemoteDaemon};
use crate::ends::processes::{Child, Processes};
use crate::errors::{StartFailure, reason};
use crate::hosts::allocation;
use crate::output::Output;
use crate::spawn;

/// Maximum time for sending the messages to one daemon before oshrun stops itself.
const FLUSH_LIMIT: Duration = Duration::from_millis(200);

/// Time within which all daemons must have started.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The daemons on other hosts.
#[derive(Debug)]
pub struct Daemons {
    list: Vec<RemoteDaemon>,
    /// The command that started the daemons.
    command: Option<DaemonCommand>,
    /// The limit of `--host-limit`.
    limit: Duration,
    arrivals: DaemonEvents,
    /// When the first daemon was started.
    since: Instant,
}

impl Daemons {
    /// Returns an empty list. `limit` is that of `--host-limit`; `arrivals` receives the events of
    /// daemons.
    pub fn new(limit: Duration, arrivals: DaemonEvents) -> Daemons {
        Daemons {
            list: Vec::new(),
            command: None,
            limit,
            arrivals,
            since: Instant::now(),
        }
    }

    /// Starts a daemon for the PEs of each of these hosts.
    pub fn start(
        &mut self,
        command: DaemonCommand,
        spec: &JobSpec,
        hosts: Vec<HostPes>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> Result<(), StartFailure> {
        self.since = Instant::now();
        // The command is needed for messages about the daemons that start, even if one does not.
        self.command = Some(command.clone());

        for local in hosts {
            let host = local.host.clone();
            let job = HostJob {
                spec: spec.clone(),
                local,
            };

            if let Err(error) = self.start_one(&command, job, processes, output) {
                let name = command.agent.name();
                let reason = reason(&error);
                let remedy = match error.kind() {
                    io::ErrorKind::NotFound => "; name another command with --launch-agent",
                    _ => "",
                };
                return Err(StartFailure::general(format!(
                    "cannot start {name} for host {host}: {reason}{remedy}"
                )));
            }
        }
        Ok(())
    }

    fn start_one(
        &mut self,
        command: &DaemonCommand,
        job: HostJob,
        processes: &mut Processes,
        output: &mut Output,
    ) -> io::Result<()> {
        let (their_stdin, stdin) = io::pipe()?;
        let (stdout, their_stdout) = io::pipe()?;
        let stderr = rustix::fs::memfd_create("oshrun-agent", MemfdFlags::CLOEXEC)?;
        let their_stderr = rustix::io::fcntl_dupfd_cloexec(&stderr, 0)?;

        let mut agent = command.agent.command(&job.local.host, &command.oshrun);
        agent
            .stdin(their_stdin)
            .stdout(their_stdout)
            .stderr(their_stderr);

        let number = self.list.len();
        let pid = spawn::start_agent(agent, processes.guard())?;
        processes.add(Child::Daemon(number), pid);

        let streams = AgentStreams {
            stdin,
            stdout,
            stderr: stderr.into(),
        };
        let daemon = RemoteDaemon::new(
            number,
            job.local.clone(),
            streams,
            output,
            &self.arrivals,
            connection::period(self.limit),
        )?;
        daemon.orders.send(&DaemonOrder::Start(Box::new(job)));
        self.list.push(daemon);
        Ok(())
    }

    /// Returns true if no daemon was started.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the hosts with PEs that have not ended. Lost hosts are not among them.
    pub fn busy(&self) -> impl Iterator<Item = &str> {
        self.list
            .iter()
            .filter(|daemon| !daemon.is_idle())
            .map(|daemon| daemon.host.as_str())
    }

    /// Sends a message to the daemon of `pe`.
    pub fn send_toward(&self, pe: u32, message: &DaemonOrder) {
        if let Some(daemon) = self.list.iter().find(|daemon| daemon.pes.contains(&pe)) {
            daemon.orders.send(message);
        }
    }

    /// Sends a piece of input to the daemon of PE 0. An empty piece ends the input.
    pub fn send_input(&mut self, bytes: Vec<u8>) {
        if let Some(daemon) = self.list.iter_mut().find(|daemon| daemon.pes.contains(&0)) {
            if !bytes.is_empty() {
                daemon.reports.record_input();
            }
            daemon.orders.send(&DaemonOrder::Input(bytes));
        }
    }

    /// Orders all daemons to kill their PEs and to exit.
    pub fn finish(&mut self) {
        for daemon in &mut self.list {
            daemon.reports.record_finish();
        }
        self.broadcast(&DaemonOrder::Finish);
    }

    /// Sends a message to all daemons.
    pub fn broadcast(&self, message: &DaemonOrder) {
        if self.list.is_empty() {
            return;
        }
        // The message may have the records of all PEs, so it is encoded once.
        let frame: Arc<[u8]> = proto::encode(message).into();
        for daemon in &self.list {
            daemon.orders.send_frame(frame.clone());
        }
    }

    /// Waits until all messages have been sent, for [`FLUSH_LIMIT`] at most for each daemon.
    pub async fn flush(&self) {
        for daemon in &self.list {
            // A daemon that does not read misses the message until it reads again.
            let _ = timeout(FLUSH_LIMIT, daemon.orders.flush()).await;
        }
    }

    /// Handles an event of a daemon. Returns the event for the job that it causes, if any.
    pub fn handle(&mut self, arrival: DaemonArrival, processes: &Processes) -> Option<HostEvent> {
        let DaemonArrival { number, event } = arrival;
        let daemon = &mut self.list[number];
        daemon.heartbeat.received();

        if let DaemonEvent::Message(message) = &event
            && daemon.stage != DaemonStage::Lost
            && let Err(error) = daemon.reports.record(message)
        {
            return self.lose(number, Some(invalid(&error)), processes);
        }

        match event {
            DaemonEvent::Greeted if daemon.stage == DaemonStage::Starting => {
                daemon.stage = DaemonStage::Running;
                return Some(HostEvent::Greeted {
                    pe: daemon.pes.start,
                });
            }
            DaemonEvent::Message(HostEvent::Idle) if daemon.stage == DaemonStage::Running => {
                daemon.stage = DaemonStage::Idle;
            }
            DaemonEvent::Message(HostEvent::Done) if daemon.stage != DaemonStage::Lost => {
                daemon.stage = DaemonStage::Done
            }
            DaemonEvent::Message(HostEvent::Pong | HostEvent::Idle | HostEvent::Done)
            | DaemonEvent::Greeted => {}
            // The job was ended because of the loss, so nothing else from this host counts.
            DaemonEvent::Message(_) if daemon.stage == DaemonStage::Lost => {}
            DaemonEvent::Message(event) => return Some(event),
            DaemonEvent::Unusable(error) => return self.lose(number, Some(error), processes),
            DaemonEvent::Invalid(error) => {
                return self.lose(number, Some(invalid(&error)), processes);
            }
            DaemonEvent::Closed => {
                daemon.closed = true;
                return self.check_end(number, processes);
            }
            DaemonEvent::Overdue => return self.lose(number, None, processes),
        }
        None
    }

    /// Records the exit of a daemon's agent.
    pub fn record_exit(
        &mut self,
        number: usize,
        exit: Exit,
        processes: &Processes,
    ) -> Option<HostEvent> {
        // A daemon whose pipes could not be set up has no entry; that failure already ends the job.
        self.list.get_mut(number)?.exit = Some(exit);
        self.check_end(number, processes)
    }

    /// Returns the failures of daemons that have been silent for too long or have not started in
    /// time.
    pub fn tick(&mut self, processes: &Processes) -> Vec<HostEvent> {
        let mut events = Vec::new();
        for number in 0..self.list.len() {
            let daemon = &mut self.list[number];
            match daemon.stage {
                DaemonStage::Starting if self.since.elapsed() > START_LIMIT => {
                    let reason = format!("it has not answered for {} s", START_LIMIT.as_secs());
                    events.extend(self.lose(number, Some(reason), processes));
                }
                DaemonStage::Running | DaemonStage::Idle if daemon.heartbeat.tick() => {
                    let seconds = connection::silence(self.limit).as_secs_f64();
                    let reason = format!("it has been silent for {seconds} s");
                    events.extend(self.lose(number, Some(reason), processes));
                }
                _ => {}
            }
        }
        events
    }

    /// Abandons daemons that have not started yet, and kills their launch agents.
    pub fn abandon(&mut self, processes: &Processes) {
        for (number, daemon) in self.list.iter_mut().enumerate() {
            if daemon.stage == DaemonStage::Starting {
                daemon.give_up();
                processes.kill(Child::Daemon(number));
            }
        }
    }

    /// Reports the loss of a daemon when both its agent and its output have ended. If only one of
    /// them has, starts the timer after which the daemon counts as lost.
    fn check_end(&mut self, number: usize, processes: &Processes) -> Option<HostEvent> {
        let daemon = &self.list[number];
        if daemon.closed && daemon.exit.is_some() {
            return self.lose(number, None, processes);
        }
        daemon.start_end_timer(number, &self.arrivals);
        None
    }

    /// Marks a daemon as lost, kills its agent, and returns the failure to report. Does nothing if
    /// the daemon has sent its last message or is lost already.
    fn lose(
        &mut self,
        number: usize,
        reason: Option<String>,
        processes: &Processes,
    ) -> Option<HostEvent> {
        let daemon = &mut self.list[number];
        if matches!(daemon.stage, DaemonStage::Done | DaemonStage::Lost) {
            return None;
        }

        let had_started = daemon.stage != DaemonStage::Starting;
        daemon.give_up();
        processes.kill(Child::Daemon(number));

        let daemon = &self.list[number];
        let command = self.command.as_ref()?;
        let host = &daemon.host;
        let cause = match reason {
            Some(reason) => reason,
            None => describe_end(&command.agent.name(), daemon, had_started),
        };
        if had_started {
            return Some(HostEvent::failed(format!("host {host} was lost: {cause}")));
        }

        let mut sentence = format!("cannot start the PEs of host {host}: {cause}");
        sentence += &remedy(daemon, command);
        if let Some(variable) = command.allocated_by {
            sentence += &format!("; {}", allocation::remedy(variable));
        }
        Some(HostEvent::failed(sentence))
    }
}

/// Returns the reason for the loss of a daemon that has sent an invalid message.
fn invalid(error: &str) -> String {
    format!(
        "its daemon sent an invalid message: {error}; check that the launch agent passes on the \
         output of oshrun unchanged"
    )
}

/// Describes how a daemon and its agent ended, with the last line that the agent printed.
fn describe_end(agent: &str, daemon: &RemoteDaemon, had_started: bool) -> String {
    let exit = match daemon.exit {
        Some(exit) => format!("{agent} {exit}"),
        None => format!("the connection through {agent} has ended"),
    };
    let start = if had_started {
        "its daemon has ended; "
    } else {
        ""
    };
    match daemon.agent_error() {
        Some(error) => format!("{start}{exit}: {error}"),
        None => format!("{start}{exit}"),
    }
}

/// Returns the remedy for a daemon that has not started; empty if none is known.
fn remedy(daemon: &RemoteDaemon, command: &DaemonCommand) -> String {
    let oshrun = command.oshrun.display();
    match daemon.exit {
        Some(Exit::Status(126 | 127)) => {
            format!("; {oshrun} must exist there: install it, or name its directory with --prefix")
        }
        Some(Exit::Status(255)) if command.agent.name() == "ssh" => {
            format!(
                "; check that ssh {} true works without asking a question",
                daemon.host
            )
        }
        _ => String::new(),
    }
}
