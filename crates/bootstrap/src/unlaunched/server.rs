//! The thread that serves a meeting. Once all PEs have joined, [`Server`] decides what is sent and
//! when the job ends, as for `oshrun`. Processes that connect later are refused.
//!
//! The thread blocks only to wait for the next event, so that one member cannot delay the others;
//! at the end of a failed job, also until the bytes of the end are sent to the members, for twice
//! [`END_LIMIT`] at most.
//!
//! The last finalize ends with the meeting: each member reports it, and returns from it when the
//! meeting answers, which it does once all have reported. A member that has reported needs the
//! meeting no longer, and takes the end of the connection for the answer. So whichever process
//! returns first, that of the meeting too, may end at once and in any way: all others have closed
//! their networks, and none needs an answer to end well. Without the answer, the report of a
//! process could still be on its way when its host is lost, and the others could still be in an
//! exchange when the process that serves it ends.
//!
//! A meeting that is over stops listening: its address may be that of the next job.

mod connections;
mod join;
mod limits;
mod listeners;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rushmem_connect::handshake::Acceptor;
use rushmem_connect::sealed::Forged;
use rushmem_connect::strangers::{Claim, Shortage, StrangerLimits, Strangers};
use rushmem_connect::{Secret, nonce};
use rushmem_explain::status::Stage;
use rustix::event::epoll::EventFlags;

use super::route::{MeetingLimits, MeetingSource};
use super::{HANDSHAKE, MEETING, prepare};
use crate::error::IN_BETWEEN;
use crate::launcher::exit::Exit;
use crate::launcher::{Decision, Server};
use crate::proto::{self, Decoder, FromLauncher};
use crate::time_limit::SLICE;
use connections::{Arrived, Connections, Ending, Source, Watch};
use listeners::Listeners;
use rushmem_system::host::host_name;
use rushmem_system::signals::without_signals;
use rushmem_system::stderr::print_line;

/// The name at the start of messages of a meeting.
const SPEAKER: &str = "rushmem";

/// Maximum time for the handshake of a connection, and again for the first message after it. A PE
/// answers at once, so only a stranger, or a lost host, takes longer.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// Maximum number of connections that have not proved that they know the secret; one of them is
/// closed for a new one. So strangers take a bounded number of descriptors, and cannot keep members
/// away for long.
const MAX_STRANGERS: usize = 256;

/// Maximum time for sending the end of the job to the members in other processes, and again to the
/// one in this process.
const END_LIMIT: Duration = Duration::from_secs(1);

/// A meeting that this process serves.
#[derive(Clone, Debug)]
pub(crate) struct ServedMeeting {
    secret: Secret,
    listeners: Listeners,
}

impl ServedMeeting {
    /// Starts the thread that serves a meeting at these sockets.
    pub(super) fn start(
        sockets: Vec<TcpListener>,
        secret: Secret,
        limits: MeetingLimits,
        source: MeetingSource,
    ) -> io::Result<ServedMeeting> {
        let meeting = ServedMeeting {
            secret,
            listeners: Listeners::new(sockets)?,
        };

        // The server is made here and not in its thread, so that the caller learns of an error.
        let server = MeetingServer::new(meeting.clone(), limits, source)?;
        without_signals(|| {
            thread::Builder::new()
                .name("rushmem-meeting".into())
                .spawn(move || server.serve())
        })?;
        Ok(meeting)
    }

    pub(super) fn is_of(&self, secret: &Secret) -> bool {
        self.secret == *secret
    }

    /// Returns true once processes can no longer join.
    pub(super) fn is_closed(&self) -> bool {
        self.listeners.locked().is_empty()
    }

    /// Closes the listeners in a child of the process that serves the meeting.
    pub(super) fn forget(&self) {
        self.listeners.forget();
    }
}

/// How far a process that knows the secret has come.
#[derive(Debug)]
enum JoinState {
    /// The process has proved to be PE `from`, and its first message is being received.
    Proven { from: u32, decoder: Decoder },
    /// The process is this PE.
    Member(u32),
    /// The process has been refused, and reads the reason.
    Refused,
}

/// A process that has joined.
#[derive(Clone, Debug)]
struct Member {
    /// The number of its connection; `None` once that has ended.
    connection: Option<u32>,
    pid: u32,
    host: String,
    /// True if it is this process.
    serves: bool,
    /// Number of signs of life that were requested since the process last sent something.
    unanswered: u32,
}

impl Member {
    fn name(&self, pe: u32) -> String {
        format!("PE {pe} (pid {}, host {})", self.pid, self.host)
    }
}

/// Why no process can join any more, and since when.
struct Over {
    why: String,
    since: Instant,
}

/// The state of the thread.
struct MeetingServer {
    meeting: ServedMeeting,
    limits: MeetingLimits,
    source: MeetingSource,
    watch: Watch,
    /// Since when the listeners are not watched, because no descriptor is left; `None` while they
    /// are watched.
    muted: Option<Instant>,
    strangers: Strangers,
    connections: Connections,
    /// How far the process of each connection has come.
    join_states: BTreeMap<u32, JoinState>,
    members: BTreeMap<u32, Member>,
    /// The number of PEs, which the first one has reported.
    n_pes: u32,
    /// The time for which the first PE has waited.
    waited: Duration,
    /// The job, once all PEs have joined.
    job: Option<Server>,
    /// The time since the members were asked for a sign of life.
    since_ping: Duration,
    over: Option<Over>,
}

impl MeetingServer {
    fn new(
        meeting: ServedMeeting,
        limits: MeetingLimits,
        source: MeetingSource,
    ) -> io::Result<MeetingServer> {
        let strangers = StrangerLimits {
            time: HANDSHAKE_LIMIT,
            n: MAX_STRANGERS,
        };

        let mut server = MeetingServer {
            meeting,
            limits,
            source,
            watch: Watch::new()?,
            muted: None,
            strangers: Strangers::new(strangers),
            connections: Connections::default(),
            join_states: BTreeMap::new(),
            members: BTreeMap::new(),
            n_pes: 0,
            waited: Duration::ZERO,
            job: None,
            since_ping: Duration::ZERO,
            over: None,
        };

        server.listen()?;
        Ok(server)
    }

    /// Serves the meeting until it is over, or cannot be served any longer.
    fn serve(mut self) {
        // After an error, the connections end with this value, and the members with them.
        if let Err(error) = self.run() {
            rushmem_system::log::debug!(%error, "the meeting cannot be served");
        }
        self.meeting.listeners.close();
    }

    /// Serves the meeting until it is over and its members have ended.
    fn run(&mut self) -> io::Result<()> {
        loop {
            if !self.is_open() {
                self.stop_listening();
                if self.connections.is_empty() {
                    return Ok(());
                }
            }
            if self.muted.is_some_and(|since| since.elapsed() >= SLICE) {
                self.listen()?;
            }

            // While no limit runs, the thread uses no CPU until a process sends something.
            let is_timed = self.is_timed();
            let limit = if is_timed { Some(SLICE) } else { None };

            let begin = Instant::now();
            for (source, events) in self.watch.wait(limit)? {
                self.handle(source, events);
            }
            if is_timed {
                // The wait counts as no longer than its slice, also if this process was stopped
                // meanwhile: the other processes may have answered.
                self.check_limits(begin.elapsed().min(SLICE));
            }
        }
    }

    /// Returns true while processes that connect get an answer: until all PEs have finalized. If
    /// the job has failed, they get one for as long as its PEs may still come.
    fn is_open(&self) -> bool {
        match (&self.over, &self.job) {
            (Some(over), _) => over.since.elapsed() < self.limits.join,
            (None, Some(_)) => !self.members.keys().all(|&pe| self.has_finalized(pe)),
            (None, None) => true,
        }
    }

    fn has_finalized(&self, pe: u32) -> bool {
        let job = self.job.as_ref();
        job.is_some_and(|job| job.stage(pe) == Stage::Finalized)
    }

    /// Returns true while some members wait for the records of others, or for their last finalize.
    fn awaits_members(&self) -> bool {
        let job = self.job.as_ref();
        job.is_some_and(|job| job.is_exchanging() || job.is_finalizing())
    }

    /// Watches the listeners.
    fn listen(&mut self) -> io::Result<()> {
        self.muted = None;
        for (number, listener) in self.meeting.listeners.locked().iter().enumerate() {
            self.watch.listen(number, listener)?;
        }
        Ok(())
    }

    fn ignore_listeners(&self) {
        for listener in self.meeting.listeners.locked().iter() {
            self.watch.ignore(listener);
        }
    }

    /// Refuses connections from now on.
    fn stop_listening(&self) {
        // If a forked child of this process has a copy of a listener, epoll would report it all the
        // time although it is closed, and the thread would run without a pause.
        self.ignore_listeners();
        self.meeting.listeners.close();
    }

    fn handle(&mut self, source: Source, events: EventFlags) {
        match source {
            Source::Listener(number) => self.accept(number as usize),
            Source::Stranger(number) => {
                if let Claim::Right(proven) = self.strangers.read_claim(number) {
                    self.answer(proven);
                }
            }
            Source::Connection(number) => {
                if events.contains(EventFlags::OUT) {
                    self.connections.flush(&self.watch, number);
                }
                if events.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.read(number);
                }
            }
        }
    }

    /// Accepts the connections that wait at listener `number`.
    fn accept(&mut self, number: usize) {
        let acceptor = |socket: &TcpStream| {
            prepare(socket, self.limits.silence);
            let secret = &self.meeting.secret;
            Ok(Acceptor::new(HANDSHAKE, secret, MEETING, nonce()?))
        };
        let greet = |socket: &TcpStream| self.watch.greet(socket);

        let listeners = self.meeting.listeners.locked();
        let Some(listener) = listeners.get(number) else {
            // Another event has closed the listeners since this one was reported.
            return;
        };
        let accepted = self
            .strangers
            .accept(listener, listeners::accept, acceptor, greet);
        // `ignore_listeners` locks them again.
        drop(listeners);

        let Err(Shortage { error, lasts }) = accepted else {
            return;
        };

        // The listener would be ready all the time, and the thread would run without a pause.
        self.muted = Some(Instant::now());
        self.ignore_listeners();

        // After that time no stranger has a descriptor any more that could be freed.
        if lasts > HANDSHAKE_LIMIT && self.job.is_none() {
            self.fail(listeners::shortage(&error, self.n_pes));
        }
    }

    /// Reads and handles the bytes that have arrived on a connection.
    fn read(&mut self, number: u32) {
        let Arrived { bytes, ending } = self.connections.read(number);
        if !bytes.is_empty() {
            self.handle_bytes(number, &bytes);
        }
        match ending {
            None => {}
            Some(Ending::Closed) => self.handle_closing(number),
            Some(Ending::Forged(how)) => self.handle_forgery(number, how),
        }
    }

    fn handle_bytes(&mut self, number: u32, bytes: &[u8]) {
        match self.join_states.get_mut(&number) {
            Some(JoinState::Proven { from, decoder }) => {
                let from = *from;
                decoder.push(bytes);
                let message = decoder.take();
                self.handle_first_message(number, from, message);
            }
            Some(&mut JoinState::Member(pe)) => {
                if let Some(member) = self.members.get_mut(&pe) {
                    member.unanswered = 0;
                }
                if let Some(job) = &mut self.job {
                    let decisions = job.received(pe, bytes);
                    self.execute(decisions);
                }
            }
            Some(JoinState::Refused) | None => {}
        }
    }

    fn execute(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send { pe, frame } => self.send_frame(pe, &frame),
                // Members always ask for the records of all PEs: see `MeetingClient::exchange_all`.
                Decision::SendAll { frame, .. } => self.send_frame_to_all(&frame),
                Decision::AllFinalized => {
                    self.send_frame_to_all(&proto::encode(&FromLauncher::AllFinalized));
                }
                Decision::EndJob { status, message } => {
                    let why = "the job has ended; make another id, or start all processes, for another job";
                    self.end(status, message, why.to_owned(), None);
                }
                Decision::Warn { message } => print_line(&message),
            }
        }
    }

    /// Ends the job for a reason that the meeting has found, unless it has ended already.
    fn fail(&mut self, why: String) {
        let message = Some(format!("{SPEAKER}: {why}"));
        match &mut self.job {
            Some(job) => {
                let decision = job.end(1, message);
                self.execute(decision.into_iter().collect());
            }
            None if self.over.is_none() => self.end(1, message, why, None),
            None => {}
        }
    }

    /// Ends the processes of all members: this process last, since this thread ends with it.
    /// Processes that connect later are refused with the reason `why`.
    ///
    /// One process on each host prints the message, since hosts such as the pods of Kubernetes may
    /// have outputs of their own. `printed` is a host on which a process prints it anyway.
    fn end(&mut self, status: i32, message: Option<String>, why: String, printed: Option<String>) {
        self.refuse_all_proven(&why);
        self.over = Some(Over {
            why,
            since: Instant::now(),
        });

        // The hosts on which a process has printed the message, or will.
        let mut informed: BTreeSet<String> = printed.into_iter().collect();
        if let Some(message) = &message
            && informed.insert(host_name())
        {
            print_line(message);
        }

        let (own, others): (Vec<u32>, Vec<u32>) = self
            .members
            .keys()
            .copied()
            .partition(|pe| self.members[pe].serves);
        self.send_end(&others, status, message.as_deref(), &mut informed);
        self.send_end(&own, status, message.as_deref(), &mut informed);
    }

    /// Sends members the request to end with this exit status. The first member of each host that
    /// is not among the `informed` ones also gets the message, which it prints.
    fn send_end(
        &mut self,
        pes: &[u32],
        status: i32,
        message: Option<&str>,
        informed: &mut BTreeSet<String>,
    ) {
        for &pe in pes {
            let member = &self.members[&pe];
            // A member without a connection prints nothing. It may be the one that the message is
            // about.
            let prints = member.connection.is_some() && informed.insert(member.host.clone());
            let message = message.filter(|_| prints).map(str::to_owned);
            self.send_frame(pe, &proto::encode(&FromLauncher::End { status, message }));
        }
        self.flush_all();
    }

    /// Sends all pending bytes, at most for [`END_LIMIT`].
    fn flush_all(&mut self) {
        let end = Instant::now() + END_LIMIT;
        while self.connections.have_unsent() && Instant::now() < end {
            // An error counts as no events, so the loop ends with its time.
            let events = self.watch.wait(Some(SLICE)).unwrap_or_default();
            let mut is_ready = false;
            for (source, events) in events {
                if let Source::Connection(number) = source
                    && events.contains(EventFlags::OUT)
                {
                    self.connections.flush(&self.watch, number);
                    is_ready = true;
                }
            }

            // Other events are handled later. As they are reported until then, each wait returns at
            // once, so the loop pauses itself.
            if !is_ready {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn send_frame_to_all(&mut self, frame: &[u8]) {
        for pe in 0..self.n_pes {
            self.send_frame(pe, frame);
        }
    }

    /// Sends a frame to a PE, unless its connection has ended.
    fn send_frame(&mut self, pe: u32, frame: &[u8]) {
        if let Some(connection) = self.members[&pe].connection {
            self.connections.send(&self.watch, connection, frame);
        }
    }

    /// Handles the end of a connection.
    fn handle_closing(&mut self, number: u32) {
        let state = self.join_states.remove(&number);
        self.connections.close(number);

        // A process that is not a member may end its connection at any time.
        let Some(JoinState::Member(pe)) = state else {
            return;
        };
        let Some(member) = self.members.get_mut(&pe) else {
            return;
        };
        // Another connection may get the same number.
        member.connection = None;

        let Some(job) = &mut self.job else {
            let name = member.name(pe);
            self.fail(format!(
                "{name} ended while the other PEs of its job were awaited"
            ));
            return;
        };

        // A meeting does not see how a process ends. After the last finalize it may end as it
        // likes.
        let exit = if job.stage(pe) == Stage::Finalized {
            Exit::Status(0)
        } else {
            Exit::Unknown
        };
        let decision = job.exited(pe, exit);
        self.execute(decision.into_iter().collect());
    }

    /// Ends a connection on which bytes have arrived that the other end has not sealed. The reason
    /// is sent to that end all the same: only the bytes from it are known to be changed, and it
    /// notices if those to it are, too.
    fn handle_forgery(&mut self, number: u32, how: Forged) {
        match self.join_states.get(&number) {
            Some(&JoinState::Proven { from, .. }) => {
                let why =
                    format!("{how} between PE {from} and the meeting of its job ({IN_BETWEEN})");
                self.refuse(number, why);
            }
            Some(&JoinState::Member(pe)) => {
                let name = self.members[&pe].name(pe);
                // The job ends first: the end of the connection would give it another reason.
                self.fail(format!(
                    "{how} between {name} and the meeting of its job ({IN_BETWEEN})"
                ));
                self.handle_closing(number);
            }
            Some(JoinState::Refused) | None => {}
        }
    }
}

#[cfg(test)]
mod tests;
