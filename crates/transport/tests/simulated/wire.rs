//! The wire of one origin.

use crate::kinds::{Flush, Sending, WireKind};
use crate::memory::CONSTANT;
use crate::network::SimulatedNetwork;
use crate::operation::Work;
use crate::queue::{Item, Refusal, WireState};
use crate::world::{self, Event, Symptom};
use rushmem_transport::engine::Remote;
use rushmem_transport::engine::{
    NextEvent, Polled, PostOutcome, Replies, SentMessage, TakeReply, Wire, WireCaps, WireNetwork,
    WriteEnd, WriteSent,
};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::{AmoRequest, DestBuf, Error, LocalBuf, Pe, Segment, SourceBuf};
use std::sync::Arc;
use std::time::Duration;

/// A wire, by its number in the world.
pub struct SimulatedWire {
    pub number: usize,
    pub kind: WireKind,
    pub replies: Arc<Replies>,
}

impl SimulatedWire {
    /// Posts an operation on a PE if the wire takes one. `copy` and `is_counted` are those of
    /// [`World::post`].
    fn post(
        &self,
        network: &SimulatedNetwork,
        pe: Pe,
        work: Work,
        (copy, is_counted): (bool, bool),
    ) -> Result<PostOutcome<usize>, Error> {
        let posted = world::with(|world| match world.refusal(self.number, pe) {
            Some(refusal) => Err(refusal),
            None => Ok(world.post(self.number, pe, work, copy, is_counted)),
        });

        match posted {
            Ok(operation) => Ok(PostOutcome::Pending(operation)),
            Err(Refusal::Full) => {
                world::with(|world| world.wires[self.number].expected = Some(pe));
                Ok(PostOutcome::Full)
            }
            Err(Refusal::Broken) => Err(network.lose(pe, "an operation failed")),
        }
    }

    fn is_tcp(&self) -> bool {
        self.kind.sending == Sending::Collected
    }

    fn in_state<T>(&self, read: impl FnOnce(&mut WireState) -> T) -> T {
        world::with(|world| read(&mut world.wires[self.number]))
    }

    /// Lets what the wire collects for a PE leave if `now`, or if much was collected.
    fn release_if(&self, pe: Pe, now: bool) {
        world::with(|world| {
            let collected = world.wires[self.number].links[pe.index()].n_collected;
            if now || collected >= 6 {
                world.release(self.number, pe);
            }
        });
    }

    fn expect(&self, pe: Pe) {
        self.in_state(|state| state.expected = Some(pe));
    }
}

impl Wire for SimulatedWire {
    type Network = SimulatedNetwork;
    type Token = usize;

    fn caps(&self) -> WireCaps {
        self.kind.caps
    }

    fn reach(&mut self, network: &SimulatedNetwork, pe: Pe) -> Result<bool, Error> {
        let (is_reached, is_broken) = world::with(|world| {
            world.count_call();
            let link = &mut world.wires[self.number].links[pe.index()];
            let is_new = !link.is_reached && !std::mem::replace(&mut link.is_connecting, true);

            let of = (link.is_reached, link.is_broken);
            if is_new {
                let wire = self.number;
                let delay = world.delay();
                world.schedule(delay, 0, Event::Connected { wire, pe });
            }
            of
        });

        if is_broken {
            Err(network.lose(pe, "it refuses the connection"))
        } else {
            Ok(is_reached)
        }
    }

    fn write(
        &mut self,
        network: &SimulatedNetwork,
        to: Remote<'_, SimulatedNetwork>,
        source: &mut SourceBuf,
        end: WriteEnd,
    ) -> Result<PostOutcome<usize>, Error> {
        let source = source.range();
        let nbytes = source.nbytes;

        to.key.check(&to, nbytes);
        let pe = to.pe;
        let to = to.at;

        assert!(
            (1..=self.kind.caps.longest_write).contains(&nbytes),
            "{nbytes} bytes"
        );
        assert!(
            to.segment != Segment::Heap || to.offset >= CONSTANT as u64,
            "a write to memory that no program changes"
        );

        let copies = nbytes <= self.kind.copies_up_to;
        let is_counted = match () {
            () if self.is_tcp() => false,
            () if self.kind.one_token => !copies || self.kind.flush == Flush::Unneeded,
            () => !end.awaited && (!copies || self.kind.flush == Flush::Unneeded),
        };

        let work = Work::Write { to, source };
        let posted = self.post(network, pe, work, (copies, is_counted))?;

        let PostOutcome::Pending(operation) = posted else {
            return Ok(posted);
        };

        if self.is_tcp() {
            self.in_state(|state| state.count(pe, 1));
            match end.sent {
                WriteSent::Now => self.release_if(pe, true),
                WriteSent::WithNext => {
                    self.in_state(|state| state.links[pe.index()].sends_next = true);
                }
                WriteSent::WithOthers => self.release_if(pe, !copies),
            }
        }

        world::with(|world| world.operations[operation].ends_at_source = end.source_free);

        if copies || !end.awaited && !self.kind.one_token {
            return Ok(PostOutcome::Done);
        }

        self.expect(pe);
        Ok(posted)
    }

    fn read(
        &mut self,
        network: &SimulatedNetwork,
        from: Remote<'_, SimulatedNetwork>,
        dest: &mut DestBuf,
        awaited: bool,
    ) -> Result<PostOutcome<usize>, Error> {
        let dest = dest.range();
        let nbytes = dest.nbytes;

        from.key.check(&from, nbytes);
        let pe = from.pe;
        let from = from.at;

        assert!(
            (1..=self.kind.caps.longest_read).contains(&nbytes),
            "{nbytes} bytes"
        );

        let is_counted = !self.is_tcp() && (self.kind.one_token || !awaited);
        let work = Work::Read { from, dest };

        let posted = self.post(network, pe, work, (false, is_counted))?;
        if !matches!(posted, PostOutcome::Pending(_)) {
            return Ok(posted);
        }

        if self.is_tcp() {
            if !awaited {
                self.in_state(|state| state.count(pe, 1));
            }
            self.release_if(pe, awaited);
        }

        if !awaited && !self.kind.one_token {
            return Ok(PostOutcome::Done);
        }

        self.expect(pe);
        Ok(posted)
    }

    fn amo(
        &mut self,
        network: &SimulatedNetwork,
        word: Remote<'_, SimulatedNetwork>,
        request: &AmoRequest,
        fetched: &mut Option<DestBuf>,
    ) -> Result<PostOutcome<usize>, Error> {
        let amos = &self.kind.caps.amos;
        assert!(amos.are_on(request.dest.segment));
        assert!(
            amos.operations.has(request.op, request.width),
            "{:?}",
            request.op
        );
        assert_eq!(word.at, request.dest);
        word.key.check(&word, request.width.nbytes());

        let request = *request;
        let fetched = fetched
            .as_ref()
            .map_or(LocalBuf::EMPTY, DestBuf::range)
            .base;

        let work = Work::Amo { request, fetched };
        self.post(network, word.pe, work, (false, true))
    }

    fn send(
        &mut self,
        network: &SimulatedNetwork,
        pe: Pe,
        SentMessage {
            request,
            entries,
            attached,
            awaited,
        }: SentMessage<'_>,
    ) -> Result<PostOutcome<usize>, Error> {
        assert_eq!(entries.len(), usize::from(request.nbytes));

        let attached = attached.range();
        let copies = self.is_tcp() || attached.nbytes <= self.kind.copies_up_to;
        let is_fetched = self.kind.fetches && !copies;
        let is_counted = !self.is_tcp() && (self.kind.one_token || !awaited);

        let work = Work::Request {
            header: request.encode(),
            attached,
            is_fetched,
        };

        let posted = self.post(network, pe, work, (copies, is_counted))?;
        let PostOutcome::Pending(operation) = posted else {
            return Ok(posted);
        };

        world::with(|world| {
            world.check_limits(self.number, pe, request, attached.nbytes);
            world.wires[self.number].unanswered += usize::from(request.slot.is_some());
            world.operations[operation].entries.clone_from(entries);
        });

        // The buffer of another request.
        *entries = vec![0xEE; entries.len() / 2];

        if self.is_tcp() {
            self.release_if(pe, awaited || attached.nbytes == 0);
            if request.slot.is_some() || request.position.asks {
                self.expect(pe);
            }
            return Ok(PostOutcome::Done);
        }

        world::with(|world| world.may_end_early(operation));

        if copies || !awaited && !self.kind.one_token {
            Ok(PostOutcome::Done)
        } else {
            Ok(posted)
        }
    }

    fn is_over(&mut self, _: &SimulatedNetwork, pe: Pe, token: &usize) -> Result<bool, Error> {
        Ok(world::with(|world| {
            world.count_call();
            if self.kind.one_token {
                world.wires[self.number].links[pe.index()].in_flight == 0
            } else {
                world.operations[*token].is_over
            }
        }))
    }

    fn fence(&mut self, _: &SimulatedNetwork) -> Result<bool, Error> {
        Ok(world::with(|world| {
            world.count_call();
            let wire = self.number;

            if self.kind.fence_waits && world.wires[wire].in_flight > 0 {
                return false;
            }

            for to in 0..world.pes.len() {
                let pe = Pe(to as u32);
                if self.kind.sending == Sending::Collected {
                    world.release(wire, pe);
                    continue;
                }

                let link = &mut world.wires[wire].links[to];
                if link.queue.is_empty() {
                    link.fenced_until = link.writes_until;
                } else {
                    world.enqueue(wire, pe, Item::Fence);
                }
            }
            true
        }))
    }

    fn begin_flush(&mut self, _: &SimulatedNetwork, pe: Pe) -> Result<(), Error> {
        if matches!(self.kind.flush, Flush::Message | Flush::Acknowledgment) {
            world::with(|world| {
                world.count_call();
                let wire = self.number;
                let link = &mut world.wires[wire].links[pe.index()];
                let last = link.started;

                if std::mem::replace(&mut link.flushing, last) < last {
                    world.enqueue(wire, pe, Item::Flush(last));
                }

                if self.kind.sending == Sending::Collected {
                    world.release(wire, pe);
                }
            });
            self.expect(pe);
        }
        Ok(())
    }

    fn is_flushed(&mut self, _: &SimulatedNetwork, pe: Pe) -> Result<bool, Error> {
        Ok(world::with(|world| {
            world.count_call();

            let wire = self.number;
            let state = &mut world.wires[wire];
            let link = &mut state.links[pe.index()];

            match self.kind.flush {
                Flush::Unneeded => link.in_flight == 0,
                Flush::Message => link.in_flight == 0 && link.flushed >= link.flushing,
                Flush::Read => {
                    if link.in_flight > 0 || link.flushed < link.flushing {
                        return false;
                    }
                    if !std::mem::take(&mut link.is_unflushed) {
                        return true;
                    }

                    let last = link.started;
                    link.flushing = last;
                    world.enqueue(wire, pe, Item::Flush(last));
                    false
                }
                Flush::Acknowledgment => {
                    if link.flushed >= link.started {
                        let in_flight = link.in_flight as isize;
                        state.count(pe, -in_flight);
                        return true;
                    }

                    world.release(wire, pe);
                    world.wires[wire].expected = Some(pe);
                    false
                }
            }
        }))
    }

    fn in_flight(&self) -> usize {
        self.in_state(|state| state.in_flight)
    }

    fn in_flight_to(&self, pe: Pe) -> usize {
        self.in_state(|state| state.links[pe.index()].in_flight)
    }

    fn poll(&mut self, network: &SimulatedNetwork, take: TakeReply<'_>) -> Result<Polled, Error> {
        let (replies, failed, worked) = world::with(|world| {
            world.count_call();
            let state = &mut world.wires[self.number];
            let replies = std::mem::take(&mut state.replies);
            let failed = match (world.dead, world.symptom) {
                (Some(dead), Symptom::Failed) => {
                    let link = &state.links[dead.index()];
                    (link.is_broken && link.in_flight > 0).then_some(dead)
                }
                _ => None,
            };

            if let (Sending::Collected, Some(pe)) = (self.kind.sending, state.expected) {
                world.release(self.number, pe);
            }

            let sent = world.poll_queues(self.number);
            (replies, failed, world.poll_completions(self.number) || sent)
        });

        let any_reply = !replies.is_empty();
        for (reply, bytes) in replies {
            take(reply, &bytes).map_err(|violation| refused(network, reply.pe, violation))?;
        }

        let taken = self.replies.take(take);
        let n = taken.map_err(|message| network.refuse_reply(&message))?;

        match failed {
            Some(dead) => Err(network.lose(dead, "a poll failed")),
            None if self.in_state(|state| std::mem::take(&mut state.broke)) => Ok(Polled::Broke),
            None if worked || any_reply || n > 0 => Ok(Polled::Worked),
            None => Ok(Polled::Idle),
        }
    }

    fn serve(&self, network: &SimulatedNetwork, _: u32, _: bool) -> Result<bool, Error> {
        network.local().state.count_poll();
        Ok(world::serve())
    }

    fn confirm(&mut self, network: &SimulatedNetwork, pe: Pe) -> Result<(), Error> {
        if world::with(|world| world.is_alive(pe)) {
            Ok(())
        } else {
            Err(network.lose(pe, "it does not answer"))
        }
    }

    fn sleep(&mut self, _: &SimulatedNetwork, at_most: Duration) {
        world::sleep(at_most.as_nanos() as u64);
    }

    fn arm(&self, are_unacked: bool) -> NextEvent {
        let is_signaled = world::with(|world| {
            let state = &world.wires[self.number];
            let is_unsent = state.links.iter().any(|link| !link.queue.is_empty());

            if self.kind.one_token {
                let is_unflushed = state.links.iter().any(|link| link.is_unflushed);
                state.in_flight == 0 && !is_unflushed && !are_unacked
            } else {
                self.is_tcp() || !is_unsent && state.completed.is_empty()
            }
        });

        if is_signaled {
            NextEvent::OfNetwork
        } else {
            NextEvent::Unsignaled
        }
    }

    fn abandon(&mut self, _: &SimulatedNetwork) -> Result<(), String> {
        self.in_state(|state| {
            state.is_abandoned = true;
            for link in &mut state.links {
                link.queue.clear();
                link.n_collected = 0;
            }
        });
        Ok(())
    }
}

/// Returns the loss of this PE's peer by an answer that the engine refuses. Only an answer to what
/// was given up after a loss may be refused.
fn refused(network: &SimulatedNetwork, pe: Pe, violation: Violation) -> Error {
    network.refuse_reply(&RefusedMessage::of(pe, violation))
}
