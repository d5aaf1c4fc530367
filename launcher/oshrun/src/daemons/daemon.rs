//! The daemon: oshrun on another host.
//!
//! It reads orders of oshrun from standard input and writes events to standard output. If its input
//! ends or no heartbeats arrive, it kills the processes that it started and exits. Its guard ends
//! those that are left.

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rushmem_bootstrap::proto::{Decoder, FrameError};
use rushmem_system::stderr::print_line;
use rustix::process::Signal;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Interval;

use super::agent;
use super::connection::{
    self, DaemonOrder, EventSender, HeartbeatAnswerer, HostEvent, HostHeartbeat, HostJob,
    MAX_ORDER, StdStream, WINDOW,
};
use crate::errors::{StartFailure, StartLimit, cannot};
use crate::output::Output;
use crate::spawn::prepare;
use crate::supervisor::{Supervisor, block_on};

/// Time for killed processes to disappear, shorter than the one that oshrun gives its own PEs.
const KILL_LIMIT: Duration = Duration::from_secs(4);

/// Returns true if this process was started as a daemon.
pub fn is_daemon() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == agent::ROLE)
}

/// Runs the daemon.
pub fn serve() -> ExitCode {
    match try_serve() {
        Ok(writer) => {
            // Waits until the last messages have been sent. The thread does not panic.
            let _ = writer.join();
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            print_line(format_args!("oshrun: {sentence}"));
            // Does not wait for the writer. The guard ends PEs that are left.
            std::process::exit(1)
        }
    }
}

/// Serves the job until its end. Returns the thread that sends the last messages.
fn try_serve() -> Result<JoinHandle<()>, String> {
    let no_thread = |error| cannot("start a thread", &error).sentence;
    let (events, writer) = EventSender::to_stdout().map_err(no_thread)?;
    let orders = orders_from_stdin(events.answerer()).map_err(no_thread)?;
    block_on(run(orders, events)).map_err(|failure| failure.sentence)??;
    Ok(writer)
}

/// Starts a thread that reads the orders of oshrun, and answers heartbeats, also while the event
/// loop waits for processes to disappear. The channel closes when the input ends, and after an
/// order that cannot be read.
fn orders_from_stdin(
    heartbeats: HeartbeatAnswerer,
) -> io::Result<mpsc::UnboundedReceiver<Result<DaemonOrder, FrameError>>> {
    let (sender, orders) = mpsc::unbounded_channel();
    std::thread::Builder::new().spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut decoder = Decoder::new(MAX_ORDER);
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match stdin.read(&mut bytes) {
                Ok(nbytes @ 1..) => decoder.push(&bytes[..nbytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
            }

            loop {
                match decoder.take() {
                    Ok(Some(order)) => {
                        if matches!(order, DaemonOrder::Ping) {
                            heartbeats.answer();
                        }
                        if sender.send(Ok(order)).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        // This fails if the receiver is gone.
                        let _ = sender.send(Err(error));
                        return;
                    }
                }
            }
        }
    })?;
    Ok(orders)
}

async fn run(
    mut orders: mpsc::UnboundedReceiver<Result<DaemonOrder, FrameError>>,
    events: EventSender,
) -> Result<(), String> {
    let DaemonOrder::Start(job) = received(orders.recv().await)? else {
        return Err("a daemon is started by oshrun itself".to_string());
    };

    let limit = job.spec.host_limit;
    let host = job.local.host.clone();
    let windows = [WINDOW, WINDOW].map(|bytes| Arc::new(Semaphore::new(bytes as usize)));
    let mut output = Output::to_parent(&events, &windows, job.spec.prompts);
    let mut supervisor = Supervisor::new(true, limit)
        .map_err(|error| cannot("start the guard process", &error).sentence)?;

    // Another thread answers heartbeats, so oshrun would not notice a start that hangs.
    let start_limit = StartLimit::new(job.local.pes.len() as u32)
        .map_err(|error| cannot("start a thread", &error).sentence)?;
    if let Err(failure) = start(*job, &mut supervisor, &mut output, &events) {
        let sentence = format!("host {host}: {}", failure.sentence);
        supervisor.report(HostEvent::Failed {
            status: failure.status,
            sentence,
        });
    }
    drop(start_limit);

    let mut daemon = Daemon {
        host,
        orders,
        ticks: connection::ticks(connection::period(limit)),
        heartbeat: HostHeartbeat::default(),
        windows,
        events,
        is_suspended: false,
        is_finishing: false,
    };
    let served = daemon.work(&mut supervisor, &mut output).await;
    match served {
        Ok(()) => {
            supervisor.dismiss(KILL_LIMIT).await;
            daemon.events.send(&HostEvent::Done);
        }
        // The guard would do this too, but finds processes outside their groups only by the mark in
        // their environment, which they may have changed.
        Err(_) => supervisor.finish(KILL_LIMIT).await,
    }
    served
}

/// Unwraps a received order. The caller prints the error on standard error, which the launch agent
/// forwards to oshrun.
fn received(order: Option<Result<DaemonOrder, FrameError>>) -> Result<DaemonOrder, String> {
    match order {
        Some(Ok(order)) => Ok(order),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the process that started this daemon is gone".to_string()),
    }
}

/// Starts the PEs of this host.
fn start(
    HostJob { spec, local }: HostJob,
    supervisor: &mut Supervisor,
    output: &mut Output,
    events: &EventSender,
) -> Result<(), StartFailure> {
    if let Some(dir) = &spec.dir {
        let what = format!("enter the directory {}", dir.display());
        std::env::set_current_dir(dir).map_err(|error| cannot(&what, &error))?;
    }

    let launch = prepare(&spec, local.pes, 0)?;
    for notice in &launch.placements.notices {
        events.send(&HostEvent::Notice(format!("host {}: {notice}", local.host)));
    }
    supervisor.start_pes(&launch, output)
}

/// The state of a running daemon.
struct Daemon {
    /// The name of this host.
    host: String,
    orders: mpsc::UnboundedReceiver<Result<DaemonOrder, FrameError>>,
    ticks: Interval,
    heartbeat: HostHeartbeat,
    /// For each [`StdStream`], the permits for the bytes that may be sent now.
    windows: [Arc<Semaphore>; 2],
    events: EventSender,
    /// True while oshrun is stopped, so that it sends no heartbeats.
    is_suspended: bool,
    /// True once [`DaemonOrder::Finish`] was received.
    is_finishing: bool,
}

impl Daemon {
    /// Handles events and orders until oshrun orders the end, then kills processes that are left
    /// and sends the last output.
    ///
    /// # Errors
    /// If the connection to oshrun is lost, or an order cannot be read.
    async fn work(
        &mut self,
        supervisor: &mut Supervisor,
        output: &mut Output,
    ) -> Result<(), String> {
        // Reported only once: a daemon starts no further PEs after its last one has ended.
        let mut has_reported_idle = false;
        while !self.is_finishing {
            if !has_reported_idle && supervisor.is_idle() {
                has_reported_idle = true;
                self.events.send(&HostEvent::Idle);
            }

            tokio::select! {
                served = self.serve(supervisor) => served?,
                sentence = output.next_loss() => self.report_loss(&sentence),
            }
        }

        supervisor.finish(KILL_LIMIT).await;

        // Heartbeats go on while the last output is sent, which may take long.
        let mut finished = std::pin::pin!(output.finish());
        loop {
            tokio::select! {
                served = self.serve(supervisor) => served?,
                lost = &mut finished => {
                    if let Some(sentence) = lost {
                        self.report_loss(&sentence);
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Waits for one event or order, and handles it. Cancel safe.
    ///
    /// # Errors
    /// If the connection to oshrun is lost, or an order cannot be read.
    async fn serve(&mut self, supervisor: &mut Supervisor) -> Result<(), String> {
        let is_suspended = self.is_suspended;
        tokio::select! {
            event = supervisor.next() => self.events.send(&event),
            order = self.orders.recv() => {
                self.heartbeat.received();
                self.execute(received(order)?, supervisor);
            }
            _ = self.ticks.tick(), if !is_suspended => if self.heartbeat.tick() {
                return Err("the host that started this daemon does not answer".to_string());
            },
        }
        Ok(())
    }

    /// Reports that output of a PE was lost.
    fn report_loss(&self, sentence: &str) {
        let sentence = format!("host {}: {sentence}", self.host);
        self.events.send(&HostEvent::failed(sentence));
    }

    fn execute(&mut self, order: DaemonOrder, supervisor: &mut Supervisor) {
        match order {
            DaemonOrder::Frame { pe, frame } => supervisor.send(pe, frame.into()),
            DaemonOrder::FrameToAll { to, frame } => supervisor.send_all(to, &frame.into()),
            DaemonOrder::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    supervisor.signal(signal);
                }
            }
            DaemonOrder::MakeSnapshots(request) => supervisor.request_snapshots(request),
            DaemonOrder::Watch { statuses, limit } => supervisor.watch(statuses, limit),
            DaemonOrder::Suspend => {
                self.is_suspended = true;
                supervisor.suspend();
            }
            DaemonOrder::Resume => {
                self.is_suspended = false;
                supervisor.resume();
            }
            DaemonOrder::Input(bytes) => supervisor.send_input(bytes),
            DaemonOrder::OutputConsumed { stream, nbytes } => {
                self.window(stream).add_permits(nbytes as usize)
            }
            DaemonOrder::OutputClosed { stream } => self.window(stream).close(),
            DaemonOrder::Finish => self.is_finishing = true,
            // The thread that reads orders has answered.
            DaemonOrder::Ping => {}
            // `run` has handled the first one; there is no second one.
            DaemonOrder::Start(_) => {}
        }
    }

    fn window(&self, stream: StdStream) -> &Semaphore {
        &self.windows[stream as usize]
    }
}
