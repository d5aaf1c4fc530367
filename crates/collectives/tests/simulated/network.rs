//! The channels between members: first in, first out for each ordered pair, of any delay.

use crate::clock::{Clock, Event};
use crate::memory::Area;
use crate::schedule::Actor;
use crate::value::Value;
use std::collections::{HashMap, VecDeque};

/// What a `Put` carries.
pub struct Data {
    pub area: Area,
    pub values: Vec<Value>,
    pub issued: Event,
}

/// What every message tells whoever waits for it.
pub struct Signal {
    /// Length of the chain of messages that ends with this one.
    pub depth: u32,
    pub clock: Clock,
}

/// A message that becomes visible.
pub struct Delivery {
    pub from: u32,
    pub to: u32,
    pub data: Option<Data>,
    /// Whether more messages are in flight.
    pub more: bool,
}

pub struct Channel {
    pub from: u32,
    pub to: u32,
    in_flight: VecDeque<(Option<Data>, Signal)>,
    delivered: VecDeque<Signal>,
}

#[derive(Default)]
pub struct Network {
    channels: Vec<Channel>,
    index: HashMap<(u32, u32), usize>,
}

impl Network {
    /// Send a message. Returns the channel if it can act now and could not before.
    pub fn send(
        &mut self,
        from: u32,
        to: u32,
        data: Option<Data>,
        signal: Signal,
    ) -> Option<Actor> {
        let next = self.channels.len();
        let index = *self.index.entry((from, to)).or_insert(next);
        if index == next {
            self.channels.push(Channel {
                from,
                to,
                in_flight: VecDeque::new(),
                delivered: VecDeque::new(),
            });
        }
        let channel = &mut self.channels[index];
        channel.in_flight.push_back((data, signal));
        (channel.in_flight.len() == 1).then_some(Actor::Channel(index))
    }

    /// The oldest message of a channel arrives. Its data are the caller's to place.
    pub fn deliver(&mut self, index: usize) -> Delivery {
        let channel = &mut self.channels[index];
        let oldest = channel.in_flight.pop_front();
        let (data, signal) = oldest.expect("only channels with a message act");
        channel.delivered.push_back(signal);
        Delivery { from: channel.from, to: channel.to, data, more: !channel.in_flight.is_empty() }
    }

    /// What the next `Wait` of `to` for `from` takes, if it is there.
    pub fn wait(&mut self, from: u32, to: u32) -> Option<Signal> {
        let index = *self.index.get(&(from, to))?;
        self.channels[index].delivered.pop_front()
    }

    /// A channel with signals that nobody waited for.
    pub fn undrained(&self) -> Option<&Channel> {
        (self.channels.iter()).find(|c| !c.in_flight.is_empty() || !c.delivered.is_empty())
    }
}
