//! Connecting to a peer, and what every connection's socket is set to.

use crate::interface;
use crate::proto::{Address, CLAIM, Connector, GREETING, Violation, WELCOME};
use crate::tuning::{DESCRIPTORS, Tuning};
use rushmem_transport::descriptors::ran_out;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One attempt may take this long in the first round, where a peer has several addresses: one that
/// swallows what is sent to it must not keep from the next.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);
/// And this long in others.
const ATTEMPT: Duration = Duration::from_secs(5);
/// And this long, in the end, with a peer whose host answers for it.
const PATIENT_ATTEMPT: Duration = Duration::from_secs(80);
/// Rounds over all addresses that were refused at once: nobody is there.
const ROUNDS: u32 = 8;
/// Pause after the first round; it doubles.
const PAUSE: Duration = Duration::from_millis(5);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(640);

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// This PE lacks what it takes.
    Own(String),
    /// The peer, or the way to it.
    Peer(String),
}

/// Why an attempt failed.
enum Failure {
    Socket(io::Error),
    Peer(Violation),
    /// Its host took the connection, but the PE does not speak: it may be stopped.
    Silent,
}

impl Failure {
    /// Closed while it had not read all, a connection is reset.
    fn is_hang_up(&self) -> bool {
        let Failure::Socket(error) = self else { return false };
        matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        )
    }

    fn refusal(&self, at: SocketAddr) -> Refusal {
        match self {
            Failure::Socket(error) if ran_out(error) => Refusal::Own(DESCRIPTORS.explain(error)),
            other => Refusal::Peer(format!("{at}: {other}")),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Socket(error)
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Failure {
        Failure::Peer(violation)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            hang_up if hang_up.is_hang_up() => f.write_str("it hung up during the handshake"),
            Failure::Socket(error) => f.write_str(&DESCRIPTORS.explain(error)),
            Failure::Peer(violation) => violation.fmt(f),
            Failure::Silent => f.write_str("it is silent"),
        }
    }
}

/// A connection to PE `target` over which both have proved themselves; or why there is none.
pub(crate) fn dial(
    secret: [u8; 32],
    me: u32,
    target: u32,
    address: &Address,
    tuning: &Tuning,
) -> Result<TcpStream, Refusal> {
    let deadline = Instant::now() + tuning.dial_limit;
    let order = interface::by_route(&address.sockets);
    let no_route = format!("there is no route to any of its {} addresses", address.sockets.len());
    let mut why = Refusal::Peer(no_route);
    let mut pause = PAUSE;
    let mut limit = if order.len() > 1 { FIRST_ATTEMPT } else { ATTEMPT };
    let mut rounds = 0;
    while rounds < ROUNDS {
        let (mut silent, mut hung_up) = (false, false);
        for &socket in &order {
            match attempt(secret, me, target, socket, limit, tuning) {
                Ok(stream) => return Ok(stream),
                Err(failure) => {
                    silent |= matches!(failure, Failure::Silent);
                    hung_up |= failure.is_hang_up();
                    why = failure.refusal(socket);
                }
            }
        }
        if silent {
            // A stopped PE goes on some day, so there is no deadline for it.
            limit = PATIENT_ATTEMPT.min(limit * 2);
            continue;
        }
        if Instant::now() >= deadline {
            return Err(why);
        }
        // One that hangs up is there. It may lack descriptors, and says so itself if that does not change.
        rounds += u32::from(!hung_up);
        limit = limit.max(ATTEMPT);
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    Err(why)
}

fn attempt(
    secret: [u8; 32],
    me: u32,
    target: u32,
    socket: SocketAddr,
    limit: Duration,
    tuning: &Tuning,
) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect_timeout(&socket, limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let mut connector = Connector::new(secret, me, target, nonce()?);
    let mut greeting = [0; GREETING];
    stream.read_exact(&mut greeting).map_err(or_silent)?;
    let claim: [u8; CLAIM] = connector.claim(&greeting)?;
    stream.write_all(&claim)?;
    let mut welcome = [0; WELCOME];
    stream.read_exact(&mut welcome).map_err(or_silent)?;
    connector.check(&welcome)?;
    prepare(&stream, tuning)?;
    Ok(stream)
}

/// A read that ran out of time met a silent peer.
fn or_silent(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Silent,
        _ => Failure::Socket(error),
    }
}

/// Random bytes for a handshake.
pub(crate) fn nonce() -> io::Result<[u8; 32]> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(nonce)
}

/// Set a connection that is past its handshake up for traffic: nothing blocks, nothing is held back,
/// and a host that is gone is noticed while nothing is sent.
pub(crate) fn prepare(stream: &TcpStream, tuning: &Tuning) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    // In whole seconds: the kernel asks once a third of the limit has passed, then three times more.
    let third = (tuning.silence_limit / 3).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(stream, third)?;
    sockopt::set_tcp_keepintvl(stream, (third / 2).max(Duration::from_secs(1)))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    if let Some(nbytes) = tuning.socket_buffers {
        sockopt::set_socket_send_buffer_size(stream, nbytes)?;
        sockopt::set_socket_recv_buffer_size(stream, nbytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Try whoever greets, perhaps waits for a claim, and closes its door without reading one.
    fn shown_out(waits_for_a_claim: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = listener.local_addr().expect("its address");
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut guest, _) = listener.accept().expect("a guest");
                let mut greeting = [0; GREETING];
                greeting[..8].copy_from_slice(b"rushtcp\x01");
                guest.write_all(&greeting).expect("room for it");
                if waits_for_a_claim {
                    guest.peek(&mut [0; CLAIM]).expect("a claim");
                }
            });
            let tried = attempt([7; 32], 1, 0, socket, PATIENT_ATTEMPT, &Tuning::default());
            tried.expect_err("nobody lets it in").to_string()
        })
    }

    #[test]
    fn whoever_is_shown_out_says_so() {
        for waits_for_a_claim in [false, true] {
            assert_eq!(shown_out(waits_for_a_claim), "it hung up during the handshake");
        }
    }
}
