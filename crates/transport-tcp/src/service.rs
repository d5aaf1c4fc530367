//! Whoever polls it serves this PE's peers: new connections, requests, and links that have news.
//!
//! One thread at a time does so. The connection that had requests last is looked at first and alone for a few turns, since
//! asking the kernel which of all sockets has news costs more than asking one. This file must never know who polls.

use crate::connection::{End, nonce, prepare};
use crate::proto::Acceptor;
use crate::settings::DESCRIPTORS;
use crate::shared::{Link, Shared, Token};
use crate::sys;
use crate::target::{Target, Turn};
use crate::unauthenticated::{Claim, Unauthenticated};
use rushmem_transport::Pe;
use rushmem_transport::kit::lock::try_lock;
use rushmem_transport::kit::timer::{sleep_on, timespec};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes received at once where they do not go straight to their place.
const BUFFER: usize = 64 << 10;
/// Of so many turns, all but one look at the last busy connection alone...
const HOT_TURNS: u32 = 32;
/// ...and where PEs share CPUs: each turn there is a pass of the scheduler, and a collective hears from another PE each time.
const HOT_TURNS_OVERSUBSCRIBED: u32 = 1;
/// Connections accepted in one turn.
const ACCEPTS: usize = 16;
/// Events taken in one turn.
const EVENTS: usize = 64;

/// The target's side of this PE.
pub(crate) struct Service {
    listeners: Vec<TcpListener>,
    /// Accepting failed: no connection is accepted until the next round.
    muted: bool,
    /// Since when no connection could be accepted although one waited.
    refusing: Option<Instant>,
    unauthenticated: Vec<Option<Unauthenticated>>,
    targets: Vec<Option<Target>>,
    buffer: Box<[u8]>,
    /// The connection that had requests last.
    hot: Option<u32>,
    turns: u32,
}

/// Puts into the first free place.
fn place<T>(slots: &mut Vec<Option<T>>, value: T) -> u32 {
    let at = slots.iter().position(Option::is_none).unwrap_or_else(|| {
        slots.push(None);
        slots.len() - 1
    });
    slots[at] = Some(value);
    at as u32
}

impl Service {
    pub(crate) fn new(listeners: Vec<TcpListener>) -> Service {
        Service {
            listeners,
            muted: true,
            refusing: None,
            unauthenticated: Vec::new(),
            targets: Vec::new(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            hot: None,
            turns: 0,
        }
    }

    /// A quick look; returns whether there was work.
    pub(crate) fn poll(&mut self, shared: &Shared) -> bool {
        self.turns = self.turns.wrapping_add(1);
        let hot_turns = if shared.oversubscribed { HOT_TURNS_OVERSUBSCRIBED } else { HOT_TURNS };
        match self.hot {
            Some(hot) if !self.turns.is_multiple_of(hot_turns) => self.serve(shared, hot),
            _ => self.poll_all(shared),
        }
    }

    /// Looks at everything; returns whether there was work. News of a link that another thread works on is that thread's.
    pub(crate) fn poll_all(&mut self, shared: &Shared) -> bool {
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; EVENTS];
        let now = timespec(Duration::ZERO);
        let n = epoll::wait(&shared.epoll, &mut events, Some(&now)).unwrap_or(0);
        let mut worked = false;
        for event in &events[..n] {
            worked |= match Token::from(event.data.u64()) {
                Token::Listener(listener) => {
                    self.accept(shared, listener);
                    true
                }
                Token::Unauthenticated(number) => {
                    self.listen(shared, number);
                    true
                }
                Token::Target(number) => {
                    self.serve(shared, number);
                    true
                }
                Token::Link(pe) => shared.try_link(Pe(pe), |origin| {
                    if origin.is_blocked() {
                        origin.flush()?;
                    }
                    origin.receive()
                }),
            }
        }
        worked
    }

    fn serve(&mut self, shared: &Shared, number: u32) -> bool {
        let Some(Some(target)) = self.targets.get_mut(number as usize) else {
            return false;
        };
        match target.serve(&shared.segments, &mut self.buffer) {
            Ok(Turn { worked, changed }) => {
                if target.blocked() != target.told_of_room {
                    target.told_of_room = target.blocked();
                    let blocked = target.told_of_room;
                    shared.watch(&target.socket, Token::Target(number), blocked, !blocked);
                }
                if worked {
                    self.hot = Some(number);
                }
                if changed {
                    shared.host.arrived();
                }
                worked
            }
            Err(end) => {
                let pe = target.pe;
                self.targets[number as usize] = None;
                self.hot = None;
                if let End::Broken(why) = end {
                    shared.lose(pe, &why);
                }
                true
            }
        }
    }

    fn accept(&mut self, shared: &Shared, number: u32) {
        for _ in 0..ACCEPTS {
            match self.listeners[number as usize].accept() {
                Ok((socket, _)) => {
                    self.refusing = None;
                    self.greet(shared, socket);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(e) => {
                    // Out of descriptors or memory, which the kernel says whether or not somebody is there.
                    if !is_waiting(&self.listeners[number as usize]) {
                        self.refusing = None;
                        return;
                    }
                    // Make room, and do not ask again at once.
                    self.drop_oldest(shared.tuning.round);
                    self.mute(shared);
                    let since = *self.refusing.get_or_insert_with(Instant::now);
                    if since.elapsed() > shared.tuning.refuse_limit {
                        let why = DESCRIPTORS.explain(&e);
                        shared
                            .loss
                            .of_self(&format!("it can accept no connection of a peer: {why}"));
                    }
                    return;
                }
            }
        }
    }

    fn greet(&mut self, shared: &Shared, socket: TcpStream) {
        let here = self.unauthenticated.iter().flatten().count();
        if here >= shared.tuning.max_unauthenticated {
            self.drop_oldest(Duration::ZERO);
        }
        let Ok(nonce) = nonce() else {
            return;
        };
        let n_pes = shared.peers.n_pes() as u32;
        let acceptor = Acceptor::new(shared.secret, shared.me.0, n_pes, nonce);
        // Whoever cannot be greeted is gone.
        if let Ok(connection) = Unauthenticated::greet(socket, acceptor) {
            let number = place(&mut self.unauthenticated, connection);
            let Some(connection) = &self.unauthenticated[number as usize] else {
                return;
            };
            let token = EventData::new_u64(Token::Unauthenticated(number).into());
            if epoll::add(&shared.epoll, &connection.socket, token, EventFlags::IN).is_err() {
                self.unauthenticated[number as usize] = None;
            }
        }
    }

    /// Drops the oldest unauthenticated connection, if it is older than that.
    fn drop_oldest(&mut self, age: Duration) {
        let all = self.unauthenticated.iter_mut().filter(|connection| connection.is_some());
        let since = |connection: &Option<Unauthenticated>| connection.as_ref().map(|it| it.since);
        if let Some(oldest) = all.min_by_key(|connection| since(connection)) {
            oldest.take_if(|connection| connection.since.elapsed() > age);
        }
    }

    fn listen(&mut self, shared: &Shared, number: u32) {
        let Some(entry) = self.unauthenticated.get_mut(number as usize) else {
            return;
        };
        let Some(connection) = entry else {
            return;
        };
        match connection.listen() {
            Claim::Incomplete => {}
            Claim::Refused => *entry = None,
            Claim::Peer(pe) => {
                let Some(Unauthenticated { socket, .. }) = entry.take() else {
                    return;
                };
                let prepared = prepare(&socket, &shared.tuning);
                let target = Target::new(socket, Pe(pe), shared.oversubscribed);
                let number = place(&mut self.targets, target);
                let Some(target) = &self.targets[number as usize] else {
                    return;
                };
                shared.watch(&target.socket, Token::Target(number), false, true);
                match prepared {
                    Ok(()) => self.hot = Some(number),
                    Err(_) => self.targets[number as usize] = None,
                }
            }
        }
    }

    fn mute(&mut self, shared: &Shared) {
        self.muted = true;
        for listener in &self.listeners {
            // It is watched.
            let _ = epoll::delete(&shared.epoll, listener);
        }
    }

    /// Accepts connections, at the start and after a failure.
    pub(crate) fn unmute(&mut self, shared: &Shared) -> rustix::io::Result<()> {
        if self.muted {
            for (number, listener) in self.listeners.iter().enumerate() {
                let token = EventData::new_u64(Token::Listener(number as u32).into());
                epoll::add(&shared.epoll, listener, token, EventFlags::IN)?;
            }
            self.muted = false;
        }
        Ok(())
    }

    /// Every round: unauthenticated connections that took too long are dropped, and hosts that went silent are lost.
    pub(crate) fn look_around(&mut self, shared: &Shared) {
        let now = Instant::now();
        for entry in &mut self.unauthenticated {
            let limit = shared.tuning.handshake_limit;
            entry.take_if(|connection| now.duration_since(connection.since) > limit);
        }
        // It is tried again in the next round.
        let _ = self.unmute(shared);
        for target in self.targets.iter_mut().flatten() {
            let silence = target.blocked().then(|| sys::silence(&target.socket)).flatten();
            lose_if_silent(shared, target.pe, target.heartbeat.look(silence, now));
        }
        for (pe, peer) in shared.peers.iter() {
            let mut link = try_lock(&peer.link);
            if let Some(Link::Open(origin)) = link.as_deref_mut() {
                let silence = origin.waits().then(|| sys::silence(&origin.socket)).flatten();
                let silence = origin.heartbeat.look(silence, now);
                drop(link);
                lose_if_silent(shared, pe, silence);
            }
        }
    }

    /// Says farewell to every peer and closes every connection.
    pub(crate) fn leave(&mut self) {
        for target in self.targets.iter_mut().flatten() {
            target.leave();
        }
        self.listeners.clear();
        self.unauthenticated.clear();
        self.targets.clear();
        self.hot = None;
    }
}

/// Whether somebody waits for a connection to be accepted.
fn is_waiting(listener: &TcpListener) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    sleep_on(&mut fds, Duration::ZERO);
    !fds[0].revents().is_empty()
}

fn lose_if_silent(shared: &Shared, pe: Pe, silence: Duration) {
    if silence > shared.tuning.silence_limit {
        shared.lose(pe, &format!("its host has been silent for {:.0} s", silence.as_secs_f64()));
    }
}
