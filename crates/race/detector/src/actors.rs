//! The actors that make accesses: the threads of PEs, and operations in flight.
//!
//! An operation in flight is not an access of the thread that has issued it, since the thread does
//! not wait for it until a quiet. The puts and atomic operations of one context to one PE are one
//! actor, which a fence orders. Puts with a signal are one actor for each class of signals, since a
//! signal covers its put alone. The reads of the sources of non-blocking puts are actors beside
//! these, since a flush ends them alone. The gets from one PE, with the results of non-blocking
//! atomic operations, are another actor, which only a quiet completes.

use crate::areas::{Counter, MAX_ACTORS, ShadowPlace, SharedAreas};
use crate::clock::{Actor, Epoch, Stamp, VectorClock};
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// The accesses for which an actor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorRole {
    /// A thread. The threads of a PE are numbered in the order of their first accesses.
    Thread(u32),
    /// Puts and atomic operations in flight to a PE.
    InFlight(u32),
    /// Gets in flight, and results of atomic operations in flight.
    Fetching,
}

/// The description of an actor, in a table of all actors of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActorInfo {
    /// The world PE that makes the accesses.
    pub pe: u32,
    /// The accesses for which it stands.
    pub role: ActorRole,
    /// True for operations in flight on a context other than the default one.
    pub on_context: bool,
}

impl ActorInfo {
    fn word(self) -> u64 {
        let (role, detail) = match self.role {
            ActorRole::Thread(number) => (1, number),
            ActorRole::InFlight(pe) => (2, pe),
            ActorRole::Fetching => (3, 0),
        };
        u64::from(self.pe) << 40 | u64::from(self.on_context) << 39 | role << 32 | u64::from(detail)
    }

    /// Returns the description of the actor with this number.
    pub fn find(areas: &SharedAreas, actor: Actor) -> ActorInfo {
        let word = areas.actors[usize::from(actor)].load(Relaxed);
        let role = match word >> 32 & 0x7f {
            1 => ActorRole::Thread(word as u32),
            2 => ActorRole::InFlight(word as u32),
            _ => ActorRole::Fetching,
        };
        ActorInfo {
            pe: (word >> 40) as u32,
            role,
            on_context: word >> 39 & 1 != 0,
        }
    }

    /// Adds this actor to the table of the job, and returns its number. `None` if the table is
    /// full.
    pub fn enroll(self, areas: &SharedAreas) -> Option<Actor> {
        let number = areas.counter(Counter::Actors).fetch_add(1, Relaxed) + 1;
        if number >= MAX_ACTORS as u64 {
            areas.counter(Counter::Full).store(1, Relaxed);
            return None;
        }
        // Relaxed: other PEs find the number in records, which the locks of pages order.
        areas.actors[number as usize].store(self.word(), Relaxed);
        Some(number as Actor)
    }
}

/// A thread of this process, or a part of its work that another one might have done.
#[derive(Default)]
pub struct Thread {
    /// The number of its actor; 0 before its first access.
    pub actor: Actor,
    /// The vector clock of the actor. Its own entry is the epoch of its next access.
    pub clock: VectorClock,
    /// Its number among the threads of the PE, in the order of their first accesses.
    pub number: u32,
    /// What the thread has around the section in which it is; `None` outside of sections.
    pub around_section: Option<Box<AroundSection>>,
    /// The pages that have bits of this actor.
    pub marked: MarkedPages,
    /// Its fences and quiets so far.
    pub fences: u32,
    /// Its clock at its last release fence, which its relaxed atomic operations publish.
    pub at_fence: VectorClock,
    /// What its relaxed atomic operations have found, for its next acquire fence.
    pub found: VectorClock,
}

/// What a thread in a section has around the section.
pub struct AroundSection {
    /// The thread as it was before its sections.
    pub outer: Thread,
    /// The joined clocks of its sections that are done.
    pub done: VectorClock,
}

impl AroundSection {
    /// Returns the thread after its sections. Its clock then includes their accesses.
    pub fn into_outer(self) -> Thread {
        let AroundSection { mut outer, done } = self;
        outer.clock.join(&done);
        outer.advance();
        outer
    }
}

/// The pages whose bits stand for accesses of a thread.
#[derive(Default)]
pub struct MarkedPages {
    /// The last epoch of the thread that has bits.
    pub epoch: Epoch,
    /// The pages that have bits of that epoch.
    pub pages: Vec<ShadowPlace>,
}

impl Thread {
    /// Returns the epoch of its next access.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.clock.of(self.actor)
    }

    /// Returns its actor and the epoch of its next access.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp {
            actor: self.actor,
            epoch: self.epoch(),
        }
    }

    /// Begins a new epoch, so that the actors that have received this clock are not ordered after
    /// later accesses.
    pub fn advance(&mut self) {
        let next = self.epoch() + 1;
        self.clock.raise(self.actor, next);
    }

    /// Keeps the clock for the relaxed atomic operations that follow, and begins a new epoch.
    pub fn mark_fence(&mut self) {
        self.at_fence = self.clock.clone();
        self.advance();
    }
}

/// A thread that has ended.
pub struct EndedThread {
    /// Its actor, which a later thread may use, and the epoch in which it ended: an actor whose
    /// clock includes it is ordered after all accesses of the thread, but for those that
    /// destructors made later.
    pub last: Stamp,
    /// Its number among the threads of the PE, in the order of their first accesses.
    pub number: u32,
}

thread_local! {
    /// The calling thread.
    pub static THREAD: RefCell<Thread> = RefCell::default();
}

/// The operations in flight of one actor.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The number of the actor.
    pub actor: Actor,
    /// The number of the last operation.
    pub last: Epoch,
    /// The remembered fences, in their order.
    fences: Vec<Fence>,
}

/// A fence that orders operations in flight.
#[derive(Clone, Copy, Debug)]
struct Fence {
    /// The last operation before it.
    last: Epoch,
    /// The thread, and its epoch at the fence.
    by: Stamp,
}

impl Flight {
    /// Returns the operations of an entry. If there are none, enrolls `info` as their actor.
    fn find<'a, K>(
        entry: Entry<'a, K, Flight>,
        areas: &SharedAreas,
        info: ActorInfo,
    ) -> Option<&'a mut Flight> {
        match entry {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(free) => Some(free.insert(Flight {
                actor: info.enroll(areas)?,
                last: 0,
                fences: Vec::new(),
            })),
        }
    }

    /// Counts an operation. Its number is its epoch.
    pub fn issue(&mut self) -> Stamp {
        self.last += 1;
        Stamp {
            actor: self.actor,
            epoch: self.last,
        }
    }

    /// Records a fence of a thread.
    fn fence(&mut self, by: Stamp) {
        let is_own = |fence: &Fence| fence.by.actor == by.actor;

        // A fence that follows another one of the thread, without operations between them, orders
        // nothing more.
        if let Some(last) = self.fences.last()
            && is_own(last)
            && last.last == self.last
        {
            return;
        }

        // Earlier fences are kept, up to `FENCES`, since the clocks of other threads may include
        // only those.
        let n_own = self.fences.iter().filter(|fence| is_own(fence)).count();
        if n_own >= FENCES
            && let Some(oldest) = self.fences.iter().position(is_own)
        {
            self.fences.remove(oldest);
        }

        self.fences.push(Fence {
            last: self.last,
            by,
        });
    }
}

/// The operations in flight on a context.
#[derive(Default)]
pub struct ContextFlights {
    /// True if it is the default one.
    is_default: bool,
    /// Puts and atomic operations, by target PE and class of the signal; 0 is no signal. From
    /// [`SOURCES`] on, the reads of the sources of non-blocking puts of each class.
    puts: HashMap<(u32, usize), Flight>,
    /// Gets, by the PE from which they read.
    gets: HashMap<u32, Flight>,
    /// For each thread that is in a quiet or a flush: the last operation of each actor when that
    /// began.
    quiets: HashMap<Actor, HashMap<Actor, Epoch>>,
    /// The words whose fetched values are complete after the next quiet, with their PEs.
    pub fetched: HashSet<(u32, u64)>,
}

/// Maximum number of fences of one thread that a [`Flight`] remembers. Another thread whose clock
/// includes only earlier fences does not count as ordered after them. Each put and each atomic
/// operation searches the remembered fences.
const FENCES: usize = 8;
/// Maximum number of classes of signals to one PE. Each class that is used is an actor of its own,
/// which makes clocks longer. Signals of one class are not distinguished: a thread that sees one
/// counts as ordered after the puts of all earlier ones.
const MAX_SIGNALS: usize = 64;
/// The first class of the reads of sources.
const SOURCES: usize = MAX_SIGNALS + 1;

/// Returns the class of the puts with the signal at an address; without a signal it is 0.
fn class_of(signal: usize) -> usize {
    if signal == 0 {
        0
    } else {
        // Signals have eight bytes, so neighbors are in different classes.
        1 + signal / 8 % MAX_SIGNALS
    }
}

impl ContextFlights {
    /// Returns the state of context `ctx`, without operations in flight.
    pub fn new(ctx: u64) -> ContextFlights {
        ContextFlights {
            is_default: ctx == 0,
            ..ContextFlights::default()
        }
    }

    /// Returns the puts to a PE that the signal at address `signal` covers; with 0, the puts
    /// without a signal and the atomic operations. `None` if there are too many actors.
    pub fn puts(
        &mut self,
        areas: &SharedAreas,
        me: u32,
        pe: u32,
        signal: usize,
    ) -> Option<&mut Flight> {
        self.of_class(areas, me, pe, class_of(signal))
    }

    /// Returns the reads of the sources of non-blocking [`puts`](Self::puts).
    pub fn sources(
        &mut self,
        areas: &SharedAreas,
        me: u32,
        pe: u32,
        signal: usize,
    ) -> Option<&mut Flight> {
        self.of_class(areas, me, pe, SOURCES + class_of(signal))
    }

    fn of_class(
        &mut self,
        areas: &SharedAreas,
        me: u32,
        pe: u32,
        class: usize,
    ) -> Option<&mut Flight> {
        let info = ActorInfo {
            pe: me,
            role: ActorRole::InFlight(pe),
            on_context: !self.is_default,
        };
        Flight::find(self.puts.entry((pe, class)), areas, info)
    }

    /// Returns the gets from a PE; `None` if there are too many actors.
    pub fn gets(&mut self, areas: &SharedAreas, me: u32, pe: u32) -> Option<&mut Flight> {
        let info = ActorInfo {
            pe: me,
            role: ActorRole::Fetching,
            on_context: !self.is_default,
        };
        Flight::find(self.gets.entry(pe), areas, info)
    }

    /// Returns, for each actor of puts to a PE, the last operation before a fence that `clock`
    /// includes.
    pub fn fenced(&self, pe: u32, clock: &VectorClock) -> Vec<Stamp> {
        let mut fenced = Vec::new();
        for ((to, _), flight) in &self.puts {
            if *to != pe {
                continue;
            }

            let known = flight
                .fences
                .iter()
                .filter(|fence| clock.includes(fence.by));
            if let Some(last) = known.map(|fence| fence.last).max() {
                fenced.push(Stamp {
                    actor: flight.actor,
                    epoch: last,
                });
            }
        }
        fenced
    }

    /// Returns the first epoch in which a thread ordered an operation in flight by a fence.
    pub fn fenced_in(&self, operation: Stamp, thread: Actor) -> Option<Epoch> {
        let flight = self
            .puts
            .values()
            .find(|flight| flight.actor == operation.actor)?;
        let after = flight
            .fences
            .iter()
            .filter(|fence| fence.last >= operation.epoch && fence.by.actor == thread);
        after.map(|fence| fence.by.epoch).min()
    }

    /// Records a fence of a thread.
    pub fn fence(&mut self, thread: &Thread) {
        for flight in self.puts.values_mut() {
            flight.fence(thread.stamp());
        }
    }

    /// Begins a quiet of a thread. It does not cover the operations that other threads issue from
    /// now on.
    pub fn begin_quiet(&mut self, thread: Actor) {
        let all = self.puts.values().chain(self.gets.values());
        let issued = all.map(|flight| (flight.actor, flight.last)).collect();
        self.quiets.insert(thread, issued);
    }

    /// Ends a quiet of a thread to one PE or to all: the operations issued before it began are
    /// complete.
    pub fn quiet(&mut self, pe: Option<u32>, thread: &mut Thread) {
        let issued = self.quiets.remove(&thread.actor).unwrap_or_default();
        let puts = self.puts.iter().map(|((to, _), flight)| (*to, flight));
        let gets = self.gets.iter().map(|(from, flight)| (*from, flight));
        for (other, flight) in puts.chain(gets) {
            if pe.is_some_and(|pe| pe != other) {
                continue;
            }
            // An actor that is not in the list was enrolled after the quiet began.
            if let Some(last) = issued.get(&flight.actor) {
                thread.clock.raise(flight.actor, *last);
            }
        }
    }

    /// Ends a flush of a thread, of the puts to one PE or to all: the sources of those that were
    /// issued before it began may be changed.
    pub fn flush(&mut self, pe: Option<u32>, thread: &mut Thread) {
        let issued = self.quiets.remove(&thread.actor).unwrap_or_default();
        for ((to, class), flight) in &self.puts {
            if *class >= SOURCES
                && pe.is_none_or(|pe| pe == *to)
                && let Some(last) = issued.get(&flight.actor)
            {
                thread.clock.raise(flight.actor, *last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_fence_forgets_no_earlier_one() {
        let mut flight = Flight {
            actor: 2,
            last: 0,
            fences: Vec::new(),
        };
        let by = |epoch| Stamp { actor: 1, epoch };
        let last_before = |flight: &Flight| -> Vec<Epoch> {
            flight.fences.iter().map(|fence| fence.last).collect()
        };

        for epoch in 1..=FENCES as Epoch + 1 {
            flight.issue();
            flight.fence(by(epoch));
        }
        let kept: Vec<Epoch> = (2..=FENCES as Epoch + 1).collect();
        assert_eq!(last_before(&flight), kept);

        flight.fence(by(FENCES as Epoch + 2));
        assert_eq!(last_before(&flight), kept);
    }
}
