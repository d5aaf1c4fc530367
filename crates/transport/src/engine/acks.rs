//! Requests that are sent as messages, few of which are answered.
//!
//! What an origin requests of a PE is a stream of numbered requests. Each says after how many of
//! them it comes: at least those before the last fence. The target carries it out once these are,
//! in whatever order the messages arrive ([`carried_out`](super::target)), and counts what it
//! has carried out. This count is part of the next message that it sends to that PE anyway
//! ([`acks`](super::acks)). It travels alone only if a request asks for it: one that finds half of
//! the window in use, or one that does nothing else, which an origin sends before it waits.
//!
//! Numbers wrap around, so two that are compared are at most
//! [`MAX_IN_FLIGHT`](super::message::MAX_IN_FLIGHT) apart.

use super::message::{Ack, Stream, StreamPosition, has_reached};
use crate::peers::loss::Violation;
use crate::{Pe, PeMap, SharedPeMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The requests that one origin has issued.
pub struct IssuedRequests {
    origin: u32,
    /// The most requests to one PE that are not acknowledged.
    window: u32,
    /// Counts the fences, from 1.
    fences: u64,
    acks: Arc<AckCounts>,
    /// The number of requests to all PEs.
    all: u32,
    by_pe: PeMap<Issued>,
    /// PEs that may owe an acknowledgment, and others that have given theirs since.
    awaiting_ack: Vec<Pe>,
}

/// The requests to one PE.
#[derive(Clone, Copy, Debug, Default)]
struct Issued {
    count: u32,
    /// The count at the last fence, and the number of fences until then.
    before: u32,
    fences: u64,
    /// The last request that asks.
    last_asking: u32,
    /// It may owe an acknowledgment.
    awaits_ack: bool,
}

impl Issued {
    fn after(acked: u32) -> Issued {
        Issued { count: acked, before: acked, last_asking: acked, ..Issued::default() }
    }

    fn before_fence(&mut self, fences: u64, acked: u32) -> u32 {
        if self.fences != fences {
            self.fences = fences;
            self.before = self.count;
        }
        // Moves the count up to what is acknowledged: counts are not compared with much later ones.
        if has_reached(acked, self.before) {
            self.before = acked;
        }
        self.before
    }
}

impl IssuedRequests {
    /// Makes the record of origin number `origin` in a job of `n_pes` PEs. A former origin of this
    /// number may have used the counts.
    pub fn new(origin: u32, acks: Arc<AckCounts>, n_pes: usize, window: u32) -> IssuedRequests {
        let (all, by_pe, awaiting_ack) = (acks.all(), PeMap::new(n_pes), Vec::new());
        IssuedRequests { origin, window, fences: 1, acks, all, by_pe, awaiting_ack }
    }

    fn of(&mut self, pe: Pe) -> (&mut Issued, u32) {
        let acked = self.acks.of(pe);
        (self.by_pe.get_or_insert_with(pe, || Issued::after(acked)), acked)
    }

    /// Returns the stream to which requests of PE `me` belong.
    pub fn stream(&self, me: Pe) -> Stream {
        Stream { pe: me, origin: self.origin }
    }

    /// Returns how many requests a PE has acknowledged.
    pub fn acked(&self, pe: Pe) -> u32 {
        self.acks.of(pe)
    }

    /// Returns how many requests to a PE are not known to be carried out.
    #[inline]
    pub fn unacked(&self, pe: Pe) -> u32 {
        let acked = self.acks.of(pe);
        self.by_pe.get(pe).map_or(0, |issued| issued.count.wrapping_sub(acked))
    }

    /// Returns true if one more request to a PE would exceed the window.
    #[inline]
    pub fn is_full(&self, pe: Pe) -> bool {
        self.unacked(pe) >= self.window
    }

    /// Makes each PE carry out what follows after what was issued before.
    pub fn fence(&mut self) {
        self.fences += 1;
    }

    /// Returns how many fences there were, plus one.
    #[inline]
    pub fn fences(&self) -> u64 {
        self.fences
    }

    /// Returns true if a PE has carried out all requests before the last fence.
    pub fn is_before_fence_done(&mut self, pe: Pe) -> bool {
        let fences = self.fences;
        self.unacked(pe) == 0 || {
            let (issued, acked) = self.of(pe);
            has_reached(acked, issued.before_fence(fences, acked))
        }
    }

    /// Returns the place of the next request to a PE: after those before the last fence, or after
    /// all others if it is `ordered` or `asks`. It asks anyway if half of the window is in use and
    /// no acknowledgment is on its way.
    #[inline]
    pub fn issue(&mut self, pe: Pe, (ordered, asks): (bool, bool)) -> StreamPosition {
        let (fences, window) = (self.fences, self.window);
        self.all = self.all.wrapping_add(1);
        let (issued, acked) = self.of(pe);
        let before = issued.before_fence(fences, acked);
        let all = issued.count;
        issued.count = all.wrapping_add(1);
        let number = issued.count;
        let is_late =
            number.wrapping_sub(acked) * 2 >= window && has_reached(acked, issued.last_asking);
        let place_asks = asks || is_late;
        if place_asks {
            issued.last_asking = number;
        }
        let is_new = !std::mem::replace(&mut issued.awaits_ack, true);
        if is_new {
            self.awaiting_ack.push(pe);
        }
        let after = if ordered || place_asks { all } else { before };
        StreamPosition { number, after, asks: place_asks }
    }

    /// Returns true if a request that asks must follow, so that the target acknowledges all of
    /// them.
    pub fn must_ask(&self, pe: Pe) -> bool {
        self.by_pe.get(pe).is_some_and(|issued| {
            issued.count != self.acks.of(pe) && issued.last_asking != issued.count
        })
    }

    /// Returns true if some request is not known to be carried out.
    pub fn any_unacked(&self) -> bool {
        self.acks.all() != self.all
    }

    /// Returns true if a PE may owe an acknowledgment.
    pub fn awaits_ack_of(&self, pe: Pe) -> bool {
        self.by_pe.get(pe).is_some_and(|issued| issued.awaits_ack)
    }

    /// Returns the PEs that may owe an acknowledgment.
    pub fn awaiting_ack(&self) -> &[Pe] {
        &self.awaiting_ack
    }

    /// Records that a PE has acknowledged all requests, as the caller has seen.
    pub fn mark_acked(&mut self, pe: Pe) {
        if std::mem::take(&mut self.of(pe).0.awaits_ack)
            && let Some(at) = self.awaiting_ack.iter().rposition(|other| *other == pe)
        {
            self.awaiting_ack.swap_remove(at);
        }
    }
}

/// Counts of neighboring PEs that share an allocation.
const TOGETHER: usize = 64;

/// The counts of the requests of one origin that were acknowledged, by PE.
#[derive(Debug)]
pub struct AckCounts {
    by_pe: SharedPeMap<AtomicU32, TOGETHER>,
    all: AtomicU32,
}

impl AckCounts {
    /// Returns how many requests a PE has acknowledged; their effects are visible to the caller.
    #[inline]
    pub fn of(&self, pe: Pe) -> u32 {
        self.by_pe.get(pe).map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Returns how many all PEs together have acknowledged.
    pub fn all(&self) -> u32 {
        self.all.load(Ordering::Acquire)
    }

    /// Records the count of a PE. An older one, which may come later, changes nothing.
    ///
    /// # Errors
    /// When there is no such PE.
    pub fn acknowledge(&self, pe: Pe, count: u32) -> Result<(), Violation> {
        let acked = self.by_pe.get_or_default(pe).ok_or(Violation::Unrequested)?;
        let later = |old| (!has_reached(old, count)).then_some(count);
        if let Ok(old) = acked.fetch_update(Ordering::AcqRel, Ordering::Acquire, later) {
            self.all.fetch_add(count.wrapping_sub(old), Ordering::AcqRel);
        }
        Ok(())
    }

    /// Sets the counts as if `count` requests had been acknowledged.
    #[cfg(test)]
    pub(super) fn start_at(&self, pe: Pe, count: u32) {
        self.by_pe.get_or_default(pe).expect("a PE").store(count, Ordering::Relaxed);
    }
}

/// The acknowledgments between this PE and all others.
#[derive(Debug)]
pub struct Acks {
    /// For each PE one acknowledgment for it that was not sent: 0, or the number of an origin plus
    /// one, and its count.
    unsent: SharedPeMap<AtomicU64, TOGETHER>,
    /// The acknowledgments that this PE's origins have received, by the origins' numbers.
    origins: RwLock<Vec<Arc<AckCounts>>>,
}

impl Acks {
    /// In a job of `n_pes` PEs.
    pub fn new(n_pes: u32) -> Acks {
        Acks { unsent: SharedPeMap::new(n_pes as usize), origins: RwLock::default() }
    }

    /// Returns how many PEs there are.
    pub fn n_pes(&self) -> usize {
        self.unsent.n_pes()
    }

    /// Adds an origin. Returns its number and the counts that it receives.
    pub fn origin(&self) -> (u32, Arc<AckCounts>) {
        let by_pe = SharedPeMap::new(self.n_pes());
        let counts = Arc::new(AckCounts { by_pe, all: AtomicU32::new(0) });
        let mut origins = self.origins.write().unwrap_or_else(PoisonError::into_inner);
        origins.push(Arc::clone(&counts));
        (origins.len() as u32 - 1, counts)
    }

    /// Records that this PE has carried out `count` requests of a stream: the next message to its
    /// PE acknowledges them. If another stream of that PE waits for the same, it is acknowledged
    /// when it asks.
    pub fn carried_out(&self, Stream { pe, origin }: Stream, count: u32) {
        if let Some(unsent) = self.unsent.get_or_default(pe) {
            let ack = (u64::from(origin) + 1) << 32 | u64::from(count);
            unsent.store(ack, Ordering::Release);
        }
    }

    /// Returns the acknowledgment that a message to a PE takes along.
    #[inline]
    pub fn for_message_to(&self, pe: Pe) -> Option<Ack> {
        let unsent = self.unsent.get(pe)?;
        if unsent.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ack = unsent.swap(0, Ordering::Acquire);
        let origin = ((ack >> 32) as u32).checked_sub(1)?;
        Some(Ack { origin, count: ack as u32 })
    }

    /// Records an acknowledgment of a PE.
    ///
    /// # Errors
    /// When there is no such PE or origin.
    pub fn acknowledge(&self, pe: Pe, Ack { origin, count }: Ack) -> Result<(), Violation> {
        let origins = self.origins.read().unwrap_or_else(PoisonError::into_inner);
        let counts = origins.get(origin as usize).ok_or(Violation::Unrequested)?;
        counts.acknowledge(pe, count)
    }
}

#[cfg(test)]
mod tests;
