//! The status of this PE in the memory of its node, for those that explain why a job hangs.
//!
//! A wait is written there once it has lasted [`LONG`], by the thread that waits, and removed when
//! it ends. So calls that end sooner cost nothing. The text of a wait is made only then: a caller
//! passes a closure that describes it. `rushmem_explain::status_slot` describes the place, where a
//! reader without the help of this PE finds a whole status or none.

use crate::call::Call;
use crate::call::location;
use crate::call::warning::warning;
use crate::diagnosis::finalizing::{PERIOD, PeerCheck};
use crate::job;
use crate::memory::primitive::AtomicU32;
use crate::memory::symmetric_location;
use crate::net::flags;
use crate::net::{endpoints, network};
use crate::process;
use crate::process::time::nanoseconds;
use rushmem_explain::process::pid_namespace;
use rushmem_explain::status::{
    Finalizing, InFlight, MAX_LISTED, Stage, Status, Subject, SymmetricLocation, Wait,
};
use rushmem_explain::status_slot;
use rushmem_transport::Pe;
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A wait that lasts this long is written to the status of the PE.
const LONG: Duration = Duration::from_millis(10);

/// A wait that lasts this long, in nanoseconds, shows where in the program it is. The next one has
/// to last twice as long unless the program is observed, since another thread reads the debug
/// information, which may take a second of a CPU.
static LOCATED: AtomicU64 = AtomicU64::new(5_000_000_000);

/// The duration, in nanoseconds, after which a wait of a program that is observed shows it.
const LOCATED_OBSERVED: u64 = 1_000_000_000;

/// The function in which a thread waits, and what for.
pub(crate) type WaitDescription = (Call, Subject);

/// The content of the status, apart from what is read when it is written.
struct StatusContent {
    pid_namespace: u64,
    stage: Stage,
    waits: Vec<(u64, Wait)>,
    /// The number of waits.
    count: u64,
    /// The operations in flight over the network, if that is known.
    in_flight: Option<InFlight>,
    finalizing: Option<Finalizing>,
    /// The locks that this PE holds.
    held_locks: fn() -> Vec<SymmetricLocation>,
}

static WRITTEN: Mutex<StatusContent> = Mutex::new(StatusContent {
    pid_namespace: 0,
    stage: Stage::Starting,
    waits: Vec::new(),
    count: 0,
    in_flight: None,
    finalizing: None,
    held_locks: Vec::new,
});

/// Writes the first status, once the memory of the node is mapped. `held_locks` lists the locks
/// that this PE holds.
pub(crate) fn begin(held_locks: fn() -> Vec<SymmetricLocation>) {
    change(|written| {
        written.pid_namespace = pid_namespace().unwrap_or(0);
        written.held_locks = held_locks;
    });
}

/// Writes how far this PE has come.
pub(crate) fn enter(stage: Stage) {
    change(|written| written.stage = stage);
}

/// Writes what this PE has done when it enters finalize, and that it leaves it.
pub(crate) fn finalizes(finalizing: Option<Finalizing>) {
    change(|written| written.finalizing = finalizing);
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
    // On a node, a call returns after its stores.
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
    };
    flags::area().write_status(&status_slot::encode(&status));
}

/// A wait that the status shows until this is dropped.
pub(crate) struct ShownWait(u64);

/// Shows a wait that began at this time.
#[cold]
pub(crate) fn show(since: u64, described: WaitDescription) -> ShownWait {
    ShownWait(add(since, described))
}

impl Drop for ShownWait {
    fn drop(&mut self) {
        remove(self.0);
    }
}

/// Adds a wait, and returns its number, which is not 0.
fn add(since: u64, (call, subject): WaitDescription) -> u64 {
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
                allocated_at: None,
                since,
                subject,
            },
        ));
        number
    })
}

/// Waits of a second show where in the program they are from now on, since it is observed.
pub(crate) fn locate_waits() {
    LOCATED.store(LOCATED_OBSERVED, Relaxed);
}

/// Returns true if a wait that has lasted this long is to show where it is.
fn is_located_after(lasted: Duration) -> bool {
    let limit = LOCATED.load(Relaxed);
    let is_long = lasted.as_nanos() >= u128::from(limit);
    if is_long && limit != LOCATED_OBSERVED {
        LOCATED.store(2 * limit, Relaxed);
    }
    is_long
}

/// Finds out where in the program a wait of this thread is, which may have ended then, and where
/// the memory was allocated for which it waits.
fn locate(number: u64) {
    let stack = {
        let written = process::lock(&WRITTEN);
        let wait = written.waits.iter().find(|(other, _)| *other == number);
        wait.and_then(|(_, wait)| symmetric_location::stack_of(wait.subject.block()?))
    };
    location::find(move |place| {
        let allocated_at = stack.and_then(|stack| location::of_stack(&stack));
        let mut written = process::lock(&WRITTEN);
        let wait = written.waits.iter_mut().find(|(other, _)| *other == number);
        if let Some((_, wait)) = wait {
            wait.called_at = place.map(|place| place.to_string());
            wait.allocated_at = allocated_at.map(|place| place.to_string());
            write(&written);
        }
    });
}

fn remove(number: u64) {
    change(|written| {
        written.waits.retain(|(other, _)| *other != number);
        // The thread may issue operations again.
        written.in_flight = None;
    });
}

/// Writes what is in flight over the network. Whether anything is, and so may end soon.
fn show_in_flight() -> bool {
    if !network::is_open() {
        return false;
    }
    let in_flight = endpoints::in_flight().map(|by_pe| InFlight {
        n: by_pe.values().sum(),
        targets: by_pe.keys().take(MAX_LISTED).map(|pe| pe.0).collect(),
        more: by_pe.len() > MAX_LISTED,
    });
    let is_any = in_flight.as_ref().is_some_and(|in_flight| in_flight.n > 0);
    change(|written| written.in_flight = in_flight);
    is_any
}

/// A wait that has come to its sleeps, and the status shows once it is long.
pub(crate) struct LongWait<D> {
    describe: D,
    /// True if it has slept until a ring.
    has_slept: bool,
    /// When it began, as far as the clock was read.
    since: Option<u64>,
    shown: Option<ShownWait>,
    is_located: bool,
    /// When it was last seen that something is in flight.
    in_flight_at: Option<u64>,
    /// The state of the PEs for which it waits, with respect to finalize.
    peers: PeerCheck,
}

impl<D: Fn() -> WaitDescription> LongWait<D> {
    pub(crate) fn new(describe: D) -> LongWait<D> {
        LongWait {
            describe,
            has_slept: false,
            since: None,
            shown: None,
            is_located: false,
            in_flight_at: None,
            peers: PeerCheck::default(),
        }
    }

    /// Returns how long it has lasted since the clock was first read.
    pub(crate) fn lasted(&self) -> Duration {
        let lasted = self.since.map_or(0, |since| nanoseconds().saturating_sub(since));
        Duration::from_nanos(lasted)
    }

    /// Reads the clock before or after a sleep, and shows the wait if it is long.
    pub(crate) fn check(&mut self) {
        if let Some(shown) = &self.shown {
            if !self.is_located && is_located_after(self.lasted()) {
                self.is_located = true;
                locate(shown.0);
            }
            let is_due = |at| nanoseconds().saturating_sub(at) >= LONG.as_nanos() as u64;
            if self.in_flight_at.is_some_and(is_due) {
                self.look_at_network();
            }
            if self.peers.check(&self.describe) {
                // The wait for an answer has made the status forget what is in flight.
                self.look_at_network();
            }
            if self.lasted() >= REPORTED {
                print_line(|| (self.describe)().0);
            }
        } else if self.since.is_none() {
            self.since = Some(nanoseconds());
        } else if self.lasted() >= LONG {
            self.show();
        }
    }

    fn look_at_network(&mut self) {
        self.in_flight_at = show_in_flight().then(nanoseconds);
    }

    /// Sleeps until the word no longer has this value: until [`LONG`] has passed, and then for
    /// [`PERIOD`], unless something is in flight. The clock is not read for the first sleep, which
    /// most often ends the wait.
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
        let limit = Timespec { tv_sec: 0, tv_nsec: rest.subsec_nanos().into() };
        // If it was interrupted or the word has changed, the caller checks again.
        let slept = futex::wait(word, futex::Flags::empty(), value, Some(&limit));
        if slept == Err(Errno::TIMEDOUT) && self.shown.is_none() {
            self.since.get_or_insert_with(|| nanoseconds() - LONG.as_nanos() as u64);
            self.show();
        }
    }

    fn show(&mut self) {
        let since = self.since.unwrap_or_else(nanoseconds);
        let describe = &self.describe;
        self.shown.get_or_insert_with(|| show(since, describe()));
        self.look_at_network();
    }
}

/// The time after which a wait is reported.
const REPORTED: Duration = Duration::from_secs(60);

/// Prints the line, unless a PE of this node has, or the watchdog explains waits.
fn print_line(call: impl FnOnce() -> Call) {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    let Some(job) = job::known().filter(|_| !PRINTED.swap(true, Relaxed)) else { return };
    let area = flags::area();
    if job.settings.watchdog.is_some()
        || !area.is_first_at(area.first_of_node(job.n_pes), area.areas().long_waits())
    {
        return;
    }
    let how = match process::aborter().is_some_and(|aborter| aborter.is_oshrun()) {
        true => "press Ctrl-\\ in oshrun, or send it SIGUSR1, to see who waits for whom",
        false => "set SHMEM_WATCHDOG=30s to see who waits for whom",
    };
    let (me, call, limit) = (job.me(), call(), REPORTED.as_secs());
    warning!("PE {me} has waited {limit} s in {call}; {how}");
}

thread_local! {
    /// The number of the wait of this thread for operations over a network; 0 if there is none.
    /// Without a destructor: handlers of the exit also wait, after those of the thread have run.
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    /// True if that wait shows where it is.
    static IS_LOCATED: Cell<bool> = const { Cell::new(false) };
}

/// Records that this thread waits for operations on these PEs, of which `n` are in flight.
pub(crate) fn waits_for_operations(peers: &[Pe], n: u64) {
    let peers: Vec<u32> = peers.iter().take(MAX_LISTED).map(|pe| pe.0).collect();
    let in_flight = InFlight { n: n.max(1), targets: peers.clone(), more: true };
    process::lock(&WRITTEN).in_flight = Some(in_flight);
    let subject = Subject::Operations { peers };
    match OPERATIONS.get() {
        0 => {
            let since = nanoseconds() - LONG.as_nanos() as u64;
            OPERATIONS.set(add(since, (endpoints::current_call(), subject)));
        }
        number => {
            let since = change(|written| {
                let wait = written.waits.iter_mut().find(|(other, _)| *other == number);
                wait.map(|(_, wait)| {
                    wait.subject = subject;
                    wait.since
                })
            });
            let lasted = since.map_or(0, |since| nanoseconds().saturating_sub(since));
            if !IS_LOCATED.get() && is_located_after(Duration::from_nanos(lasted)) {
                IS_LOCATED.set(true);
                locate(number);
            }
        }
    }
}

/// Records that the wait of this thread for operations has ended.
pub(crate) fn ends_wait_for_operations() {
    IS_LOCATED.set(false);
    remove(OPERATIONS.take());
}
