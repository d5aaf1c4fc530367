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
use super::wire::{self, MOST_UP, Up, UpFrame};
use crate::output::Inlet;

/// Most bytes that a login may print before the daemon greets.
const MOST_CHATTER: usize = 64 * 1024;

/// Most bytes of an agent's complaints that are looked at.
const MOST_COMPLAINT: u64 = 4 * 1024;

/// What a child's daemon and its agent have done.
#[derive(Debug)]
pub enum Arrival {
    /// The daemon is there, and speaks our language.
    Greeted,
    /// It says something.
    Message(Up),
    /// It says what cannot be understood.
    Broken(String),
    /// Nothing more comes from it.
    Closed,
    /// Its agent and its output should have ended together by now.
    Overdue,
}

/// Arrivals of all children, each with the child's number.
pub type Arrivals = mpsc::UnboundedSender<(usize, Arrival)>;

/// How far a child has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its agent was started.
    Called,
    /// Its daemon is there.
    Running,
    /// Its PEs have ended.
    Idle,
    /// It has said its last word.
    Done,
    /// It is gone without having said it.
    Lost,
}

/// One child daemon.
#[derive(Debug)]
pub struct Branch {
    /// Its host.
    pub host: String,
    /// Other hosts that it leads to.
    pub n_behind: usize,
    /// Its PEs, from the first to the last.
    pub pes: Range<u32>,
    /// Whether it is on another host.
    pub is_remote: bool,
    /// How far it has come.
    pub stage: Stage,
    /// Signs of life.
    pub heartbeat: Heartbeat,
    /// What leads to it.
    pub down: DownSender,
    /// Whether its output has ended.
    pub closed: bool,
    /// How its agent has ended.
    pub exit: Option<Exit>,
    /// What its agent complains about.
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

    /// Gives the child up: nothing leads to it any more, and nothing of it is waited for.
    pub fn give_up(&mut self) {
        self.stage = Stage::Lost;
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Whether nothing more is to be waited for from its PEs.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::Done | Stage::Lost)
    }

    /// The last line of what the agent has complained about.
    pub fn complaint(&self) -> Option<String> {
        let nbytes = self.complaints.metadata().ok()?.len();
        let mut bytes = vec![0; nbytes.min(MOST_COMPLAINT) as usize];
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
            // Nobody may be interested any more.
            let _ = arrivals.send((number, Arrival::Overdue));
        });
    }
}

/// An agent's streams, our side.
#[derive(Debug)]
pub struct Streams {
    /// Leads to the daemon.
    pub stdin: PipeWriter,
    /// Leads back.
    pub stdout: PipeReader,
    /// Collects complaints: a file without a name, so nobody has to read it all the time.
    pub stderr: File,
}

/// Reads what the daemon says: output goes to the inlet, everything else to the parent.
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

/// Waits for the greeting; returns what has come after it, or `None` when there is none.
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
            None if bytes.len() > MOST_CHATTER => {
                return Err("what starts oshrun there prints too much before it".to_string());
            }
            None => {}
        }
    }
    Ok(None)
}

/// Takes messages until the last one or the end. Returns what is wrong with them.
async fn messages(
    stdout: &mut Receiver,
    first: Vec<u8>,
    inlet: &Inlet,
    tell: impl Fn(Arrival) -> bool,
) -> Option<String> {
    let mut decoder = Decoder::new(MOST_UP);
    decoder.push(&first);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        loop {
            match decoder.take::<UpFrame>() {
                Ok(Some((Up::Printed(printed), _))) => {
                    // Its reader may have gone: the child was told.
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
