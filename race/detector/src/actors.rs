//! The actors that make accesses: the threads of PEs, and operations in flight.
//!
//! An operation in flight is not an access of the thread that has issued it, since the thread does
//! not wait for it until a quiet. The puts and atomic operations of one context to one PE are one
//! actor, which a fence orders. Puts with a signal are one actor for each signal, since the signal
//! covers them alone. Gets, and the results of atomic operations, are another actor, which only a
//! quiet completes.

use crate::areas::{Counter, MAX_ACTORS, ShadowPlace, SharedAreas};
use crate::clock::{Actor, Epoch, VectorClock};
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// The role of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorRole {
    /// A thread, numbered in the order of the first accesses.
    Thread(u32),
    /// Puts and atomic operations in flight to a PE.
    InFlight(u32),
    /// Gets in flight.
    Fetching,
}

/// An actor of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The PE.
    pub pe: u32,
    /// The role within its PE.
    pub role: ActorRole,
    /// True if it is in flight on another context than the default one.
    pub on_context: bool,
}

impl Who {
    fn word(self) -> u64 {
        let (role, detail) = match self.role {
            ActorRole::Thread(number) => (1, number),
            ActorRole::InFlight(pe) => (2, pe),
            ActorRole::Fetching => (3, 0),
        };
        u64::from(self.pe) << 40 | u64::from(self.on_context) << 39 | role << 32 | u64::from(detail)
    }

    /// Returns the description of the actor with this number.
    pub fn find(areas: &SharedAreas, actor: Actor) -> Who {
        let word = areas.actors[usize::from(actor)].load(Relaxed);
        let role = match word >> 32 & 0x7f {
            1 => ActorRole::Thread(word as u32),
            2 => ActorRole::InFlight(word as u32),
            _ => ActorRole::Fetching,
        };
        Who { pe: (word >> 40) as u32, role, on_context: word >> 39 & 1 != 0 }
    }

    /// Returns a number for a new actor; `None` if there are too many.
    pub fn enroll(self, areas: &SharedAreas) -> Option<Actor> {
        let number = areas.counter(Counter::Actors).fetch_add(1, Relaxed) + 1;
        if number >= MAX_ACTORS as u64 {
            areas.counter(Counter::Full).store(1, Relaxed);
            return None;
        }
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
    /// Its number, in the order of the first accesses.
    pub number: u32,
    /// The thread as it was before its sections, and the joined clocks of the sections that are done.
    pub before_tasks: Option<Box<(Thread, VectorClock)>>,
    /// An epoch of this actor, and the pages that have bits of it.
    pub pages: (Epoch, Vec<ShadowPlace>),
    /// Its fences and quiets so far.
    pub fences: u32,
}

impl Thread {
    /// Returns the epoch of its next access.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.clock.of(self.actor)
    }

    /// Returns the thread and its epoch, as the first word of a record has them.
    #[inline]
    pub fn stamp(&self) -> u64 {
        u64::from(self.actor) << 48 | u64::from(self.epoch()) << 16
    }

    /// Begins a new epoch, since actors that have received this clock do not know of later accesses.
    pub fn advance(&mut self) {
        let next = self.epoch() + 1;
        self.clock.raise(self.actor, next);
    }
}

/// A thread that has ended.
pub struct EndedThread {
    /// Its actor.
    pub actor: Actor,
    /// Its number, in the order of the first accesses.
    pub number: u32,
    /// An actor that knows this epoch knows all accesses of the thread.
    pub released: Epoch,
}

thread_local! {
    /// The calling thread.
    pub static THREAD: RefCell<Thread> = RefCell::default();
}

/// Operations in flight of one kind.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Their actor.
    pub actor: Actor,
    /// The number of the last operation.
    pub last: Epoch,
    /// For each remembered fence, the last operation before it, the thread and the thread's epoch.
    fences: Vec<(Epoch, Actor, Epoch)>,
}

impl Flight {
    /// Returns the operations of an entry. If there are none, enrolls `who` as their actor.
    fn find<'a, K>(
        entry: Entry<'a, K, Flight>,
        areas: &SharedAreas,
        who: Who,
    ) -> Option<&'a mut Flight> {
        Some(match entry {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                free.insert(Flight { actor: who.enroll(areas)?, last: 0, fences: Vec::new() })
            }
        })
    }

    /// Counts an operation.
    pub fn issue(&mut self) -> Epoch {
        self.last += 1;
        self.last
    }
}

/// The operations in flight on a context.
#[derive(Default)]
pub struct ContextFlights {
    /// True if it is the default one.
    is_default: bool,
    /// By PE and signal; 0 is none.
    puts: HashMap<(u32, usize), Flight>,
    /// By PE.
    gets: HashMap<u32, Flight>,
    /// The last operations before the quiets that threads are in.
    quiets: HashMap<Actor, HashMap<Actor, Epoch>>,
    /// The words whose fetched values are complete after the next quiet, with their PEs.
    pub fetched: HashSet<(u32, u64)>,
}

/// Maximum number of remembered fences of one thread.
const FENCES: usize = 8;
/// Maximum number of signals to one PE that are distinguished.
const MAX_SIGNALS: usize = 64;

impl ContextFlights {
    /// Returns the state of context `ctx`, without operations in flight.
    pub fn new(ctx: u64) -> ContextFlights {
        ContextFlights { is_default: ctx == 0, ..ContextFlights::default() }
    }

    /// Returns the puts to a PE that the word `signal` follows; 0 stands for puts without a signal.
    pub fn puts(
        &mut self,
        areas: &SharedAreas,
        me: u32,
        pe: u32,
        signal: usize,
    ) -> Option<&mut Flight> {
        let signal = if signal == 0 { 0 } else { 1 + signal / 8 % MAX_SIGNALS };
        let (role, on_context) = (ActorRole::InFlight(pe), !self.is_default);
        Flight::find(self.puts.entry((pe, signal)), areas, Who { pe: me, role, on_context })
    }

    /// Returns the gets from a PE.
    pub fn gets(&mut self, areas: &SharedAreas, me: u32, pe: u32) -> Option<&mut Flight> {
        let (role, on_context) = (ActorRole::Fetching, !self.is_default);
        Flight::find(self.gets.entry(pe), areas, Who { pe: me, role, on_context })
    }

    /// Returns, for each actor of puts to a PE, the last operation before a fence that `clock` knows.
    pub fn fenced(&self, pe: u32, clock: &VectorClock) -> Vec<(Actor, Epoch)> {
        let to_pe = self.puts.iter().filter(|((to, _), _)| *to == pe).map(|(_, flight)| flight);
        let known = |flight: &Flight| {
            let known = flight.fences.iter().filter(|(_, by, when)| clock.of(*by) >= *when);
            Some((flight.actor, known.map(|(last, ..)| *last).max()?))
        };
        to_pe.filter_map(known).collect()
    }

    /// Returns the epoch in which a thread ordered an operation in flight by a fence.
    pub fn fenced_in(&self, (actor, epoch): (Actor, Epoch), thread: Actor) -> Option<Epoch> {
        let flight = self.puts.values().find(|flight| flight.actor == actor)?;
        let after = flight.fences.iter().filter(|(last, by, _)| *last >= epoch && *by == thread);
        after.map(|(.., when)| *when).min()
    }

    /// Records a fence of a thread.
    pub fn fence(&mut self, thread: &Thread) {
        for flight in self.puts.values_mut() {
            // Earlier fences are kept, since other threads may know only of those.
            let own = flight.fences.iter().filter(|(_, by, _)| *by == thread.actor).count();
            if own >= FENCES
                && let Some(oldest) =
                    flight.fences.iter().position(|(_, by, _)| *by == thread.actor)
            {
                flight.fences.remove(oldest);
            }
            if flight
                .fences
                .last()
                .is_none_or(|(last, by, _)| (*last, *by) != (flight.last, thread.actor))
            {
                flight.fences.push((flight.last, thread.actor, thread.epoch()));
            }
        }
    }

    /// Begins a quiet of a thread. It does not cover what other threads issue before its end.
    pub fn begin_quiet(&mut self, thread: Actor) {
        let all = self.puts.values().chain(self.gets.values());
        let issued = all.map(|flight| (flight.actor, flight.last)).collect();
        self.quiets.insert(thread, issued);
    }

    /// Records a quiet of a thread to one PE or to all: what it issued before is complete.
    pub fn quiet(&mut self, pe: Option<u32>, thread: &mut Thread) {
        let issued = self.quiets.remove(&thread.actor).unwrap_or_default();
        let puts = self.puts.iter().map(|((to, _), flight)| (*to, flight));
        let gets = self.gets.iter().map(|(from, flight)| (*from, flight));
        for (_, flight) in puts.chain(gets).filter(|(other, _)| pe.is_none_or(|pe| pe == *other)) {
            let last = issued.get(&flight.actor).copied().unwrap_or(0);
            thread.clock.raise(flight.actor, last);
        }
    }
}
