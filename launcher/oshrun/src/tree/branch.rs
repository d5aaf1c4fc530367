//! A child daemon: its launch agent, and the messages to and from it.
//!
//! Tasks transfer bytes and report events as [`Arrival`]s, which `branches` handles.

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

use super::heartbeat::HostHeartbeat;
use super::senders::{self, DownSender};
use super::wire::{self, MAX_UP, Up, UpFrame};
use crate::output::RelayQueues;

/// Maximum number of bytes that a login script may print before the greeting of the daemon.
const MAX_LOGIN_OUTPUT: usize = 64 * 1024;

/// Maximum number of bytes that are read from the end of an agent's standard error.
const MAX_AGENT_ERROR: u64 = 4 * 1024;

/// An event of a child daemon or of its agent.
#[derive(Debug)]
pub enum Arrival {
    /// The daemon has started, and has the same protocol version.
    Greeted,
    /// The daemon has sent a message.
    Message(Up),
    /// The daemon cannot be used, for this reason.
    Invalid(String),
    /// The output of the daemon has ended.
    Closed,
    /// Only one of agent and output has ended, although the other should have followed.
    Overdue,
}

/// Receives the events of all children, each with the child's number.
pub type Arrivals = mpsc::UnboundedSender<(usize, Arrival)>;

/// The stage of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchStage {
    /// The agent was started.
    Starting,
    /// The daemon has started.
    Running,
    /// The PEs have ended.
    Idle,
    /// The daemon has sent its last message.
    Done,
    /// The daemon has ended without its last message.
    Lost,
}

/// One child daemon.
#[derive(Debug)]
pub struct Branch {
    /// Its host.
    pub host: String,
    /// The number of hosts below it.
    pub n_behind: usize,
    /// The range of PEs that it and the daemons below it start.
    pub pes: Range<u32>,
    /// Whether it is on another host.
    pub is_remote: bool,
    /// Its stage.
    pub stage: BranchStage,
    /// Its heartbeat.
    pub heartbeat: HostHeartbeat,
    /// Sends messages to it.
    pub down: DownSender,
    /// Whether its output has ended.
    pub closed: bool,
    /// How its agent ended.
    pub exit: Option<Exit>,
    /// The standard error of its agent.
    agent_stderr: File,
    tasks: [AbortHandle; 2],
}

impl Branch {
    /// A child whose agent was started with these streams.
    pub fn new(
        number: usize,
        host: String,
        pes: Range<u32>,
        streams: AgentStreams,
        relay: impl FnOnce(&DownSender) -> RelayQueues,
        arrivals: &Arrivals,
    ) -> io::Result<Branch> {
        let (down, queue) = DownSender::new();
        let stdin = Sender::from_owned_fd(OwnedFd::from(streams.stdin))?;
        let stdout = Receiver::from_owned_fd(OwnedFd::from(streams.stdout))?;
        let tasks = [
            tokio::spawn(senders::write(stdin, queue)).abort_handle(),
            tokio::spawn(read(number, stdout, relay(&down), arrivals.clone())).abort_handle(),
        ];
        Ok(Branch {
            host,
            n_behind: 0,
            pes,
            is_remote: true,
            stage: BranchStage::Starting,
            heartbeat: HostHeartbeat::default(),
            down,
            closed: false,
            exit: None,
            agent_stderr: streams.stderr,
            tasks,
        })
    }

    /// Abandons the child: closes the connection and expects no more events.
    pub fn give_up(&mut self) {
        self.stage = BranchStage::Lost;
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Whether all of its PEs have ended or are abandoned.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, BranchStage::Idle | BranchStage::Done | BranchStage::Lost)
    }

    /// The last line of the agent's standard error.
    pub fn agent_error(&self) -> Option<String> {
        let nbytes = self.agent_stderr.metadata().ok()?.len();
        let mut bytes = vec![0; nbytes.min(MAX_AGENT_ERROR) as usize];
        let start = nbytes - bytes.len() as u64;
        self.agent_stderr.read_exact_at(&mut bytes, start).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.to_string())
    }

    /// Reports [`Arrival::Overdue`] in a second: the agent and the output should end together.
    pub fn start_end_timer(&self, number: usize, arrivals: &Arrivals) {
        let arrivals = arrivals.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            // The receiver may be gone.
            let _ = arrivals.send((number, Arrival::Overdue));
        });
    }
}

/// The parent's ends of an agent's streams.
#[derive(Debug)]
pub struct AgentStreams {
    /// To the daemon.
    pub stdin: PipeWriter,
    /// From the daemon.
    pub stdout: PipeReader,
    /// An unnamed file that receives the standard error, so that no thread needs to read it.
    pub stderr: File,
}

/// Reads the messages of the daemon: output goes to `output`, everything else to `arrivals`.
async fn read(number: usize, mut stdout: Receiver, output: RelayQueues, arrivals: Arrivals) {
    let report = |arrival| arrivals.send((number, arrival)).is_ok();
    let error = match greeting(&mut stdout).await {
        Ok(Some(rest)) => {
            report(Arrival::Greeted);
            messages(&mut stdout, rest, &output, report).await
        }
        Ok(None) => None,
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        report(Arrival::Invalid(error));
    }
    report(Arrival::Closed);
}

/// Waits for the greeting. Returns the bytes after it, or `None` if there is no greeting.
async fn greeting(stdout: &mut Receiver) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    while stdout.read_buf(&mut bytes).await.is_ok_and(|nbytes| nbytes > 0) {
        match wire::find_greeting(&bytes) {
            Some((version, end)) if version == wire::version() => {
                return Ok(Some(bytes.split_off(end)));
            }
            Some((version, _)) => {
                return Err(format!(
                    "its oshrun has version {version} and this one {}: install the same on all hosts, or name its \
                     folder by --prefix",
                    wire::version()
                ));
            }
            None if bytes.len() > MAX_LOGIN_OUTPUT => {
                return Err("what starts oshrun there prints too much before it".to_string());
            }
            None => {}
        }
    }
    Ok(None)
}

/// Reads messages until the last one or the end of the stream. Returns an error in them.
async fn messages(
    stdout: &mut Receiver,
    first: Vec<u8>,
    output: &RelayQueues,
    report: impl Fn(Arrival) -> bool,
) -> Option<String> {
    let mut decoder = Decoder::new(MAX_UP);
    decoder.push(&first);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        loop {
            match decoder.take::<UpFrame>() {
                Ok(Some((Up::Printed(printed), _))) => {
                    // If the reader is gone, the child has been informed.
                    let _ = output[printed.stream as usize].send(printed);
                }
                Ok(Some((Up::Done, _))) => {
                    report(Arrival::Message(Up::Done));
                    return None;
                }
                Ok(Some((message, _))) => {
                    if !report(Arrival::Message(message)) {
                        return None;
                    }
                }
                Ok(None) => break,
                Err(error) => return Some(format!("its daemon sent what cannot be read: {error}")),
            }
        }
        match stdout.read(&mut bytes).await {
            Ok(nbytes @ 1..) => decoder.push(&bytes[..nbytes]),
            Ok(0) | Err(_) => return None,
        }
    }
}
