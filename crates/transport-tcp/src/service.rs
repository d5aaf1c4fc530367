//! Who polls it serves this PE's peers: new connections, requests, and links that have news.
//!
//! One thread at a time, under a lock that is only ever tried: a PE that waits in the library, or else
//! the service thread. The connection that had requests last is looked at first and alone for a few
//! turns, since asking the kernel which of all sockets has news costs more than asking one.

use crate::dial;
use crate::guest::{Guest, Verdict};
use crate::inbound::{End, Inbound, Turn};
use crate::proto::Acceptor;
use crate::shared::{Link, Shared, Token, timespec, try_lock};
use crate::sys;
use crate::tuning::DESCRIPTORS;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes received at once where they do not go straight to their place.
const BUFFER: usize = 64 << 10;
/// Turns in which only the last busy connection is looked at.
const HOT_TURNS: u32 = 32;
/// Connections accepted in one turn.
const ACCEPTS: usize = 16;
/// Events taken in one turn.
const EVENTS: usize = 64;

/// The target's side of this PE.
pub(crate) struct Service {
    listeners: Vec<TcpListener>,
    /// Accepting failed: nobody is let in until the next round.
    muted: bool,
    /// Since when nobody could be let in although somebody was at the door.
    shut: Option<Instant>,
    guests: Vec<Option<Guest>>,
    inbound: Vec<Option<Inbound>>,
    buffer: Box<[u8]>,
    /// The connection that had requests last.
    hot: Option<u32>,
    turns: u32,
}

/// Put into the first free place.
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
            shut: None,
            guests: Vec::new(),
            inbound: Vec::new(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            hot: None,
            turns: 0,
        }
    }

    /// A quick look; returns whether there was work.
    pub(crate) fn poll(&mut self, shared: &Shared) -> bool {
        self.turns = self.turns.wrapping_add(1);
        match self.hot {
            Some(hot) if !self.turns.is_multiple_of(HOT_TURNS) => self.serve(shared, hot),
            _ => self.poll_all(shared),
        }
    }

    /// Look at everything; returns whether there was work.
    pub(crate) fn poll_all(&mut self, shared: &Shared) -> bool {
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; EVENTS];
        let now = timespec(Duration::ZERO);
        let n = epoll::wait(&shared.epoll, &mut events, Some(&now)).unwrap_or(0);
        for event in &events[..n] {
            match Token::from(event.data.u64()) {
                Token::Listener(listener) => self.accept(shared, listener),
                Token::Guest(guest) => self.listen(shared, guest),
                Token::Inbound(inbound) => {
                    self.serve(shared, inbound);
                }
                // Who has the link looks at it.
                Token::Link(pe) => {
                    shared.try_link(pe, |out| {
                        if out.is_blocked() {
                            out.flush()?;
                        }
                        out.receive()
                    });
                }
            }
        }
        n > 0
    }

    fn serve(&mut self, shared: &Shared, number: u32) -> bool {
        let Some(Some(inbound)) = self.inbound.get_mut(number as usize) else {
            return false;
        };
        match inbound.serve(&shared.areas, &mut self.buffer) {
            Ok(Turn { worked, changed }) => {
                if inbound.blocked() != inbound.told_of_room {
                    inbound.told_of_room = inbound.blocked();
                    let token = Token::Inbound(number);
                    let blocked = inbound.told_of_room;
                    shared.watch(&inbound.socket, token, blocked, !blocked);
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
                let pe = inbound.pe;
                self.inbound[number as usize] = None;
                self.hot = None;
                if let End::Broken(why) = end
                    && !shared.closing.load(Ordering::Acquire)
                {
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
                    self.shut = None;
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
                    if !is_at_the_door(&self.listeners[number as usize]) {
                        self.shut = None;
                        return;
                    }
                    // Make room, and do not ask again at once.
                    self.dismiss_oldest(shared.tuning.round);
                    self.mute(shared);
                    let since = *self.shut.get_or_insert_with(Instant::now);
                    if since.elapsed() > shared.tuning.shut_limit {
                        shared.give_up(&format!(
                            "it can let no peer in: {}",
                            DESCRIPTORS.explain(&e)
                        ));
                    }
                    return;
                }
            }
        }
    }

    fn greet(&mut self, shared: &Shared, socket: TcpStream) {
        let here = self.guests.iter().flatten().count();
        if here >= shared.tuning.most_guests {
            self.dismiss_oldest(Duration::ZERO);
        }
        let Ok(nonce) = dial::nonce() else {
            return;
        };
        let n_pes = shared.peers.len() as u32;
        let acceptor = Acceptor::new(shared.secret, shared.me, n_pes, nonce);
        // A guest that cannot be greeted is gone.
        if let Ok(guest) = Guest::greet(socket, acceptor) {
            let number = place(&mut self.guests, guest);
            let Some(guest) = &self.guests[number as usize] else {
                return;
            };
            let token = EventData::new_u64(Token::Guest(number).into());
            if epoll::add(&shared.epoll, &guest.socket, token, EventFlags::IN).is_err() {
                self.guests[number as usize] = None;
            }
        }
    }

    /// Show the oldest guest the door, if it has stayed for longer than that.
    fn dismiss_oldest(&mut self, stayed: Duration) {
        let oldest = self.guests.iter_mut().filter(|guest| guest.is_some());
        if let Some(oldest) = oldest.min_by_key(|guest| guest.as_ref().map(|guest| guest.since)) {
            oldest.take_if(|guest| guest.since.elapsed() > stayed);
        }
    }

    fn listen(&mut self, shared: &Shared, number: u32) {
        let Some(place_of_guest) = self.guests.get_mut(number as usize) else {
            return;
        };
        let Some(guest) = place_of_guest else {
            return;
        };
        match guest.listen() {
            Verdict::Later => {}
            Verdict::Stranger => *place_of_guest = None,
            Verdict::Peer(pe) => {
                let Some(Guest { socket, .. }) = place_of_guest.take() else {
                    return;
                };
                let prepared = dial::prepare(&socket, &shared.tuning);
                let number = place(&mut self.inbound, Inbound::new(socket, pe));
                let Some(inbound) = &self.inbound[number as usize] else {
                    return;
                };
                shared.watch(&inbound.socket, Token::Inbound(number), false, true);
                match prepared {
                    Ok(()) => self.hot = Some(number),
                    Err(_) => self.inbound[number as usize] = None,
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

    /// Let connections in, at the start and after a failure.
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

    /// Every round: guests that stayed too long go, and hosts that went silent are lost.
    pub(crate) fn look_around(&mut self, shared: &Shared) {
        let now = Instant::now();
        for place in &mut self.guests {
            if let Some(guest) = place
                && now.duration_since(guest.since) > shared.tuning.guest_limit
            {
                *place = None;
            }
        }
        // It is tried again in the next round.
        let _ = self.unmute(shared);
        for inbound in self.inbound.iter_mut().flatten() {
            let silence = inbound.blocked().then(|| sys::silence(&inbound.socket)).flatten();
            lose_if_silent(shared, inbound.pe, inbound.vigil.look(silence, now));
        }
        for (pe, peer) in shared.peers.iter().enumerate() {
            let mut link = try_lock(&peer.link);
            if let Some(Link::Open(out)) = link.as_deref_mut() {
                let silence = out.waits().then(|| sys::silence(&out.socket)).flatten();
                let silence = out.vigil.look(silence, now);
                drop(link);
                lose_if_silent(shared, pe as u32, silence);
            }
        }
    }

    /// Say farewell to every peer and close every connection.
    pub(crate) fn leave(&mut self) {
        for inbound in self.inbound.iter_mut().flatten() {
            inbound.leave();
        }
        self.listeners.clear();
        self.guests.clear();
        self.inbound.clear();
        self.hot = None;
    }
}

/// Whether somebody waits to be let in.
fn is_at_the_door(listener: &TcpListener) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|n| n > 0)
}

fn lose_if_silent(shared: &Shared, pe: u32, silence: Duration) {
    if silence > shared.tuning.silence_limit {
        shared.lose(pe, &format!("its host has been silent for {:.0} s", silence.as_secs_f64()));
    }
}
