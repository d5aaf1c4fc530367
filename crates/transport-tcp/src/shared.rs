//! What all endpoints of a PE and its service thread share: the peers, the connections to them, and who is told of what.
//!
//! Locks: a link is waited for by endpoints and tried by everyone else; nobody waits for a lock while holding another,
//! except for the list of what is unfinished, which is held for a few instructions. A link may be held for seconds, while it is
//! connected. This file must never know what peers ask of this PE.

use crate::connect::{self, Refusal};
use crate::connection::End;
use crate::news::News;
use crate::origin::Origin;
use crate::proto::Address;
use crate::settings::Tuning;
use rushmem_transport::kit::attendance::Attendance;
use rushmem_transport::kit::lock::{lock, try_lock};
use rushmem_transport::kit::loss::Loss;
use rushmem_transport::kit::peers::{Peers, damaged};
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::unfinished::Unfinished;
use rushmem_transport::{Error, Host, Open, Pe, Segment, Told};
use rustix::event::epoll::{self, EventFlags};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What was copied leaves within about this time at the latest; when the PE has just stopped to wait in
/// quick succession, by when the service thread has noticed that.
pub(crate) const HELD_BACK: Duration = Duration::from_micros(50);

/// A PE as an origin sees it that has used it.
pub(crate) struct Peer {
    /// Bytes of its segments.
    pub(crate) sizes: [u64; Segment::COUNT],
    pub(crate) link: Mutex<Link>,
}

impl Peer {
    /// From what `pe` told.
    ///
    /// # Errors
    /// When no PE of this build would tell that.
    pub(crate) fn new(pe: Pe, told: Told<'_>) -> Result<Peer, Error> {
        let mut sizes = [0; Segment::COUNT];
        for (size, key) in sizes.iter_mut().zip(told.keys).filter(|(_, key)| !key.is_empty()) {
            *size = u64::from_le_bytes(key.try_into().map_err(|_| damaged(pe, "key"))?);
        }
        Ok(Peer { sizes, link: Mutex::default() })
    }
}

/// Where `pe` listens, from what it told.
///
/// # Errors
/// When no PE of this build would tell that.
pub(crate) fn address_of(pe: Pe, told: Told<'_>) -> Result<Address, Error> {
    Address::decode(told.address)
        .map_err(|error| Error::Invalid(format!("PE {pe} cannot be connected: {error}")))
}

/// The connection to a PE.
#[derive(Default)]
pub(crate) enum Link {
    /// Not needed so far.
    #[default]
    Idle,
    Open(Box<Origin>),
    /// Gone, and why. A connection that is only not used any more stays open, so that its peer does not
    /// take this PE for lost.
    Closed {
        why: String,
        _unused: Option<Box<Origin>>,
    },
}

impl Link {
    /// Gone.
    pub(crate) fn closed(why: String) -> Link {
        Link::Closed { why, _unused: None }
    }
}

/// One PE's share in the network.
pub(crate) struct Shared {
    pub(crate) me: Pe,
    pub(crate) secret: [u8; 32],
    pub(crate) oversubscribed: bool,
    pub(crate) tuning: Tuning,
    pub(crate) host: Arc<dyn Host>,
    /// This PE's address; its host's name goes into messages.
    pub(crate) address: Address,
    pub(crate) segments: Segments,
    pub(crate) peers: Peers<Peer>,
    /// Every socket of this PE.
    pub(crate) epoll: OwnedFd,
    pub(crate) attendance: Attendance,
    pub(crate) loss: Loss,
    news: News,
    /// PEs to which something is to be sent that nobody has sent yet.
    unfinished: Unfinished<Pe>,
}

impl Shared {
    pub(crate) fn new(open: &Open, tuning: Tuning, address: Address) -> io::Result<Shared> {
        Ok(Shared {
            me: open.pe,
            secret: open.secret,
            oversubscribed: open.oversubscribed,
            tuning,
            host: Arc::clone(&open.host),
            loss: Loss::new(open.pe, address.host.clone(), Arc::clone(&open.host)),
            address,
            segments: Segments::default(),
            peers: Peers::new(open.n_pes),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            attendance: Attendance::new()?,
            news: News::new()?,
            unfinished: Unfinished::default(),
        })
    }

    /// A PE is gone: from now on everything fails. Returns the first loss.
    pub(crate) fn lose(&self, pe: Pe, why: &str) -> Error {
        let address = self.peers.told(pe).and_then(|told| address_of(pe, told).ok());
        let why = format!(
            "{why}; see what PE {pe} said last, and whether both hosts run and reach each other (firewall, \
             SHMEM_TCP_INTERFACE)"
        );
        self.loss.of_peer(pe, address.as_ref().map(|address| &*address.host), &why)
    }

    /// Works on the link to a PE, which is connected when it is idle.
    pub(crate) fn with_link<T>(
        &self,
        pe: Pe,
        work: impl FnOnce(&mut Origin) -> Result<T, End>,
    ) -> Result<T, Error> {
        let peer = self.peers.get(pe)?;
        let mut link = lock(&peer.link);
        self.loss.check()?;
        if let Link::Idle = *link {
            *link = self.connect(pe)?;
        }
        let done = match &mut *link {
            Link::Open(origin) => {
                let acked = origin.acked();
                self.segments.sending();
                work(origin).inspect(|_| {
                    self.follow_up(pe, origin);
                    if origin.acked() != acked {
                        self.tell_sleepers();
                    }
                })
            }
            Link::Closed { why, .. } => Err(End::Broken(why.clone())),
            Link::Idle => unreachable!("a connected link is not idle"),
        };
        done.map_err(|end| {
            let error = self.lose(pe, &end.to_string());
            *link = Link::closed(end.to_string());
            error
        })
    }

    fn connect(&self, pe: Pe) -> Result<Link, Error> {
        let address = address_of(pe, self.peers.told(pe).ok_or(Error::Unreachable(pe))?)?;
        let connected = connect::connect(self.secret, self.me, pe, &address, &self.tuning);
        let socket = connected.map_err(|refusal| match refusal {
            Refusal::Own(why) => self.loss.of_self(&format!("it cannot connect to PE {pe}: {why}")),
            Refusal::Peer(why) => self.lose(pe, &why),
        })?;
        let token = epoll::EventData::new_u64(Token::Link(pe.0).into());
        match epoll::add(&self.epoll, &socket, token, EventFlags::IN) {
            Ok(()) => Ok(Link::Open(Box::new(Origin::new(socket)))),
            Err(e) => Err(self.lose(pe, &format!("its connection cannot be watched: {e}"))),
        }
    }

    /// After work on a link: whatever is left to send will be sent.
    fn follow_up(&self, pe: Pe, origin: &mut Origin) {
        if origin.is_blocked() != origin.told_of_room {
            origin.told_of_room = origin.is_blocked();
            self.watch(&origin.socket, Token::Link(pe.0), origin.told_of_room, true);
        }
        if origin.has_unsent() && !origin.is_blocked() && !origin.noted {
            origin.noted = true;
            self.unfinished.add(pe);
            self.attendance.call_soon(HELD_BACK);
        }
    }

    /// Has the kernel tell of room to send, of arrivals, or of both.
    pub(crate) fn watch(&self, socket: &TcpStream, token: Token, room: bool, arrivals: bool) {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::OUT, room);
        flags.set(EventFlags::IN, arrivals);
        // It fails for a socket that is not watched; there is none.
        let _ = epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(token.into()), flags);
    }

    /// Hears no more of a socket.
    fn unwatch(&self, socket: &TcpStream) {
        // It fails for a socket that is not watched; there is none.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Uses a link no more, so that nothing touches the memory that its requests name.
    pub(crate) fn abandon(&self, pe: Pe) {
        let Some(peer) = self.peers.known(pe) else { return };
        let mut link = lock(&peer.link);
        let why = "it was given up after another loss".to_owned();
        *link = match std::mem::take(&mut *link) {
            Link::Open(origin) => {
                self.unwatch(&origin.socket);
                Link::Closed { why, _unused: Some(origin) }
            }
            other => other,
        };
    }

    /// Sends what was held back.
    pub(crate) fn send_held_back(&self) {
        let is_left = self.unfinished.finish(|&mut pe| {
            let sent = self.try_link(pe, |origin| {
                origin.noted = false;
                origin.flush()
            });
            // Whoever has the link may be done with sending: it is tried again.
            !sent
        });
        if is_left {
            self.attendance.call_soon(HELD_BACK);
        }
    }

    /// Works on a link if nobody else does; false when somebody does.
    pub(crate) fn try_link(
        &self,
        pe: Pe,
        work: impl FnOnce(&mut Origin) -> Result<(), End>,
    ) -> bool {
        let Some(peer) = self.peers.known(pe) else { return true };
        let Some(mut link) = try_lock(&peer.link) else { return false };
        if let Link::Open(origin) = &mut *link {
            match work(origin) {
                Ok(()) => self.follow_up(pe, origin),
                Err(end) => {
                    if let End::Broken(why) = &end {
                        self.lose(pe, why);
                    }
                    *link = Link::closed(end.to_string());
                }
            }
        }
        true
    }

    /// How much news there was so far, for [`sleep`](Shared::sleep).
    pub(crate) fn news(&self) -> u64 {
        self.news.count()
    }

    /// This thread took in something that another one may wait for.
    pub(crate) fn tell_sleepers(&self) {
        self.news.tell(&self.attendance);
    }

    /// Sleeps until something arrives or there is more news than `seen`, but not longer than `at_most`.
    pub(crate) fn sleep(&self, seen: u64, at_most: Duration) {
        self.news.sleep(&self.attendance, &self.epoll, seen, at_most);
    }
}

/// Whom an event of the kernel is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Listener(u32),
    Unauthenticated(u32),
    Target(u32),
    Link(u32),
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        let (kind, number) = match token {
            Token::Listener(number) => (0, number),
            Token::Unauthenticated(number) => (1, number),
            Token::Target(number) => (2, number),
            Token::Link(number) => (3, number),
        };
        kind << 32 | u64::from(number)
    }
}

impl From<u64> for Token {
    fn from(token: u64) -> Token {
        let number = token as u32;
        match token >> 32 {
            0 => Token::Listener(number),
            1 => Token::Unauthenticated(number),
            2 => Token::Target(number),
            _ => Token::Link(number),
        }
    }
}
