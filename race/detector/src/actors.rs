//! The actors that make accesses: the threads of PEs, and operations in flight.
//!
//! An operation in flight is not of the thread that has issued it, since nothing of that thread
//! waits for it until a quiet. Those of one context to one PE are one actor, which a fence orders;
//! those that a signal follows are one for each signal, since the signal covers them alone; gets,
//! and what atomic operations fetch, are another one, which a quiet alone completes.

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

    /// Returns the actor of a number.
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
    /// 0 until the thread is known.
    pub actor: Actor,
    /// The vector clock of the actor. Its own entry is the epoch of its next access.
    pub clock: VectorClock,
    /// Its number, in the order of the first accesses.
    pub number: u32,
    /// The clock before its sections, and the joined clocks of those that are done.
    pub before_tasks: Option<Box<(Thread, VectorClock)>>,
    /// Pages with bits of an epoch of this actor, and the epoch.
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

    /// Begins a new epoch: others that have this clock do not know of what comes now.
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
    /// Who knows this epoch of the actor knows all that the thread did.
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
    /// The last one.
    pub last: Epoch,
    /// The last one before the last fence of each thread, and the thread's epoch then.
    fences: Vec<(Epoch, Actor, Epoch)>,
}

impl Flight {
    /// Returns those of an entry, which are of `who` if there are none yet.
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
    /// Words whose values the next quiet brings, and their PEs.
    pub fetched: HashSet<(u32, u64)>,
}

/// Fences of one thread that are remembered.
const FENCES: usize = 8;
/// Signals to one PE that are distinguished.
const MAX_SIGNALS: usize = 64;

impl ContextFlights {
    /// Returns the state of context `ctx`, without operations in flight.
    pub fn new(ctx: u64) -> ContextFlights {
        ContextFlights { is_default: ctx == 0, ..ContextFlights::default() }
    }

    /// Puts to a PE that `signal` follows, or none.
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

    /// Gets from a PE.
    pub fn gets(&mut self, areas: &SharedAreas, me: u32, pe: u32) -> Option<&mut Flight> {
        let (role, on_context) = (ActorRole::Fetching, !self.is_default);
        Flight::find(self.gets.entry(pe), areas, Who { pe: me, role, on_context })
    }

    /// Returns what fences have ordered of the puts to a PE: those of which `clock` knows.
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
            // Other threads may know of an earlier one alone.
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
