//! The PEs: their networks, their hosts, the targets that serve requests, and their deaths.
#![allow(unsafe_code)]

use crate::clock;
use crate::kinds::WireKind;
use crate::memory::{self, Memory, at, local_bytes, set_local};
use crate::operation::{Fetch, Work};
use crate::wire::SimulatedWire;
use crate::world::{self, Event, World};
use rushmem_transport::engine::message::{Reply, Request};
use rushmem_transport::engine::target::{Body, Incoming, IncomingData, Serving};
use rushmem_transport::engine::{
    Issuers, Issuing, NetworkPe, PollingThread, ReplyTable, StreamOrder, WireNetwork,
};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::progress::backoff::WaitLimits;
use rushmem_transport::segments::Segments;
use rushmem_transport::{Error, Host, LocalBuf, Open, Pe, Proxy, Segment};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// No thread spins or backs off: an idle poll changes nothing in the world, so that the real time
/// that a wait takes does not either.
static LIMITS: WaitLimits = WaitLimits {
    sleep: Duration::from_millis(1100),
    often: Duration::ZERO,
    often_oversubscribed: Duration::ZERO,
    min_polls: 1,
    max_unpolled: u32::MAX,
    flushes_beside_sleepers: true,
};

/// The runtime of a PE.
pub struct SimulatedHost {
    pe: Pe,
    /// PEs share a node with one other, and the first one is the proxy of both.
    has_proxies: bool,
    /// The heaps of the PEs of this node, by their numbers.
    heaps: Vec<Segments>,
    pub losses: AtomicU32,
}

impl SimulatedHost {
    fn is_near(&self, pe: Pe) -> bool {
        self.pe.0 / 2 == pe.0 / 2
    }
}

impl Host for SimulatedHost {
    fn arrived_at(&self, place: u8) {
        assert!(self.is_near(Pe(place.into())), "place {place}");
    }

    fn has_proxies(&self) -> bool {
        self.has_proxies
    }

    fn proxy(&self, pe: Pe) -> Proxy {
        let place = pe.0 as u8;
        match self.has_proxies && !self.is_near(pe) && !pe.0.is_multiple_of(2) {
            true => Proxy {
                pe: Pe(pe.0 - 1),
                place,
            },
            false => Proxy::itself(pe),
        }
    }

    fn node_heap(&self, place: u8) -> Option<&Segments> {
        self.heaps.get(usize::from(place))
    }

    fn lost(&self, _: &Error) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    fn cannot_go_on(&self, error: &Error, why: &str) -> ! {
        panic!("{error}; {why}")
    }
}

/// The network of a PE.
pub struct SimulatedNetwork {
    local: NetworkPe,
    pub kind: WireKind,
    pub host: Arc<SimulatedHost>,
    pub replies: ReplyTable,
    n_pes: u32,
}

impl WireNetwork for SimulatedNetwork {
    type Extra = ();

    fn local(&self) -> &NetworkPe {
        &self.local
    }

    fn nbytes(&self, pe: Pe, segment: Segment) -> Result<u64, Error> {
        match pe.0 < self.n_pes {
            true => Ok(memory::nbytes(segment) as u64),
            false => Err(Error::Unreachable(pe)),
        }
    }

    fn host_of(&self, pe: Pe) -> Option<String> {
        Some(format!("host{}", pe.0))
    }
}

impl SimulatedNetwork {
    /// Returns the loss after which a reply was refused. No other reply is refused here.
    pub fn refuse_reply(&self, message: &RefusedMessage) -> Error {
        match self.local.loss.check() {
            Err(lost) => lost,
            Ok(()) => panic!("PE {} refuses a reply: {message:?}", self.local.me),
        }
    }
}

impl SimulatedNetwork {
    /// Returns the first loss, if there was one.
    pub fn first_loss(&self) -> Option<Error> {
        self.local.loss.check().err()
    }
}

/// A PE.
pub struct SimulatedPe {
    pub issuers: Issuers<SimulatedWire>,
    pub network: Arc<SimulatedNetwork>,
}

impl Issuing for SimulatedPe {
    type Wire = SimulatedWire;

    fn issuers(&self) -> &Issuers<SimulatedWire> {
        &self.issuers
    }

    fn poll(&self) -> Result<bool, Error> {
        self.issuers.finish(PollingThread::Waiter);
        let worked = world::serve();
        self.network.local.loss.check().map(|()| worked)
    }
}

impl SimulatedPe {
    /// Returns a PE of `memories.len()` PEs.
    pub fn new(pe: Pe, kind: WireKind, memories: &[Memory]) -> SimulatedPe {
        let n_pes = memories.len() as u32;
        let has_proxies = kind.proxies && n_pes > 2;
        let heaps = memories
            .iter()
            .map(|memory| registered(memory, &[Segment::Heap]));
        let heaps = if has_proxies {
            heaps.collect()
        } else {
            Vec::new()
        };
        let host = Arc::new(SimulatedHost {
            pe,
            has_proxies,
            heaps,
            losses: AtomicU32::new(0),
        });
        let open = Open {
            pe,
            n_pes,
            secret: [0; 32],
            one_machine: true,
            cpus_per_pe: 0,
            amos: kind.amos,
            part: None,
            host: host.clone(),
        };
        let mut local = NetworkPe::new(&open, format!("host{}", pe.0), &LIMITS).expect("a timer");
        local.clock = clock::instant;
        local.segments = registered(&memories[pe.index()], &Segment::ALL);
        SimulatedPe {
            issuers: Issuers::default(),
            network: Arc::new(SimulatedNetwork {
                local,
                kind,
                host,
                replies: ReplyTable::default(),
                n_pes,
            }),
        }
    }

    /// Lets the service thread poll the unfinished issuers. Returns true if it must poll again.
    pub fn serve_unfinished(&self) -> bool {
        self.issuers.finish(PollingThread::Service)
    }
}

/// Returns a table of segments of a PE.
fn registered(memory: &Memory, segments: &[Segment]) -> Segments {
    let table = Segments::default();
    for &segment in segments {
        let whole = memory.range(at(segment, 0), memory::nbytes(segment));
        // SAFETY: the memory of the world outlives its PEs.
        unsafe { table.register(segment, whole, ()) }.expect("it is registered once");
    }
    table
}

/// The service of a PE, which carries out requests.
struct Service(Arc<SimulatedPe>);

impl Serving for Service {
    type ReplyTo = usize;
    type Remote = usize;
    type Extra = ();

    fn local(&self) -> &NetworkPe {
        &self.0.network.local
    }

    fn reply(
        &self,
        Incoming { reply_to, .. }: Incoming<usize>,
        reply: Reply,
        answers: Vec<u8>,
    ) -> Result<(), Violation> {
        let me = self.local().me;
        world::with(|world| {
            world.log(
                "reply",
                [me.0.into(), reply.ack.count.into(), answers.len() as u64],
            );
            world.check_memory(me);
            let event = Event::Reply {
                wire: reply_to,
                bytes: reply.encode().to_vec(),
                answers,
            };
            world.answer(reply_to, me, event);
        });
        Ok(())
    }

    fn fetch(&self, incoming: Incoming<usize>, operation: usize, dest: LocalBuf) {
        world::with(|world| {
            let fetch = world.fetches.len();
            world.fetches.push(Fetch {
                operation,
                incoming,
                dest,
                pieces: 0,
            });
            let offset = incoming.request.dest.offset;
            let (_, pieces) =
                world.send_pieces(offset, dest.nbytes, 0, false, |piece| Event::Fetched {
                    fetch,
                    from: piece.start,
                    to: piece.end,
                });
            world.fetches[fetch].pieces = pieces;
        });
    }
}

/// Passes a request that arrives to the target.
pub fn take_request(operation: usize) {
    let Some((service, target, request, bytes, work)) = world::with(|world| {
        let of = &mut world.operations[operation];
        let Work::Request { ref header, .. } = of.work else {
            unreachable!("a request");
        };
        let request = Request::decode(header).expect("it is encoded");
        let (pe, work, bytes) = (of.pe, of.work, of.bytes.take().unwrap_or_default());
        if !world.is_alive(pe) {
            return None;
        }
        world.log(
            "request",
            [
                operation as u64,
                pe.0.into(),
                request.position.number.into(),
            ],
        );
        if let Some(ack) = request.ack {
            let mut of_target = world.wires.iter_mut().filter(|wire| wire.pe == pe);
            let acked = of_target.nth(ack.origin as usize);
            let link = &mut acked.expect("an origin").links[request.stream.pe.index()];
            link.acked = link.acked.max(ack.count);
        }
        if world.kind.caps.order == StreamOrder::Everything {
            let wire = world.operations[operation].wire;
            let received = &mut world.wires[wire].links[pe.index()].received;
            *received += 1;
            assert_eq!(
                request.position.number, *received,
                "a request overtakes another one"
            );
        }
        let service = Service(Arc::clone(&world.pes[pe.index()]));
        Some((
            service,
            world.targets[pe.index()].clone(),
            request,
            bytes,
            work,
        ))
    }) else {
        return;
    };
    let Work::Request {
        is_batch,
        data,
        is_fetched,
        ..
    } = work
    else {
        return;
    };
    let incoming = Incoming {
        request,
        reply_to: world::with(|world| world.operations[operation].wire),
    };
    let data = match (is_fetched, is_batch) {
        (true, _) => IncomingData::There(operation, data.nbytes),
        (_, true) => IncomingData::Here(Body::Batch(&bytes)),
        (_, false) => IncomingData::Here(Body::Data(&bytes)),
    };
    if let Err(violation) = target.take(&service, incoming, data) {
        panic!("{request:?} is refused: {violation}");
    }
    let me = service.local().me;
    world::with(|world| {
        world.check_memory(me);
        // The request may have brought an acknowledgment.
        world.wake_service(me);
    });
}

/// Stores a part of the data that a target fetches. With the last one, the target carries the
/// request out.
pub fn take_fetched(fetch: usize, piece: Range<usize>) {
    let finished = world::with(|world| {
        let Fetch {
            operation,
            incoming,
            dest,
            ref mut pieces,
        } = world.fetches[fetch];
        *pieces -= 1;
        let is_last = *pieces == 0;
        let of = &world.operations[operation];
        let (pe, state) = (of.pe, &world.wires[of.wire]);
        let Work::Request { data, .. } = of.work else {
            unreachable!("a request");
        };
        if !world.is_alive(pe) || !world.is_alive(state.pe) || state.is_abandoned {
            return None;
        }
        let from = data.skip(piece.start).first(piece.len());
        // SAFETY: valid until the operation is over, by the contract of the wire.
        let bytes = unsafe { local_bytes(from) };
        // SAFETY: a range of the memory of a PE.
        unsafe { set_local(dest.skip(piece.start).base, bytes) };
        world.check_memory(pe);
        if !is_last {
            return None;
        }
        world.end_later(operation);
        let service = Service(Arc::clone(&world.pes[pe.index()]));
        Some((service, world.targets[pe.index()].clone(), incoming))
    });
    let Some((service, target, incoming)) = finished else {
        return;
    };
    if let Err(violation) = target.finish(&service, incoming) {
        panic!("{:?} is refused: {violation}", incoming.request);
    }
    let me = service.local().me;
    world::with(|world| world.check_memory(me));
}

/// Passes a reply that arrives to the wire, or to the origin that it names.
pub fn take_reply(wire: usize, bytes: &[u8], answers: Vec<u8>) {
    let reply = Reply::decode(bytes).expect("it is encoded");
    let passed_to = world::with(|world| {
        let state = &mut world.wires[wire];
        let pe = state.pe;
        if world.dead == Some(pe) {
            return None;
        }
        let (normal, session) = world.kind.caps.longest_batch;
        assert!(
            answers.len() <= normal.max(session),
            "{} bytes of results of a batch",
            answers.len()
        );
        let slot = reply.old.map_or(u64::MAX, |(slot, _)| slot.into());
        let link = &mut state.links[reply.pe.index()];
        link.acked = link.acked.max(reply.ack.count);
        state.unanswered -= usize::from(reply.old.is_some());
        world.log("answer", [wire as u64, slot, reply.ack.count.into()]);
        if world.kind.passes_replies {
            return Some(Arc::clone(&world.pes[pe.index()]));
        }
        world.wires[wire].replies.push((reply, answers.clone()));
        None
    });
    if let Some(pe) = passed_to {
        let network = &pe.network;
        let delivered = network
            .replies
            .deliver(&network.local.acks, reply, &answers);
        if let Err(violation) = delivered {
            panic!("{reply:?} is refused: {violation}");
        }
    }
    world::with(|world| world.wake_service(world.wires[wire].pe));
}

/// Ends a PE. Each other PE notices it, or learns it from the runtime, at some time.
pub fn die(pe: Pe) {
    let dead = world::with(|world| {
        world.log("die", [pe.0.into(), 0, 0]);
        world.dead = Some(pe);
        for other in (0..world.pes.len() as u32)
            .map(Pe)
            .filter(|other| *other != pe)
        {
            let delay = world.delay();
            world.schedule(delay, 0, Event::Notice { pe: other });
            world.schedule(4_000_000_000 + delay, 0, Event::Learn { pe: other });
        }
        Arc::clone(&world.pes[pe.index()])
    });
    // Ends the calls that the dead PE was in.
    dead.network.local.loss.of_self("it died");
}

/// Lets the runtime of a PE learn that another one died.
pub fn learn_of_death(pe: Pe) {
    let (learning, dead) = world::with(|world| {
        world.log("learn", [pe.0.into(), 0, 0]);
        (Arc::clone(&world.pes[pe.index()]), world.dead)
    });
    if let Some(dead) = dead {
        learning.network.lose(dead, "the launcher says so");
    }
}

impl World {
    /// Checks what each actor has issued to a PE whose memory has changed, or to another one of its
    /// node.
    pub fn check_memory(&mut self, pe: Pe) {
        let n_pes = self.pes.len();
        let node = match self.kind.proxies {
            true => pe.0 / 2 * 2..pe.0 / 2 * 2 + 2,
            false => pe.0..pe.0 + 1,
        };
        for target in node.map(|pe| pe as usize).filter(|target| *target < n_pes) {
            if self.dead == Some(Pe(target as u32)) {
                continue;
            }
            for actor in 0..self.actors.len() {
                let model = &mut self.models[actor * n_pes + target];
                model.check(&self.memories[target]);
            }
        }
    }
}
