//! The thread that serves a meeting. Once all PEs have joined, [`Server`] decides what is sent and
//! when the job ends, as for `oshrun`. Processes that connect later are refused.
//!
//! The thread blocks only to wait for the next event, so that one member cannot delay the others;
//! at the end of the job, also until the bytes of the end are sent to the members, for twice
//! [`END_LIMIT`] at most.
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

use super::attendance::{JobSecret, LIMIT_VARIABLE, MeetingLimits, MeetingSource};
use super::handshake::{CLAIM, Handshake, prepare};
use crate::exit::Exit;
use crate::managed::without_signals;
use crate::nodes::NodeMap;
use crate::proto::{self, Decoder, FromLauncher, FromPe};
use crate::server::{Decision, Server};
use crate::time_limit::SLICE;

/// The name at the start of messages of a meeting.
const SPEAKER: &str = "rushmem";

/// Time within which a connection must have joined.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// Maximum number of connections that have not proved to know the secret; the oldest one is closed
/// for a new one.
const MAX_STRANGERS: usize = 256;

/// Maximum time for sending the end of the job to the members in other processes, and again to the
/// one in this process.
const END_LIMIT: Duration = Duration::from_secs(1);

/// A meeting that this process serves.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    secret: JobSecret,
    listeners: Arc<Vec<TcpListener>>,
    /// True when all members except the one in this process have finalized or ended.
    others_are_done: Arc<(Mutex<bool>, Condvar)>,
}

impl Gathering {
    /// Starts the thread that serves a meeting at these sockets.
    pub(super) fn start(
        listeners: Vec<TcpListener>,
        secret: JobSecret,
        limits: MeetingLimits,
        source: MeetingSource,
    ) -> io::Result<Gathering> {
        listeners
            .iter()
            .try_for_each(|listener| listener.set_nonblocking(true))?;
        let gathering = Gathering {
            secret,
            listeners: Arc::new(listeners),
            others_are_done: Arc::new((Mutex::new(false), Condvar::new())),
        };
        let mut server = MeetingServer {
            gathering: gathering.clone(),
            limits,
            source,
            connections: Vec::new(),
            members: BTreeMap::new(),
            n_pes: 0,
            waited: Duration::ZERO,
            job: None,
            over: None,
        };
        let run = move || {
            server.run();
            server.gathering.refuse();
        };
        without_signals(|| {
            thread::Builder::new()
                .name("rushmem-meeting".into())
                .spawn(run)
        })?;
        Ok(gathering)
    }

    pub(super) fn is_of(&self, secret: &JobSecret) -> bool {
        self.secret == *secret
    }

    /// Refuses connections from now on.
    fn refuse(&self) {
        for listener in &*self.listeners {
            // If this fails, a process that connects gets no answer.
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
        }
    }

    /// Closes the listeners in a child of the process that serves the meeting.
    pub(super) fn forget(self) {
        for listener in &*self.listeners {
            // SAFETY: the descriptor is open and is closed only here: the thread with the other
            // reference does not exist in this process, and this reference is never dropped.
            unsafe { libc::close(listener.as_raw_fd()) };
        }
        std::mem::forget(self);
    }

    /// Waits until the other members have finalized or ended, at most for `limit`.
    pub(super) fn wait_for_others(&self, limit: Duration) {
        let (done, change) = &*self.others_are_done;
        let done = done.lock().unwrap_or_else(PoisonError::into_inner);
        // The result does not matter: after the limit this process ends as well.
        let _ = change.wait_timeout_while(done, limit, |done| !*done);
    }
}

/// A connection of a process to the meeting.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    stage: ConnectionStage,
    /// When it was accepted or refused.
    since: Instant,
    /// Bytes for the process that the socket has not accepted yet, the oldest first.
    unsent: VecDeque<u8>,
}

#[derive(Debug)]
enum ConnectionStage {
    /// The claim, which proves that the process knows the secret, is being received.
    Claims(Handshake, Vec<u8>),
    /// The claim was right; the message with the number of the PE is being received.
    Proven(Decoder),
    /// The process is this PE.
    Member(u32),
    /// The process has been refused, and reads the reason.
    Refused,
    /// The connection will be removed.
    Closed,
}

/// A process that has joined.
#[derive(Clone, Debug)]
struct Attendee {
    pid: u32,
    host: String,
    /// True if it is this process.
    serves: bool,
}

impl Attendee {
    fn name(&self, pe: u32) -> String {
        format!("PE {pe} (pid {}, host {})", self.pid, self.host)
    }
}

/// The state of the thread.
struct MeetingServer {
    gathering: Gathering,
    limits: MeetingLimits,
    source: MeetingSource,
    connections: Vec<Connection>,
    members: BTreeMap<u32, Attendee>,
    /// The number of PEs, which the first one has reported.
    n_pes: u32,
    /// The time for which the first PE has waited.
    waited: Duration,
    /// The job, once all PEs have joined.
    job: Option<Server>,
    /// The reason for which no process can join any more, once that is so.
    over: Option<String>,
}

impl MeetingServer {
    fn run(&mut self) {
        while self.is_needed() {
            let timed = self.is_timed();
            let begin = Instant::now();
            let Some((incoming, ready)) = self.wait(timed.then_some(SLICE)) else {
                return;
            };
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
                self.check_limits(begin.elapsed().min(SLICE));
            }
            self.connections
                .retain(|one| !matches!(one.stage, ConnectionStage::Closed));
            self.report_progress();
        }
    }

    /// Returns false once the job has begun and no connection is left.
    fn is_needed(&self) -> bool {
        self.job.is_none() || !self.connections.is_empty()
    }

    /// Returns true while a time limit runs: that of all PEs, or that of a connection.
    fn is_timed(&self) -> bool {
        let awaits_pes = self.job.is_none() && self.over.is_none() && !self.members.is_empty();
        awaits_pes
            || self
                .connections
                .iter()
                .any(|one| !matches!(one.stage, ConnectionStage::Member(_)))
    }

    /// Waits for events. Returns the indices of listeners with new connections, and the events of
    /// each connection; `None` if poll fails.
    fn wait(&self, slice: Option<Duration>) -> Option<(Vec<usize>, Vec<PollFlags>)> {
        let listeners = &*self.gathering.listeners;
        let mut fds: Vec<PollFd<'_>> = listeners
            .iter()
            .map(|listener| PollFd::new(listener, PollFlags::IN))
            .collect();
        fds.extend(self.connections.iter().map(|one| {
            let out = if one.unsent.is_empty() {
                PollFlags::empty()
            } else {
                PollFlags::OUT
            };
            PollFd::new(&one.stream, PollFlags::IN | out)
        }));
        let slice = slice.map(|slice| Timespec::try_from(slice).expect("a slice is short"));
        match poll(&mut fds, slice.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        let (of_listeners, of_connections) = events.split_at(listeners.len());
        let incoming = (0..listeners.len())
            .filter(|&at| !of_listeners[at].is_empty())
            .collect();
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
            self.connections.push(Connection {
                stream,
                stage,
                since: Instant::now(),
                unsent,
            });
            self.flush(self.connections.len() - 1);
        }
    }

    /// Reads and handles the bytes that have arrived on a connection.
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
                let Some((claim, rest)) = claim.split_first_chunk::<CLAIM>() else {
                    return;
                };
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
                    Ok(Some(FromPe::Join {
                        pe,
                        n_pes,
                        pid,
                        host,
                        serves,
                    })) => {
                        self.join(index, pe, n_pes, Attendee { pid, host, serves });
                    }
                    Ok(Some(_)) | Err(_) => one.stage = ConnectionStage::Closed,
                }
            }
            ConnectionStage::Member(pe) => {
                let pe = *pe;
                if let Some(job) = &mut self.job {
                    let decisions = job.received(pe, bytes);
                    self.execute(decisions);
                }
            }
            ConnectionStage::Refused | ConnectionStage::Closed => {}
        }
    }

    /// Handles the request of a process to join as PE `pe`.
    fn join(&mut self, index: usize, pe: u32, n_pes: u32, attendee: Attendee) {
        let known = self
            .members
            .first_key_value()
            .map(|(pe, attendee)| attendee.name(*pe));
        let refusal = match (&self.over, self.members.get(&pe), known) {
            (Some(why), ..) => Some(why.clone()),
            (None, Some(other), _) if self.job.is_some() => Some(format!(
                "the job runs already, and {} is one of its processes; make another id for another job",
                other.name(pe)
            )),
            (None, Some(other), _) => Some(format!(
                "two processes are PE {pe}: pid {} on host {} and pid {} on host {}; give each \
                 process a rank of its own",
                other.pid, other.host, attendee.pid, attendee.host
            )),
            (None, None, Some(known)) if n_pes != self.n_pes => Some(format!(
                "{} expects {n_pes} PEs, but {known} expects {}; give all processes the same number",
                attendee.name(pe),
                self.n_pes
            )),
            (None, None, _) if pe >= n_pes => Some(format!(
                "its rank is {pe}, but the {n_pes} PEs are numbered from 0"
            )),
            _ => None,
        };
        if let Some(why) = refusal {
            // The process prints the reason, as do those that connect later.
            self.send(index, &FromLauncher::Refused { why: why.clone() });
            self.connections[index].stage = ConnectionStage::Refused;
            self.connections[index].since = Instant::now();
            if self.job.is_none() && self.over.is_none() {
                self.end(1, None, why);
            }
            return;
        }
        rushmem_log::debug!(pe, n_pes, pid = attendee.pid, host = %attendee.host, "a PE has joined");
        self.n_pes = n_pes;
        self.members.insert(pe, attendee);
        self.connections[index].stage = ConnectionStage::Member(pe);
        if self.members.len() == n_pes as usize {
            self.begin();
        }
    }

    /// Begins the job, since all PEs have joined.
    fn begin(&mut self) {
        let hosts = || self.members.values().map(|attendee| attendee.host.clone());
        let nodes = NodeMap::from_marks(hosts()).expect("a job has PEs");
        let mut names: Vec<String> = Vec::new();
        for host in hosts() {
            if !names.contains(&host) {
                names.push(host);
            }
        }
        let mut job = Server::new(nodes, names).with_speaker(SPEAKER);
        let mut decisions = Vec::new();
        for (&pe, attendee) in &self.members {
            job.started(pe, attendee.pid);
            decisions
                .extend(job.received(pe, &proto::encode(&FromPe::Hello { pid: attendee.pid })));
        }
        self.job = Some(job);
        self.execute(decisions);
    }

    fn execute(&mut self, decisions: Vec<Decision>) {
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
                Decision::Warn { message } => print_to_stderr(&message),
            }
        }
    }

    /// Returns the index of the connection of a PE.
    fn connection(&self, pe: u32) -> Option<usize> {
        let is_of =
            |one: &Connection| matches!(one.stage, ConnectionStage::Member(member) if member == pe);
        self.connections.iter().position(is_of)
    }

    /// Ends the processes of all members: this process last, since this thread ends with it.
    /// Processes that connect later are refused with the reason `why`.
    fn end(&mut self, status: i32, message: Option<String>, why: String) {
        self.over = Some(why);
        if let Some(message) = message {
            print_to_stderr(&message);
        }
        let (own, others): (Vec<u32>, Vec<u32>) = self
            .members
            .keys()
            .copied()
            .partition(|pe| self.members[pe].serves);
        for pes in [others, own] {
            for pe in pes {
                if let Some(index) = self.connection(pe) {
                    self.send(index, &FromLauncher::End { status });
                }
            }
            self.flush_all();
        }
    }

    /// Sends all pending bytes, at most for [`END_LIMIT`].
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
        self.connections[index]
            .unsent
            .extend(proto::encode(message));
        self.flush(index);
    }

    /// Sends as many pending bytes as the connection accepts. The next read detects a failed
    /// connection.
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

    /// Handles the end of a connection.
    fn ended(&mut self, index: usize) {
        let stage = std::mem::replace(&mut self.connections[index].stage, ConnectionStage::Closed);
        let ConnectionStage::Member(pe) = stage else {
            return;
        };
        match &mut self.job {
            Some(job) => {
                let exit = match job.progress(pe).1 {
                    Stage::Finalized => Exit::Status(0),
                    _ => Exit::Unknown,
                };
                let decision = job.exited(pe, exit);
                self.execute(decision.into_iter().collect());
            }
            None if self.over.is_none() => {
                let name = self.members[&pe].name(pe);
                let why = format!("{name} ended while the other PEs of its job were awaited");
                self.end(1, Some(format!("{SPEAKER}: {why}")), why);
            }
            None => {}
        }
    }

    /// Closes connections that have not joined within [`HANDSHAKE_LIMIT`], and ends the meeting if
    /// PEs are missing for longer than the limit. `time` is the duration of the last wait, at most
    /// [`SLICE`].
    fn check_limits(&mut self, time: Duration) {
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
        let missing: Vec<u32> = (0..self.n_pes)
            .filter(|pe| !self.members.contains_key(pe))
            .collect();
        let (verb, pes) = (
            if missing.len() == 1 { "has" } else { "have" },
            ranges::pes(&missing),
        );
        let how = match self.source {
            MeetingSource::UniqueId => "by its unique id",
            MeetingSource::Variables => "that SHMEM_JOB names",
        };
        let why = format!(
            "of the {} PEs of the job {how}, {pes} {verb} not joined within {} s; start all of them, or raise \
             {LIMIT_VARIABLE}",
            self.n_pes,
            self.limits.join.as_secs_f64()
        );
        self.end(1, Some(format!("{SPEAKER}: {why}")), why);
    }

    /// Reports to the member in this process whether all other members have finalized or ended.
    fn report_progress(&mut self) {
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

fn print_to_stderr(message: &str) {
    // A process may have no standard error.
    let _ = writeln!(io::stderr(), "{message}");
}
