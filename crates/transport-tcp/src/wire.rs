//! The wire of one origin over the PE's connections, which all origins share. A connection keeps
//! the order of all operations, and any thread may receive from it.

use crate::connection::Connection;
use crate::proto::MAX_BODY;
use crate::shared::SharedState;
use rushmem_transport::engine::Remote;
use rushmem_transport::engine::{
    NetworkAmos, NextEvent, Polled, PolledUntil, PostOutcome, Replies, SentMessage, StreamOrder,
    TakeReply, Wire, WireCaps, WireNetwork, WriteEnd, refuse,
};
use rushmem_transport::{AmoRequest, DestBuf, EndpointUser, Error, Pe, PeMap, SourceBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of polls of the connection from which an answer is expected, before other peers
/// are polled; one poll if PEs outnumber the CPUs. With one, a put of 4 KiB and a quiet take 1.05
/// times as long as with two to eight. Other peers wait for at most this many polls, each of a
/// microsecond, beside an answer that takes several.
const POLLS: usize = 4;

/// The wire of one origin.
pub(crate) struct TcpWire {
    /// The replies to the origin's requests, which any thread may receive.
    replies: Arc<Replies>,
    caps: WireCaps,
    /// Words of long transfers may be torn, since no thread accesses the data meanwhile.
    in_parts: bool,
    routes: PeMap<Route>,
    /// The PEs to which operations since the last fence may be unsent.
    unflushed: Vec<Pe>,
    /// The number of writes, and of reads that no call waits for, that no flush has found complete.
    in_flight: usize,
    /// The PE whose answer a call waits for, or is likely to wait for; `None` if there is none.
    expected: Option<Pe>,
}

/// The writes and reads of one origin at one PE.
#[derive(Default)]
struct Route {
    /// The number of gets on the connection up to the origin's last one.
    last_get: u64,
    /// The position on the connection up to which writes of the origin read their sources.
    reads_until: u64,
    /// The number of writes, and of reads that no call waits for, that no flush has found complete.
    in_flight: usize,
    /// The PE is in [`unflushed`](TcpWire::unflushed).
    is_unflushed: bool,
}

/// An operation that a call waits for.
pub(crate) enum TcpToken {
    /// Over once the kernel has taken the connection's data up to this position.
    Sent(u64),
    /// Over once this number of gets on the connection are answered.
    Got(u64),
}

impl TcpWire {
    /// Returns a wire for the endpoints of a user.
    pub(crate) fn new(shared: &SharedState, user: EndpointUser) -> TcpWire {
        let tuning = &shared.tuning;
        let caps = WireCaps {
            batches: true,
            lone_puts_are_requests: false,
            lone_flags_are_writes: false,
            sessions: true,
            order: StreamOrder::Everything,
            // `SharedState::follow_up` requests a flush of what a connection holds back.
            polled: PolledUntil::Started,
            flushes_free: true,
            flushes_in_wait: true,
            amos: NetworkAmos::default(),
            longest_signaled: tuning.copy_up_to,
            longest_write: MAX_BODY,
            longest_read: MAX_BODY,
            longest_batch: tuning.batch,
            longest_session_batch: tuning.session_batch,
            window: tuning.window,
            max_unanswered: tuning.max_unanswered,
            max_in_flight: usize::MAX,
        };

        TcpWire {
            replies: shared.receiving.replies.add(),
            caps,
            in_parts: user == EndpointUser::Runtime,
            routes: PeMap::new(shared.peers.n_pes()),
            unflushed: Vec::new(),
            in_flight: 0,
            expected: None,
        }
    }

    /// Counts a write, or a read that no call waits for, as in flight.
    fn count(&mut self, pe: Pe) {
        self.routes[pe].in_flight += 1;
        self.in_flight += 1;
    }

    /// Lists a PE for the next fence if the connection to it has unsent data.
    fn list_unsent(&mut self, pe: Pe, is_unsent: bool) {
        if is_unsent && !std::mem::replace(&mut self.routes[pe].is_unflushed, true) {
            self.unflushed.push(pe);
        }
    }

    /// Returns the outcome of an attempt that found no room, and polls this peer from now on: its
    /// answers make room.
    fn full(&mut self, pe: Pe) -> PostOutcome<TcpToken> {
        self.expected = Some(pe);
        PostOutcome::Full
    }
}

impl Wire for TcpWire {
    type Network = SharedState;
    type Token = TcpToken;

    fn caps(&self) -> WireCaps {
        self.caps
    }

    fn reach(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        shared.reach(pe)
    }

    fn write(
        &mut self,
        shared: &SharedState,
        Remote {
            pe, addr: to, peer, ..
        }: Remote<'_, SharedState>,
        source: &mut SourceBuf,
        WriteEnd { awaited, sent, .. }: WriteEnd,
    ) -> Result<PostOutcome<TcpToken>, Error> {
        let put = shared.with_link_of(pe, peer, |connection| {
            connection.put(&shared.tuning, to, source, self.in_parts, sent)
        })?;
        let Some(put) = put else {
            return Ok(self.full(pe));
        };

        self.count(pe);
        self.list_unsent(pe, put.is_unsent);
        if let Some(position) = put.reads_until {
            self.routes[pe].reads_until = position;
        }
        match put.reads_until {
            Some(position) if awaited => {
                self.expected = Some(pe);
                Ok(PostOutcome::Pending(TcpToken::Sent(position)))
            }
            _ => Ok(PostOutcome::Done),
        }
    }

    fn read(
        &mut self,
        shared: &SharedState,
        Remote {
            pe,
            addr: from,
            peer,
            ..
        }: Remote<'_, SharedState>,
        dest: &mut DestBuf,
        awaited: bool,
    ) -> Result<PostOutcome<TcpToken>, Error> {
        let in_parts = self.in_parts && dest.nbytes() > shared.tuning.copy_up_to;
        let segments = &shared.local().segments;
        let is_shared = !in_parts && segments.holding(dest.range()).is_some();

        let get = shared.with_link_of(pe, peer, |connection| {
            connection.get(&shared.tuning, from, dest, in_parts, is_shared, awaited)
        })?;
        let Some(get) = get else {
            return Ok(self.full(pe));
        };

        self.routes[pe].last_get = get.n_gets;
        self.list_unsent(pe, get.is_unsent);
        if !awaited {
            self.count(pe);
            return Ok(PostOutcome::Done);
        }

        self.expected = Some(pe);
        Ok(PostOutcome::Pending(TcpToken::Got(get.n_gets)))
    }

    fn amo(
        &mut self,
        _: &SharedState,
        _: Remote<'_, SharedState>,
        _: &AmoRequest,
        _: &mut Option<DestBuf>,
    ) -> Result<PostOutcome<TcpToken>, Error> {
        unreachable!("the target's CPU carries out all of them")
    }

    fn send(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        message: SentMessage<'_>,
    ) -> Result<PostOutcome<TcpToken>, Error> {
        let is_answered = message.request.slot.is_some() || message.request.position.asks;
        let queued =
            shared.with_link(pe, |connection| connection.message(&shared.tuning, message))?;
        let Some(queued) = queued else {
            return Ok(self.full(pe));
        };

        self.list_unsent(pe, queued.is_unsent);

        if is_answered {
            self.expected = Some(pe);
        }
        Ok(PostOutcome::Done)
    }

    fn is_over(&mut self, shared: &SharedState, pe: Pe, token: &TcpToken) -> Result<bool, Error> {
        shared.with_link(pe, |connection| {
            Ok(match *token {
                TcpToken::Sent(position) => connection.requests.sent() >= position,
                TcpToken::Got(n_gets) => connection.answers.n_got() >= n_gets,
            })
        })
    }

    fn fence(&mut self, shared: &SharedState) -> Result<bool, Error> {
        while let Some(pe) = self.unflushed.pop() {
            self.routes[pe].is_unflushed = false;
            shared.with_link(pe, Connection::flush)?;
        }
        Ok(true)
    }

    /// Returns true if all reads from a PE are answered.
    fn is_flushed(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        let Some(route) = self.routes.get_mut(pe) else {
            return Ok(true);
        };
        if route.in_flight == 0 {
            return Ok(true);
        }

        let last_get = route.last_get;
        let are_answered = shared.with_link(pe, |connection| {
            let are_answered = connection.answers.n_got() >= last_get;
            if !are_answered {
                // What the connection holds back is not answered.
                connection.flush()?;
            }
            Ok(are_answered)
        })?;

        if are_answered {
            self.in_flight -= route.in_flight;
            route.in_flight = 0;
        } else {
            // Polled next, since its answer ends the wait.
            self.expected = Some(pe);
        }
        Ok(are_answered)
    }

    /// Returns true if the kernel has taken all data that are sent from their sources.
    fn are_sources_free(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        let reads_until = self.routes.get(pe).map_or(0, |route| route.reads_until);
        if reads_until == 0 {
            return Ok(true);
        }

        let are_free = shared.with_link(pe, |connection| {
            connection.flush()?;
            Ok(connection.requests.sent() >= reads_until)
        })?;
        if !are_free {
            self.expected = Some(pe);
        }
        Ok(are_free)
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn in_flight_to(&self, pe: Pe) -> usize {
        self.routes.get(pe).map_or(0, |route| route.in_flight)
    }

    /// Polls the connection from which an answer is expected. This takes less time than to ask the
    /// kernel which of all connections have data.
    fn poll(&mut self, shared: &SharedState, take: TakeReply<'_>) -> Result<Polled, Error> {
        let take_replies = |take: TakeReply<'_>| {
            self.replies
                .take(take)
                .map_err(|reply| refuse(shared, &reply))
        };

        if take_replies(&mut *take)? > 0 {
            return Ok(Polled::Worked);
        }

        let Some(pe) = self.expected else {
            return Ok(Polled::Idle);
        };

        // When PEs outnumber the CPUs, the peer may need this CPU to answer.
        let polls = if shared.local().state.oversubscribed() {
            1
        } else {
            POLLS
        };

        for _ in 0..polls {
            let received = shared.try_link(pe, |connection| {
                connection.flush()?;
                connection.receive(&shared.receiving)
            });
            if received == Some(true) {
                return take_replies(take).map(|_| Polled::Worked);
            }
        }
        Ok(Polled::Idle)
    }

    fn serve(&self, shared: &SharedState) -> Result<bool, Error> {
        shared.poll_service()
    }

    /// Reports the loss of the peer if its connection was closed, even by a goodbye.
    fn confirm(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        shared.confirm(pe)
    }

    fn sleep(&mut self, shared: &SharedState, at_most: Duration) {
        shared.sleep_until_data(&[], at_most);
    }

    fn arm(&self, _: bool) -> NextEvent {
        NextEvent::OfNetwork
    }

    fn abandon(&mut self, shared: &SharedState) -> Result<(), String> {
        for (pe, _) in self.routes.iter() {
            shared.abandon(pe);
        }
        Ok(())
    }
}
