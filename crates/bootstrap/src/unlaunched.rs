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
//! The rest of this crate treats a meeting as a process manager (`client`), also where the PEs of
//! a node find each other (`node`).

mod client;
mod listen;
mod reach;
pub(crate) mod route;
mod server;
mod unique_id;
pub(crate) mod variables;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rushmem_connect::handshake::Protocol;
use rushmem_connect::{Secret, nonce};
use rushmem_system::lock::lock;
use rustix::net::sockopt;

use crate::error::Error;
use client::MeetingClient;
use route::MeetingSource;
use server::ServedMeeting;
use unique_id::SECRET;

pub use route::{LIMIT_DEFAULT, LIMIT_VARIABLE, MeetingAddress, MeetingLimits, MeetingRoute};
pub use unique_id::UniqueId;
pub use variables::{GivenVariable, NamedJob, forgotten_job_hint, given, without_secret};

/// The handshake of a process with the meeting of its job. Its proofs are not bound to an address:
/// the name of a meeting may denote a router, so the two ends may see different addresses. Sealing
/// keeps a process in between from reading or changing what follows.
const HANDSHAKE: Protocol = Protocol {
    magic: *b"rushjob",
    version: crate::proto::VERSION,
};

/// The number of the meeting in the handshake, which is that of no PE.
const MEETING: u32 = u32::MAX;

static SERVED: Mutex<ServedMeetings> = Mutex::new(ServedMeetings {
    process: 0,
    meetings: Vec::new(),
});

/// The meetings that a process serves. A forked child inherits the list, but serves none of them.
struct ServedMeetings {
    /// The process ID of the process that serves them; 0 at first, which is that of none.
    process: u32,
    meetings: Vec<ServedMeeting>,
}

/// True once this process has begun to join a meeting. Relaxed: it publishes no other data.
static JOINS_MEETING: AtomicBool = AtomicBool::new(false);

/// Returns true if this process has begun to join a meeting.
pub(crate) fn joins_meeting() -> bool {
    JOINS_MEETING.load(Ordering::Relaxed)
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

    let listeners = listen::at_own_addresses()?;
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
    let meeting =
        ServedMeeting::start(listeners, secret, limits, source).map_err(Error::Serving)?;

    let mut served = own_meetings();
    served.meetings.retain(|meeting| !meeting.is_closed());
    served.meetings.push(meeting);
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
pub(crate) fn join(route: &MeetingRoute, limits: MeetingLimits) -> Result<MeetingClient, Error> {
    JOINS_MEETING.store(true, Ordering::Relaxed);

    let mut route = route.clone();
    if let MeetingAddress::Named(name) = &route.address
        && route.pe == 0
    {
        let own = serve_at(name, &route.secret, limits)?;
        route.address = MeetingAddress::Addresses(own);
    }

    let MeetingRoute {
        address, pe, n_pes, ..
    } = &route;
    rushmem_system::log::debug!(?address, pe, n_pes, "joins the meeting of its job");
    MeetingClient::join(&route, serves(&route.secret), limits)
}

/// Serves the meeting at `name`, a host and a port that the user has named, as PE 0. Returns the
/// addresses at which this process reaches its own listeners.
fn serve_at(name: &str, secret: &Secret, limits: MeetingLimits) -> Result<Vec<SocketAddr>, Error> {
    let listeners = listen::at_named(name, limits.join)?;
    let own = listeners
        .iter()
        .map(|listener| listener.local_addr().map(reachable))
        .collect::<Result<Vec<SocketAddr>, io::Error>>()
        .map_err(Error::Serving)?;

    serve(listeners, secret.clone(), limits, MeetingSource::Variables)?;
    Ok(own)
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

/// Sets the options of a connection: small messages are sent immediately, and a host that is silent
/// for `silence` is detected. The kernel of the other host answers even if the process there is
/// stopped.
fn prepare(stream: &TcpStream, silence: Duration) {
    // The first of three probes follows after a quarter of the time, and each has a quarter for its
    // answer. The kernel accepts no less than a second.
    let interval = (silence / 4).max(Duration::from_secs(1));

    // If an option cannot be set, messages are slower, or a lost host is detected later.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, interval);
    let _ = sockopt::set_tcp_keepintvl(stream, interval);
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    let _ = sockopt::set_tcp_user_timeout(stream, silence.as_millis().try_into().unwrap_or(0));
}
