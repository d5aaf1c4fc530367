//! The thread that serves a meeting. Once all PEs have joined, [`Server`] decides what is sent and
//! when the job ends, as for `oshrun`. Processes that connect later are refused.
//!
//! The thread blocks only to wait for the next event, so that one member cannot delay the others;
//! at the end of the job, also until the bytes of the end are sent to the members, for twice
//! [`END_LIMIT`] at most.
//!
//! A meeting that is over stops listening: its address may be that of the next job.

use rushmem_system::host::host_name;
use rushmem_system::lock::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rushmem_connect::handshake::{Acceptor, Answer};
use rushmem_connect::sealed::Forged;
use rushmem_connect::strangers::{Claim, Proven, Shortage, StrangerLimits, Strangers};
use rushmem_connect::{Secret, nonce};
use rushmem_explain::ranges;
use rushmem_explain::status::Stage;
use rustix::event::epoll::EventFlags;

use super::attendance::{LIMIT_VARIABLE, MeetingLimits, MeetingSource};
use super::connections::{Connections, Ending, HANDSHAKE, MEETING, Source, Watch, prepare};
use super::listeners::{self, Listeners};
use crate::error::IN_BETWEEN;
use crate::nodes::NodeMap;
use crate::proto::{self, Decoder, FromLauncher, FromPe};
use crate::server::exit::Exit;
use crate::server::{Decision, Server};
use crate::time_limit::SLICE;
use rushmem_system::signals::without_signals;

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

/// How many times within the limit of joining a member is asked for a sign of life while an
/// exchange lasts.
const PINGS: u32 = 8;

/// Maximum number of missing PEs that are listed. The others are counted, since the number of PEs
/// may be a mistake.
const MAX_LISTED: usize = 10_000;

/// A meeting that this process serves.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    secret: Secret,
    listeners: Listeners,
    /// True when all members except the one in this process have finalized or ended.
    others_are_done: Arc<(Mutex<bool>, Condvar)>,
}

impl Gathering {
    /// Starts the thread that serves a meeting at these sockets.
    pub(super) fn start(
        sockets: Vec<TcpListener>,
        secret: Secret,
        limits: MeetingLimits,
        source: MeetingSource,
    ) -> io::Result<Gathering> {
        let gathering = Gathering {
            secret,
            listeners: Listeners::new(sockets)?,
            others_are_done: Arc::new((Mutex::new(false), Condvar::new())),
        };
        let mut server = MeetingServer::new(gathering.clone(), limits, source)?;
        let run = move || {
            // The connections end with the thread, and with them the members.
            if let Err(error) = server.run() {
                rushmem_system::log::debug!(%error, "the meeting cannot be served");
            }
            server.gathering.listeners.close();
        };
        without_signals(|| {
            thread::Builder::new()
                .name("rushmem-meeting".into())
                .spawn(run)
        })?;
        Ok(gathering)
    }

    pub(super) fn is_of(&self, secret: &Secret) -> bool {
        self.secret == *secret
    }

    /// Returns true once processes can no longer join.
    pub(super) fn is_closed(&self) -> bool {
        self.listeners.with(<[TcpListener]>::is_empty)
    }

    /// Closes the listeners in a child of the process that serves the meeting.
    pub(super) fn forget(&self) {
        self.listeners.forget();
    }

    /// Waits until the other members have finalized or ended, at most for `limit`.
    pub(super) fn wait_for_others(&self, limit: Duration) {
        let (done, change) = &*self.others_are_done;
        let done = lock(&done);
        // The result does not matter: after the limit this process ends as well.
        let _ = change.wait_timeout_while(done, limit, |done| !*done);
    }
}

/// How far a process that knows the secret has come.
#[derive(Debug)]
enum Joining {
    /// The process has proved to be PE `from`, and its first message is being received.
    Proven { from: u32, decoder: Decoder },
    /// The process is this PE.
    Member(u32),
    /// The process has been refused, and reads the reason.
    Refused,
}

/// A process that has joined.
#[derive(Clone, Debug)]
struct Attendee {
    /// The number of its connection, as long as there is one.
    connection: Option<u32>,
    pid: u32,
    host: String,
    /// True if it is this process.
    serves: bool,
    /// How many signs of life were requested since it has sent anything.
    unanswered: u32,
}

impl Attendee {
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
    gathering: Gathering,
    limits: MeetingLimits,
    source: MeetingSource,
    watch: Watch,
    /// Since when the listeners are not watched, because no descriptor is left.
    muted: Option<Instant>,
    strangers: Strangers,
    connections: Connections,
    /// How far the process of each connection has come.
    joining: BTreeMap<u32, Joining>,
    members: BTreeMap<u32, Attendee>,
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
        gathering: Gathering,
        limits: MeetingLimits,
        source: MeetingSource,
    ) -> io::Result<MeetingServer> {
        let strangers = StrangerLimits {
            time: HANDSHAKE_LIMIT,
            n: MAX_STRANGERS,
        };
        let mut server = MeetingServer {
            gathering,
            limits,
            source,
            watch: Watch::new()?,
            muted: None,
            strangers: Strangers::new(strangers),
            connections: Connections::default(),
            joining: BTreeMap::new(),
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

    /// Serves the meeting until it is over and its members have ended.
    fn run(&mut self) -> io::Result<()> {
        loop {
            if !self.is_open() {
                self.gathering.listeners.close();
                if self.connections.is_empty() {
                    return Ok(());
                }
            }
            if self.muted.is_some_and(|since| since.elapsed() >= SLICE) {
                self.listen()?;
            }
            let is_timed = self.is_timed();
            let begin = Instant::now();
            for (source, events) in self.watch.wait(is_timed.then_some(SLICE))? {
                self.handle(source, events);
            }
            if is_timed {
                self.check_limits(begin.elapsed().min(SLICE));
            }
            self.report_progress();
        }
    }

    /// Returns true while processes that connect get an answer: until all PEs have finalized, and
    /// after a job that has failed for the time within which its PEs may come.
    fn is_open(&self) -> bool {
        match (&self.over, &self.job) {
            (Some(over), _) => over.since.elapsed() < self.limits.join,
            (None, Some(_)) => !self.members.keys().all(|&pe| self.has_finalized(pe)),
            (None, None) => true,
        }
    }

    fn has_finalized(&self, pe: u32) -> bool {
        let job = self.job.as_ref();
        job.is_some_and(|job| job.progress(pe).1 == Stage::Finalized)
    }

    /// Returns true while a time limit runs: that of all PEs, that of a connection, or that of a
    /// meeting that is over.
    fn is_timed(&self) -> bool {
        let awaits_pes = self.is_exchanging() || self.job.is_none() && !self.members.is_empty();
        let is_joining = |one: &Joining| !matches!(one, Joining::Member(_));
        awaits_pes
            || self.over.is_some()
            || self.muted.is_some()
            || !self.strangers.is_empty()
            || self.joining.values().any(is_joining)
    }

    /// Returns true while some members wait for the records of others.
    fn is_exchanging(&self) -> bool {
        self.job.as_ref().is_some_and(Server::is_exchanging)
    }

    /// Watches the listeners.
    fn listen(&mut self) -> io::Result<()> {
        self.muted = None;
        let watch = &self.watch;
        self.gathering.listeners.with(|all| {
            let mut all = all.iter().enumerate();
            all.try_for_each(|(number, listener)| watch.listen(number, listener))
        })
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

    fn accept(&mut self, number: usize) {
        let (secret, silence) = (&self.gathering.secret, self.limits.silence);
        let acceptor = |socket: &TcpStream| {
            prepare(socket, silence);
            Ok(Acceptor::new(HANDSHAKE, secret, MEETING, nonce()?))
        };
        let (strangers, watch) = (&mut self.strangers, &self.watch);
        let accepted = self.gathering.listeners.with(|all| {
            let greet = |socket: &TcpStream| watch.greet(socket);
            match all.get(number) {
                Some(listener) => strangers.accept(listener, listeners::accept, acceptor, greet),
                None => Ok(()),
            }
        });
        let Err(Shortage { error, lasts }) = accepted else {
            return;
        };
        self.muted = Some(Instant::now());
        let listeners = &self.gathering.listeners;
        listeners.with(|all| all.iter().for_each(|listener| watch.ignore(listener)));
        // By then no stranger has a descriptor any more.
        if lasts > HANDSHAKE_LIMIT && self.job.is_none() {
            self.fail(listeners::shortage(&error, self.n_pes));
        }
    }

    /// Answers a process that knows the secret.
    fn answer(&mut self, proven: Proven) {
        // If one PE has finalized, all are about to, so this process may be one of the next job.
        let is_ending = self.members.keys().any(|&pe| self.has_finalized(pe));
        if is_ending && matches!(self.source, MeetingSource::Variables) {
            // If this fails, the process tries again as well.
            let _ = proven.answer(Answer::Deferral);
            return;
        }
        let from = proven.from;
        if let Ok((stream, session)) = proven.welcome() {
            let number = self.connections.add(&self.watch, stream, session);
            let decoder = Decoder::new(proto::MAX_FROM_PE);
            self.joining
                .insert(number, Joining::Proven { from, decoder });
        }
    }

    /// Reads and handles the bytes that have arrived on a connection.
    fn read(&mut self, number: u32) {
        let (bytes, ending) = self.connections.read(number);
        if !bytes.is_empty() {
            self.received(number, &bytes);
        }
        match ending {
            None => {}
            Some(Ending::Closed) => self.ended(number),
            Some(Ending::Forged(how)) => self.forged(number, how),
        }
    }

    fn received(&mut self, number: u32, bytes: &[u8]) {
        match self.joining.get_mut(&number) {
            Some(Joining::Proven { from, decoder }) => {
                let from = *from;
                decoder.push(bytes);
                match decoder.take() {
                    Ok(None) => {}
                    Ok(Some(FromPe::Join { pe, .. })) if pe != from => {
                        let why = format!(
                            "a process that has proved to be PE {from} states that it is PE {pe}"
                        );
                        self.refuse(number, why);
                    }
                    Ok(Some(FromPe::Join {
                        pe,
                        n_pes,
                        pid,
                        host,
                        serves,
                    })) => {
                        let attendee = Attendee {
                            connection: Some(number),
                            pid,
                            host,
                            serves,
                            unanswered: 0,
                        };
                        self.join(number, pe, n_pes, attendee);
                    }
                    Ok(Some(_)) | Err(_) => {
                        let why = format!(
                            "the first message of PE {from} to the meeting cannot be read; use one build of Rushmem"
                        );
                        self.refuse(number, why);
                    }
                }
            }
            Some(Joining::Member(pe)) => {
                let pe = *pe;
                self.members
                    .entry(pe)
                    .and_modify(|member| member.unanswered = 0);
                if let Some(job) = &mut self.job {
                    let decisions = job.received(pe, bytes);
                    self.execute(decisions);
                }
            }
            Some(Joining::Refused) | None => {}
        }
    }

    /// Handles the request of a process to join as PE `pe`.
    fn join(&mut self, connection: u32, pe: u32, n_pes: u32, attendee: Attendee) {
        if let Some(why) = self.refusal(pe, n_pes, &attendee) {
            self.refuse(connection, why.clone());
            if self.job.is_none() && self.over.is_none() {
                let message = Some(format!("{SPEAKER}: {why}"));
                self.end(1, message, why, Some(attendee.host));
            }
            return;
        }
        let Attendee { pid, host, .. } = &attendee;
        rushmem_system::log::debug!(pe, n_pes, pid, %host, "a PE has joined");
        self.n_pes = n_pes;
        self.members.insert(pe, attendee);
        self.joining.insert(connection, Joining::Member(pe));
        if self.members.len() == n_pes as usize {
            self.begin();
        }
    }

    /// Refuses a process that has not joined. It prints the reason.
    fn refuse(&mut self, connection: u32, why: String) {
        let refused = proto::encode(&FromLauncher::Refused { why });
        self.connections.send(&self.watch, connection, &refused);
        self.joining.insert(connection, Joining::Refused);
    }

    /// Refuses all processes whose first message has not arrived.
    fn refuse_all_proven(&mut self, why: &str) {
        let is_proven = |one: &Joining| matches!(one, Joining::Proven { .. });
        let all = self.joining.iter().filter(|(_, one)| is_proven(one));
        let numbers: Vec<u32> = all.map(|(number, _)| *number).collect();
        for number in numbers {
            self.refuse(number, why.to_owned());
        }
    }

    /// Returns the reason for which a process cannot join.
    fn refusal(&self, pe: u32, n_pes: u32, attendee: &Attendee) -> Option<String> {
        if let Some(over) = &self.over {
            return Some(over.why.clone());
        }
        if let Some(other) = self.members.get(&pe) {
            return Some(match self.job {
                Some(_) => format!(
                    "the job runs already, and {} is one of its processes; make another id for another job",
                    other.name(pe)
                ),
                None => format!(
                    "two processes are PE {pe}: pid {} on host {} and pid {} on host {}; give each \
                     process a rank of its own",
                    other.pid, other.host, attendee.pid, attendee.host
                ),
            });
        }
        if let Some((&known, member)) = self.members.first_key_value()
            && n_pes != self.n_pes
        {
            return Some(format!(
                "{} expects {n_pes} PEs, but {} expects {}; give all processes the same number",
                attendee.name(pe),
                member.name(known),
                self.n_pes
            ));
        }
        (pe >= n_pes).then(|| format!("its rank is {pe}, but the {n_pes} PEs are numbered from 0"))
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
                Decision::Send { pe, frame } => self.send_frame(pe, &frame),
                Decision::SendAll { frame, .. } => {
                    (0..self.n_pes).for_each(|pe| self.send_frame(pe, &frame));
                }
                Decision::EndJob { status, message } => {
                    let why = "the job has ended; make another id, or start all processes, for another job";
                    self.end(status, message, why.to_owned(), None);
                }
                Decision::Warn { message } => print_to_stderr(&message),
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
    /// have outputs of their own. On the host `printed`, a process has done so.
    fn end(&mut self, status: i32, message: Option<String>, why: String, printed: Option<String>) {
        self.refuse_all_proven(&why);
        self.over = Some(Over {
            why,
            since: Instant::now(),
        });
        let mut told: BTreeSet<String> = printed.into_iter().collect();
        if let Some(message) = message.as_ref().filter(|_| told.insert(host_name())) {
            print_to_stderr(message);
        }
        let (own, others): (Vec<u32>, Vec<u32>) = self
            .members
            .keys()
            .copied()
            .partition(|pe| self.members[pe].serves);
        for pes in [others, own] {
            for pe in pes {
                let member = &self.members[&pe];
                // A member that is gone, perhaps the one that this is about, prints nothing.
                let prints = member.connection.is_some() && told.insert(member.host.clone());
                let message = message.clone().filter(|_| prints);
                let end = FromLauncher::End { status, message };
                self.send_frame(pe, &proto::encode(&end));
            }
            self.flush_all();
        }
    }

    /// Sends all pending bytes, at most for [`END_LIMIT`].
    fn flush_all(&mut self) {
        let end = Instant::now() + END_LIMIT;
        while self.connections.have_unsent() && Instant::now() < end {
            // Without events, the time is used up.
            let events = self.watch.wait(Some(SLICE)).unwrap_or_default();
            let mut is_ready = false;
            for (source, events) in events {
                if let (Source::Connection(number), true) =
                    (source, events.contains(EventFlags::OUT))
                {
                    self.connections.flush(&self.watch, number);
                    is_ready = true;
                }
            }
            // Other events are handled later, and are reported until then.
            if !is_ready {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Sends a frame to a PE, unless its connection has ended.
    fn send_frame(&mut self, pe: u32, frame: &[u8]) {
        if let Some(connection) = self.members[&pe].connection {
            self.connections.send(&self.watch, connection, frame);
        }
    }

    fn close(&mut self, number: u32) {
        self.joining.remove(&number);
        self.connections.close(number);
    }

    /// Handles the end of a connection.
    fn ended(&mut self, number: u32) {
        let joining = self.joining.remove(&number);
        self.connections.close(number);
        let Some(Joining::Member(pe)) = joining else {
            return;
        };
        // Another connection may get its number.
        self.members
            .entry(pe)
            .and_modify(|member| member.connection = None);
        match &mut self.job {
            Some(job) => {
                let exit = match job.progress(pe).1 {
                    Stage::Finalized => Exit::Status(0),
                    _ => Exit::Unknown,
                };
                let decision = job.exited(pe, exit);
                self.execute(decision.into_iter().collect());
            }
            None => {
                let name = self.members[&pe].name(pe);
                self.fail(format!(
                    "{name} ended while the other PEs of its job were awaited"
                ));
            }
        }
    }

    /// Handles bytes that the other end of a connection has not sealed. What this process seals
    /// still arrives there, or is noticed.
    fn forged(&mut self, number: u32, how: Forged) {
        match self.joining.get(&number) {
            Some(&Joining::Proven { from, .. }) => {
                let why =
                    format!("{how} between PE {from} and the meeting of its job ({IN_BETWEEN})");
                self.refuse(number, why);
            }
            Some(&Joining::Member(pe)) => {
                let name = self.members[&pe].name(pe);
                self.fail(format!(
                    "{how} between {name} and the meeting of its job ({IN_BETWEEN})"
                ));
                self.ended(number);
            }
            Some(Joining::Refused) | None => {}
        }
    }

    /// Refuses processes that have not joined within [`HANDSHAKE_LIMIT`], and ends the job if PEs
    /// are missing, or give no sign of life in an exchange, for longer than the limit. `time` is
    /// the duration of the last wait, at most [`SLICE`].
    fn check_limits(&mut self, time: Duration) {
        self.strangers.expire();
        self.end_late();
        if self.is_exchanging() {
            self.ask_members(time);
            return;
        }
        if self.job.is_some() || self.over.is_some() || self.members.is_empty() {
            return;
        }
        self.waited += time;
        if self.waited >= self.limits.join {
            self.fail(self.who_is_missing());
        }
    }

    /// Refuses processes that have not joined within [`HANDSHAKE_LIMIT`], and closes the connection
    /// of a refused one that has not ended within twice that time.
    fn end_late(&mut self) {
        let age = |number: &u32| self.connections.age(*number).unwrap_or_default();
        let (mut silent, mut closed) = (Vec::new(), Vec::new());
        for (number, one) in &self.joining {
            match one {
                Joining::Proven { from, .. } if age(number) > HANDSHAKE_LIMIT => {
                    silent.push((*number, *from));
                }
                Joining::Refused if age(number) > 2 * HANDSHAKE_LIMIT => closed.push(*number),
                _ => {}
            }
        }

        for (number, from) in silent {
            let why = format!(
                "PE {from} has proved that it knows the secret of the job, but its next message has not arrived within \
                 {} s: it was stopped or got no processor, or a process in between holds back what it sends ({IN_BETWEEN})",
                HANDSHAKE_LIMIT.as_secs()
            );
            self.refuse(number, why);
        }
        closed.into_iter().for_each(|number| self.close(number));
    }

    /// Asks all members for a sign of life, [`PINGS`] times within the limit. Ends the job if one
    /// has given none within the limit: a process in between may hold back what is sent, and then
    /// the other PEs would wait for ever.
    fn ask_members(&mut self, time: Duration) {
        self.since_ping += time;
        if self.since_ping < self.limits.join / PINGS {
            return;
        }
        self.since_ping = Duration::ZERO;

        let silent =
            |member: &Attendee| member.connection.is_some() && member.unanswered + 1 >= PINGS;
        if let Some((&pe, member)) = self.members.iter().find(|(_, member)| silent(member)) {
            self.fail(format!(
                "{} has sent nothing for {} s while other PEs wait for it: it is stopped or gets no processor, or a \
                 process in between holds back what it sends ({IN_BETWEEN})",
                member.name(pe),
                self.limits.join.as_secs_f64()
            ));
            return;
        }
        let ping = proto::encode(&FromLauncher::Ping);
        for pe in 0..self.n_pes {
            self.members
                .entry(pe)
                .and_modify(|member| member.unanswered += 1);
            self.send_frame(pe, &ping);
        }
    }

    /// Returns the message that PEs are missing.
    fn who_is_missing(&self) -> String {
        let listed: Vec<u32> = (0..self.n_pes)
            .filter(|pe| !self.members.contains_key(pe))
            .take(MAX_LISTED)
            .collect();
        let missing = self.n_pes as usize - self.members.len();
        let pes = match missing - listed.len() {
            0 => ranges::pes(&listed),
            more => format!("{} and {more} more", ranges::pes(&listed)),
        };
        let verb = if missing == 1 { "has" } else { "have" };
        let how = match self.source {
            MeetingSource::UniqueId => "by its unique id",
            MeetingSource::Variables => "that SHMEM_JOB names",
        };
        format!(
            "of the {} PEs of the job {how}, {pes} {verb} not joined within {} s; start all of them, or raise \
             {LIMIT_VARIABLE}",
            self.n_pes,
            self.limits.join.as_secs_f64()
        )
    }

    /// Reports to the member in this process whether all other members have finalized or ended.
    fn report_progress(&mut self) {
        let Some(job) = &self.job else { return };
        let is_done = |one: &Joining| match one {
            Joining::Member(pe) => {
                self.members[pe].serves || job.progress(*pe).1 == Stage::Finalized
            }
            _ => true,
        };
        let are_done = self.joining.values().all(is_done);
        let (done, change) = &*self.gathering.others_are_done;
        *lock(&done) = are_done;
        if are_done {
            change.notify_all();
        }
    }
}

fn print_to_stderr(message: &str) {
    // A process may have no standard error.
    let _ = writeln!(io::stderr(), "{message}");
}

#[cfg(test)]
mod tests;
