//! The state that all wires of a PE and its service thread share: the peers, the connections to
//! them, and the service. Also puts threads that wait to sleep until data arrive.
//!
//! Locking: wires wait for the lock of a link, except in a poll, and so do the service when a peer
//! connects and the transport when it is dropped. Polls only try it. The lock is not held while
//! this PE connects. docs/architecture.md has the order of all locks.
#![allow(unsafe_code)]

use crate::addresses::Address;
use crate::connect::{ConnectRefusal, Connecting};
use crate::connection::{Connection, ConnectionEnd};
use crate::link::{PeerLink, Token};
use crate::receiving::ReceivingPe;
use crate::service::Service;
use crate::settings::{DESCRIPTORS, Tuning};
use rushmem_connect::Secret;
use rushmem_connect::handshake::Answer;
use rushmem_system::descriptors::made_by;
use rushmem_system::host::host_name;
use rushmem_system::lock::{lock, try_lock};
use rushmem_transport::engine::{NetworkPe, Registered, WireNetwork, keys};
use rushmem_transport::peers::Peers;
use rushmem_transport::progress::events::{AwaitedWord, SleepOn};
use rushmem_transport::progress::flush_list::FlushList;
use rushmem_transport::segments::heap_blocks::HeapBlock;
use rushmem_transport::{Error, LocalBuf, Open, Pe, Segment};
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The time for which a PE that was deferred, or has given up connecting, waits for the peer's
/// connection before it connects again. The peer that is preferred connects within milliseconds,
/// unless its host is busy.
const DEFERRED: Duration = Duration::from_millis(100);

/// Another PE of the job that has been used.
pub(crate) struct TcpPeer {
    address: Address,
    pub(crate) link: Mutex<PeerLink>,
}

/// The peers of this PE and the connections to them.
pub(crate) struct SharedState {
    pub(crate) secret: Secret,
    pub(crate) tuning: Tuning,
    pub(crate) receiving: ReceivingPe,
    pub(crate) peers: Peers<TcpPeer, ()>,
    /// Watches the sockets of this PE: listeners that are not muted, and accepted and open
    /// connections in use.
    pub(crate) epoll: OwnedFd,
    /// The PEs whose queued data are to be sent by a poll or by the service thread. Not in it: data
    /// for which the kernel has no room, and data that the next operation of the same call sends.
    held_back: FlushList<Pe>,
    pub(crate) service: Mutex<Service>,
}

impl SharedState {
    pub(crate) fn new(open: &Open, tuning: Tuning, service: Service) -> io::Result<SharedState> {
        Ok(SharedState {
            secret: open.secret.into(),
            tuning,
            receiving: ReceivingPe::new(open, host_name())?,
            peers: Peers::new(open.n_pes),
            epoll: made_by("epoll_create1", epoll::create(epoll::CreateFlags::CLOEXEC))?,
            held_back: FlushList::default(),
            service: Mutex::new(service),
        })
    }

    /// Returns a PE, which is known from its first use on.
    fn used(&self, pe: Pe) -> Result<&TcpPeer, Error> {
        keys::peer(self, pe).map(|peer| &peer.of_provider)
    }

    fn known(&self, pe: Pe) -> Option<&TcpPeer> {
        self.peers.known(pe).map(|peer| &peer.of_provider)
    }

    /// Connects to a PE, which blocks the caller, unless another thread or the peer is connecting.
    /// Returns false if the connection is not established yet: the caller tries again. Also returns
    /// true for a closed link, of which [`with_link`](SharedState::with_link) reports the end.
    pub(crate) fn reach(&self, pe: Pe) -> Result<bool, Error> {
        let peer = self.used(pe)?;
        {
            let mut link = lock(&peer.link);
            self.local().loss.check()?;
            match &mut *link {
                PeerLink::Unconnected(establishment) => {
                    if !establishment.begin(Instant::now()) {
                        return Ok(false);
                    }
                }
                PeerLink::Open(_) | PeerLink::Closed { .. } => return Ok(true),
            }
        }

        let may_stop = || {
            let is_awaited = match &*lock(&peer.link) {
                PeerLink::Unconnected(establishment) => !establishment.is_reserved(),
                PeerLink::Open(_) | PeerLink::Closed { .. } => false,
            };
            !is_awaited || self.local().loss.check().is_err()
        };

        let connecting = Connecting {
            secret: &self.secret,
            me: self.local().me,
            target: pe,
            tuning: &self.tuning,
        };
        let connected = connecting.connect(&peer.address, may_stop);

        let mut link = lock(&peer.link);
        let PeerLink::Unconnected(establishment) = &mut *link else {
            return Ok(true);
        };
        // This also ends the attempt of this thread, so that another may begin after the pause.
        establishment.defer(Instant::now() + DEFERRED);

        match connected {
            Ok(Some(socket)) => {
                let token = epoll::EventData::new_u64(Token::Link(pe.0).into());
                if let Err(e) = epoll::add(&self.epoll, &socket, token, EventFlags::IN) {
                    return Err(self.unwatched(e));
                }
                self.open(pe, &mut link, socket);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(_) if establishment.is_reserved() => Ok(false),
            Err(ConnectRefusal::Own(why)) => Err(self
                .local()
                .loss
                .of_self(&format!("it cannot connect to PE {pe}: {why}"))),
            Err(ConnectRefusal::Peer(why)) => Err(self.lose(pe, &why)),
        }
    }

    /// Opens a link with a connection, whose socket is watched already.
    fn open(&self, pe: Pe, link: &mut PeerLink, socket: TcpStream) {
        *link = PeerLink::Open(Box::new(Connection::new(socket, pe)));
        // Other threads may wait for the connection.
        self.wake_sleepers();
    }

    /// Returns the answer to a connecting peer that has proved to be PE `pe`; `None` if there will
    /// be no connection to it any more.
    pub(crate) fn answer(&self, pe: Pe) -> Option<Answer> {
        // Before this PE has the directory, the peer must try again.
        let Ok(peer) = self.used(pe) else {
            return Some(Answer::Deferral);
        };
        match &mut *lock(&peer.link) {
            PeerLink::Unconnected(establishment) => Some(establishment.answer(self.local().me, pe)),
            PeerLink::Open(_) => Some(Answer::Deferral),
            PeerLink::Closed { .. } => None,
        }
    }

    /// Ends the reservation for a connection from a peer: opens the link with `socket`, or, if that
    /// is `None` because the connection failed, allows other connections.
    pub(crate) fn end_reservation(&self, pe: Pe, socket: Option<TcpStream>) {
        let Some(peer) = self.known(pe) else {
            return;
        };

        let mut link = lock(&peer.link);
        // A link that was closed meanwhile uses no connection: dropping the socket tells the peer.
        let PeerLink::Unconnected(establishment) = &mut *link else {
            return;
        };

        match socket {
            Some(socket) => {
                self.watch(&socket, Token::Link(pe.0), false);
                let from = socket
                    .peer_addr()
                    .map_or_else(|e| e.to_string(), |addr| addr.to_string());
                rushmem_system::log::debug!(peer = pe.0, "accepted its connection from {from}");
                self.open(pe, &mut link, socket);
            }
            None => {
                establishment.release();
                self.wake_sleepers();
            }
        }
    }

    /// Calls `work` with the connection to a PE that was [reached](SharedState::reach), under the
    /// lock of its link. Then has what is left to do for the connection done: see
    /// [`follow_up`](SharedState::follow_up).
    pub(crate) fn with_link<T>(
        &self,
        pe: Pe,
        work: impl FnOnce(&mut Connection) -> Result<T, ConnectionEnd>,
    ) -> Result<T, Error> {
        self.with_link_of(pe, self.used(pe)?, work)
    }

    /// As [`with_link`](SharedState::with_link), for a caller that knows the `peer` of the PE.
    pub(crate) fn with_link_of<T>(
        &self,
        pe: Pe,
        peer: &TcpPeer,
        work: impl FnOnce(&mut Connection) -> Result<T, ConnectionEnd>,
    ) -> Result<T, Error> {
        let mut link = lock(&peer.link);
        self.local().loss.check()?;

        let done = match &mut *link {
            PeerLink::Open(connection) => {
                work(connection).inspect(|_| self.follow_up(pe, connection))
            }
            PeerLink::Closed { why, .. } => Err(ConnectionEnd::Broken(why.clone())),
            PeerLink::Unconnected(_) => unreachable!("a link is used once the PE was reached"),
        };

        done.map_err(|end| self.close(pe, &mut link, &end))
    }

    /// Reports the loss of a PE if the connection to it was closed. Returns the first loss, if
    /// there was one.
    pub(crate) fn confirm(&self, pe: Pe) -> Result<(), Error> {
        // A temporary guard: the lock is released before `with_link` waits for it.
        let is_unconnected = matches!(*lock(&self.used(pe)?.link), PeerLink::Unconnected(_));

        if is_unconnected {
            Ok(())
        } else {
            self.with_link(pe, |_| Ok(()))
        }
    }

    /// Closes a link that is in use, and reports the loss. Returns the first loss, which may be
    /// another one.
    fn close(&self, pe: Pe, link: &mut PeerLink, end: &ConnectionEnd) -> Error {
        let why = end.to_string();
        rushmem_system::log::debug!(peer = pe.0, "the connection ends: {why}");

        let error = match end {
            ConnectionEnd::Bye | ConnectionEnd::Broken(_) => self.lose(pe, &why),
            ConnectionEnd::Own(why) => self
                .local()
                .loss
                .of_self(&format!("at the connection to PE {pe} {why}")),
        };

        *link = match (std::mem::take(link), end) {
            // This PE is the cause, and reports it. The socket stays open, so that the peer does
            // not report the loss of this PE.
            (PeerLink::Open(connection), ConnectionEnd::Own(_)) => {
                self.unwatch(&connection.socket);
                PeerLink::Closed {
                    why,
                    _unused: Some(connection),
                }
            }
            _ => PeerLink::closed(why),
        };

        error
    }

    /// Called after work on a connection: wakes threads that wait for received data, and schedules
    /// the sending of queued data.
    fn follow_up(&self, pe: Pe, connection: &mut Connection) {
        if connection.take_changed_memory() {
            self.local().host.arrived(0);
        }

        if connection.take_received() {
            self.wake_sleepers();
        }

        if connection.is_blocked() != connection.watches_room {
            connection.watches_room = connection.is_blocked();
            self.watch(
                &connection.socket,
                Token::Link(pe.0),
                connection.watches_room,
            );
        }

        let is_sent_later = connection.is_blocked() || connection.sends_next;
        if connection.has_unsent() && !is_sent_later && !connection.is_listed {
            connection.is_listed = true;
            self.held_back.add(pe);
            self.local().state.request_flush();
        }
    }

    /// Has the kernel report arriving data on a watched socket, and room to send if `room`.
    pub(crate) fn watch(&self, socket: &TcpStream, token: Token, room: bool) {
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, room);

        let data = epoll::EventData::new_u64(token.into());
        if let Err(error) = epoll::modify(&self.epoll, socket, data, flags) {
            // No thread would serve the connection.
            self.unwatched(error);
        }
    }

    /// Reports that this PE cannot use its network, since the kernel does not watch one of its
    /// connections.
    fn unwatched(&self, error: Errno) -> Error {
        let why = DESCRIPTORS.explain(&error.into());
        self.local()
            .loss
            .of_self(&format!("the kernel refused to watch a connection: {why}"))
    }

    fn unwatch(&self, socket: &TcpStream) {
        // This fails only for a socket that is not watched, which is what is wanted.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Ends the use of a link, so that the memory of its requests is not accessed any more.
    pub(crate) fn abandon(&self, pe: Pe) {
        let Some(peer) = self.known(pe) else {
            return;
        };

        let mut link = lock(&peer.link);
        let why = "it was given up after another loss".to_owned();

        *link = match std::mem::take(&mut *link) {
            PeerLink::Open(connection) => {
                self.unwatch(&connection.socket);
                PeerLink::Closed {
                    why,
                    _unused: Some(connection),
                }
            }
            other => other,
        };
    }

    /// Returns true if queued data of a connection are to be sent by a poll or the service thread.
    pub(crate) fn has_held_back(&self) -> bool {
        self.held_back.any(|_| true)
    }

    /// Sends the queued data that are left to polls and the service thread, except on links that
    /// another thread is using. Returns true if such a link, or a new one, is left.
    pub(crate) fn send_held_back(&self) -> bool {
        let left = self.held_back.finish(|&mut pe| {
            let sent = self.try_link(pe, |connection| {
                connection.is_listed = false;
                connection.flush().map(|()| false)
            });
            // The thread that is using the link may not send again.
            sent.is_none()
        });
        left > 0
    }

    /// Works as [`with_link`](SharedState::with_link) if no other thread is using the link; returns
    /// `None` if one is. A link that is not open counts as idle: returns `Some(false)`. Returns
    /// `Some(true)` if the connection ends, which is no loss if the peer has said goodbye.
    pub(crate) fn try_link(
        &self,
        pe: Pe,
        work: impl FnOnce(&mut Connection) -> Result<bool, ConnectionEnd>,
    ) -> Option<bool> {
        let Some(peer) = self.known(pe) else {
            return Some(false);
        };

        let mut link = try_lock(&peer.link)?;
        let PeerLink::Open(connection) = &mut *link else {
            return Some(false);
        };

        match work(connection) {
            Ok(worked) => {
                self.follow_up(pe, connection);
                Some(worked)
            }
            Err(end) => {
                match end {
                    ConnectionEnd::Bye => {
                        rushmem_system::log::debug!(peer = pe.0, "the connection ends: {end}");
                        *link = PeerLink::closed(end.to_string());
                    }
                    _ => drop(self.close(pe, &mut link, &end)),
                }
                self.wake_sleepers();
                Some(true)
            }
        }
    }

    /// Wakes threads that sleep, since something for which they may wait has happened.
    pub(crate) fn wake_sleepers(&self) {
        self.local().state.record_event();
    }

    /// Sleeps until data arrive, an awaited word changes, or another thread records an event if no
    /// words are awaited; for `at_most` at the longest. Returns true if data have arrived that no
    /// thread has received.
    pub(crate) fn sleep_until_data(&self, awaited: &[AwaitedWord], at_most: Duration) -> bool {
        let sockets = [self.epoll.as_fd()];
        self.local()
            .state
            .sleep_until_event(SleepOn::Shared(&sockets), awaited, at_most)
    }
}

impl WireNetwork for SharedState {
    type Extra = ();
    type Peer = TcpPeer;
    /// The target's CPU finds its memory by itself.
    type Key = ();

    #[inline]
    fn local(&self) -> &NetworkPe {
        &self.receiving.local
    }

    #[inline]
    fn peers(&self) -> &Peers<TcpPeer, ()> {
        &self.peers
    }

    unsafe fn register(&self, _: Segment, _: LocalBuf) -> Result<Registered<()>, Error> {
        Ok(Registered {
            extra: (),
            key: Vec::new(),
        })
    }

    fn peer(&self, pe: Pe, address: &[u8]) -> Result<TcpPeer, Error> {
        Ok(TcpPeer {
            address: Address::decode(address).map_err(|_| Error::damaged(pe, "address"))?,
            link: Mutex::default(),
        })
    }

    fn key(&self, _: Pe, _: Segment, _: HeapBlock, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        let why = format!(
            "{why}; see what PE {pe} said last, and whether both hosts run and reach each other (firewall, \
             SHMEM_TCP_INTERFACE)"
        );
        let host = self.peers.host_of(pe);
        self.local().loss.of_peer(pe, host.as_deref(), &why)
    }
}
