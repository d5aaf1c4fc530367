//! The record of what a target has carried out of the streams of all origins, and what it replies.

use super::acks::{Ack, Acks};
use super::carried_out::{ArrivalOrder, CarriedOut};
use super::message::{Reply, Request};
use super::stream::{MAX_ORIGINS, Stream};
use super::violation::Violation;
use crate::Pe;
use std::collections::HashMap;

/// The streams of requests to PE `me`. `T` is a request that came early.
#[derive(Debug)]
pub struct Streams<T> {
    me: Pe,
    carried: HashMap<Stream, CarriedOut<T>>,
}

impl<T> Streams<T> {
    /// Returns a table without streams.
    pub fn new(me: Pe) -> Streams<T> {
        Streams { me, carried: HashMap::new() }
    }

    /// Takes the acknowledgment of a request that has arrived. Returns what to do with it.
    ///
    /// # Errors
    /// When no origin sends it at this point.
    pub fn arrived(&mut self, acks: &Acks, request: &Request) -> Result<ArrivalOrder, Violation> {
        let &Request { stream, place, ack, .. } = request;
        if stream.pe.index() >= acks.n_pes() || stream.origin >= MAX_ORIGINS {
            return Err(Violation::Unknown("stream of requests"));
        }
        if let Some(ack) = ack {
            acks.acknowledge(stream.pe, ack)?;
        }
        self.carried.entry(stream).or_default().arrival_order(place)
    }

    /// Keeps what is needed of a request that came [early](ArrivalOrder::Early).
    pub fn keep(&mut self, request: &Request, early: T) {
        self.carried.entry(request.stream).or_default().keep(request.place, early);
    }

    /// Removes and returns a request of a stream that arrived early and may be carried out now.
    pub fn take_ready(&mut self, stream: Stream) -> Option<T> {
        self.carried.get_mut(&stream)?.take_ready()
    }

    /// Records that a request was carried out, which found this old value. Returns the reply if the
    /// request asks for one or for the old value; otherwise the next message to its PE has it.
    pub fn carried_out(&mut self, acks: &Acks, request: &Request, old: u64) -> Option<Reply> {
        let &Request { stream, place, slot, .. } = request;
        let carried = self.carried.entry(stream).or_default();
        carried.carried_out(place.number);
        let count = carried.count();
        if !place.asks && slot.is_none() {
            acks.carried_out(stream, count);
            return None;
        }
        let ack = Ack { origin: stream.origin, count };
        Some(Reply { pe: self.me, ack, old: slot.map(|slot| (slot, old)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::stream::StreamPosition;
    use crate::{RemoteAddr, Segment};

    /// Returns a request that does nothing.
    fn request(stream: Stream, number: u32, after: u32) -> Request {
        Request {
            stream,
            place: StreamPosition { number, after, asks: false },
            ack: None,
            slot: None,
            update: None,
            dest: RemoteAddr { segment: Segment::Heap, offset: 0 },
        }
    }

    #[test]
    fn requests_wait_for_their_turn_and_are_acknowledged() {
        let (acks, mut streams) = (Acks::new(2), Streams::new(Pe(0)));
        let stream = Stream { pe: Pe(1), origin: 3 };
        let (first, second) = (request(stream, 1, 0), request(stream, 2, 1));
        let fetch = Request { slot: Some(7), ..first };
        assert_eq!(streams.arrived(&acks, &second), Ok(ArrivalOrder::Early));
        streams.keep(&second, "second");
        assert_eq!(streams.take_ready(stream), None);
        assert_eq!(streams.arrived(&acks, &fetch), Ok(ArrivalOrder::Next));
        let reply = streams.carried_out(&acks, &fetch, 5).expect("the old value is due");
        assert_eq!(reply, Reply { pe: Pe(0), ack: Ack { origin: 3, count: 1 }, old: Some((7, 5)) });
        assert_eq!(streams.take_ready(stream), Some("second"));
        assert_eq!(streams.carried_out(&acks, &second, 0), None);
        assert_eq!(acks.for_message_to(Pe(1)), Some(Ack { origin: 3, count: 2 }));
        assert_eq!(streams.arrived(&acks, &second), Err(Violation::Number(2)));
    }

    #[test]
    fn nothing_is_kept_of_streams_that_do_not_exist() {
        let (acks, mut streams) = (Acks::new(2), Streams::<()>::new(Pe(0)));
        for stream in [Stream { pe: Pe(2), origin: 0 }, Stream { pe: Pe(1), origin: MAX_ORIGINS }] {
            let order = streams.arrived(&acks, &request(stream, 2, 1));
            assert_eq!(order, Err(Violation::Unknown("stream of requests")));
        }
        assert!(streams.carried.is_empty());
    }
}
