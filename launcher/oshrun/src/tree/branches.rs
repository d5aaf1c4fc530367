//! The child daemons of a process: starting them, telling them what to do, and noticing when one is lost.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::{Exit, proto};
use rustix::fs::MemfdFlags;
use rustix::process::Rlimit;
use tokio::time::{Instant, timeout};

use super::agent;
use super::branch::{Arrival, Arrivals, Branch, Stage, Streams};
use super::heartbeat;
use super::orders::{Growth, Orders, Part, Task, deal};
use super::wire::{Down, Up};
use crate::failure::{Failure, reason};
use crate::output::Output;
use crate::processes::{Member, Processes};
use crate::spawn;

/// How long a message may take to be sent before oshrun stops itself.
const FLUSH: Duration = Duration::from_millis(200);

/// Within this time after the first call every daemon must have started.
const START: Duration = Duration::from_secs(60);

/// The child daemons of a process.
#[derive(Debug)]
pub struct Branches {
    list: Vec<Branch>,
    growth: Option<Growth>,
    arrivals: Arrivals,
    /// When the first of them was called.
    since: Instant,
}

/// The part of the job that a process passes on to its children.
#[derive(Debug)]
pub struct Below<'a> {
    /// PEs of this host that other processes start.
    pub pieces: Vec<Part>,
    /// The memory of this host's PEs.
    pub memory: Option<&'a OwnedFd>,
    /// Other hosts.
    pub others: Vec<Part>,
    /// The original descriptor limit, if oshrun raised its own.
    pub limit: Option<Rlimit>,
}

/// The part for which a daemon is started, and how.
struct Call<'a> {
    orders: Orders,
    memory: Option<&'a OwnedFd>,
    limit: Option<Rlimit>,
}

impl Branches {
    /// Without children; their events go to `arrivals`.
    pub fn new(arrivals: Arrivals) -> Branches {
        Branches { list: Vec::new(), growth: None, arrivals, since: Instant::now() }
    }

    /// Starts daemons.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(
        &mut self,
        task: &Task,
        growth: &Growth,
        Below { pieces, memory, others, limit }: Below<'_>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> Result<(), Failure> {
        self.growth = Some(growth.clone());
        self.since = Instant::now();
        let orders = |own, others, memory| Orders {
            task: task.clone(),
            growth: growth.clone(),
            own,
            others,
            memory,
        };
        for piece in pieces {
            let orders = orders(piece, Vec::new(), memory.map(OwnedFd::as_raw_fd));
            self.call(Call { orders, memory, limit }, processes, output)?;
        }
        for (own, others) in deal(others, growth.fan_out) {
            let orders = orders(own, others, None);
            self.call(Call { orders, memory: None, limit }, processes, output)?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        Call { orders, memory, limit }: Call<'_>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let (growth, host) = (&orders.growth, orders.own.host.clone());
        let is_remote = memory.is_none();
        let (command, name) = if is_remote {
            (growth.agent.command(&host, &growth.oshrun), growth.agent.name())
        } else {
            (agent::local(), "a daemon".to_string())
        };
        let number = self.list.len();
        let cannot = |error: &io::Error| {
            let reason = reason(error);
            let cure = match error.kind() {
                io::ErrorKind::NotFound => "; name another command with --launch-agent",
                _ => "",
            };
            let sentence = format!("cannot start {name} for host {host}: {reason}{cure}");
            Failure::general(sentence)
        };
        let started = (|| {
            let (theirs, stdin) = io::pipe()?;
            let (stdout, out) = io::pipe()?;
            let stderr = rustix::fs::memfd_create("oshrun-agent", MemfdFlags::CLOEXEC)?;
            let err = rustix::io::fcntl_dupfd_cloexec(&stderr, 0)?;
            let streams = Streams { stdin, stdout, stderr: stderr.into() };
            let theirs = (theirs.into(), out.into(), err);
            let pid = spawn::daemon(command, theirs, memory, limit, processes.guard())?;
            processes.add(Member::Daemon(number), pid);
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

    /// Tells the child that `pe` is below.
    pub fn tell_of(&self, pe: u32, message: &Down) {
        // The range of another child may enclose PEs of this host; the children of this host come first in the list.
        if let Some(branch) = self.list.iter().find(|branch| branch.pes.contains(&pe)) {
            branch.down.send(message);
        }
    }

    /// Tells all children.
    pub fn tell_all(&self, message: &Down) {
        if !self.list.is_empty() {
            let frame: Arc<[u8]> = proto::encode(message).into();
            self.list.iter().for_each(|branch| branch.down.send_frame(frame.clone()));
        }
    }

    /// Waits until all messages have been sent, for a limited time.
    pub async fn flush(&self) {
        for branch in &self.list {
            let _ = timeout(FLUSH, branch.down.flush()).await;
        }
    }

    /// An event of a child. Returns news for the job.
    pub fn arrived(
        &mut self,
        number: usize,
        arrival: Arrival,
        processes: &Processes,
    ) -> Option<Up> {
        let branch = &mut self.list[number];
        branch.heartbeat.heard();
        match arrival {
            Arrival::Greeted if branch.stage == Stage::Called => branch.stage = Stage::Running,
            Arrival::Message(Up::Idle) if branch.stage == Stage::Running => {
                branch.stage = Stage::Idle;
            }
            Arrival::Message(Up::Done) if branch.stage != Stage::Lost => branch.stage = Stage::Done,
            Arrival::Message(Up::Pong | Up::Idle | Up::Done) | Arrival::Greeted => {}
            Arrival::Message(_) if branch.stage == Stage::Lost => {}
            Arrival::Message(news) => return Some(news),
            Arrival::Broken(words) => return self.lose(number, Some(words), processes),
            Arrival::Closed => {
                branch.closed = true;
                return self.decide(number, processes);
            }
            Arrival::Overdue => return self.lose(number, None, processes),
        }
        None
    }

    /// The agent of a child has ended.
    pub fn exited(&mut self, number: usize, exit: Exit, processes: &Processes) -> Option<Up> {
        self.list[number].exit = Some(exit);
        self.decide(number, processes)
    }

    /// A tick has passed: checks whether all children are alive.
    pub fn tick(&mut self, processes: &Processes) -> Vec<Up> {
        let mut news = Vec::new();
        for number in 0..self.list.len() {
            let branch = &mut self.list[number];
            match branch.stage {
                Stage::Called if self.since.elapsed() > START => {
                    let words = format!("it has not answered for {} s", START.as_secs());
                    news.extend(self.lose(number, Some(words), processes));
                }
                Stage::Running | Stage::Idle if branch.is_remote => {
                    branch.down.send(&Down::Ping);
                    if branch.heartbeat.tick() {
                        let silence =
                            self.growth.as_ref().map(|growth| heartbeat::silence(growth.limit));
                        let seconds = silence.unwrap_or_default().as_secs_f64();
                        let words = format!("it has been silent for {seconds} s");
                        news.extend(self.lose(number, Some(words), processes));
                    }
                }
                _ => {}
            }
        }
        news
    }

    /// Gives up children whose daemon has not started yet.
    pub fn abandon(&mut self, processes: &Processes) {
        for (number, branch) in self.list.iter_mut().enumerate() {
            if branch.stage == Stage::Called {
                branch.give_up();
                processes.kill(Member::Daemon(number));
            }
        }
    }

    /// Agent and output of a child end together.
    fn decide(&mut self, number: usize, processes: &Processes) -> Option<Up> {
        let branch = &self.list[number];
        if branch.closed && branch.exit.is_some() {
            return self.lose(number, None, processes);
        }
        branch.expect_the_end(number, &self.arrivals);
        None
    }

    /// A child is lost, unless it has sent its last message.
    fn lose(&mut self, number: usize, words: Option<String>, processes: &Processes) -> Option<Up> {
        let branch = &mut self.list[number];
        if matches!(branch.stage, Stage::Done | Stage::Lost) {
            return None;
        }
        let was_there = branch.stage != Stage::Called;
        branch.give_up();
        processes.kill(Member::Daemon(number));
        let branch = &self.list[number];
        let growth = self.growth.as_ref()?;
        let host = &branch.host;
        let behind = match branch.n_behind {
            0 => String::new(),
            1 => " (and 1 host behind it)".to_string(),
            n => format!(" (and {n} hosts behind it)"),
        };
        let agent = if branch.is_remote { growth.agent.name() } else { "the process".to_string() };
        let how = words.unwrap_or_else(|| how(&agent, branch, was_there));
        let sentence = match was_there {
            true => format!("host {host}{behind} was lost: {how}"),
            false => format!(
                "cannot start the PEs of host {host}{behind}: {how}{}",
                cure(branch, growth)
            ),
        };
        Some(Up::Failed { status: 1, sentence })
    }
}

/// How a child has ended, as its agent shows.
fn how(agent: &str, branch: &Branch, was_there: bool) -> String {
    let exit = match branch.exit {
        Some(exit) => format!("{agent} {exit}"),
        None => format!("the connection through {agent} has ended"),
    };
    let start = if was_there { "its daemon has ended; " } else { "" };
    match branch.complaint() {
        Some(complaint) => format!("{start}{exit}: {complaint}"),
        None => format!("{start}{exit}"),
    }
}

/// The cure if a daemon has not started.
fn cure(branch: &Branch, growth: &Growth) -> String {
    let oshrun = growth.oshrun.display();
    match branch.exit {
        Some(Exit::Status(126 | 127)) => {
            format!("; {oshrun} must exist there: install it, or name its folder with --prefix")
        }
        Some(Exit::Status(255)) if growth.agent.name() == "ssh" => {
            format!("; check that ssh {} true works without asking a question", branch.host)
        }
        _ => String::new(),
    }
}
