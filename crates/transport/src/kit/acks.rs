//! The counts by which targets acknowledge the requests of origins. Most counts are parts of
//! messages that are sent anyway.

use super::shared_pe_map::SharedPeMap;
use super::stream::{Stream, has_reached};
use super::violation::Violation;
use crate::Pe;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Counts of neighboring PEs that share an allocation.
const TOGETHER: usize = 64;

/// An acknowledgment: how many requests of a stream its target has carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The origin of the stream.
    pub origin: u32,
    /// The number of requests that the target has carried out.
    pub count: u32,
}

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
