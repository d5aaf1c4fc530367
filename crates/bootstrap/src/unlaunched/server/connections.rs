//! The connections of a meeting to processes that know its secret: what they send and receive,
//! sealed and without blocking.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rushmem_connect::sealed::{Forged, Session};
use rushmem_connect::strangers::number_of;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Maximum number of events of one wait. Further ones are reported by the next.
const EVENTS: usize = 256;

/// The socket of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Listener(u32),
    /// A connection in its handshake, with the number of its descriptor.
    Stranger(u32),
    /// A connection of a process that knows the secret.
    Connection(u32),
}

impl Source {
    fn data(self) -> EventData {
        let (kind, number) = match self {
            Source::Listener(number) => (0, number),
            Source::Stranger(number) => (1, number),
            Source::Connection(number) => (2, number),
        };
        EventData::new_u64(kind << 32 | u64::from(number))
    }

    fn of(data: EventData) -> Source {
        let number = data.u64() as u32;
        match data.u64() >> 32 {
            0 => Source::Listener(number),
            1 => Source::Stranger(number),
            _ => Source::Connection(number),
        }
    }
}

/// Watches the sockets of a meeting. Unlike poll, epoll watches more than the soft limit of
/// descriptors.
#[derive(Debug)]
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn new() -> io::Result<Watch> {
        Ok(Watch(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Waits for events, at most for `limit`.
    ///
    /// # Errors
    /// Those of epoll_wait, except that a signal counts as no event.
    pub(super) fn wait(&self, limit: Option<Duration>) -> io::Result<Vec<(Source, EventFlags)>> {
        let none = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [none; EVENTS];
        let limit = limit.map(|limit| Timespec::try_from(limit).expect("a slice is short"));
        let n = match epoll::wait(&self.0, &mut events[..], limit.as_ref()) {
            Ok(n) => n,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };

        Ok(events[..n]
            .iter()
            .map(|event| (Source::of(event.data), event.flags))
            .collect())
    }

    pub(super) fn listen(&self, number: usize, listener: &TcpListener) -> io::Result<()> {
        let data = Source::Listener(number as u32).data();
        Ok(epoll::add(&self.0, listener, data, EventFlags::IN)?)
    }

    /// Ends the watch of a listener.
    pub(super) fn ignore(&self, listener: &TcpListener) {
        // This fails only for a listener that is not watched anyway.
        let _ = epoll::delete(&self.0, listener);
    }

    /// Watches a connection in its handshake. Returns false if that fails.
    pub(super) fn greet(&self, socket: &TcpStream) -> bool {
        let data = Source::Stranger(number_of(socket)).data();
        epoll::add(&self.0, socket, data, EventFlags::IN).is_ok()
    }

    /// Watches a connection for data, and for room to send if some are unsent.
    fn watch(&self, connection: &ClientConnection) {
        let mut flags = EventFlags::IN;
        // A socket nearly always has room, so watching for it without need would never let the
        // thread sleep.
        flags.set(EventFlags::OUT, !connection.unsent.is_empty());

        let data = Source::Connection(number_of(&connection.stream)).data();
        // This cannot fail: the socket was added when it was that of a stranger.
        let _ = epoll::modify(&self.0, &connection.stream, data, flags);
    }
}

/// Why nothing more arrives on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Closed,
    Forged(Forged),
}

/// What a read of a connection has found.
#[derive(Debug)]
pub(super) struct Arrived {
    /// The opened bytes.
    pub(super) bytes: Vec<u8>,
    /// Why no more follow; `None` if more may follow.
    pub(super) ending: Option<Ending>,
}

/// The connections, by the numbers of their descriptors.
#[derive(Debug, Default)]
pub(super) struct Connections(BTreeMap<u32, ClientConnection>);

/// A connection of a process to the meeting.
#[derive(Debug)]
struct ClientConnection {
    stream: TcpStream,
    session: Session,
    since: Instant,
    /// Sealed bytes that the socket has not accepted yet, the oldest first.
    unsent: VecDeque<u8>,
}

impl Connections {
    /// Adds the connection of a process that was welcomed. Returns its number.
    pub(super) fn add(&mut self, watch: &Watch, stream: TcpStream, session: Session) -> u32 {
        let number = number_of(&stream);
        let connection = ClientConnection {
            stream,
            session,
            since: Instant::now(),
            unsent: VecDeque::new(),
        };
        watch.watch(&connection);
        self.0.insert(number, connection);
        number
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn close(&mut self, number: u32) {
        self.0.remove(&number);
    }

    /// Returns the time since the connection was added; `None` if it was closed.
    pub(super) fn age(&self, number: u32) -> Option<Duration> {
        Some(self.0.get(&number)?.since.elapsed())
    }

    /// Reads and opens all that has arrived on a connection.
    pub(super) fn read(&mut self, number: u32) -> Arrived {
        let mut arrived = Arrived {
            bytes: Vec::new(),
            ending: None,
        };
        let Some(connection) = self.0.get_mut(&number) else {
            return arrived;
        };

        let mut sealed = [0; 16 * 1024];
        loop {
            match connection.stream.read(&mut sealed) {
                Ok(nbytes @ 1..) => connection.session.received(&sealed[..nbytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return arrived,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => {
                    arrived.ending = Some(Ending::Closed);
                    return arrived;
                }
            }

            // The pieces before a forged one are genuine, and are returned.
            loop {
                match connection.session.take() {
                    Ok(Some(piece)) => arrived.bytes.extend(piece),
                    Ok(None) => break,
                    Err(forged) => {
                        arrived.ending = Some(Ending::Forged(forged));
                        return arrived;
                    }
                }
            }
        }
    }

    /// Sends bytes, or queues those for which the socket has no room.
    pub(super) fn send(&mut self, watch: &Watch, number: u32, bytes: &[u8]) {
        if let Some(connection) = self.0.get_mut(&number) {
            connection.unsent.extend(connection.session.seal(bytes));
            self.flush(watch, number);
        }
    }

    /// Sends as many queued bytes as the socket accepts. The next read detects a failed connection.
    pub(super) fn flush(&mut self, watch: &Watch, number: u32) {
        let Some(connection) = self.0.get_mut(&number) else {
            return;
        };

        while !connection.unsent.is_empty() {
            let (oldest, _) = connection.unsent.as_slices();
            match connection.stream.write(oldest) {
                Ok(nbytes) => {
                    connection.unsent.drain(..nbytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => connection.unsent.clear(),
            }
        }
        watch.watch(connection);
    }

    /// Returns true if queued bytes wait for room in a socket.
    pub(super) fn have_unsent(&self) -> bool {
        self.0
            .values()
            .any(|connection| !connection.unsent.is_empty())
    }
}
