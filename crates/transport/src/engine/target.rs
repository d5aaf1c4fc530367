//! The target of requests: it carries out the requests of each stream in their order, whatever the
//! order in which they arrive, acknowledges them, and replies with the results.

use super::acks::Acks;
use super::batch;
use super::message::{
    Ack, MAX_IN_FLIGHT, MAX_ORIGINS, Reply, Request, Stream, StreamPosition, has_reached,
};
use super::wire::NetworkPe;
use crate::peers::loss::Violation;
use crate::segments::Segments;
use crate::{Host, LocalBuf, Pe};
use std::cell::RefCell;
use std::collections::HashMap;

/// What a provider implements to serve requests.
pub trait Serving {
    /// Where the reply to a request is sent.
    type ReplyTo: Copy;
    /// Identifies data that stay at the origin until the target fetches them.
    type Remote;
    /// The provider's data on a segment.
    type Extra;

    /// Returns the state of this PE.
    fn local(&self) -> &NetworkPe<Self::Extra>;

    /// Sends a reply, with the results of a batch.
    ///
    /// # Errors
    /// When the results are more than a request may ask for.
    fn reply(
        &self,
        incoming: Incoming<Self::ReplyTo>,
        reply: Reply,
        answers: Vec<u8>,
    ) -> Result<(), Violation>;

    /// Begins to fetch the data of a request to `dest`. The provider calls
    /// [`RequestTarget::finish`] when they have arrived.
    fn fetch(&self, incoming: Incoming<Self::ReplyTo>, data: Self::Remote, dest: LocalBuf);
}

/// A request that has arrived, and where its reply is sent.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<T> {
    /// The request, without its data or batch.
    pub request: Request,
    /// Where the reply is sent.
    pub reply_to: T,
}

/// The data of a request.
pub enum IncomingData<'a, R> {
    /// Bytes that have arrived with the request.
    Here(Body<'a>),
    /// This many bytes, which the target fetches from the origin.
    There(R, usize),
}

/// A request that has arrived before one that it must follow.
#[derive(Debug)]
struct EarlyRequest<T, R> {
    incoming: Incoming<T>,
    data: EarlyData<R>,
}

/// The data of an early request: copied if they have arrived with it.
#[derive(Debug)]
enum EarlyData<R> {
    Data(Vec<u8>),
    Batch(Vec<u8>),
    There(R, usize),
}

impl<R> EarlyData<R> {
    fn keep(data: IncomingData<'_, R>) -> EarlyData<R> {
        match data {
            IncomingData::Here(Body::Data(bytes)) => EarlyData::Data(bytes.to_vec()),
            IncomingData::Here(Body::Batch(batch)) => EarlyData::Batch(batch.to_vec()),
            IncomingData::There(data, nbytes) => EarlyData::There(data, nbytes),
        }
    }
}

/// The requests of all peers to this PE. One thread at a time uses it. It is not borrowed while
/// [`Serving::reply`] or [`Serving::fetch`] runs, so that `fetch` may call
/// [`finish`](RequestTarget::finish).
#[derive(Debug)]
pub struct RequestTarget<T, R>(RefCell<Streams<EarlyRequest<T, R>>>);

impl<T: Copy, R> RequestTarget<T, R> {
    /// Returns the target of PE `me`.
    pub fn new(me: Pe) -> RequestTarget<T, R> {
        RequestTarget(RefCell::new(Streams::new(me)))
    }

    /// Handles a request that has arrived. Keeps it if it must follow requests that are not carried
    /// out yet. Otherwise begins to fetch its data or, if these have arrived, carries it out, and
    /// then the kept requests that waited for it.
    ///
    /// # Errors
    /// When the request, or a kept one, violates the protocol.
    pub fn take(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
        data: IncomingData<'_, R>,
    ) -> Result<(), Violation> {
        if let IncomingData::There(_, nbytes) = data {
            data_memory(serving, &incoming.request, nbytes)?;
        }
        let request = &incoming.request;
        let order = self.0.borrow_mut().accept(&serving.local().acks, request)?;
        if order == ArrivalOrder::Early {
            let early = EarlyRequest {
                incoming,
                data: EarlyData::keep(data),
            };
            self.0.borrow_mut().keep(request, early);
            return Ok(());
        }
        self.carry_out(serving, incoming, data)?;
        self.carry_out_early(serving, request.stream)
    }

    /// Carries out a request whose data were fetched, and then the kept requests that waited for
    /// it.
    ///
    /// # Errors
    /// When one of the requests violates the protocol.
    pub fn finish(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
    ) -> Result<(), Violation> {
        self.carry_out(serving, incoming, IncomingData::Here(Body::Data(&[])))?;
        self.carry_out_early(serving, incoming.request.stream)
    }

    /// Carries out the kept requests of a stream that need not wait any more.
    fn carry_out_early(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        stream: Stream,
    ) -> Result<(), Violation> {
        loop {
            let next = self.0.borrow_mut().take_ready(stream);
            let Some(EarlyRequest { incoming, data }) = next else {
                return Ok(());
            };
            let data = match data {
                EarlyData::Data(ref bytes) => IncomingData::Here(Body::Data(bytes)),
                EarlyData::Batch(ref batch) => IncomingData::Here(Body::Batch(batch)),
                EarlyData::There(data, nbytes) => IncomingData::There(data, nbytes),
            };
            self.carry_out(serving, incoming, data)?;
        }
    }

    /// Carries out a request, or begins to fetch its data if they are at the origin.
    fn carry_out(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
        data: IncomingData<'_, R>,
    ) -> Result<(), Violation> {
        let request = &incoming.request;
        let body = match data {
            IncomingData::Here(body) => body,
            IncomingData::There(data, nbytes) => {
                serving.fetch(incoming, data, data_memory(serving, request, nbytes)?);
                return Ok(());
            }
        };
        let mut answers = Vec::new();
        let NetworkPe { segments, host, .. } = serving.local();
        let old = request.carry_out(body, segments, &**host, &mut answers)?;
        let reply = self
            .0
            .borrow_mut()
            .mark_carried_out(&serving.local().acks, request, old);
        match reply {
            Some(reply) => serving.reply(incoming, reply, answers),
            None => Ok(()),
        }
    }
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Small operations.
    Batch(&'a [u8]),
    /// Data for the address that the request names.
    Data(&'a [u8]),
}

impl Request {
    /// Stores the data of the request or carries out its batch, then carries out its update.
    /// Returns the old value, or 0 without an update, and appends the results of the batch to
    /// `answers`.
    ///
    /// # Errors
    /// When the request is malformed. What precedes the error was carried out.
    pub fn carry_out<T>(
        &self,
        body: Body<'_>,
        segments: &Segments<T>,
        host: &dyn Host,
        answers: &mut Vec<u8>,
    ) -> Result<u64, Violation> {
        match body {
            Body::Data([]) => {}
            Body::Data(data) if segments.write(self.dest, data) => {}
            Body::Data(_) => return Err(Violation::Address(self.dest.offset)),
            Body::Batch(batch) => batch::carry_out(batch, segments, host, answers)?,
        }
        self.apply(segments)
    }

    /// Carries out the update, if there is one. Returns the old value, or 0.
    ///
    /// # Errors
    /// When the word is not in a segment of this PE, or not aligned.
    fn apply<T>(&self, segments: &Segments<T>) -> Result<u64, Violation> {
        let Some(update) = self.update else {
            return Ok(0);
        };
        segments
            .apply(&update)
            .ok_or(Violation::Address(update.dest.offset))
    }
}

/// Returns the memory for the data of a request.
fn data_memory(
    serving: &impl Serving,
    request: &Request,
    nbytes: usize,
) -> Result<LocalBuf, Violation> {
    let memory = serving.local().segments.bytes(request.dest, nbytes);
    memory.ok_or(Violation::Address(request.dest.offset))
}

/// The order of the requests of all streams to PE `me`. `T` is what is kept of a request that has
/// arrived early.
#[derive(Debug)]
pub struct Streams<T> {
    me: Pe,
    carried: HashMap<Stream, CarriedOut<T>>,
}

impl<T> Streams<T> {
    /// Returns a record without streams.
    pub fn new(me: Pe) -> Streams<T> {
        Streams {
            me,
            carried: HashMap::new(),
        }
    }

    /// Validates a request that has arrived, and records the acknowledgment that it includes.
    /// Returns whether the request is to be carried out now.
    ///
    /// # Errors
    /// When the request violates the protocol: its stream, its acknowledgment or its number is one
    /// that no origin sends at this point.
    pub fn accept(&mut self, acks: &Acks, request: &Request) -> Result<ArrivalOrder, Violation> {
        let &Request {
            stream,
            position,
            ack,
            ..
        } = request;
        if stream.pe.index() >= acks.n_pes() || stream.origin >= MAX_ORIGINS {
            return Err(Violation::Unknown("stream of requests"));
        }
        if let Some(ack) = ack {
            acks.acknowledge(stream.pe, ack)?;
        }
        self.carried
            .entry(stream)
            .or_default()
            .arrival_order(position)
    }

    /// Keeps what is needed of a request that has arrived [early](ArrivalOrder::Early).
    pub fn keep(&mut self, request: &Request, early: T) {
        self.carried
            .entry(request.stream)
            .or_default()
            .keep(request.position, early);
    }

    /// Removes and returns a kept request of a stream that may be carried out now.
    pub fn take_ready(&mut self, stream: Stream) -> Option<T> {
        self.carried.get_mut(&stream)?.take_ready()
    }

    /// Records that a request was carried out; `old` is its old value. Returns the reply, if the
    /// request asks for an acknowledgment or an answer; otherwise the next message to its PE
    /// may acknowledge the request.
    pub fn mark_carried_out(&mut self, acks: &Acks, request: &Request, old: u64) -> Option<Reply> {
        let &Request {
            stream,
            position,
            slot,
            ..
        } = request;
        let carried = self.carried.entry(stream).or_default();
        carried.mark_carried_out(position.number);
        let count = carried.count();
        if !position.asks && slot.is_none() {
            acks.mark_carried_out(stream, count);
            return None;
        }
        let ack = Ack {
            origin: stream.origin,
            count,
        };
        Some(Reply {
            pe: self.me,
            ack,
            old: slot.map(|slot| (slot, old)),
        })
    }
}

/// Whether a request that has arrived may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOrder {
    /// All requests that it must follow are carried out.
    Next,
    /// Others must be carried out first, so the request is [kept](CarriedOut::keep).
    Early,
}

/// The requests of one stream that the target has carried out. `T` is what is kept of a request
/// that has arrived early.
#[derive(Debug)]
pub struct CarriedOut<T> {
    /// All requests up to this number were carried out.
    count: u32,
    /// Later requests that were carried out, too.
    beyond: Vec<u32>,
    early: Vec<(StreamPosition, T)>,
}

impl<T> Default for CarriedOut<T> {
    fn default() -> CarriedOut<T> {
        CarriedOut {
            count: 0,
            beyond: Vec::new(),
            early: Vec::new(),
        }
    }
}

impl<T> CarriedOut<T> {
    /// Returns a record that starts as if `count` requests had been carried out.
    #[cfg(test)]
    pub(super) fn with_count(count: u32) -> CarriedOut<T> {
        CarriedOut {
            count,
            ..CarriedOut::default()
        }
    }

    /// Returns the number up to which all requests were carried out.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns whether a request that has arrived may be carried out.
    ///
    /// # Errors
    /// If no origin sends this number at this point.
    #[inline]
    pub fn arrival_order(&self, position: StreamPosition) -> Result<ArrivalOrder, Violation> {
        let StreamPosition { number, after, .. } = position;
        let ahead = number.wrapping_sub(self.count);
        let is_new = (1..=MAX_IN_FLIGHT).contains(&ahead)
            && !self.beyond.contains(&number)
            && self.early.iter().all(|(other, _)| other.number != number);
        match is_new && has_reached(number.wrapping_sub(1), after) {
            false => Err(Violation::Number(number)),
            true if has_reached(self.count, after) => Ok(ArrivalOrder::Next),
            true => Ok(ArrivalOrder::Early),
        }
    }

    /// Keeps a request to be carried out later.
    pub fn keep(&mut self, position: StreamPosition, request: T) {
        self.early.push((position, request));
    }

    /// Records that a request was carried out.
    #[inline]
    pub fn mark_carried_out(&mut self, number: u32) {
        if number != self.count.wrapping_add(1) {
            return self.beyond.push(number);
        }
        self.count = number;
        while let Some(next) = self
            .beyond
            .iter()
            .position(|n| *n == self.count.wrapping_add(1))
        {
            self.beyond.swap_remove(next);
            self.count = self.count.wrapping_add(1);
        }
    }

    /// Removes and returns a kept request that may be carried out now.
    #[inline]
    pub fn take_ready(&mut self) -> Option<T> {
        let count = self.count;
        let next = self
            .early
            .iter()
            .position(|(position, _)| has_reached(count, position.after))?;
        Some(self.early.swap_remove(next).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::message::StreamPosition;
    use crate::{RemoteAddr, Segment};

    /// Returns a request that does nothing.
    fn request(stream: Stream, number: u32, after: u32) -> Request {
        Request {
            stream,
            position: StreamPosition {
                number,
                after,
                asks: false,
            },
            ack: None,
            slot: None,
            update: None,
            dest: RemoteAddr {
                segment: Segment::Heap,
                offset: 0,
            },
        }
    }

    #[test]
    fn requests_wait_for_their_turn_and_are_acknowledged() {
        let (acks, mut streams) = (Acks::new(2), Streams::new(Pe(0)));
        let stream = Stream {
            pe: Pe(1),
            origin: 3,
        };
        let (first, second) = (request(stream, 1, 0), request(stream, 2, 1));
        let fetch = Request {
            slot: Some(7),
            ..first
        };
        assert_eq!(streams.accept(&acks, &second), Ok(ArrivalOrder::Early));
        streams.keep(&second, "second");
        assert_eq!(streams.take_ready(stream), None);
        assert_eq!(streams.accept(&acks, &fetch), Ok(ArrivalOrder::Next));
        let reply = streams
            .mark_carried_out(&acks, &fetch, 5)
            .expect("the old value is due");
        assert_eq!(
            reply,
            Reply {
                pe: Pe(0),
                ack: Ack {
                    origin: 3,
                    count: 1
                },
                old: Some((7, 5))
            }
        );
        assert_eq!(streams.take_ready(stream), Some("second"));
        assert_eq!(streams.mark_carried_out(&acks, &second, 0), None);
        assert_eq!(
            acks.for_message_to(Pe(1)),
            Some(Ack {
                origin: 3,
                count: 2
            })
        );
        assert_eq!(streams.accept(&acks, &second), Err(Violation::Number(2)));
    }

    #[test]
    fn nothing_is_kept_of_streams_that_do_not_exist() {
        let (acks, mut streams) = (Acks::new(2), Streams::<()>::new(Pe(0)));
        for stream in [
            Stream {
                pe: Pe(2),
                origin: 0,
            },
            Stream {
                pe: Pe(1),
                origin: MAX_ORIGINS,
            },
        ] {
            let order = streams.accept(&acks, &request(stream, 2, 1));
            assert_eq!(order, Err(Violation::Unknown("stream of requests")));
        }
        assert!(streams.carried.is_empty());
    }
}
