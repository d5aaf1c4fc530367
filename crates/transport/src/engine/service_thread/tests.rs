//! Unit tests of the service thread, with a network that records what it does.
#![allow(unsafe_code)]

use super::*;
use crate::engine::driver::{MAX_SLEEP, Woken};
use crate::engine::tests::TestWire;
use crate::engine::{Issuers, NetworkPe, Registered, WireLimit, WireNetwork};
use crate::peers::Peers;
use crate::progress::events::AwaitedWord;
use crate::segments::heap_blocks::HeapBlock;
use crate::{EndpointUser, LocalBuf, Open, Pe, Segment};
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

static LIMITS: WaitLimits = WaitLimits::for_tests();
const LIMIT: Duration = Duration::from_secs(30);

/// A network without peers, on which calls leave operations unfinished.
struct Network {
    local: NetworkPe,
    peers: Peers<(), ()>,
    unfinished: AtomicU32,
    served: AtomicU32,
    busy: Option<Busy>,
}

/// The state of a network on which every flush leaves operations unfinished, and every turn has
/// found requests of peers.
struct Busy {
    /// Never ready.
    descriptor: PipeReader,
    /// The sleeps that the service thread would have made next, at the end of each turn.
    next: Mutex<Vec<NextSleep>>,
}

/// How long the service thread would sleep next.
#[derive(Clone, Copy, Debug)]
struct NextSleep {
    brief: Duration,
    /// Beside threads that poll.
    backoff: Duration,
}

impl Network {
    fn state(&self) -> &ProgressState {
        &self.local.state
    }
}

impl WireNetwork for Network {
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
        unreachable!("it has no memory")
    }

    fn peer(&self, _: Pe, _: &[u8]) -> Result<(), Error> {
        unreachable!("it has no peers")
    }

    fn key(&self, _: Pe, _: Segment, _: HeapBlock, _: &[u8]) -> Result<(), Error> {
        unreachable!("it has no peers")
    }

    fn lose(&self, _: Pe, _: &str) -> Error {
        unreachable!("it has no peers")
    }
}

impl Driver for Network {
    type Wire = TestWire<Network>;

    fn open_wire(self: &Arc<Self>, _: EndpointUser) -> Result<TestWire<Network>, Error> {
        unreachable!("it has no endpoints")
    }

    fn poll(&self, _: &Issuers<TestWire<Network>>) -> Result<bool, Error> {
        unreachable!("only the service thread makes progress")
    }

    fn flush(&self, _: &Issuers<TestWire<Network>>) -> bool {
        self.unfinished.store(0, Ordering::Release);
        self.busy.is_some()
    }

    fn serve(&self) -> Served {
        self.served.fetch_add(1, Ordering::Release);
        match self.busy {
            None => Served::Idle,
            Some(_) => Served::Worked,
        }
    }

    fn sleep(&self, _: &Issuers<TestWire<Network>>, _: bool, sleeper: &mut Sleeper<'_>) {
        let Some(Busy { descriptor, next }) = &self.busy else {
            return sleeper.until(&[], Duration::from_secs(60));
        };

        next.lock().unwrap().push(NextSleep {
            brief: sleeper.brief,
            backoff: sleeper.schedule.sleep,
        });
        sleeper.briefly(&[descriptor.as_fd()], WaitLimits::LONGEST);
    }

    fn sleep_in_wait(&self, _: Duration, _: &[AwaitedWord], _: &mut dyn FnMut() -> bool) -> Woken {
        unreachable!("only the service thread sleeps")
    }

    fn longest_backoff(&self, _: &Issuers<TestWire<Network>>) -> Duration {
        MAX_SLEEP
    }

    fn checks(&self) -> impl FnMut() {
        || ()
    }

    fn leave(_: &Arc<Progress<Network>>) {}
}

/// Starts the service thread of a network.
fn started(
    limits: &'static WaitLimits,
    busy: Option<Busy>,
    prepare: impl FnOnce(&ProgressState),
) -> (Arc<Network>, ServiceThread<Network>) {
    let local = NetworkPe::new(&Open::for_tests(), "here".to_owned(), limits);
    let network = Network {
        local: local.expect("a timer"),
        peers: Peers::new(2),
        unfinished: AtomicU32::new(0),
        served: AtomicU32::new(0),
        busy,
    };

    prepare(network.state());
    let wire_limit = WireLimit {
        n_wires: 1,
        set_by: "the test",
    };
    let progress = Arc::new(Progress::new(network, wire_limit));
    let thread = ServiceThread::start("test", &progress).expect("a thread");
    (Arc::clone(progress.network()), thread)
}

fn network() -> (Arc<Network>, ServiceThread<Network>) {
    started(&LIMITS, None, |_| ())
}

fn until(condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < LIMIT, "nothing happened for {LIMIT:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_thread_that_sleeps_flushes_on_request_and_is_joined() {
    let (network, thread) = network();

    until(|| network.served.load(Ordering::Acquire) > 0);
    for _ in 0..100 {
        network.unfinished.store(1, Ordering::Release);
        network.state().request_flush();
        until(|| network.unfinished.load(Ordering::Acquire) == 0);
    }

    drop(thread);
}

#[test]
fn it_serves_nobody_beside_a_thread_that_waits_before_that_stops_polling() {
    let (network, _thread) = network();
    network.state().enter_wait();
    network.state().wake();

    // This flush may be part of a turn that began before the wait. The next turns back off.
    network.unfinished.store(1, Ordering::Release);
    until(|| network.unfinished.load(Ordering::Acquire) == 0);

    let served = network.served.load(Ordering::Acquire);
    network.unfinished.store(1, Ordering::Release);
    until(|| network.unfinished.load(Ordering::Acquire) == 0);

    assert_eq!(
        network.served.load(Ordering::Acquire),
        served,
        "it backs off"
    );

    network.state().leave_wait();
    network.state().stop_polling();
    until(|| network.served.load(Ordering::Acquire) > served);
}

static FEW_UNPOLLED: WaitLimits = WaitLimits {
    max_unpolled: 2,
    ..WaitLimits::for_tests()
};

/// Returns the recorded sleeps, once there are many.
fn next_sleeps(
    limits: &'static WaitLimits,
    prepare: impl FnOnce(&ProgressState),
) -> Vec<NextSleep> {
    let (descriptor, _writer) = std::io::pipe().expect("a pipe");
    let busy = Busy {
        descriptor,
        next: Mutex::default(),
    };

    let (network, thread) = started(limits, Some(busy), prepare);
    let busy = network.busy.as_ref().expect("it was made so");
    until(|| busy.next.lock().unwrap().len() >= 10);
    drop(thread);

    busy.next.lock().unwrap().clone()
}

#[test]
fn messages_of_peers_do_not_make_it_look_at_a_busy_worker_more_often() {
    let next = next_sleeps(&LIMITS, |_| ());
    assert_eq!(next[0].brief, FLUSH_DELAY);
    assert!(next[9].brief > WaitLimits::LONGEST, "{next:?}");
}

#[test]
fn to_serve_beside_a_long_call_does_not_begin_the_backoff_anew() {
    let next = next_sleeps(&FEW_UNPOLLED, ProgressState::enter_wait);
    assert_eq!(next[9].backoff, WaitLimits::LONGEST, "{next:?}");
    assert!(
        next.iter().all(|sleep| sleep.brief == FLUSH_DELAY),
        "{next:?}"
    );
}
