//! The meeting of the PEs of a job that no launcher has started: processes that share a unique id,
//! or the variables `SHMEM_JOB`, `SHMEM_RANK` and `SHMEM_SIZE`.
//!
//! One process serves the meeting, from a thread: the one that made the id, or PE 0. The others
//! connect to it over TCP, prove that they know the secret, and report which PE they are. All that
//! follows is sealed, so that a process in between learns nothing and changes nothing. Once all
//! PEs have joined, the meeting has the role of `oshrun`, with the same protocol and the same
//! rules. It cannot kill the processes, so each PE has a thread that ends its process when the
//! meeting requests that, or when the connection to the meeting is lost before the last finalize.
//!
//! The rest of this crate treats a meeting as a process manager (`managed::Manager`): the PEs of a
//! node find each other by `managed::rendezvous`.

pub(crate) mod attendance;
mod connections;
mod gathering;
mod listeners;
mod member;
mod place;
mod reach;
pub(crate) mod variables;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use rushmem_connect::{Secret, nonce};
use rushmem_system::interfaces::{INTERFACES, Need, PORTS, PortRange, Selection, addresses};
use rushmem_system::lock::lock;

use crate::error::Error;

pub use attendance::{
    Attendance, LIMIT_DEFAULT, LIMIT_VARIABLE, MeetingAddress, MeetingLimits, UniqueId,
};
use attendance::{MeetingSource, SECRET};
use gathering::Gathering;
use member::Member;
pub use variables::{GivenVariable, NamedJob, forgotten_job_hint, given, without_secret};

static SERVED: Mutex<ServedMeetings> = Mutex::new(ServedMeetings {
    process: 0,
    meetings: Vec::new(),
});

/// The meetings that a process serves. A forked child inherits the list, but serves none of them.
struct ServedMeetings {
    /// The process ID of the process that serves them; 0 at first, which is that of none.
    process: u32,
    meetings: Vec<Gathering>,
}

/// True once this process has begun to join a meeting. Relaxed: it publishes no other data.
static ATTENDS: AtomicBool = AtomicBool::new(false);

/// Returns true if this process has begun to join a meeting.
pub(crate) fn is_attended() -> bool {
    ATTENDS.load(Ordering::Relaxed)
}

/// Makes a unique id, and serves the meeting of its job from a thread of this process until all PEs
/// of the job have ended.
///
/// # Errors
/// If the process has no address, no descriptor or no thread for it, or a setting for addresses or
/// ports is invalid.
pub fn make_unique_id(limits: MeetingLimits) -> Result<UniqueId, Error> {
    let random = nonce().map_err(Error::Random)?;
    let secret = random.first_chunk::<SECRET>().expect("a nonce is longer");

    let listeners = listen()?;
    let addresses = listeners
        .iter()
        .map(TcpListener::local_addr)
        .collect::<Result<Vec<SocketAddr>, io::Error>>()
        .map_err(Error::Serving)?;
    let id = UniqueId::new(secret, &addresses);

    rushmem_system::log::debug!(at = ?addresses, "serves the meeting of a unique id");
    serve(
        listeners,
        Secret::new(secret),
        limits,
        MeetingSource::UniqueId,
    )?;
    Ok(id)
}

/// Serves a meeting at these sockets from a thread, and adds it to those of this process.
fn serve(
    listeners: Vec<TcpListener>,
    secret: Secret,
    limits: MeetingLimits,
    source: MeetingSource,
) -> Result<(), Error> {
    let gathering = Gathering::start(listeners, secret, limits, source).map_err(Error::Serving)?;

    let mut served = own_meetings();
    served.meetings.retain(|meeting| !meeting.is_closed());
    served.meetings.push(gathering);
    Ok(())
}

/// Returns true if this process serves the meeting with this secret.
fn serves(secret: &Secret) -> bool {
    let served = own_meetings();
    served.meetings.iter().any(|meeting| meeting.is_of(secret))
}

/// Returns the meetings that this process itself serves: a forked child drops those of its parent.
fn own_meetings() -> MutexGuard<'static, ServedMeetings> {
    let mut served = lock(&SERVED);
    let own = std::process::id();
    if served.process != own {
        // No thread accepts connections in a child. Without its copies of the listeners, the kernel
        // refuses connections when the parent ends.
        for meeting in served.meetings.drain(..) {
            meeting.forget();
        }
        served.process = own;
    }
    served
}

/// Joins a meeting. Returns when all PEs have joined.
///
/// # Errors
/// When the meeting cannot be reached, refuses this process, or does not begin within the limit.
pub(crate) fn attend(attendance: &Attendance, limits: MeetingLimits) -> Result<Member, Error> {
    ATTENDS.store(true, Ordering::Relaxed);

    let mut attendance = attendance.clone();
    if let MeetingAddress::Named(place) = &attendance.address
        && attendance.pe == 0
    {
        let own = serve_at(place, &attendance.secret, limits)?;
        attendance.address = MeetingAddress::Addresses(own);
    }

    let Attendance {
        address, pe, n_pes, ..
    } = &attendance;
    rushmem_system::log::debug!(?address, pe, n_pes, "attends the meeting of its job");
    Member::join(&attendance, serves(&attendance.secret), limits)
}

/// Serves the meeting at `place`, a host and a port that the user has named, as PE 0. Returns the
/// addresses at which this process reaches its own listeners.
fn serve_at(place: &str, secret: &Secret, limits: MeetingLimits) -> Result<Vec<SocketAddr>, Error> {
    let listeners = place::listen(place, limits.join)?;
    let own = listeners
        .iter()
        .map(|listener| listener.local_addr().map(reachable))
        .collect::<Result<Vec<SocketAddr>, io::Error>>()
        .map_err(Error::Serving)?;

    serve(listeners, secret.clone(), limits, MeetingSource::Variables)?;
    Ok(own)
}

/// Listens at each address of this machine that members may reach, as the settings say. The
/// addresses are in the order in which members try them; one at which this process can listen is
/// enough.
fn listen() -> Result<Vec<TcpListener>, Error> {
    let refuse = |why: String| Error::Serving(io::Error::other(why));
    let variable = |name| std::env::var(name).ok();
    let selection = Selection::parse(&variable(INTERFACES).unwrap_or_default()).map_err(refuse)?;
    let ports = PortRange::parse(variable(PORTS).as_deref()).map_err(refuse)?;
    let own = addresses(Need::Any, selection.as_ref(), None).map_err(refuse)?;

    let mut listeners = Vec::new();
    let mut refused = io::ErrorKind::AddrNotAvailable.into();
    for ip in own {
        match ports.listen(ip) {
            Ok(listener) => listeners.push(listener),
            Err(error) => refused = error,
        }
    }

    if listeners.is_empty() {
        Err(Error::Serving(refused))
    } else {
        Ok(listeners)
    }
}

/// Returns the address at which this process reaches its own listener.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listener.port())
}
