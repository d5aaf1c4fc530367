//! Connections whose other end has not proved yet that it is a PE of this job.
//!
//! The other end receives a greeting and may send one message of fixed size within a time limit.
//! The number of such connections is limited: the oldest is dropped for a new one, so that clients
//! that connect and send nothing cannot keep a peer out. A peer proves its identity at once, or
//! connects again.

use crate::proto::{Acceptor, CLAIM, HandshakeAnswer};
use crate::sys;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A connection in its handshake.
pub(crate) struct Unauthenticated {
    pub(crate) socket: TcpStream,
    acceptor: Acceptor,
    claim: [u8; CLAIM],
    have: usize,
    /// When the connection was accepted.
    pub(crate) since: Instant,
}

/// The claim of the other end of a connection to be a PE of the job.
pub(crate) enum Claim {
    /// The message has not arrived completely.
    Incomplete,
    /// The other end is the PE of this number, and awaits an [`answer`](Unauthenticated::answer).
    Peer(u32),
    /// The other end is no PE of this job, or has closed the connection.
    Refused,
}

impl Unauthenticated {
    /// Greets the client that connected.
    pub(crate) fn greet(socket: TcpStream, acceptor: Acceptor) -> io::Result<Unauthenticated> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        // The buffer of a new socket has room for the greeting.
        (&socket).write_all(&acceptor.greeting())?;
        Ok(Unauthenticated {
            socket,
            acceptor,
            claim: [0; CLAIM],
            have: 0,
            since: Instant::now(),
        })
    }

    /// Reads the bytes of the message that have arrived, and checks the message once it is
    /// complete.
    pub(crate) fn read_claim(&mut self) -> Claim {
        while self.have < CLAIM {
            match (&self.socket).read(&mut self.claim[self.have..]) {
                Ok(0) => return Claim::Refused,
                Ok(nbytes) => self.have += nbytes,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Claim::Incomplete,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Claim::Refused,
            }
        }
        match self.acceptor.check(&self.claim) {
            // A peer that has stopped waiting may have closed this connection and claimed on
            // another one.
            Ok(pe) if !matches!(sys::peek(&self.socket), Ok(Some(false)) | Err(_)) => {
                Claim::Peer(pe)
            }
            _ => Claim::Refused,
        }
    }

    /// Answers a valid claim. Returns the socket, which is authenticated.
    pub(crate) fn answer(self, answer: HandshakeAnswer) -> io::Result<TcpStream> {
        (&self.socket).write_all(&self.acceptor.answer(answer))?;
        Ok(self.socket)
    }
}
