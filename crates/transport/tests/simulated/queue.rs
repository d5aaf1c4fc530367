//! The state of the wires: the queues of operations to each PE, what is in flight, and what the
//! next poll of a wire finds.
#![allow(unsafe_code)]

use crate::clock;
use crate::kinds::{Flush, Sending};
use crate::memory::local_bytes;
use crate::operation::{Operation, Work};
use crate::world::{Event, Symptom, World};
use rushmem_transport::engine::message::{Reply, Request};
use rushmem_transport::{LocalBuf, Pe};
use std::collections::VecDeque;

/// An entry of the queue of a wire to a PE.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    Operation(usize),
    /// Later writes arrive after earlier ones.
    Fence,
    /// A flush of this number of operations.
    Flush(u64),
}

/// The state of a wire towards one PE.
#[derive(Debug, Default)]
pub struct Link {
    pub is_reached: bool,
    pub is_connecting: bool,
    /// The connection was found broken.
    pub is_broken: bool,
    pub queue: VecDeque<Item>,
    /// The last entries of the queue, which the wire collects.
    pub n_collected: usize,
    /// The time at which all writes and atomic operations that have left have arrived.
    pub writes_until: u64,
    /// The same for those before the last fence.
    pub fenced_until: u64,
    /// The same for all operations.
    pub all_until: u64,
    /// The time at which all answers that were sent have arrived.
    pub replies_until: u64,
    /// The number of operations, except requests, that were started.
    pub started: u64,
    /// The number of these that the last flush covers that has begun.
    pub flushing: u64,
    /// The number of these that are known to have arrived.
    pub flushed: u64,
    /// The number of the last read among these.
    pub last_read: u64,
    pub in_flight: usize,
    /// The number of requests that have arrived.
    pub received: u32,
    /// The number of requests that the PE has acknowledged.
    pub acked: u32,
    /// A write was started that is to be sent with the next operation.
    pub sends_next: bool,
    /// Writes were started that no read has followed.
    pub is_unflushed: bool,
}

/// The state of a wire.
#[derive(Debug)]
pub struct WireState {
    pub pe: Pe,
    pub links: Vec<Link>,
    /// Operations whose completion the next polls find.
    pub completed: Vec<usize>,
    /// Flushes whose end the next poll finds.
    ended_flushes: Vec<(Pe, u64)>,
    /// Replies that the next poll finds.
    pub replies: Vec<(Reply, Vec<u8>)>,
    pub in_flight: usize,
    /// The number of requests whose answers have not arrived.
    pub unanswered: usize,
    /// The wire takes nothing before this time.
    pub full_until: u64,
    /// The PE for which a call waited last: a poll sends what is collected for it.
    pub expected: Option<Pe>,
    /// A connection broke since the last poll.
    pub broke: bool,
    pub is_abandoned: bool,
}

impl WireState {
    /// Returns the state of a wire of a PE.
    pub fn new(pe: Pe, n_pes: usize) -> WireState {
        WireState {
            pe,
            links: (0..n_pes).map(|_| Link::default()).collect(),
            completed: Vec::new(),
            ended_flushes: Vec::new(),
            replies: Vec::new(),
            in_flight: 0,
            unanswered: 0,
            full_until: 0,
            expected: None,
            broke: false,
            is_abandoned: false,
        }
    }

    /// Returns true if nothing is in flight or queued, and no answer waits for a poll.
    pub fn is_idle(&self) -> bool {
        let any_answer = self.replies.iter().any(|(reply, _)| reply.answer.is_some());
        let any_operation = self
            .links
            .iter()
            .any(|link| !link.queue.is_empty() || link.in_flight > 0);
        self.in_flight == 0 && !any_answer && !any_operation
    }

    /// Changes the number of operations in flight to a PE.
    pub fn count(&mut self, pe: Pe, by: isize) {
        let link = &mut self.links[pe.index()];
        link.in_flight = changed(link.in_flight, by);
        self.in_flight = changed(self.in_flight, by);
    }
}

fn changed(n: usize, by: isize) -> usize {
    n.checked_add_signed(by).expect("no operation ends twice")
}

/// How a wire treats an operation that it takes.
#[derive(Clone, Copy)]
pub struct PostOptions {
    /// The wire copies the data at once.
    pub copies: bool,
    /// The wire counts the operation as in flight.
    pub is_counted: bool,
}

/// The reason why an operation was not started.
pub enum Refusal {
    Full,
    Broken,
}

impl World {
    /// Returns the reason why a wire does not start an operation on a PE.
    pub fn refusal(&mut self, wire: usize, pe: Pe) -> Option<Refusal> {
        self.count_call();
        let now = clock::now();
        let state = &mut self.wires[wire];
        let link = &state.links[pe.index()];

        assert!(
            link.is_reached,
            "an operation on PE {pe} before it is reached"
        );
        assert!(
            !state.is_abandoned,
            "an operation of a wire that was abandoned"
        );

        if link.is_broken {
            return Some(Refusal::Broken);
        }
        if now < state.full_until || link.queue.len() >= self.kind.room {
            return Some(Refusal::Full);
        }

        if self.rng.u32(..24) == 0 {
            let delay = self.delay();
            let until = self.schedule(delay, 0, Event::Room { wire });
            self.wires[wire].full_until = until;
            return Some(Refusal::Full);
        }
        None
    }

    /// Adds an operation to the queue of a wire. Returns its number.
    pub fn post(&mut self, wire: usize, pe: Pe, work: Work, options: PostOptions) -> usize {
        let PostOptions { copies, is_counted } = options;
        let source = match work {
            Work::Write { source, .. } => source,
            Work::Request { attached, .. } => attached,
            _ => LocalBuf::EMPTY,
        };

        let bytes = if copies {
            // SAFETY: the source of an operation is valid for reads until the operation is over,
            // by the contract of the wire.
            Some(unsafe { local_bytes(source) }.to_vec())
        } else {
            None
        };

        let is_flushed = !matches!(work, Work::Request { .. });
        let link = &mut self.wires[wire].links[pe.index()];
        link.started += u64::from(is_flushed);
        let number = link.started;
        if matches!(work, Work::Read { .. }) {
            link.last_read = number;
        }

        let operation = self.operations.len();
        self.operations.push(Operation {
            wire,
            number,
            pe,
            work,
            entries: Vec::new(),
            bytes,
            is_counted,
            ends_at_source: false,
            pieces: 0,
            is_ending: false,
            is_over: false,
        });

        self.log("post", [wire as u64, pe.0.into(), operation as u64]);

        let state = &mut self.wires[wire];
        if is_counted {
            state.count(pe, 1);
        }

        if self.kind.flush == Flush::Read && matches!(work, Work::Write { .. }) {
            state.links[pe.index()].is_unflushed = true;
        }

        self.enqueue(wire, pe, Item::Operation(operation));
        operation
    }

    /// Adds an entry to the queue of a wire to a PE.
    pub fn enqueue(&mut self, wire: usize, pe: Pe, item: Item) {
        let link = &mut self.wires[wire].links[pe.index()];
        link.queue.push_back(item);

        match self.kind.sending {
            Sending::Collected => link.n_collected += 1,
            Sending::ByItself => {
                let delay = self.delay();
                self.schedule(delay, 0, Event::Leave { wire, pe });
            }
            Sending::ByPolls => {}
        }
    }

    /// Returns true if the source of an operation in the queue to a PE is still to be read.
    pub fn has_unread_sources(&self, wire: usize, pe: Pe) -> bool {
        let queue = &self.wires[wire].links[pe.index()].queue;
        queue.iter().any(|item| match item {
            Item::Operation(operation) => self.operations[*operation].bytes.is_none(),
            Item::Fence | Item::Flush(_) => false,
        })
    }

    /// Lets what a wire collects for a PE leave.
    pub fn release(&mut self, wire: usize, pe: Pe) {
        let link = &mut self.wires[wire].links[pe.index()];
        link.sends_next = false;

        for _ in 0..std::mem::take(&mut link.n_collected) {
            let delay = self.rng.u64(..2_000);
            self.schedule(delay, 0, Event::Leave { wire, pe });
        }
    }

    /// Lets everything leave that the wires of a PE collect.
    pub fn release_collected(&mut self, pe: Pe) {
        for wire in 0..self.wires.len() {
            if self.wires[wire].pe == pe {
                for to in 0..self.pes.len() {
                    self.release(wire, Pe(to as u32));
                }
            }
        }
    }

    /// Returns true if a wire of a PE collects anything.
    pub fn collects_anything(&self, pe: Pe) -> bool {
        let wires = self.wires.iter().filter(|wire| wire.pe == pe);
        wires
            .flat_map(|wire| &wire.links)
            .any(|link| link.n_collected > 0)
    }

    /// Checks that a request respects the limits of its wire.
    pub fn check_limits(&mut self, wire: usize, pe: Pe, request: &Request, attached: usize) {
        let caps = &self.kind.caps;
        assert!(
            attached <= caps.longest_signaled,
            "{attached} bytes of data in a message"
        );

        let nbytes = usize::from(request.nbytes);
        assert!(
            nbytes <= self.kind.longest_batch(),
            "{nbytes} bytes of entries in a message"
        );

        let state = &self.wires[wire];
        let unacked = request
            .position
            .number
            .wrapping_sub(state.links[pe.index()].acked);
        assert!(
            request.position.asks || unacked <= caps.window,
            "{unacked} unacknowledged requests in a window of {}",
            caps.window
        );

        let unanswered = state.unanswered + usize::from(request.slot.is_some());
        assert!(
            unanswered <= caps.max_unanswered,
            "{unanswered} requests without an answer"
        );
    }

    /// Records that a wire is connected to a PE, unless one of both PEs is dead.
    pub fn connect(&mut self, wire: usize, pe: Pe) {
        let origin = self.wires[wire].pe;
        if self.is_alive(pe) && self.is_alive(origin) {
            self.wires[wire].links[pe.index()].is_reached = true;
            self.wake_service(origin);
        }
    }

    /// Lets a PE answer a flush, unless it is dead.
    pub fn answer_flush(&mut self, wire: usize, pe: Pe, last: u64) {
        if self.is_alive(pe) {
            self.answer(wire, pe, Event::Flushed { wire, pe, last });
        }
    }

    /// Records the end of a flush.
    pub fn end_flush(&mut self, wire: usize, pe: Pe, last: u64) {
        let state = &mut self.wires[wire];
        if self.dead == Some(state.pe) || self.dead == Some(pe) {
            return;
        }

        state.ended_flushes.push((pe, last));

        let origin = state.pe;
        self.log("flushed", [wire as u64, pe.0.into(), last]);
        self.wake_service(origin);
    }

    /// Has the network of a PE notice that another one died.
    pub fn notice(&mut self, pe: Pe) {
        let Some(dead) = self.dead else { return };
        self.log("notice", [pe.0.into(), dead.0.into(), 0]);

        let symptom = self.symptom;
        for wire in self.wires.iter_mut().filter(|wire| wire.pe == pe) {
            wire.links[dead.index()].is_broken = symptom != Symptom::Silent;
            wire.broke = symptom == Symptom::Broken;
        }
    }

    /// Returns the PE that died, if polls of a wire fail because of it.
    pub fn failed_peer(&self, wire: usize) -> Option<Pe> {
        let dead = self.dead?;
        let link = &self.wires[wire].links[dead.index()];
        if self.symptom == Symptom::Failed && link.is_broken && link.in_flight > 0 {
            return Some(dead);
        }
        None
    }

    /// Lets some of the entries leave that wait in the queues of a wire for a poll. Returns true if
    /// there were any.
    pub fn poll_queues(&mut self, wire: usize) -> bool {
        if self.kind.sending != Sending::ByPolls {
            return false;
        }

        let mut any = false;
        for to in 0..self.pes.len() {
            let queued = self.wires[wire].links[to].queue.len();
            if queued > 0 {
                any = true;
                for _ in 0..self.rng.usize(1..=queued) {
                    self.leave(wire, Pe(to as u32));
                }
            }
        }
        any
    }

    /// Processes some of the completions that have arrived, in any order. Returns true if there
    /// were any.
    pub fn poll_completions(&mut self, wire: usize) -> bool {
        let state = &mut self.wires[wire];

        let any_flush = !state.ended_flushes.is_empty();
        for (pe, last) in state.ended_flushes.drain(..) {
            let link = &mut state.links[pe.index()];
            link.flushed = link.flushed.max(last);
        }

        let n_completed = state.completed.len();
        if n_completed == 0 {
            return any_flush;
        }

        self.rng.shuffle(&mut self.wires[wire].completed);
        for _ in 0..self.rng.usize(1..=n_completed) {
            let state = &mut self.wires[wire];
            let Some(operation) = state.completed.pop() else {
                break;
            };

            let of = &mut self.operations[operation];
            of.is_over = true;
            if of.is_counted {
                state.count(of.pe, -1);
            }
        }
        true
    }
}
