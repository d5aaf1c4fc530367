//! The service of this PE, which accepts connections of peers and receives from the links that have
//! events.
//!
//! One thread at a time uses the service. Most turns of waiting threads read only the link from
//! which data are expected, if that is known: to ask the kernel which of all sockets have events
//! takes longer than to read one. This module does not decide which thread polls.

use crate::expected::Expected;
use crate::proto::HANDSHAKE;
use crate::settings::{DESCRIPTORS, Tuning};
use crate::shared::{PeerLink, SharedState, Token};
use crate::socket::{is_of_peer, prepare};
use crate::sys;
use rushmem_connect::handshake::{Acceptor, Answer};
use rushmem_connect::nonce;
use rushmem_connect::strangers::{Claim, Proven, Shortage, StrangerLimits, Strangers, number_of};
use rushmem_system::lock::try_lock;
use rushmem_transport::Pe;
use rushmem_transport::engine::WireNetwork;
use rushmem_transport::engine::service_thread::Served;
use rushmem_transport::progress::timer::timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Maximum number of events handled in one turn. The kernel reports further ones in the next turn,
/// so a smaller number would cost more system calls where many peers send.
const EVENTS: usize = 64;

/// The service, which handles the connections and requests of peers.
pub(crate) struct Service {
    listeners: Vec<TcpListener>,
    /// The listeners are not watched: at the start, and from a failure to accept until the next
    /// round.
    is_muted: bool,
    strangers: Strangers,
    reserved: HashMap<u32, Reserved>,
    expected: Expected,
}

/// A connection that a peer may use, before anything has arrived on it.
struct Reserved {
    socket: TcpStream,
    pe: Pe,
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

    /// Polls once without waiting. Returns true if there was work.
    pub(crate) fn poll(&mut self, shared: &SharedState) -> bool {
        if let Some(pe) = self.expected.begin_turn() {
            let worked = self.serve(shared, pe);
            // Where PEs outnumber the CPUs, the next turn is only after other PEs have run, so this
            // one polls all sockets.
            if worked || !shared.local().state.oversubscribed() {
                return worked;
            }
        }
        self.poll_all(shared) == Served::Worked
    }

    /// Polls all sockets once. Events of a link that another thread is using are left to that
    /// thread.
    pub(crate) fn poll_all(&mut self, shared: &SharedState) -> Served {
        let none = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [none; EVENTS];

        let no_time = timespec(Duration::ZERO);
        // The call fails only if a signal interrupts it. Then the next turn repeats it.
        let n = epoll::wait(&shared.epoll, &mut events, Some(&no_time)).unwrap_or(0);

        let mut worked = false;
        for event in &events[..n] {
            worked |= match Token::from(event.data.u64()) {
                Token::Listener(listener) => {
                    self.accept(shared, listener);
                    true
                }
                Token::Stranger(number) => {
                    self.read_claim(shared, number);
                    true
                }
                Token::Reserved(number) => {
                    self.check_reserved(shared, number);
                    true
                }
                Token::Link(pe) => self.serve(shared, Pe(pe)),
            }
        }

        if n == 0 {
            Served::Idle
        } else if worked {
            Served::Worked
        } else {
            Served::Contended
        }
    }

    /// Sends to and receives from a peer, unless another thread uses its link. Returns true if
    /// there was work.
    fn serve(&mut self, shared: &SharedState, pe: Pe) -> bool {
        let served = shared.try_link(pe, |connection| {
            let was_blocked = connection.is_blocked();
            if was_blocked {
                connection.flush()?;
            }
            Ok(connection.receive(&shared.receiving)? || was_blocked)
        });

        let worked = served == Some(true);
        if worked {
            self.expected.record(pe);
        }
        worked
    }

    /// Accepts the connections that wait at the listener of this number. If that fails, mutes the
    /// listeners until the next round, so that the kernel does not report the same connections over
    /// and over.
    fn accept(&mut self, shared: &SharedState, number: u32) {
        let acceptor = |socket: &TcpStream| {
            let acceptor = Acceptor::new(HANDSHAKE, &shared.secret, shared.local().me.0, nonce()?);
            Ok(acceptor.bound_to(socket.local_addr()?))
        };

        let watch = |socket: &TcpStream| {
            let token = EventData::new_u64(Token::Stranger(number_of(socket)).into());
            epoll::add(&shared.epoll, socket, token, EventFlags::IN).is_ok()
        };

        let accept = |listener: &TcpListener| listener.accept().map(|(socket, _)| socket);

        let listener = &self.listeners[number as usize];
        let accepted = self.strangers.accept(listener, accept, acceptor, watch);

        if let Err(Shortage { error, lasts }) = accepted {
            self.mute(shared);
            if lasts > shared.tuning.refuse_limit {
                let why = DESCRIPTORS.explain(&error);
                shared
                    .local()
                    .loss
                    .of_self(&format!("it can accept no connection of a peer: {why}"));
            }
        }
    }

    fn read_claim(&mut self, shared: &SharedState, number: u32) {
        if let Claim::Right(proven) = self.strangers.read_claim(number)
            && (proven.from as usize) < shared.peers.n_pes()
        {
            self.answer(shared, proven);
        }
    }

    /// Answers a peer that has proved its identity.
    fn answer(&mut self, shared: &SharedState, proven: Proven) {
        let pe = Pe(proven.from);
        let Some(answer) = shared.answer(pe) else {
            return;
        };

        let is_reserved = answer == Answer::Welcome;
        if is_reserved {
            // A peer that claims again has given up its last connection.
            self.reserved.retain(|_, reserved| reserved.pe != pe);
        }

        let answered = proven.answer(answer).and_then(|socket| {
            prepare(&socket, &shared.tuning)?;
            Ok(socket)
        });

        match answered {
            Ok(socket) if is_reserved => {
                let number = number_of(&socket);
                shared.watch(&socket, Token::Reserved(number), false);
                self.reserved.insert(number, Reserved { socket, pe });
            }
            Err(error) if is_reserved => {
                shared.end_reservation(pe, None);
                lose_by(shared, pe, &error);
            }
            _ => {}
        }
    }

    /// Opens the connection that was reserved for a peer if the peer has sent on it, or frees it if
    /// the peer has closed it.
    fn check_reserved(&mut self, shared: &SharedState, number: u32) {
        let Some(reserved) = self.reserved.get(&number) else {
            return;
        };
        let peeked = sys::peek(&reserved.socket);
        if matches!(peeked, Ok(None)) {
            return;
        }

        let Some(Reserved { socket, pe }) = self.reserved.remove(&number) else {
            return;
        };
        match peeked {
            Ok(Some(true)) => shared.end_reservation(pe, Some(socket)),
            // The socket is closed first: a thread that this wakes may need the descriptor.
            Ok(_) => {
                drop(socket);
                shared.end_reservation(pe, None);
            }
            Err(error) => {
                drop(socket);
                shared.end_reservation(pe, None);
                lose_by(shared, pe, &error);
            }
        }
    }

    fn mute(&mut self, shared: &SharedState) {
        self.is_muted = true;
        for listener in &self.listeners {
            // This fails only for a socket that is not watched, which is what is wanted.
            let _ = epoll::delete(&shared.epoll, listener);
        }
    }

    /// Watches the listeners again, so that connections are accepted.
    pub(crate) fn unmute(&mut self, shared: &SharedState) -> rustix::io::Result<()> {
        if self.is_muted {
            for (number, listener) in self.listeners.iter().enumerate() {
                let token = EventData::new_u64(Token::Listener(number as u32).into());
                match epoll::add(&shared.epoll, listener, token, EventFlags::IN) {
                    // Added in an earlier round, in which another listener failed.
                    Err(Errno::EXIST) => {}
                    added => added?,
                }
            }
            self.is_muted = false;
        }
        Ok(())
    }

    /// Drops strangers whose time is over, watches muted listeners again, and reports the loss of
    /// PEs on silent hosts. Called at most once per [`round`](crate::Tuning::round).
    pub(crate) fn check_limits(&mut self, shared: &SharedState) {
        let now = Instant::now();
        self.strangers.expire();
        // If this fails, for lack of memory, the listeners stay muted, and the next round tries
        // again.
        let _ = self.unmute(shared);

        for (pe, peer) in shared.peers.iter() {
            let mut link = try_lock(&peer.of_provider.link);
            if let Some(PeerLink::Open(connection)) = link.as_deref_mut() {
                // This includes data that need no answer: the kernel of a lost host never
                // acknowledges them.
                let silence = sys::silence(&connection.socket);
                let silence = connection.heartbeat.add_sample(silence, now);
                drop(link);

                if silence > shared.tuning.silence_limit {
                    let seconds = silence.as_secs_f64();
                    shared.lose(pe, &format!("its host has been silent for {seconds:.0} s"));
                }
            }
        }
    }

    /// Ends the acceptance of connections, and drops those that are not open yet.
    pub(crate) fn leave(&mut self) {
        self.listeners.clear();
        self.strangers.clear();
        self.reserved.clear();
    }
}

/// Reports that this PE cannot use its network, if it is the cause of this error on a connection of
/// PE `pe` that is not open yet. An error that the peer or the path causes is no loss, since
/// nothing was sent on the connection, and another one can be made.
fn lose_by(shared: &SharedState, pe: Pe, error: &io::Error) {
    if !is_of_peer(error) {
        let why = DESCRIPTORS.explain(error);
        shared.local().loss.of_self(&format!(
            "it cannot accept the connection of PE {pe}: {why}"
        ));
    }
}
