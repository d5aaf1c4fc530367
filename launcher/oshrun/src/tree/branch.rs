//! One child daemon, as its parent sees it: the launch agent, and the messages to and from the daemon.
//!
//! Tasks move bytes and report events as [`Arrival`]s; `branches` decides what they mean.

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

use super::heartbeat::Heartbeat;
use super::senders::{self, DownSender};
use super::wire::{self, MAX_UP, Up, UpFrame};
use crate::output::Inlet;

/// Maximum number of bytes that a login may print before the greeting of the daemon.
const MAX_CHATTER: usize = 64 * 1024;

/// Maximum number of bytes of an agent's standard error that are read.
const MAX_COMPLAINT: u64 = 4 * 1024;

/// An event of a child's daemon or of its agent.
#[derive(Debug)]
pub enum Arrival {
    /// The daemon has started and speaks the same protocol.
    Greeted,
    /// It has sent a message.
    Message(Up),
    /// It has sent something that cannot be read.
    Broken(String),
    /// Its output has ended.
    Closed,
    /// Its agent and its output should have ended together by now.
    Overdue,
}

/// Arrivals of all children, each with the child's number.
pub type Arrivals = mpsc::UnboundedSender<(usize, Arrival)>;

/// The stage of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its agent was started.
    Called,
    /// Its daemon has started.
    Running,
    /// Its PEs have ended.
    Idle,
    /// It has sent its last message.
    Done,
    /// It has ended without its last message.
    Lost,
}

/// One child daemon.
#[derive(Debug)]
pub struct Branch {
    /// Its host.
    pub host: String,
    /// The number of other hosts below it.
    pub n_behind: usize,
    /// Its PEs, from the first to the last.
    pub pes: Range<u32>,
    /// Whether it is on another host.
    pub is_remote: bool,
    /// Its stage.
    pub stage: Stage,
    /// Its heartbeat.
    pub heartbeat: Heartbeat,
    /// The connection to it.
    pub down: DownSender,
    /// Whether its output has ended.
    pub closed: bool,
    /// How its agent has ended.
    pub exit: Option<Exit>,
    /// The standard error of its agent.
    complaints: File,
    tasks: [AbortHandle; 2],
}

impl Branch {
    /// A child whose agent was started with these streams.
    pub fn new(
        number: usize,
        host: String,
        pes: Range<u32>,
        streams: Streams,
        relay: impl FnOnce(&DownSender) -> Inlet,
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
            stage: Stage::Called,
            heartbeat: Heartbeat::default(),
            down,
            closed: false,
            exit: None,
            complaints: streams.stderr,
            tasks,
        })
    }

    /// Gives the child up: closes the connection to it and waits for nothing of it.
    pub fn give_up(&mut self) {
        self.stage = Stage::Lost;
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Whether all of its PEs have ended or are given up.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::Done | Stage::Lost)
    }

    /// The last line of the agent's standard error.
    pub fn complaint(&self) -> Option<String> {
        let nbytes = self.complaints.metadata().ok()?.len();
        let mut bytes = vec![0; nbytes.min(MAX_COMPLAINT) as usize];
        let start = nbytes - bytes.len() as u64;
        self.complaints.read_exact_at(&mut bytes, start).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.to_string())
    }

    /// One of the agent and its output has ended: the other should follow.
    pub fn expect_the_end(&self, number: usize, arrivals: &Arrivals) {
        let arrivals = arrivals.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            // The receiver may be gone.
            let _ = arrivals.send((number, Arrival::Overdue));
        });
    }
}

/// Our ends of an agent's streams.
#[derive(Debug)]
pub struct Streams {
    /// To the daemon.
    pub stdin: PipeWriter,
    /// From the daemon.
    pub stdout: PipeReader,
    /// Collects the standard error in a file without a name, which need not be read continuously.
    pub stderr: File,
}

/// Reads the messages of the daemon: output goes to the inlet, everything else to the parent.
async fn read(number: usize, mut stdout: Receiver, inlet: Inlet, arrivals: Arrivals) {
    let tell = |arrival| arrivals.send((number, arrival)).is_ok();
    let broken = match greeting(&mut stdout).await {
        Ok(Some(rest)) => {
            tell(Arrival::Greeted);
            messages(&mut stdout, rest, &inlet, tell).await
        }
        Ok(None) => None,
        Err(words) => Some(words),
    };
    if let Some(words) = broken {
        tell(Arrival::Broken(words));
    }
    tell(Arrival::Closed);
}

/// Waits for the greeting; returns the bytes after it, or `None` if there is no greeting.
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
            None if bytes.len() > MAX_CHATTER => {
                return Err("what starts oshrun there prints too much before it".to_string());
            }
            None => {}
        }
    }
    Ok(None)
}

/// Takes messages until the last one or the end. Returns an error in them.
async fn messages(
    stdout: &mut Receiver,
    first: Vec<u8>,
    inlet: &Inlet,
    tell: impl Fn(Arrival) -> bool,
) -> Option<String> {
    let mut decoder = Decoder::new(MAX_UP);
    decoder.push(&first);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        loop {
            match decoder.take::<UpFrame>() {
                Ok(Some((Up::Printed(printed), _))) => {
                    // Its reader may have gone: the child has been informed.
                    let _ = inlet[printed.stream as usize].send(printed);
                }
                Ok(Some((Up::Done, _))) => {
                    tell(Arrival::Message(Up::Done));
                    return None;
                }
                Ok(Some((message, _))) => {
                    if !tell(Arrival::Message(message)) {
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
