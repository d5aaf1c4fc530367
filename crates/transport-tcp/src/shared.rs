//! What all endpoints and the service thread of a PE share: peers, links, and who polls.
//!
//! Locks: the service is only ever tried, never waited for; a link is waited for by endpoints and tried by
//! the service. Nobody waits for a lock while holding another, except for the list of notes, which is
//! held for a few instructions. A link may be held for seconds, while it is dialled.

use crate::area::Areas;
use crate::dial::{self, Refusal};
use crate::inbound::End;
use crate::outbound::Outbound;
use crate::proto::Address;
use crate::service::Service;
use crate::tuning::Tuning;
use rushmem_transport::{Error, Host, Pe, Segment};
use rustix::event::epoll::{self, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

/// What was copied leaves within about this time at the latest; when the PE has just stopped to wait in
/// quick succession, by when the service thread has noticed that.
pub(crate) const HELD_BACK: Duration = Duration::from_micros(50);

/// How to reach a PE and what it lets others use.
pub(crate) struct Contact {
    pub(crate) address: Address,
    /// Bytes of its segments.
    pub(crate) sizes: [u64; Segment::COUNT],
}

/// The connection to a PE.
pub(crate) enum Link {
    /// Not needed so far.
    Idle,
    Open(Box<Outbound>),
    /// Gone, and why. A connection that is only not used any more stays open, so that its peer does not
    /// take this PE for lost.
    Closed {
        why: String,
        _unused: Option<Box<Outbound>>,
    },
}

impl Link {
    /// Gone.
    pub(crate) fn closed(why: String) -> Link {
        Link::Closed { why, _unused: None }
    }
}

/// A PE as an origin sees it.
pub(crate) struct Peer {
    pub(crate) contact: OnceLock<Contact>,
    pub(crate) link: Mutex<Link>,
}

/// Links with something to send that nobody has sent yet.
#[derive(Default)]
struct Notes {
    any: AtomicBool,
    list: Mutex<Vec<u32>>,
    /// The service thread looks at the notes by itself, or the timer will wake it.
    attended: AtomicBool,
}

/// One PE's share in the network.
pub(crate) struct Shared {
    pub(crate) me: u32,
    pub(crate) secret: [u8; 32],
    pub(crate) oversubscribed: bool,
    pub(crate) tuning: Tuning,
    pub(crate) host: Arc<dyn Host>,
    /// This PE's address; its host's name goes into messages.
    pub(crate) address: Address,
    pub(crate) areas: Areas,
    pub(crate) peers: Box<[Peer]>,
    pub(crate) service: Mutex<Service>,
    /// Every socket of this PE.
    pub(crate) epoll: OwnedFd,
    /// Rings when notes are due, and at the end.
    pub(crate) timer: OwnedFd,
    /// Counts the looks of threads that wait: as long as it moves, the service thread need not.
    pub(crate) polls: AtomicU64,
    /// How many threads sleep in [`Shared::sleep`].
    pub(crate) sleepers: AtomicU32,
    /// Counts the occasions on which something came that a sleeper may wait for.
    news: AtomicU64,
    /// Readable while there are sleepers to be woken for news that another thread took in.
    bell: OwnedFd,
    /// Whoever polled so far sleeps elsewhere: the service thread takes over.
    pub(crate) handed_over: AtomicBool,
    /// The service thread looks at its timer alone.
    pub(crate) napping: AtomicBool,
    pub(crate) closing: AtomicBool,
    notes: Notes,
    loss: OnceLock<Error>,
}

/// A lock whose holder panicked is as good as any: the job is ending.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What a PE brings along to [`Shared::new`].
pub(crate) struct Start {
    pub(crate) open: rushmem_transport::Open,
    pub(crate) tuning: Tuning,
    pub(crate) address: Address,
    pub(crate) service: Service,
    pub(crate) epoll: OwnedFd,
    pub(crate) timer: OwnedFd,
    pub(crate) bell: OwnedFd,
}

impl Shared {
    pub(crate) fn new(start: Start) -> Shared {
        let Start { open, tuning, address, service, epoll, timer, bell } = start;
        let peer = |_| Peer { contact: OnceLock::new(), link: Mutex::new(Link::Idle) };
        Shared {
            me: open.pe.0,
            secret: open.secret,
            oversubscribed: open.oversubscribed,
            tuning,
            host: open.host,
            address,
            areas: Areas::default(),
            peers: (0..open.n_pes).map(peer).collect(),
            service: Mutex::new(service),
            epoll,
            timer,
            polls: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            news: AtomicU64::new(0),
            bell,
            handed_over: AtomicBool::new(false),
            napping: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            notes: Notes::default(),
            loss: OnceLock::new(),
        }
    }

    /// The error that ended everything, if one did.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.loss.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// A PE is gone: from now on everything fails. Returns the first loss.
    pub(crate) fn lose(&self, pe: u32, why: &str) -> Error {
        let contact = self.peers.get(pe as usize).and_then(|peer| peer.contact.get());
        let host = contact.map_or("an unknown host", |contact| contact.address.host.as_str());
        let (me, own) = (self.me, &self.address.host);
        let text = format!(
            "the way from PE {me} on {own} to PE {pe} on {host} broke: {why}; see what PE {pe} said last, \
             and whether both hosts run and reach each other (firewall, SHMEM_TCP_INTERFACE)"
        );
        self.end(Error::Lost(Pe(pe), text))
    }

    /// This PE cannot go on: from now on everything fails. Returns the first loss.
    pub(crate) fn give_up(&self, why: &str) -> Error {
        let text = format!("PE {} on {} cannot use its network: {why}", self.me, self.address.host);
        self.end(Error::Lost(Pe(self.me), text))
    }

    fn end(&self, error: Error) -> Error {
        let mut first = false;
        let error = self.loss.get_or_init(|| {
            first = true;
            error
        });
        if first {
            self.host.lost(error);
        }
        error.clone()
    }

    /// Work on the link to a PE, which is dialled when it is idle.
    pub(crate) fn with_link<T>(
        &self,
        pe: u32,
        work: impl FnOnce(&mut Outbound) -> Result<T, End>,
    ) -> Result<T, Error> {
        let peer = self.peers.get(pe as usize).ok_or(Error::Unreachable(Pe(pe)))?;
        let mut link = lock(&peer.link);
        self.check()?;
        if let Link::Idle = *link {
            *link = self.dial(pe, peer)?;
        }
        let done = match &mut *link {
            Link::Open(out) => {
                let acked = out.acked();
                work(out).inspect(|_| {
                    self.follow_up(pe, out);
                    if out.acked() != acked {
                        self.tell_sleepers();
                    }
                })
            }
            Link::Closed { why, .. } => Err(End::Broken(why.clone())),
            Link::Idle => unreachable!("a dialled link is not idle"),
        };
        done.map_err(|end| {
            let why = said(&end);
            let error = self.lose(pe, &why);
            *link = Link::closed(why);
            error
        })
    }

    fn dial(&self, pe: u32, peer: &Peer) -> Result<Link, Error> {
        let contact = peer.contact.get().ok_or(Error::Unreachable(Pe(pe)))?;
        let dialled = dial::dial(self.secret, self.me, pe, &contact.address, &self.tuning);
        let socket = dialled.map_err(|refusal| match refusal {
            Refusal::Own(why) => self.give_up(&format!("it cannot connect to PE {pe}: {why}")),
            Refusal::Peer(why) => self.lose(pe, &why),
        })?;
        let token = epoll::EventData::new_u64(Token::Link(pe).into());
        match epoll::add(&self.epoll, &socket, token, EventFlags::IN) {
            Ok(()) => Ok(Link::Open(Box::new(Outbound::new(socket)))),
            Err(e) => Err(self.lose(pe, &format!("its connection cannot be watched: {e}"))),
        }
    }

    /// After work on a link: whatever is left to send will be sent.
    fn follow_up(&self, pe: u32, out: &mut Outbound) {
        if out.is_blocked() != out.told_of_room {
            out.told_of_room = out.is_blocked();
            self.watch(&out.socket, Token::Link(pe), out.told_of_room, true);
        }
        if out.has_unsent() && !out.is_blocked() && !out.noted {
            out.noted = true;
            self.note(pe);
        }
    }

    /// Have the kernel tell of room to send, of arrivals, or of both.
    pub(crate) fn watch(&self, socket: &TcpStream, token: Token, room: bool, arrivals: bool) {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::OUT, room);
        flags.set(EventFlags::IN, arrivals);
        // It fails for a socket that is not watched; there is none.
        let _ = epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(token.into()), flags);
    }

    /// Hear no more of a socket.
    pub(crate) fn unwatch(&self, socket: &TcpStream) {
        // It fails for a socket that is not watched; there is none.
        let _ = epoll::delete(&self.epoll, socket);
    }

    fn note(&self, pe: u32) {
        lock(&self.notes.list).push(pe);
        self.notes.any.store(true, Ordering::Relaxed);
        // Either this thread sees that nobody attends, or the service thread sees the note.
        fence(Ordering::SeqCst);
        if !self.notes.attended.load(Ordering::Relaxed) {
            self.notes.attended.store(true, Ordering::Relaxed);
            self.ring_after(HELD_BACK);
        }
    }

    /// The service thread will look at the notes again soon, whatever happens.
    pub(crate) fn attend(&self) {
        self.notes.attended.store(true, Ordering::Relaxed);
    }

    /// The service thread will sleep until something happens: send what is noted so far; whoever notes
    /// more sets the timer.
    pub(crate) fn stop_attending(&self) {
        self.notes.attended.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.send_noted();
    }

    /// This thread polls no more for now: the service thread need not wait for its absence to show.
    pub(crate) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
        // Either this thread sees the nap, or the service thread sees that it should take none.
        fence(Ordering::SeqCst);
        if self.napping.load(Ordering::Relaxed) {
            self.ring_after(Duration::from_nanos(1));
        }
    }

    /// The service thread is about to look at its timer alone; false when it has been handed over to.
    pub(crate) fn may_nap(&self) -> bool {
        self.napping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.handed_over.swap(false, Ordering::Relaxed)
    }

    /// Let the service thread wake after so long.
    pub(crate) fn ring_after(&self, time: Duration) {
        let at = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(time) };
        // It fails for times that are no times.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &at);
    }

    /// The timer rang.
    pub(crate) fn rang(&self) {
        // It is empty when the timer was set again meanwhile.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        self.send_noted();
    }

    /// Send what was held back.
    pub(crate) fn send_noted(&self) {
        if !self.notes.any.load(Ordering::Relaxed) {
            return;
        }
        self.notes.any.store(false, Ordering::Relaxed);
        let noted = lock(&self.notes.list).len();
        for _ in 0..noted {
            let Some(pe) = lock(&self.notes.list).pop() else {
                return;
            };
            let sent = self.try_link(pe, |out| {
                out.noted = false;
                out.flush()
            });
            if !sent {
                // Whoever has the link may be done with sending: come again.
                self.note(pe);
            }
        }
    }

    /// Work on a link if nobody else does; false when somebody does.
    pub(crate) fn try_link(
        &self,
        pe: u32,
        work: impl FnOnce(&mut Outbound) -> Result<(), End>,
    ) -> bool {
        let Some(mut link) = try_lock(&self.peers[pe as usize].link) else {
            return false;
        };
        if let Link::Open(out) = &mut *link {
            match work(out) {
                Ok(()) => self.follow_up(pe, out),
                Err(end) => {
                    if !(matches!(end, End::Bye) || self.closing.load(Ordering::Acquire)) {
                        self.lose(pe, &said(&end));
                    }
                    *link = Link::closed(said(&end));
                }
            }
        }
        true
    }

    /// Send what was held back and serve peers, if nobody else does; returns whether there was work.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.send_noted();
        let worked = try_lock(&self.service).is_some_and(|mut service| service.poll(self));
        if worked {
            self.tell_sleepers();
        }
        self.check().map(|()| worked)
    }

    /// How much news there was so far: a thread that learns it before it looks for what it waits for may
    /// [`sleep`](Shared::sleep) when it did not find it.
    pub(crate) fn news(&self) -> u64 {
        self.news.load(Ordering::SeqCst)
    }

    /// This thread took in something that another one may wait for.
    pub(crate) fn tell_sleepers(&self) {
        self.news.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // It fails when it was rung often enough already.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// Sleep until something arrives or there is more news than `seen`, but not longer than `at_most`.
    pub(crate) fn sleep(&self, seen: u64, at_most: Duration) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if self.news() == seen {
            let epoll = PollFd::new(&self.epoll, PollFlags::IN);
            let mut fds = [epoll, PollFd::new(&self.bell, PollFlags::IN)];
            // Interrupted by a signal: as good as woken.
            let _ = poll(&mut fds, Some(&timespec(at_most)));
        }
        // Every sleeper has woken when the bell is silenced.
        if self.sleepers.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            // Who came meanwhile may have been rung for.
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
            }
        }
    }
}

fn said(end: &End) -> String {
    match end {
        End::Bye => "it has left the job".to_owned(),
        End::Broken(why) => why.clone(),
    }
}

/// A duration for the kernel.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// Whom an event of the kernel is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Listener(u32),
    Guest(u32),
    Inbound(u32),
    Link(u32),
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        let (kind, number) = match token {
            Token::Listener(number) => (0, number),
            Token::Guest(number) => (1, number),
            Token::Inbound(number) => (2, number),
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
            1 => Token::Guest(number),
            2 => Token::Inbound(number),
            _ => Token::Link(number),
        }
    }
}
