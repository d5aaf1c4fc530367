//! The channels between members: first in, first out for each edge, of any delay.

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

/// The announcement of a message to the member that waits for it.
pub struct Signal {
    /// Length of the chain of messages that ends with this one.
    pub depth: u32,
    pub clock: Clock,
}

/// A message that becomes visible.
pub struct Delivery {
    pub to: u32,
    /// The receiver's name for the sender.
    pub peer: Partner,
    pub data: Option<Data>,
    /// True if more messages are in flight.
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
    /// Which of the receiver's counters it is counted by, if it is counted.
    counter: Option<usize>,
}

pub struct Network {
    channels: Vec<Channel>,
    /// By sender, receiver and edge.
    index: HashMap<(u32, u32, Edge), usize>,
    /// The sender on each edge to a member, which is one.
    senders: HashMap<(u32, Edge), u32>,
    /// The number of messages that each member has sent on [`Edge::Any`].
    sent: HashMap<u32, u32>,
    counted: HashMap<u32, Counted>,
    /// The number of messages that each member sends and gets in a plan that uses [`Edge::Any`].
    n_peers: u32,
}

/// The signals that a member received on [`Edge::Any`].
#[derive(Default)]
struct Counted {
    /// The signals that each counter has counted and nobody has waited for.
    counters: [VecDeque<Signal>; 2],
    /// The number of signals that were waited for.
    taken: u32,
    /// The signals that were waited for since the last time that each peer was.
    heard: Vec<Signal>,
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
        Partner { index: to, edge }: Partner,
        data: Option<Data>,
        signal: Signal,
    ) -> Option<Actor> {
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
        let counter = (edge == Edge::Any).then(|| {
            let sent = self.sent.entry(from).or_default();
            *sent += 1;
            ((*sent - 1) / self.n_peers) as usize % 2
        });
        let channel = &mut self.channels[index];
        channel.in_flight.push_back(Message { data, signal, counter });
        (channel.in_flight.len() == 1).then_some(Actor::Channel(index))
    }

    /// The oldest message of a channel arrives. Its data are the caller's to place.
    pub fn deliver(&mut self, index: usize) -> Delivery {
        let channel = &mut self.channels[index];
        let Message { data, signal, counter } =
            channel.in_flight.pop_front().expect("only channels with a message act");
        let Channel { from, to, edge, .. } = *channel;
        match counter {
            None => channel.delivered.push_back(signal),
            Some(counter) => {
                self.counted.entry(to).or_default().counters[counter].push_back(signal);
            }
        }
        let more = !channel.in_flight.is_empty();
        Delivery { to, peer: Partner { index: from, edge }, data, more }
    }

    /// Returns what the next `Wait` of `to` for `from` takes, if it is there.
    pub fn wait(&mut self, Partner { index: from, edge }: Partner, to: u32) -> Option<Signal> {
        if edge == Edge::Any {
            return self.wait_for_any(to);
        }
        let index = *self.index.get(&(from, to, edge))?;
        self.channels[index].delivered.pop_front()
    }

    /// Waits for one more message of any member. Only the last one announces something: that all
    /// are there.
    fn wait_for_any(&mut self, to: u32) -> Option<Signal> {
        let counted = self.counted.entry(to).or_default();
        let counter = (counted.taken / self.n_peers) as usize % 2;
        let mut signal = counted.counters[counter].pop_front()?;
        counted.taken += 1;
        if !counted.taken.is_multiple_of(self.n_peers) {
            let nothing = Signal { depth: 0, clock: Clock::new(0, false) };
            counted.heard.push(std::mem::replace(&mut signal, nothing));
        } else {
            for heard in counted.heard.drain(..) {
                signal.depth = signal.depth.max(heard.depth);
                signal.clock.join(&heard.clock);
            }
        }
        Some(signal)
    }

    /// Returns a channel with signals that nobody waited for.
    pub fn undrained(&self) -> Option<&Channel> {
        let is_counted = |channel: &Channel| {
            let counted = self.counted.get(&channel.to);
            counted.is_some_and(|c| c.counters.iter().any(|signals| !signals.is_empty()))
        };
        (self.channels.iter())
            .find(|c| !c.in_flight.is_empty() || !c.delivered.is_empty() || is_counted(c))
    }
}
