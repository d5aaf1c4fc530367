//! Connections that have not proved themselves yet.
//!
//! A guest gets a greeting and may send one message of a fixed size, within a time limit. Guests are
//! few: a new one in a full house shows the oldest the door, so that strangers who come and stay cannot
//! keep a peer out, which proves itself at once or comes again.

use crate::proto::{Acceptor, CLAIM};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A connection in its handshake.
pub(crate) struct Guest {
    pub(crate) socket: TcpStream,
    acceptor: Acceptor,
    claim: [u8; CLAIM],
    have: usize,
    /// When it came.
    pub(crate) since: Instant,
}

/// What became of a guest.
pub(crate) enum Verdict {
    /// Its message is not complete.
    Later,
    /// It is this PE.
    Peer(u32),
    /// It is nobody, or gone.
    Stranger,
}

impl Guest {
    /// Greet whoever connected.
    pub(crate) fn greet(socket: TcpStream, acceptor: Acceptor) -> io::Result<Guest> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        // A new socket's buffer has room for it.
        (&socket).write_all(&acceptor.greeting())?;
        Ok(Guest { socket, acceptor, claim: [0; CLAIM], have: 0, since: Instant::now() })
    }

    /// Read on; with a complete claim, judge it.
    pub(crate) fn listen(&mut self) -> Verdict {
        while self.have < CLAIM {
            match (&self.socket).read(&mut self.claim[self.have..]) {
                Ok(0) => return Verdict::Stranger,
                Ok(nbytes) => self.have += nbytes,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Verdict::Later,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Verdict::Stranger,
            }
        }
        match self.acceptor.judge(&self.claim) {
            Ok((pe, welcome)) if (&self.socket).write_all(&welcome).is_ok() => Verdict::Peer(pe),
            _ => Verdict::Stranger,
        }
    }
}
