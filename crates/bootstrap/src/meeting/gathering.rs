//! The thread that serves a meeting: sockets, and the order in which members come. Once all have
//! come, [`Server`] decides, as for `oshrun`.
//!
//! Nothing here blocks but the wait for the next event, so that one member cannot delay the others.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rushmem_explain::ranges;
use rushmem_explain::status::Stage;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::attendance::{JobSecret, LIMIT_VARIABLE, MeetingLimits, Speaker};
use super::handshake::{CLAIM, Handshake, prepare};
use crate::exit::Exit;
use crate::managed::without_signals;
use crate::nodes::NodeMap;
use crate::proto::{self, Decoder, FromLauncher, FromPe};
use crate::server::{Decision, Server};

/// Who speaks in messages of a meeting.
const SPEAKER: &str = "rushmem";

/// The time for which a connection may take to say who it is.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// Most connections that have not said who they are; the oldest is dropped for a new one.
const MAX_STRANGERS: usize = 256;

/// The time for which members may take to read that the job ends.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Longest single wait while a limit runs. A longer one, of a process that was stopped, counts as
/// this.
const SLICE: Duration = Duration::from_millis(250);

/// A meeting that this process serves.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    secret: JobSecret,
    listeners: Arc<Vec<TcpListener>>,
    /// Set when all members but the one in this process have finalized or ended.
    others_are_done: Arc<(Mutex<bool>, Condvar)>,
}

impl Gathering {
    /// Starts the thread.
    pub(super) fn start(
        listeners: Vec<TcpListener>,
        secret: JobSecret,
        limits: MeetingLimits,
        speaker: Speaker,
    ) -> io::Result<Gathering> {
        listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        let gathering = Gathering {
            secret,
            listeners: Arc::new(listeners),
            others_are_done: Arc::new((Mutex::new(false), Condvar::new())),
        };
        let mut serving = Serving {
            gathering: gathering.clone(),
            limits,
            speaker,
            connections: Vec::new(),
            members: BTreeMap::new(),
            n_pes: 0,
            waited: Duration::ZERO,
            job: None,
            over: None,
        };
        let run = move || {
            serving.run();
            serving.gathering.refuse();
        };
        without_signals(|| thread::Builder::new().name("rushmem-meeting".into()).spawn(run))?;
        Ok(gathering)
    }

    pub(super) fn is_of(&self, secret: &JobSecret) -> bool {
        self.secret == *secret
    }

    /// Refuses connections from now on.
    fn refuse(&self) {
        for listener in &*self.listeners {
            // A listener that cannot be closed leaves who comes without an answer.
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
        }
    }

    /// Closes the listeners in a process that was forked from the one that serves.
    pub(super) fn forget(self) {
        for listener in &*self.listeners {
            // SAFETY: the descriptor is open, and nobody closes it again: the thread that has the
            // other reference is not in this process, and the one here is never dropped.
            unsafe { libc::close(listener.as_raw_fd()) };
        }
        std::mem::forget(self);
    }

    /// Waits until the other members need the meeting no longer, for `limit` at most.
    pub(super) fn wait_for_others(&self, limit: Duration) {
        let (done, change) = &*self.others_are_done;
        let done = done.lock().unwrap_or_else(PoisonError::into_inner);
        // The result does not matter: after the limit this process ends as well.
        let _ = change.wait_timeout_while(done, limit, |done| !*done);
    }
}

/// A connection.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    stage: ConnectionStage,
    since: Instant,
    /// What was not sent yet.
    unsent: VecDeque<u8>,
}

#[derive(Debug)]
enum ConnectionStage {
    /// It has to prove that it knows the secret.
    Claims(Handshake, Vec<u8>),
    /// It has to say who it is.
    Proven(Decoder),
    /// It is this PE.
    Member(u32),
    /// It has been refused, and reads why.
    Refused,
    /// It is to be removed.
    Closed,
}

/// A process that has come.
#[derive(Clone, Debug)]
struct Guest {
    pid: u32,
    host: String,
    serves: bool,
}

impl Guest {
    fn name(&self, pe: u32) -> String {
        format!("PE {pe} (pid {}, host {})", self.pid, self.host)
    }
}

/// The state of the thread.
struct Serving {
    gathering: Gathering,
    limits: MeetingLimits,
    speaker: Speaker,
    connections: Vec<Connection>,
    members: BTreeMap<u32, Guest>,
    /// The number of PEs, as the first one that came has said.
    n_pes: u32,
    /// How long the first of them has waited.
    waited: Duration,
    /// The job, once all have come.
    job: Option<Server>,
    /// Why nobody can join any more.
    over: Option<String>,
}

impl Serving {
    fn run(&mut self) {
        while self.is_needed() {
            let timed = self.is_timed();
            let begin = Instant::now();
            let Some((incoming, ready)) = self.wait(timed.then_some(SLICE)) else { return };
            for (index, events) in ready.into_iter().enumerate() {
                if events.intersects(PollFlags::OUT) {
                    self.flush(index);
                }
                if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.read(index);
                }
            }
            for listener in incoming {
                self.accept(listener);
            }
            if timed {
                self.pass(begin.elapsed().min(SLICE));
            }
            self.connections.retain(|one| !matches!(one.stage, ConnectionStage::Closed));
            self.note_progress();
        }
    }

    /// Returns false once all members have ended.
    fn is_needed(&self) -> bool {
        self.job.is_none() || !self.connections.is_empty()
    }

    /// Returns true while a limit of time runs.
    fn is_timed(&self) -> bool {
        let awaits = self.job.is_none() && self.over.is_none() && !self.members.is_empty();
        awaits
            || self.connections.iter().any(|one| !matches!(one.stage, ConnectionStage::Member(_)))
    }

    /// Waits for events; returns the listeners that have connections, and the events of
    /// connections.
    fn wait(&self, slice: Option<Duration>) -> Option<(Vec<usize>, Vec<PollFlags>)> {
        let listeners = &*self.gathering.listeners;
        let mut fds: Vec<PollFd<'_>> =
            listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
        fds.extend(self.connections.iter().map(|one| {
            let out = if one.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&one.stream, PollFlags::IN | out)
        }));
        let slice = slice.map(|slice| Timespec::try_from(slice).expect("a slice is short"));
        match poll(&mut fds, slice.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        let (of_listeners, of_connections) = events.split_at(listeners.len());
        let incoming = (0..listeners.len()).filter(|&at| !of_listeners[at].is_empty()).collect();
        Some((incoming, of_connections.to_vec()))
    }

    fn accept(&mut self, listener: usize) {
        while let Ok((stream, _)) = self.gathering.listeners[listener].accept() {
            let strangers: Vec<usize> = (0..self.connections.len())
                .filter(|&at| matches!(self.connections[at].stage, ConnectionStage::Claims(..)))
                .collect();
            if strangers.len() >= MAX_STRANGERS {
                self.connections.remove(strangers[0]);
            }
            let mut nonce = [0; 32];
            if getrandom::fill(&mut nonce).is_err() || stream.set_nonblocking(true).is_err() {
                continue;
            }
            prepare(&stream, self.limits.silence);
            let handshake = Handshake::new(&self.gathering.secret, nonce);
            let unsent = handshake.greeting().to_vec().into();
            let stage = ConnectionStage::Claims(handshake, Vec::new());
            self.connections.push(Connection { stream, stage, since: Instant::now(), unsent });
            self.flush(self.connections.len() - 1);
        }
    }

    /// Reads what has arrived on a connection.
    fn read(&mut self, index: usize) {
        let mut bytes = [0; 16 * 1024];
        loop {
            let one = &mut self.connections[index];
            match one.stream.read(&mut bytes) {
                Ok(nbytes @ 1..) => self.received(index, &bytes[..nbytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return self.ended(index),
            }
            if matches!(self.connections[index].stage, ConnectionStage::Closed) {
                return;
            }
        }
    }

    fn received(&mut self, index: usize, bytes: &[u8]) {
        let one = &mut self.connections[index];
        match &mut one.stage {
            ConnectionStage::Claims(handshake, claim) => {
                claim.extend_from_slice(bytes);
                let Some((claim, rest)) = claim.split_first_chunk::<CLAIM>() else { return };
                let Some(answer) = handshake.answer(claim) else {
                    rushmem_log::debug!("a connection to the meeting does not know the secret");
                    one.stage = ConnectionStage::Closed;
                    return;
                };
                let rest = rest.to_vec();
                one.unsent.extend(answer);
                one.stage = ConnectionStage::Proven(Decoder::new(proto::MAX_FROM_PE));
                self.flush(index);
                self.received(index, &rest);
            }
            ConnectionStage::Proven(decoder) => {
                decoder.push(bytes);
                match decoder.take() {
                    Ok(None) => {}
                    Ok(Some(FromPe::Join { pe, n_pes, pid, host, serves })) => {
                        self.join(index, pe, n_pes, Guest { pid, host, serves });
                    }
                    Ok(Some(_)) | Err(_) => one.stage = ConnectionStage::Closed,
                }
            }
            ConnectionStage::Member(pe) => {
                let pe = *pe;
                if let Some(job) = &mut self.job {
                    let decisions = job.received(pe, bytes);
                    self.carry_out(decisions);
                }
            }
            ConnectionStage::Refused | ConnectionStage::Closed => {}
        }
    }

    /// A process says which PE it is.
    fn join(&mut self, index: usize, pe: u32, n_pes: u32, guest: Guest) {
        let known = self.members.first_key_value().map(|(pe, guest)| guest.name(*pe));
        let refusal = match (&self.over, self.members.get(&pe), known) {
            (Some(why), ..) => Some(why.clone()),
            (None, Some(other), _) if self.job.is_some() => Some(format!(
                "the job runs already, and {} is one of its processes; make another id for another job",
                other.name(pe)
            )),
            (None, Some(other), _) => Some(format!(
                "two processes are PE {pe}: pid {} on host {} and pid {} on host {}; give each \
                 process a rank of its own",
                other.pid, other.host, guest.pid, guest.host
            )),
            (None, None, Some(known)) if n_pes != self.n_pes => Some(format!(
                "{} expects {n_pes} PEs, but {known} expects {}; give all processes the same number",
                guest.name(pe),
                self.n_pes
            )),
            (None, None, _) if pe >= n_pes => {
                Some(format!("its rank is {pe}, but the {n_pes} PEs are numbered from 0"))
            }
            _ => None,
        };
        if let Some(why) = refusal {
            // The process says why, and those that come later say the same.
            self.send(index, &FromLauncher::Refused { why: why.clone() });
            self.connections[index].stage = ConnectionStage::Refused;
            self.connections[index].since = Instant::now();
            if self.job.is_none() && self.over.is_none() {
                self.end(1, None, why);
            }
            return;
        }
        rushmem_log::debug!(pe, n_pes, pid = guest.pid, host = %guest.host, "a PE has come");
        self.n_pes = n_pes;
        self.members.insert(pe, guest);
        self.connections[index].stage = ConnectionStage::Member(pe);
        if self.members.len() == n_pes as usize {
            self.begin();
        }
    }

    /// All have come.
    fn begin(&mut self) {
        let hosts = || self.members.values().map(|guest| guest.host.clone());
        let nodes = NodeMap::from_marks(hosts()).expect("a job has PEs");
        let mut names: Vec<String> = Vec::new();
        for host in hosts() {
            if !names.contains(&host) {
                names.push(host);
            }
        }
        let mut job = Server::new(nodes, names).speaking_as(SPEAKER);
        let mut decisions = Vec::new();
        for (&pe, guest) in &self.members {
            job.started(pe, guest.pid);
            decisions.extend(job.received(pe, &proto::encode(&FromPe::Hello { pid: guest.pid })));
        }
        self.job = Some(job);
        self.carry_out(decisions);
    }

    fn carry_out(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send { pe, frame } => {
                    if let Some(index) = self.connection(pe) {
                        self.connections[index].unsent.extend(frame.iter());
                        self.flush(index);
                    }
                }
                Decision::SendAll { frame, .. } => {
                    for index in 0..self.connections.len() {
                        if matches!(self.connections[index].stage, ConnectionStage::Member(_)) {
                            self.connections[index].unsent.extend(frame.iter());
                            self.flush(index);
                        }
                    }
                }
                Decision::EndJob { status, message } => {
                    let why = "the job has ended; make another id, or start all processes, for another job";
                    self.end(status, message, why.to_owned());
                }
                Decision::Warn { message } => print(&message),
            }
        }
    }

    /// Returns the connection of a PE.
    fn connection(&self, pe: u32) -> Option<usize> {
        let is_of = |one: &Connection| matches!(one.stage, ConnectionStage::Member(of) if of == pe);
        self.connections.iter().position(is_of)
    }

    /// Ends the processes of all members, the one in this process last, since this thread ends with
    /// it. Those who come later learn why.
    fn end(&mut self, status: i32, message: Option<String>, why: String) {
        self.over = Some(why);
        if let Some(message) = message {
            print(&message);
        }
        let (own, others): (Vec<u32>, Vec<u32>) =
            self.members.keys().copied().partition(|pe| self.members[pe].serves);
        for pes in [others, own] {
            for pe in pes {
                if let Some(index) = self.connection(pe) {
                    self.send(index, &FromLauncher::End { status });
                }
            }
            self.flush_all();
        }
    }

    /// Sends what has not been sent, for [`END_LIMIT`] at most.
    fn flush_all(&mut self) {
        let end = Instant::now() + END_LIMIT;
        while Instant::now() < end {
            let mut fds: Vec<PollFd<'_>> = self
                .connections
                .iter()
                .filter(|one| !one.unsent.is_empty())
                .map(|one| PollFd::new(&one.stream, PollFlags::OUT))
                .collect();
            if fds.is_empty() {
                return;
            }
            let slice = Timespec::try_from(SLICE).expect("a slice is short");
            // An interrupted wait is repeated.
            let _ = poll(&mut fds, Some(&slice));
            (0..self.connections.len()).for_each(|index| self.flush(index));
        }
    }

    fn send(&mut self, index: usize, message: &FromLauncher) {
        self.connections[index].unsent.extend(proto::encode(message));
        self.flush(index);
    }

    /// Sends as much as the connection takes. Its end is found when it is read.
    fn flush(&mut self, index: usize) {
        let one = &mut self.connections[index];
        while !one.unsent.is_empty() {
            match one.stream.write(one.unsent.as_slices().0) {
                Ok(nbytes) => drop(one.unsent.drain(..nbytes)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => one.unsent.clear(),
            }
        }
    }

    /// A connection has ended.
    fn ended(&mut self, index: usize) {
        let stage = std::mem::replace(&mut self.connections[index].stage, ConnectionStage::Closed);
        let ConnectionStage::Member(pe) = stage else { return };
        match &mut self.job {
            Some(job) => {
                let exit = match job.progress(pe).1 {
                    Stage::Finalized => Exit::Status(0),
                    _ => Exit::Unknown,
                };
                let decision = job.exited(pe, exit);
                self.carry_out(decision.into_iter().collect());
            }
            None if self.over.is_none() => {
                let name = self.members[&pe].name(pe);
                let why = format!("{name} ended while the other PEs of its job were awaited");
                self.end(1, Some(format!("{SPEAKER}: {why}")), why);
            }
            None => {}
        }
    }

    /// Time has passed: closes connections that do not say who they are, and ends the meeting if
    /// PEs are missing for too long.
    fn pass(&mut self, time: Duration) {
        for one in &mut self.connections {
            let is_late = one.since.elapsed() > HANDSHAKE_LIMIT;
            if is_late && !matches!(one.stage, ConnectionStage::Member(_)) {
                one.stage = ConnectionStage::Closed;
            }
        }
        if self.job.is_some() || self.over.is_some() || self.members.is_empty() {
            return;
        }
        self.waited += time;
        if self.waited < self.limits.join {
            return;
        }
        let missing: Vec<u32> =
            (0..self.n_pes).filter(|pe| !self.members.contains_key(pe)).collect();
        let (verb, pes) = (if missing.len() == 1 { "has" } else { "have" }, ranges::pes(&missing));
        let how = match self.speaker {
            Speaker::UniqueId => "by its unique id",
            Speaker::Variables => "that SHMEM_JOB names",
        };
        let why = format!(
            "of the {} PEs of the job {how}, {pes} {verb} not come within {} s; start all of them, or raise \
             {LIMIT_VARIABLE}",
            self.n_pes,
            self.limits.join.as_secs_f64()
        );
        self.end(1, Some(format!("{SPEAKER}: {why}")), why);
    }

    /// Tells the member in this process when the others need the meeting no longer.
    fn note_progress(&mut self) {
        let Some(job) = &self.job else { return };
        let is_done = |one: &Connection| match one.stage {
            ConnectionStage::Member(pe) => {
                self.members[&pe].serves || job.progress(pe).1 == Stage::Finalized
            }
            _ => true,
        };
        let are_done = self.connections.iter().all(is_done);
        let (done, change) = &*self.gathering.others_are_done;
        *done.lock().unwrap_or_else(PoisonError::into_inner) = are_done;
        if are_done {
            change.notify_all();
        }
    }
}

fn print(message: &str) {
    // A process may have no standard error.
    let _ = writeln!(io::stderr(), "{message}");
}
