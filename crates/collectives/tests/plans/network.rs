//! The channels between members. Messages of one sender along one edge keep their order; a delivery
//! may be delayed for any time.

use crate::clock::{Clock, Event};
use crate::memory::Area;
use crate::schedule::Actor;
use crate::value::Value;
use rushmem_collectives::{Edge, Partner};
use std::collections::{HashMap, VecDeque};

/// The data of a `Put`.
pub struct Data {
    pub area: Area,
    pub values: Vec<Value>,
    pub issued: Event,
}

/// The signal of a message, for which its receiver waits.
pub struct Signal {
    /// The length of the longest chain of messages that ends with this one.
    pub depth: u32,
    pub clock: Clock,
}

/// A message that becomes visible.
pub struct Delivery {
    pub to: u32,
    /// The sender, as the receiver's `Wait` names it.
    pub peer: Partner,
    pub data: Option<Data>,
    /// True if the channel has more messages in flight.
    pub more: bool,
}

pub struct Channel {
    pub from: u32,
    pub to: u32,
    edge: Edge,
    in_flight: VecDeque<Message>,
    delivered: VecDeque<Signal>,
}

/// A message in flight.
struct Message {
    data: Option<Data>,
    signal: Signal,
    /// The receiver's counter that counts the message, for a message on [`Edge::Any`].
    counter: Option<usize>,
}

pub struct Network {
    channels: Vec<Channel>,
    /// The channels by sender, receiver and edge.
    index: HashMap<(u32, u32, Edge), usize>,
    /// The only sender to a member on each edge that has one sender.
    senders: HashMap<(u32, Edge), u32>,
    /// The number of messages that each member has sent on [`Edge::Any`].
    sent: HashMap<u32, u32>,
    counted: HashMap<u32, Counted>,
    /// The number of messages that each member sends and receives in a plan that uses
    /// [`Edge::Any`].
    n_peers: u32,
}

/// The signals that a member received on [`Edge::Any`].
#[derive(Default)]
struct Counted {
    /// The signals that each counter has counted and the member has not waited for.
    counters: [VecDeque<Signal>; 2],
    /// The number of signals for which the member has waited.
    taken: u32,
    /// The signals for which the member has waited in the current plan.
    received: Vec<Signal>,
}

impl Network {
    pub fn new(n: u32) -> Self {
        Self {
            channels: Vec::new(),
            index: HashMap::new(),
            senders: HashMap::new(),
            sent: HashMap::new(),
            counted: HashMap::new(),
            n_peers: n - 1,
        }
    }

    /// Sends a message. Returns the channel if it can act now and could not before.
    pub fn send(
        &mut self,
        from: u32,
        peer: Partner,
        data: Option<Data>,
        signal: Signal,
    ) -> Option<Actor> {
        let Partner { index: to, edge } = peer;
        if !matches!(edge, Edge::Any | Edge::Pair | Edge::Line) {
            let sender = *self.senders.entry((to, edge)).or_insert(from);
            assert_eq!(sender, from, "{edge:?} leads to {to} from two members");
        }

        let next = self.channels.len();
        let index = *self.index.entry((from, to, edge)).or_insert(next);
        if index == next {
            self.channels.push(Channel {
                from,
                to,
                edge,
                in_flight: VecDeque::new(),
                delivered: VecDeque::new(),
            });
        }

        // The plans of a program use the two counters in turn.
        let mut counter = None;
        if edge == Edge::Any {
            let sent = self.sent.entry(from).or_default();
            counter = Some((*sent / self.n_peers) as usize % 2);
            *sent += 1;
        }

        let channel = &mut self.channels[index];
        let could_act = !channel.in_flight.is_empty();
        channel.in_flight.push_back(Message {
            data,
            signal,
            counter,
        });
        if could_act {
            None
        } else {
            Some(Actor::Channel(index))
        }
    }

    /// Delivers the oldest message of a channel. The caller makes its data visible.
    pub fn deliver(&mut self, index: usize) -> Delivery {
        let channel = &mut self.channels[index];
        let message = channel
            .in_flight
            .pop_front()
            .expect("only channels with a message act");
        match message.counter {
            None => channel.delivered.push_back(message.signal),
            Some(counter) => {
                let counted = self.counted.entry(channel.to).or_default();
                counted.counters[counter].push_back(message.signal);
            }
        }

        Delivery {
            to: channel.to,
            peer: Partner {
                index: channel.from,
                edge: channel.edge,
            },
            data: message.data,
            more: !channel.in_flight.is_empty(),
        }
    }

    /// Removes and returns the signal for the next `Wait` of `to` for `from`, if it was delivered.
    pub fn wait(&mut self, from: Partner, to: u32) -> Option<Signal> {
        if from.edge == Edge::Any {
            return self.wait_for_any(to);
        }
        let index = *self.index.get(&(from.index, to, from.edge))?;
        self.channels[index].delivered.pop_front()
    }

    /// Removes and returns the next signal of any member. Only the last one of a plan has a clock:
    /// the receiver cannot tell the messages apart, so it learns only that all have arrived.
    fn wait_for_any(&mut self, to: u32) -> Option<Signal> {
        let counted = self.counted.entry(to).or_default();
        let counter = (counted.taken / self.n_peers) as usize % 2;
        let mut signal = counted.counters[counter].pop_front()?;
        counted.taken += 1;

        let is_last = counted.taken.is_multiple_of(self.n_peers);
        if !is_last {
            counted.received.push(signal);
            return Some(Signal {
                depth: 0,
                clock: Clock::new(0, false),
            });
        }
        for other in counted.received.drain(..) {
            signal.depth = signal.depth.max(other.depth);
            signal.clock.join(&other.clock);
        }
        Some(signal)
    }

    /// Returns a channel with signals for which the receiver has not waited.
    pub fn undrained(&self) -> Option<&Channel> {
        self.channels.iter().find(|channel| {
            let counted = self.counted.get(&channel.to);
            !channel.in_flight.is_empty()
                || !channel.delivered.is_empty()
                || counted.is_some_and(Counted::has_signals)
        })
    }
}

impl Counted {
    /// Returns true if there are signals for which the member has not waited.
    fn has_signals(&self) -> bool {
        self.counters.iter().any(|signals| !signals.is_empty())
    }
}
