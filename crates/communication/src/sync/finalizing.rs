//! Ends the job if a thread waits for PEs that are in finalize and so can never end its wait.
//!
//! A PE in finalize waits there for all PEs and enters no other collective. So another PE would
//! wait forever in a collective that this PE has not entered. Each PE publishes how many finalizes
//! it has entered, and its status then says how many collectives it has entered on each team.
//! Neither changes until all PEs are in finalize, so the conclusion holds however slow or stopped a
//! PE is. A wait that only PEs in finalize could end is also hopeless if they have no operations in
//! flight and the wait still goes on after this PE has seen that. Only waits that have lasted long
//! are examined.

use crate::links::Links;
use crate::net::flags::FlagArea;
use crate::status::WaitDescription;
use rushmem_explain::status::{AwaitedObject, Collective, Members, Status};
use rushmem_explain::{ranges, status_slot};
use rushmem_pe::call::thread;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_THREAD_SINGLE;
use rushmem_pe::job::Job;
use rushmem_pe::process::time::nanoseconds;
use rushmem_transport::Pe;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// The time between two checks of the PEs for which a thread waits. A check may read statuses over
/// the network, and a wait that cannot end is reported after one or two of these times.
pub const PERIOD: Duration = Duration::from_millis(500);
/// Maximum number of members of a team that one check reads, so that a check of a large team stays
/// short. The next check goes on with the members after them.
const MAX_MEMBERS: u32 = 64;

/// Publishes in `area`, that of the calling PE, that it enters finalize. The caller has written the
/// status of the PE before.
pub fn enter(job: &Job, area: &FlagArea) {
    let finalizes = area.areas().finalizes();
    // Finalize is a collective, so no other thread changes the number meanwhile.
    area.release(job.me, finalizes, area.flag(finalizes) + 1);
}

/// The checks that a waiting thread makes of the PEs for which it waits.
#[derive(Debug, Default)]
pub struct PeerCheck {
    /// The time of the next check, in nanoseconds; `None` until a call schedules it.
    next_check: Option<u64>,
    /// The index of the member with which the next check of a team begins.
    first: u32,
    /// True if the last check found that no PE can end the wait any more. A store that a PE made
    /// before may have ended it meanwhile, so the wait is examined once more.
    is_hopeless: bool,
}

/// A wait that no PE can end any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndlessWait<'a> {
    /// For a collective that these PEs in finalize have not entered.
    Collective(&'a Collective, Vec<u32>),
    /// For a lock that this PE in finalize holds.
    Lock(u32),
    /// For a message of this PE in finalize.
    Message(u32),
    /// For words that only PEs in finalize could write.
    Words,
}

impl PeerCheck {
    /// Returns true if the thread must test once more whether its wait is over, before it sleeps.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.is_hopeless
    }

    /// Checks the PEs for which this thread waits, if a check is due, and ends the job with an
    /// error if none of them can end the wait. The caller has just found that the wait goes on.
    /// Returns true if a check was made, which may have used the network.
    pub(crate) fn check(&mut self, links: &Links, describe: impl Fn() -> WaitDescription) -> bool {
        let now = nanoseconds();
        let next = *self
            .next_check
            .get_or_insert(now + PERIOD.as_nanos() as u64);
        if now < next && !self.is_hopeless {
            return false;
        }
        // The next call schedules the check after this one.
        self.next_check = None;

        let WaitDescription { call, subject } = describe();
        if let Some(endless) = self.examine(links, &subject) {
            endless.fail(call, &links.job);
        }
        true
    }

    /// Examines a wait that goes on, as the PE that has `links`. Returns why no PE can end it any
    /// more. If that does not follow from the collectives which PEs have entered, it is returned
    /// only if the last examination has found it, too.
    pub fn examine<'a>(
        &mut self,
        links: &Links,
        subject: &'a AwaitedObject,
    ) -> Option<EndlessWait<'a>> {
        if let AwaitedObject::Collective(collective) = subject
            && let Some(missing) = self.missing_members(links, collective)
        {
            return Some(EndlessWait::Collective(collective, missing));
        }

        let is_hopeless = match subject {
            AwaitedObject::Message { from: pe }
            | AwaitedObject::Lock {
                behind: Some(pe), ..
            }
            | AwaitedObject::Collective(Collective {
                awaited: Some(pe), ..
            }) => is_done(links, Pe(*pe)),
            AwaitedObject::Words(_) => nobody_writes(links),
            _ => false,
        };
        // Twice: before the first time, a PE may have ended the wait by its last store.
        let was_hopeless = std::mem::replace(&mut self.is_hopeless, is_hopeless);
        if !is_hopeless || !was_hopeless {
            return None;
        }

        match subject {
            AwaitedObject::Message { from } => Some(EndlessWait::Message(*from)),
            AwaitedObject::Lock { behind, .. } => behind.map(EndlessWait::Lock),
            AwaitedObject::Collective(collective) => {
                let done = done_members(links, collective);
                Some(EndlessWait::Collective(collective, done))
            }
            _ => Some(EndlessWait::Words),
        }
    }

    /// Returns the members of a collective that are in finalize and have not entered the
    /// collective, if there are any. Reads the status of the awaited member, or those of the next
    /// [`MAX_MEMBERS`] members.
    fn missing_members(&mut self, links: &Links, collective: &Collective) -> Option<Vec<u32>> {
        let job = &links.job;
        let Collective {
            number,
            nth,
            awaited,
            ..
        } = collective;
        let is_missing = |pe: &Pe| {
            let status = finalizing(links, *pe);
            let Some(finalizing) = status.and_then(|status| status.finalizing) else {
                return false;
            };

            // If the PE has no entry for the team, the team was destroyed, which all its members do
            // after this collective.
            let of_team = finalizing.entered.iter().find(|(other, _)| other == number);
            of_team.is_some_and(|(_, entered)| entered < nth)
        };

        let n = size(&collective.members);
        let members: Vec<Pe> = match awaited {
            Some(pe) => vec![Pe(*pe)],
            None => (0..n.min(MAX_MEMBERS))
                .filter_map(|i| member(&collective.members, (self.first + i) % n))
                .filter(|pe| *pe != job.me)
                .collect(),
        };
        self.first = (self.first + MAX_MEMBERS) % n.max(1);

        if !members.iter().any(is_missing) {
            return None;
        }

        // The message lists the first members that are missing, besides those that were found now.
        let mut missing: Vec<Pe> = first_others(job, collective).chain(members).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(is_missing);
        Some(missing.iter().map(|pe| pe.0).collect())
    }
}

impl EndlessWait<'_> {
    /// Ends the job with an error: this wait of `call` cannot end.
    fn fail(self, call: Call, job: &Job) -> ! {
        match self {
            EndlessWait::Collective(collective, pes) => fail!(
                call,
                "the PEs of the team or active set are not all in the same collective: PE {} in {call}; {} in \
                 shmem_finalize; all members of {} must call it before shmem_finalize",
                job.me,
                ranges::pes(&pes),
                collective.team
            ),
            EndlessWait::Lock(pe) => fail!(
                call,
                "PE {pe} holds the lock and is in shmem_finalize; call shmem_clear_lock before that"
            ),
            EndlessWait::Message(pe) => fail!(
                call,
                "PE {pe} is in shmem_finalize; all members of a new team must make it before that"
            ),
            EndlessWait::Words => fail!(
                call,
                "all other PEs are in shmem_finalize, and none of them has written what this PE waits for; look for \
                 the put or signal that is missing, or went to another PE or element"
            ),
        }
    }
}

/// Returns the status of a PE if it is in a finalize that this PE has not entered.
fn finalizing(links: &Links, pe: Pe) -> Option<Status> {
    let area = &links.area;
    let finalizes = area.areas().finalizes();
    let entered = area.words_of(std::iter::once(pe), finalizes)[0];
    // The PE has written its status before it has released this number: see `enter`.
    fence(Ordering::Acquire);
    if entered <= area.flag(finalizes) {
        return None;
    }

    let slot = area.areas().status();
    let status = status_slot::read(|nbytes| Some(area.bytes_of(pe, slot, nbytes)));
    if !area.is_mapped(pe) {
        // The fetch has made this thread a poller of the network, but the caller sleeps next.
        links.network.stop_polling();
    }
    status
}

/// Returns true if a PE is in finalize and has no operations in flight.
fn is_done(links: &Links, pe: Pe) -> bool {
    let Some(status) = finalizing(links, pe) else {
        return false;
    };
    status.finalizing.is_some() && status.in_flight.is_some_and(|in_flight| in_flight.n == 0)
}

/// Returns true if no PE can write a word of this PE any more: all others are in finalize and have
/// no operations in flight, and no other thread of this PE calls the library. Returns false if some
/// PE shares no memory with this one: reading its status over the network could block, although the
/// PE has nothing to do with the wait.
fn nobody_writes(links: &Links) -> bool {
    let job = &links.job;
    let has_threads = job.thread_level != SHMEM_THREAD_SINGLE || thread::has_requests();
    // The message about a PE that is alone would speak of other PEs.
    if has_threads || job.n_pes == 1 {
        return false;
    }

    let mut others = (0..job.n_pes).map(Pe).filter(|pe| *pe != job.me);
    others.all(|pe| links.area.is_mapped(pe) && is_done(links, pe))
}

/// Returns the members of a collective that are in finalize and have no operations in flight: the
/// awaited one, and those among the first.
fn done_members(links: &Links, collective: &Collective) -> Vec<u32> {
    let done = first_others(&links.job, collective).filter(|pe| is_done(links, *pe));
    let mut pes: Vec<u32> = done.map(|pe| pe.0).chain(collective.awaited).collect();
    pes.sort_unstable();
    pes.dedup();
    pes
}

/// Returns the first [`MAX_MEMBERS`] members of a collective, without this PE.
fn first_others(job: &Job, collective: &Collective) -> impl Iterator<Item = Pe> {
    let n = size(&collective.members).min(MAX_MEMBERS);
    (0..n)
        .filter_map(|index| member(&collective.members, index))
        .filter(|pe| *pe != job.me)
}

/// Returns the number of members that a status lists.
fn size(members: &Members) -> u32 {
    match members {
        Members::Strided { n, .. } => *n,
        Members::Listed { pes, .. } => pes.len() as u32,
    }
}

fn member(members: &Members, index: u32) -> Option<Pe> {
    match members {
        Members::Strided { start, stride, .. } => {
            let pe = i64::from(*start) + i64::from(index) * i64::from(*stride);
            u32::try_from(pe).ok().map(Pe)
        }
        Members::Listed { pes, .. } => pes.get(index as usize).copied().map(Pe),
    }
}
