//! The state of the service of this PE, which one thread at a time uses: the sockets that are no
//! links yet, and the peer that is expected to send next. [`progress`](crate::progress) has what
//! the service does.

use crate::expected::Expected;
use crate::link::Token;
use crate::settings::Tuning;
use rushmem_connect::handshake::Acceptor;
use rushmem_connect::strangers::{Shortage, StrangerLimits, Strangers, number_of};
use rushmem_transport::Pe;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// The service, which handles the connections and requests of peers.
pub(crate) struct Service {
    listeners: Vec<TcpListener>,
    /// The listeners are not watched: at the start, and from a failure to accept until the next
    /// round.
    is_muted: bool,
    pub(crate) strangers: Strangers,
    /// The connections that peers may use, by the descriptors of their sockets.
    pub(crate) reserved: HashMap<u32, Reserved>,
    pub(crate) expected: Expected,
}

/// A connection that a peer may use, before anything has arrived on it.
pub(crate) struct Reserved {
    pub(crate) socket: TcpStream,
    pub(crate) pe: Pe,
}

impl Service {
    pub(crate) fn new(listeners: Vec<TcpListener>, tuning: &Tuning) -> Service {
        let limits = StrangerLimits {
            time: tuning.handshake_limit,
            n: tuning.max_unauthenticated,
        };

        Service {
            listeners,
            is_muted: true,
            strangers: Strangers::new(limits),
            reserved: HashMap::new(),
            expected: Expected::default(),
        }
    }

    /// Accepts the connections that wait at the listener of this number, and has `epoll` watch
    /// them. If that fails, mutes the listeners until the next round, so that the kernel does not
    /// report the same connections over and over.
    pub(crate) fn accept(
        &mut self,
        number: u32,
        epoll: &OwnedFd,
        acceptor: impl Fn(&TcpStream) -> io::Result<Acceptor>,
    ) -> Result<(), Shortage> {
        let watch = |socket: &TcpStream| {
            let token = EventData::new_u64(Token::Stranger(number_of(socket)).into());
            epoll::add(epoll, socket, token, EventFlags::IN).is_ok()
        };
        let accept = |listener: &TcpListener| listener.accept().map(|(socket, _)| socket);

        let listener = &self.listeners[number as usize];
        let accepted = self.strangers.accept(listener, accept, acceptor, watch);
        if accepted.is_err() {
            self.mute(epoll);
        }
        accepted
    }

    fn mute(&mut self, epoll: &OwnedFd) {
        self.is_muted = true;
        for listener in &self.listeners {
            // This fails only for a socket that is not watched, which is what is wanted.
            let _ = epoll::delete(epoll, listener);
        }
    }

    /// Has `epoll` watch the listeners again, so that connections are accepted.
    pub(crate) fn unmute(&mut self, epoll: &OwnedFd) -> rustix::io::Result<()> {
        if self.is_muted {
            for (number, listener) in self.listeners.iter().enumerate() {
                let token = EventData::new_u64(Token::Listener(number as u32).into());
                match epoll::add(epoll, listener, token, EventFlags::IN) {
                    // Added in an earlier round, in which another listener failed.
                    Err(Errno::EXIST) => {}
                    added => added?,
                }
            }
            self.is_muted = false;
        }
        Ok(())
    }

    /// Ends the acceptance of connections, and drops those that are not open yet.
    pub(crate) fn leave(&mut self) {
        self.listeners.clear();
        self.strangers.clear();
        self.reserved.clear();
    }
}
