//! Connects to a peer: tries its addresses, repeats refused attempts, and words the reason of a
//! failure.

use crate::addresses::{self, Address};
use crate::proto::HANDSHAKE;
use crate::settings::{DESCRIPTORS, Tuning};
use crate::socket::prepare;
use rushmem_connect::handshake::{ANSWER, Answer, CLAIM, Connector, GREETING, Violation};
use rushmem_connect::{Attempts, Secret, TimedReads, nonce};
use rushmem_system::descriptors::ran_out;
use rushmem_system::log::debug;
use rushmem_transport::Pe;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The limit of an attempt in the first round, if a peer has several addresses: an address that
/// does not answer must not delay the next.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);
/// The limit of other attempts. It bounds the time that a host which is down costs in each round;
/// with a shorter one, a host that answers late would count as down. After a round in which the
/// peer was silent, the limit doubles instead, up to [`LONGEST_ATTEMPT`].
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
    fn is_silence(&self) -> bool {
        matches!(self, ConnectFailure::Silent)
    }

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

/// An attempt to connect that has failed.
struct FailedAttempt {
    socket: SocketAddr,
    failure: ConnectFailure,
}

/// The addresses of a peer that have the same result.
struct SharedAnswer {
    /// Separated by commas.
    addresses: String,
    answer: String,
}

/// Returns the reason why there is no connection to a peer with the addresses `all`: the result of
/// each attempt of a round, and that no route leads to the other addresses. Addresses with the same
/// result are named together. If this PE ran out of descriptors, that alone is the reason.
fn refusal(mut round: Vec<FailedAttempt>, all: &[SocketAddr]) -> ConnectRefusal {
    for &socket in all {
        let is_tried = round.iter().any(|attempt| attempt.socket == socket);
        if !is_tried {
            let without_route: io::Error = ErrorKind::NetworkUnreachable.into();
            round.push(FailedAttempt {
                socket,
                failure: without_route.into(),
            });
        }
    }

    let mut answers: Vec<SharedAnswer> = Vec::new();
    for FailedAttempt { socket, failure } in &round {
        if let ConnectFailure::Socket(error) = failure
            && ran_out(error)
        {
            return ConnectRefusal::Own(DESCRIPTORS.explain(error));
        }

        let answer = failure.to_string();
        match answers.iter_mut().find(|known| known.answer == answer) {
            Some(known) => known.addresses += &format!(", {socket}"),
            None => answers.push(SharedAnswer {
                addresses: socket.to_string(),
                answer,
            }),
        }
    }

    let answers: Vec<String> = answers
        .into_iter()
        .map(|SharedAnswer { addresses, answer }| format!("{addresses}: {answer}"))
        .collect();
    ConnectRefusal::Peer(answers.join("; "))
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

/// A PE that connects to another one.
pub(crate) struct Connecting<'a> {
    pub(crate) secret: &'a Secret,
    pub(crate) me: Pe,
    pub(crate) target: Pe,
    pub(crate) tuning: &'a Tuning,
}

impl Connecting<'_> {
    /// Returns an authenticated connection to the target, or the reason why there is none. Returns
    /// `None` if the target defers, since it connects itself or has no directory yet, or if
    /// `may_stop` returns true after a round.
    pub(crate) fn connect(
        &self,
        address: &Address,
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
            let round = match self.try_all(&order, limit) {
                Ok(answered) => return Ok(answered),
                Err(round) => round,
            };
            if may_stop() {
                return Ok(None);
            }

            if round.iter().any(|attempt| attempt.failure.is_silence()) {
                // A stopped PE may be continued at any time, so there is no deadline.
                limit = LONGEST_ATTEMPT.min(limit * 2);
                continue;
            }

            // A PE that hangs up exists. It may lack descriptors, and reports that itself if this
            // lasts.
            let longest = if round.iter().any(|attempt| attempt.failure.is_hang_up()) {
                self.tuning.connect_limit
            } else {
                self.tuning.refusal_limit
            };

            let now = Instant::now();
            if !attempts.record_refusal(now, longest) {
                let refusal = refusal(round, &address.sockets);
                let ConnectRefusal::Peer(why) = refusal else {
                    return Err(refusal);
                };
                let tried = attempts.tried(self.me);
                return Err(ConnectRefusal::Peer(format!(
                    "{why}; {tried}; if the PE still runs there, set SHMEM_HOST_LIMIT to a longer \
                     time"
                )));
            }

            limit = limit.max(ATTEMPT);
            std::thread::sleep(attempts.next() - now);
        }
    }

    /// Tries each of these addresses once, until the target answers at one. Returns the connection,
    /// `None` if the target defers, or the attempts if all have failed.
    fn try_all(
        &self,
        order: &[SocketAddr],
        limit: Duration,
    ) -> Result<Option<TcpStream>, Vec<FailedAttempt>> {
        let peer = self.target.0;
        let mut round = Vec::new();
        for &socket in order {
            match self.attempt(socket, limit) {
                Ok(Some(stream)) => {
                    debug!(peer, "connected to {socket}");
                    return Ok(Some(stream));
                }
                Ok(None) => {
                    debug!(
                        peer,
                        "{socket} defers: it will connect itself, or is not ready yet"
                    );
                    return Ok(None);
                }
                Err(failure) => {
                    debug!(peer, "no connection to {socket}: {failure}");
                    round.push(FailedAttempt { socket, failure });
                }
            }
        }
        Err(round)
    }

    /// Connects to an address, and proves to the target that this is a PE of its job. Returns
    /// `None` if the target defers.
    fn attempt(
        &self,
        socket: SocketAddr,
        limit: Duration,
    ) -> Result<Option<TcpStream>, ConnectFailure> {
        let stream = rushmem_connect::connect(&socket, limit)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(limit))?;

        let mut reads = TimedReads::new(&stream, limit);
        let connector = Connector::new(HANDSHAKE, self.secret, self.me.0, self.target.0, nonce()?);
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

        prepare(&stream, self.tuning)?;
        Ok(Some(stream))
    }
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
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    use std::cell::Cell;
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::thread;

    /// Connects to a process that greets, perhaps waits for a claim, and closes
    /// the connection without reading one.
    fn dropped(waits_for_a_claim: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = listener.local_addr().expect("its address");
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut greeting = [0; GREETING];
                greeting[..7].copy_from_slice(b"rushtcp");
                stream.write_all(&greeting).expect("room for it");
                if waits_for_a_claim {
                    stream.peek(&mut [0; CLAIM]).expect("a claim");
                }
            });

            let tuning = Tuning::default();
            let tried = connecting(&secret(), &tuning).attempt(socket, LONGEST_ATTEMPT);
            tried.expect_err("nobody lets it in").to_string()
        })
    }

    fn secret() -> Secret {
        Secret::from([7; 32])
    }

    /// Returns PE 1, which connects to PE 0.
    fn connecting<'a>(secret: &'a Secret, tuning: &'a Tuning) -> Connecting<'a> {
        Connecting {
            secret,
            me: Pe(1),
            target: Pe(0),
            tuning,
        }
    }

    /// Returns a port that is taken, where nobody listens yet, so that connections are refused.
    fn bound() -> (OwnedFd, Address) {
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let name = getsockname(&bound).expect("bound");
        let sockets = vec![SocketAddr::try_from(name).expect("of IPv4")];
        (bound, Address { sockets })
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
        let secret = secret();
        let short = tuning(1, 30);
        let refused = |address: &Address| {
            let tried = connecting(&secret, &short).connect(address, || false);
            let Err(ConnectRefusal::Peer(why)) = tried else {
                panic!("{tried:?}")
            };
            why
        };

        let why = refused(&address);
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

        let why = refused(&several);
        for socket in &several.sockets {
            assert!(why.contains(&socket.to_string()), "{why}");
        }
        assert_eq!(why.matches("refused").count(), 1, "{why}");

        let rounds = Cell::new(0);
        let stops_late = || rounds.replace(rounds.get() + 1) == 10;
        let late = connecting(&secret, &tuning(30, 30)).connect(&address, stops_late);
        assert!(matches!(late, Ok(None)), "{late:?}");
        assert_eq!(rounds.get(), 11);
    }

    /// Lets in one PE, as PE 0 does.
    fn welcome(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut acceptor = Acceptor::new(HANDSHAKE, &secret(), 0, [1; 32])
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

            let tried = connecting(&secret(), &tuning(30, 30)).connect(&address, after_refusal);
            assert!(matches!(tried, Ok(Some(_))), "{tried:?}");
        });

        assert_eq!(refusals.get(), 3);
    }

    #[test]
    fn a_dropped_connection_is_reported() {
        for waits_for_a_claim in [false, true] {
            assert_eq!(
                dropped(waits_for_a_claim),
                "it hung up during the handshake"
            );
        }
    }
}
