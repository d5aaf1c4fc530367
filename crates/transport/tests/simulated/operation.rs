//! Single operations on the network: their ways from the queue of a wire to the memory of a target,
//! and back.
#![allow(unsafe_code)]

use crate::kinds::{Flush, Sending};
use crate::memory::{local_bytes, set_local};
use crate::queue::Item;
use crate::world::{Event, World};
use rushmem_transport::engine::message::REQUEST;
use rushmem_transport::engine::target::Incoming;
use rushmem_transport::engine::{PolledUntil, StreamOrder};
use rushmem_transport::{AmoRequest, LocalBuf, Pe, RemoteAddr, mem};
use std::ops::Range;

/// The work of an operation.
#[derive(Clone, Copy)]
pub enum Work {
    Write {
        to: RemoteAddr,
        source: LocalBuf,
    },
    Read {
        from: RemoteAddr,
        dest: LocalBuf,
    },
    Amo {
        request: AmoRequest,
        fetched: *mut u8,
    },
    /// A request, with its attached data, which the target may have to fetch.
    Request {
        header: [u8; REQUEST],
        attached: LocalBuf,
        is_fetched: bool,
    },
}

/// An operation that a wire has taken.
pub struct Operation {
    pub wire: usize,
    pub pe: Pe,
    /// Its number among those of the wire to the PE, except requests.
    pub number: u64,
    pub work: Work,
    /// The entries of a request.
    pub entries: Vec<u8>,
    /// The data, once they were read from the memory of the caller.
    pub bytes: Option<Vec<u8>>,
    /// The wire counts it as in flight.
    pub is_counted: bool,
    /// It is over when its source may be reused, wherever the data are.
    pub ends_at_source: bool,
    /// The parts that have not arrived.
    pub pieces: usize,
    /// The completion was scheduled.
    pub is_ending: bool,
    /// A poll has found its completion.
    pub is_over: bool,
}

/// The attached data of a request that its target fetches.
pub struct Fetch {
    pub operation: usize,
    pub incoming: Incoming<usize>,
    /// The entries after them.
    pub rest: Vec<u8>,
    pub dest: LocalBuf,
    pub pieces: usize,
}

/// The parts in which a transfer was sent.
pub struct SentPieces {
    /// The time at which the last one arrives.
    pub until: u64,
    pub n_pieces: usize,
}

impl World {
    /// Takes the first operation out of the queue of a wire to a PE, and sends it.
    pub fn leave(&mut self, wire: usize, pe: Pe) {
        let link = &mut self.wires[wire].links[pe.index()];
        let Some(item) = link.queue.pop_front() else {
            return;
        };

        match item {
            Item::Fence => link.fenced_until = link.writes_until,
            Item::Flush(last) => {
                let after = link.all_until;
                let delay = self.delay();
                let until = self.schedule(delay, after, Event::Flush { wire, pe, last });
                self.wires[wire].links[pe.index()].all_until = until;
            }
            Item::Operation(operation) => {
                self.log("leave", [wire as u64, pe.0.into(), operation as u64]);

                let after = self.send(operation);
                let link = &mut self.wires[wire].links[pe.index()];
                link.all_until = link.all_until.max(after);
            }
        }

        let origin = self.wires[wire].pe;
        self.wake_service(origin);
    }

    /// Schedules the arrival of an operation that leaves. Returns the time of its last part.
    fn send(&mut self, operation: usize) -> u64 {
        let Operation {
            wire,
            pe,
            work,
            ends_at_source,
            ..
        } = self.operations[operation];
        self.read_source(operation);

        let order = self.kind.caps.order;
        let link = &self.wires[wire].links[pe.index()];
        let is_in_order = order == StreamOrder::Everything;

        // The times before which a write or an atomic operation, a read and a message do not
        // arrive.
        let all_until = if is_in_order { link.all_until } else { 0 };
        let after_fence = if order >= StreamOrder::WritesByFence {
            all_until.max(link.fenced_until)
        } else {
            0
        };
        let after_writes = if order >= StreamOrder::WritesBeforeMessages {
            all_until.max(link.writes_until)
        } else {
            0
        };

        let end_shows_arrival = self.kind.flush == Flush::Unneeded && !ends_at_source;
        match work {
            Work::Write { to, source } => {
                let sent = self.send_pieces(
                    to.offset,
                    source.nbytes,
                    after_fence,
                    is_in_order,
                    |piece| Event::Piece {
                        operation,
                        from: piece.start,
                        to: piece.end,
                    },
                );
                self.operations[operation].pieces = sent.n_pieces;

                let link = &mut self.wires[wire].links[pe.index()];
                link.writes_until = link.writes_until.max(sent.until);
                if !end_shows_arrival {
                    self.end_later(operation);
                }
                sent.until
            }
            Work::Amo { fetched, .. } => {
                let delay = self.delay();
                let until = self.schedule(delay, after_fence, Event::Arrive { operation });

                let link = &mut self.wires[wire].links[pe.index()];
                link.writes_until = link.writes_until.max(until);
                if fetched.is_null() && !end_shows_arrival && !self.kind.one_token {
                    self.end_later(operation);
                }
                until
            }
            Work::Read { .. } => {
                let delay = self.delay();
                self.schedule(delay, all_until, Event::Arrive { operation })
            }
            Work::Request { is_fetched, .. } => {
                let delay = self.delay();
                let until = self.schedule(delay, after_writes, Event::Arrive { operation });
                if !is_fetched {
                    self.end_later(operation);
                }
                until
            }
        }
    }

    /// Schedules the parts of a transfer, which end between words of the target. None arrives
    /// before the time `after`, and none overtakes another one if they are sent `in_order`.
    pub fn send_pieces(
        &mut self,
        offset: u64,
        nbytes: usize,
        after: u64,
        in_order: bool,
        event: impl Fn(Range<usize>) -> Event,
    ) -> SentPieces {
        let mut start = 0;
        let mut until = after;
        let mut n_pieces = 0;

        while start < nbytes {
            let rest = nbytes - start;
            let words = match self.rng.u32(..4) {
                0 => 1 + rest / 8,
                _ => self.rng.usize(1..=1 + rest / 16),
            };

            let word = (offset as usize + start) % 8;
            let end = nbytes.min(start + 8 * words - word);

            let delay = self.delay();
            let not_before = if in_order { until } else { after };
            until = until.max(self.schedule(delay, not_before, event(start..end)));

            start = end;
            n_pieces += 1;
        }

        SentPieces { until, n_pieces }
    }

    /// Reads the data of an operation from the memory of its caller, if they were not copied.
    fn read_source(&mut self, operation: usize) {
        let Operation { work, bytes, .. } = &mut self.operations[operation];
        let source = match *work {
            Work::Write { source, .. } => source,
            Work::Request {
                attached,
                is_fetched: false,
                ..
            } => attached,
            _ => return,
        };

        // SAFETY: valid until the operation is over, by the contract of the wire. An operation that
        // was abandoned is not in the queue any more.
        bytes.get_or_insert_with(|| unsafe { local_bytes(source) }.to_vec());
    }

    /// Schedules the completion of an operation.
    pub fn end_later(&mut self, operation: usize) {
        let delay = self.delay();
        if !std::mem::replace(&mut self.operations[operation].is_ending, true) {
            self.schedule(delay, 0, Event::Over { operation });
        }
    }

    /// Schedules the completion of a message that the network reports before it has sent it, if it
    /// does so.
    pub fn may_end_early(&mut self, operation: usize) {
        let of = &self.operations[operation];
        let may = self.kind.caps.polled == PolledUntil::Acknowledged && of.bytes.is_some();

        if may && matches!(of.work, Work::Request { .. }) && self.rng.bool() {
            self.end_later(operation);
        }
    }

    /// Stores a part of a write.
    pub fn store_piece(&mut self, operation: usize, piece: Range<usize>) {
        let of = &mut self.operations[operation];
        of.pieces -= 1;
        let pe = of.pe;
        let is_last = of.pieces == 0;
        let ends_at_source = of.ends_at_source;

        let (Work::Write { to, .. }, Some(bytes)) = (of.work, &of.bytes) else {
            unreachable!("a write that has left");
        };

        if self.dead == Some(pe) {
            return;
        }

        let offset = to.offset + piece.start as u64;
        let n = piece.len() as u64;
        self.memories[pe.index()].set(RemoteAddr { offset, ..to }, &bytes[piece]);
        self.log("piece", [operation as u64, offset, n]);
        if is_last && self.kind.flush == Flush::Unneeded && !ends_at_source {
            self.end_later(operation);
        }

        self.check_memory(pe);
    }

    /// Carries out a read or an atomic operation at its target.
    pub fn execute(&mut self, operation: usize) {
        let Operation { pe, work, .. } = self.operations[operation];
        if !self.is_alive(pe) {
            return;
        }

        self.log("execute", [operation as u64, pe.0.into(), 0]);
        let memory = &self.memories[pe.index()];
        let bytes = match work {
            Work::Read { from, dest } => memory.bytes(from, dest.nbytes).to_vec(),
            Work::Amo { request, fetched } => {
                let AmoRequest {
                    width,
                    op,
                    operand,
                    condition,
                    ..
                } = request;
                let word = memory.range(request.dest, width.nbytes()).base;

                // SAFETY: an aligned word of the memory of a PE.
                let old = unsafe { mem::apply(op, width, word, operand, condition) };

                self.check_memory(pe);
                if fetched.is_null() {
                    if self.kind.flush == Flush::Unneeded || self.kind.one_token {
                        self.end_later(operation);
                    }
                    return;
                }

                old.to_le_bytes()[..width.nbytes()].to_vec()
            }
            _ => unreachable!("other operations arrive otherwise"),
        };

        let wire = self.operations[operation].wire;
        self.answer(wire, pe, Event::Return { operation, bytes });
    }

    /// Schedules the arrival of an answer of a PE to a wire.
    pub fn answer(&mut self, wire: usize, pe: Pe, event: Event) {
        let delay = self.delay();
        let after = self.wires[wire].links[pe.index()].replies_until;
        let time = self.schedule(delay, after, event);
        if self.kind.caps.order == StreamOrder::Everything {
            self.wires[wire].links[pe.index()].replies_until = time;
        }
    }

    /// Stores the result of a read or an atomic operation at the origin.
    pub fn take_result(&mut self, operation: usize, bytes: &[u8]) {
        let Operation {
            wire,
            pe,
            number,
            work,
            ..
        } = self.operations[operation];

        let state = &mut self.wires[wire];
        if state.is_abandoned || self.dead == Some(state.pe) {
            return;
        }

        let to = match work {
            Work::Read { dest, .. } => dest.base,
            Work::Amo { fetched, .. } => fetched,
            _ => unreachable!("other operations have no result"),
        };

        // SAFETY: valid until the operation is over, or was abandoned, by the contract of the wire.
        unsafe { set_local(to, bytes) };

        self.log(
            "return",
            [operation as u64, pe.0.into(), bytes.len() as u64],
        );

        if self.kind.sending == Sending::Collected {
            let link = &mut self.wires[wire].links[pe.index()];
            link.flushed = link.flushed.max(number);
            self.complete(operation);
        } else {
            self.end_later(operation);
        }
    }

    /// Records the completion of an operation, which the next poll of its wire may find. Threads
    /// that serve a connection find it at once.
    pub fn complete(&mut self, operation: usize) {
        let wire = self.operations[operation].wire;
        let state = &mut self.wires[wire];
        let pe = state.pe;

        if state.is_abandoned || self.dead == Some(pe) {
            return;
        }

        match self.kind.sending {
            Sending::Collected => self.operations[operation].is_over = true,
            _ => state.completed.push(operation),
        }

        self.log("over", [wire as u64, operation as u64, 0]);
        self.wake_service(pe);
    }
}
