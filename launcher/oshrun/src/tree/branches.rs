//! The child daemons of a process: starts them, sends them messages, and detects losses.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::{Exit, proto};
use rustix::fs::MemfdFlags;
use rustix::process::Rlimit;
use tokio::time::{Instant, timeout};

use super::agent;
use super::branch::{AgentStreams, Arrival, Arrivals, Branch, BranchStage};
use super::heartbeat;
use super::orders::{HostPes, JobSpec, Orders, TreeConfig, distribute};
use super::wire::{Down, Up};
use crate::failure::{StartFailure, reason};
use crate::output::Output;
use crate::processes::{Child, Processes};
use crate::spawn;

/// Maximum time for sending messages before oshrun stops itself.
const FLUSH_LIMIT: Duration = Duration::from_millis(200);

/// Time within which all daemons must have started.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The child daemons of a process.
#[derive(Debug)]
pub struct Branches {
    list: Vec<Branch>,
    tree: Option<TreeConfig>,
    arrivals: Arrivals,
    /// When the first of them was started.
    since: Instant,
}

/// The daemons to start.
#[derive(Debug)]
pub struct Daemons<'a> {
    /// PEs of this host, one range for each daemon.
    pub pieces: Vec<HostPes>,
    /// The shared memory of this host's PEs.
    pub memory: Option<&'a OwnedFd>,
    /// Other hosts.
    pub others: Vec<HostPes>,
    /// The original descriptor limit, if oshrun raised its own.
    pub limit: Option<Rlimit>,
}

impl Branches {
    /// No children yet. `arrivals` receives their events.
    pub fn new(arrivals: Arrivals) -> Branches {
        Branches { list: Vec::new(), tree: None, arrivals, since: Instant::now() }
    }

    /// Starts daemons.
    pub fn start(
        &mut self,
        spec: &JobSpec,
        tree: &TreeConfig,
        Daemons { pieces, memory, others, limit }: Daemons<'_>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> Result<(), StartFailure> {
        self.tree = Some(tree.clone());
        self.since = Instant::now();
        let orders = |own, others, memory| Orders {
            spec: spec.clone(),
            tree: tree.clone(),
            own,
            others,
            memory,
        };
        for piece in pieces {
            let orders = orders(piece, Vec::new(), memory.map(OwnedFd::as_raw_fd));
            self.start_one(orders, memory, limit, processes, output)?;
        }
        for (own, others) in distribute(others, tree.fan_out) {
            let orders = orders(own, others, None);
            self.start_one(orders, None, limit, processes, output)?;
        }
        Ok(())
    }

    fn start_one(
        &mut self,
        orders: Orders,
        memory: Option<&OwnedFd>,
        limit: Option<Rlimit>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> Result<(), StartFailure> {
        let (tree, host) = (&orders.tree, orders.own.host.clone());
        let is_remote = memory.is_none();
        let (command, name) = if is_remote {
            (tree.agent.command(&host, &tree.oshrun), tree.agent.name())
        } else {
            (agent::local(), "a daemon".to_string())
        };
        let number = self.list.len();
        let cannot = |error: &io::Error| {
            let reason = reason(error);
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "; name another command with --launch-agent",
                _ => "",
            };
            // Cause: the command of `--launch-agent` cannot be run. Remedy: name another one.
            let sentence = format!("cannot start {name} for host {host}: {reason}{remedy}");
            StartFailure::general(sentence)
        };
        let started = (|| {
            let (theirs, stdin) = io::pipe()?;
            let (stdout, out) = io::pipe()?;
            let stderr = rustix::fs::memfd_create("oshrun-agent", MemfdFlags::CLOEXEC)?;
            let err = rustix::io::fcntl_dupfd_cloexec(&stderr, 0)?;
            let streams = AgentStreams { stdin, stdout, stderr: stderr.into() };
            let theirs = (theirs.into(), out.into(), err);
            let pid = spawn::daemon(command, theirs, memory, limit, processes.guard())?;
            processes.add(Child::Daemon(number), pid);
            let end = orders.others.last().map_or(orders.own.pes.end, |part| part.pes.end);
            let pes = orders.own.pes.start..end.max(orders.own.pes.end);
            let relay = |down: &_| output.relay(down);
            Branch::new(number, host.clone(), pes, streams, relay, &self.arrivals)
        })();
        let mut branch = started.map_err(|error| cannot(&error))?;
        branch.is_remote = is_remote;
        branch.n_behind = orders.others.len();
        branch.down.send(&Down::Orders(Box::new(orders)));
        self.list.push(branch);
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether all of their PEs have ended.
    pub fn are_idle(&self) -> bool {
        self.list.iter().all(Branch::is_idle)
    }

    /// The hosts whose PEs have not ended.
    pub fn busy(&self) -> impl Iterator<Item = &str> {
        self.list.iter().filter(|branch| !branch.is_idle()).map(|branch| branch.host.as_str())
    }

    /// Sends a message to the child through which `pe` is reached.
    pub fn send_toward(&self, pe: u32, message: &Down) {
        // The range of another child may enclose PEs of this host. Children of this host come
        // first.
        if let Some(branch) = self.list.iter().find(|branch| branch.pes.contains(&pe)) {
            branch.down.send(message);
        }
    }

    /// Sends a message to all children.
    pub fn broadcast(&self, message: &Down) {
        if !self.list.is_empty() {
            let frame: Arc<[u8]> = proto::encode(message).into();
            self.list.iter().for_each(|branch| branch.down.send_frame(frame.clone()));
        }
    }

    /// Waits until all messages have been sent, or until the limit.
    pub async fn flush(&self) {
        for branch in &self.list {
            let _ = timeout(FLUSH_LIMIT, branch.down.flush()).await;
        }
    }

    /// Handles an event of a child. Returns an event for the job.
    pub fn handle(&mut self, number: usize, arrival: Arrival, processes: &Processes) -> Option<Up> {
        let branch = &mut self.list[number];
        branch.heartbeat.received();
        match arrival {
            Arrival::Greeted if branch.stage == BranchStage::Starting => {
                branch.stage = BranchStage::Running;
                return Some(Up::Greeted { pe: branch.pes.start });
            }
            Arrival::Message(Up::Idle) if branch.stage == BranchStage::Running => {
                branch.stage = BranchStage::Idle;
            }
            Arrival::Message(Up::Done) if branch.stage != BranchStage::Lost => {
                branch.stage = BranchStage::Done
            }
            Arrival::Message(Up::Pong | Up::Idle | Up::Done) | Arrival::Greeted => {}
            Arrival::Message(_) if branch.stage == BranchStage::Lost => {}
            Arrival::Message(event) => return Some(event),
            Arrival::Invalid(error) => return self.lose(number, Some(error), processes),
            Arrival::Closed => {
                branch.closed = true;
                return self.check_end(number, processes);
            }
            Arrival::Overdue => return self.lose(number, None, processes),
        }
        None
    }

    /// Records the exit of a child's agent.
    pub fn exited(&mut self, number: usize, exit: Exit, processes: &Processes) -> Option<Up> {
        // A daemon whose pipes could not be used has no entry, and the job ends for that.
        self.list.get_mut(number)?.exit = Some(exit);
        self.check_end(number, processes)
    }

    /// Sends heartbeats, and checks whether all children are alive.
    pub fn tick(&mut self, processes: &Processes) -> Vec<Up> {
        let mut events = Vec::new();
        for number in 0..self.list.len() {
            let branch = &mut self.list[number];
            match branch.stage {
                BranchStage::Starting if self.since.elapsed() > START_LIMIT => {
                    let reason = format!("it has not answered for {} s", START_LIMIT.as_secs());
                    events.extend(self.lose(number, Some(reason), processes));
                }
                BranchStage::Running | BranchStage::Idle if branch.is_remote => {
                    branch.down.send(&Down::Ping);
                    if branch.heartbeat.tick() {
                        let silence = self.tree.as_ref().map(|tree| heartbeat::silence(tree.limit));
                        let seconds = silence.unwrap_or_default().as_secs_f64();
                        let reason = format!("it has been silent for {seconds} s");
                        events.extend(self.lose(number, Some(reason), processes));
                    }
                }
                _ => {}
            }
        }
        events
    }

    /// Abandons children whose daemon has not started yet.
    pub fn abandon(&mut self, processes: &Processes) {
        for (number, branch) in self.list.iter_mut().enumerate() {
            if branch.stage == BranchStage::Starting {
                branch.give_up();
                processes.kill(Child::Daemon(number));
            }
        }
    }

    /// Reports the loss of a child when both its agent and its output have ended.
    fn check_end(&mut self, number: usize, processes: &Processes) -> Option<Up> {
        let branch = &self.list[number];
        if branch.closed && branch.exit.is_some() {
            return self.lose(number, None, processes);
        }
        branch.start_end_timer(number, &self.arrivals);
        None
    }

    /// Marks a child as lost, unless it has sent its last message.
    fn lose(&mut self, number: usize, reason: Option<String>, processes: &Processes) -> Option<Up> {
        let branch = &mut self.list[number];
        if matches!(branch.stage, BranchStage::Done | BranchStage::Lost) {
            return None;
        }
        let had_started = branch.stage != BranchStage::Starting;
        branch.give_up();
        processes.kill(Child::Daemon(number));
        let branch = &self.list[number];
        let tree = self.tree.as_ref()?;
        let host = &branch.host;
        let behind = match branch.n_behind {
            0 => String::new(),
            1 => " (and 1 host behind it)".to_string(),
            n => format!(" (and {n} hosts behind it)"),
        };
        let agent = if branch.is_remote { tree.agent.name() } else { "the process".to_string() };
        let how = reason.unwrap_or_else(|| how(&agent, branch, had_started));
        let sentence = match had_started {
            // Cause: the host, its network or oshrun's daemon there has failed. Remedy: look at the
            // host, or leave it out.
            true => format!("host {host}{behind} was lost: {how}"),
            // Cause: the agent, such as ssh, cannot start oshrun on the host. Remedy: the message
            // ends with it; `oshrun --doctor` examines all hosts.
            false => format!(
                "cannot start the PEs of host {host}{behind}: {how}{}",
                remedy(branch, tree)
            ),
        };
        Some(Up::failed(sentence))
    }
}

/// Describes how a child ended.
fn how(agent: &str, branch: &Branch, had_started: bool) -> String {
    let exit = match branch.exit {
        Some(exit) => format!("{agent} {exit}"),
        None => format!("the connection through {agent} has ended"),
    };
    let start = if had_started { "its daemon has ended; " } else { "" };
    match branch.agent_error() {
        Some(error) => format!("{start}{exit}: {error}"),
        None => format!("{start}{exit}"),
    }
}

/// Suggests a remedy if a daemon has not started.
fn remedy(branch: &Branch, tree: &TreeConfig) -> String {
    let oshrun = tree.oshrun.display();
    match branch.exit {
        Some(Exit::Status(126 | 127)) => {
            format!("; {oshrun} must exist there: install it, or name its folder with --prefix")
        }
        Some(Exit::Status(255)) if tree.agent.name() == "ssh" => {
            format!("; check that ssh {} true works without asking a question", branch.host)
        }
        _ => String::new(),
    }
}
