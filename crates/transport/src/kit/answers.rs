//! Requests that are sent as messages, few of which are answered.
//!
//! What an endpoint asks of a PE is a stream of numbered requests. Each says after how many of them it comes: at least those
//! before the last fence. The target carries it out once these are, in whatever order the messages come, and counts what it has
//! carried out. This count rides on the next message that it sends to that PE anyway. It travels alone only when a request asks for
//! it: one that finds half of the window in use, or one that does nothing else, which an origin sends before it waits.
//!
//! Numbers wrap around, so two that are compared are at most [`MOST`] apart. This file must never know what a request is, nor how
//! a message travels.

use crate::Pe;
use crate::kit::shared_pe_map::SharedPeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// No origin has more requests of a stream on their way.
pub const MOST: u32 = 1 << 16;

/// Whether a count has come to another one.
fn has_reached(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 >= 0
}

/// What identifies a stream at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// Who asks.
    pub pe: Pe,
    /// Which of its origins.
    pub origin: u32,
}

/// How many requests of a stream a target has carried out, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The origin whose stream it is.
    pub origin: u32,
    /// How many.
    pub count: u32,
}

/// The place of a request in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number; the first is 1.
    pub number: u32,
    /// So many are carried out before it.
    pub after: u32,
    /// The target tells its count when it is carried out.
    pub asks: bool,
}

/// What an origin has asked of one PE. The counts that it takes as `told` come from [`ToldCounts`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    issued: u32,
    /// How many there were at the last fence, of which there had been so many.
    before: u32,
    fences: u32,
    /// The last that asked.
    asked: u32,
}

impl Asked {
    /// What was asked by an origin of which a target told this count, and owes nothing.
    pub fn after(told: u32) -> Asked {
        Asked { issued: told, before: told, asked: told, fences: 0 }
    }

    /// How many are not known to be carried out.
    #[inline]
    pub fn unanswered(&self, told: u32) -> u32 {
        self.issued.wrapping_sub(told)
    }

    /// How many there were before the last of so many fences.
    #[inline]
    pub fn before_fence(&mut self, fences: u32, told: u32) -> u32 {
        if self.fences != fences {
            self.fences = fences;
            self.before = self.issued;
        }
        // What is known to be carried out is not compared with what follows much later.
        if has_reached(told, self.before) {
            self.before = told;
        }
        self.before
    }

    /// Whether what was asked before the last of so many fences is carried out.
    pub fn is_before_fence_done(&mut self, fences: u32, told: u32) -> bool {
        has_reached(told, self.before_fence(fences, told))
    }

    /// The place of the next request: behind those before the last of so many fences, or behind all others if it is `ordered` or
    /// `asks`. It asks anyhow if half of the window is in use and no answer is on its way.
    #[inline]
    pub fn place(
        &mut self,
        fences: u32,
        told: u32,
        window: u32,
        (ordered, asks): (bool, bool),
    ) -> Place {
        let before = self.before_fence(fences, told);
        let all = self.issued;
        self.issued = all.wrapping_add(1);
        let number = self.issued;
        let is_late = self.unanswered(told) * 2 >= window && has_reached(told, self.asked);
        let asks = asks || is_late;
        if asks {
            self.asked = number;
        }
        Place { number, after: if ordered || asks { all } else { before }, asks }
    }

    /// Whether a request that asks has to follow, so that the target tells when all are carried out.
    pub fn must_ask(&self, told: u32) -> bool {
        self.issued != told && self.asked != self.issued
    }
}

/// Counts of neighboring PEs that share an allocation.
const TOGETHER: usize = 64;

/// What targets have told one origin, by PE.
#[derive(Debug)]
pub struct ToldCounts {
    by_pe: SharedPeMap<AtomicU32, TOGETHER>,
    all: AtomicU32,
}

impl ToldCounts {
    /// How many requests a PE has carried out; what they did is visible to whoever is told so.
    #[inline]
    pub fn by(&self, pe: Pe) -> u32 {
        self.by_pe.get(pe).map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// How many all PEs together have carried out.
    pub fn all(&self) -> u32 {
        self.all.load(Ordering::Acquire)
    }

    /// A PE tells its count. An older one, which may come later, changes nothing.
    pub fn tell(&self, pe: Pe, count: u32) {
        let Some(told) = self.by_pe.get_or_default(pe) else { return };
        let later = |old| (!has_reached(old, count)).then_some(count);
        if let Ok(old) = told.fetch_update(Ordering::AcqRel, Ordering::Acquire, later) {
            self.all.fetch_add(count.wrapping_sub(old), Ordering::AcqRel);
        }
    }
}

/// The counts between this PE and all others: those that it will tell, and those that it was told.
#[derive(Debug)]
pub struct Answers {
    /// For each PE one answer for it that was not told: 0, or the number of an origin, plus one, and its count.
    untold: SharedPeMap<AtomicU64, TOGETHER>,
    /// By the number of the origin.
    origins: RwLock<Vec<Arc<ToldCounts>>>,
}

impl Answers {
    /// In a job of so many PEs.
    pub fn new(n_pes: u32) -> Answers {
        Answers { untold: SharedPeMap::new(n_pes as usize), origins: RwLock::default() }
    }

    /// How many PEs there are.
    pub fn n_pes(&self) -> usize {
        self.untold.n_pes()
    }

    /// One more origin: its number, and what it is told.
    pub fn origin(&self) -> (u32, Arc<ToldCounts>) {
        let told =
            Arc::new(ToldCounts { by_pe: SharedPeMap::new(self.n_pes()), all: AtomicU32::new(0) });
        let mut origins = self.origins.write().unwrap_or_else(PoisonError::into_inner);
        origins.push(Arc::clone(&told));
        (origins.len() as u32 - 1, told)
    }

    /// This PE has carried out so many requests of a stream: the next message there will tell. If other streams of that PE have
    /// news, too, theirs is told when they ask.
    pub fn carried_out(&self, Stream { pe, origin }: Stream, count: u32) {
        if let Some(untold) = self.untold.get_or_default(pe) {
            let answer = (u64::from(origin) + 1) << 32 | u64::from(count);
            untold.store(answer, Ordering::Release);
        }
    }

    /// What a message that goes to a PE now is to tell.
    #[inline]
    pub fn for_message_to(&self, pe: Pe) -> Option<Answer> {
        let untold = self.untold.get(pe)?;
        if untold.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let answer = untold.swap(0, Ordering::Acquire);
        let origin = ((answer >> 32) as u32).checked_sub(1)?;
        Some(Answer { origin, count: answer as u32 })
    }

    /// A PE tells a count. One for an origin that there is not is nobody's.
    pub fn tell(&self, pe: Pe, Answer { origin, count }: Answer) {
        let origins = self.origins.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = origins.get(origin as usize) {
            told.tell(pe, count);
        }
    }
}

/// What a target does with a request that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It carries the request out.
    Now,
    /// It [keeps](Carried::keep) the request: others come first.
    Later,
    /// It forgets the request, which no origin sent.
    Never,
}

/// What a target has carried out of one stream. `T` is a request that came early.
#[derive(Debug)]
pub struct Carried<T> {
    /// All up to this one are.
    count: u32,
    /// Some behind it are, too.
    beyond: Vec<u32>,
    early: Vec<(Place, T)>,
}

impl<T> Default for Carried<T> {
    fn default() -> Carried<T> {
        Carried { count: 0, beyond: Vec::new(), early: Vec::new() }
    }
}

impl<T> Carried<T> {
    /// How many are carried out, without a gap.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What to do with a request.
    #[inline]
    pub fn turn(&self, Place { number, after, .. }: Place) -> Turn {
        let ahead = number.wrapping_sub(self.count);
        let is_new = (1..=MOST).contains(&ahead) && !self.beyond.contains(&number);
        match is_new && has_reached(number.wrapping_sub(1), after) {
            false => Turn::Never,
            true if has_reached(self.count, after) => Turn::Now,
            true => Turn::Later,
        }
    }

    /// Keeps a request that is to be carried out later.
    pub fn keep(&mut self, place: Place, request: T) {
        if self.early.iter().all(|(other, _)| other.number != place.number) {
            self.early.push((place, request));
        }
    }

    /// A request is carried out.
    #[inline]
    pub fn carried_out(&mut self, number: u32) {
        if number != self.count.wrapping_add(1) {
            return self.beyond.push(number);
        }
        self.count = number;
        while let Some(next) = self.beyond.iter().position(|n| *n == self.count.wrapping_add(1)) {
            self.beyond.swap_remove(next);
            self.count = self.count.wrapping_add(1);
        }
    }

    /// A request that was kept, whose turn has come.
    #[inline]
    pub fn take_early(&mut self) -> Option<T> {
        let count = self.count;
        let next = self.early.iter().position(|(place, _)| has_reached(count, place.after))?;
        Some(self.early.swap_remove(next).1)
    }
}

#[cfg(test)]
mod tests;
