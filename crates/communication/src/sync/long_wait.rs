//! A wait that may last long: it is written to the status of this PE, is reported once it has
//! lasted for a minute, and ends the job if no PE can end it any more.
//!
//! A caller passes a closure that describes the wait, which is called only if the wait is written.

use crate::access::endpoints::Endpoints;
use crate::links::Links;
use crate::status::{self, ShownWait, WaitDescription};
use crate::sync::finalizing::{PERIOD, PeerCheck};
use rushmem_explain::status::{AwaitedObject, InFlight, MAX_LISTED};
use rushmem_pe::call::thread;
use rushmem_pe::call::warning::warning;
use rushmem_pe::process;
use rushmem_pe::process::time::nanoseconds;
use rushmem_transport::{AwaitedOperations, Pe, WaitReport};
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// The duration after which a wait is written to the status. Writing it takes microseconds, which a
/// shorter wait would notice, and the watchdog reads statuses once a second.
const LONG: Duration = Duration::from_millis(10);

/// A wait of a thread that no longer polls words alone, but begins to sleep or polls the network.
/// Once the wait is long, it is added to the status.
pub struct LongWait<A> {
    links: &'static Links,
    /// What the thread waits for.
    awaited: A,
    /// True once the thread has called [`sleep`](LongWait::sleep).
    has_slept: bool,
    /// When the wait began: the time of the first read of the clock.
    since: Option<u64>,
    /// How long the wait lasts at most. It then never counts as one that cannot end.
    limit: Option<Duration>,
    shown: Option<ShownWait>,
    is_located: bool,
    /// The time at which operations were last found in flight; `None` if there were none.
    in_flight_at: Option<u64>,
    /// The checks whether the PEs for which the thread waits are in finalize.
    peers: PeerCheck,
}

/// What a thread waits for.
pub trait Awaited {
    /// Describes the wait for the status.
    fn describe(&self) -> WaitDescription;

    /// Writes to the status which operations are in flight over the network. Returns true if there
    /// are any, so that the status must be updated soon.
    fn show_in_flight(&self, links: &Links) -> bool;
}

impl<D: Fn() -> WaitDescription> Awaited for D {
    fn describe(&self) -> WaitDescription {
        self()
    }

    fn show_in_flight(&self, links: &Links) -> bool {
        status::show_in_flight(links)
    }
}

impl<A: Awaited> LongWait<A> {
    /// Begins a wait.
    pub fn new(links: &'static Links, awaited: A) -> LongWait<A> {
        LongWait {
            links,
            awaited,
            has_slept: false,
            since: None,
            limit: None,
            shown: None,
            is_located: false,
            in_flight_at: None,
            peers: PeerCheck::default(),
        }
    }

    /// Limits the time from the first read of the clock on.
    pub(crate) fn with_limit(self, limit: Option<Duration>) -> LongWait<A> {
        LongWait { limit, ..self }
    }

    /// Reads the clock, and returns the time until the limit of the wait.
    pub(crate) fn time_left(&mut self) -> Duration {
        let limit = self.limit.unwrap_or(Duration::MAX);
        if self.since.is_none() {
            self.since = Some(nanoseconds());
            return limit;
        }
        limit.saturating_sub(self.lasted())
    }

    /// Returns the time since the clock was first read.
    pub fn lasted(&self) -> Duration {
        let lasted = self
            .since
            .map_or(0, |since| nanoseconds().saturating_sub(since));
        Duration::from_nanos(lasted)
    }

    /// Called before or after each sleep: reads the clock, and updates the status of a long wait.
    pub fn check(&mut self) {
        if self.shown.is_some() {
            self.update_shown();
        } else if self.since.is_none() {
            self.since = Some(nanoseconds());
        } else if self.lasted() >= LONG {
            self.show();
        }
    }

    /// Updates what the status says of the wait, and reports a wait that goes on for too long.
    fn update_shown(&mut self) {
        self.locate();

        if let Some(found) = self.in_flight_at
            && nanoseconds().saturating_sub(found) >= LONG.as_nanos() as u64
        {
            self.look_at_network();
        }

        if self.limit.is_some() {
            return;
        }
        let has_checked_peers = self.peers.check(self.links, || self.awaited.describe());
        if has_checked_peers {
            // The check may have waited for the network, and the end of that wait removes the
            // operations in flight from the status.
            self.look_at_network();
        }

        if self.lasted() >= REPORTED {
            print_remedy(self.links, &self.awaited);
        }
    }

    /// Adds the line of the call to the status, once, if the wait has lasted long enough for that.
    fn locate(&mut self) {
        // A thread that carries out a non-blocking collective was called from no line of the
        // program. A search for one would read all debug information in vain.
        let is_of_program = thread::request_call().is_none();

        if let Some(shown) = &self.shown
            && is_of_program
            && !self.is_located
            && status::begin_locating(self.links, self.lasted())
        {
            self.is_located = true;
            shown.locate();
        }
    }

    fn look_at_network(&mut self) {
        let is_any_in_flight = self.awaited.show_in_flight(self.links);
        self.in_flight_at = is_any_in_flight.then(nanoseconds);
    }

    /// Sleeps while the word has this value, for a limited time: at first until the wait has lasted
    /// `LONG`, then for `PERIOD`, or for `LONG` if operations are in flight. Does not sleep if the
    /// wait must be examined at once. The clock is not read before the first sleep, after
    /// which most waits are over.
    pub fn sleep(&mut self, word: &AtomicU32, value: u32) {
        if std::mem::replace(&mut self.has_slept, true) {
            self.check();
        }

        let rest = if self.shown.is_none() {
            LONG.saturating_sub(self.lasted())
        } else if self.in_flight_at.is_some() {
            // So that the status soon says if they are complete.
            LONG
        } else if self.peers.is_hopeless() {
            return;
        } else {
            PERIOD
        };
        let at_most = match self.limit {
            Some(_) => rest.min(self.time_left()),
            None => rest,
        };
        // `LONG` and `PERIOD` are shorter than a second.
        let at_most = Timespec {
            tv_sec: 0,
            tv_nsec: at_most.subsec_nanos().into(),
        };

        // An interrupted sleep is no error: the caller checks again.
        let slept = futex::wait(word, futex::Flags::empty(), value, Some(&at_most));
        if slept == Err(Errno::TIMEDOUT) && self.shown.is_none() {
            // If the clock was not read before the sleep, that was the first one, and has lasted
            // for `LONG`.
            self.since
                .get_or_insert_with(|| nanoseconds() - LONG.as_nanos() as u64);
            // The limit of the wait may have ended the sleep sooner.
            if self.lasted() >= LONG {
                self.show();
            }
        }
    }

    fn show(&mut self) {
        if self.shown.is_none() {
            let since = self.since.unwrap_or_else(nanoseconds);
            let WaitDescription { call, subject } = self.awaited.describe();
            let shown = status::show(self.links, since, self.limit, call, subject);
            self.shown = Some(shown);
        }
        self.look_at_network();
    }

    /// Writes to the status what the thread waits for now, if the wait is shown.
    fn update(&mut self) {
        if let Some(shown) = &self.shown {
            shown.set_subject(self.awaited.describe().subject);
            self.look_at_network();
        }
    }
}

/// The duration after which a wait is reported on standard error: longer than a program that is
/// well usually waits for its slowest PE.
const REPORTED: Duration = Duration::from_secs(60);

/// Prints how to find out why a wait lasts so long: once for each node, and not if the watchdog
/// explains waits.
fn print_remedy(links: &Links, awaited: &impl Awaited) {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    let Links { job, area, .. } = links;
    // Relaxed: one thread of the process prints, whichever it is.
    if PRINTED.swap(true, Relaxed) || job.settings.watchdog.is_some() {
        return;
    }

    // The first PE of the node to claim the word prints for all of them.
    if !area.claim(area.first_of_node(), area.areas().long_waits()) {
        return;
    }

    let has_oshrun = process::aborter().is_some_and(|aborter| aborter.is_oshrun());
    let remedy = if has_oshrun {
        "press Ctrl-\\ in oshrun, or send it SIGUSR1, to see who waits for whom"
    } else {
        "set SHMEM_WATCHDOG=30s to see who waits for whom"
    };
    warning!(
        "PE {} has waited {} s in {}; {remedy}",
        job.me,
        REPORTED.as_secs(),
        awaited.describe().call
    );
}

/// The operations for which a thread waits, as the transport last named them.
pub(crate) struct NamedOperations {
    endpoints: &'static Endpoints,
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
        WaitDescription {
            call: self.endpoints.current_call(),
            subject: AwaitedObject::Operations {
                peers: self.listed(),
            },
        }
    }

    /// Shows those that the transport has named: the thread holds its endpoint, so the endpoints
    /// cannot be asked.
    fn show_in_flight(&self, links: &Links) -> bool {
        let in_flight = InFlight {
            // The thread waits for at least one.
            n: self.n.max(1),
            targets: self.listed(),
            // The transport may have named one PE of several.
            more: true,
        };
        status::set_in_flight(links, in_flight);

        // No update is due before the transport names the operations again.
        false
    }
}

/// Returns the report of a wait for operations over a network.
pub(crate) fn wait_for_operations(links: &'static Links) -> LongWait<NamedOperations> {
    LongWait::new(
        links,
        NamedOperations {
            endpoints: links.endpoints,
            peers: Vec::new(),
            n: 0,
            next: LONG,
        },
    )
}

impl WaitReport for LongWait<NamedOperations> {
    /// Asks the transport which operations the thread waits for: once the wait is long, and again
    /// whenever its duration has doubled, since the thread may by then wait for other PEs.
    fn check(&mut self, awaited: &mut dyn FnMut() -> AwaitedOperations) {
        let lasted = self.lasted();
        if lasted >= self.awaited.next {
            let AwaitedOperations { pes, in_flight } = awaited();
            self.awaited = NamedOperations {
                endpoints: self.awaited.endpoints,
                peers: pes,
                n: in_flight,
                next: 2 * lasted,
            };
            self.update();
        }
        LongWait::check(self);
    }
}
