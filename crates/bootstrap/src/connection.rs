//! The connection of a PE to `oshrun`, to another PE of its node, or to the meeting of its job. Any
//! thread can send whole frames, and one thread receives.
//!
//! The contents and the order of messages are left to the callers.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rushmem_system::lock::lock;
use rustix::io::Errno;
use rustix::net::SendFlags;

use rushmem_connect::sealed::{Opener, Sealer, Session};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::proto::{self, Decoder};

/// The sending half, shared by all threads of the PE.
#[derive(Debug)]
pub(crate) struct Sender {
    stream: OwnedFd,
    /// The sealer of a sealed connection. Locked while a frame is sent, sealed or not, so that the
    /// frames of several threads are not mixed.
    sealer: Mutex<Option<Sealer>>,
}

impl Sender {
    /// Sends one message, as [`send_all`] does.
    pub(crate) fn send<M: Serialize>(&self, message: &M) -> io::Result<()> {
        let frame = proto::encode(message);
        let mut sealer = lock(&self.sealer);
        match &mut *sealer {
            Some(sealer) => send_all(&self.stream, &sealer.seal(&frame)),
            None => send_all(&self.stream, &frame),
        }
    }
}

/// Sends all of `bytes`. If the peer has closed the connection, returns an error without a SIGPIPE.
pub(crate) fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A connection that sends and receives frames.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Arc<Sender>,
    opener: Option<Opener>,
    decoder: Decoder,
    /// Number of bytes received so far.
    received: u64,
}

impl Connection {
    pub(crate) fn new(stream: impl Into<OwnedFd>) -> Connection {
        Connection::of(stream.into(), None)
    }

    /// Returns the end of a connection whose frames are sealed.
    pub(crate) fn sealed(stream: impl Into<OwnedFd>, session: Session) -> Connection {
        Connection::of(stream.into(), Some(session))
    }

    fn of(stream: OwnedFd, session: Option<Session>) -> Connection {
        let (sealer, opener) = session.map(Session::split).unzip();
        let sender = Arc::new(Sender {
            stream,
            sealer: Mutex::new(sealer),
        });
        Connection {
            sender,
            opener,
            decoder: Decoder::new(proto::MAX_FROM_LAUNCHER),
            received: 0,
        }
    }

    pub(crate) fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    /// Returns the number of bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn send<M: Serialize>(&self, message: &M) -> Result<(), Error> {
        self.sender.send(message).map_err(Error::Lost)
    }

    /// Waits for the peer's next message.
    pub(crate) fn receive<M: DeserializeOwned>(&mut self) -> Result<M, Error> {
        let mut bytes = [0; 16 * 1024];
        loop {
            if let Some(message) = self.decoder.take()? {
                return Ok(message);
            }

            match rustix::io::read(&self.sender.stream, &mut bytes) {
                Ok(0) => return Err(Error::Lost(ErrorKind::UnexpectedEof.into())),
                Ok(nbytes) => {
                    self.received += nbytes as u64;
                    self.push(&bytes[..nbytes])?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::Lost(error.into())),
            }
        }
    }

    /// Opens bytes that have arrived, if they are sealed, and decodes them.
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(opener) = &mut self.opener else {
            self.decoder.push(bytes);
            return Ok(());
        };

        opener.received(bytes);
        while let Some(piece) = opener.take()? {
            self.decoder.push(&piece);
        }
        Ok(())
    }
}
