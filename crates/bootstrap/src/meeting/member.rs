//! A PE's connection to the meeting of its job.
//!
//! A thread receives the messages of the meeting. It passes on those that the PE waits for. It ends
//! the process when the meeting requests that, or when the connection ends before the last
//! finalize.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::attendance::{JobSecret, MeetingAddress, MeetingLimits};
use super::gathering::Gathering;
use super::handshake::{ANSWER, GREETING, Handshake, NoGreeting, prepare};
use crate::error::Error;
use crate::link::{Link, Sender};
use crate::managed::{Ender, Manager, NodeKey, without_signals};
use crate::proto::{FromLauncher, FromPe, Receivers};
use crate::records::Records;

/// Maximum time for one attempt to connect, and for each step of the handshake.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Maximum time for each of the first attempts to connect if there are several addresses: one that
/// does not answer must not delay the next.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);

/// Pause after all addresses of the meeting were tried without success.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after which a process that cannot reach the meeting prints a notice. If half of the limit
/// is shorter, that counts.
const NOTICE: Duration = Duration::from_secs(10);

/// Additional time for which a member waits, so that the meeting can report first which PEs are
/// missing.
const SLACK: Duration = Duration::from_secs(5);

/// Maximum time for which a process that has requested the end of the job waits until the meeting,
/// which it serves itself, ends it.
const END: Duration = Duration::from_secs(5);

/// The value while no PE is known to serve the meeting.
const NOBODY: u32 = u32::MAX;

/// The membership of this PE in a meeting.
#[derive(Debug)]
pub(crate) struct Member {
    pe: u32,
    n_pes: u32,
    state: Arc<MemberState>,
    messages: mpsc::Receiver<FromLauncher>,
    round: u32,
    /// The values that this PE has put since the last fence.
    puts: Vec<(String, Vec<u8>)>,
    /// The values that the PEs have put between the last two fences, by PE and key.
    values: HashMap<(u32, String), Vec<u8>>,
    /// The meeting, if this process serves it.
    gathering: Option<Gathering>,
    silence: Duration,
}

/// The state that the PE shares with the thread that receives.
#[derive(Debug)]
struct MemberState {
    sender: Arc<Sender>,
    pe: u32,
    /// True if this process serves the meeting.
    serves: bool,
    /// The PE whose process serves the meeting, or [`NOBODY`].
    server: AtomicU32,
    /// True once the last finalize is done, so that the meeting may end.
    finalized: AtomicBool,
}

/// Why an attempt at an address failed.
enum NoConnection {
    Socket(io::Error),
    /// Another program listens at the address.
    Foreign,
    /// The meeting has this version of the protocol.
    Version(u8),
    /// The meeting refuses the claim or does not know the secret: it is that of another job.
    Secret,
}

impl NoConnection {
    /// Returns true if another attempt may succeed at an address at which a process already
    /// listens.
    fn is_temporary(&self) -> bool {
        match self {
            NoConnection::Socket(error) => error.kind() != ErrorKind::ConnectionRefused,
            _ => false,
        }
    }

    fn text(&self) -> String {
        match self {
            NoConnection::Socket(error) => match error.kind() {
                ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
                ErrorKind::TimedOut | ErrorKind::WouldBlock => "no answer".to_owned(),
                _ => error.to_string(),
            },
            NoConnection::Foreign => "another program answers".to_owned(),
            NoConnection::Version(version) => {
                format!("it has version {version} of the job protocol, another one than this side")
            }
            NoConnection::Secret => "it does not know the secret of this job".to_owned(),
        }
    }
}

impl From<io::Error> for NoConnection {
    fn from(error: io::Error) -> NoConnection {
        NoConnection::Socket(error)
    }
}

impl Member {
    /// Joins as PE `pe` of `n_pes`. Returns when all PEs have joined.
    pub(super) fn join(
        meeting: &MeetingAddress,
        secret: &JobSecret,
        (pe, n_pes): (u32, u32),
        gathering: Option<Gathering>,
        limits: MeetingLimits,
    ) -> Result<Member, Error> {
        let end = Instant::now() + limits.join + SLACK;
        let stream = connect(meeting, secret, pe, end, limits.join)?;
        prepare(&stream, limits.silence);
        let link = Link::new(stream);
        let state = Arc::new(MemberState {
            sender: link.sender().clone(),
            pe,
            serves: gathering.is_some(),
            server: AtomicU32::new(NOBODY),
            finalized: AtomicBool::new(false),
        });
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let (pid, serves) = (std::process::id(), state.serves);
        let join = FromPe::Join {
            pe,
            n_pes,
            pid,
            host,
            serves,
        };
        link.send(&join).map_err(|_| Error::MeetingGone)?;
        let (to, messages) = mpsc::channel();
        let shared = state.clone();
        let receive = move || receive(link, &to, &shared);
        without_signals(|| {
            thread::Builder::new()
                .name("rushmem-member".into())
                .spawn(receive)
        })
        .map_err(Error::Serving)?;
        match messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(FromLauncher::Welcome { pe: number, nodes })
                if number == pe && nodes.n_pes() == n_pes => {}
            Ok(FromLauncher::Refused { why }) => return Err(Error::NotWelcome(why)),
            Ok(_) => return Err(Error::Unexpected("a message of another meeting")),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(Error::SilentMeeting {
                    limit: limits.join + SLACK,
                });
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Error::MeetingGone),
        }
        let (puts, values, silence) = (Vec::new(), HashMap::new(), limits.silence);
        Ok(Member {
            pe,
            n_pes,
            state,
            messages,
            round: 0,
            puts,
            values,
            gathering,
            silence,
        })
    }

    /// Exchanges records with all PEs.
    fn exchange_all(&mut self, record: Vec<u8>) -> Result<Records, Error> {
        let (round, to) = (self.round, Receivers::All);
        let lost = |error| Error::ManagerLost(error);
        self.state
            .sender
            .send(&FromPe::Exchange { round, to, record })
            .map_err(lost)?;
        self.round = round.wrapping_add(1);
        match self.messages.recv() {
            Ok(FromLauncher::Gathered { round: of, records })
                if of == round && records.n_pes() == self.n_pes =>
            {
                Ok(records)
            }
            Ok(_) => Err(Error::Unexpected("the records of another exchange")),
            Err(_) => Err(lost(ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Manager for Member {
    fn pe(&self) -> u32 {
        self.pe
    }

    fn n_pes(&self) -> u32 {
        self.n_pes
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.puts.push((key.to_owned(), value.to_vec()));
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        let puts = (self.gathering.is_some(), std::mem::take(&mut self.puts));
        let record = postcard::to_stdvec(&puts).expect("plain data and memory does not refuse");
        let records = self.exchange_all(record)?;
        self.values.clear();
        for (pes, record) in records.runs() {
            let (serves, puts): (bool, Vec<(String, Vec<u8>)>) = postcard::from_bytes(record)
                .map_err(|_| Error::Unexpected("values that cannot be read"))?;
            if serves {
                self.state.server.store(pes.start, Ordering::Relaxed);
            }
            for pe in pes {
                let puts = puts.iter().cloned();
                self.values
                    .extend(puts.map(|(key, value)| ((pe, key), value)));
            }
        }
        Ok(())
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error> {
        let value = self.values.get(&(from, key.to_owned())).cloned();
        value.ok_or(Error::Unexpected("a value that nobody put"))
    }

    fn exchange(&mut self, record: &[u8]) -> Option<Result<Records, Error>> {
        Some(self.exchange_all(record.to_vec()))
    }

    fn ender(&self) -> Arc<dyn Ender> {
        self.state.clone()
    }

    fn report_finalize(&self) {
        self.state.finalized.store(true, Ordering::Release);
        // The meeting may have ended.
        let _ = self.state.sender.send(&FromPe::Finalized);
    }

    fn report_resumption(&self) {
        self.state.finalized.store(false, Ordering::Release);
        let _ = self.state.sender.send(&FromPe::Resumed);
    }

    fn leave(&mut self) {
        if let Some(gathering) = &self.gathering {
            // The other PEs have completed their last finalize, or soon will.
            gathering.wait_for_others(self.silence);
        }
    }
}

impl Ender for MemberState {
    fn request_end(&self, status: i32) -> bool {
        let is_sent = self.sender.send(&FromPe::GlobalExit { status }).is_ok();
        if is_sent && self.serves {
            // The meeting ends with this process, so it first ends the others and then this one.
            thread::sleep(END);
        }
        is_sent
    }
}

/// Passes messages on until the connection ends. Then ends the process, unless it has not joined or
/// its last finalize is done.
fn receive(mut link: Link, to: &mpsc::Sender<FromLauncher>, state: &MemberState) {
    let mut is_member = false;
    loop {
        match link.receive() {
            Ok(FromLauncher::End { status }) => end(status),
            Ok(message) => {
                is_member |= matches!(message, FromLauncher::Welcome { .. });
                if to.send(message).is_err() {
                    return;
                }
            }
            Err(_) => break,
        }
    }
    if !is_member || state.finalized.load(Ordering::Acquire) {
        return;
    }
    // One line is enough for the job: that of the lowest PE outside the process that has ended.
    let server = state.server.load(Ordering::Relaxed);
    if state.pe == u32::from(server == 0) {
        let who = match server {
            NOBODY => "the process that serves the meeting of this job".to_owned(),
            pe => format!("PE {pe}, whose process serves the meeting of this job,"),
        };
        // A PE may have no stderr.
        let _ = writeln!(
            io::stderr(),
            "PE {}: {who} ended, or its host is gone, before shmem_finalize; all PEs end",
            state.pe
        );
    }
    end(1)
}

/// Ends this process without its exit handlers, which could wait for other PEs.
fn end(status: i32) -> ! {
    // SAFETY: the call ends the process immediately; other threads may be in any state.
    unsafe { libc::_exit(status) }
}

/// Connects to the meeting of the job with this secret. Repeats attempts that may succeed later,
/// until `end`. One process of the job on this machine prints a notice meanwhile.
fn connect(
    meeting: &MeetingAddress,
    secret: &JobSecret,
    pe: u32,
    end: Instant,
    limit: Duration,
) -> Result<TcpStream, Error> {
    let start = Instant::now();
    let mut is_first_round = true;
    let notice_after = NOTICE.min(limit / 2);
    // Set once that time has passed: the socket that makes this the process to print the notice, or
    // `None` if another process has it.
    let mut notice: Option<Option<UnixDatagram>> = None;
    loop {
        let addresses = match meeting {
            MeetingAddress::Addresses(at) => Ok(at.clone()),
            MeetingAddress::Named(at) => at.to_socket_addrs().map(Iterator::collect),
        };
        let mut tried: Vec<(String, NoConnection)> = Vec::new();
        match (addresses, meeting) {
            (Ok(addresses), _) => {
                let is_short = is_first_round && addresses.len() > 1;
                let attempt = if is_short { FIRST_ATTEMPT } else { ATTEMPT };
                for address in addresses {
                    match reach(address, secret, attempt) {
                        Ok(stream) => return Ok(stream),
                        Err(failure) => tried.push((address.to_string(), failure)),
                    }
                }
            }
            // The name of a host that is starting may not be resolvable yet.
            (Err(error), MeetingAddress::Named(at)) => {
                tried.push((at.clone(), NoConnection::Socket(error)));
            }
            (Err(_), MeetingAddress::Addresses(_)) => unreachable!("nothing is resolved"),
        }
        let serves_later = matches!(meeting, MeetingAddress::Named(_))
            && tried
                .iter()
                .all(|(_, failure)| matches!(failure, NoConnection::Socket(_)));
        let may_succeed = serves_later || tried.iter().any(|(_, failure)| failure.is_temporary());
        let answers = tried
            .iter()
            .map(|(at, failure)| format!("{at}: {}", failure.text()));
        let tried = answers.collect::<Vec<_>>().join("; ");
        if !may_succeed || Instant::now() >= end {
            return Err(match meeting {
                MeetingAddress::Addresses(_) => Error::NoMeeting { tried },
                MeetingAddress::Named(_) => Error::NobodyServes { tried, limit },
            });
        }
        if notice.is_none() && start.elapsed() >= notice_after {
            let claim = claim_notice(secret);
            if claim.is_some() {
                let notice = waiting(meeting, pe, notice_after, limit, &tried);
                // A PE may have no stderr.
                let _ = writeln!(io::stderr(), "{notice}");
            }
            notice = Some(claim);
        }
        is_first_round = false;
        thread::sleep(PAUSE);
    }
}

/// Returns the notice of a process that has not reached the meeting for the time `waited`.
fn waiting(
    meeting: &MeetingAddress,
    pe: u32,
    waited: Duration,
    limit: Duration,
    tried: &str,
) -> String {
    let what = match meeting {
        MeetingAddress::Addresses(_) => {
            "to reach the process that made the unique id of its job".to_owned()
        }
        MeetingAddress::Named(at) => format!("for PE 0 to serve the job at SHMEM_JOB={at}"),
    };
    format!(
        "PE {pe} has waited {} s {what} ({tried}), and tries again until SHMEM_JOIN_LIMIT ({} s)",
        waited.as_secs_f64(),
        limit.as_secs_f64()
    )
}

/// Opens a socket whose name only one process of this job on this machine can have at a time, so
/// that only that one prints the notice. Returns `None` if another process has the socket.
fn claim_notice(secret: &JobSecret) -> Option<UnixDatagram> {
    let name = NodeKey::new(secret.bytes(), b"notice").name(0).ok()?;
    let name = UnixAddress::from_abstract_name(name.abstract_name()?).ok()?;
    UnixDatagram::bind_addr(&name).ok()
}

/// Connects to the meeting at an address within the time `attempt`, and does the handshake.
fn reach(
    address: SocketAddr,
    secret: &JobSecret,
    attempt: Duration,
) -> Result<TcpStream, NoConnection> {
    let mut stream = TcpStream::connect_timeout(&address, attempt)?;
    stream.set_read_timeout(Some(ATTEMPT))?;
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    let mut handshake = Handshake::new(secret, nonce);
    let mut greeting = [0; GREETING];
    stream.read_exact(&mut greeting)?;
    let claim = handshake.claim(&greeting).map_err(|why| match why {
        NoGreeting::Foreign => NoConnection::Foreign,
        NoGreeting::Version(version) => NoConnection::Version(version),
    })?;
    stream.write_all(&claim)?;
    let mut answer = [0; ANSWER];
    match stream.read_exact(&mut answer) {
        Ok(()) if handshake.is_answer(&answer) => {}
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            return Err(error.into());
        }
        _ => return Err(NoConnection::Secret),
    }
    stream.set_read_timeout(None)?;
    Ok(stream)
}
