//! oshrun's side of the connection to the daemon of another host, and to the launch agent that
//! started it.
//!
//! Tasks read and write the streams, and report [`DaemonEvent`]s, which `Daemons` handles.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rushmem_bootstrap::Exit;
use rushmem_bootstrap::proto::Decoder;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::connection::{
    self, EventFrame, HostEvent, HostHeartbeat, HostPes, MAX_EVENT, OrderSender,
};
use super::reports::{HostReports, check_pe};
use crate::output::{Output, RelayQueues};

/// Maximum number of bytes that a login script may print before the greeting of the daemon.
const MAX_LOGIN_OUTPUT: usize = 64 * 1024;

/// Maximum number of bytes that are read from the end of an agent's standard error.
const MAX_AGENT_ERROR: u64 = 4 * 1024;

/// An event of a daemon or of its agent.
#[derive(Debug)]
pub enum DaemonEvent {
    /// The daemon has started, and has the same version as this oshrun.
    Greeted,
    /// The daemon has sent a message.
    Message(HostEvent),
    /// The daemon cannot be used, for this reason.
    Unusable(String),
    /// The daemon has sent a message that it cannot have meant. The text says what is wrong.
    Invalid(String),
    /// Nothing more is read from the daemon: its output has ended, or its last message or an
    /// invalid one was read.
    Closed,
    /// A second has passed since the agent or the output has ended, whichever was first.
    Overdue,
}

/// An event with the daemon that it concerns.
#[derive(Debug)]
pub struct DaemonArrival {
    /// The number of the daemon.
    pub number: usize,
    pub event: DaemonEvent,
}

/// Receives the events of all daemons.
pub type DaemonEvents = mpsc::UnboundedSender<DaemonArrival>;

/// The stage of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonStage {
    /// The agent was started.
    Starting,
    /// The daemon has started.
    Running,
    /// The PEs have ended.
    Idle,
    /// The daemon has sent its last message.
    Done,
    /// The daemon was given up, for example because it has ended without its last message.
    Lost,
}

/// The daemon of another host.
#[derive(Debug)]
pub struct RemoteDaemon {
    pub host: String,
    /// The PEs of its host.
    pub pes: Range<u32>,
    pub stage: DaemonStage,
    /// Counts the ticks since the last event of the daemon.
    pub heartbeat: HostHeartbeat,
    pub orders: OrderSender,
    /// What it has reported.
    pub reports: HostReports,
    /// True once [`DaemonEvent::Closed`] was reported.
    pub closed: bool,
    /// The exit of the agent, if it has exited.
    pub exit: Option<Exit>,
    agent_stderr: File,
    tasks: [AbortHandle; 2],
}

impl RemoteDaemon {
    /// Starts the tasks for a daemon whose agent was started with these streams. `output` gets what
    /// its PEs print, and `arrivals` its events, each with its `number`. A heartbeat is sent in
    /// each `period`.
    pub fn new(
        number: usize,
        HostPes { host, pes }: HostPes,
        streams: AgentStreams,
        output: &mut Output,
        arrivals: &DaemonEvents,
        period: Duration,
    ) -> io::Result<RemoteDaemon> {
        let (orders, queue) = OrderSender::new();
        let stdin = Sender::from_owned_fd(OwnedFd::from(streams.stdin))?;
        let stdout = Receiver::from_owned_fd(OwnedFd::from(streams.stdout))?;

        let writing = connection::write_orders(stdin, queue, period);
        let reporter = Reporter {
            number,
            arrivals: arrivals.clone(),
        };
        let reading = read(stdout, pes.clone(), output.relay(&orders), reporter);
        Ok(RemoteDaemon {
            host,
            reports: HostReports::new(pes.clone()),
            pes,
            stage: DaemonStage::Starting,
            heartbeat: HostHeartbeat::default(),
            orders,
            closed: false,
            exit: None,
            agent_stderr: streams.stderr,
            tasks: [
                tokio::spawn(writing).abort_handle(),
                tokio::spawn(reading).abort_handle(),
            ],
        })
    }

    /// Abandons the daemon: closes the connection. Events in the queue may still follow.
    pub fn give_up(&mut self) {
        self.stage = DaemonStage::Lost;
        for task in &self.tasks {
            task.abort();
        }
    }

    /// Returns true if all of its PEs have ended or are abandoned.
    pub fn is_idle(&self) -> bool {
        matches!(
            self.stage,
            DaemonStage::Idle | DaemonStage::Done | DaemonStage::Lost
        )
    }

    /// Returns the last line of the agent's standard error that is not blank.
    pub fn agent_error(&self) -> Option<String> {
        let nbytes = self.agent_stderr.metadata().ok()?.len();
        let mut bytes = vec![0; nbytes.min(MAX_AGENT_ERROR) as usize];
        let start = nbytes - bytes.len() as u64;
        self.agent_stderr.read_exact_at(&mut bytes, start).ok()?;

        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.to_string())
    }

    /// Reports [`DaemonEvent::Overdue`] in a second. The agent and the output should end together,
    /// so by then the daemon counts as lost, unless it has sent its last message.
    pub fn start_end_timer(&self, number: usize, arrivals: &DaemonEvents) {
        let arrivals = arrivals.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            // This fails if nobody receives events any more.
            let _ = arrivals.send(DaemonArrival {
                number,
                event: DaemonEvent::Overdue,
            });
        });
    }
}

/// oshrun's ends of an agent's streams.
#[derive(Debug)]
pub struct AgentStreams {
    /// The pipe to the daemon.
    pub stdin: PipeWriter,
    /// The pipe from the daemon.
    pub stdout: PipeReader,
    /// An unnamed file to which the agent writes its standard error, so that no thread needs to
    /// read it.
    pub stderr: File,
}

/// Reports the events of one daemon.
struct Reporter {
    number: usize,
    arrivals: DaemonEvents,
}

impl Reporter {
    /// Returns false if nobody receives events any more.
    fn report(&self, event: DaemonEvent) -> bool {
        let number = self.number;
        self.arrivals.send(DaemonArrival { number, event }).is_ok()
    }
}

/// Reads the messages of a daemon of these PEs. Passes output of PEs to `output`, and all other
/// messages to `reporter`.
async fn read(mut stdout: Receiver, pes: Range<u32>, output: RelayQueues, reporter: Reporter) {
    match greeting(&mut stdout).await {
        Ok(Some(rest)) => {
            reporter.report(DaemonEvent::Greeted);
            if let Err(error) = messages(&mut stdout, rest, &pes, &output, &reporter).await {
                reporter.report(DaemonEvent::Invalid(error));
            }
        }
        Ok(None) => {}
        Err(error) => {
            reporter.report(DaemonEvent::Unusable(error));
        }
    }
    reporter.report(DaemonEvent::Closed);
}

/// Waits for the greeting. Returns the bytes after it, or `None` if the output ends without one.
///
/// # Errors
/// If the daemon has another version, or too much precedes the greeting.
async fn greeting(stdout: &mut Receiver) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    while let Ok(1..) = stdout.read_buf(&mut bytes).await {
        match connection::find_greeting(&bytes) {
            Some(greeting) if greeting.version == connection::version() => {
                return Ok(Some(bytes.split_off(greeting.end)));
            }
            Some(greeting) => {
                return Err(format!(
                    "its oshrun has version {} and this one {}: install the same on all hosts, or name its \
                     directory by --prefix",
                    greeting.version,
                    connection::version()
                ));
            }
            None if bytes.len() > MAX_LOGIN_OUTPUT => {
                return Err("its login prints too much before oshrun starts".to_string());
            }
            None => {}
        }
    }
    Ok(None)
}

/// Reads messages until the last one or the end of the stream. `first` are the bytes that have
/// arrived with the greeting.
///
/// # Errors
/// If a message cannot be read, or has output of a PE that is not one of `pes`.
async fn messages(
    stdout: &mut Receiver,
    first: Vec<u8>,
    pes: &Range<u32>,
    output: &RelayQueues,
    reporter: &Reporter,
) -> Result<(), String> {
    let mut decoder = Decoder::new(MAX_EVENT);
    decoder.push(&first);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let message = match decoder.take::<EventFrame>() {
            Ok(Some((message, _))) => message,
            Ok(None) => match stdout.read(&mut bytes).await {
                Ok(nbytes @ 1..) => {
                    decoder.push(&bytes[..nbytes]);
                    continue;
                }
                Ok(0) | Err(_) => return Ok(()),
            },
            Err(error) => return Err(error.to_string()),
        };

        match message {
            HostEvent::Printed(printed) => {
                check_pe(printed.pe, pes)?;
                // If the destination is closed, the daemon has been informed.
                let _ = output[printed.stream as usize].send(printed);
            }
            HostEvent::Done => {
                reporter.report(DaemonEvent::Message(HostEvent::Done));
                return Ok(());
            }
            message => {
                if !reporter.report(DaemonEvent::Message(message)) {
                    return Ok(());
                }
            }
        }
    }
}
