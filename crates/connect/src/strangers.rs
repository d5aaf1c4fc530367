//! The connections whose other end has not proved yet that it belongs to the job.
//!
//! The other end receives a greeting and may send one message of fixed size within a time limit.
//! The number of such connections is limited: one of them is dropped for a new one, so that clients
//! that connect and send nothing cannot keep a process of the job out. Such a process proves its
//! identity at once, or connects again.
//!
//! The one that is dropped is chosen at random. If it were the oldest, a flood of connections would
//! drop each process of the job whose claim needs longer to arrive than the flood to fill all
//! places. A random choice spares some of these processes at any distance, and others when they
//! connect again. Addresses do not count: those of a flood may be many, and all processes of the
//! job may have one, that of a router.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::handshake::{Acceptor, Answer, CLAIM, REFUSAL};
use crate::sealed::Session;

/// Maximum number of connections accepted in one turn, so that a flood of them does not keep the
/// thread from the connections that it has.
const AT_ONCE: usize = 16;

/// The age from which a stranger is dropped if the process runs short of descriptors. A PE proves
/// its identity within milliseconds of its connection, unless its host is busy.
const OLD: Duration = Duration::from_secs(1);

/// The limits of strangers.
#[derive(Clone, Copy, Debug)]
pub struct StrangerLimits {
    /// The time within which a stranger must have proved its identity.
    pub time: Duration,
    /// The maximum number of strangers.
    pub n: usize,
}

/// The strangers of a process.
#[derive(Debug)]
pub struct Strangers {
    limits: StrangerLimits,
    /// The strangers, by the numbers of their descriptors.
    all: BTreeMap<u32, Stranger>,
    random: Rng,
    /// The time since which no connection was accepted although one waits.
    short_since: Option<Instant>,
}

/// A connection in its handshake.
#[derive(Debug)]
struct Stranger {
    socket: TcpStream,
    acceptor: Acceptor,
    claim: [u8; CLAIM],
    /// Number of bytes of the claim that have arrived.
    n_read: usize,
    since: Instant,
}

/// A connection waits, but this process cannot accept it: no descriptor or memory is left. It
/// should not try again at once.
#[derive(Debug)]
pub struct Shortage {
    /// The error of accept.
    pub error: io::Error,
    /// The time for which this lasts already.
    pub lasts: Duration,
}

/// The claim of a stranger.
#[derive(Debug)]
pub enum Claim {
    /// It has not arrived completely.
    Incomplete,
    /// It is wrong, or the stranger has closed the connection.
    Refused,
    /// It is right.
    Right(Proven),
}

/// The connection of a process that has proved that it belongs to the job, and awaits an answer.
#[derive(Debug)]
pub struct Proven {
    /// The number of the process.
    pub from: u32,
    socket: TcpStream,
    acceptor: Acceptor,
}

impl Proven {
    /// Answers the claim. Returns the socket, which does not block.
    ///
    /// # Errors
    /// Those of write.
    pub fn answer(self, answer: Answer) -> io::Result<TcpStream> {
        // This does not wait: only the greeting was sent on this socket before.
        (&self.socket).write_all(&self.acceptor.answer(answer))?;
        Ok(self.socket)
    }

    /// Welcomes the process to a session. Returns the socket, which does not block.
    ///
    /// # Errors
    /// Those of write.
    pub fn welcome(self) -> io::Result<(TcpStream, Session)> {
        let session = self.acceptor.session();
        Ok((self.answer(Answer::Welcome)?, session))
    }
}

/// Returns the number of a socket's descriptor, by which its stranger is found.
pub fn number_of(socket: &TcpStream) -> u32 {
    socket.as_raw_fd().cast_unsigned()
}

impl Strangers {
    /// Returns an empty set with these limits.
    pub fn new(limits: StrangerLimits) -> Strangers {
        Strangers {
            limits,
            all: BTreeMap::new(),
            random: Rng::new(),
            short_since: None,
        }
    }

    /// Accepts the connections that wait at `listener`, which must not block, and greets each.
    /// `accept` accepts one, `acceptor` returns the accepting end of its handshake, and `watch`
    /// asks for the events of its socket: if that returns false, the connection is dropped.
    ///
    /// # Errors
    /// [`Shortage`].
    pub fn accept(
        &mut self,
        listener: &TcpListener,
        accept: impl Fn(&TcpListener) -> io::Result<TcpStream>,
        acceptor: impl Fn(&TcpStream) -> io::Result<Acceptor>,
        watch: impl Fn(&TcpStream) -> bool,
    ) -> Result<(), Shortage> {
        for _ in 0..AT_ONCE {
            let socket = match accept(listener) {
                Ok(socket) => socket,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => return self.make_room(listener, error),
                },
            };
            self.short_since = None;

            make_place(&mut self.all, self.limits.n, &mut self.random);

            // An error is not reported: a connection to which the greeting cannot be sent is gone.
            let greeted = acceptor(&socket).and_then(|acceptor| Stranger::greet(socket, acceptor));
            if let Ok(stranger) = greeted
                && watch(&stranger.socket)
            {
                self.all.insert(number_of(&stranger.socket), stranger);
            }
        }
        Ok(())
    }

    /// Drops an old stranger, since no descriptor is left for another one. Returns the shortage if
    /// a connection waits.
    fn make_room(&mut self, listener: &TcpListener, error: io::Error) -> Result<(), Shortage> {
        // The kernel may report this although no connection waits.
        if !is_waiting(listener) {
            self.short_since = None;
            return Ok(());
        }

        self.drop_oldest();

        let lasts = self.short_since.get_or_insert_with(Instant::now).elapsed();
        Err(Shortage { error, lasts })
    }

    /// Drops the oldest stranger, if it is old. A young one may be a process of the job, about to
    /// send its claim.
    fn drop_oldest(&mut self) {
        let oldest = self.all.iter().min_by_key(|(_, stranger)| stranger.since);
        if let Some((&number, stranger)) = oldest
            && stranger.since.elapsed() > OLD
        {
            self.all.remove(&number);
        }
    }

    /// Reads what has arrived from the stranger with this number, and checks its claim once that is
    /// complete. The stranger is kept only while its claim is incomplete.
    pub fn read_claim(&mut self, number: u32) -> Claim {
        let Entry::Occupied(mut entry) = self.all.entry(number) else {
            return Claim::Refused;
        };

        match entry.get_mut().read_claim() {
            Ok(None) => Claim::Incomplete,
            Ok(Some(from)) => {
                let stranger = entry.remove();
                Claim::Right(Proven {
                    from,
                    socket: stranger.socket,
                    acceptor: stranger.acceptor,
                })
            }
            Err(_) => {
                entry.remove();
                Claim::Refused
            }
        }
    }

    /// Drops the strangers whose time is over.
    pub fn expire(&mut self) {
        let limit = self.limits.time;
        self.all
            .retain(|_, stranger| stranger.since.elapsed() <= limit);
    }

    /// Drops all strangers.
    pub fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns true if there is no stranger.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Stranger {
    fn greet(socket: TcpStream, acceptor: Acceptor) -> io::Result<Stranger> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;

        // This does not wait: the buffer of a new socket has room for the greeting.
        (&socket).write_all(&acceptor.greeting())?;

        Ok(Stranger {
            socket,
            acceptor,
            claim: [0; CLAIM],
            n_read: 0,
            since: Instant::now(),
        })
    }

    /// Returns the number of the process that has sent a right claim; `None` until the whole claim
    /// has arrived. A wrong claim is answered with a refusal, and is an error.
    fn read_claim(&mut self) -> io::Result<Option<u32>> {
        while self.n_read < CLAIM {
            match (&self.socket).read(&mut self.claim[self.n_read..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(nbytes) => self.n_read += nbytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }

        let Ok(from) = self.acceptor.check(&self.claim) else {
            (&self.socket).write_all(&REFUSAL)?;
            return Err(ErrorKind::PermissionDenied.into());
        };

        // A process that has stopped waiting may have closed this connection and sent its claim on
        // another one. So the claim on a closed connection does not count.
        match self.socket.peek(&mut [0]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(Some(from)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Some(from)),
            Err(error) => Err(error),
        }
    }
}

/// Drops a stranger, chosen at random, if there are `n`.
fn make_place<T>(strangers: &mut BTreeMap<u32, T>, n: usize, random: &mut Rng) {
    if strangers.len() >= n
        && let Some(&number) = strangers.keys().nth(random.usize(..n))
    {
        strangers.remove(&number);
    }
}

/// Returns true if a connection waits to be accepted.
fn is_waiting(listener: &TcpListener) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    // An error counts as none; accept reports it again.
    let _ = poll(&mut fds, Some(&Timespec::default()));
    !fds[0].revents().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::{ANSWER, Connector, GREETING, Protocol};
    use crate::secret::Secret;

    const PROTOCOL: Protocol = Protocol {
        magic: *b"testing",
        version: 3,
    };

    fn strangers(n: usize, time: Duration) -> (TcpListener, Strangers) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("an open socket");
        (listener, Strangers::new(StrangerLimits { time, n }))
    }

    fn accept(strangers: &mut Strangers, listener: &TcpListener) -> Result<(), Shortage> {
        let secret = Secret::new(b"secret");
        strangers.accept(
            listener,
            |listener| listener.accept().map(|(socket, _)| socket),
            |_| Ok(Acceptor::new(PROTOCOL, &secret, 0, [1; 32])),
            |_| true,
        )
    }

    fn client(listener: &TcpListener) -> TcpStream {
        TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens")
    }

    /// Sends the claim of a process with this secret, and waits until the other end has it.
    fn claim(client: &mut TcpStream, secret: &[u8]) -> Connector {
        let mut connector = Connector::new(PROTOCOL, &Secret::new(secret), 7, 0, [2; 32]);
        let mut greeting = [0; GREETING];
        client.read_exact(&mut greeting).expect("a greeting");
        let claim = connector.claim(&greeting).expect("of this version");
        client.write_all(&claim).expect("room");
        connector
    }

    fn read(strangers: &mut Strangers) -> Claim {
        let number = *strangers.all.keys().next().expect("one stranger");
        loop {
            match strangers.read_claim(number) {
                Claim::Incomplete => std::thread::yield_now(),
                claim => return claim,
            }
        }
    }

    #[test]
    fn who_knows_the_secret_is_no_stranger() {
        let (listener, mut strangers) = strangers(4, Duration::from_secs(60));
        let mut client = client(&listener);
        accept(&mut strangers, &listener).expect("descriptors");

        let connector = claim(&mut client, b"secret");
        let Claim::Right(proven) = read(&mut strangers) else {
            panic!("the claim is right")
        };
        assert!(strangers.is_empty());
        assert_eq!(proven.from, 7);

        proven.answer(Answer::Deferral).expect("room");
        let mut answer = [0; ANSWER];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(connector.check(&answer), Ok(Answer::Deferral));
    }

    #[test]
    fn others_are_told_that_they_are_refused() {
        let (listener, mut strangers) = strangers(4, Duration::from_secs(60));
        let mut client = client(&listener);
        accept(&mut strangers, &listener).expect("descriptors");

        claim(&mut client, b"another");
        assert!(matches!(read(&mut strangers), Claim::Refused));
        assert!(strangers.is_empty());

        let mut answer = [1; ANSWER];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, REFUSAL);
    }

    #[test]
    fn one_goes_for_a_new_one_and_all_in_time() {
        let (listener, mut strangers) = strangers(2, Duration::ZERO);
        let clients: Vec<TcpStream> = (0..3).map(|_| client(&listener)).collect();
        accept(&mut strangers, &listener).expect("descriptors");
        assert_eq!(strangers.all.len(), 2);

        std::thread::sleep(Duration::from_millis(2));
        strangers.expire();
        assert!(strangers.is_empty());
        drop(clients);
    }

    /// The default limit of joining a job, in milliseconds.
    const LIMIT: u64 = 120_000;

    /// What arrives at a process while strangers flood it.
    enum Arrival {
        Flood,
        /// A process of the job connects.
        Member,
        /// The claim of a process of the job, on the connection with this number.
        Claim(u32),
    }

    /// Returns the time in milliseconds until `members` processes of a job, all from one address,
    /// have proved their identity, or that of [`LIMIT`]. Meanwhile `rate` strangers a second
    /// connect, each from another address. A process whose connection was dropped finds that out
    /// with its claim, and connects again.
    fn time_of_joining(members: usize, rate: u64, round_trip: u64, random: &mut Rng) -> u64 {
        const N: usize = 256;
        const PAUSE: u64 = 250;
        /// Microseconds in a millisecond.
        const MS: u64 = 1000;

        let mut strangers: BTreeMap<u32, ()> = BTreeMap::new();
        let mut number = 0;
        let mut n_joined = 0;

        // The arrivals by time in microseconds. The second number keeps those of one time apart.
        let mut order = 0..;
        let mut arrivals = BTreeMap::new();
        let mut add = |arrivals: &mut BTreeMap<_, _>, time: u64, arrival| {
            arrivals.insert((time, order.next()), arrival);
        };
        add(&mut arrivals, 0, Arrival::Flood);
        for _ in 0..members {
            add(&mut arrivals, 0, Arrival::Member);
        }

        while let Some(((now, _), arrival)) = arrivals.pop_first() {
            if let Arrival::Claim(number) = arrival {
                if strangers.remove(&number).is_some() {
                    n_joined += 1;
                } else {
                    let later = now + (round_trip + PAUSE) * MS;
                    add(&mut arrivals, later, Arrival::Member);
                }
                if n_joined == members || now > LIMIT * MS {
                    return now / MS;
                }
                continue;
            }

            make_place(&mut strangers, N, random);
            number += 1;
            strangers.insert(number, ());
            match arrival {
                Arrival::Flood => add(&mut arrivals, now + 1_000_000 / rate, arrival),
                _ => add(&mut arrivals, now + round_trip * MS, Arrival::Claim(number)),
            }
        }
        unreachable!("the flood has no end")
    }

    #[test]
    fn a_flood_keeps_no_member_out_whatever_its_distance() {
        for (rate, round_trip) in [(1000, 50), (4000, 50), (2000, 200)] {
            for seed in 0..2 {
                for members in [2, 256] {
                    let time =
                        time_of_joining(members, rate, round_trip, &mut Rng::with_seed(seed));
                    assert!(
                        time < LIMIT,
                        "{members} members, {rate} a second, {round_trip} ms, seed {seed}: {time} ms"
                    );
                }
            }
        }
    }

    #[test]
    fn a_shortage_is_reported_while_someone_waits() {
        let (listener, mut strangers) = strangers(2, Duration::from_secs(60));
        let none = |_: &TcpListener| Err(io::Error::from_raw_os_error(24));
        let accept = |strangers: &mut Strangers| {
            let nobody = |_: &TcpStream| unreachable!("nobody is accepted");
            strangers.accept(&listener, none, nobody, |_| true)
        };
        accept(&mut strangers).expect("nobody waits");

        let _client = client(&listener);
        let first = accept(&mut strangers).expect_err("one waits");
        assert_eq!(first.error.raw_os_error(), Some(24));

        // So that the shortage has lasted measurably longer.
        std::thread::sleep(Duration::from_millis(2));
        let later = accept(&mut strangers).expect_err("it still waits");
        assert!(later.lasts > first.lasts);
    }
}
