//! How a PE reaches the meeting of its job: tries the addresses, repeats attempts that may succeed
//! later, and words the reason of a failure.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::time::{Duration, Instant};

use rushmem_connect::handshake::{ANSWER, Answer, Connector, GREETING, Violation};
use rushmem_connect::sealed::Session;
use rushmem_connect::{Attempts, Secret, TimedReads, nonce};
use rushmem_system::stderr::print_line;

use super::route::{MeetingAddress, MeetingRoute};
use super::{HANDSHAKE, MEETING};
use crate::error::Error;
use crate::node::key::NodeKey;

/// Maximum time for one attempt to connect, and for the handshake.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Maximum time for each attempt of the first round if there are several addresses: an address that
/// does not answer must not delay the next one.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);

/// Time after which a process that waits prints a notice, but at most half of its limit.
const NOTICE: Duration = Duration::from_secs(10);

/// Time by which a PE waits longer than the meeting, so that the meeting can report first which PEs
/// are missing.
pub(super) const SLACK: Duration = Duration::from_secs(5);

/// Returns the time after which a process that waits for at most `limit` prints a notice.
pub(super) fn notice_after(limit: Duration) -> Duration {
    NOTICE.min(limit / 2)
}

/// A connection to the meeting, which has proved that it is that of the job.
pub(super) struct Reached {
    pub(super) stream: TcpStream,
    pub(super) session: Session,
}

/// Why an attempt at an address failed.
pub(super) enum NoConnection {
    Socket(io::Error),
    /// The process there has closed the connection before its answer.
    HungUp,
    /// The process there serves a job with this secret, but lets nobody in now.
    Later,
    Violation(Violation),
}

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoConnection::Socket(error) => match error.kind() {
                ErrorKind::ConnectionRefused => f.write_str("nobody listens there"),
                ErrorKind::TimedOut | ErrorKind::WouldBlock => f.write_str("no answer"),
                _ => error.fmt(f),
            },
            NoConnection::HungUp => f.write_str("it hung up without an answer"),
            NoConnection::Later => f.write_str(
                "a job with this SHMEM_JOB and secret runs there, which others may not join",
            ),
            NoConnection::Violation(violation) => violation.fmt(f),
        }
    }
}

impl From<io::Error> for NoConnection {
    fn from(error: io::Error) -> NoConnection {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                NoConnection::HungUp
            }
            _ => NoConnection::Socket(error),
        }
    }
}

impl From<Violation> for NoConnection {
    fn from(violation: Violation) -> NoConnection {
        NoConnection::Violation(violation)
    }
}

/// An attempt at one address that has failed.
struct FailedAttempt {
    /// The address, or the name that has none yet.
    address: String,
    failure: NoConnection,
}

/// The attempts of one round, one for each address.
struct Round(Vec<FailedAttempt>);

impl Round {
    /// Returns true if another round may succeed.
    fn may_succeed_later(&self, meeting: &MeetingAddress) -> bool {
        let mut failures = self.0.iter().map(|attempt| &attempt.failure);
        match meeting {
            // PE 0 may start later, or wait for a port that another process still has, such as that
            // of the last job, whose secret and version may be others. If PE 0 does not get the
            // port, it reports that itself.
            MeetingAddress::Named(_) => true,
            // The process with these addresses listened before anyone knew them. If it does not
            // now, it has ended.
            MeetingAddress::Addresses(_) => failures.any(|failure| match failure {
                NoConnection::Socket(error) => error.kind() != ErrorKind::ConnectionRefused,
                NoConnection::HungUp | NoConnection::Later => true,
                NoConnection::Violation(_) => false,
            }),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, FailedAttempt { address, failure }) in self.0.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{address}: {failure}")?;
        }
        Ok(())
    }
}

/// Connects this PE to the meeting of its job. Repeats attempts that may succeed later, for the
/// time `limit` and a little more. One process of the job on this machine prints a notice
/// meanwhile.
///
/// # Errors
/// [`Error::NoMeeting`] or [`Error::NobodyServes`].
pub(super) fn reach(route: &MeetingRoute, limit: Duration) -> Result<Reached, Error> {
    let meeting = &route.address;
    let mut attempts = Attempts::new(Instant::now());
    // Kept until the end of the attempts, since it keeps other processes from printing it as well.
    let mut notice = None;
    loop {
        let round = match try_all(route, attempts.n() == 0) {
            Ok(reached) => return Ok(reached),
            Err(round) => round,
        };

        let is_in_time = attempts.record_refusal(Instant::now(), limit + SLACK);
        let waited = attempts.elapsed();
        let tried = round.to_string();
        if !is_in_time || !round.may_succeed_later(meeting) {
            return Err(match meeting {
                MeetingAddress::Addresses(_) => Error::NoMeeting { tried },
                MeetingAddress::Named(_) => Error::NobodyServes { tried, waited },
            });
        }

        if notice.is_none() && waited >= notice_after(limit) {
            let text = waiting(route, limit, waited, &tried);
            notice = Some(Notice::print(&route.secret, &text));
        }
        attempts.pause();
    }
}

/// Tries each address of the meeting once.
fn try_all(route: &MeetingRoute, is_first_round: bool) -> Result<Reached, Round> {
    let addresses = match &route.address {
        MeetingAddress::Addresses(addresses) => addresses.clone(),
        MeetingAddress::Named(name) => match name.to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            // The name of a host that is starting may not be resolvable yet.
            Err(error) => {
                return Err(Round(vec![FailedAttempt {
                    address: name.clone(),
                    failure: NoConnection::Socket(error),
                }]));
            }
        },
    };

    let limit = if is_first_round && addresses.len() > 1 {
        FIRST_ATTEMPT
    } else {
        ATTEMPT
    };

    let mut failed = Vec::new();
    for address in addresses {
        match attempt(address, route, limit) {
            Ok(reached) => return Ok(reached),
            Err(failure) => failed.push(FailedAttempt {
                address: address.to_string(),
                failure,
            }),
        }
    }
    Err(Round(failed))
}

/// Connects to an address within the time `limit`, and does the handshake.
pub(super) fn attempt(
    address: SocketAddr,
    route: &MeetingRoute,
    limit: Duration,
) -> Result<Reached, NoConnection> {
    let stream = rushmem_connect::connect(&address, limit)?;

    let MeetingRoute { secret, pe, .. } = route;
    let mut connector = Connector::new(HANDSHAKE, secret, *pe, MEETING, nonce()?);
    // The limit is for both reads together, so a process that sends a byte now and then cannot
    // delay this one any longer.
    let mut reads = TimedReads::new(&stream, ATTEMPT);

    let mut greeting = [0; GREETING];
    reads.read_exact(&mut greeting)?;
    (&stream).write_all(&connector.claim(&greeting)?)?;

    let mut answer = [0; ANSWER];
    reads.read_exact(&mut answer)?;
    if connector.check(&answer)? == Answer::Deferral {
        return Err(NoConnection::Later);
    }

    // `TimedReads` has set a limit for each read.
    stream.set_read_timeout(None)?;
    let session = connector.session();
    Ok(Reached { stream, session })
}

/// Returns the notice of a process that has not reached the meeting for a while.
fn waiting(route: &MeetingRoute, limit: Duration, waited: Duration, tried: &str) -> String {
    let what = match &route.address {
        // PE 0 of a job with SHMEM_JOB connects to itself.
        MeetingAddress::Addresses(_) => {
            "to reach the process that serves the meeting of its job".to_owned()
        }
        MeetingAddress::Named(name) => format!("for PE 0 to serve the job at SHMEM_JOB={name}"),
    };
    format!(
        "PE {} has waited {:.0} s {what} ({tried}), and tries again until SHMEM_JOIN_LIMIT ({} s)",
        route.pe,
        waited.as_secs_f64(),
        limit.as_secs_f64()
    )
}

/// The right to print the notice, which one process of a job on this machine has at a time: a
/// socket with a name that only one socket can have.
struct Notice {
    _socket: Option<UnixDatagram>,
}

impl Notice {
    /// Prints the notice unless another process of the job on this machine has the right.
    fn print(secret: &Secret, text: &str) -> Notice {
        let socket = Notice::claim(secret);
        if socket.is_some() {
            print_line(text);
        }
        Notice { _socket: socket }
    }

    /// Returns the socket with the name of the notice, unless another process has it.
    fn claim(secret: &Secret) -> Option<UnixDatagram> {
        let name = NodeKey::new(secret, b"notice").name(0).ok()?;
        let name = UnixAddress::from_abstract_name(name.abstract_name()?).ok()?;
        UnixDatagram::bind_addr(&name).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(failures: Vec<NoConnection>) -> Round {
        let attempts = failures.into_iter().map(|failure| FailedAttempt {
            address: "address".to_owned(),
            failure,
        });
        Round(attempts.collect())
    }

    #[test]
    fn what_may_change_is_tried_again() {
        let named = MeetingAddress::Named("h1:5000".to_owned());
        let by_id = MeetingAddress::Addresses(Vec::new());
        let refused = || NoConnection::Socket(ErrorKind::ConnectionRefused.into());

        for failure in [refused(), NoConnection::HungUp, NoConnection::Later] {
            assert!(round(vec![failure]).may_succeed_later(&named));
        }
        assert!(!round(vec![refused()]).may_succeed_later(&by_id));
        assert!(round(vec![refused(), NoConnection::HungUp]).may_succeed_later(&by_id));

        // PE 0 waits until another job or program gives it the port, and says so if it does not.
        for violation in [
            Violation::Secret,
            Violation::Version(1),
            Violation::Greeting,
        ] {
            let of_another = round(vec![refused(), violation.into()]);
            assert!(of_another.may_succeed_later(&named));
            assert!(!of_another.may_succeed_later(&by_id));
        }
    }

    #[test]
    fn the_end_of_a_connection_is_no_wrong_secret() {
        for kind in [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset] {
            let failure = NoConnection::from(io::Error::from(kind));
            assert_eq!(failure.to_string(), "it hung up without an answer");
        }
    }
}
