//! Unit tests of requests: an origin and a target between which messages overtake each other.

use super::*;
use crate::engine::acks::Acks;
use crate::engine::message::Ack;
use crate::engine::message::MAX_IN_FLIGHT;
use crate::engine::target::{ArrivalOrder, CarriedOut};
use crate::peers::loss::Violation;
use std::collections::VecDeque;

const HERE: Pe = Pe(0);
const THERE: Pe = Pe(1);

/// Numbers that look random.
fn next(random: &mut u64) -> usize {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) as usize
}

/// A request in flight.
struct Sent {
    position: StreamPosition,
    /// The number of fences before it.
    fences: u64,
}

struct Wire {
    issued: IssuedRequests,
    carried: CarriedOut<Sent>,
    requests: VecDeque<Sent>,
    acks: VecDeque<u32>,
    /// For each request that was carried out, the number of fences before it.
    done: Vec<u64>,
    /// The number of acknowledgments that were messages of their own.
    sent_alone: usize,
}

impl Wire {
    fn new(acks: &Acks, start: u32, window: u32) -> Wire {
        let (origin, counts) = acks.add_origin();
        counts.set_acked(THERE, start);

        Wire {
            issued: IssuedRequests::new(origin, counts, 2, window),
            carried: CarriedOut::with_count(start),
            requests: VecDeque::new(),
            acks: VecDeque::new(),
            done: Vec::new(),
            sent_alone: 0,
        }
    }

    fn ask(&mut self, order: RequestOrder) {
        let position = self.issued.issue(THERE, order);
        let fences = self.issued.fences();
        self.requests.push_back(Sent { position, fences });
    }

    fn arrives(&mut self, request: Sent) {
        let position = request.position;
        let order = self.carried.arrival_order(position);
        match order.expect("it was just issued") {
            ArrivalOrder::Next => self.carry_out(request),
            ArrivalOrder::Early => self.carried.keep(position, request),
        }

        while let Some(request) = self.carried.take_ready() {
            self.carry_out(request);
        }
    }

    fn carry_out(&mut self, request: Sent) {
        let Sent { position, fences } = request;
        self.carried.mark_carried_out(position.number);
        self.done.push(fences);

        if position.asks {
            assert!(
                has_reached(self.carried.count(), position.number),
                "an acknowledgment is about all before"
            );
            self.acks.push_back(self.carried.count());
            self.sent_alone += 1;
        }
    }

    /// Delivers a random message that is in flight.
    fn deliver(&mut self, random: &mut u64) {
        if next(random).is_multiple_of(2) && !self.acks.is_empty() {
            let which = next(random) % self.acks.len();
            if let Some(count) = self.acks.remove(which) {
                self.issued.acks.acknowledge(THERE, count).expect("a PE");
            }
        } else if !self.requests.is_empty() {
            let which = next(random) % self.requests.len();
            if let Some(request) = self.requests.remove(which) {
                self.arrives(request);
            }
        }
    }
}

#[test]
fn fences_hold_and_every_wait_ends_whatever_overtakes() {
    for start in [0, u32::MAX - 100] {
        for window in [1, 2, 3, 64] {
            let acks = Acks::new(2);
            let mut random = u64::from(window);
            let mut wire = Wire::new(&acks, start, window);

            for _ in 0..3000 {
                while wire.issued.is_full(THERE) {
                    assert!(
                        !wire.requests.is_empty() || !wire.acks.is_empty(),
                        "it waits forever"
                    );
                    wire.deliver(&mut random);
                }

                if next(&mut random).is_multiple_of(3) {
                    wire.issued.fence();
                }

                wire.ask(match next(&mut random) % 5 {
                    0 => RequestOrder::AfterAll,
                    _ => RequestOrder::AfterFence,
                });

                if next(&mut random).is_multiple_of(2) {
                    wire.deliver(&mut random);
                }
            }

            // A quiet.
            if wire.issued.must_ask(THERE) {
                wire.ask(RequestOrder::Asking);
            }
            assert!(!wire.issued.must_ask(THERE));

            while wire.issued.unacked(THERE) > 0 {
                assert!(
                    !wire.requests.is_empty() || !wire.acks.is_empty(),
                    "it waits forever"
                );
                wire.deliver(&mut random);
            }

            assert!(wire.requests.is_empty());
            assert!(wire.done.len() >= 3000);

            assert!(wire.issued.awaits_ack_of(THERE));
            assert_eq!(wire.issued.awaiting_ack(), [THERE]);
            wire.issued.mark_acked(THERE);
            assert!(!wire.issued.awaits_ack_of(THERE));
            assert_eq!(wire.issued.awaiting_ack(), []);

            assert!(
                wire.done.is_sorted(),
                "what followed a fence was carried out before what came ahead of it"
            );
        }
    }
}

#[test]
fn a_window_takes_two_acknowledgments() {
    let acks = Acks::new(2);
    let mut wire = Wire::new(&acks, 0, 64);

    for _ in 0..640 {
        wire.ask(RequestOrder::AfterAll);
        let request = wire.requests.pop_front().expect("just sent");
        wire.arrives(request);

        for count in wire.acks.drain(..) {
            wire.issued.acks.acknowledge(THERE, count).expect("a PE");
        }
    }
    assert_eq!(wire.sent_alone, 20);
}

#[test]
fn counts_that_ride_on_messages_need_no_acknowledgments() {
    let here = Acks::new(2);
    let there = Acks::new(2);
    let mut to = Wire::new(&here, 0, 64);
    let mut back = Wire::new(&there, 0, 64);

    // A `Wire` numbers its target as PE 1, so `back` has the counts of PE 0 under that number.
    back.issued.acks.acknowledge(THERE, 0).expect("a PE");

    for _ in 0..1000 {
        to.ask(RequestOrder::AfterAll);
        let request = to.requests.pop_front().expect("just sent");
        to.arrives(request);
        there.mark_carried_out(to.issued.stream(HERE), to.carried.count());

        // A message in the other direction includes the acknowledgment.
        let ack = there.for_message_to(HERE).expect("an acknowledgment");
        here.acknowledge(THERE, ack).expect("an origin");

        back.ask(RequestOrder::AfterAll);
        let request = back.requests.pop_front().expect("just sent");
        back.arrives(request);
        back.issued
            .acks
            .acknowledge(THERE, back.carried.count())
            .expect("a PE");

        assert_eq!(to.issued.unacked(THERE), 0);
        assert_eq!(there.for_message_to(HERE), None, "it is sent once");
    }

    assert_eq!(to.sent_alone + back.sent_alone, 0);
}

#[test]
fn what_no_origin_sent_is_refused() {
    let mut carried = CarriedOut::default();
    let position = |number, after| StreamPosition {
        number,
        after,
        asks: false,
    };

    let in_order = Ok(ArrivalOrder::Next);
    let early = Ok(ArrivalOrder::Early);
    let never = |number| Err(Violation::Number(number));

    let beyond = MAX_IN_FLIGHT + 1;
    assert_eq!(carried.arrival_order(position(0, 0)), never(0));
    assert_eq!(carried.arrival_order(position(beyond, 0)), never(beyond));
    assert_eq!(carried.arrival_order(position(2, 2)), never(2), "itself");

    assert_eq!(carried.arrival_order(position(2, 1)), early);
    carried.keep(position(2, 1), 'a');
    assert_eq!(carried.arrival_order(position(2, 1)), never(2), "kept");
    assert_eq!(carried.arrival_order(position(2, 0)), never(2), "kept");

    assert_eq!(carried.arrival_order(position(3, 0)), in_order);
    carried.mark_carried_out(3);
    assert_eq!(carried.arrival_order(position(3, 0)), never(3), "done");

    carried.mark_carried_out(1);
    assert_eq!(carried.take_ready(), Some('a'));
    assert_eq!(carried.take_ready(), None);

    carried.mark_carried_out(2);
    assert_eq!(carried.count(), 3);
    assert_eq!(carried.arrival_order(position(1, 0)), never(1), "done");
}

#[test]
fn acknowledgments_by_or_for_nobody_are_refused() {
    let acks = Acks::new(1);
    let unknown_pe = Pe(7000);
    let ack = Ack {
        origin: 0,
        count: 1,
    };
    let unrequested = Err(Violation::Unrequested);
    assert_eq!(acks.acknowledge(Pe(0), ack), unrequested, "no origin");

    let (_, counts) = acks.add_origin();
    assert_eq!(acks.acknowledge(unknown_pe, ack), unrequested);
    assert_eq!(counts.acked_by(Pe(0)), 0);
    assert_eq!(counts.acked_by(unknown_pe), 0);

    let stream = Stream {
        pe: unknown_pe,
        origin: 0,
    };
    acks.mark_carried_out(stream, 1);
    assert_eq!(acks.for_message_to(unknown_pe), None);
}

#[test]
fn an_older_count_changes_nothing() {
    let acks = Acks::new(1);
    let (_, counts) = acks.add_origin();

    for count in [9, 8] {
        assert_eq!(counts.acknowledge(Pe(0), count), Ok(()));
    }

    assert_eq!(counts.acked_by(Pe(0)), 9);
    assert_eq!(counts.all(), 9);
}
