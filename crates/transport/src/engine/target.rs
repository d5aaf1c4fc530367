//! The target of requests: it carries out the requests of each stream in their order, whatever the
//! order in which they arrive, acknowledges them, and replies with the results.

use super::acks::Acks;
use super::entries;
use super::message::{
    MAX_IN_FLIGHT, MAX_ORIGINS, Reply, Request, Stream, StreamPosition, has_reached,
};
use super::wire::NetworkPe;
use crate::peers::loss::Violation;
use crate::{LocalBuf, Pe};
use std::cell::RefCell;
use std::collections::HashMap;

/// What a provider implements to serve requests. The thread that serves passes each one that
/// arrives to [`RequestTarget::take`], and wakes others afterwards as
/// [`Driver::serve`](super::driver::Driver::serve) says.
///
/// A request may arrive before this PE has the directory of its peers
/// ([`Transport::connect`](crate::Transport::connect)), and so before
/// [`keys::peer`](super::keys::peer) has their addresses. Its reply is then sent to where the
/// request came from, or kept.
pub trait Serving {
    /// Where the reply to a request is sent.
    type ReplyTo: Copy;
    /// Identifies data that stay at the origin until the target fetches them. `Infallible` if all
    /// data arrive with their requests.
    type Remote;
    /// The provider's data on a segment.
    type Extra;

    /// Returns the state of this PE.
    fn local(&self) -> &NetworkPe<Self::Extra>;

    /// Sends a reply, with the results that follow it, or keeps it until there is room. Does not
    /// wait, since two PEs might wait for each other. The provider may take the buffer. If the PE
    /// is gone, that is a loss only if the reply has an answer: a PE that is only acknowledged may
    /// have left the job.
    ///
    /// # Errors
    /// When the results are more than a request may ask for.
    fn reply(
        &self,
        incoming: Incoming<Self::ReplyTo>,
        reply: Reply,
        results: &mut Vec<u8>,
    ) -> Result<(), Violation>;

    /// Begins to fetch the attached data of a request to `dest`. The provider calls
    /// [`RequestTarget::finish`] with the `rest` of the entries when they have arrived.
    fn fetch(
        &self,
        incoming: Incoming<Self::ReplyTo>,
        rest: Vec<u8>,
        data: Self::Remote,
        dest: LocalBuf,
    );
}

/// A request that has arrived, and where its reply is sent.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<T> {
    /// The request, without its entries and attached data.
    pub request: Request,
    /// Where the reply is sent.
    pub reply_to: T,
}

/// What has arrived with a request.
pub struct Contents<'a, R> {
    /// The entries.
    pub entries: &'a [u8],
    /// The data that the first entry attaches.
    pub attached: Attached<'a, R>,
}

/// The attached data of a request.
pub enum Attached<'a, R> {
    /// Bytes that have arrived with the request; none if no entry attaches data.
    Here(&'a [u8]),
    /// Bytes that the target fetches from the origin.
    There {
        /// Identifies them.
        data: R,
        /// Their number.
        nbytes: usize,
    },
}

impl<'a, R> Contents<'a, R> {
    /// Returns the contents of a request whose message has these bytes after the head.
    ///
    /// # Errors
    /// When the entries are longer than the message.
    pub fn of(request: &Request, bytes: &'a [u8]) -> Result<Contents<'a, R>, Violation> {
        let (entries, attached) = bytes
            .split_at_checked(request.nbytes.into())
            .ok_or(Violation::Entries)?;

        Ok(Contents {
            entries,
            attached: Attached::Here(attached),
        })
    }
}

/// A request that has arrived before one that it must follow, with its contents.
#[derive(Debug)]
struct EarlyRequest<T, R> {
    incoming: Incoming<T>,
    entries: Vec<u8>,
    attached: KeptData<R>,
}

/// The attached data of a request that has arrived early.
#[derive(Debug)]
enum KeptData<R> {
    Here(Vec<u8>),
    There { data: R, nbytes: usize },
}

impl<T, R> EarlyRequest<T, R> {
    fn new(incoming: Incoming<T>, contents: Contents<'_, R>) -> EarlyRequest<T, R> {
        EarlyRequest {
            incoming,
            entries: contents.entries.to_vec(),
            attached: match contents.attached {
                Attached::Here(bytes) => KeptData::Here(bytes.to_vec()),
                Attached::There { data, nbytes } => KeptData::There { data, nbytes },
            },
        }
    }
}

/// The requests of all peers to this PE. One thread at a time uses it. It is not borrowed while
/// [`Serving::reply`] or [`Serving::fetch`] runs, so that `fetch` may call
/// [`finish`](RequestTarget::finish).
#[derive(Debug)]
pub struct RequestTarget<T, R> {
    streams: RefCell<Streams<EarlyRequest<T, R>>>,
    /// An unused buffer for results.
    results: RefCell<Vec<u8>>,
}

impl<T: Copy, R> RequestTarget<T, R> {
    /// Returns the target of PE `me`.
    pub fn new(me: Pe) -> RequestTarget<T, R> {
        RequestTarget {
            streams: RefCell::new(Streams::new(me)),
            results: RefCell::default(),
        }
    }

    /// Handles a request that has arrived. Keeps it if it must follow requests that are not carried
    /// out yet. Otherwise carries it out, and then the kept requests that waited for it; or begins
    /// to fetch its attached data if these have not arrived. The caller wakes threads of this PE
    /// that wait for its memory.
    ///
    /// # Errors
    /// When the request, or a kept one, violates the protocol. The caller reports it by
    /// [`refuse`](super::refuse).
    pub fn take(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
        contents: Contents<'_, R>,
    ) -> Result<(), Violation> {
        // Checked before the request is kept: a violation is refused on arrival.
        if let Attached::There { nbytes, .. } = contents.attached {
            attached_memory(serving, contents.entries, nbytes)?;
        }

        let request = &incoming.request;
        let acks = &serving.local().acks;
        let order = self.streams.borrow_mut().accept(acks, request)?;
        if order == ArrivalOrder::Early {
            let early = EarlyRequest::new(incoming, contents);
            self.streams.borrow_mut().keep(request, early);
            return Ok(());
        }

        self.carry_out(serving, incoming, contents)?;
        self.carry_out_early(serving, request.stream)
    }

    /// Carries out the `rest` of the entries of a request whose attached data were fetched, and
    /// then the kept requests that waited for it.
    ///
    /// # Errors
    /// When one of the requests violates the protocol.
    pub fn finish(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
        rest: &[u8],
    ) -> Result<(), Violation> {
        let contents = Contents {
            entries: rest,
            attached: Attached::Here(&[]),
        };
        self.carry_out(serving, incoming, contents)?;
        self.carry_out_early(serving, incoming.request.stream)
    }

    /// Carries out the kept requests of a stream that need not wait any more.
    fn carry_out_early(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        stream: Stream,
    ) -> Result<(), Violation> {
        loop {
            // A statement of its own, so that the borrow ends before the request is carried out.
            let ready = self.streams.borrow_mut().take_ready(stream);
            let Some(early) = ready else {
                return Ok(());
            };

            let here;
            let attached = match early.attached {
                KeptData::Here(bytes) => {
                    here = bytes;
                    Attached::Here(&here)
                }
                KeptData::There { data, nbytes } => Attached::There { data, nbytes },
            };
            let contents = Contents {
                entries: &early.entries,
                attached,
            };
            self.carry_out(serving, early.incoming, contents)?;
        }
    }

    /// Carries out a request, or begins to fetch its attached data if they are at the origin.
    fn carry_out(
        &self,
        serving: &impl Serving<ReplyTo = T, Remote = R>,
        incoming: Incoming<T>,
        contents: Contents<'_, R>,
    ) -> Result<(), Violation> {
        let entries = contents.entries;
        let attached = match contents.attached {
            Attached::Here(bytes) => bytes,
            Attached::There { data, nbytes } => {
                let (dest, rest) = attached_memory(serving, entries, nbytes)?;
                serving.fetch(incoming, rest.to_vec(), data, dest);
                return Ok(());
            }
        };

        let NetworkPe {
            segments,
            host,
            acks,
            ..
        } = serving.local();

        // The buffer is kept, so that a word is returned without an allocation.
        let mut results = self.results.take();
        entries::carry_out(entries, attached, segments, &**host, &mut results)?;

        let request = &incoming.request;
        let reply = self
            .streams
            .borrow_mut()
            .mark_carried_out(acks, request, &mut results);
        let replied = match reply {
            Some(reply) => serving.reply(incoming, reply, &mut results),
            None => Ok(()),
        };

        results.clear();
        self.results.replace(results);
        replied
    }
}

/// Returns the memory for the attached data of a request, of this many bytes, and the entries after
/// them.
fn attached_memory<'a>(
    serving: &impl Serving,
    entries: &'a [u8],
    nbytes: usize,
) -> Result<(LocalBuf, &'a [u8]), Violation> {
    let (dest, rest) = entries::attached_put(entries).ok_or(Violation::Entries)?;
    let memory = serving
        .local()
        .segments
        .bytes(dest, nbytes)
        .ok_or(Violation::Address(dest.offset))?;
    Ok((memory, rest))
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

        // Before the table is changed: a peer cannot make this PE keep streams without limit.
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

    /// Keeps a request that has arrived [early](ArrivalOrder::Early), in the form `early`.
    pub fn keep(&mut self, request: &Request, early: T) {
        self.carried
            .entry(request.stream)
            .or_default()
            .keep(request.position, early);
    }

    /// Removes and returns a kept request of a stream that may be carried out now, if there is one.
    pub fn take_ready(&mut self, stream: Stream) -> Option<T> {
        self.carried.get_mut(&stream)?.take_ready()
    }

    /// Records that a request with these results was carried out. Returns the
    /// [reply](Request::reply), if there is one; otherwise the next message to the request's PE may
    /// acknowledge it.
    pub fn mark_carried_out(
        &mut self,
        acks: &Acks,
        request: &Request,
        results: &mut Vec<u8>,
    ) -> Option<Reply> {
        let stream = request.stream;
        let carried = self.carried.entry(stream).or_default();

        carried.mark_carried_out(request.position.number);
        let count = carried.count();

        let reply = request.reply(self.me, count, results);
        if reply.is_none() {
            acks.mark_carried_out(stream, count);
        }

        reply
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

        // A request follows earlier ones alone. One that followed itself would be kept forever.
        let follows_earlier = has_reached(number.wrapping_sub(1), after);
        if !is_new || !follows_earlier {
            return Err(Violation::Number(number));
        }

        if has_reached(self.count, after) {
            Ok(ArrivalOrder::Next)
        } else {
            Ok(ArrivalOrder::Early)
        }
    }

    /// Keeps a request to be carried out later.
    pub fn keep(&mut self, position: StreamPosition, request: T) {
        self.early.push((position, request));
    }

    /// Records that a request was carried out.
    #[inline]
    pub fn mark_carried_out(&mut self, number: u32) {
        // `count` covers all numbers up to it, so one after a gap waits in `beyond` until the gap
        // is closed. An acknowledgment sends `count` alone.
        if number != self.count.wrapping_add(1) {
            self.beyond.push(number);
            return;
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

    /// Removes and returns a kept request that may be carried out now, if there is one.
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
    use crate::engine::message::{Ack, Answer, AwaitedSlot, StreamPosition};

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
            nbytes: 0,
        }
    }

    #[test]
    fn requests_wait_for_their_turn_and_are_acknowledged() {
        let acks = Acks::new(2);
        let mut streams = Streams::new(Pe(0));

        let stream = Stream {
            pe: Pe(1),
            origin: 3,
        };
        let first = Request {
            slot: Some(AwaitedSlot {
                number: 7,
                is_long: false,
            }),
            ..request(stream, 1, 0)
        };
        let second = request(stream, 2, 1);

        assert_eq!(streams.accept(&acks, &second), Ok(ArrivalOrder::Early));
        streams.keep(&second, "second");
        assert_eq!(streams.take_ready(stream), None);
        assert_eq!(streams.accept(&acks, &first), Ok(ArrivalOrder::Next));

        let reply = streams.mark_carried_out(&acks, &first, &mut vec![5, 6]);
        let with_results = Reply {
            pe: Pe(0),
            ack: Ack {
                origin: 3,
                count: 1,
            },
            answer: Some(Answer {
                slot: 7,
                short: [5, 6, 0, 0, 0, 0, 0, 0],
            }),
        };
        assert_eq!(reply, Some(with_results));

        assert_eq!(streams.take_ready(stream), Some("second"));
        let reply = streams.mark_carried_out(&acks, &second, &mut Vec::new());
        assert_eq!(reply, None);
        let of_both = Ack {
            origin: 3,
            count: 2,
        };
        assert_eq!(acks.for_message_to(Pe(1)), Some(of_both));

        assert_eq!(streams.accept(&acks, &second), Err(Violation::Number(2)));
    }

    #[test]
    fn nothing_is_kept_of_streams_that_do_not_exist() {
        let acks = Acks::new(2);
        let mut streams = Streams::<()>::new(Pe(0));

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
