//! The tree of processes that starts the PEs of a job. The root is oshrun; each other host, and
//! each further 256 PEs of a host, has a daemon, which starts PEs and may have child daemons.
//!
//! A daemon communicates with its parent over standard input and output, so it needs neither a port
//! nor a secret. The root and the daemons share [`Subtree`], which starts the processes below,
//! controls them and reports their events.

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

use rushmem_bootstrap::proto::Receivers;
use rushmem_bootstrap::server::Statuses;
use rushmem_explain::collect::LocalPe;
use rustix::process::{Pid, Signal};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::time::Interval;

use self::branch::Arrival;
use self::branches::{Branches, Daemons};
use self::orders::{HostPes, JobSpec, TreeConfig};
use self::wire::{Down, Up};
use crate::explain::overdue::Watch;
use crate::explain::survey::{Inquiry, Survey, SurveyResult};
use crate::local_pes::LocalPes;
use crate::output::Output;
use crate::processes::{Child, Processes};
use crate::spawn::PreparedStart;

/// Maximum number of pieces of input in flight to PE 0.
pub const MAX_INPUT_PIECES: usize = 16;

/// Interval at which children are reaped without SIGCHLD: a signal handler may fail to wake this
/// process.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// What one process starts: PEs, and daemons for further PEs of its host and for other hosts.
#[derive(Debug, Default)]
pub struct LaunchPlan {
    /// The name of this host for error messages; `None` in the root.
    pub host: Option<String>,
    /// The PEs that this process starts.
    pub own: Option<(HostPes, PreparedStart)>,
    /// PEs of this host that daemons start.
    pub pieces: Vec<HostPes>,
    /// Other hosts.
    pub others: Vec<HostPes>,
}

/// The processes below this one.
#[derive(Debug)]
pub struct Subtree {
    local_pes: LocalPes,
    branches: Branches,
    processes: Processes,
    events: VecDeque<Up>,
    sigchld: unix::Signal,
    readable: mpsc::UnboundedReceiver<u32>,
    arrivals: mpsc::UnboundedReceiver<(usize, Arrival)>,
    /// Set if the input of PE 0 comes from [`Subtree::send_input`].
    consumed: Option<mpsc::UnboundedSender<()>>,
    inputs_consumed: mpsc::UnboundedReceiver<()>,
    /// Sends snapshots of the PEs of this process.
    explain: mpsc::UnboundedSender<Up>,
    explained: mpsc::UnboundedReceiver<Up>,
    /// Looks for long waits, if that was requested.
    watch: Option<Watch>,
    heartbeat_ticks: Interval,
    reap_ticks: Interval,
}

impl Subtree {
    /// An empty subtree. `sends_input`: the input of PE 0 comes from [`Subtree::send_input`], even
    /// if PE 0 is here.
    pub fn new(sends_input: bool, limit: Duration) -> io::Result<Subtree> {
        let (announce, readable) = mpsc::unbounded_channel();
        let (arrive, arrivals) = mpsc::unbounded_channel();
        let (consumed, inputs_consumed) = mpsc::unbounded_channel();
        let (explain, explained) = mpsc::unbounded_channel();
        Ok(Subtree {
            local_pes: LocalPes::new(announce),
            branches: Branches::new(arrive),
            processes: Processes::new()?,
            events: VecDeque::new(),
            sigchld: unix::signal(SignalKind::child())?,
            readable,
            arrivals,
            consumed: sends_input.then_some(consumed),
            inputs_consumed,
            explain,
            explained,
            watch: None,
            heartbeat_ticks: heartbeat::ticks(heartbeat::period(limit)),
            reap_ticks: heartbeat::ticks(REAP_INTERVAL),
        })
    }

    /// Starts daemons, which take longer, and then PEs. A failure is reported as an event.
    pub fn start(
        &mut self,
        spec: &JobSpec,
        tree: &TreeConfig,
        plan: LaunchPlan,
        output: &mut Output,
    ) {
        let launch = plan.own.as_ref().map(|(_, launch)| launch);
        let memory = launch.map(|launch| &launch.memory);
        let limit = launch.and_then(|launch| launch.limit);
        let daemons = Daemons { pieces: plan.pieces, memory, others: plan.others, limit };
        let (branches, processes) = (&mut self.branches, &mut self.processes);
        let called = branches.start(spec, tree, daemons, processes, output);
        let started = called.and_then(|()| match &plan.own {
            Some((part, launch)) => {
                let (consumed, pes) = (self.consumed.as_ref(), part.pes.clone());
                let events = &mut self.events;
                self.local_pes.start(launch, pes, consumed, &mut self.processes, output, events)
            }
            None => Ok(()),
        });
        if let Err(failure) = started {
            self.events.push_back(match plan.host {
                Some(host) => Up::not_started(&host, &failure),
                None => {
                    Up::Failed { status: failure.status, sentence: failure.sentence, host: None }
                }
            });
        }
    }

    /// Whether all PEs have ended, and all events have been reported.
    pub fn is_idle(&self) -> bool {
        self.processes.all_pes_exited() && self.branches.are_idle() && self.events.is_empty()
    }

    /// Waits for the next event. Cancel safe.
    pub async fn next(&mut self) -> Up {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            tokio::select! {
                _ = self.sigchld.recv() => self.reap(),
                Some(pe) = self.readable.recv() => self.events.extend(self.local_pes.read(pe)),
                Some((number, arrival)) = self.arrivals.recv() => {
                    self.events.extend(self.branches.handle(number, arrival, &self.processes));
                    if self.events.is_empty() {
                        // Lets the caller check whether this process has become idle.
                        return Up::Pong;
                    }
                }
                Some(()) = self.inputs_consumed.recv() => return Up::InputConsumed,
                Some(reports) = self.explained.recv() => return reports,
                () = Watch::tick(&mut self.watch) => self.look_for_long_waits(),
                _ = self.reap_ticks.tick() => self.reap(),
                _ = self.heartbeat_ticks.tick(), if !self.branches.is_empty() => {
                    self.events.extend(self.branches.tick(&self.processes));
                }
            }
        }
    }

    /// Takes the pending events, including those that child daemons have sent by now.
    pub fn take_events(&mut self) -> VecDeque<Up> {
        while let Ok((number, arrival)) = self.arrivals.try_recv() {
            self.events.extend(self.branches.handle(number, arrival, &self.processes));
        }
        std::mem::take(&mut self.events)
    }

    fn reap(&mut self) {
        let exits = self.processes.reap();
        self.add_exits(exits);
    }

    fn add_exits(&mut self, exits: Vec<(Child, rushmem_bootstrap::Exit)>) {
        for (child, exit) in exits {
            match child {
                Child::Pe(pe) => self.local_pes.exited(pe, exit, &mut self.events),
                Child::Daemon(number) => {
                    self.events.extend(self.branches.exited(number, exit, &self.processes));
                }
            }
        }
    }

    /// Sends a frame to a PE.
    pub fn send(&self, pe: u32, frame: Arc<[u8]>) {
        if self.local_pes.has(pe) {
            self.local_pes.send(pe, frame);
        } else if !self.branches.is_empty() {
            self.branches.send_toward(pe, &Down::Frame { pe, frame: frame.to_vec() });
        }
    }

    /// Sends a frame to every PE, or to the first of each node.
    pub fn send_all(&self, to: Receivers, frame: &Arc<[u8]>) {
        self.local_pes.send_all(to, frame);
        if !self.branches.is_empty() {
            self.branches.broadcast(&Down::FrameToAll { to, frame: frame.to_vec() });
        }
    }

    /// Requests snapshots of all PEs, which follow as events.
    pub fn explain(&mut self, inquiry: Inquiry) {
        self.branches.broadcast(&Down::Explain(inquiry));
        if inquiry.at_once {
            let results = self.results(&inquiry);
            self.events.extend(results.into_iter().map(Up::Found));
            return;
        }
        let survey = self.survey(inquiry.statuses);
        let explain = self.explain.clone();
        // The receiver lives as long as this process.
        let send = move |result| drop(explain.send(Up::Found(result)));
        // Without a thread, the snapshots are missing.
        let _ = std::thread::Builder::new()
            .spawn(move || survey.results(&inquiry).into_iter().for_each(send));
    }

    /// The snapshots of the PEs of this process.
    pub fn results(&self, inquiry: &Inquiry) -> Vec<SurveyResult> {
        self.survey(inquiry.statuses).results(inquiry)
    }

    fn survey(&self, statuses: Option<Statuses>) -> Survey {
        Survey {
            pes: self.running_pes(),
            collector: self.local_pes.collector(statuses),
            mark: self.processes.mark().value().to_os_string(),
        }
    }

    /// Looks for waits that last longer than `limit`, once per second; each is an event.
    pub fn watch(&mut self, statuses: Statuses, limit: Duration) {
        self.branches.broadcast(&Down::Watch { statuses, limit });
        self.watch = Some(Watch::new(self.local_pes.collector(Some(statuses)), limit));
    }

    fn look_for_long_waits(&mut self) {
        let pes = self.running_pes();
        if let Some(watch) = &mut self.watch {
            self.events.extend(watch.look(&pes).into_iter().map(Up::Overdue));
        }
    }

    /// The PEs of this process that run.
    fn running_pes(&self) -> Vec<LocalPe> {
        let running = |(pe, pid): (u32, Pid)| LocalPe {
            pe,
            local: self.local_pes.local_number(pe),
            pid: Some(pid.as_raw_nonzero().get().unsigned_abs()),
        };
        self.processes.alive().map(running).collect()
    }

    /// Sends a piece of input to PE 0.
    pub fn send_input(&mut self, bytes: Vec<u8>) {
        if self.local_pes.has(0) {
            self.local_pes.send_input(bytes);
        } else {
            self.branches.send_toward(0, &Down::Input(bytes));
        }
    }

    /// Sends a signal to all PEs, SIGUSR1 only to those that take it. SIGKILL also
    /// abandons daemons that have not started yet.
    pub fn signal(&mut self, signal: Signal) {
        match signal {
            // Its default action would end PEs; oshrun itself prints an explanation.
            Signal::USR1 => self.processes.signal_takers(signal),
            _ => self.processes.signal(signal),
        }
        self.branches.broadcast(&Down::Signal(signal.as_raw()));
        if signal == Signal::KILL {
            self.branches.abandon(&self.processes);
        }
    }

    /// Stops all PEs. Daemons then expect no heartbeats from this process.
    pub fn suspend(&self) {
        self.processes.signal(Signal::STOP);
        self.branches.broadcast(&Down::Suspend);
    }

    /// Waits until messages to daemons have been sent.
    pub async fn flush(&self) {
        self.branches.flush().await;
    }

    /// Continues all PEs.
    pub fn resume(&self) {
        self.processes.signal(Signal::CONT);
        self.branches.broadcast(&Down::Resume);
    }

    /// What has not ended: PEs of this process, and hosts below.
    pub fn remains(&self) -> (Vec<u32>, Vec<String>) {
        (
            self.processes.alive().map(|(pe, _)| pe).collect(),
            self.branches.busy().map(str::to_string).collect(),
        )
    }

    /// After the end of all PEs: kills the processes that they left on all hosts.
    pub async fn clear(&mut self, limit: Duration) {
        self.branches.broadcast(&Down::Finish);
        let exits = self.processes.clear(limit).await;
        self.add_exits(exits);
    }

    /// Waits for the last processes to end.
    pub async fn dismiss(&mut self, limit: Duration) {
        self.processes.dismiss(limit).await;
    }
}
