//! Connects to a peer: tries its addresses, repeats refused attempts, and words the reason of a
//! failure.

use crate::addresses::{self, Address};
use crate::proto::HANDSHAKE;
use crate::settings::{DESCRIPTORS, Tuning};
use crate::socket::prepare;
use rushmem_connect::handshake::{ANSWER, Answer, CLAIM, Connector, GREETING, Violation};
use rushmem_connect::{Attempts, Secret, TimedReads, nonce};
use rushmem_system::descriptors::ran_out;
use rushmem_transport::Pe;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The limit of an attempt in the first round, if a peer has several addresses: an address that
/// does not answer must not delay the next.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);
/// The limit of other attempts. After a round in which the peer was silent, the limit doubles
/// instead, up to [`LONGEST_ATTEMPT`].
const ATTEMPT: Duration = Duration::from_secs(5);
/// The longest limit of an attempt, to a peer that is silent although its host accepts connections:
/// the fourth doubling of [`ATTEMPT`]. Such a peer may be stopped, and each attempt costs it a
/// connection.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(80);

/// Why no connection was made.
#[derive(Debug)]
pub(crate) enum ConnectRefusal {
    /// This PE cannot connect.
    Own(String),
    /// The peer refuses, or there is no path to it.
    Peer(String),
}

/// Why an attempt failed.
enum ConnectFailure {
    Socket(io::Error),
    Peer(Violation),
    /// The host has accepted the connection, but the PE does not answer: it may be stopped.
    Silent,
}

impl ConnectFailure {
    /// Returns true if the peer has closed the connection. A connection with unread data is reset
    /// then.
    fn is_hang_up(&self) -> bool {
        let ConnectFailure::Socket(error) = self else {
            return false;
        };
        matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        )
    }
}

/// Returns the reason why there is no connection to a peer with the addresses `all`: the result of
/// each attempt of a round, and that no route leads to the other addresses. Addresses with the same
/// result are named together. If this PE ran out of descriptors, that alone is the reason.
fn refusal(mut round: Vec<(SocketAddr, ConnectFailure)>, all: &[SocketAddr]) -> ConnectRefusal {
    for at in all {
        let is_tried = round.iter().any(|(tried, _)| tried == at);
        if !is_tried {
            let without_route = ErrorKind::NetworkUnreachable.into();
            round.push((*at, ConnectFailure::Socket(without_route)));
        }
    }

    let mut answers: Vec<(String, String)> = Vec::new();
    for (at, failure) in &round {
        match failure {
            ConnectFailure::Socket(error) if ran_out(error) => {
                return ConnectRefusal::Own(DESCRIPTORS.explain(error));
            }
            _ => {}
        }
        let answer = failure.to_string();
        match answers.iter_mut().find(|(_, other)| *other == answer) {
            Some((addresses, _)) => *addresses += &format!(", {at}"),
            None => answers.push((at.to_string(), answer)),
        }
    }

    let answers = answers
        .into_iter()
        .map(|(addresses, answer)| format!("{addresses}: {answer}"));
    ConnectRefusal::Peer(answers.collect::<Vec<_>>().join("; "))
}

impl From<io::Error> for ConnectFailure {
    fn from(error: io::Error) -> ConnectFailure {
        ConnectFailure::Socket(error)
    }
}

impl From<Violation> for ConnectFailure {
    fn from(violation: Violation) -> ConnectFailure {
        ConnectFailure::Peer(violation)
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            hang_up if hang_up.is_hang_up() => f.write_str("it hung up during the handshake"),
            ConnectFailure::Socket(error) => f.write_str(&explained(error)),
            ConnectFailure::Peer(violation) => violation.fmt(f),
            ConnectFailure::Silent => f.write_str("it is silent"),
        }
    }
}

/// Returns the text of an error of connecting, with a likely cause if there is one.
fn explained(error: &io::Error) -> String {
    match error.kind() {
        // `InvalidInput` stands for a route that the administrator has blocked.
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::InvalidInput => {
            let down = rushmem_system::interfaces::down();
            let of_own = if down.is_empty() {
                String::new()
            } else {
                format!(
                    ", and of this host's interfaces {} is down (`ip link set {} up`)",
                    down.join(", "),
                    down[0]
                )
            };
            format!("no route leads there ({error}){of_own}")
        }
        ErrorKind::TimedOut => {
            "nothing answers there: its host is down, or a firewall drops what is sent".to_owned()
        }
        _ => DESCRIPTORS.explain(error),
    }
}

/// Returns an authenticated connection to PE `target`, or the reason why there is none. Returns
/// `None` if the target defers, since it connects itself or has no directory yet, or if `may_stop`
/// returns true after a round.
pub(crate) fn connect(
    secret: &Secret,
    me: Pe,
    target: Pe,
    address: &Address,
    tuning: &Tuning,
    may_stop: impl Fn() -> bool,
) -> Result<Option<TcpStream>, ConnectRefusal> {
    let order = addresses::by_route(&address.sockets);
    let mut limit = if order.len() > 1 {
        FIRST_ATTEMPT
    } else {
        ATTEMPT
    };

    let mut attempts = Attempts::new(Instant::now());
    loop {
        let mut silent = false;
        let mut hung_up = false;
        let mut round = Vec::new();
        for &socket in &order {
            match attempt(secret, me, target, socket, limit, tuning) {
                Ok(Some(stream)) => {
                    rushmem_system::log::debug!(peer = target.0, "connected to {socket}");
                    return Ok(Some(stream));
                }
                Ok(None) => {
                    rushmem_system::log::debug!(
                        peer = target.0,
                        "{socket} defers: it will connect itself"
                    );
                    return Ok(None);
                }
                Err(failure) => {
                    rushmem_system::log::debug!(
                        peer = target.0,
                        "no connection to {socket}: {failure}"
                    );
                    silent |= matches!(failure, ConnectFailure::Silent);
                    hung_up |= failure.is_hang_up();
                    round.push((socket, failure));
                }
            }
        }

        if may_stop() {
            return Ok(None);
        }

        if silent {
            // A stopped PE may be continued at any time, so there is no deadline.
            limit = LONGEST_ATTEMPT.min(limit * 2);
            continue;
        }

        // A PE that hangs up exists. It may lack descriptors, and reports that itself if this
        // lasts.
        let longest = if hung_up {
            tuning.connect_limit
        } else {
            tuning.refusal_limit
        };

        let now = Instant::now();
        if !attempts.record_refusal(now, longest) {
            return Err(match refusal(round, &address.sockets) {
                ConnectRefusal::Peer(why) => {
                    let tried = attempts.tried(me);
                    ConnectRefusal::Peer(format!(
                        "{why}; {tried}; if the PE still runs there, set SHMEM_HOST_LIMIT to a \
                         longer time"
                    ))
                }
                own => own,
            });
        }

        limit = limit.max(ATTEMPT);
        std::thread::sleep(attempts.next() - now);
    }
}

fn attempt(
    secret: &Secret,
    me: Pe,
    target: Pe,
    socket: SocketAddr,
    limit: Duration,
    tuning: &Tuning,
) -> Result<Option<TcpStream>, ConnectFailure> {
    let stream = TcpStream::connect_timeout(&socket, limit)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(limit))?;

    let mut reads = TimedReads::new(&stream, limit);
    let connector = Connector::new(HANDSHAKE, secret, me.0, target.0, nonce()?);
    let mut connector = connector.bound_to(socket);

    let mut greeting = [0; GREETING];
    reads.read_exact(&mut greeting).map_err(or_silent)?;
    let claim: [u8; CLAIM] = connector.claim(&greeting)?;
    (&stream).write_all(&claim)?;

    let mut answer = [0; ANSWER];
    reads.read_exact(&mut answer).map_err(or_silent)?;
    if connector.check(&answer)? == Answer::Deferral {
        return Ok(None);
    }

    prepare(&stream, tuning)?;
    Ok(Some(stream))
}

/// Returns the failure for the error of a read; a timeout means a silent peer.
fn or_silent(error: io::Error) -> ConnectFailure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ConnectFailure::Silent,
        _ => ConnectFailure::Socket(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_connect::handshake::Acceptor;
    use rushmem_system::formats::TCP_HANDSHAKE;
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    use std::cell::Cell;
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::thread;

    /// Connects to a process that greets with this version, perhaps waits for a claim, and closes
    /// the connection without reading one.
    fn dropped(version: u8, waits_for_a_claim: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = listener.local_addr().expect("its address");
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut greeting = [0; GREETING];
                greeting[..7].copy_from_slice(b"rushtcp");
                greeting[7] = version;
                stream.write_all(&greeting).expect("room for it");
                if waits_for_a_claim {
                    stream.peek(&mut [0; CLAIM]).expect("a claim");
                }
            });

            let tried = attempt(
                &Secret::from([7; 32]),
                Pe(1),
                Pe(0),
                socket,
                LONGEST_ATTEMPT,
                &Tuning::default(),
            );
            tried.expect_err("nobody lets it in").to_string()
        })
    }

    /// Returns a port that is taken, where nobody listens yet, so that connections are refused.
    fn bound() -> (OwnedFd, Address) {
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let at = SocketAddr::try_from(getsockname(&bound).expect("bound")).expect("of IPv4");
        (bound, Address { sockets: vec![at] })
    }

    fn tuning(refusal: u64, connect: u64) -> Tuning {
        Tuning {
            refusal_limit: Duration::from_secs(refusal),
            connect_limit: Duration::from_secs(connect),
            ..Tuning::default()
        }
    }

    #[test]
    fn a_refused_peer_is_tried_again_with_pauses() {
        let (_bound, address) = bound();
        let refused = |tuning: &Tuning, may_stop: &dyn Fn() -> bool| {
            let tried = connect(
                &Secret::from([7; 32]),
                Pe(1),
                Pe(0),
                &address,
                tuning,
                may_stop,
            );
            let Err(ConnectRefusal::Peer(why)) = tried else {
                panic!("{tried:?}")
            };
            why
        };

        let why = refused(&tuning(1, 30), &|| false);
        for words in [
            "refused",
            "PE 1 has tried ",
            " times within 1.",
            "SHMEM_HOST_LIMIT",
        ] {
            assert!(why.contains(words), "{words}: {why}");
        }

        let elsewhere = SocketAddr::from(([127, 0, 0, 2], address.sockets[0].port()));
        let several = Address {
            sockets: vec![address.sockets[0], elsewhere],
        };

        let tried = connect(
            &Secret::from([7; 32]),
            Pe(1),
            Pe(0),
            &several,
            &tuning(1, 30),
            || false,
        );
        let Err(ConnectRefusal::Peer(why)) = tried else {
            panic!("{tried:?}")
        };
        assert!(
            several
                .sockets
                .iter()
                .all(|at| why.contains(&at.to_string())),
            "{why}"
        );
        assert_eq!(why.matches("refused").count(), 1, "{why}");

        let rounds = Cell::new(0);
        let stops_late = || rounds.replace(rounds.get() + 1) == 10;
        let late = connect(
            &Secret::from([7; 32]),
            Pe(1),
            Pe(0),
            &address,
            &tuning(30, 30),
            stops_late,
        );
        assert!(matches!(late, Ok(None)), "{late:?}");
        assert_eq!(rounds.get(), 11);
    }

    /// Lets in one PE, as PE 0 does.
    fn welcome(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut acceptor = Acceptor::new(HANDSHAKE, &Secret::from([7; 32]), 0, [1; 32])
            .bound_to(listener.local_addr().expect("bound"));

        stream.write_all(&acceptor.greeting()).expect("room for it");
        let mut claim = [0; CLAIM];
        stream.read_exact(&mut claim).expect("a claim");
        assert_eq!(acceptor.check(&claim).expect("the secret of the job"), 1);

        stream
            .write_all(&acceptor.answer(Answer::Welcome))
            .expect("room for it");
    }

    #[test]
    fn a_peer_that_refused_at_first_is_reached_by_a_later_attempt() {
        let (bound, address) = bound();
        let listener = TcpListener::from(bound);
        let refusals = Cell::new(0);

        thread::scope(|scope| {
            // Called after each round of attempts that has failed.
            let after_refusal = || {
                refusals.set(refusals.get() + 1);
                if refusals.get() == 3 {
                    listen(&listener, 1).expect("a port that is taken");
                    scope.spawn(|| welcome(&listener));
                }
                false
            };

            let tried = connect(
                &Secret::from([7; 32]),
                Pe(1),
                Pe(0),
                &address,
                &tuning(30, 30),
                after_refusal,
            );
            assert!(matches!(tried, Ok(Some(_))), "{tried:?}");
        });

        assert_eq!(refusals.get(), 3);
    }

    #[test]
    fn a_dropped_connection_is_reported() {
        for waits_for_a_claim in [false, true] {
            assert_eq!(
                dropped(TCP_HANDSHAKE.version, waits_for_a_claim),
                "it hung up during the handshake"
            );
        }
    }

    /// The version of the handshake is also that of the messages.
    #[test]
    fn a_pe_with_other_messages_is_refused_by_the_version() {
        let older = TCP_HANDSHAKE.version - 1;
        let refused = dropped(older, false);
        assert!(
            refused.contains(&format!("it has version {older} of the protocol")),
            "{refused}"
        );
    }
}
