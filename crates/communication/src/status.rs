//! The status of this PE in the memory of its node: which calls wait, and for what. `oshrun` and
//! the watchdog read it to explain why a job hangs.
//!
//! A thread writes its wait into the status once the wait is long (`sync::long_wait`), and removes
//! it when the wait ends. So calls that end sooner cost nothing. [`machine`] reads the statuses of
//! all PEs of the machine, [`polled_calls`] publishes a call that the program repeats instead of
//! waiting. `rushmem_explain::status_slot` has the format of the slot, from which a reader gets a
//! whole status or none without the help of this PE.

pub(crate) mod content;
pub mod machine;
pub mod polled_calls;

use crate::links::Links;
use content::{LOCATED_OBSERVED, NumberedWait, StatusContent};
use rushmem_explain::process::pid_namespace;
use rushmem_explain::status::{
    AwaitedObject, Finalizing, InFlight, MAX_LISTED, Poll, Search, Stage, Status,
    SymmetricLocation, Wait,
};
use rushmem_explain::status_slot;
use rushmem_pe::call::Call;
use rushmem_pe::call::location::{self, CapturedCall};
use rushmem_pe::call::stack;
use rushmem_pe::memory::symmetric_location;
use rushmem_pe::process::time::nanoseconds;
use rushmem_system::lock::lock;
use std::sync::Arc;
use std::time::Duration;

/// Writes the first status, once the memory of the node is mapped.
pub fn write_first(links: &Links) {
    change(links, |written| {
        written.pid_namespace = pid_namespace().unwrap_or(0)
    });
}

/// Writes to the status that this PE enters a stage.
pub fn enter(links: &Links, stage: Stage) {
    change(links, |written| written.stage = stage);
}

/// Writes to the status that this PE is in finalize, with the collectives that it has entered;
/// `None` when all PEs have entered finalize.
pub fn set_finalizing(links: &Links, finalizing: Option<Finalizing>) {
    change(links, |written| written.finalizing = finalizing);
}

/// Writes to the status that this PE looks for a call that it repeats when it is asked to.
pub fn set_finds_polls(links: &Links) {
    change(links, |written| written.finds_polls = true);
}

/// Writes to the status which operations a thread waits for, as the transport has named them.
pub(crate) fn set_in_flight(links: &Links, in_flight: InFlight) {
    change(links, |written| written.in_flight = Some(in_flight));
}

/// Writes to the status a call that this PE repeats.
fn set_poll(links: &Links, poll: Poll) {
    change(links, |written| written.poll = Some(poll));
}

/// Adds the place in the program of the repeated call that was found at this time, unless another
/// one has been found since.
fn add_place_of_poll(links: &Links, found_at: u64, place: Option<String>) {
    change(links, |written| {
        if let Some(poll) = &mut written.poll
            && poll.at == found_at
        {
            poll.called_at = place;
            poll.is_searched = true;
        }
    });
}

/// Changes the content of the status, and writes the status.
fn change<R>(links: &Links, change: impl FnOnce(&mut StatusContent) -> R) -> R {
    let mut written = lock(&links.status);
    let result = change(&mut written);
    write(links, &written);
    result
}

fn write(links: &Links, written: &StatusContent) {
    // Without a network nothing is in flight: a call returns after its stores.
    let in_flight = if links.network.is_open() {
        written.in_flight.clone()
    } else {
        Some(InFlight::default())
    };

    let status = Status {
        pid: std::process::id(),
        pid_namespace: written.pid_namespace,
        stage: written.stage,
        waits: written.waits.iter().map(|one| one.wait.clone()).collect(),
        further_waits: Vec::new(),
        held_locks: held_locks(links),
        in_flight,
        finalizing: written.finalizing.clone(),
        finds_polls: written.finds_polls,
        poll: written.poll.clone(),
        checks: links.job.settings.checks(),
    };
    links.area.write_status(&status_slot::encode(&status));
}

/// Returns the locations of the locks that this PE holds.
fn held_locks(links: &Links) -> Vec<SymmetricLocation> {
    let mut locations = Vec::new();
    for lock in links.lock_turns.held().into_iter().take(MAX_LISTED) {
        let word = std::ptr::with_exposed_provenance(lock.address);
        locations.push(symmetric_location::of_word(&links.job, word, lock.nbytes));
    }
    locations
}

/// A wait, as the status and messages describe it.
pub struct WaitDescription {
    /// The call in which the thread waits.
    pub call: Call,
    /// What the thread waits for.
    pub subject: AwaitedObject,
}

/// A wait in the status, which is removed when this is dropped.
pub struct ShownWait {
    links: &'static Links,
    number: u64,
}

impl ShownWait {
    /// Captures where in the program this thread waits, and where the block of the awaited word was
    /// allocated. Another thread finds both locations in the debug information and adds them to the
    /// status, unless the wait has ended by then.
    pub fn locate(&self) {
        let ShownWait { links, number } = *self;
        let call = CapturedCall::capture();
        // The native stack does not show the line of a Python program, so equal stacks may be of
        // different calls.
        let stack = if call.may_be_in_python() {
            None
        } else {
            Some(stack::digest_of_program())
        };

        let begun = change_wait(links, number, |wait| {
            let block = wait.subject.block();
            let allocation =
                block.and_then(|block| symmetric_location::stack_of(&links.job, block));
            // Only this PE knows where the block was allocated, so it does not wait for the search
            // of another PE.
            let stack = stack.filter(|_| allocation.is_none());
            wait.search = stack.map(|stack| Search {
                stack,
                since: nanoseconds(),
                is_over: false,
            });
            (wait.search, allocation)
        });
        let Some((search, allocation)) = begun else {
            return;
        };

        let counted = Arc::clone(&links.threads);
        location::in_other_thread(move || {
            let by_peer = search.and_then(machine::place_found_by_peer);
            let called_at = by_peer.unwrap_or_else(|| {
                rushmem_system::log::debug!(
                    wait = number,
                    "this PE searches for the place of a call"
                );
                call.locate().map(|place| place.to_string())
            });
            let allocated_at = allocation.and_then(|stack| location::locate_on_stack(&stack));

            change_wait(links, number, |wait| {
                wait.called_at = called_at;
                wait.allocated_at = allocated_at.map(|place| place.to_string());
                wait.search = search.map(|search| Search {
                    is_over: true,
                    ..search
                });
            });
            drop(counted);
        });
    }

    /// Writes what the thread waits for now.
    pub(crate) fn set_subject(&self, subject: AwaitedObject) {
        change_wait(self.links, self.number, |wait| wait.subject = subject);
    }
}

impl Drop for ShownWait {
    fn drop(&mut self) {
        change(self.links, |written| {
            written.waits.retain(|one| one.number != self.number);
            // The thread may issue new operations.
            written.in_flight = None;
        });
    }
}

/// Adds to the status a wait that began at `since`, in nanoseconds, and ends by itself after
/// `limit`, if it has one.
#[cold]
pub fn show(
    links: &'static Links,
    since: u64,
    limit: Option<Duration>,
    call: Call,
    subject: AwaitedObject,
) -> ShownWait {
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let wait = Wait {
        thread,
        call: call.to_string(),
        called_at: None,
        search: None,
        allocated_at: None,
        since,
        limit: limit.map(|limit| limit.as_nanos() as u64),
        subject,
    };
    change(links, |written| {
        written.count += 1;
        let number = written.count;
        written.waits.push(NumberedWait { number, wait });
        ShownWait { links, number }
    })
}

/// Has each wait show where in the program it is, once it has lasted for a second.
pub fn locate_waits(links: &Links) {
    lock(&links.status).located = LOCATED_OBSERVED;
}

/// Returns true if a wait that has lasted this long must now show where in the program it is. Then
/// also doubles the duration for later waits, unless it is [`LOCATED_OBSERVED`].
pub(crate) fn begin_locating(links: &Links, lasted: Duration) -> bool {
    let mut written = lock(&links.status);
    let is_long = lasted >= written.located;
    if is_long && written.located != LOCATED_OBSERVED {
        written.located *= 2;
    }
    is_long
}

/// Changes a wait in the status. Returns `None`, and changes nothing, if the wait has ended.
fn change_wait<R>(links: &Links, number: u64, change: impl FnOnce(&mut Wait) -> R) -> Option<R> {
    let mut written = lock(&links.status);
    let found = written.waits.iter_mut().find(|one| one.number == number)?;
    let result = change(&mut found.wait);
    write(links, &written);
    Some(result)
}

/// Writes to the status which operations are in flight over the network. Returns true if there are
/// any, so that the status must be updated soon.
pub(crate) fn show_in_flight(links: &Links) -> bool {
    if !links.network.is_open() {
        return false;
    }

    let in_flight = links.endpoints.in_flight().map(|by_pe| InFlight {
        n: by_pe.values().sum(),
        targets: by_pe.keys().take(MAX_LISTED).map(|pe| pe.0).collect(),
        more: by_pe.len() > MAX_LISTED,
    });
    let is_any = in_flight.as_ref().is_some_and(|in_flight| in_flight.n > 0);
    change(links, |written| written.in_flight = in_flight);
    is_any
}
