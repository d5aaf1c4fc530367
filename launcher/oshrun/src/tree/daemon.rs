//! The daemon: oshrun on another host, or for further PEs of the same host.
//!
//! It reads commands of its parent from standard input and writes events to standard output. When
//! its input ends, or heartbeats of its parent stop, it exits, and its guard ends what it started.

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rushmem_bootstrap::proto::{Decoder, FrameError};
use rustix::process::Signal;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Interval;

use super::heartbeat::{self, HostHeartbeat};
use super::orders::{Orders, n_children};
use super::senders::{UpSender, WINDOW};
use super::wire::{Down, MAX_DOWN, StdStream, Up};
use super::{LaunchPlan, Subtree, agent};
use crate::event_loop;
use crate::failure::{StartFailure, cannot, complain};
use crate::output::Output;
use crate::prepare::prepare;
use crate::spawn;

/// Time for killed processes to disappear; less than the parent waits for this daemon.
const KILL_LIMIT: Duration = Duration::from_secs(4);

/// Whether this process was started as a daemon.
pub fn is_daemon() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == agent::ROLE)
}

/// Runs the daemon.
pub fn serve() -> ExitCode {
    match start_and_run() {
        Ok(writer) => {
            // Waits until the last messages have been sent.
            let _ = writer.join();
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&format!("oshrun: {why}"));
            // Exits immediately; the guard ends the rest.
            std::process::exit(1)
        }
    }
}

/// Returns the thread that writes to the parent.
fn start_and_run() -> Result<JoinHandle<()>, String> {
    let no_thread = |error| cannot("start a thread", &error).sentence;
    let (up, writer) = UpSender::to_stdout().map_err(no_thread)?;
    let parent = orders_from_stdin().map_err(no_thread)?;
    event_loop::block_on(run(parent, up)).map_err(|failure| failure.sentence)??;
    Ok(writer)
}

/// Starts a thread that reads the messages of the parent. The channel closes when the input ends.
fn orders_from_stdin() -> io::Result<mpsc::UnboundedReceiver<Result<Down, FrameError>>> {
    let (sender, parent) = mpsc::unbounded_channel();
    std::thread::Builder::new().spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut decoder = Decoder::new(MAX_DOWN);
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match stdin.read(&mut bytes) {
                Ok(nbytes @ 1..) => decoder.push(&bytes[..nbytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
            }
            loop {
                match decoder.take() {
                    Ok(Some(message)) => {
                        if sender.send(Ok(message)).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return drop(sender.send(Err(error))),
                }
            }
        }
    })?;
    Ok(parent)
}

async fn run(
    mut parent: mpsc::UnboundedReceiver<Result<Down, FrameError>>,
    up: UpSender,
) -> Result<(), String> {
    let Down::Orders(orders) = received(parent.recv().await)? else {
        return Err("a daemon is started by oshrun itself".to_string());
    };
    let is_remote = orders.memory.is_none();
    let limit = orders.tree.limit;
    let windows = [WINDOW, WINDOW].map(|bytes| Arc::new(Semaphore::new(bytes as usize)));
    let mut output = Output::to_parent(&up, &windows, orders.spec.prompts);
    let mut subtree = Subtree::new(true, limit)
        .map_err(|error| cannot("start the guard process", &error).sentence)?;
    let host = orders.own.host.clone();
    start(*orders, &mut subtree, &mut output, &up);

    let mut daemon = Daemon {
        host,
        parent,
        ticks: is_remote.then(|| heartbeat::ticks(heartbeat::period(limit))),
        heartbeat: HostHeartbeat::default(),
        windows,
        up,
        is_suspended: false,
        is_finishing: false,
    };
    let served = daemon.work(&mut subtree, &mut output).await;
    match served {
        Ok(()) => {
            subtree.dismiss(KILL_LIMIT).await;
            daemon.up.send(&Up::Done);
        }
        // The guard does this too, but finds processes outside their groups only by their mark.
        Err(_) => subtree.clear(KILL_LIMIT).await,
    }
    served
}

async fn tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

/// Unwraps a received message. Errors go to standard error, which the launch agent forwards.
fn received(order: Option<Result<Down, FrameError>>) -> Result<Down, String> {
    match order {
        Some(Ok(order)) => Ok(order),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the process that started this daemon is gone".to_string()),
    }
}

/// Starts the processes that the orders name, and reports what cannot be started.
fn start(orders: Orders, subtree: &mut Subtree, output: &mut Output, up: &UpSender) {
    let Orders { spec, tree, own, others, memory } = orders;
    let host = own.host.clone();
    let planned = (|| {
        if let Some(folder) = &spec.folder {
            let what = format!("enter the folder {}", folder.display());
            std::env::set_current_dir(folder).map_err(|error| cannot(&what, &error))?;
        }
        let memory = memory
            .map(spawn::inherited_memory)
            .transpose()
            .map_err(|error| cannot("find the memory of the node", &error))?;
        let (own, pieces) = own.split(tree.pes_per_process);
        let n_daemons = n_children(&pieces, &others, tree.fan_out);
        let launch = prepare(&spec, &tree, &own, n_daemons, memory)?;
        Ok::<_, StartFailure>(LaunchPlan {
            host: Some(host.clone()),
            own: Some((own, launch)),
            pieces,
            others,
        })
    })();
    match planned {
        Ok(plan) => {
            if let Some((_, launch)) = &plan.own {
                for notice in &launch.placements.notices {
                    up.send(&Up::Notice(format!("host {host}: {notice}")));
                }
            }
            subtree.start(&spec, &tree, plan, output);
        }
        Err(failure) => up.send(&Up::not_started(&host, &failure)),
    }
}

/// The state of a running daemon.
struct Daemon {
    /// The name of this host.
    host: String,
    parent: mpsc::UnboundedReceiver<Result<Down, FrameError>>,
    /// Present if the parent is on another host, which may stop answering.
    ticks: Option<Interval>,
    heartbeat: HostHeartbeat,
    windows: [Arc<Semaphore>; 2],
    up: UpSender,
    /// Whether the parent may send no heartbeats.
    is_suspended: bool,
    is_finishing: bool,
}

impl Daemon {
    /// Runs until the PEs have ended and their output has been sent.
    ///
    /// # Errors
    /// If the parent is lost.
    async fn work(&mut self, subtree: &mut Subtree, output: &mut Output) -> Result<(), String> {
        let mut was_idle = false;
        while !self.is_finishing {
            if !was_idle && subtree.is_idle() {
                was_idle = true;
                self.up.send(&Up::Idle);
            }
            tokio::select! {
                served = self.serve(subtree) => served?,
                sentence = output.lost() => self.report_loss(&sentence),
            }
        }
        subtree.clear(KILL_LIMIT).await;
        let mut finished = std::pin::pin!(output.finish());
        loop {
            tokio::select! {
                // A child daemon reports lost output before its own output ends.
                biased;
                served = self.serve(subtree) => served?,
                lost = &mut finished => {
                    lost.iter().for_each(|sentence| self.report_loss(sentence));
                    return Ok(());
                }
            }
        }
    }

    /// Waits for one event and handles it. Cancel safe.
    ///
    /// # Errors
    /// If the parent is lost.
    async fn serve(&mut self, subtree: &mut Subtree) -> Result<(), String> {
        let is_suspended = self.is_suspended;
        tokio::select! {
            event = subtree.next() => if !matches!(event, Up::Pong) {
                self.up.send(&event);
            },
            order = self.parent.recv() => {
                self.heartbeat.received();
                self.execute(received(order)?, subtree);
            }
            () = tick(&mut self.ticks), if !is_suspended => if self.heartbeat.tick() {
                return Err("the host that started this daemon does not answer".to_string());
            },
        }
        Ok(())
    }

    /// Reports that output of a PE of this process was lost.
    fn report_loss(&self, sentence: &str) {
        let sentence = format!("host {}: {sentence}", self.host);
        self.up.send(&Up::failed(sentence));
    }

    fn execute(&mut self, order: Down, subtree: &mut Subtree) {
        match order {
            Down::Frame { pe, frame } => subtree.send(pe, frame.into()),
            Down::FrameToAll { to, frame } => subtree.send_all(to, &frame.into()),
            Down::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    subtree.signal(signal);
                }
            }
            Down::Explain(inquiry) => subtree.explain(inquiry),
            Down::Watch { statuses, limit } => subtree.watch(statuses, limit),
            Down::Suspend => {
                self.is_suspended = true;
                subtree.suspend();
            }
            Down::Resume => {
                self.is_suspended = false;
                subtree.resume();
            }
            Down::Input(bytes) => subtree.send_input(bytes),
            Down::OutputConsumed { stream, nbytes } => {
                self.window(stream).add_permits(nbytes as usize)
            }
            Down::OutputClosed { stream } => self.window(stream).close(),
            Down::Ping => self.up.send(&Up::Pong),
            Down::Finish => self.is_finishing = true,
            // Only the first message contains orders.
            Down::Orders(_) => {}
        }
    }

    fn window(&self, stream: StdStream) -> &Semaphore {
        &self.windows[stream as usize]
    }
}
