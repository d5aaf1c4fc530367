//! The processes of a job that this process has started: the PEs of its host, and in oshrun also
//! the daemons of other hosts. Starts them, passes signals, frames and input on to them, and
//! reports their events.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::launcher::Statuses;
use rushmem_bootstrap::proto::Receivers;
use rushmem_explain::collect::LocalPe;
use rushmem_explain::snapshot::WaitId;
use rushmem_system::refused_calls;
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::time::Interval;

use crate::daemons::connection::{self, DaemonOrder, HostEvent};
use crate::daemons::{DaemonArrival, Daemons};
use crate::ends::processes::{AlivePe, Child, ChildExit, Processes};
use crate::errors::{StartFailure, cannot};
use crate::hang_report::snapshots::{SnapshotBatch, SnapshotRequest, SnapshotTask, Watch};
use crate::job::plan::JobPlan;
use crate::output::Output;
use crate::pes::LocalPes;
use crate::spawn::{PreparedStart, limits};

/// Maximum number of pieces of input in flight to PE 0.
pub const MAX_INPUT_PIECES: usize = 16;

/// Interval at which processes are reaped even without a SIGCHLD, since a notification of the
/// signal may be lost.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// The processes of a job that this process has started.
#[derive(Debug)]
pub struct Supervisor {
    local_pes: LocalPes,
    daemons: Daemons,
    processes: Processes,
    events: VecDeque<HostEvent>,
    sigchld: unix::Signal,
    readable: mpsc::UnboundedReceiver<u32>,
    arrivals: mpsc::UnboundedReceiver<DaemonArrival>,
    /// Reports each piece of input that was written to PE 0 or dropped; set if
    /// [`Supervisor::send_input`] provides its input.
    consumed: Option<mpsc::UnboundedSender<()>>,
    inputs_consumed: mpsc::UnboundedReceiver<()>,
    /// The threads that make snapshots of this process's PEs send these by clones of this sender.
    snapshot_sender: mpsc::UnboundedSender<HostEvent>,
    snapshots: mpsc::UnboundedReceiver<HostEvent>,
    /// Searches for long waits, if that was requested.
    watch: Option<Watch>,
    heartbeat_ticks: Interval,
    reap_ticks: Interval,
}

impl Supervisor {
    /// Starts the guard, but neither PEs nor daemons. With `sends_input`,
    /// [`Supervisor::send_input`] provides the input of PE 0, also if PE 0 is on this host. `limit`
    /// is that of `--host-limit`.
    pub fn new(sends_input: bool, limit: Duration) -> io::Result<Supervisor> {
        let (announce, readable) = mpsc::unbounded_channel();
        let (arrive, arrivals) = mpsc::unbounded_channel();
        let (consumed, inputs_consumed) = mpsc::unbounded_channel();
        let (snapshot_sender, snapshots) = mpsc::unbounded_channel();
        let consumed = if sends_input { Some(consumed) } else { None };

        Ok(Supervisor {
            local_pes: LocalPes::new(announce),
            daemons: Daemons::new(limit, arrive),
            processes: Processes::new()?,
            events: VecDeque::new(),
            sigchld: unix::signal(SignalKind::child())?,
            readable,
            arrivals,
            consumed,
            inputs_consumed,
            snapshot_sender,
            snapshots,
            watch: None,
            heartbeat_ticks: connection::ticks(connection::period(limit)),
            reap_ticks: connection::ticks(REAP_INTERVAL),
        })
    }

    /// Starts the daemons of the other hosts of a job.
    pub fn start_daemons(
        &mut self,
        plan: &JobPlan,
        output: &mut Output,
    ) -> Result<(), StartFailure> {
        self.daemons.start(
            plan.command.clone(),
            &plan.spec,
            plan.others.clone(),
            &mut self.processes,
            output,
        )
    }

    /// Starts the PEs of this host.
    pub fn start_pes(
        &mut self,
        launch: &PreparedStart,
        output: &mut Output,
    ) -> Result<(), StartFailure> {
        self.local_pes.start(
            launch,
            self.consumed.as_ref(),
            &mut self.processes,
            output,
            &mut self.events,
        )
    }

    /// Adds an event, which follows those that are pending.
    pub fn report(&mut self, event: HostEvent) {
        self.events.push_back(event);
    }

    /// Returns true if all PEs have ended or are on lost hosts, and no event is queued.
    pub fn is_idle(&self) -> bool {
        self.processes.alive().next().is_none()
            && self.daemons.busy().next().is_none()
            && self.events.is_empty()
    }

    /// Waits for the next event. Cancel safe.
    pub async fn next(&mut self) -> HostEvent {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }

            tokio::select! {
                _ = self.sigchld.recv() => self.reap(),
                Some(pe) = self.readable.recv() => self.events.extend(self.local_pes.read(pe)),
                Some(arrival) = self.arrivals.recv() => {
                    self.events.extend(self.daemons.handle(arrival, &self.processes));
                    if self.events.is_empty() {
                        // Lets the caller check whether this process has become idle.
                        return HostEvent::Pong;
                    }
                }
                Some(()) = self.inputs_consumed.recv() => return HostEvent::InputConsumed,
                Some(event) = self.snapshots.recv() => return event,
                () = Watch::tick(&mut self.watch) => {
                    let pes = self.running_pes();
                    if let Some(watch) = &mut self.watch {
                        self.events.extend(watch.search(&pes).into_iter().map(HostEvent::Overdue));
                    }
                }
                _ = self.reap_ticks.tick() => self.reap(),
                _ = self.heartbeat_ticks.tick(), if !self.daemons.is_empty() => {
                    self.events.extend(self.daemons.tick(&self.processes));
                }
            }
        }
    }

    /// Takes the pending events, including those that have arrived from daemons.
    pub fn take_events(&mut self) -> VecDeque<HostEvent> {
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.events
                .extend(self.daemons.handle(arrival, &self.processes));
        }
        std::mem::take(&mut self.events)
    }

    fn reap(&mut self) {
        let exits = self.processes.reap();
        self.add_exits(exits);
    }

    fn add_exits(&mut self, exits: Vec<ChildExit>) {
        for ChildExit { child, exit } in exits {
            match child {
                Child::Pe(pe) => self.local_pes.add_exit(pe, exit, &mut self.events),
                Child::Daemon(number) => {
                    self.events
                        .extend(self.daemons.record_exit(number, exit, &self.processes));
                }
            }
        }
    }

    /// Sends a frame to a PE.
    pub fn send(&self, pe: u32, frame: Arc<[u8]>) {
        if self.local_pes.has(pe) {
            self.local_pes.send(pe, frame);
        } else if !self.daemons.is_empty() {
            let frame = frame.to_vec();
            self.daemons
                .send_toward(pe, &DaemonOrder::Frame { pe, frame });
        }
    }

    /// Sends a frame to all PEs, or to the first of each node.
    pub fn send_all(&self, to: Receivers, frame: &Arc<[u8]>) {
        self.local_pes.send_all(to, frame);
        if !self.daemons.is_empty() {
            self.daemons.broadcast(&DaemonOrder::FrameToAll {
                to,
                frame: frame.to_vec(),
            });
        }
    }

    /// Requests snapshots of all running PEs, which are reported as events.
    pub fn request_snapshots(&mut self, request: SnapshotRequest) {
        self.daemons.broadcast(&DaemonOrder::MakeSnapshots(request));
        if request.at_once {
            let batches = self.make_snapshots(&request);
            self.events
                .extend(batches.into_iter().map(HostEvent::Snapshots));
            return;
        }

        let task = self.snapshot_task(request.statuses);
        let sender = self.snapshot_sender.clone();
        // If no thread can be started, these snapshots are missing. oshrun makes those of its own
        // PEs at the deadline.
        let _ = std::thread::Builder::new().spawn(move || {
            for batch in task.run(&request) {
                // The receiver lives as long as this process.
                let _ = sender.send(HostEvent::Snapshots(batch));
            }
        });
    }

    /// Makes snapshots of the PEs of this process.
    pub fn make_snapshots(&self, request: &SnapshotRequest) -> Vec<SnapshotBatch> {
        self.snapshot_task(request.statuses).run(request)
    }

    fn snapshot_task(&self, statuses: Option<Statuses>) -> SnapshotTask {
        SnapshotTask {
            pes: self.running_pes(),
            collector: self.local_pes.collector(statuses),
            mark: self.processes.mark().value().to_os_string(),
        }
    }

    /// Returns true if a PE of another host, or one of this host according to its status, may have
    /// a wait of at least `limit` for which `is_wanted` is true.
    pub fn may_wait(
        &self,
        statuses: Statuses,
        limit: Duration,
        is_wanted: impl Fn(&WaitId) -> bool,
    ) -> bool {
        let collector = self.local_pes.collector(Some(statuses));
        let waits = collector.long_waits(&self.running_pes(), limit);
        !self.daemons.is_empty() || waits.iter().any(is_wanted)
    }

    /// Begins to search the statuses once per second for waits longer than `limit`. Each new one is
    /// reported as an event.
    pub fn watch(&mut self, statuses: Statuses, limit: Duration) {
        self.daemons
            .broadcast(&DaemonOrder::Watch { statuses, limit });
        self.watch = Some(Watch::new(self.local_pes.collector(Some(statuses)), limit));
    }

    /// Returns the PEs of this host that run.
    fn running_pes(&self) -> Vec<LocalPe> {
        let mut pes = Vec::new();
        for AlivePe { pe, pid } in self.processes.alive() {
            pes.push(LocalPe {
                pe,
                local: self.local_pes.local_number(pe),
                pid: Some(pid.as_raw_nonzero().get().unsigned_abs()),
            });
        }
        pes
    }

    /// Sends a piece of input to PE 0. An empty piece ends the input.
    pub fn send_input(&mut self, bytes: Vec<u8>) {
        if self.local_pes.has(0) {
            self.local_pes.send_input(bytes);
        } else {
            self.daemons.send_input(bytes);
        }
    }

    /// Sends a signal to all PEs; SIGUSR1 only to processes that handle, block or await it. SIGKILL
    /// also abandons daemons that have not started yet.
    pub fn signal(&mut self, signal: Signal) {
        match signal {
            // SIGUSR1 asks oshrun for a hang report. It would end PEs that do not handle it.
            Signal::USR1 => self.processes.signal_takers(signal),
            _ => self.processes.signal(signal),
        }
        self.daemons
            .broadcast(&DaemonOrder::Signal(signal.as_raw()));

        if signal == Signal::KILL {
            self.daemons.abandon(&self.processes);
        }
    }

    /// Stops all PEs. Daemons then expect no heartbeats from this process.
    pub fn suspend(&self) {
        self.processes.signal(Signal::STOP);
        self.daemons.broadcast(&DaemonOrder::Suspend);
    }

    /// Waits until the messages to daemons have been sent, but not long for any of them.
    pub async fn flush(&self) {
        self.daemons.flush().await;
    }

    /// Continues all PEs.
    pub fn resume(&self) {
        self.processes.signal(Signal::CONT);
        self.daemons.broadcast(&DaemonOrder::Resume);
    }

    /// Returns the PEs of this host that have not ended.
    pub fn remaining_pes(&self) -> Vec<u32> {
        self.processes.alive().map(|alive| alive.pe).collect()
    }

    /// Returns the other hosts with PEs that have not ended.
    pub fn remaining_hosts(&self) -> Vec<String> {
        self.daemons.busy().map(str::to_string).collect()
    }

    /// Kills all processes of the PEs of this host, and waits until they have ended, for `limit` at
    /// most. Orders daemons to do the same and to exit.
    pub async fn finish(&mut self, limit: Duration) {
        self.daemons.finish();
        let exits = self.processes.kill_all(limit).await;
        self.add_exits(exits);
    }

    /// Waits for the last processes, such as launch agents, to end. Kills those that are left after
    /// `limit`.
    pub async fn dismiss(&mut self, limit: Duration) {
        self.processes.dismiss(limit).await;
    }
}

/// Runs a future on this thread: the event loop of oshrun or of a daemon.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, StartFailure> {
    // The event loop needs descriptors, so the limit is raised before it is created.
    limits::raise_descriptor_limit()?;

    // The runtime makes a pair of sockets for signals, and panics if it cannot.
    UnixStream::pair().map_err(|error| cannot("make a pair of sockets", &error))?;
    // The standard library would wait for the end of the first process that it starts.
    refused_calls::try_to_receive().map_err(|error| cannot("start processes", &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot("wait for events", &error))?;

    let output = runtime.block_on(future);
    // Dropping the runtime would first stop its tasks, which is needless since the process exits
    // next.
    std::mem::forget(runtime);
    Ok(output)
}
