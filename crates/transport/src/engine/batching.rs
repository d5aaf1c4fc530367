//! The batches that an origin fills, one for each PE: the [`entries`] of the next request to it.
//! Where CPUs move the data, a message costs as much as a hundred small operations.
//!
//! The batch for a PE is sent
//! - when the next operation does not fit;
//! - with the next operation that only a request can carry out, and that may not wait;
//! - before any other operation to the PE that must not overtake the batch;
//! - by a fence, a quiet, and a call that waits for an operation;
//! - by the next thread that polls unfinished operations, at the latest the service thread. While a
//!   session is adding operations, only one in `LOOKS` polls of the service thread sends its
//!   batches.
//!
//! A lone operation is passed to the wire at once, so that batching does not delay it; a wire that
//! collects operations, as that of TCP, may still send it with later ones. A lone put is a write
//! or, if the wire says so, a request with this one entry. An operation is lone if the batch for
//! its PE is empty, and the origin has sent nothing small to any PE for `IDLE_AFTER`. The time
//! counts for all PEs together, since operations that are spread over many PEs are rare for each
//! single PE.
//!
//! If a quiet had to send a message of its own, the time begins at its end. So in a loop of an
//! operation and a quiet, the operation is not lone: it is batched, and one message carries the
//! batch and asks for the acknowledgment for which the quiet waits.
//!
//! In a session no operation is lone, and batches may be longer. Operations on the heaps of all PEs
//! of a node are sent to one of these PEs, the [`Proxy`], so that memory and messages grow with the
//! number of nodes. The operations that a proxy carries out for a PE are not ordered with those
//! that the PE itself carries out. So to order or complete the operations on one PE in a session
//! with proxies, the engine does so for all PEs.

use super::acks::RequestOrder;
use super::entries::{self, HEAD, MAX_ENTRIES, MAX_NBYTES, MAX_RESULTS, STRIDED_HEAD};
use super::replies::ReplyDestinations;
use crate::buffer::{Local, Way};
use crate::{
    AmoRequest, Buffer, DestBuf, Host, Pe, PeMap, Proxy, RemoteAddr, Segment, StridedBlocks, mem,
};
use std::time::{Duration, Instant};

/// The time without small operations after which the next one is lone. It is shorter than a round
/// trip, and longer than what a loop does between two operations.
pub(super) const IDLE_AFTER: Duration = Duration::from_micros(4);

/// While a session is adding operations, the service thread sends its batches once in this number
/// of polls, so that batches grow although the thread polls. The number was chosen without a
/// measurement; it bounds how long an operation is held back while its thread goes on adding.
const LOOKS: u32 = 16;

/// The number of bytes of entries, and that of their results.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntrySize {
    entries: usize,
    results: usize,
}

impl EntrySize {
    /// Returns the size of a transfer of `nbytes` bytes.
    #[inline]
    pub(super) fn of_transfer<A: Way>(nbytes: usize) -> EntrySize {
        EntrySize::with_head::<A>(HEAD, nbytes)
    }

    /// Returns the size of a transfer of blocks.
    pub(super) fn of_blocks<A: Way>(blocks: &StridedBlocks<A>) -> EntrySize {
        EntrySize::with_head::<A>(STRIDED_HEAD, blocks.n * blocks.nbytes)
    }

    #[inline]
    fn with_head<A: Way>(head: usize, nbytes: usize) -> EntrySize {
        if A::IS_PUT {
            EntrySize {
                entries: head + nbytes,
                results: 0,
            }
        } else {
            EntrySize {
                entries: head,
                results: nbytes,
            }
        }
    }

    /// Returns the size of an atomic operation, and of its old value if that is `fetched`.
    #[inline]
    pub(super) fn of_amo(request: &AmoRequest, fetched: Option<&DestBuf>) -> EntrySize {
        EntrySize {
            entries: entries::amo_nbytes(request.op),
            results: fetched.map_or(0, DestBuf::nbytes),
        }
    }

    /// Returns the size of both entries.
    #[inline]
    pub(super) fn and(self, other: EntrySize) -> EntrySize {
        EntrySize {
            entries: self.entries + other.entries,
            results: self.results + other.results,
        }
    }
}

/// The batch for one PE that has not been sent yet.
#[derive(Debug, Default)]
struct OpenBatch {
    entries: Vec<u8>,
    results: ReplyDestinations,
    n_entries: usize,
}

/// Adds entries to the batch for a PE. It copies their sources, and owns the memory for results.
pub(super) struct EntryWriter<'a> {
    open: &'a mut OpenBatch,
    /// The [place](Proxy::place) of the PE whose memory the entries access.
    place: u8,
}

impl EntryWriter<'_> {
    /// Adds a transfer.
    #[inline]
    pub(super) fn transfer<A: Way>(&mut self, remote: RemoteAddr, local: Buffer<A>) {
        self.open.n_entries += 1;
        let entries = &mut self.open.entries;
        entries::append_transfer(entries, A::IS_PUT, remote, self.place, local.nbytes());
        self.add_local(local);
    }

    /// Adds a transfer of blocks, as one entry.
    pub(super) fn strided<A: Way>(&mut self, blocks: &mut StridedBlocks<A>) {
        self.open.n_entries += 1;
        entries::append_strided(&mut self.open.entries, A::IS_PUT, self.place, blocks);
        for (_, local) in blocks.each() {
            self.add_local(local);
        }
    }

    /// Copies the data of a put behind the head of its entry, or expects the results of a get.
    #[inline]
    fn add_local<A: Way>(&mut self, mut local: Buffer<A>) {
        match A::local(&mut local) {
            Local::Source(source) => {
                source.append_to::<mem::VolatileLoads>(&mut self.open.entries);
            }
            Local::Dest(dest) => self.open.results.expect(std::mem::take(dest)),
        }
    }

    /// Adds a put of the data that are attached to the request. It is the first entry.
    pub(super) fn attached(&mut self, dest: RemoteAddr) {
        self.open.n_entries += 1;
        entries::append_attached(&mut self.open.entries, dest);
    }

    /// Adds an atomic operation, whose old value is stored at `fetched`, if that is there.
    #[inline]
    pub(super) fn amo(&mut self, request: &AmoRequest, fetched: Option<DestBuf>) {
        let OpenBatch {
            entries,
            results,
            n_entries,
        } = self.open;

        *n_entries += 1;
        entries::append_amo(entries, request, self.place, fetched.is_some());

        if let Some(fetched) = fetched {
            results.expect(fetched);
        }
    }
}

/// Maximum number of bytes of a batch, and of its results.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    pub(super) outside_session: usize,
    pub(super) in_session: usize,
}

impl BatchLimits {
    /// Returns limits that are the same in a session and outside.
    #[cfg(test)]
    fn always(limit: usize) -> BatchLimits {
        BatchLimits {
            outside_session: limit,
            in_session: limit,
        }
    }
}

/// The open batches of an origin, and the state that decides whether an operation is batched.
#[derive(Debug)]
pub(super) struct Batcher {
    by_pe: PeMap<OpenBatch>,
    /// The PEs whose batches are not empty.
    pes: Vec<Pe>,
    limits: BatchLimits,
    /// The number of contexts of the origin that are in a session.
    n_sessions: usize,
    /// True if an operation was added since the last [`skip_poll`](Batcher::skip_poll). `looks`
    /// counts the calls in a row that found this in a session.
    has_grown: bool,
    looks: u32,
    /// No operation before this time is lone: [`IDLE_AFTER`] after the last batch or lone operation
    /// was sent, or after the end of a quiet that sent a message.
    busy_until: Option<Instant>,
    /// A call has asked for the acknowledgment of requests since the last lone put that was a
    /// request.
    has_asked: bool,
    /// Returns the time.
    clock: fn() -> Instant,
    /// An unused buffer, for the next batch.
    spare: Vec<u8>,
}

/// Returns true if an operation that moves `nbytes` bytes to or from a segment may be batched.
/// Operations on the library's own flags may not, since threads wait for these flags.
#[inline]
pub(super) fn is_small(segment: Segment, nbytes: usize) -> bool {
    nbytes <= MAX_NBYTES && segment != Segment::Internal
}

impl Batcher {
    /// Returns a batcher for a job of `n_pes` PEs. `clock` returns the time.
    pub(super) fn new(n_pes: usize, limits: BatchLimits, clock: fn() -> Instant) -> Batcher {
        Batcher {
            by_pe: PeMap::new(n_pes),
            pes: Vec::new(),
            limits: BatchLimits {
                outside_session: limits.outside_session.min(MAX_ENTRIES),
                in_session: limits.in_session.min(MAX_ENTRIES),
            },
            n_sessions: 0,
            has_grown: false,
            looks: 0,
            busy_until: None,
            has_asked: false,
            clock,
            spare: Vec::new(),
        }
    }

    /// Begins or ends a session of a context. The end of the last session frees the memory of long
    /// batches.
    pub(super) fn session(&mut self, is_open: bool) {
        self.n_sessions = if is_open {
            self.n_sessions + 1
        } else {
            self.n_sessions - 1
        };

        if !self.in_session() {
            self.by_pe
                .iter_mut()
                .for_each(|open| open.entries.shrink_to_fit());
            self.spare.shrink_to_fit();
        }
    }

    /// Returns true if any context of the origin is in a session.
    #[inline]
    pub(super) fn in_session(&self) -> bool {
        self.n_sessions > 0
    }

    /// Returns true if proxies may have operations on a PE, so that ordering or completing the
    /// operations on one PE must do so for all PEs.
    pub(super) fn uses_proxies(&self, host: &dyn Host) -> bool {
        self.in_session() && !host.proxies().is_empty()
    }

    /// Returns the PE that carries out an operation on these segments of `pe` if it is batched.
    #[inline]
    pub(super) fn proxy(&self, host: &dyn Host, pe: Pe, segments: &[Segment]) -> Proxy {
        let itself = Proxy::itself(pe);
        if self.in_session() && segments.iter().all(|segment| *segment == Segment::Heap) {
            host.proxies().get(pe.index()).copied().unwrap_or(itself)
        } else {
            itself
        }
    }

    /// Returns the current maximum number of bytes of a batch.
    fn limit(&self) -> usize {
        if self.in_session() {
            self.limits.in_session
        } else {
            self.limits.outside_session
        }
    }

    /// Returns the PEs whose batches are not empty.
    #[inline]
    pub(super) fn pes(&self) -> &[Pe] {
        &self.pes
    }

    /// Returns true if the batch for a PE is not empty.
    #[inline]
    pub(super) fn has_any(&self, pe: Pe) -> bool {
        self.by_pe
            .get(pe)
            .is_some_and(|open| !open.entries.is_empty())
    }

    /// Returns the number of operations in all batches.
    pub(super) fn n_operations(&self) -> usize {
        let mut n = 0;
        for pe in &self.pes {
            n += self.by_pe.get(*pe).map_or(0, |open| open.n_entries);
        }
        n
    }

    /// Returns true if the small operation that is being issued to a PE is lone, so that no batch
    /// for the PE precedes it. The caller sends it at once, and then calls
    /// [`mark_busy`](Batcher::mark_busy).
    #[inline]
    pub(super) fn is_lone(&self, pe: Pe) -> bool {
        !self.in_session()
            && !self.has_any(pe)
            && self.busy_until.is_none_or(|until| (self.clock)() >= until)
    }

    /// Counts a poll of the service thread that finds the owner issuing operations. Returns true if
    /// the service thread should send no batches, since the owner is adding to them in a session.
    pub(super) fn skip_poll(&mut self) -> bool {
        let is_growing = std::mem::take(&mut self.has_grown) && self.in_session();
        self.looks = if is_growing {
            self.looks.wrapping_add(1)
        } else {
            0
        };
        !self.looks.is_multiple_of(LOOKS)
    }

    /// Records that a batch or a lone operation was sent, or that a quiet with a message of its own
    /// has ended: after `IDLE_AFTER` the next operation is lone.
    #[inline]
    pub(super) fn mark_busy(&mut self) {
        self.busy_until = (self.clock)().checked_add(IDLE_AFTER);
    }

    /// Records that a call, such as a quiet, asks for the acknowledgment of requests.
    pub(super) fn mark_asked(&mut self) {
        self.has_asked = true;
    }

    /// Returns the order of the request of a lone put. A program that has completed the put before
    /// probably completes this one, too. So the request asks for the acknowledgment, for which the
    /// quiet would otherwise send a message of its own. One flag serves all PEs: it decides which
    /// message asks, not whether one does.
    pub(super) fn order_of_lone_put(&mut self) -> RequestOrder {
        if std::mem::take(&mut self.has_asked) {
            RequestOrder::Asking
        } else {
            RequestOrder::AfterFence
        }
    }

    /// Returns the time of the last call of [`mark_busy`](Batcher::mark_busy).
    #[cfg(test)]
    pub(super) fn last_busy(&self) -> Option<Instant> {
        self.busy_until?.checked_sub(IDLE_AFTER)
    }

    /// Returns a number of blocks of `nbytes` bytes that fit into an empty batch as one operation,
    /// and into its results.
    pub(super) fn most_blocks(&self, nbytes: usize) -> usize {
        self.limit().min(MAX_RESULTS).saturating_sub(STRIDED_HEAD) / nbytes.max(1)
    }

    /// Returns true if the batch for a PE has room for entries of this size.
    #[inline]
    pub(super) fn has_room(&self, pe: Pe, size: EntrySize) -> bool {
        let Some(open) = self.by_pe.get(pe) else {
            return true;
        };

        let nbytes = open.entries.len() + size.entries;
        let n_results = open.results.nbytes() + size.results;
        nbytes <= self.limit() && n_results <= self.limit().min(MAX_RESULTS)
    }

    /// Returns a writer of the batch for a proxy, to which the caller adds one or more entries, for
    /// which there is room. The proxy carries them out in the order in which they are added.
    #[inline]
    pub(super) fn open(&mut self, Proxy { pe, place }: Proxy) -> EntryWriter<'_> {
        let nbytes = self.limit();

        let open = &mut self.by_pe[pe];
        if open.entries.is_empty() {
            if open.entries.capacity() == 0 {
                std::mem::swap(&mut open.entries, &mut self.spare);
            }
            open.entries.reserve(nbytes);
            self.pes.push(pe);
        }

        self.has_grown = true;
        EntryWriter { open, place }
    }

    /// Removes and returns the batch for a PE, which may be empty, and moves the destinations of
    /// its results to `results`, which is empty.
    pub(super) fn take(&mut self, pe: Pe, results: &mut ReplyDestinations) -> Vec<u8> {
        debug_assert!(results.is_empty(), "they are overwritten");
        let open = &mut self.by_pe[pe];
        open.n_entries = 0;
        std::mem::swap(&mut open.results, results);
        let entries = std::mem::take(&mut open.entries);

        if let Some(index) = self.pes.iter().rposition(|other| *other == pe) {
            self.pes.swap_remove(index);
        }

        entries
    }

    /// Keeps the buffer of a batch that was sent, for the next batch, unless that has a larger one.
    pub(super) fn give_back(&mut self, mut entries: Vec<u8>) {
        if entries.capacity() > self.spare.capacity() {
            entries.clear();
            self.spare = entries;
        }
    }

    /// Drops all batches after a loss, with the destinations of their results.
    pub(super) fn forget(&mut self) {
        for pe in self.pes.drain(..) {
            self.by_pe[pe] = OpenBatch::default();
        }
    }
}

#[cfg(test)]
mod tests;
