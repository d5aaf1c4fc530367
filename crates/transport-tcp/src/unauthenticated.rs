//! Connections whose other end has not proved yet that it is a PE of this job.
//!
//! It is sent a greeting and may send one message of a fixed size, within a time limit. Such
//! connections are few: at the limit the oldest is dropped for a new one, so that a client that
//! connects and sends nothing cannot keep a peer out, which proves itself at once or connects
//! again.

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
    /// When it came.
    pub(crate) since: Instant,
}

/// The state of the claim that the other end of a connection makes.
pub(crate) enum Claim {
    /// Its message is not complete.
    Incomplete,
    /// It is this PE, and awaits an [`answer`](Unauthenticated::answer).
    Peer(u32),
    /// It is no PE of this job, or gone.
    Refused,
}

impl Unauthenticated {
    /// Greets the client that connected.
    pub(crate) fn greet(socket: TcpStream, acceptor: Acceptor) -> io::Result<Unauthenticated> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        // A new socket's buffer has room for it.
        (&socket).write_all(&acceptor.greeting())?;
        Ok(Unauthenticated { socket, acceptor, claim: [0; CLAIM], have: 0, since: Instant::now() })
    }

    /// Reads on, and decides once the message is complete.
    pub(crate) fn listen(&mut self) -> Claim {
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
            // A peer that stopped waiting may have sent another claim, which counts instead.
            Ok(pe) if !matches!(sys::look(&self.socket), Ok(Some(false)) | Err(_)) => {
                Claim::Peer(pe)
            }
            _ => Claim::Refused,
        }
    }

    /// Answers a claim that was right; the connection is authenticated now.
    pub(crate) fn answer(self, answer: HandshakeAnswer) -> io::Result<TcpStream> {
        (&self.socket).write_all(&self.acceptor.answer(answer))?;
        Ok(self.socket)
    }
}
