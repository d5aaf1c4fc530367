//! The waits of the runtime: for words of the program, for the library's own words, and for other
//! threads of this PE.
//!
//! A thread that waits polls, yields and sleeps as
//! [`backoff`](rushmem_transport::progress::backoff) says. How it sleeps depends on what it waits
//! for. The library rings a doorbell after it has written its own words, and the ring ends the
//! sleep. A peer on the node may write a word of the program by a plain store, which ends no sleep,
//! so the waiter polls the word after each nap. If only the network can write the word, an event of
//! the network ends the sleep.

use crate::links::Links;
use crate::net::flags::FlagArea;
use crate::net::network::{self, Network};
use crate::net::polls;
use crate::status::WaitDescription;
use crate::sync::long_wait::LongWait;
use rushmem_pe::call::thread;
use rushmem_pe::constants::SHMEM_THREAD_SINGLE;
use rushmem_pe::job::{self, Job};
use rushmem_transport::progress::backoff::{
    Backoff, LOADS_BEFORE_WAKING, NAP, Pause, Polled, SIGNALED_SLEEP, SLEEP_AMONG_THREADS,
    UNSIGNALED_SLEEP,
};
use rushmem_transport::progress::cpu_sharing::WaitingThread;
use rushmem_transport::progress::events::AwaitedWord;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Waits until `ready` returns true. `ready` reads words for which the library rings the doorbell
/// after each change. If it depends only on the flags of this PE at the offsets `flags`, which
/// other PEs alone raise, the caller names these, otherwise none. `describe` says what the thread
/// waits for; it is called if the wait is long.
#[inline]
pub fn until_rung(
    links: &'static Links,
    flags: &[usize],
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if !ready() {
        wait(links, rung_sleep(links, flags), describe, ready);
    }
}

/// Waits until `ready` returns true. `ready` reads words that any store may change. `describe` says
/// what the thread waits for; it is called if the wait is long.
#[inline]
pub fn until_seen(
    links: &'static Links,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) {
    if !ready() {
        wait(links, seen_sleep(links), describe, ready);
    }
}

/// Waits as [`until_seen`] does, but for `limit` at the longest, if there is one. Returns false if
/// `ready` was still false then. Makes progress on the network also with a limit of 0.
pub fn until_seen_within(
    links: &'static Links,
    limit: Option<Duration>,
    describe: &dyn Fn() -> WaitDescription,
    ready: &mut dyn FnMut() -> bool,
) -> bool {
    until_within(links, limit, seen_sleep(links), describe, ready)
}

/// Waits as [`until_seen_within`] does. `ready` may use the network, so it is called at short
/// intervals and never in the middle of a sleep.
pub fn until_asked_within(
    links: &'static Links,
    limit: Option<Duration>,
    describe: &dyn Fn() -> WaitDescription,
    ready: &mut dyn FnMut() -> bool,
) -> bool {
    until_within(links, limit, Sleep::Nap, describe, ready)
}

/// Waits until another thread of this PE, which may need the CPU meanwhile, has set `word` to
/// another value than 0, for `limit` at the longest, if there is one. Returns false if the word was
/// still 0 then. `describe` says what the thread waits for; it is called if the wait is long.
pub fn until_set(
    links: &'static Links,
    limit: Option<Duration>,
    word: &AtomicU32,
    describe: impl Fn() -> WaitDescription,
) -> bool {
    until_within(links, limit, Sleep::OnWord(word), &describe, &mut || {
        // Acquire: the other thread has set the word, with release order, after all else that this
        // one waits for.
        word.load(Ordering::Acquire) != 0
    })
}

/// Waits with a limit, if there is one. Not generic: such waits are rare, and of many types.
#[inline(never)]
fn until_within(
    links: &'static Links,
    limit: Option<Duration>,
    sleep: Sleep<'_>,
    describe: &dyn Fn() -> WaitDescription,
    ready: &mut dyn FnMut() -> bool,
) -> bool {
    if limit == Some(Duration::ZERO) {
        return test(links, ready);
    }
    ready() || wait_within(links, limit, sleep, describe, ready)
}

/// Calls `ready` again and again for some microseconds, and returns true as soon as it does. If PEs
/// outnumber the CPUs, returns false at once: another PE could use the time.
#[inline]
pub(crate) fn is_soon(job: &Job, mut ready: impl FnMut() -> bool) -> bool {
    let loads = if job.is_oversubscribed {
        0
    } else {
        LOADS_BEFORE_WAKING
    };
    for _ in 0..loads {
        if ready() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// Performs a test of the program (§9.11.8): returns the result of `ready`, which reads words that
/// any store may change. If that is false and a network is open, makes progress on the network and
/// calls `ready` once more. A program repeats a test in a loop, so the loop serves peers as a wait
/// does.
#[inline]
pub fn test(links: &Links, mut ready: impl FnMut() -> bool) -> bool {
    let is_seen =
        ready() || links.network.is_open() && test_after_progress(links.network, &mut ready);
    polls::count_test(is_seen);
    is_seen
}

#[cold]
fn test_after_progress(network: &Network, ready: &mut impl FnMut() -> bool) -> bool {
    network.progress();
    ready()
}

/// How a thread sleeps while it waits.
enum Sleep<'a> {
    /// On the doorbell in the area of this PE, which the library rings after each change.
    OnDoorbell(&'a FlagArea),
    /// In the network, for `at_most` at the longest, and on while other words than those of `flags`
    /// change, if there are any.
    InNetwork {
        at_most: Duration,
        flags: &'a [usize],
    },
    /// For a moment, since nothing ends the sleep.
    Nap,
    /// On the word that another thread of this PE sets.
    OnWord(&'a AtomicU32),
}

/// Returns how a thread sleeps that waits for words of the library.
fn rung_sleep<'a>(links: &'static Links, flags: &'a [usize]) -> Sleep<'a> {
    let job = &links.job;
    // Otherwise a peer of the node may change the awaited words, too, which ends no sleep in the
    // network.
    if !links.network.is_open() || !job.is_alone_on_node {
        return Sleep::OnDoorbell(&links.area);
    }

    let at_most = if !flags.is_empty() && links.network.wakes_waits() {
        SIGNALED_SLEEP
    } else {
        sleep_limit(links)
    };
    Sleep::InNetwork { at_most, flags }
}

/// Returns how a thread sleeps that waits for words of the program.
fn seen_sleep(links: &Links) -> Sleep<'static> {
    if !links.network.is_open() {
        return Sleep::Nap;
    }
    Sleep::InNetwork {
        at_most: sleep_limit(links),
        flags: &[],
    }
}

/// The pauses between the tests of a thread that waits by testing again and again.
pub struct Pauses(Backoff);

impl Pauses {
    /// Returns the pauses of a wait that begins.
    pub fn begin() -> Pauses {
        let is_oversubscribed = job::known().is_some_and(|job| job.is_oversubscribed);
        Pauses(Backoff::new(
            polled(network::of_process()),
            is_oversubscribed,
        ))
    }

    /// Pauses after a test that was not successful: at first for a moment, later for a nap, since
    /// no event ends the wait.
    pub fn pause(&mut self) {
        if self.0.pause(false) == Pause::Sleep {
            std::thread::sleep(NAP);
        }
    }
}

/// Returns the longest single sleep in the network, in a wait for arbitrary words.
fn sleep_limit(links: &Links) -> Duration {
    let job = &links.job;
    let has_one_thread = job.thread_level == SHMEM_THREAD_SINGLE && !thread::has_requests();
    if !job.is_alone_on_node {
        // A peer on the node may change the word, which ends no sleep.
        NAP
    } else if !has_one_thread {
        // Another thread of this PE may change the word, which ends no sleep either.
        SLEEP_AMONG_THREADS
    } else if links.network.wakes_waits() {
        SIGNALED_SLEEP
    } else {
        UNSIGNALED_SLEEP
    }
}

/// Returns true if the calling thread belongs to the library and carries out a non-blocking
/// collective. It should not take the CPU from the program, which may compute meanwhile.
fn is_in_background() -> bool {
    thread::has_requests() && thread::request_call().is_some()
}

/// Returns what a waiting thread polls.
pub(super) fn polled(network: &Network) -> Polled {
    if network.is_open() {
        Polled::Network
    } else {
        Polled::Words
    }
}

/// Repeats `ready` until it returns true. If a network is open, also makes progress on it while the
/// thread polls, and sleeps in it.
#[inline(never)]
fn wait(
    links: &'static Links,
    sleep: Sleep<'_>,
    describe: impl Fn() -> WaitDescription,
    ready: impl FnMut() -> bool,
) {
    wait_within(links, None, sleep, describe, ready);
}

/// Performs [`wait`] for `limit` at the longest, if there is one. Returns the last result of
/// `ready`. The limit counts from the first read of the clock, which is made when the thread first
/// yields, sleeps or serves a peer: a wait that is over before that reads none.
#[inline(always)]
fn wait_within(
    links: &'static Links,
    limit: Option<Duration>,
    sleep: Sleep<'_>,
    describe: impl Fn() -> WaitDescription,
    mut ready: impl FnMut() -> bool,
) -> bool {
    let is_on_word = matches!(sleep, Sleep::OnWord(_));
    let polled = if is_on_word {
        Polled::Words
    } else {
        polled(links.network)
    };
    let poll = || polled == Polled::Network && links.network.progress();

    // The thread that sets the word, or the program, needs the CPU.
    let another_needs_cpu = is_on_word || is_in_background();
    let mut backoff = Backoff::new(polled, links.job.is_oversubscribed || another_needs_cpu);
    let mut sleeper = Sleeper::new(links, sleep, limit, describe);

    // `ready` may take a message, so it is not called again once it has returned true.
    let mut is_over = false;
    let mut ready = || {
        is_over = is_over || ready();
        is_over
    };

    let mut worked = poll();
    while !ready() {
        let pause = backoff.pause(worked);

        // A peer that asks without pause keeps the thread from yielding.
        let reads_clock = limit.is_some() && (worked || pause != Pause::Spin);
        if reads_clock && sleeper.time_left().is_zero() {
            // What has come by the limit is seen.
            poll();
            ready();
            break;
        }

        worked = match pause {
            Pause::Spin | Pause::Yield => poll(),
            Pause::Sleep => sleeper.sleep(backoff.since_first_sleep(), &mut ready),
        };
    }
    sleeper.end(&backoff);
    is_over
}

/// The sleeps of a waiting thread.
struct Sleeper<'a, D> {
    links: &'static Links,
    sleep: Sleep<'a>,
    wait: LongWait<D>,
    /// The time until the limit of the wait, as it was last computed.
    left: Duration,
    /// The thread counts as one that waits while it may sleep in the network.
    _counted: Option<WaitingThread>,
    has_slept: bool,
}

impl<'a, D: Fn() -> WaitDescription> Sleeper<'a, D> {
    fn new(
        links: &'static Links,
        sleep: Sleep<'a>,
        limit: Option<Duration>,
        describe: D,
    ) -> Sleeper<'a, D> {
        let is_in_network = matches!(sleep, Sleep::InNetwork { .. });
        Sleeper {
            sleep,
            links,
            wait: LongWait::new(links, describe).with_limit(limit),
            left: Duration::MAX,
            _counted: is_in_network.then(WaitingThread::count),
            has_slept: false,
        }
    }

    /// Returns the time until the limit of the wait, beyond which no sleep lasts.
    fn time_left(&mut self) -> Duration {
        self.left = self.wait.time_left();
        self.left
    }

    /// Sleeps until `ready` may return true. `lasted` is the time since the first sleep. Returns
    /// true if there was work of the network.
    #[cold]
    fn sleep(&mut self, lasted: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
        let is_first = !std::mem::replace(&mut self.has_slept, true);
        let wait = &mut self.wait;
        match self.sleep {
            Sleep::OnDoorbell(area) => {
                if is_first && self.links.network.is_open() {
                    // From now on a thread of the transport makes it progress.
                    self.links.network.stop_polling();
                }
                area.sleep_unless(ready, |word, heard| wait.sleep(word, heard));
                false
            }
            Sleep::InNetwork { at_most, flags } => {
                wait.check();
                // Read before `ready` is called: if a word changes after that, the sleep is not
                // begun, or ends.
                let area = &self.links.area;
                let awaited: Vec<AwaitedWord> = flags
                    .iter()
                    .map(|&offset| AwaitedWord::new(area.awaited(offset)))
                    .collect();

                // A change between the last poll and these reads ends no sleep.
                if ready() {
                    return false;
                }
                let time = sleep_time(self.links.network, lasted, at_most);
                self.links
                    .network
                    .wait(time.min(self.left), &awaited, ready)
            }
            Sleep::Nap => {
                std::thread::sleep(NAP.min(self.left));
                wait.check();
                false
            }
            Sleep::OnWord(word) => {
                wait.sleep(word, 0);
                false
            }
        }
    }

    /// Ends the wait.
    fn end(&self, backoff: &Backoff) {
        if !self.has_slept || !matches!(self.sleep, Sleep::InNetwork { .. }) {
            return;
        }

        self.links.network.end_wait();
        if backoff.has_slept_for_long() {
            // The service thread sleeps meanwhile, too, in intervals that grow with the wait.
            self.links.network.stop_polling();
        }
    }
}

/// Returns the length of a sleep in the network. If not every change ends a sleep, it lasts no
/// longer than the wait so far. Otherwise that limit would only take time: for a short sleep the
/// kernel sets its timer anew, which took 13 us instead of 2 in a round trip over TCP.
fn sleep_time(network: &Network, lasted: Duration, at_most: Duration) -> Duration {
    if network.wakes_waits() && at_most > NAP {
        at_most
    } else {
        lasted.clamp(NAP, at_most)
    }
}
