//! The PEs: their networks, their hosts, the targets that serve requests, and their deaths.
#![allow(unsafe_code)]

use crate::clock;
use crate::kinds::WireKind;
use crate::memory::{self, FIRST_BLOCK, Memory, at, local_bytes, set_local};
use crate::operation::{Fetch, Operation, Work};
use crate::queue::WireState;
use crate::wire::SimulatedWire;
use crate::world::{self, Event, World};
use rushmem_transport::engine::Remote;
use rushmem_transport::engine::driver::{Driver, Progress, Served, Sleeper, Woken};
use rushmem_transport::engine::message::{Reply, Request};
use rushmem_transport::engine::target::{Attached, Contents, Incoming, RequestTarget, Serving};
use rushmem_transport::engine::{
    Issuers, NetworkPe, Registered, ReplyTable, StreamOrder, WireLimit, WireNetwork,
};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::peers::{PeAddress, Peers, Published};
use rushmem_transport::progress::backoff::WaitLimits;
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::segments::Segments;
use rushmem_transport::segments::heap_blocks::HeapBlock;
use rushmem_transport::{
    Directory, EndpointUser, Error, Host, LocalBuf, Open, Pe, PeRecord, Proxy, Segment,
};
use std::ops::Range;
use std::rc::Rc;
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
    wakes_service: false,
};

/// The runtime of a PE.
pub struct SimulatedHost {
    pe: Pe,
    /// The proxies of all PEs; empty without proxies.
    proxies: Vec<Proxy>,
    /// The heaps of the PEs of this node, by their numbers.
    heaps: Vec<Segments>,
    pub losses: AtomicU32,
}

impl SimulatedHost {
    fn is_near(&self, pe: Pe) -> bool {
        self.pe.0 / 2 == pe.0 / 2
    }

    /// Returns the proxy of a PE: PEs share a node with one other, and the first one is the proxy
    /// of both.
    fn proxy(&self, pe: Pe) -> Proxy {
        if self.is_near(pe) || pe.0.is_multiple_of(2) {
            return Proxy::itself(pe);
        }

        Proxy {
            pe: Pe(pe.0 - 1),
            place: pe.0 as u8,
        }
    }
}

impl Host for SimulatedHost {
    fn arrived(&self, place: u8) {
        assert!(self.is_near(Pe(place.into())), "place {place}");
    }

    fn proxies(&self) -> &[Proxy] {
        &self.proxies
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
    peers: Peers<(), SimulatedKey>,
    kind: WireKind,
    pub host: Arc<SimulatedHost>,
    pub replies: ReplyTable,
}

/// A key of the memory of a PE: the range that it covers.
pub struct SimulatedKey {
    pe: Pe,
    segment: Segment,
    offsets: Range<u64>,
}

impl SimulatedKey {
    /// Checks that the key covers a range.
    pub fn check(&self, range: &Remote<'_, SimulatedNetwork>, nbytes: usize) {
        let start = range.addr.offset;
        let end = range.addr.offset + nbytes as u64;
        assert_eq!((self.pe, self.segment), (range.pe, range.addr.segment));
        assert!(
            self.offsets.start <= start && end <= self.offsets.end,
            "the key of {:?} for {start}..{end}",
            self.offsets
        );
    }
}

impl WireNetwork for SimulatedNetwork {
    type Extra = ();
    type Peer = ();
    type Key = SimulatedKey;

    fn local(&self) -> &NetworkPe {
        &self.local
    }

    fn peers(&self) -> &Peers<(), SimulatedKey> {
        &self.peers
    }

    unsafe fn register(&self, _: Segment, _: LocalBuf) -> Result<Registered<()>, Error> {
        unreachable!("the memory is registered at the start")
    }

    fn peer(&self, pe: Pe, address: &[u8]) -> Result<(), Error> {
        assert_eq!(address, pe.0.to_le_bytes());
        Ok(())
    }

    fn key(
        &self,
        pe: Pe,
        segment: Segment,
        block: HeapBlock,
        bytes: &[u8],
    ) -> Result<SimulatedKey, Error> {
        assert_eq!(bytes, memory::key(pe, segment, block.index), "{block:?}");
        Ok(SimulatedKey {
            pe,
            segment,
            offsets: block.start..block.end,
        })
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        let host = self.peers.host_of(pe);
        self.local.loss.of_peer(pe, host.as_deref(), why)
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

    /// Returns the first loss, if there was one.
    pub fn first_loss(&self) -> Option<Error> {
        self.local.loss.check().err()
    }
}

/// A PE.
pub type SimulatedPe = Progress<SimulatedNetwork>;

/// The service thread is that of the world, which calls [`flush`](Driver::flush).
impl Driver for SimulatedNetwork {
    type Wire = SimulatedWire;

    fn open_wire(self: &Arc<Self>, _: EndpointUser) -> Result<SimulatedWire, Error> {
        let pe = self.local.me;
        let number = world::with(|world| {
            let n_pes = world.pes.len();
            world.wires.push(WireState::new(pe, n_pes));
            world.wires.len() - 1
        });

        Ok(SimulatedWire {
            number,
            kind: self.kind,
            replies: self.replies.add(),
        })
    }

    fn poll(&self, issuers: &Issuers<SimulatedWire>) -> Result<bool, Error> {
        issuers.finish_in_wait();
        let worked = world::serve();
        self.local.loss.check().map(|()| worked)
    }

    fn flush(&self, issuers: &Issuers<SimulatedWire>) -> bool {
        issuers.finish_in_service()
    }

    fn serve(&self) -> Served {
        unreachable!("events of the world serve peers")
    }

    fn sleep(&self, _: &Issuers<SimulatedWire>, _: bool, _: &mut Sleeper<'_>) {
        unreachable!("no service thread runs")
    }

    fn sleep_in_wait(&self, _: Duration, _: &[AwaitedWord], _: &mut dyn FnMut() -> bool) -> Woken {
        unreachable!("only calls wait")
    }

    fn longest_backoff(&self, _: &Issuers<SimulatedWire>) -> Duration {
        unreachable!("no service thread runs")
    }

    fn checks(&self) -> impl FnMut() {
        || ()
    }

    fn leave(_: &Arc<Progress<SimulatedNetwork>>) {}
}

/// Returns a PE of `memories.len()` PEs, whose contexts share at most `n_wires` wires.
pub fn pe(pe: Pe, kind: WireKind, n_wires: usize, memories: &[Memory]) -> SimulatedPe {
    let n_pes = memories.len() as u32;
    let mut host = SimulatedHost {
        pe,
        proxies: Vec::new(),
        heaps: Vec::new(),
        losses: AtomicU32::new(0),
    };

    if kind.proxies && n_pes > 2 {
        host.proxies = (0..n_pes).map(|pe| host.proxy(Pe(pe))).collect();
        host.heaps = memories
            .iter()
            .map(|memory| registered(memory, &[Segment::Heap]))
            .collect();
    }

    let host = Arc::new(host);
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

    let mut local = NetworkPe::new(&open, host_name(pe), &LIMITS).expect("a timer");
    local.clock = clock::instant;
    local.segments = registered(&memories[pe.index()], &Segment::ALL);

    let peers = Peers::new(n_pes);
    peers
        .connect(directory(kind, n_pes))
        .expect("the first time");

    let network = SimulatedNetwork {
        local,
        peers,
        kind,
        host,
        replies: ReplyTable::default(),
    };
    let wire_limit = WireLimit {
        n_wires,
        set_by: "the seed",
    };
    Progress::new(network, wire_limit)
}

fn host_name(pe: Pe) -> String {
    format!("host{}", pe.0)
}

/// Returns what all PEs publish.
fn directory(kind: WireKind, n_pes: u32) -> Arc<Directory> {
    let mut addresses = Vec::new();
    let mut keys = Vec::new();
    for pe in (0..n_pes).map(Pe) {
        let address = PeAddress {
            host: host_name(pe),
            of_provider: pe.0.to_le_bytes().to_vec(),
        };
        addresses.push(address.encode());
        keys.push(Segment::ALL.map(|segment| published(kind, pe, segment).encode()));
    }

    let records = addresses.iter().zip(&keys).map(|(address, keys)| PeRecord {
        address,
        keys: keys.each_ref().map(Vec::as_slice),
    });
    Arc::new(Directory::new(Directory::encode(records)))
}

/// Returns what a PE publishes of a segment.
fn published(kind: WireKind, pe: Pe, segment: Segment) -> Published {
    let nbytes = memory::nbytes(segment);
    let covered = if kind.has_keys && segment == Segment::Heap {
        FIRST_BLOCK
    } else {
        nbytes
    };

    Published {
        nbytes: nbytes as u64,
        covered: covered as u64,
        key: memory::key(pe, segment, 0).to_vec(),
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
        self.0.network().local()
    }

    fn reply(
        &self,
        incoming: Incoming<usize>,
        reply: Reply,
        results: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let Incoming { request, reply_to } = incoming;
        let me = self.local().me;

        let expects_long = request.slot.is_some_and(|slot| slot.is_long);
        assert_eq!(!results.is_empty(), expects_long, "long results");

        world::with(|world| {
            let count = reply.ack.count.into();
            world.log("reply", [me.0.into(), count, results.len() as u64]);
            world.check_memory(me);

            let event = Event::Reply {
                wire: reply_to,
                bytes: reply.encode().to_vec(),
                follow: results.clone(),
            };
            world.answer(reply_to, me, event);
        });
        Ok(())
    }

    fn fetch(&self, incoming: Incoming<usize>, rest: Vec<u8>, operation: usize, dest: LocalBuf) {
        world::with(|world| {
            let fetch = world.fetches.len();
            world.fetches.push(Fetch {
                operation,
                incoming,
                rest,
                dest,
                pieces: 0,
            });

            // Segments begin with a word, so the address is as far aligned as the offset.
            let offset = dest.base.addr() as u64;
            let sent = world.send_pieces(offset, dest.nbytes, 0, false, |piece| Event::Fetched {
                fetch,
                from: piece.start,
                to: piece.end,
            });
            world.fetches[fetch].pieces = sent.n_pieces;
        });
    }
}

/// Passes a request that arrives to the target, unless that is dead.
pub fn take_request(operation: usize) {
    // The entries and the data are moved out: nothing else reads them after the arrival.
    let (pe, wire, work, entries, bytes) = world::with(|world| {
        let of = &mut world.operations[operation];
        let entries = std::mem::take(&mut of.entries);
        let bytes = of.bytes.take().unwrap_or_default();
        (of.pe, of.wire, of.work, entries, bytes)
    });
    if world::with(|world| !world.is_alive(pe)) {
        return;
    }

    let Work::Request {
        header,
        attached,
        is_fetched,
    } = work
    else {
        unreachable!("a request");
    };
    let request = Request::decode(&header).expect("it is encoded");
    world::with(|world| {
        let number = request.position.number.into();
        world.log("request", [operation as u64, pe.0.into(), number]);
        world.record_arrival(wire, pe, &request);
    });

    let incoming = Incoming {
        request,
        reply_to: wire,
    };
    let attached = if is_fetched {
        Attached::There {
            data: operation,
            nbytes: attached.nbytes,
        }
    } else {
        Attached::Here(&bytes)
    };
    let contents = Contents {
        entries: &entries,
        attached,
    };

    let target = target_of(pe);
    let service = service_of(pe);
    if let Err(violation) = target.take(&service, incoming, contents) {
        panic!("{request:?} is refused: {violation}");
    }

    world::with(|world| {
        world.check_memory(pe);
        // The request may have brought an acknowledgment.
        world.wake_service(pe);
    });
}

fn target_of(pe: Pe) -> Rc<RequestTarget<usize, usize>> {
    world::with(|world| Rc::clone(&world.targets[pe.index()]))
}

fn service_of(pe: Pe) -> Service {
    world::with(|world| Service(Arc::clone(&world.pes[pe.index()])))
}

/// Stores a part of the data that a target fetches. With the last one, the target carries the
/// request out.
pub fn take_fetched(fetch: usize, piece: Range<usize>) {
    let fetched_by = world::with(|world| world.store_fetched(fetch, piece));
    let Some(pe) = fetched_by else {
        return;
    };

    let (incoming, rest) = world::with(|world| {
        let fetch = &mut world.fetches[fetch];
        (fetch.incoming, std::mem::take(&mut fetch.rest))
    });

    let target = target_of(pe);
    let service = service_of(pe);
    if let Err(violation) = target.finish(&service, incoming, &rest) {
        panic!("{:?} is refused: {violation}", incoming.request);
    }

    world::with(|world| world.check_memory(pe));
}

/// Passes a reply that arrives to the wire, or to the origin that it names.
pub fn take_reply(wire: usize, bytes: &[u8], follow: Vec<u8>) {
    let reply = Reply::decode(bytes).expect("it is encoded");
    let delivered_to = world::with(|world| {
        let state = &mut world.wires[wire];
        let pe = state.pe;
        if world.dead == Some(pe) {
            return None;
        }

        assert!(
            follow.len() <= world.kind.longest_batch(),
            "{} bytes of results",
            follow.len()
        );

        let slot = reply.answer.map_or(u64::MAX, |answer| answer.slot.into());
        let link = &mut state.links[reply.pe.index()];
        link.acked = link.acked.max(reply.ack.count);
        state.unanswered -= usize::from(reply.answer.is_some());

        world.log("answer", [wire as u64, slot, reply.ack.count.into()]);
        if world.kind.passes_replies {
            return Some(Arc::clone(&world.pes[pe.index()]));
        }

        world.wires[wire].replies.push((reply, follow.clone()));
        None
    });

    if let Some(pe) = delivered_to {
        let network = pe.network();
        let delivered = network.replies.deliver(&network.local.acks, reply, &follow);
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
        for other in (0..world.pes.len() as u32).map(Pe) {
            if other == pe {
                continue;
            }
            let delay = world.delay();
            world.schedule(delay, 0, Event::Notice { pe: other });
            world.schedule(4_000_000_000 + delay, 0, Event::Learn { pe: other });
        }

        Arc::clone(&world.pes[pe.index()])
    });

    // Ends the calls that the dead PE was in.
    dead.network().local.loss.of_self("it died");
}

/// Lets the runtime of a PE learn that another one died.
pub fn learn_of_death(pe: Pe) {
    let (learning, dead) = world::with(|world| {
        world.log("learn", [pe.0.into(), 0, 0]);
        (Arc::clone(&world.pes[pe.index()]), world.dead)
    });

    if let Some(dead) = dead {
        learning.network().lose(dead, "the launcher says so");
    }
}

impl World {
    /// Records a request of a wire that has arrived at a PE, and the acknowledgment that it
    /// includes. Checks that it does not overtake another one if the wire orders everything.
    fn record_arrival(&mut self, wire: usize, pe: Pe, request: &Request) {
        if let Some(ack) = request.ack {
            let mut of_target = self.wires.iter_mut().filter(|wire| wire.pe == pe);
            let acked = of_target.nth(ack.origin as usize).expect("an origin");
            let link = &mut acked.links[request.stream.pe.index()];
            link.acked = link.acked.max(ack.count);
        }

        if self.kind.caps.order == StreamOrder::Everything {
            let link = &mut self.wires[wire].links[pe.index()];
            link.received += 1;
            assert_eq!(
                request.position.number, link.received,
                "a request overtakes another one"
            );
        }
    }

    /// Stores a part of the data that a target fetches, unless one of the PEs is dead or the wire
    /// was abandoned. Returns the target once it has all data.
    fn store_fetched(&mut self, fetch: usize, piece: Range<usize>) -> Option<Pe> {
        let fetch = &mut self.fetches[fetch];
        let operation = fetch.operation;
        let dest = fetch.dest;
        fetch.pieces -= 1;
        let is_last = fetch.pieces == 0;

        let Operation { pe, wire, work, .. } = self.operations[operation];
        let Work::Request { attached, .. } = work else {
            unreachable!("a request");
        };
        let state = &self.wires[wire];
        if !self.is_alive(pe) || !self.is_alive(state.pe) || state.is_abandoned {
            return None;
        }

        let from = attached.skip(piece.start).first(piece.len());
        // SAFETY: the attached data are valid for reads until the operation is over, by the
        // contract of the wire.
        let bytes = unsafe { local_bytes(from) };
        // SAFETY: `dest` is a range of the memory of a PE, which has room for all pieces.
        unsafe { set_local(dest.skip(piece.start).base, bytes) };
        self.check_memory(pe);

        if !is_last {
            return None;
        }
        self.end_later(operation);
        Some(pe)
    }

    /// Checks what each actor has issued to a PE whose memory has changed, or to another one of its
    /// node.
    pub fn check_memory(&mut self, pe: Pe) {
        let n_pes = self.pes.len() as u32;
        let node = if self.kind.proxies {
            let first = pe.0 / 2 * 2;
            first..n_pes.min(first + 2)
        } else {
            pe.0..pe.0 + 1
        };

        for target in node.map(Pe) {
            if !self.is_alive(target) {
                continue;
            }
            for actor in 0..self.actors.len() {
                let model = self.model(actor, target);
                self.models[model].check(&self.memories[target.index()]);
            }
        }
    }
}
