//! The work of a target on the requests that come: it carries each out in its turn
//! ([`streams`](super::streams)), and replies if the request asks or an old value is due.

use super::carried_out::ArrivalOrder;
use super::message::{Body, Reply, Request};
use super::network_pe::NetworkPe;
use super::stream::Stream;
use super::streams::Streams;
use super::violation::Violation;
use crate::{LocalBuf, Pe};
use std::cell::RefCell;

/// The functions by which a provider serves requests.
pub trait Serving {
    /// The destination of the reply to a request.
    type ReplyTo: Copy;
    /// The name of data that stay at the origin until they are fetched.
    type Remote;
    /// The provider's data on a segment.
    type Extra;

    /// Returns this PE.
    fn local(&self) -> &NetworkPe<Self::Extra>;

    /// Sends a reply, with the answers to a batch.
    ///
    /// # Errors
    /// When no PE requests as much.
    fn reply(
        &self,
        incoming: Incoming<Self::ReplyTo>,
        reply: Reply,
        answers: Vec<u8>,
    ) -> Result<(), Violation>;

    /// Begins to fetch the data of a request to where they go. [`RequestTarget::finish`] comes
    /// next.
    fn fetch(&self, incoming: Incoming<Self::ReplyTo>, data: Self::Remote, place: LocalBuf);
}

/// A request, and where the reply to it goes.
#[derive(Clone, Copy)]
pub struct Incoming<T> {
    /// The request.
    pub request: Request,
    /// The destination of the reply to the request.
    pub reply_to: T,
}

/// The data that come with a request.
pub enum IncomingData<'a, R> {
    /// Bytes that came with it.
    Here(Body<'a>),
    /// This many bytes, which are to be fetched.
    There(R, usize),
}

/// A request that came before what it is to follow.
struct EarlyRequest<T, R> {
    incoming: Incoming<T>,
    data: EarlyData<R>,
}

/// The data that came with an early request.
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

/// The requests of peers to this PE. One thread at a time uses the target; it is not borrowed while
/// a function of [`Serving`] runs.
pub struct RequestTarget<T, R>(RefCell<Streams<EarlyRequest<T, R>>>);

impl<T: Copy, R> RequestTarget<T, R> {
    /// Returns the target of PE `me`.
    pub fn new(me: Pe) -> RequestTarget<T, R> {
        RequestTarget(RefCell::new(Streams::new(me)))
    }

    /// Takes a request that has come: carries it out with those that waited for it, or keeps it
    /// until its turn comes.
    ///
    /// # Errors
    /// When no PE of the job sends it.
    pub fn take(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
        data: IncomingData<'_, R>,
    ) -> Result<(), Violation> {
        if let IncomingData::There(_, nbytes) = data {
            place(serving, &incoming.request, nbytes)?;
        }
        let request = &incoming.request;
        let order = self.0.borrow_mut().arrived(&serving.local().acks, request)?;
        if order == ArrivalOrder::Early {
            let early = EarlyRequest { incoming, data: EarlyData::keep(data) };
            self.0.borrow_mut().keep(request, early);
            return Ok(());
        }
        self.carry_out(serving, incoming, data)?;
        self.carry_out_early(serving, request.stream)
    }

    /// Carries out a request whose data were fetched, and those that waited for it.
    ///
    /// # Errors
    /// When no PE of the job sends one of them.
    pub fn finish(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
    ) -> Result<(), Violation> {
        self.carry_out(serving, incoming, IncomingData::Here(Body::Data(&[])))?;
        self.carry_out_early(serving, incoming.request.stream)
    }

    /// Carries out the requests that came early, as far as their turn has come.
    fn carry_out_early(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        stream: Stream,
    ) -> Result<(), Violation> {
        loop {
            let next = self.0.borrow_mut().take_ready(stream);
            let Some(EarlyRequest { incoming, data }) = next else { return Ok(()) };
            let data = match data {
                EarlyData::Data(ref bytes) => IncomingData::Here(Body::Data(bytes)),
                EarlyData::Batch(ref batch) => IncomingData::Here(Body::Batch(batch)),
                EarlyData::There(data, nbytes) => IncomingData::There(data, nbytes),
            };
            self.carry_out(serving, incoming, data)?;
        }
    }

    /// Carries out a request, or begins to fetch its data.
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
                serving.fetch(incoming, data, place(serving, request, nbytes)?);
                return Ok(());
            }
        };
        let mut answers = Vec::new();
        let NetworkPe { segments, host, .. } = serving.local();
        let old = request.carry_out(body, segments, &**host, &mut answers)?;
        let reply = self.0.borrow_mut().carried_out(&serving.local().acks, request, old);
        match reply {
            Some(reply) => serving.reply(incoming, reply, answers),
            None => Ok(()),
        }
    }
}

/// Returns where the data of a request go.
fn place(serving: &impl Serving, request: &Request, nbytes: usize) -> Result<LocalBuf, Violation> {
    let place = serving.local().segments.bytes(request.dest, nbytes);
    place.ok_or(Violation::Address(request.dest.offset))
}
