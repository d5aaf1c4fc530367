//! Unit tests of the order in which an origin calls its wire, with a wire that records its calls.
#![allow(unsafe_code)]

mod flags;
mod issuer;
mod tasks;

use super::batching::IDLE_AFTER;
use super::message::{Ack, Reply};
use super::wire::{
    NetworkAmos, NextEvent, Polled, PolledUntil, PostOutcome, Remote, SentMessage, StreamOrder,
    TakeReply, Wire, WireCaps, WireNetwork, WriteEnd,
};
use super::{Issuers, NetworkPe, Origin, WireLimit};
use crate::peers::{PeAddress, Peers, Published};
use crate::progress::backoff::WaitLimits;
use crate::progress::state::count_operations_in_flight;
use crate::segments::heap_blocks::{ENTRY, HeapBlock, Registered, TABLE};
use crate::{
    AmoOp, AmoRequest, Completion, DestBuf, Directory, EndpointUser, Error, Get, LocalBuf, Open,
    Pe, PeRecord, Put, RemoteAddr, Segment, SignalOrder, SourceBuf,
};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

static LIMITS: WaitLimits = WaitLimits::for_tests();

pub(super) const PEER: Pe = Pe(1);
/// Bytes of the first block of the peer's heap.
const BLOCK: u64 = 128;

/// The network of PE 0, whose peer has a heap of any size, and publishes the key of its first
/// block.
pub(super) struct TestNetwork {
    local: NetworkPe,
    peers: Peers<(), ()>,
    /// The keys of further blocks are damaged.
    is_damaged: AtomicBool,
}

impl TestNetwork {
    fn new() -> TestNetwork {
        let published = |nbytes, covered| Published {
            nbytes,
            covered,
            key: Vec::new(),
        };

        let heap = published(u64::MAX, BLOCK).encode();
        let internal = published(TABLE as u64, TABLE as u64).encode();

        let address = PeAddress {
            host: "there".to_owned(),
            of_provider: Vec::new(),
        };
        let address = address.encode();
        let record = PeRecord {
            address: &address,
            keys: [&heap, &internal, &[]],
        };

        let directory = Directory::new(Directory::encode([record; 2].into_iter()));
        let local = NetworkPe::new(&Open::for_tests(), "here".to_owned(), &LIMITS);
        let peers = Peers::new(2);
        peers.connect(Arc::new(directory)).expect("the first time");

        TestNetwork {
            local: local.expect("a timer"),
            peers,
            is_damaged: AtomicBool::new(false),
        }
    }
}

impl WireNetwork for TestNetwork {
    type Extra = ();
    type Peer = ();
    type Key = ();

    fn local(&self) -> &NetworkPe {
        &self.local
    }

    fn peers(&self) -> &Peers<(), ()> {
        &self.peers
    }

    unsafe fn register(&self, _: Segment, _: LocalBuf) -> Result<Registered<()>, Error> {
        unreachable!("no test registers memory")
    }

    fn peer(&self, _: Pe, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn key(&self, pe: Pe, _: Segment, block: HeapBlock, _: &[u8]) -> Result<(), Error> {
        if block.index > 0 && self.is_damaged.load(Ordering::Relaxed) {
            Err(Error::damaged(pe, "key"))
        } else {
            Ok(())
        }
    }

    fn lose(&self, _: Pe, _: &str) -> Error {
        unreachable!("no test loses a PE")
    }
}

/// A call of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    Write,
    Read,
    Send,
    Flush,
    Poll,
}

fn n_writes(calls: &[Called]) -> usize {
    calls.iter().filter(|call| **call == Called::Write).count()
}

/// A wire whose operations are over once it is polled. It transfers no data, but each read of an
/// entry of the table of keys finds a key.
pub(super) struct TestWire<N = TestNetwork> {
    caps: WireCaps,
    calls: Vec<Called>,
    /// The start and the first byte of each write, in order.
    written: Vec<(RemoteAddr, u8)>,
    in_flight: usize,
    /// The number of operations that were started, which is the token of the last one.
    started: u32,
    /// The number of operations that are over.
    over: u32,
    /// The time at which the last operation was started.
    started_at: Option<Instant>,
    /// The number of the write that fails; the first is 1.
    failing_write: usize,
    /// Polls complete nothing.
    pub(super) is_slow: bool,
    /// Polls acknowledge all requests.
    acknowledges: bool,
    /// Called by each poll; returns whether there was work.
    pub(super) polled: Option<Box<dyn FnMut() -> bool + Send>>,
    network: PhantomData<fn(N)>,
}

impl<N> TestWire<N> {
    fn start(&mut self, call: Called) -> PostOutcome<u32> {
        self.calls.push(call);
        self.in_flight += 1;
        self.started += 1;
        self.started_at = Some(Instant::now());
        PostOutcome::Pending(self.started)
    }
}

impl<N: WireNetwork> Wire for TestWire<N> {
    type Network = N;
    type Token = u32;

    fn caps(&self) -> WireCaps {
        self.caps
    }

    fn reach(&mut self, _: &N, _: Pe) -> Result<bool, Error> {
        Ok(true)
    }

    fn write(
        &mut self,
        _: &N,
        to: Remote<'_, N>,
        source: &mut SourceBuf,
        _: WriteEnd,
    ) -> Result<PostOutcome<u32>, Error> {
        // SAFETY: a source is valid for reads of its bytes, of which a write has at least one.
        let first = unsafe { source.range().base.read() };
        self.written.push((to.addr, first));

        let n_before = n_writes(&self.calls);
        if n_before + 1 == self.failing_write {
            Err(Error::Invalid("the write that fails".to_owned()))
        } else {
            Ok(self.start(Called::Write))
        }
    }

    fn read(
        &mut self,
        _: &N,
        from: Remote<'_, N>,
        dest: &mut DestBuf,
        _: bool,
    ) -> Result<PostOutcome<u32>, Error> {
        if from.addr.segment == Segment::Internal && dest.nbytes() == ENTRY {
            // No limit of block sizes, and a key of one byte.
            let start = [63u8, 1, 0, 9];
            // SAFETY: `base` points to the destination of this read, which has `ENTRY` bytes.
            unsafe { dest.range().base.cast::<[u8; 4]>().write(start) };
        }

        Ok(self.start(Called::Read))
    }

    fn amo(
        &mut self,
        _: &N,
        _: Remote<'_, N>,
        _: &AmoRequest,
        _: &mut Option<DestBuf>,
    ) -> Result<PostOutcome<u32>, Error> {
        unreachable!("the target's CPU carries them out")
    }

    fn send(&mut self, _: &N, _: Pe, _: SentMessage<'_>) -> Result<PostOutcome<u32>, Error> {
        Ok(self.start(Called::Send))
    }

    fn is_over(&mut self, _: &N, _: Pe, token: &u32) -> Result<bool, Error> {
        Ok(*token <= self.over)
    }

    fn fence(&mut self, _: &N) -> Result<bool, Error> {
        Ok(true)
    }

    fn begin_flush(&mut self, _: &N, _: Pe) -> Result<(), Error> {
        self.calls.push(Called::Flush);
        Ok(())
    }

    fn is_flushed(&mut self, _: &N, _: Pe) -> Result<bool, Error> {
        Ok(self.in_flight == 0)
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn in_flight_to(&self, _: Pe) -> usize {
        self.in_flight
    }

    fn poll(&mut self, _: &N, take: TakeReply<'_>) -> Result<Polled, Error> {
        self.calls.push(Called::Poll);
        if self.is_slow {
            return Ok(Polled::Idle);
        }
        self.over = self.started;
        self.in_flight = 0;

        if self.acknowledges {
            let sent = self.calls.iter().filter(|call| **call == Called::Send);
            let ack = Ack {
                origin: 0,
                count: sent.count() as u32,
            };
            let reply = Reply {
                pe: PEER,
                ack,
                answer: None,
            };
            take(reply, &[]).expect("of the origin");
        }

        let worked = self.polled.as_mut().is_none_or(|polled| polled());
        Ok(if worked { Polled::Worked } else { Polled::Idle })
    }

    fn serve(&self, network: &N) -> Result<bool, Error> {
        network.local().state.count_poll();
        Ok(false)
    }

    fn confirm(&mut self, _: &N, _: Pe) -> Result<(), Error> {
        Ok(())
    }

    fn sleep(&mut self, _: &N, _: Duration) {}

    fn arm(&self, _: bool) -> NextEvent {
        NextEvent::Unsignaled
    }

    fn abandon(&mut self, _: &N) -> Result<(), String> {
        Ok(())
    }
}

/// Returns an origin of PE 0 whose writes have at most 64 bytes.
pub(super) fn origin() -> Origin<TestWire> {
    let caps = WireCaps {
        batches: false,
        lone_puts_are_requests: false,
        lone_flags_are_writes: false,
        sessions: false,
        order: StreamOrder::Unordered,
        polled: PolledUntil::Over,
        flushes_free: false,
        flushes_in_wait: false,
        amos: NetworkAmos::default(),
        longest_signaled: 8,
        longest_write: 64,
        longest_read: 1 << 20,
        longest_batch: 1024,
        longest_session_batch: 1024,
        window: 64,
        max_unanswered: 64,
        max_in_flight: 1024,
    };

    let wire = TestWire {
        caps,
        calls: Vec::new(),
        written: Vec::new(),
        in_flight: 0,
        started: 0,
        over: 0,
        started_at: None,
        failing_write: 0,
        is_slow: false,
        acknowledges: false,
        polled: None,
        network: PhantomData,
    };

    Origin::new(wire, Arc::new(TestNetwork::new()))
}

static BYTES: [u8; 256] = [0; 256];

fn at(offset: u64) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Heap,
        offset,
    }
}

fn put(nbytes: usize, completion: Completion) -> Put {
    // SAFETY: the slice of a static variable has `nbytes` bytes, which nothing writes.
    let local = unsafe { SourceBuf::new(BYTES[..nbytes].as_ptr(), nbytes) };

    Put {
        remote: at(0),
        local,
        completion,
    }
}

/// Returns a get of as many bytes as these.
fn get(bytes: &mut [u8], completion: Completion) -> Get {
    // SAFETY: the wire writes nothing.
    let local = unsafe { DestBuf::new(bytes.as_mut_ptr(), bytes.len()) };

    Get {
        remote: at(0),
        local,
        completion,
    }
}

#[test]
fn all_parts_of_a_put_start_before_it_waits() {
    let mut origin = origin();
    let done = origin.transfer(PEER, &mut put(100, Completion::Now));

    assert_eq!(done, Ok(()));
    assert_eq!(
        origin.wire.calls,
        [Called::Write, Called::Write, Called::Poll]
    );
}

#[test]
fn all_parts_of_a_get_start_before_it_waits() {
    let mut origin = origin();
    origin.caps.longest_read = 64;
    let mut bytes = [0u8; 128];
    let done = origin.transfer(PEER, &mut get(&mut bytes, Completion::Now));

    assert_eq!(done, Ok(()));

    assert_eq!(
        origin.wire.calls,
        [Called::Read, Called::Read, Called::Poll]
    );
}

/// A key that cannot be used is found before any write of the put has started.
#[test]
fn no_part_starts_before_all_keys_are_known() {
    let mut origin = origin();
    let damage = |origin: &Origin<TestWire>, is_damaged| {
        origin
            .network
            .is_damaged
            .store(is_damaged, Ordering::Relaxed);
    };

    damage(&origin, true);
    let done = origin.transfer(PEER, &mut put(200, Completion::AtQuiet));
    assert_eq!(done, Err(Error::damaged(PEER, "key")));

    assert_eq!(
        origin.wire.calls,
        [Called::Read, Called::Poll],
        "the entry of the key"
    );

    damage(&origin, false);
    let done = origin.transfer(PEER, &mut put(200, Completion::AtQuiet));
    assert_eq!(done, Ok(()));
    assert_eq!(
        n_writes(&origin.wire.calls),
        5,
        "two in the first block, and one in each of 32 bytes"
    );
}

#[test]
fn parts_that_have_started_are_over_when_a_later_one_fails() {
    let mut origin = origin();
    origin.wire.failing_write = 3;

    let done = origin.transfer(PEER, &mut put(200, Completion::AtQuiet));
    assert!(matches!(done, Err(Error::Invalid(_))), "{done:?}");

    assert_eq!(
        origin.wire.started, 5,
        "reads of three keys, and two writes"
    );
    assert_eq!(origin.wire.over, 5);
}

/// The time in which no operation was sent counts from the end of a send. Counted from its start, a
/// slow send would make the next operation lone, too.
#[test]
fn a_lone_operation_has_left_after_the_wire_has_it() {
    let mut bytes = [0u8; 8];
    for is_put in [true, false] {
        let mut origin = origin();
        origin.batches = true;

        let done = if is_put {
            origin.transfer(PEER, &mut put(8, Completion::AtQuiet))
        } else {
            origin.transfer(PEER, &mut get(&mut bytes, Completion::AtQuiet))
        };

        assert_eq!(done, Ok(()));
        assert_eq!(origin.batcher.n_operations(), 0);
        assert!(
            origin.batcher.last_busy() >= origin.wire.started_at,
            "put: {is_put}"
        );
    }
}

/// Issues a put of 8 bytes after a time in which nothing small was sent, and a quiet if it
/// `completes` the put. Returns the calls of the wire.
fn put_alone(origin: &mut Origin<TestWire>, completes: bool) -> Vec<Called> {
    thread::sleep(IDLE_AFTER);
    let n_before = origin.wire.calls.len();
    let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
    assert_eq!(done, Ok(()));

    if completes {
        assert_eq!(origin.quiet(), Ok(()));
    }
    origin.wire.calls[n_before..].to_vec()
}

#[test]
fn a_lone_put_is_a_request_where_the_wire_says_so() {
    for (are_requests, call) in [(false, Called::Write), (true, Called::Send)] {
        let mut origin = origin();
        origin.batches = true;
        origin.caps.lone_puts_are_requests = are_requests;

        assert_eq!(put_alone(&mut origin, false), [call]);
        assert!(!origin.waits_to_send());
    }
}

/// The target answers a put that asks within the poll that has received it. So a put asks only if
/// it is probably completed.
#[test]
fn a_lone_put_asks_for_the_acknowledgment_if_the_one_before_was_completed() {
    let mut origin = origin();
    origin.wire.acknowledges = true;
    origin.batches = true;
    origin.caps.lone_puts_are_requests = true;

    let asked_by_quiet = [Called::Send, Called::Send, Called::Poll];
    let asked_by_put = [Called::Send, Called::Poll];
    assert_eq!(put_alone(&mut origin, true), asked_by_quiet);
    assert_eq!(put_alone(&mut origin, true), asked_by_put);
    assert_eq!(put_alone(&mut origin, true), asked_by_put);

    put_alone(&mut origin, false);
    assert!(!origin.issued.must_ask(PEER), "the put asks");
    put_alone(&mut origin, false);
    assert!(origin.issued.must_ask(PEER), "the one before is incomplete");
}

#[test]
fn a_lone_put_waits_for_room_in_the_window() {
    let mut origin = origin();
    origin.wire.acknowledges = true;
    origin.batches = true;
    origin.caps.lone_puts_are_requests = true;
    while !origin.issued.is_full(PEER) {
        put_alone(&mut origin, false);
    }

    // The next put would ask.
    origin.batcher.mark_asked();
    let after_acknowledgment = [Called::Poll, Called::Send];
    assert_eq!(put_alone(&mut origin, false), after_acknowledgment);
}

/// If the put after such a quiet were lone, a loop of a put and a quiet would send two messages for
/// each put.
#[test]
fn the_time_in_a_quiet_makes_no_operation_lone_if_the_quiet_sent_a_message() {
    for (order, flushes_free, sends) in [
        (StreamOrder::Unordered, false, true),
        (StreamOrder::Unordered, true, false),
        (StreamOrder::Everything, true, true),
    ] {
        let mut origin = origin();
        origin.wire.acknowledges = true;
        origin.batches = true;
        origin.caps.order = order;
        origin.caps.flushes_free = flushes_free;

        let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
        assert_eq!(done, Ok(()));

        let before_quiet = Some(Instant::now());
        assert_eq!(origin.quiet(), Ok(()));

        assert_eq!(
            origin.batcher.last_busy() > before_quiet,
            sends,
            "{order:?}"
        );
    }
}

/// Issues a put with a signal that follows all operations before it.
fn signal_after_all(origin: &mut Origin<TestWire>) {
    let signal = AmoRequest::of_word(at(0), AmoOp::Add, 1);
    let mut put = put(64, Completion::AtQuiet);
    let done = origin.put_signal(PEER, &mut put, &signal, SignalOrder::AfterAll);
    assert_eq!(done, Ok(()));
}

#[test]
fn a_put_that_comes_after_a_signal_does_not_wait_for_the_writes_before_it() {
    let mut origin = origin();
    origin.caps.order = StreamOrder::WritesBeforeMessages;
    for _ in 0..2 {
        signal_after_all(&mut origin);
    }

    let calls = [Called::Write, Called::Send, Called::Write, Called::Send];
    assert_eq!(origin.wire.calls, calls, "nothing is flushed");
    assert!(!origin.routes[PEER].has_writes_before, "there was no fence");
}

#[test]
fn nothing_waits_after_a_fence_where_the_wire_orders_everything() {
    let mut origin = origin();
    origin.caps.order = StreamOrder::Everything;
    for _ in 0..2 {
        signal_after_all(&mut origin);
        assert_eq!(origin.fence(), Ok(()));
    }

    let calls = [Called::Write, Called::Send, Called::Write, Called::Send];
    assert_eq!(
        origin.wire.calls, calls,
        "no request is awaited, and nothing is flushed"
    );
}

/// A request that follows the writes asks for the acknowledgment, which covers them. If there is a
/// batch, it is this request.
#[test]
fn a_quiet_sends_one_request_where_the_wire_orders_everything() {
    for is_batched in [false, true] {
        let mut origin = origin();
        origin.caps.order = StreamOrder::Everything;
        origin.wire.acknowledges = true;

        for nbytes in [64, 32] {
            let done = origin.transfer(PEER, &mut put(nbytes, Completion::AtQuiet));
            assert_eq!(done, Ok(()));
        }
        if is_batched {
            origin.batches = true;
            origin.batcher.session(true);
            let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
            assert_eq!(done, Ok(()));
        }

        let calls = [Called::Write, Called::Write, Called::Send, Called::Poll];
        assert_eq!(origin.quiet(), Ok(()));
        assert_eq!(origin.wire.calls, calls, "batched: {is_batched}");

        assert_eq!(origin.quiet(), Ok(()));
        assert_eq!(origin.wire.calls, calls, "nothing is left to complete");
    }
}

#[test]
fn the_data_of_a_get_cover_the_writes_before_it_where_the_wire_orders_everything() {
    let mut bytes = [0u8; 8];
    for (order, calls) in [
        (StreamOrder::Everything, &[][..]),
        (StreamOrder::WritesBeforeMessages, &[Called::Flush]),
    ] {
        let mut origin = origin();
        origin.caps.order = order;
        origin.batches = true;

        let done = origin.transfer(PEER, &mut put(64, Completion::AtQuiet));
        assert_eq!(done, Ok(()));
        let done = origin.transfer(PEER, &mut get(&mut bytes, Completion::Now));
        assert_eq!(done, Ok(()));

        origin.wire.calls.clear();
        assert_eq!(origin.quiet(), Ok(()));
        assert_eq!(origin.wire.calls, calls, "{order:?}");
    }
}

#[test]
fn no_request_overtakes_one_that_found_no_room_where_the_wire_orders_everything() {
    for (order, calls) in [
        (
            StreamOrder::Everything,
            &[Called::Poll, Called::Send, Called::Send][..],
        ),
        (StreamOrder::Unordered, &[Called::Send]),
    ] {
        let mut origin = origin();
        origin.caps.order = order;
        origin.batches = true;
        origin.batcher.session(true);

        let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
        assert_eq!(done, Ok(()));

        assert_eq!(origin.try_send_batch(PEER), Ok(()));
        assert_eq!(origin.unsent.len(), 1, "it is numbered");
        assert_eq!(origin.wire.calls, [], "it is not sent");

        assert_eq!(origin.send_question(PEER), Ok(()));
        assert_eq!(origin.wire.calls, calls, "{order:?}");
    }
}

#[test]
fn what_is_batched_leaves_before_another_pe_is_reached() {
    let mut origin = origin();
    origin.batches = true;
    origin.batcher.session(true);

    let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
    assert_eq!(done, Ok(()));
    assert_eq!(origin.wire.calls, []);

    let done = origin.transfer(Pe(0), &mut put(8, Completion::AtQuiet));
    assert_eq!(done, Ok(()));
    assert_eq!(origin.wire.calls, [Called::Send]);
}

#[test]
fn a_wire_that_other_threads_move_leaves_nothing_unfinished() {
    let mut origin = origin();

    let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
    assert_eq!(done, Ok(()));
    assert!(origin.must_be_polled());

    origin.caps.polled = PolledUntil::Started;
    assert!(!origin.must_be_polled());
}

#[test]
fn operations_in_flight_are_not_quiet_although_other_threads_move_them() {
    let mut bytes = [0u8; 8];
    for is_put in [true, false] {
        let mut origin = origin();
        origin.caps.polled = PolledUntil::Started;
        origin.wire.is_slow = true;

        let done = if is_put {
            origin.transfer(PEER, &mut put(8, Completion::AtQuiet))
        } else {
            origin.transfer(PEER, &mut get(&mut bytes, Completion::AtQuiet))
        };

        assert_eq!(done, Ok(()));
        assert_eq!(origin.is_quiet(), Ok(false), "put: {is_put}");

        origin.wire.is_slow = false;
        assert_eq!(origin.is_quiet(), Ok(true), "put: {is_put}");
    }
}

#[test]
fn tests_for_quiet_between_batched_operations_stay_within_the_window() {
    let mut origin = origin();
    origin.batches = true;
    origin.batcher.session(true);

    let window = origin.caps.window;
    for _ in 0..window + 20 {
        let done = origin.transfer(PEER, &mut put(1, Completion::AtQuiet));
        assert_eq!(done, Ok(()));
        assert_eq!(origin.is_quiet(), Ok(false), "nothing is acknowledged");
    }
    assert_eq!(origin.issued.unacked(PEER), window);
}

#[test]
fn the_message_of_a_signal_follows_the_writes_before_it() {
    let mut origin = origin();
    signal_after_all(&mut origin);

    let calls = [Called::Write, Called::Flush, Called::Poll, Called::Send];
    assert_eq!(origin.wire.calls, calls, "the wire does not order messages");
}

#[test]
fn peers_are_not_served_once_what_is_awaited_is_over() {
    let mut origin = origin();

    let done = origin.transfer(PEER, &mut put(8, Completion::Now));
    assert_eq!(done, Ok(()));
    assert_eq!(origin.wire.calls, [Called::Write, Called::Poll]);

    assert_eq!(
        origin.network.local.state.polls(),
        0,
        "the wire does not serve"
    );
}

/// The first poll of the wait completes the operations, so they are counted before it.
#[test]
fn operations_are_counted_before_the_wait_for_them_polls() {
    count_operations_in_flight();
    let mut origin = origin();
    let done = origin.transfer(PEER, &mut put(100, Completion::Now));

    assert_eq!(done, Ok(()));
    assert_eq!(origin.network.local.state.activity().most_in_flight, 2);
}

/// Returns an issuer of this origin, whose owner has left a write in flight.
pub(super) fn left_unfinished(
    origin: Origin<TestWire>,
) -> (Arc<Issuers<TestWire>>, Arc<super::Issuer<TestWire>>) {
    let issuers = Arc::new(Issuers::default());
    let limit = WireLimit {
        n_wires: 1,
        set_by: "SHMEM_TEST",
    };
    let issuer = issuers
        .issuer(EndpointUser::Context, limit, || Ok(origin))
        .expect("an issuer");

    let mut origin = issuer.lock();
    let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
    assert_eq!(issuers.release(&issuer, origin, done), Ok(()));
    (issuers, issuer)
}
