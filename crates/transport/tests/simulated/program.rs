//! The programs: each actor makes calls that it draws, and checks what they return.
#![allow(unsafe_code)]

use crate::actor::{Dest, Expected, GUARD, UNUSED};
use crate::call::{Blocks, Bytes, Call, Old, amo};
use crate::memory::{HEAP, at, constant};
use crate::model::Versions;
use crate::network::SimulatedNetwork;
use crate::world::{self, Event, World};
use rushmem_transport::engine::WireEndpoint;
use rushmem_transport::{
    AmoOp, AmoWidth, Buffer, Completion, DestBuf, Endpoint, Error, Get, LocalBuf, OldValue, Pe,
    Put, Segment, SourceBuf, StridedBlocks,
};
use std::mem::ManuallyDrop;

/// The number of calls of an actor after a loss.
const CALLS_AFTER_LOSS: u32 = 3;

/// Makes the next call of an actor, and schedules the one after it.
pub fn act(actor: usize) {
    let call = world::with(|world| world.draw_call(actor));
    let Some((name, call)) = call else { return };

    perform(actor, name, call);
    world::with(|world| world.plan_next_call(actor));
}

/// Completes what an actor has issued.
pub fn finish(actor: usize) {
    if world::with(|world| world.actors[actor].is_in_session) {
        world::with(|world| world.actors[actor].is_in_session = false);
        perform(actor, "end of session", Call::Session { is_open: false });
    }

    perform(actor, "last quiet", Call::Quiet);
}

/// Makes a call, and checks its results.
fn perform(actor: usize, name: &'static str, call: Call) {
    let done = self::call(actor, name, |endpoint| issue(endpoint, &call));

    world::with(|world| {
        world.check_sent(actor);

        let result = *done.as_ref().unwrap_or(&u64::MAX);
        world.log("returns", [actor as u64, result, 0]);

        match done {
            Ok(value) => world.check_result(actor, name, &call, value),
            Err(Error::Invalid(_)) if matches!(call, Call::Invalid { .. }) => {}
            Err(error) => world.take_loss(actor, error),
        }

        let wire = world.actors[actor].wire;

        // The wire is free for the actors that have waited for it.
        for other in 0..world.actors.len() {
            let of = &mut world.actors[other];
            if of.wire == wire && std::mem::take(&mut of.is_waiting) {
                world.schedule(100, 0, Event::Act { actor: other });
            }
        }
    });
}

/// Makes a call of an actor, which uses its endpoint as `issue` says.
pub fn call<T>(
    actor: usize,
    name: &'static str,
    issue: impl FnOnce(&mut WireEndpoint<SimulatedNetwork>) -> T,
) -> T {
    let mut endpoint = world::with(|world| {
        world.log(name, [actor as u64, 0, 0]);
        let of = &mut world.actors[actor];
        of.is_in_call = true;
        of.call = name;
        let endpoint = of.endpoint.take().expect("the actor is in no call");
        // Not dropped if a check fails: the endpoint would complete its operations.
        ManuallyDrop::new(endpoint)
    });
    let done = issue(&mut endpoint);

    world::with(|world| {
        let of = &mut world.actors[actor];
        of.is_in_call = false;
        of.endpoint = Some(ManuallyDrop::into_inner(endpoint));

        let pe = of.pe;
        world.make_progress();
        world.wake_service(pe);
    });
    done
}

/// Calls the engine. Returns the value that the call returns, as a number: of PEs, a bit for each.
fn issue(endpoint: &mut WireEndpoint<SimulatedNetwork>, call: &Call) -> Result<u64, Error> {
    match *call {
        Call::Put { pe, put } => endpoint.put(pe, promised_put(put))?,
        Call::PutStrided { pe, blocks } => {
            // SAFETY: the actor keeps the source until the operation is over.
            let local = unsafe { SourceBuf::new(blocks.local.base, blocks.local.nbytes) };
            endpoint.put_strided(pe, promised_blocks(blocks, local))?;
        }
        Call::PutSignal {
            pe,
            put,
            signal,
            order,
        } => {
            endpoint.put_signal(pe, promised_put(put), signal, order)?;
        }
        Call::Get { pe, get } => {
            // SAFETY: the actor keeps the destination until the operation is over.
            let local = unsafe { DestBuf::new(get.local.base, get.local.nbytes) };
            let get = Get {
                remote: get.remote,
                local,
                completion: get.completion,
            };
            endpoint.get(pe, get)?;
        }
        Call::GetStrided { pe, blocks } => {
            // SAFETY: the actor keeps the destination until the operation is over.
            let local = unsafe { DestBuf::new(blocks.local.base, blocks.local.nbytes) };
            endpoint.get_strided_nbi(pe, promised_blocks(blocks, local))?;
        }
        Call::Amo {
            pe, request, old, ..
        } => {
            let old = match old {
                Old::Ignored => OldValue::Ignored,
                Old::Returned => OldValue::Returned,
                Old::AtQuiet(word) => {
                    // SAFETY: the actor keeps the destination until the operation is over.
                    let word = unsafe { DestBuf::new(word, request.width.nbytes()) };
                    OldValue::AtQuiet(word)
                }
            };
            return endpoint.amo(pe, request, old);
        }
        Call::Fence => endpoint.fence()?,
        Call::Quiet => endpoint.quiet()?,
        Call::QuietOfPe { pe } => endpoint.pe_quiet(pe)?,
        Call::FreeSources { pe } => endpoint.free_sources(pe)?,
        Call::IsQuiet => return endpoint.is_quiet().map(u64::from),
        Call::InFlight => {
            let in_flight = endpoint.in_flight()?;
            assert!(in_flight.iter().all(|(_, n)| *n > 0), "{in_flight:?}");

            let bits = in_flight.iter().map(|(pe, _)| 1 << pe.0);
            return Ok(bits.sum());
        }
        Call::Session { is_open } => endpoint.session(is_open)?,
        Call::Invalid { pe, is_amo } => return Err(issue_invalid(endpoint, pe, is_amo)),
    }
    Ok(0)
}

/// Makes a call with an invalid address. Returns its error.
fn issue_invalid(endpoint: &mut WireEndpoint<SimulatedNetwork>, pe: Pe, is_amo: bool) -> Error {
    let done = if is_amo {
        let unaligned = amo(at(Segment::Heap, HEAP as u64 - 12), AmoOp::Add, 1);
        endpoint.amo(pe, unaligned, OldValue::Ignored).map(|_| ())
    } else {
        let mut byte = 0u8;
        let beyond = Bytes {
            remote: at(Segment::Heap, HEAP as u64),
            local: LocalBuf {
                base: &raw mut byte,
                nbytes: 1,
            },
            completion: Completion::Now,
        };
        endpoint.put(pe, promised_put(beyond))
    };

    done.expect_err("the address is invalid")
}

fn promised_put(put: Bytes) -> Put {
    // SAFETY: the source is memory that the actor keeps until the operation is over, or a variable
    // of the call that issues the put.
    let local = unsafe { SourceBuf::new(put.local.base, put.local.nbytes) };
    Put {
        remote: put.remote,
        local,
        completion: put.completion,
    }
}

fn promised_blocks<Way>(blocks: Blocks, local: Buffer<Way>) -> StridedBlocks<Way> {
    let Blocks {
        remote,
        nbytes,
        remote_stride,
        local_stride,
        n,
        ..
    } = blocks;

    StridedBlocks {
        remote,
        local,
        nbytes,
        remote_stride,
        local_stride,
        n,
    }
}

impl World {
    /// Schedules the next call of an actor, if it makes one.
    fn plan_next_call(&mut self, actor: usize) {
        if self.actors[actor].left > 0 {
            let delay = match self.rng.u32(..10) {
                0..6 => self.rng.u64(50..800),
                6..9 => self.rng.u64(800..9_000),
                _ => self.rng.u64(9_000..200_000),
            };
            self.schedule(delay, 0, Event::Act { actor });
        }
    }

    /// Checks what a call that has succeeded shows.
    fn check_result(&mut self, actor: usize, name: &'static str, call: &Call, value: u64) {
        match *call {
            Call::Put { put, .. } | Call::PutSignal { put, .. }
                if put.completion == Completion::Now && put.local.nbytes > 0 =>
            {
                self.release_last_source(actor);
            }
            Call::PutStrided { .. } => self.release_last_source(actor),
            Call::Get { get, .. } if get.completion == Completion::Now => {
                let last = self.actors[actor].dests.len() - 1;
                self.check_dests(actor, last..last + 1);
            }
            Call::Amo {
                pe,
                request,
                old: Old::Returned,
                expected,
            } => {
                let bytes = &value.to_le_bytes()[..request.width.nbytes()];
                assert!(value >> 32 == 0 || request.width == AmoWidth::Eight);
                self.check_value(actor, pe, expected, bytes);
            }
            Call::Fence => self.actors[actor].epoch += 1,
            Call::Quiet => self.check_quiet(actor, name, None),
            Call::QuietOfPe { pe } => self.check_quiet(actor, name, Some(pe)),
            Call::FreeSources { pe } => self.retire_sources(actor, pe),
            Call::IsQuiet if value == 1 => self.check_quiet(actor, name, None),
            Call::InFlight if value == 0 => self.check_quiet(actor, name, None),
            Call::InFlight if !self.kind.proxies => {
                for to in (0..self.pes.len() as u32).map(Pe) {
                    let is_listed = value >> to.0 & 1 != 0;
                    let model = self.model(actor, to);
                    let is_pending = self.models[model].is_pending();
                    assert!(is_listed || !is_pending, "PE {to} is not listed");
                }
            }
            _ => {}
        }
    }

    /// Checks that the call of an actor has sent what it meant to send with its next operation.
    fn check_sent(&self, actor: usize) {
        let wire = &self.wires[self.actors[actor].wire];
        let waits = wire.links.iter().any(|link| link.sends_next);
        assert!(
            !waits || self.dead.is_some(),
            "a call ends before it sends a write"
        );
    }

    fn release_last_source(&mut self, actor: usize) {
        let of = &mut self.actors[actor];
        let (_, memory) = of.sources.pop().expect("the source of the call");
        of.retire([memory]);
    }

    /// Checks that all operations of an actor, or those on one PE, are complete.
    fn check_quiet(&mut self, actor: usize, name: &str, pe: Option<Pe>) {
        for to in (0..self.pes.len()).map(|to| Pe(to as u32)) {
            if pe.is_some_and(|pe| pe != to) {
                continue;
            }

            let model = self.model(actor, to);
            if self.is_alive(to) {
                self.models[model].check_complete(&self.memories[to.index()], name);
            }

            // The results of this PE are sorted to the end, where they are removed.
            let dests = &mut self.actors[actor].dests;
            dests.sort_by_key(|dest| dest.pe == to);
            let first = dests.partition_point(|dest| dest.pe != to);
            let end = dests.len();
            self.check_dests(actor, first..end);

            self.retire_sources(actor, Some(to));
        }

        if pe.is_none() {
            self.actors[actor].epoch += 1;
        }
    }

    /// Overwrites the sources of the puts to one PE or to all, which operations read no more.
    fn retire_sources(&mut self, actor: usize, pe: Option<Pe>) {
        let of = &mut self.actors[actor];
        let sources = std::mem::take(&mut of.sources);
        let is_free = |to: Pe| pe.is_none_or(|pe| pe == to);
        let (free, used): (Vec<_>, Vec<_>) = sources.into_iter().partition(|(to, _)| is_free(*to));
        of.sources = used;
        of.retire(free.into_iter().map(|(_, memory)| memory));
    }

    /// Checks results that have arrived, and retires their memory.
    fn check_dests(&mut self, actor: usize, dests: std::ops::Range<usize>) {
        let dests: Vec<Dest> = self.actors[actor].dests.drain(dests).collect();
        for dest in dests {
            let end = GUARD + dest.nbytes;
            let guards = dest.memory[..GUARD].iter().chain(&dest.memory[end..]);

            assert!(
                guards.into_iter().all(|byte| *byte == UNUSED),
                "bytes beside a result changed: {:x?}",
                dest.memory
            );

            self.check_value(actor, dest.pe, dest.expected, &dest.memory[GUARD..end]);
            self.actors[actor].retire([dest.memory]);
        }
    }

    fn check_value(&mut self, actor: usize, pe: Pe, expected: Expected, bytes: &[u8]) {
        let model = self.model(actor, pe);
        let cells = &self.models[model].cells;

        match expected {
            Expected::Constant {
                offset,
                block,
                stride,
            } => {
                let is_right = bytes.iter().enumerate().all(|(i, byte)| {
                    let distance = i / block * stride + i % block;
                    *byte == constant(pe, offset + distance as u64)
                });
                assert!(is_right, "a get of actor {actor}: {expected:?}, {bytes:x?}");
            }
            Expected::Since { cell, version } => {
                let Versions { oldest, .. } = cells[cell].versions_of(bytes);
                assert!(
                    oldest >= version,
                    "actor {actor} got version {oldest} after version {version}: {:?}",
                    cells[cell]
                );
            }
            Expected::Version { cell, version } => assert_eq!(
                cells[cell].versions_of(bytes),
                Versions {
                    oldest: version,
                    newest: version
                },
                "actor {actor}: the old value of {:?}",
                cells[cell]
            ),
            Expected::Count { counter } => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);

                let old = u64::from_le_bytes(word);
                let of = &mut self.counters[counter];

                assert!(old < of.issued, "the old value of a counter is {old}");
                of.olds.push(old);
            }
        }
    }

    /// Checks the loss that a call returns. No operation of the endpoint uses memory any more.
    fn take_loss(&mut self, actor: usize, error: Error) {
        let of = &mut self.actors[actor];
        assert!(
            matches!(error, Error::Lost(..)) && self.dead.is_some(),
            "{} of actor {actor} on PE {}: {error:?}",
            of.call,
            of.pe
        );

        let first = self.pes[of.pe.index()].network().first_loss();
        assert_eq!(
            Some(&error),
            first.as_ref(),
            "another loss than the first one"
        );

        if of.loss.is_none() {
            of.left = of.left.min(CALLS_AFTER_LOSS);
        }
        of.loss = Some(error);
        of.retire_all();
    }
}
