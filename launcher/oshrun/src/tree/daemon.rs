//! The role of a daemon: oshrun on another host, or for more PEs of the same one.
//!
//! It takes orders from its parent over standard input and reports events over standard output. When its input ends, or
//! its parent no longer sends heartbeats, it exits, and its guard ends everything that it has started.

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rushmem_bootstrap::proto::{Decoder, FrameError};
use rustix::process::Signal;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::heartbeat::{self, Heartbeat};
use super::orders::{Orders, n_children};
use super::senders::{UpSender, WINDOW};
use super::wire::{Down, MAX_DOWN, Up, Which};
use super::{Plan, Subtree, agent};
use crate::failure::{Failure, cannot, complain};
use crate::limits;
use crate::output::Output;
use crate::prepare::prepare;
use crate::spawn;

/// Time in which killed processes must disappear: less than the parent waits for this daemon.
const KILL_LIMIT: Duration = Duration::from_secs(4);

/// Whether this process was started as a daemon.
pub fn is_daemon() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == agent::ROLE)
}

/// The role of a daemon.
pub fn serve() -> ExitCode {
    match start_and_run() {
        Ok(writer) => {
            // The last messages are sent before the process ends.
            let _ = writer.join();
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&format!("oshrun: {why}"));
            // It exits at once: the guard does the rest.
            std::process::exit(1)
        }
    }
}

/// Returns the thread that still writes to the parent.
fn start_and_run() -> Result<JoinHandle<()>, String> {
    let no_thread = |error| cannot("start a thread", &error).sentence;
    let (up, writer) = UpSender::to_stdout().map_err(no_thread)?;
    let parent = orders_from_stdin().map_err(no_thread)?;
    // The event loop needs descriptors too.
    limits::make_room(0, 0, false).map_err(|failure| failure.sentence)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot("wait for events", &error).sentence)?;
    let served = runtime.block_on(run(parent, up));
    // Waiting for its destructors has no use.
    std::mem::forget(runtime);
    served.map(|()| writer)
}

/// The messages of the parent, which a thread reads. The channel ends with the input.
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

/// The reason why a daemon ends early, on standard error, which the agent passes on.
fn gone() -> String {
    "the process that started this daemon is gone".to_string()
}

async fn run(
    mut parent: mpsc::UnboundedReceiver<Result<Down, FrameError>>,
    up: UpSender,
) -> Result<(), String> {
    let orders = match parent.recv().await {
        Some(Ok(Down::Orders(orders))) => *orders,
        Some(Ok(_)) => return Err("a daemon is started by oshrun itself".to_string()),
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err(gone()),
    };
    let is_watched = orders.memory.is_none();
    let limit = orders.growth.limit;
    let windows = [WINDOW, WINDOW].map(|bytes| Arc::new(Semaphore::new(bytes as usize)));
    let mut output = Output::to_parent(&up, &windows, orders.task.prompts);
    let mut subtree = Subtree::new(true, limit)
        .map_err(|error| cannot("start the guard process", &error).sentence)?;
    let host = orders.own.host.clone();
    start(orders, &mut subtree, &mut output, &up);

    let mut clock = interval(heartbeat::period(limit));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut daemon = Daemon {
        host,
        parent,
        clock: is_watched.then_some(clock),
        heartbeat: Heartbeat::default(),
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
        // The guard does this too, but finds processes that have left their groups only while they show their mark.
        Err(_) => subtree.clear(KILL_LIMIT).await,
    }
    served
}

async fn tick(clock: &mut Option<Interval>) {
    match clock {
        Some(clock) => drop(clock.tick().await),
        None => std::future::pending().await,
    }
}

fn heard(order: Option<Result<Down, FrameError>>) -> Result<Down, String> {
    match order {
        Some(Ok(order)) => Ok(order),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(gone()),
    }
}

/// Starts the processes of the orders, and reports what cannot be started.
fn start(orders: Orders, subtree: &mut Subtree, output: &mut Output, up: &UpSender) {
    let Orders { task, growth, own, others, memory } = orders;
    let host = own.host.clone();
    let planned = (|| {
        if let Some(folder) = &task.folder {
            let what = format!("enter the folder {}", folder.display());
            std::env::set_current_dir(folder).map_err(|error| cannot(&what, &error))?;
        }
        let memory = memory
            .map(spawn::inherited_memory)
            .transpose()
            .map_err(|error| cannot("find the memory of the node", &error))?;
        let (own, pieces) = own.split(growth.pes_per_process);
        let n_daemons = n_children(&pieces, &others, growth.fan_out);
        let launch = prepare(&task, &growth, &own, n_daemons, memory)?;
        Ok::<_, Failure>(Plan {
            host: Some(host.clone()),
            own: Some((own, launch)),
            pieces,
            others,
        })
    })();
    match planned {
        Ok(plan) => {
            if let Some((_, launch)) = &plan.own {
                for words in &launch.placements.words {
                    up.send(&Up::Words(format!("host {host}: {words}")));
                }
            }
            subtree.start(&task, &growth, plan, output);
        }
        Err(Failure { status, sentence }) => {
            up.send(&Up::Failed { status, sentence: format!("host {host}: {sentence}") });
        }
    }
}

/// The inputs of a started daemon, and its state.
struct Daemon {
    /// The name of this host.
    host: String,
    parent: mpsc::UnboundedReceiver<Result<Down, FrameError>>,
    /// Ticks, if the parent is on another host, which may stop answering.
    clock: Option<Interval>,
    heartbeat: Heartbeat,
    windows: [Arc<Semaphore>; 2],
    up: UpSender,
    /// Whether the parent may be silent.
    is_suspended: bool,
    is_finishing: bool,
}

impl Daemon {
    /// Serves until its PEs have ended and their output has been sent.
    ///
    /// # Errors
    /// When the parent is lost.
    async fn work(&mut self, subtree: &mut Subtree, output: &mut Output) -> Result<(), String> {
        let mut was_idle = false;
        while !self.is_finishing {
            if !was_idle && subtree.is_idle() {
                was_idle = true;
                self.up.send(&Up::Idle);
            }
            tokio::select! {
                served = self.serve(subtree) => served?,
                sentence = output.lost() => self.lose(&sentence),
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
                    lost.iter().for_each(|sentence| self.lose(sentence));
                    return Ok(());
                }
            }
        }
    }

    /// Waits for one event and handles it; if it is cancelled while it waits, it has done nothing.
    ///
    /// # Errors
    /// When the parent is lost.
    async fn serve(&mut self, subtree: &mut Subtree) -> Result<(), String> {
        let is_suspended = self.is_suspended;
        tokio::select! {
            news = subtree.next() => self.tell(news),
            order = self.parent.recv() => {
                self.heartbeat.heard();
                self.obey(heard(order)?, subtree);
            }
            () = tick(&mut self.clock), if !is_suspended => if self.heartbeat.tick() {
                return Err("the host that started this daemon does not answer".to_string());
            },
        }
        Ok(())
    }

    /// Output of a PE of this process was lost.
    fn lose(&self, sentence: &str) {
        let sentence = format!("host {}: {sentence}", self.host);
        self.up.send(&Up::Failed { status: 1, sentence });
    }

    fn tell(&self, news: Up) {
        match news {
            Up::Pong => {}
            news => self.up.send(&news),
        }
    }

    fn obey(&mut self, order: Down, subtree: &mut Subtree) {
        match order {
            Down::Frame { pe, frame } => subtree.send(pe, frame.into()),
            Down::FrameToAll { frame } => subtree.send_all(&frame.into()),
            Down::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    subtree.signal(signal);
                }
            }
            Down::Suspend => {
                self.is_suspended = true;
                subtree.suspend();
            }
            Down::Resume => {
                self.is_suspended = false;
                subtree.resume();
            }
            Down::Input(bytes) => subtree.feed(bytes),
            Down::Read { stream, nbytes } => self.window(stream).add_permits(nbytes as usize),
            Down::Unread { stream } => self.window(stream).close(),
            Down::Ping => self.up.send(&Up::Pong),
            Down::Finish => self.is_finishing = true,
            // A daemon has one job.
            Down::Orders(_) => {}
        }
    }

    fn window(&self, stream: Which) -> &Semaphore {
        &self.windows[stream as usize]
    }
}
