//! Progress on the sockets of this PE, by threads that wait in the library and by the service
//! thread: accepts connections of peers, and receives from the links that have events.
//!
//! One thread at a time uses the service. Most turns of waiting threads read only the link from
//! which data are expected, if that is known: to ask the kernel which of all sockets have events
//! takes longer than to read one.

use crate::link::{PeerLink, Token};
use crate::proto::HANDSHAKE;
use crate::service::{Reserved, Service};
use crate::settings::DESCRIPTORS;
use crate::shared::SharedState;
use crate::socket::{is_of_peer, prepare};
use crate::sys;
use crate::wire::TcpWire;
use rushmem_connect::handshake::{Acceptor, Answer};
use rushmem_connect::nonce;
use rushmem_connect::strangers::{Claim, Proven, Shortage, number_of};
use rushmem_system::lock::{lock, try_lock};
use rushmem_transport::engine::driver::{
    Driver, MAX_SLEEP_IN_FLIGHT, Progress, Served, Sleeper, Woken,
};
use rushmem_transport::engine::{Issuers, WireNetwork};
use rushmem_transport::progress::backoff::{FLUSH_DELAY, WaitLimits};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::progress::timer::timespec;
use rushmem_transport::{EndpointUser, Error, Pe};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of idle polls that take as long as receiving a message and sending the next one.
const POLLS_PER_MESSAGE: u64 = 8;
/// Maximum number of events handled in one turn. The kernel reports further ones in the next turn,
/// so a smaller number would cost more system calls where many peers send.
const EVENTS: usize = 64;

impl Driver for SharedState {
    type Wire = TcpWire;

    fn open_wire(self: &Arc<Self>, user: EndpointUser) -> Result<TcpWire, Error> {
        Ok(TcpWire::new(self, user))
    }

    fn poll(&self, issuers: &Issuers<TcpWire>) -> Result<bool, Error> {
        if issuers.finish_in_wait() {
            self.local().state.request_flush();
        }
        self.poll_service()
    }

    fn flush(&self, issuers: &Issuers<TcpWire>) -> bool {
        let is_left = issuers.finish_in_service();
        self.send_held_back() || is_left
    }

    fn serve(&self) -> Served {
        match try_lock(&self.service) {
            Some(mut service) => self.serve_all(&mut service),
            None => Served::Contended,
        }
    }

    fn sleep(&self, _: &Issuers<TcpWire>, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let sockets = [self.epoll.as_fd()];
        if !is_left {
            sleeper.until(&sockets, self.tuning.round);
        } else if self.has_held_back() {
            sleeper.briefly(&sockets, FLUSH_DELAY);
        } else if self.local().state.oversubscribed() {
            // The batches of a thread that is in a call, or has just been in one, are left. That
            // thread needs the CPU, perhaps to connect.
            sleeper.briefly(&sockets, WaitLimits::LONGEST);
        } else {
            sleeper.briefly(&sockets, MAX_SLEEP_IN_FLIGHT);
        }
    }

    fn sleep_in_wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Woken {
        if is_over() || self.sleep_until_data(awaited, at_most) {
            Woken::ToPoll
        } else {
            Woken::ByOthers
        }
    }

    fn longest_backoff(&self, _: &Issuers<TcpWire>) -> Duration {
        self.tuning.round
    }

    fn checks(&self) -> impl FnMut() {
        let mut last = Instant::now();
        move || {
            if last.elapsed() >= self.tuning.round {
                last = Instant::now();
                if let Some(mut service) = try_lock(&self.service) {
                    self.check_limits(&mut service);
                }
            }
        }
    }

    fn leave(progress: &Arc<Progress<SharedState>>) {
        let shared = progress.network();
        for (_, peer) in shared.peers.iter() {
            let mut link = lock(&peer.of_provider.link);
            if let PeerLink::Open(connection) = &mut *link {
                connection.leave();
            }
            *link = PeerLink::closed("this PE has left the job".to_owned());
        }
        lock(&shared.service).leave();
    }
}

impl SharedState {
    /// Sends queued data and serves peers, unless another thread does, on behalf of a thread that
    /// waits. Returns true if there was work for peers.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        let state = &self.local().state;
        state.count_poll();
        if self.send_held_back() {
            state.request_flush();
        }

        let worked =
            try_lock(&self.service).is_some_and(|mut service| self.serve_next(&mut service));
        if worked && !state.oversubscribed() {
            state.add_polls(POLLS_PER_MESSAGE);
        }

        self.local().loss.check()?;
        Ok(worked)
    }

    /// Polls once without waiting. Returns true if there was work.
    fn serve_next(&self, service: &mut Service) -> bool {
        if let Some(pe) = service.expected.begin_turn() {
            let worked = self.serve_link(service, pe);
            // Where PEs outnumber the CPUs, the next turn is only after other PEs have run, so this
            // one polls all sockets.
            if worked || !self.local().state.oversubscribed() {
                return worked;
            }
        }
        self.serve_all(service) == Served::Worked
    }

    /// Polls all sockets once. Events of a link that another thread is using are left to that
    /// thread.
    fn serve_all(&self, service: &mut Service) -> Served {
        let none = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [none; EVENTS];

        let no_time = timespec(Duration::ZERO);
        // The call fails only if a signal interrupts it. Then the next turn repeats it.
        let n = epoll::wait(&self.epoll, &mut events, Some(&no_time)).unwrap_or(0);

        let mut worked = false;
        for event in &events[..n] {
            worked |= match Token::from(event.data.u64()) {
                Token::Listener(listener) => {
                    self.accept(service, listener);
                    true
                }
                Token::Stranger(number) => {
                    self.read_claim(service, number);
                    true
                }
                Token::Reserved(number) => {
                    self.check_reserved(service, number);
                    true
                }
                Token::Link(pe) => self.serve_link(service, Pe(pe)),
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
    fn serve_link(&self, service: &mut Service, pe: Pe) -> bool {
        let served = self.try_link(pe, |connection| {
            let was_blocked = connection.is_blocked();
            if was_blocked {
                connection.flush()?;
            }
            Ok(connection.receive(&self.receiving)? || was_blocked)
        });

        let worked = served == Some(true);
        if worked {
            service.expected.record(pe);
        }
        worked
    }

    /// Accepts the connections that wait at the listener of this number.
    fn accept(&self, service: &mut Service, number: u32) {
        let acceptor = |socket: &TcpStream| {
            let acceptor = Acceptor::new(HANDSHAKE, &self.secret, self.local().me.0, nonce()?);
            Ok(acceptor.bound_to(socket.local_addr()?))
        };

        if let Err(Shortage { error, lasts }) = service.accept(number, &self.epoll, acceptor)
            && lasts > self.tuning.refuse_limit
        {
            let why = DESCRIPTORS.explain(&error);
            self.local()
                .loss
                .of_self(&format!("it can accept no connection of a peer: {why}"));
        }
    }

    fn read_claim(&self, service: &mut Service, number: u32) {
        if let Claim::Right(proven) = service.strangers.read_claim(number)
            && (proven.from as usize) < self.peers.n_pes()
        {
            self.answer_claim(service, proven);
        }
    }

    /// Answers a peer that has proved its identity.
    fn answer_claim(&self, service: &mut Service, proven: Proven) {
        let pe = Pe(proven.from);
        let Some(answer) = self.answer(pe) else {
            return;
        };

        let is_reserved = answer == Answer::Welcome;
        if is_reserved {
            // A peer that claims again has given up its last connection.
            service.reserved.retain(|_, reserved| reserved.pe != pe);
        }

        let answered = proven.answer(answer).and_then(|socket| {
            prepare(&socket, &self.tuning)?;
            Ok(socket)
        });

        match answered {
            Ok(socket) if is_reserved => {
                let number = number_of(&socket);
                self.watch(&socket, Token::Reserved(number), false);
                service.reserved.insert(number, Reserved { socket, pe });
            }
            Err(error) if is_reserved => {
                self.end_reservation(pe, None);
                self.lose_by(pe, &error);
            }
            _ => {}
        }
    }

    /// Opens the connection that was reserved for a peer if the peer has sent on it, or frees it if
    /// the peer has closed it.
    fn check_reserved(&self, service: &mut Service, number: u32) {
        let Some(reserved) = service.reserved.get(&number) else {
            return;
        };
        let peeked = sys::peek(&reserved.socket);
        if matches!(peeked, Ok(None)) {
            return;
        }

        let Some(Reserved { socket, pe }) = service.reserved.remove(&number) else {
            return;
        };
        match peeked {
            Ok(Some(true)) => self.end_reservation(pe, Some(socket)),
            // The socket is closed first: a thread that this wakes may need the descriptor.
            Ok(_) => {
                drop(socket);
                self.end_reservation(pe, None);
            }
            Err(error) => {
                drop(socket);
                self.end_reservation(pe, None);
                self.lose_by(pe, &error);
            }
        }
    }

    /// Drops strangers whose time is over, watches muted listeners again, and reports the loss of
    /// PEs on silent hosts. Called at most once per [`round`](crate::Tuning::round).
    fn check_limits(&self, service: &mut Service) {
        let now = Instant::now();
        service.strangers.expire();
        // If this fails, for lack of memory, the listeners stay muted, and the next round tries
        // again.
        let _ = service.unmute(&self.epoll);

        for (pe, peer) in self.peers.iter() {
            let mut link = try_lock(&peer.of_provider.link);
            if let Some(PeerLink::Open(connection)) = link.as_deref_mut() {
                // This includes data that need no answer: the kernel of a lost host never
                // acknowledges them.
                let sample = sys::silence(&connection.socket);
                let silence = connection.heartbeat.add_sample(sample, now);
                drop(link);

                if silence > self.tuning.silence_limit {
                    let seconds = silence.as_secs_f64();
                    self.lose(pe, &format!("its host has been silent for {seconds:.0} s"));
                }
            }
        }
    }

    /// Reports that this PE cannot use its network, if that is the cause of this error on a
    /// connection of PE `pe` that is not open yet. An error that the peer or the path causes is no
    /// loss, since nothing was sent on the connection, and another one can be made.
    fn lose_by(&self, pe: Pe, error: &io::Error) {
        if !is_of_peer(error) {
            let why = DESCRIPTORS.explain(error);
            self.local().loss.of_self(&format!(
                "it cannot accept the connection of PE {pe}: {why}"
            ));
        }
    }
}
