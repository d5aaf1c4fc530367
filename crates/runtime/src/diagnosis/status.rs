//! The status of this PE in the memory of its node: which calls wait, and for what. `oshrun` and
//! the watchdog read it to explain why a job hangs.
//!
//! A thread writes its wait into the status once the wait has lasted [`LONG`], and removes it when
//! the wait ends. So calls that end sooner cost nothing. A caller passes a closure that describes
//! the wait; it is called only if the wait is written. `rushmem_explain::status_slot` has the
//! format of the slot, from which a reader gets a whole status or none without the help of this PE.

use crate::call::Call;
use crate::call::location::{self, CapturedCall};
use crate::call::stack;
use crate::call::warning::warning;
use crate::diagnosis::finalizing::{PERIOD, PeerCheck};
use crate::diagnosis::machine;
use crate::job;
use crate::memory::primitive::AtomicU32;
use crate::memory::symmetric_location;
use crate::net::flags;
use crate::net::network;
use crate::process;
use crate::process::time::nanoseconds;
use rushmem_explain::process::pid_namespace;
use rushmem_explain::status::{
    Finalizing, InFlight, MAX_LISTED, Poll, Search, Stage, Status, Subject, SymmetricLocation, Wait,
};
use rushmem_explain::status_slot;
use rushmem_transport::{AwaitedOperations, Pe, WaitReport};
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The duration after which a wait is written to the status.
const LONG: Duration = Duration::from_millis(10);

/// The duration in nanoseconds after which the status of a wait also says where in the program the
/// call is. It is doubled with each such wait, since reading the debug information may take a
/// second of a CPU. With [`LOCATED_OBSERVED`] it stays as it is.
static LOCATED: AtomicU64 = AtomicU64::new(5_000_000_000);

/// The value of [`LOCATED`] in a job with `SHMEM_STATS`, `SHMEM_TRACE` or the record of last
/// writes.
const LOCATED_OBSERVED: u64 = 1_000_000_000;

/// The call in which a thread waits, and what it waits for.
pub(crate) type WaitDescription = (Call, Subject);

/// The parts of the status that this PE keeps between two writes of it.
struct StatusContent {
    pid_namespace: u64,
    stage: Stage,
    /// The waits, each with its number.
    waits: Vec<(u64, Wait)>,
    /// The number of waits so far, which is the number of the last one.
    count: u64,
    /// The operations in flight over the network, if they are known.
    in_flight: Option<InFlight>,
    finalizing: Option<Finalizing>,
    finds_polls: bool,
    poll: Option<Poll>,
    /// Returns the locks that this PE holds.
    held_locks: fn() -> Vec<SymmetricLocation>,
}

static WRITTEN: Mutex<StatusContent> = Mutex::new(StatusContent {
    pid_namespace: 0,
    stage: Stage::Starting,
    waits: Vec::new(),
    count: 0,
    in_flight: None,
    finalizing: None,
    finds_polls: false,
    poll: None,
    held_locks: Vec::new,
});

/// Writes the first status, once the memory of the node is mapped. `held_locks` returns the locks
/// that this PE holds.
pub(crate) fn begin(held_locks: fn() -> Vec<SymmetricLocation>) {
    change(|written| {
        written.pid_namespace = pid_namespace().unwrap_or(0);
        written.held_locks = held_locks;
    });
}

/// Writes to the status that this PE enters a stage.
pub(crate) fn enter(stage: Stage) {
    change(|written| written.stage = stage);
}

/// Writes to the status that this PE is in finalize, with the collectives that it has entered;
/// `None` when all PEs have entered finalize.
pub(crate) fn set_finalizing(finalizing: Option<Finalizing>) {
    change(|written| written.finalizing = finalizing);
}

/// Writes to the status that this PE looks for a call that it repeats when it is asked to.
pub(crate) fn set_finds_polls() {
    change(|written| written.finds_polls = true);
}

/// Writes to the status a call that this PE repeats.
pub(crate) fn set_poll(poll: Poll) {
    change(|written| written.poll = Some(poll));
}

/// Adds the place of the call that was found at this time.
pub(crate) fn add_place_of_poll(at: u64, place: Option<String>) {
    change(|written| {
        if let Some(poll) = written.poll.as_mut().filter(|poll| poll.at == at) {
            poll.called_at = place;
            poll.is_searched = true;
        }
    });
}

fn change<R>(change: impl FnOnce(&mut StatusContent) -> R) -> R {
    let mut written = process::lock(&WRITTEN);
    let result = change(&mut written);
    write(&written);
    result
}

fn write(written: &StatusContent) {
    let mut held_locks = (written.held_locks)();
    held_locks.truncate(MAX_LISTED);
    // Without a network nothing is in flight: a call returns after its stores.
    let in_flight = match network::is_open() {
        true => written.in_flight.clone(),
        false => Some(InFlight::default()),
    };
    let status = Status {
        pid: std::process::id(),
        pid_namespace: written.pid_namespace,
        stage: written.stage,
        waits: written.waits.iter().map(|(_, wait)| wait.clone()).collect(),
        further_waits: Vec::new(),
        held_locks,
        in_flight,
        finalizing: written.finalizing.clone(),
        finds_polls: written.finds_polls,
        poll: written.poll.clone(),
    };
    flags::area().write_status(&status_slot::encode(&status));
}

/// A wait in the status, by its number, removed when this is dropped.
pub(crate) struct ShownWait(u64);

impl Drop for ShownWait {
    fn drop(&mut self) {
        remove(self.0);
    }
}

/// Adds to the status a wait that began at `since`, in nanoseconds.
#[cold]
pub(crate) fn show(since: u64, (call, subject): WaitDescription) -> ShownWait {
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    change(|written| {
        written.count += 1;
        let number = written.count;
        written.waits.push((
            number,
            Wait {
                thread,
                call: call.to_string(),
                called_at: None,
                search: None,
                allocated_at: None,
                since,
                subject,
            },
        ));
        ShownWait(number)
    })
}

/// From now on, makes every wait of a second show where in the program it is.
pub(crate) fn locate_waits() {
    LOCATED.store(LOCATED_OBSERVED, Relaxed);
}

/// Returns true if a wait that has lasted this long must now show where in the program it is. Then
/// also doubles [`LOCATED`] for later waits, unless it is [`LOCATED_OBSERVED`].
fn begin_locating(lasted: Duration) -> bool {
    let limit = LOCATED.load(Relaxed);
    let is_long = lasted.as_nanos() >= u128::from(limit);
    if is_long && limit != LOCATED_OBSERVED {
        LOCATED.store(2 * limit, Relaxed);
    }
    is_long
}

/// Captures where in the program this thread waits, and where the block of the awaited word was
/// allocated. Another thread finds both locations in the debug information and adds them to the
/// status, unless the wait has ended by then.
fn locate(number: u64) {
    let call = CapturedCall::capture();
    let stack = (!call.may_be_in_python()).then(stack::digest_of_program);
    let begin = |wait: &mut Wait| {
        let allocation = wait.subject.block().and_then(symmetric_location::stack_of);
        // Only this PE knows where the block was allocated, so it does not wait for the search of
        // another PE.
        let stack = stack.filter(|_| allocation.is_none());
        wait.search = stack.map(|stack| Search {
            stack,
            since: nanoseconds(),
            is_over: false,
        });
        (wait.search, allocation)
    };
    let Some((search, allocation)) = change_wait(number, begin) else {
        return;
    };
    location::in_other_thread(move || {
        let by_peer = search.and_then(machine::place_found_by_peer);
        let called_at = by_peer.unwrap_or_else(|| {
            rushmem_log::debug!(wait = number, "this PE searches for the place of a call");
            call.locate().map(|place| place.to_string())
        });
        let allocated_at = allocation.and_then(|stack| location::locate_on_stack(&stack));
        change_wait(number, |wait| {
            wait.called_at = called_at;
            wait.allocated_at = allocated_at.map(|place| place.to_string());
            wait.search = search.map(|search| Search {
                is_over: true,
                ..search
            });
        });
    });
}

/// Changes a wait in the status, if it has not ended.
fn change_wait<R>(number: u64, change: impl FnOnce(&mut Wait) -> R) -> Option<R> {
    let mut written = process::lock(&WRITTEN);
    let wait = written.waits.iter_mut().find(|(other, _)| *other == number);
    let result = wait.map(|(_, wait)| change(wait));
    if result.is_some() {
        write(&written);
    }
    result
}

fn remove(number: u64) {
    change(|written| {
        written.waits.retain(|(other, _)| *other != number);
        // The thread may issue new operations.
        written.in_flight = None;
    });
}

/// Writes to the status which operations are in flight over the network. Returns true if there are
/// any, so that the status must be updated soon.
fn show_in_flight() -> bool {
    if !network::is_open() {
        return false;
    }
    let in_flight = network::in_flight().map(|by_pe| InFlight {
        n: by_pe.values().sum(),
        targets: by_pe.keys().take(MAX_LISTED).map(|pe| pe.0).collect(),
        more: by_pe.len() > MAX_LISTED,
    });
    let is_any = in_flight.as_ref().is_some_and(|in_flight| in_flight.n > 0);
    change(|written| written.in_flight = in_flight);
    is_any
}

/// A wait of a thread that no longer polls words alone, but begins to sleep or polls the network.
/// Once the wait is long, it is added to the status.
pub(crate) struct LongWait<A> {
    awaited: A,
    /// True once the thread has called [`sleep`](LongWait::sleep).
    has_slept: bool,
    /// When the wait began: the time of the first read of the clock.
    since: Option<u64>,
    shown: Option<ShownWait>,
    is_located: bool,
    /// The time at which operations were last found in flight; `None` if there were none.
    in_flight_at: Option<u64>,
    /// The checks whether the PEs for which the thread waits are in finalize.
    peers: PeerCheck,
}

/// What a thread waits for.
pub(crate) trait Awaited {
    /// Describes the wait for the status.
    fn describe(&self) -> WaitDescription;

    /// Writes to the status which operations are in flight over the network. Returns true if there
    /// are any, so that the status must be updated soon.
    fn show_in_flight(&self) -> bool;
}

impl<D: Fn() -> WaitDescription> Awaited for D {
    fn describe(&self) -> WaitDescription {
        self()
    }

    fn show_in_flight(&self) -> bool {
        show_in_flight()
    }
}

impl<A: Awaited> LongWait<A> {
    pub(crate) fn new(awaited: A) -> LongWait<A> {
        LongWait {
            awaited,
            has_slept: false,
            since: None,
            shown: None,
            is_located: false,
            in_flight_at: None,
            peers: PeerCheck::default(),
        }
    }

    /// Returns the time since the clock was first read.
    pub(crate) fn lasted(&self) -> Duration {
        let lasted = self
            .since
            .map_or(0, |since| nanoseconds().saturating_sub(since));
        Duration::from_nanos(lasted)
    }

    /// Called before or after each sleep: reads the clock, and updates the status of a long wait.
    pub(crate) fn check(&mut self) {
        if let Some(shown) = &self.shown {
            if !self.is_located && begin_locating(self.lasted()) {
                self.is_located = true;
                locate(shown.0);
            }
            let is_due = |at| nanoseconds().saturating_sub(at) >= LONG.as_nanos() as u64;
            if self.in_flight_at.is_some_and(is_due) {
                self.look_at_network();
            }
            if self.peers.check(|| self.awaited.describe()) {
                // The check may have waited for the network, and the end of that wait removes the
                // operations in flight from the status.
                self.look_at_network();
            }
            if self.lasted() >= REPORTED {
                print_remedy(|| self.awaited.describe().0);
            }
        } else if self.since.is_none() {
            self.since = Some(nanoseconds());
        } else if self.lasted() >= LONG {
            self.show();
        }
    }

    fn look_at_network(&mut self) {
        self.in_flight_at = self.awaited.show_in_flight().then(nanoseconds);
    }

    /// Sleeps while the word has this value, for a limited time: at first until the wait has lasted
    /// [`LONG`], then for [`PERIOD`], or for [`LONG`] if operations are in flight. Does not sleep
    /// if the wait must be examined at once. The clock is not read before the first sleep, after
    /// which most waits are over.
    pub(crate) fn sleep(&mut self, word: &AtomicU32, value: u32) {
        if std::mem::replace(&mut self.has_slept, true) {
            self.check();
        }
        let rest = match (&self.shown, self.in_flight_at) {
            (None, _) => LONG.saturating_sub(self.lasted()),
            (_, Some(_)) => LONG,
            (_, None) if self.peers.is_hopeless() => return,
            (_, None) => PERIOD,
        };
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: rest.subsec_nanos().into(),
        };
        // An interrupted sleep is no error: the caller checks again.
        let slept = futex::wait(word, futex::Flags::empty(), value, Some(&limit));
        if slept == Err(Errno::TIMEDOUT) && self.shown.is_none() {
            self.since
                .get_or_insert_with(|| nanoseconds() - LONG.as_nanos() as u64);
            self.show();
        }
    }

    fn show(&mut self) {
        let since = self.since.unwrap_or_else(nanoseconds);
        let awaited = &self.awaited;
        self.shown
            .get_or_insert_with(|| show(since, awaited.describe()));
        self.look_at_network();
    }

    /// Writes to the status what the thread waits for now, if the wait is shown.
    fn update(&mut self) {
        if let Some(shown) = &self.shown {
            let (_, subject) = self.awaited.describe();
            change_wait(shown.0, |wait| wait.subject = subject);
            self.look_at_network();
        }
    }
}

/// The duration after which a wait is reported on standard error.
const REPORTED: Duration = Duration::from_secs(60);

/// Prints how to find out why a wait lasts so long: once for each node, and not if the watchdog
/// explains waits.
fn print_remedy(call: impl FnOnce() -> Call) {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    let Some(job) = job::known().filter(|_| !PRINTED.swap(true, Relaxed)) else {
        return;
    };
    let area = flags::area();
    if job.settings.watchdog.is_some()
        || !area.claim(area.first_of_node(job.n_pes), area.areas().long_waits())
    {
        return;
    }
    let remedy = match process::aborter().is_some_and(|aborter| aborter.is_oshrun()) {
        true => "press Ctrl-\\ in oshrun, or send it SIGUSR1, to see who waits for whom",
        false => "set SHMEM_WATCHDOG=30s to see who waits for whom",
    };
    let (me, call, limit) = (job.me, call(), REPORTED.as_secs());
    warning!("PE {me} has waited {limit} s in {call}; {remedy}");
}

/// The operations for which a thread waits, as the transport last named them.
pub(crate) struct NamedOperations {
    peers: Vec<Pe>,
    n: u64,
    /// How long the wait lasts when they are named next.
    next: Duration,
}

impl NamedOperations {
    fn listed(&self) -> Vec<u32> {
        self.peers.iter().take(MAX_LISTED).map(|pe| pe.0).collect()
    }
}

impl Awaited for NamedOperations {
    fn describe(&self) -> WaitDescription {
        let peers = self.listed();
        (network::current_call(), Subject::Operations { peers })
    }

    /// Shows those that the transport has named: the thread holds its endpoint, so the endpoints
    /// cannot be asked.
    fn show_in_flight(&self) -> bool {
        let in_flight = InFlight {
            n: self.n.max(1),
            targets: self.listed(),
            more: true,
        };
        change(|written| written.in_flight = Some(in_flight));
        false
    }
}

/// Returns the report of a wait for operations over a network.
pub(crate) fn wait_for_operations() -> LongWait<NamedOperations> {
    LongWait::new(NamedOperations {
        peers: Vec::new(),
        n: 0,
        next: LONG,
    })
}

impl WaitReport for LongWait<NamedOperations> {
    /// Has the operations named once the wait is long, and again whenever it has lasted twice as
    /// long, since it may be for other PEs by then.
    fn check(&mut self, awaited: &mut dyn FnMut() -> AwaitedOperations) {
        let lasted = self.lasted();
        if lasted >= self.awaited.next {
            let AwaitedOperations { pes, in_flight } = awaited();
            self.awaited = NamedOperations {
                peers: pes,
                n: in_flight,
                next: 2 * lasted,
            };
            self.update();
        }
        LongWait::check(self);
    }
}
