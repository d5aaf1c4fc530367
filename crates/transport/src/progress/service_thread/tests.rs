//! Unit tests of the service thread, with drivers that record what it does.

use super::*;
use crate::progress::backoff::WaitLimits;
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

static LIMITS: WaitLimits = WaitLimits::for_tests();
const LIMIT: Duration = Duration::from_secs(30);

/// A network without peers, on which calls leave operations unfinished.
struct Network {
    state: ProgressState,
    unfinished: AtomicU32,
    served: AtomicU32,
}

impl Driver for Network {
    fn state(&self) -> &ProgressState {
        &self.state
    }

    fn flush(&self) -> bool {
        self.unfinished.store(0, Ordering::Release);
        false
    }

    fn serve(&self) -> Served {
        self.served.fetch_add(1, Ordering::Release);
        Served::Idle
    }

    fn sleep(&self, _: bool, sleeper: &mut Sleeper<'_>) {
        sleeper.until(&[], Duration::from_secs(60));
    }
}

fn network() -> (Arc<Network>, ServiceThread<Network>) {
    let state = ProgressState::new(&LIMITS, 1).expect("a timer");
    let (unfinished, served) = (AtomicU32::new(0), AtomicU32::new(0));
    let network = Arc::new(Network {
        state,
        unfinished,
        served,
    });
    let thread = ServiceThread::start("test", &network).expect("a thread");
    (network, thread)
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
        network.state.request_flush();
        until(|| network.unfinished.load(Ordering::Acquire) == 0);
    }
    drop(thread);
}

#[test]
fn it_serves_nobody_beside_a_thread_that_waits_before_that_stops_polling() {
    let (network, _thread) = network();
    network.state.enter_wait();
    network.state.wake();
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
    network.state.leave_wait();
    network.state.stop_polling();
    until(|| network.served.load(Ordering::Acquire) > served);
}

static FEW_UNPOLLED: WaitLimits = WaitLimits {
    max_unpolled: 2,
    ..WaitLimits::for_tests()
};

/// A network on which every flush leaves operations unfinished, and every turn has found requests
/// of peers. It records how long the service thread would sleep next: briefly, and while other
/// threads poll.
struct Busy {
    state: ProgressState,
    /// Never ready.
    descriptor: PipeReader,
    next: Mutex<Vec<(Duration, Duration)>>,
}

impl Driver for Busy {
    fn state(&self) -> &ProgressState {
        &self.state
    }

    fn flush(&self) -> bool {
        true
    }

    fn serve(&self) -> Served {
        Served::Worked
    }

    fn sleep(&self, _: bool, sleeper: &mut Sleeper<'_>) {
        let next = (sleeper.brief, sleeper.schedule.time);
        self.next.lock().unwrap().push(next);
        sleeper.briefly(&[self.descriptor.as_fd()], WaitLimits::LONGEST);
    }
}

/// Returns the recorded times, once there are many.
fn next_sleeps(
    limits: &'static WaitLimits,
    prepare: impl FnOnce(&ProgressState),
) -> Vec<(Duration, Duration)> {
    let state = ProgressState::new(limits, 1).expect("a timer");
    let (descriptor, _writer) = std::io::pipe().expect("a pipe");
    let busy = Arc::new(Busy {
        state,
        descriptor,
        next: Mutex::default(),
    });
    prepare(&busy.state);
    let thread = ServiceThread::start("test", &busy).expect("a thread");
    until(|| busy.next.lock().unwrap().len() >= 10);
    drop(thread);
    let next = busy.next.lock().unwrap();
    next.clone()
}

#[test]
fn messages_of_peers_do_not_make_it_look_at_a_busy_worker_more_often() {
    let next = next_sleeps(&LIMITS, |_| ());
    assert_eq!(next[0].0, FLUSH_DELAY);
    assert!(next[9].0 > WaitLimits::LONGEST, "{next:?}");
}

#[test]
fn to_serve_beside_a_long_call_does_not_begin_the_backoff_anew() {
    let next = next_sleeps(&FEW_UNPOLLED, ProgressState::enter_wait);
    assert_eq!(next[9].1, WaitLimits::LONGEST, "{next:?}");
    assert!(
        next.iter().all(|(brief, _)| *brief == FLUSH_DELAY),
        "{next:?}"
    );
}
