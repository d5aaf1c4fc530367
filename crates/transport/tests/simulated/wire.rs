//! The wire of one origin.

use crate::kinds::{Flush, Sending, WireKind};
use crate::memory::CONSTANT;
use crate::network::SimulatedNetwork;
use crate::operation::Work;
use crate::queue::{Item, PostOptions, Refusal, WireState};
use crate::world::{self, Event};
use rushmem_transport::engine::Remote;
use rushmem_transport::engine::{
    NextEvent, Polled, PostOutcome, Replies, SentMessage, TakeReply, Wire, WireCaps, WireNetwork,
    WriteEnd, WriteSent,
};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::{AmoRequest, DestBuf, Error, Pe, Segment, SourceBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// A wire, by its number in the world.
pub struct SimulatedWire {
    pub number: usize,
    pub kind: WireKind,
    pub replies: Arc<Replies>,
}

impl SimulatedWire {
    /// Posts an operation on a PE if the wire takes one.
    fn post(
        &self,
        network: &SimulatedNetwork,
        pe: Pe,
        work: Work,
        options: PostOptions,
    ) -> Result<PostOutcome<usize>, Error> {
        let posted = world::with(|world| match world.refusal(self.number, pe) {
            Some(refusal) => Err(refusal),
            None => Ok(world.post(self.number, pe, work, options)),
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
        let wire = self.number;
        world::with(|world| {
            world.count_call();
            let link = &mut world.wires[wire].links[pe.index()];
            let is_new = !link.is_reached && !std::mem::replace(&mut link.is_connecting, true);
            if is_new {
                let delay = world.delay();
                world.schedule(delay, 0, Event::Connected { wire, pe });
            }
        });

        let is_broken = self.in_state(|state| state.links[pe.index()].is_broken);
        if is_broken {
            return Err(network.lose(pe, "it refuses the connection"));
        }
        Ok(self.in_state(|state| state.links[pe.index()].is_reached))
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
        let to = to.addr;

        assert!(
            (1..=self.kind.caps.longest_write).contains(&nbytes),
            "{nbytes} bytes"
        );
        assert!(
            to.segment != Segment::Heap || to.offset >= CONSTANT as u64,
            "a write to memory that no program changes"
        );

        let copies = nbytes <= self.kind.copies_up_to;
        let has_completion = !copies || self.kind.flush == Flush::Unneeded;
        let is_counted = if self.is_tcp() {
            false
        } else if self.kind.one_token {
            has_completion
        } else {
            has_completion && !end.awaited
        };

        let work = Work::Write { to, source };
        let options = PostOptions { copies, is_counted };
        let posted = self.post(network, pe, work, options)?;
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
        let from = from.addr;

        assert!(
            (1..=self.kind.caps.longest_read).contains(&nbytes),
            "{nbytes} bytes"
        );

        let work = Work::Read { from, dest };
        let options = PostOptions {
            copies: false,
            is_counted: !self.is_tcp() && (self.kind.one_token || !awaited),
        };
        let posted = self.post(network, pe, work, options)?;
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
        assert_eq!(word.addr, request.dest);
        word.key.check(&word, request.width.nbytes());

        let fetched = match fetched {
            Some(dest) => dest.range().base,
            None => null_mut(),
        };
        let work = Work::Amo {
            request: *request,
            fetched,
        };
        let options = PostOptions {
            copies: false,
            is_counted: true,
        };
        self.post(network, word.pe, work, options)
    }

    fn send(
        &mut self,
        network: &SimulatedNetwork,
        pe: Pe,
        message: SentMessage<'_>,
    ) -> Result<PostOutcome<usize>, Error> {
        let SentMessage {
            request,
            entries,
            attached,
            awaited,
        } = message;
        assert_eq!(entries.len(), usize::from(request.nbytes));

        let attached = attached.range();
        let copies = self.is_tcp() || attached.nbytes <= self.kind.copies_up_to;
        let work = Work::Request {
            header: request.encode(),
            attached,
            is_fetched: self.kind.fetches && !copies,
        };
        let options = PostOptions {
            copies,
            is_counted: !self.is_tcp() && (self.kind.one_token || !awaited),
        };

        let posted = self.post(network, pe, work, options)?;
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
        assert_ne!(self.kind.flush, Flush::Request);
        if self.kind.flush == Flush::Message {
            world::with(|world| {
                world.count_call();
                let wire = self.number;
                let link = &mut world.wires[wire].links[pe.index()];
                let last = link.started;

                if std::mem::replace(&mut link.flushing, last) < last {
                    world.enqueue(wire, pe, Item::Flush(last));
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
                Flush::Request => {
                    if link.flushed >= link.last_read {
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

    fn are_sources_free(&mut self, _: &SimulatedNetwork, pe: Pe) -> Result<bool, Error> {
        if !self.is_tcp() {
            return Ok(self.in_flight_to(pe) == 0);
        }

        Ok(world::with(|world| {
            world.count_call();
            let are_free = !world.has_unread_sources(self.number, pe);
            if !are_free {
                world.release(self.number, pe);
                world.wires[self.number].expected = Some(pe);
            }
            are_free
        }))
    }

    fn in_flight(&self) -> usize {
        self.in_state(|state| state.in_flight)
    }

    fn in_flight_to(&self, pe: Pe) -> usize {
        self.in_state(|state| state.links[pe.index()].in_flight)
    }

    fn poll(&mut self, network: &SimulatedNetwork, take: TakeReply<'_>) -> Result<Polled, Error> {
        // Before the poll completes the operations that are in flight.
        let failed = world::with(|world| {
            world.count_call();
            world.failed_peer(self.number)
        });
        let replies = self.in_state(|state| std::mem::take(&mut state.replies));

        let worked = world::with(|world| {
            if self.kind.sending == Sending::Collected
                && let Some(pe) = world.wires[self.number].expected
            {
                world.release(self.number, pe);
            }

            let any_sent = world.poll_queues(self.number);
            let any_completed = world.poll_completions(self.number);
            any_sent || any_completed
        });

        let any_reply = !replies.is_empty();
        for (reply, bytes) in replies {
            take(reply, &bytes).map_err(|violation| refused(network, reply.pe, violation))?;
        }

        let taken = self.replies.take(take);
        let n_taken = taken.map_err(|message| network.refuse_reply(&message))?;

        if let Some(dead) = failed {
            return Err(network.lose(dead, "a poll failed"));
        }
        let is_broken = self.in_state(|state| std::mem::take(&mut state.broke));
        if is_broken {
            Ok(Polled::Broke)
        } else if worked || any_reply || n_taken > 0 {
            Ok(Polled::Worked)
        } else {
            Ok(Polled::Idle)
        }
    }

    fn serve(&self, network: &SimulatedNetwork) -> Result<bool, Error> {
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

/// Returns the loss after which the engine refuses an answer: only an answer to what was given up
/// after a loss may be refused.
fn refused(network: &SimulatedNetwork, pe: Pe, violation: Violation) -> Error {
    network.refuse_reply(&RefusedMessage::of(pe, violation))
}
