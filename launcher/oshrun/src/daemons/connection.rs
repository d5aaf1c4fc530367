//! The connection between oshrun and the daemon of another host: messages, their queues, and
//! heartbeats.
//!
//! Messages are frames of `rushmem_bootstrap::proto` over the daemon's standard input and output,
//! after a greeting. Frames of PEs pass through uninterpreted.

use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rushmem_bootstrap::Exit;
use rushmem_bootstrap::launcher::Statuses;
use rushmem_bootstrap::proto::{self, Receivers};
use rushmem_explain::snapshot::WaitId;
use rushmem_system::stderr::print_line;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::errors::cannot;
use crate::hang_report::snapshots::{SnapshotBatch, SnapshotRequest};
use crate::spawn::placement::PlacementRequest;
use crate::spawn::program::Debugged;

/// Maximum size of a message to oshrun. It exceeds that of a piece of output, of a piece of frames,
/// and of a batch of snapshots.
pub const MAX_EVENT: usize = 512 * 1024;

/// Maximum size of a message to a daemon: the records of all PEs, and a header.
pub const MAX_ORDER: usize = proto::MAX_FROM_LAUNCHER + 64;

/// The start of the greeting of a daemon, before the version of its oshrun.
const GREETING: &str = "oshrun-daemon ";

/// Maximum number of bytes of one output stream in flight from a daemon to oshrun. It bounds the
/// memory of oshrun if its reader stops.
pub const WINDOW: u32 = 256 * 1024;

/// Number of ticks in the limit of `--host-limit`, within which the job must have ended.
const TICKS: u32 = 20;

/// Number of ticks without a message after which the other side counts as lost. The remaining ticks
/// are left for ending the job.
const MAX_MISSED: u32 = 12;

/// Returns the first output of a daemon. It starts a new line, since login scripts may have printed
/// an unfinished one.
pub fn greeting() -> String {
    format!("\n{GREETING}{}\n", version())
}

/// Returns the versions of oshrun and of the job protocol, which must be equal on both sides.
pub fn version() -> String {
    format!("{}/{}", env!("CARGO_PKG_VERSION"), proto::VERSION)
}

/// The greeting of a daemon.
#[derive(Debug, PartialEq, Eq)]
pub struct Greeting {
    pub version: String,
    /// The offset at which the first message begins.
    pub end: usize,
}

/// Searches for the greeting. Returns `None` if there is no whole one.
pub fn find_greeting(bytes: &[u8]) -> Option<Greeting> {
    let mut end = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        end += line.len();
        if let Some(version) = line.strip_prefix(GREETING.as_bytes())
            && let Some(version) = version.strip_suffix(b"\n")
        {
            let version = String::from_utf8_lossy(version).into_owned();
            return Some(Greeting { version, end });
        }
    }
    None
}

/// The stream to which a PE prints: standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StdStream {
    Out,
    Err,
}

/// Output of a PE: whole lines, or a piece of a line.
#[derive(Debug, Serialize, Deserialize)]
pub struct Printed {
    pub pe: u32,
    pub stream: StdStream,
    pub text: Vec<u8>,
    /// True if the line continues in the next text of the same stream.
    pub continues: bool,
}

/// An event on a host of the job. A daemon sends its events to oshrun as messages; oshrun handles
/// those of its own host in the same way.
#[derive(Debug, Serialize, Deserialize)]
pub enum HostEvent {
    /// The daemon of a host has started.
    Greeted {
        /// The first PE of the host.
        pe: u32,
    },
    /// The process of a PE has been started.
    Started { pe: u32, pid: u32 },
    /// A PE has sent bytes to oshrun.
    Frames {
        pe: u32,
        /// Bytes, not necessarily whole frames.
        bytes: Vec<u8>,
    },
    /// The process of a PE has ended. All events of what the PE has sent precede this one.
    Exited { pe: u32, exit: Exit },
    /// A PE has printed something.
    Printed(Printed),
    /// One piece of input was written to the stdin of PE 0, or dropped because PE 0 has closed it.
    /// So another piece may be sent.
    InputConsumed,
    /// The job cannot continue: something could not be started, or was lost.
    Failed {
        /// The exit status of oshrun.
        status: i32,
        /// Why, without oshrun's name.
        sentence: String,
    },
    /// A message to print, without oshrun's name.
    Notice(String),
    /// Snapshots of some PEs, in reply to [`DaemonOrder::MakeSnapshots`].
    Snapshots(SnapshotBatch),
    /// A wait has lasted longer than [`DaemonOrder::Watch`] allows.
    Overdue(WaitId),
    /// All PEs of this daemon have ended.
    Idle,
    /// The reply to [`DaemonOrder::Finish`] and the last message of a daemon: all output has been
    /// sent, and the processes of its PEs have ended, or do not end although they were killed.
    Done,
    /// Reply to [`DaemonOrder::Ping`].
    Pong,
}

impl HostEvent {
    /// Returns a failure of oshrun or of a daemon, with exit status 1.
    pub fn failed(sentence: String) -> HostEvent {
        HostEvent::Failed {
            status: 1,
            sentence,
        }
    }
}

/// A message of oshrun to a daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum DaemonOrder {
    /// Start the PEs of this host. Always the first message.
    Start(Box<HostJob>),
    /// A frame for a PE.
    Frame { pe: u32, frame: Vec<u8> },
    /// A frame for many PEs.
    FrameToAll {
        /// All PEs, or the first of each node.
        to: Receivers,
        frame: Vec<u8>,
    },
    /// A signal for the process groups of all PEs.
    Signal(i32),
    /// Make snapshots of all PEs of the host that run.
    MakeSnapshots(SnapshotRequest),
    /// Search for long waits once per second.
    Watch {
        /// The position of the statuses of the PEs.
        statuses: Statuses,
        /// The time for which a wait may last.
        limit: Duration,
    },
    /// Stop all PEs. No heartbeats follow until [`DaemonOrder::Resume`].
    Suspend,
    /// Continue all PEs.
    Resume,
    /// A piece of input of PE 0; an empty piece ends the input.
    Input(Vec<u8>),
    /// oshrun has written output, so the daemon may send more of this stream.
    OutputConsumed { stream: StdStream, nbytes: u32 },
    /// The reader of this stream has closed it.
    OutputClosed { stream: StdStream },
    /// A heartbeat.
    Ping,
    /// The job has ended: kill the processes that are left, send the last output, and exit.
    Finish,
}

/// Encodes a message to oshrun. The frame ends with a newline, since srun does not forward an
/// unfinished line.
pub fn encode_event(message: &HostEvent) -> Vec<u8> {
    proto::encode(&(message, b'\n'))
}

/// The content of a frame of [`encode_event`].
pub type EventFrame = (HostEvent, u8);

/// The program to start: the same on all hosts of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// The program as the user named it.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Variables that `-x` and other options set.
    pub exported: Vec<(OsString, OsString)>,
    /// The environment of oshrun, for other hosts; empty if it is inherited.
    pub forwarded: Vec<(OsString, OsString)>,
    /// The working directory; `None` if it is inherited.
    pub dir: Option<PathBuf>,
    pub placement: PlacementRequest,
    /// True if the program is started without ASLR.
    pub no_aslr: bool,
    /// The directory for the output files of PEs; `None` if oshrun prints the output.
    pub output_files: Option<PathBuf>,
    /// PEs that run under a debugger.
    pub debugged: Option<Debugged>,
    /// True if PE 0 may prompt at oshrun's terminal.
    pub prompts: bool,
    /// Time within which the job ends everywhere when a host stops answering.
    pub host_limit: Duration,
}

/// A host, and the range of PEs of the job that run on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPes {
    /// The name of the host, as the user or the batch system wrote it.
    pub host: String,
    pub pes: Range<u32>,
}

/// The part of the job that one daemon starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostJob {
    pub spec: JobSpec,
    /// The PEs of the daemon's host.
    pub local: HostPes,
}

/// Queues messages of a daemon to oshrun.
#[derive(Clone, Debug)]
pub struct EventSender(mpsc::UnboundedSender<Vec<u8>>);

impl EventSender {
    /// Starts a thread that writes the greeting and then the queued messages to standard output.
    /// The thread ends when all senders are dropped or oshrun has closed the pipe. If a write fails
    /// for another reason, the process exits immediately and its guard ends the PEs, since oshrun
    /// would wait for the missing messages.
    pub fn to_stdout() -> io::Result<(EventSender, JoinHandle<()>)> {
        let (sender, queue) = mpsc::unbounded_channel();
        let writer = std::thread::Builder::new().spawn(move || {
            // If oshrun is gone, the daemon ends when its input does.
            if let Err(error) = write_events(queue)
                && error.kind() != io::ErrorKind::BrokenPipe
            {
                let failure = cannot("write to the oshrun that started it", &error);
                print_line(format_args!("oshrun: {}", failure.sentence));
                std::process::exit(1)
            }
        })?;
        Ok((EventSender(sender), writer))
    }

    /// Queues a message.
    pub fn send(&self, message: &HostEvent) {
        // This fails if the writer has ended, since oshrun is gone.
        let _ = self.0.send(encode_event(message));
    }

    /// Returns the part that answers heartbeats.
    pub fn answerer(&self) -> HeartbeatAnswerer {
        HeartbeatAnswerer(self.0.downgrade())
    }
}

/// Writes the greeting, and then the queued messages until all senders are dropped.
fn write_events(mut queue: mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(greeting().as_bytes())?;
    stdout.flush()?;
    while let Some(frame) = queue.blocking_recv() {
        stdout.write_all(&frame)?;
        stdout.flush()?;
    }
    Ok(())
}

/// Answers the heartbeats of oshrun as long as an [`EventSender`] exists.
#[derive(Debug)]
pub struct HeartbeatAnswerer(mpsc::WeakUnboundedSender<Vec<u8>>);

impl HeartbeatAnswerer {
    /// Queues the answer to a heartbeat.
    pub fn answer(&self) {
        if let Some(events) = self.0.upgrade() {
            EventSender(events).send(&HostEvent::Pong);
        }
    }
}

/// Queues messages to a daemon.
#[derive(Clone, Debug)]
pub struct OrderSender(mpsc::UnboundedSender<Queued>);

/// An entry of the queue of messages to a daemon.
#[derive(Debug)]
pub enum Queued {
    /// A message.
    Frame(Arc<[u8]>),
    /// Reports that everything before it has been sent.
    Flushed(oneshot::Sender<()>),
}

impl OrderSender {
    /// Returns the sender, and the queue to pass to [`write_orders`].
    pub fn new() -> (OrderSender, mpsc::UnboundedReceiver<Queued>) {
        let (sender, queue) = mpsc::unbounded_channel();
        (OrderSender(sender), queue)
    }

    /// Queues a message. Messages to a daemon that is gone are dropped.
    pub fn send(&self, message: &DaemonOrder) {
        self.send_frame(proto::encode(message).into());
    }

    /// Queues a message for several daemons.
    pub fn send_frame(&self, frame: Arc<[u8]>) {
        let _ = self.0.send(Queued::Frame(frame));
    }

    /// Waits until everything that was queued has been sent, or the writer has ended.
    pub async fn flush(&self) {
        let (flushed, wait) = oneshot::channel();
        if self.0.send(Queued::Flushed(flushed)).is_ok() {
            // An error means that the writer has ended.
            let _ = wait.await;
        }
    }
}

/// Writes the queued orders to a daemon, until it closes its input, and a heartbeat in each
/// `period`, whatever the event loop of oshrun does meanwhile.
pub async fn write_orders(
    mut stdin: Sender,
    mut queue: mpsc::UnboundedReceiver<Queued>,
    period: Duration,
) {
    let heartbeat: Arc<[u8]> = proto::encode(&DaemonOrder::Ping).into();
    let mut ticks = ticks(period);
    // The first order is the start.
    let mut next = queue.recv().await;
    while let Some(item) = next {
        match item {
            Queued::Frame(frame) => {
                if stdin.write_all(&frame).await.is_err() {
                    return;
                }
            }
            Queued::Flushed(flushed) => {
                // This fails if the caller of `flush` has stopped waiting.
                let _ = flushed.send(());
            }
        }

        next = tokio::select! {
            item = queue.recv() => item,
            _ = ticks.tick() => Some(Queued::Frame(heartbeat.clone())),
        };
    }
}

/// Returns a timer that does not make up for missed ticks.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Returns the time between ticks for this limit of `--host-limit`.
pub fn period(limit: Duration) -> Duration {
    (limit / TICKS).max(Duration::from_millis(1))
}

/// Returns the time without a message after which the other side counts as lost, for this limit of
/// `--host-limit`.
pub fn silence(limit: Duration) -> Duration {
    period(limit) * MAX_MISSED
}

/// Counts ticks since the last message of the other side. Ticks are counted instead of time, so
/// that only one is missed while this process is stopped or the machine is suspended.
#[derive(Debug, Default)]
pub struct HostHeartbeat {
    missed: u32,
}

impl HostHeartbeat {
    /// Records a message.
    pub fn received(&mut self) {
        self.missed = 0;
    }

    /// Records a tick. Returns true if the other side is lost.
    pub fn tick(&mut self) -> bool {
        self.missed += 1;
        self.missed >= MAX_MISSED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_bootstrap::proto::Decoder;

    #[test]
    fn a_greeting_is_found_after_the_output_of_a_login() {
        let mut bytes = b"Welcome!\nno newline".to_vec();
        assert_eq!(find_greeting(&bytes), None);
        bytes.extend(greeting().as_bytes());
        let end = bytes.len();
        bytes.extend(encode_event(&HostEvent::Idle));
        let version = version();
        assert_eq!(find_greeting(&bytes), Some(Greeting { version, end }));
        assert_eq!(
            find_greeting(&bytes[..end - 1]),
            None,
            "its line has not ended"
        );
    }

    #[test]
    fn messages_to_oshrun_end_their_line() {
        let exit = Exit::Signal(9);
        for message in [
            HostEvent::Idle,
            HostEvent::Exited { pe: 3, exit },
            HostEvent::Notice("a".to_string()),
        ] {
            let frame = encode_event(&message);
            assert_eq!(frame.last(), Some(&b'\n'));
            let mut decoder = Decoder::new(MAX_EVENT);
            decoder.push(&frame);
            let (decoded, _) = decoder
                .take::<EventFrame>()
                .expect("a frame")
                .expect("a whole one");
            assert_eq!(format!("{decoded:?}"), format!("{message:?}"));
        }
    }

    #[test]
    fn silence_is_lost_within_the_limit() {
        let limit = Duration::from_secs(10);
        assert_eq!(silence(limit), Duration::from_secs(6));
        let mut heartbeat = HostHeartbeat::default();
        for _ in 0..3 {
            assert!((1..MAX_MISSED).all(|_| !heartbeat.tick()));
            heartbeat.received();
        }
        assert_eq!((1..).find(|_: &u32| heartbeat.tick()), Some(MAX_MISSED));
    }
}
