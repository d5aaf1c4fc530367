//! The numbers of requests, and their acknowledgments.
//!
//! The requests of an origin to a PE are a numbered stream. Each request names the number after
//! which it is to be carried out, at least the last one before the last fence. The target carries
//! requests out in that order, whatever the order in which the messages arrive
//! ([`target`](super::target)), and counts them. Its next message to the origin's PE includes the
//! count of the stream that it served last. The target sends a message for the acknowledgment alone
//! only if a request asks for it: a request that finds half of the window in use asks, and so does
//! a batch or an empty request that an origin sends to complete the requests before it or, over a
//! wire that orders everything, the writes before it; and a lone put, if the one before it was
//! completed.
//!
//! Numbers wrap around. Two that are compared are at most
//! [`MAX_IN_FLIGHT`](super::message::MAX_IN_FLIGHT) apart.

use super::message::{Ack, Stream, StreamPosition, has_reached};
use crate::peers::loss::Violation;
use crate::{Pe, PeMap, SharedPeMap};
use rushmem_system::lock::{read, write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// The requests that one origin has issued.
pub struct IssuedRequests {
    origin: u32,
    /// Maximum number of unacknowledged requests to one PE, besides one that is sent to have them
    /// acknowledged.
    window: u32,
    /// The number of fences plus one.
    fences: u64,
    acks: Arc<AckCounts>,
    /// The number of requests issued to all PEs together.
    all: u32,
    by_pe: PeMap<Issued>,
    /// The PEs to which requests were issued since they were last found to have acknowledged all.
    awaiting_ack: Vec<Pe>,
}

/// The requests issued to one PE.
#[derive(Clone, Copy, Debug, Default)]
struct Issued {
    count: u32,
    /// The number of the last request before the last fence, or of a later one that was
    /// acknowledged. [`before_fence`](Issued::before_fence) updates it.
    before: u32,
    /// The value of [`IssuedRequests::fences`] at the last update of `before`; 0 at first.
    fences: u64,
    /// The number of the last request that asks for an acknowledgment.
    last_asking: u32,
    /// The PE is in [`awaiting_ack`](IssuedRequests::awaiting_ack).
    awaits_ack: bool,
}

impl Issued {
    /// Returns the state after `acked` requests, all of which the PE has acknowledged.
    fn after(acked: u32) -> Issued {
        Issued {
            count: acked,
            before: acked,
            last_asking: acked,
            ..Issued::default()
        }
    }

    /// Returns the number after which a request is to be carried out: that of the last request
    /// before the last fence, or of a later one that was acknowledged.
    fn before_fence(&mut self, fences: u64, acked: u32) -> u32 {
        if self.fences != fences {
            self.fences = fences;
            self.before = self.count;
        }
        // Advances with the acknowledgments, so that it is never compared with a much later count.
        if has_reached(acked, self.before) {
            self.before = acked;
        }
        self.before
    }
}

/// The requests to a PE that a request to it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOrder {
    /// Those before the last fence.
    AfterFence,
    /// All earlier ones.
    AfterAll,
    /// All earlier ones; the request asks for an acknowledgment, which covers these.
    Asking,
}

impl IssuedRequests {
    /// Returns the record of origin number `origin`, without requests, in a job of `n_pes` PEs.
    pub fn new(origin: u32, acks: Arc<AckCounts>, n_pes: usize, window: u32) -> IssuedRequests {
        let all = acks.all();

        IssuedRequests {
            origin,
            window,
            fences: 1,
            acks,
            all,
            by_pe: PeMap::new(n_pes),
            awaiting_ack: Vec::new(),
        }
    }

    /// Returns the stream to which requests of PE `me` belong.
    pub fn stream(&self, me: Pe) -> Stream {
        Stream {
            pe: me,
            origin: self.origin,
        }
    }

    /// Returns the number of requests that a PE has acknowledged.
    pub fn acked(&self, pe: Pe) -> u32 {
        self.acks.acked_by(pe)
    }

    /// Returns the number of unacknowledged requests to a PE.
    #[inline]
    pub fn unacked(&self, pe: Pe) -> u32 {
        let acked = self.acks.acked_by(pe);
        self.by_pe
            .get(pe)
            .map_or(0, |issued| issued.count.wrapping_sub(acked))
    }

    /// Returns true if one more request to a PE would exceed the window.
    #[inline]
    pub fn is_full(&self, pe: Pe) -> bool {
        self.unacked(pe) >= self.window
    }

    /// Orders later requests after those issued before, for each PE.
    pub fn fence(&mut self) {
        self.fences += 1;
    }

    /// Returns the number of fences plus one.
    #[inline]
    pub fn fences(&self) -> u64 {
        self.fences
    }

    /// Returns true if a PE has carried out all requests before the last fence.
    pub fn is_before_fence_done(&mut self, pe: Pe) -> bool {
        let acked = self.acks.acked_by(pe);
        let Some(issued) = self.by_pe.get_mut(pe) else {
            return true;
        };
        has_reached(acked, issued.before_fence(self.fences, acked))
    }

    /// Numbers the next request to a PE. The request also asks for an acknowledgment if half of the
    /// window is in use and no acknowledgment that was asked for is missing.
    #[inline]
    pub fn issue(&mut self, pe: Pe, order: RequestOrder) -> StreamPosition {
        self.all = self.all.wrapping_add(1);

        let acked = self.acks.acked_by(pe);
        let issued = self.by_pe.get_or_insert_with(pe, || Issued::after(acked));
        let before = issued.before_fence(self.fences, acked);
        let previous = issued.count;
        let number = previous.wrapping_add(1);
        issued.count = number;

        // Half of the window is left for requests that are issued before the acknowledgment comes.
        let is_half_in_use = number.wrapping_sub(acked) * 2 >= self.window;
        let is_asked = !has_reached(acked, issued.last_asking);
        let asks = order == RequestOrder::Asking || is_half_in_use && !is_asked;
        if asks {
            issued.last_asking = number;
        }

        let is_new = !std::mem::replace(&mut issued.awaits_ack, true);
        if is_new {
            self.awaiting_ack.push(pe);
        }

        let follows_all = asks || order == RequestOrder::AfterAll;
        let after = if follows_all { previous } else { before };

        StreamPosition {
            number,
            after,
            asks,
        }
    }

    /// Returns true if some requests are unacknowledged and the last one does not ask for an
    /// acknowledgment.
    pub fn must_ask(&self, pe: Pe) -> bool {
        self.by_pe.get(pe).is_some_and(|issued| {
            issued.count != self.acks.acked_by(pe) && issued.last_asking != issued.count
        })
    }

    /// Returns true if any request to any PE is unacknowledged.
    pub fn any_unacked(&self) -> bool {
        self.acks.all() != self.all
    }

    /// Returns true if [`awaiting_ack`](IssuedRequests::awaiting_ack) has this PE.
    pub fn awaits_ack_of(&self, pe: Pe) -> bool {
        self.by_pe.get(pe).is_some_and(|issued| issued.awaits_ack)
    }

    /// Returns the PEs that may not have acknowledged all requests.
    pub fn awaiting_ack(&self) -> &[Pe] {
        &self.awaiting_ack
    }

    /// Removes a PE from [`awaiting_ack`](IssuedRequests::awaiting_ack), after the caller has found
    /// that the PE has acknowledged all requests.
    pub fn mark_acked(&mut self, pe: Pe) {
        let Some(issued) = self.by_pe.get_mut(pe) else {
            return;
        };
        if !std::mem::take(&mut issued.awaits_ack) {
            return;
        }

        // From the end: a quiet removes the last one first.
        let index = self.awaiting_ack.iter().rposition(|other| *other == pe);
        if let Some(index) = index {
            self.awaiting_ack.swap_remove(index);
        }
    }
}

/// For one origin, the number of requests that each PE has acknowledged.
///
/// The thread that receives an acknowledgment may not be the one that uses the origin. It writes
/// the counts with release order, and the origin's thread reads them with acquire order, so that
/// what the receiving thread has seen or stored before the acknowledgment, such as results of these
/// requests, is visible to a call that the count ends. Updates acquire, too: a thread that raises a
/// count passes on what another one has published by an earlier count.
#[derive(Debug)]
pub struct AckCounts {
    by_pe: SharedPeMap<AtomicU32>,
    /// The total over all PEs, modulo 2^32. It is raised after the count of a PE.
    all: AtomicU32,
}

impl AckCounts {
    /// Returns the number of requests that a PE has acknowledged. The effects of these requests are
    /// visible to the caller.
    #[inline]
    pub fn acked_by(&self, pe: Pe) -> u32 {
        self.by_pe
            .get(pe)
            .map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Returns the total of acknowledged requests over all PEs, modulo 2^32.
    pub fn all(&self) -> u32 {
        self.all.load(Ordering::Acquire)
    }

    /// Records the count of a PE. Counts may arrive out of order; an older one changes nothing.
    ///
    /// # Errors
    /// When there is no such PE.
    pub fn acknowledge(&self, pe: Pe, count: u32) -> Result<(), Violation> {
        let acked = self
            .by_pe
            .get_or_insert_with(pe, Default::default)
            .ok_or(Violation::Unrequested)?;

        let raised = acked.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
            if has_reached(old, count) {
                None
            } else {
                Some(count)
            }
        });
        if let Ok(old) = raised {
            // After the count of the PE: a thread that finds the total complete also finds all
            // counts complete.
            self.all
                .fetch_add(count.wrapping_sub(old), Ordering::AcqRel);
        }
        Ok(())
    }

    /// Sets the count of a PE as if it had acknowledged `count` requests.
    #[cfg(test)]
    pub(super) fn set_acked(&self, pe: Pe, count: u32) {
        self.by_pe
            .get_or_insert_with(pe, Default::default)
            .expect("a PE")
            .store(count, Ordering::Relaxed);
    }
}

/// The acknowledgments between this PE and all others.
#[derive(Debug)]
pub struct Acks {
    /// For each PE, the acknowledgment that the next message to it includes: 0 if there is none,
    /// otherwise the number of the origin plus one in the upper half, and the count in the lower.
    /// It is stored with release order once the requests are carried out, and taken with acquire
    /// order by the thread that sends the message, so that their effects come before it.
    unsent: SharedPeMap<AtomicU64>,
    /// The counts that this PE's origins have received, by the numbers of the origins.
    origins: RwLock<Vec<Arc<AckCounts>>>,
}

impl Acks {
    /// Returns the acknowledgments of a PE in a job of `n_pes` PEs.
    pub fn new(n_pes: u32) -> Acks {
        Acks {
            unsent: SharedPeMap::new(n_pes as usize),
            origins: RwLock::default(),
        }
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.unsent.n_pes()
    }

    /// Adds an origin. Returns its number and its acknowledged requests.
    pub fn add_origin(&self) -> (u32, Arc<AckCounts>) {
        let by_pe = SharedPeMap::new(self.n_pes());
        let counts = Arc::new(AckCounts {
            by_pe,
            all: AtomicU32::new(0),
        });

        let mut origins = write(&self.origins);
        origins.push(Arc::clone(&counts));
        (origins.len() as u32 - 1, counts)
    }

    /// Records that this PE has carried out `count` requests of a stream, for the next message to
    /// the stream's PE. Only one stream of each PE is remembered; others are acknowledged when they
    /// ask.
    pub fn mark_carried_out(&self, Stream { pe, origin }: Stream, count: u32) {
        if let Some(unsent) = self.unsent.get_or_insert_with(pe, Default::default) {
            let ack = (u64::from(origin) + 1) << 32 | u64::from(count);
            unsent.store(ack, Ordering::Release);
        }
    }

    /// Removes and returns the acknowledgment that a message to a PE is to include.
    #[inline]
    pub fn for_message_to(&self, pe: Pe) -> Option<Ack> {
        let unsent = self.unsent.get(pe)?;
        // Most messages find none, and a load costs less than a swap. One that another thread has
        // just stored is left to the next message.
        if unsent.load(Ordering::Relaxed) == 0 {
            return None;
        }

        let ack = unsent.swap(0, Ordering::Acquire);
        let origin = ((ack >> 32) as u32).checked_sub(1)?;
        Some(Ack {
            origin,
            count: ack as u32,
        })
    }

    /// Records an acknowledgment that a PE has sent.
    ///
    /// # Errors
    /// When there is no such PE or origin.
    pub fn acknowledge(&self, pe: Pe, Ack { origin, count }: Ack) -> Result<(), Violation> {
        let origins = read(&self.origins);
        let counts = origins.get(origin as usize).ok_or(Violation::Unrequested)?;
        counts.acknowledge(pe, count)
    }
}

#[cfg(test)]
mod tests;
