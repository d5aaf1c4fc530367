//! A job's PEs as a tree of processes. oshrun is its root; a daemon on every other host, and for every further 256 PEs
//! of one host, holds PEs and has daemons below it in turn.
//!
//! A daemon communicates with its parent over its own standard input and output, so it needs no port and no secret.
//! [`Subtree`] is what the root and a daemon have in common: it starts the processes below, gives them orders, and
//! reports their events.

pub mod agent;
mod branch;
mod branches;
pub mod daemon;
mod heartbeat;
pub mod orders;
pub mod senders;
pub mod wire;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::branch::Arrival;
use self::branches::{Below, Branches};
use self::orders::{Growth, Part, Task};
use self::wire::{Down, Up};
use crate::failure::Failure;
use crate::local_pes::LocalPes;
use crate::output::Output;
use crate::processes::{Member, Processes};
use crate::spawn::Launch;

/// Maximum number of pieces of input in flight to PE 0.
pub const PIECES: usize = 16;

/// How often children are waited for although no signal has come: the handler of a signal may fail
/// to wake this process.
const REAPING: Duration = Duration::from_secs(1);

/// What a process starts: its own PEs, if it has any, and daemons for other parts of its host and for other hosts.
#[derive(Debug, Default)]
pub struct Plan {
    /// The name of this host for error messages; `None` in oshrun itself.
    pub host: Option<String>,
    /// Its own PEs.
    pub own: Option<(Part, Launch)>,
    /// PEs of this host that other processes start.
    pub pieces: Vec<Part>,
    /// Other hosts.
    pub others: Vec<Part>,
}

/// All that is below a process.
#[derive(Debug)]
pub struct Subtree {
    local_pes: LocalPes,
    branches: Branches,
    processes: Processes,
    news: VecDeque<Up>,
    children: unix::Signal,
    readable: mpsc::UnboundedReceiver<u32>,
    arrivals: mpsc::UnboundedReceiver<(usize, Arrival)>,
    /// Set if PE 0's input comes from the parent.
    taken: Option<mpsc::UnboundedSender<()>>,
    inputs_taken: mpsc::UnboundedReceiver<()>,
    clock: Interval,
    /// When children are waited for although no signal has come.
    reaping: Interval,
}

impl Subtree {
    /// Without any process. `fed`: PE 0, if it will be here, gets its input from the parent.
    ///
    /// # Errors
    /// When the guard cannot be started, or signals cannot be received.
    pub fn new(fed: bool, limit: Duration) -> io::Result<Subtree> {
        let (announce, readable) = mpsc::unbounded_channel();
        let (arrive, arrivals) = mpsc::unbounded_channel();
        let (taken, inputs_taken) = mpsc::unbounded_channel();
        let mut clock = interval(heartbeat::period(limit));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reaping = interval(REAPING);
        reaping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Subtree {
            local_pes: LocalPes::new(announce),
            branches: Branches::new(arrive),
            processes: Processes::new()?,
            news: VecDeque::new(),
            children: unix::signal(SignalKind::child())?,
            readable,
            arrivals,
            taken: fed.then_some(taken),
            inputs_taken,
            clock,
            reaping,
        })
    }

    /// Starts everything: daemons first, since they take longer. A failure is reported as an event.
    pub fn start(&mut self, task: &Task, growth: &Growth, plan: Plan, output: &mut Output) {
        let launch = plan.own.as_ref().map(|(_, launch)| launch);
        let memory = launch.map(|launch| &launch.memory);
        let limit = launch.and_then(|launch| launch.limit);
        let below = Below { pieces: plan.pieces, memory, others: plan.others, limit };
        let (branches, processes) = (&mut self.branches, &mut self.processes);
        let called = branches.start(task, growth, below, processes, output);
        let started = called.and_then(|()| match &plan.own {
            Some((part, launch)) => {
                let (fed, pes) = (self.taken.as_ref(), part.pes.clone());
                self.local_pes.start(launch, pes, fed, &mut self.processes, output, &mut self.news)
            }
            None => Ok(()),
        });
        if let Err(Failure { status, sentence }) = started {
            let sentence = match plan.host {
                Some(host) => format!("host {host}: {sentence}"),
                None => sentence,
            };
            self.news.push_back(Up::Failed { status, sentence });
        }
    }

    /// Whether every PE has ended, and all of their events have been reported.
    pub fn is_idle(&self) -> bool {
        self.processes.all_pes_exited() && self.branches.are_idle() && self.news.is_empty()
    }

    /// The next event. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Up {
        loop {
            if let Some(news) = self.news.pop_front() {
                return news;
            }
            tokio::select! {
                _ = self.children.recv() => self.reap(),
                Some(pe) = self.readable.recv() => self.news.extend(self.local_pes.read(pe)),
                Some((number, arrival)) = self.arrivals.recv() => {
                    let news = self.branches.arrived(number, arrival, &self.processes);
                    self.news.extend(news);
                    if self.news.is_empty() {
                        // This process may have become idle.
                        return Up::Pong;
                    }
                }
                Some(()) = self.inputs_taken.recv() => return Up::InputTaken,
                _ = self.reaping.tick() => self.reap(),
                _ = self.clock.tick(), if !self.branches.is_empty() => {
                    self.news.extend(self.branches.tick(&self.processes));
                }
            }
        }
    }

    /// The events that have arrived by now and wait for nothing else.
    pub fn arrived(&mut self) -> VecDeque<Up> {
        while let Ok((number, arrival)) = self.arrivals.try_recv() {
            let news = self.branches.arrived(number, arrival, &self.processes);
            self.news.extend(news);
        }
        std::mem::take(&mut self.news)
    }

    fn reap(&mut self) {
        let exits = self.processes.reap();
        self.note(exits);
    }

    fn note(&mut self, exits: Vec<(Member, rushmem_bootstrap::Exit)>) {
        for (member, exit) in exits {
            match member {
                Member::Pe(pe) => self.local_pes.exited(pe, exit, &mut self.news),
                Member::Daemon(number) => {
                    self.news.extend(self.branches.exited(number, exit, &self.processes));
                }
            }
        }
    }

    /// Sends a frame to a PE.
    pub fn send(&self, pe: u32, frame: Arc<[u8]>) {
        if self.local_pes.has(pe) {
            self.local_pes.send(pe, frame);
        } else if !self.branches.is_empty() {
            self.branches.tell_of(pe, &Down::Frame { pe, frame: frame.to_vec() });
        }
    }

    /// Sends a frame to every PE.
    pub fn send_all(&self, frame: &Arc<[u8]>) {
        self.local_pes.send_all(frame);
        if !self.branches.is_empty() {
            self.branches.tell_all(&Down::FrameToAll { frame: frame.to_vec() });
        }
    }

    /// Passes a piece of input to PE 0.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        if self.local_pes.has(0) {
            self.local_pes.feed(bytes);
        } else {
            self.branches.tell_of(0, &Down::Input(bytes));
        }
    }

    /// Sends a signal to all PEs. SIGKILL also gives up daemons that have not started yet.
    pub fn signal(&mut self, signal: Signal) {
        self.processes.signal(signal);
        self.branches.tell_all(&Down::Signal(signal.as_raw()));
        if signal == Signal::KILL {
            self.branches.abandon(&self.processes);
        }
    }

    /// Stops all PEs, and tells daemons that this process may be silent.
    pub fn suspend(&self) {
        self.processes.signal(Signal::STOP);
        self.branches.tell_all(&Down::Suspend);
    }

    /// Waits until messages to daemons have been sent.
    pub async fn flush(&self) {
        self.branches.flush().await;
    }

    /// Lets all PEs continue.
    pub fn resume(&self) {
        self.processes.signal(Signal::CONT);
        self.branches.tell_all(&Down::Resume);
    }

    /// What has been killed but has not ended: PEs of this process, and hosts below.
    pub fn remains(&self) -> (Vec<u32>, Vec<String>) {
        (self.processes.alive(), self.branches.busy().map(str::to_string).collect())
    }

    /// After the end of all PEs: kills what they have left on all hosts. Then the output may end.
    pub async fn clear(&mut self, limit: Duration) {
        self.branches.tell_all(&Down::Finish);
        let exits = self.processes.clear(limit).await;
        self.note(exits);
    }

    /// Waits for the last processes to end.
    pub async fn dismiss(&mut self, limit: Duration) {
        self.processes.dismiss(limit).await;
    }
}
