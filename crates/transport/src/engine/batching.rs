//! The batches that an origin fills, one for each PE ([`batch`] has their format). Where CPUs move
//! the data, a message costs as much as a hundred small operations.
//!
//! The batch for a PE is sent
//! - when the next operation does not fit;
//! - before any other operation to the PE that must not overtake the batch;
//! - by a fence, a quiet, and a call that waits for an operation;
//! - by the next thread that polls unfinished operations, at the latest the service thread. While a
//!   session is adding operations, only one in `LOOKS` polls of the service thread sends its
//!   batches.
//!
//! A lone operation is sent at once, so that batching does not delay it. An operation is lone if
//! the batch for its PE is empty, and the origin has sent nothing small to any PE for `IDLE_AFTER`.
//! The time counts for all PEs together, since operations that are spread over many PEs are rare
//! for each single PE.
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

use super::batch::{self, HEAD, MAX_ANSWERS, MAX_NBYTES, STRIDED_HEAD, WORD};
use crate::peers::loss::Violation;
use crate::progress::backoff::FLUSH_DELAY;
use crate::{
    AmoOp, AmoRequest, Dest, DestBuf, Host, Pe, PeMap, Proxy, RemoteAddr, Segment, Source,
    SourceBuf, StridedBlocks,
};
use std::time::{Duration, Instant};

/// The time without small operations after which the next one is lone. It is shorter than a round
/// trip, and longer than what a loop does between two operations.
const IDLE_AFTER: Duration = Duration::from_micros(4);

/// While a session is adding operations, the service thread sends its batches once in this number
/// of polls.
const LOOKS: u32 = 16;

/// A small operation at its origin. A batch that takes it copies its source, and moves the memory
/// for results out of it.
#[derive(Debug)]
pub(super) enum SmallOperation<'a> {
    /// A put of these bytes.
    Put(RemoteAddr, &'a mut SourceBuf),
    /// A get into these bytes.
    Get(RemoteAddr, &'a mut DestBuf),
    /// Puts of these blocks.
    PutStrided(&'a mut StridedBlocks<Source>),
    /// Gets of these blocks.
    GetStrided(&'a mut StridedBlocks<Dest>),
    /// An atomic operation, and the memory for the old value, if that is needed.
    Amo(AmoRequest, &'a mut Option<DestBuf>),
}

/// The local memory for the results of a batch, in the order of its operations.
#[derive(Debug, Default)]
pub(super) struct ReplyDestinations {
    dests: Vec<DestBuf>,
    nbytes: usize,
}

/// The batch for one PE that has not been sent yet.
#[derive(Debug, Default)]
struct OpenBatch {
    batch: Vec<u8>,
    answers: ReplyDestinations,
    n_operations: usize,
}

/// The open batches of an origin, and the state that decides whether an operation is batched.
#[derive(Debug)]
pub(super) struct Batcher {
    by_pe: PeMap<OpenBatch>,
    /// The PEs whose batches are not empty.
    pes: Vec<Pe>,
    n_operations: usize,
    /// Maximum number of bytes of a batch, and of its results, outside a session and in one.
    limits: (usize, usize),
    /// The number of contexts of the origin that are in a session.
    n_sessions: usize,
    /// True if an operation was added since the last [`skip_poll`](Batcher::skip_poll). `looks`
    /// counts the calls in a row that found this in a session.
    has_grown: bool,
    looks: u32,
    /// No operation before this time is lone. While a message is being sent, this is
    /// [`FLUSH_DELAY`] after the start of that; otherwise [`IDLE_AFTER`] after the last message was
    /// sent, or after the end of a quiet that sent one.
    busy_until: Option<Instant>,
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

impl SmallOperation<'_> {
    /// Returns the bytes that the operation takes in a batch, and in the results of the batch.
    #[inline]
    fn nbytes(&self) -> (usize, usize) {
        match self {
            SmallOperation::Put(_, source) => (HEAD + source.nbytes(), 0),
            SmallOperation::Get(_, dest) => (HEAD, dest.nbytes()),
            SmallOperation::PutStrided(blocks) => (STRIDED_HEAD + blocks.n * blocks.nbytes, 0),
            SmallOperation::GetStrided(blocks) => (STRIDED_HEAD, blocks.n * blocks.nbytes),
            SmallOperation::Amo(request, fetched) => {
                let words = if request.op == AmoOp::CompareSwap {
                    2
                } else {
                    1
                };
                let old = fetched.as_ref().map_or(0, DestBuf::nbytes);
                (HEAD + words * WORD, old)
            }
        }
    }

    /// Appends the operation, on the PE with this [place](Proxy::place), to an open batch.
    #[inline]
    fn append_to(&mut self, place: u8, open: &mut OpenBatch) {
        let OpenBatch {
            batch,
            answers,
            n_operations,
        } = open;
        *n_operations += 1;
        match self {
            SmallOperation::Put(at, source) => {
                batch::append_put(batch, (*at, place), source);
            }
            SmallOperation::Get(at, dest) => {
                batch::append_get(batch, (*at, place), dest.nbytes());
                answers.expect(std::mem::take(dest));
            }
            SmallOperation::PutStrided(blocks) => {
                batch::append_put_strided(batch, place, blocks);
            }
            SmallOperation::GetStrided(blocks) => {
                batch::append_get_strided(batch, place, blocks);
                blocks.each().for_each(|(_, dest)| answers.expect(dest));
            }
            SmallOperation::Amo(request, fetched) => {
                batch::append_amo(batch, (request, place), fetched.is_some());
                if let Some(fetched) = fetched.take() {
                    answers.expect(fetched);
                }
            }
        }
    }
}

impl Batcher {
    /// Returns a batcher for a job of `n_pes` PEs. `limits` is the maximum number of bytes of a
    /// batch, and of its results, outside a session and in one. `clock` returns the time.
    pub(super) fn new(n_pes: usize, limits: (usize, usize), clock: fn() -> Instant) -> Batcher {
        Batcher {
            by_pe: PeMap::new(n_pes),
            pes: Vec::new(),
            n_operations: 0,
            limits,
            n_sessions: 0,
            has_grown: false,
            looks: 0,
            busy_until: None,
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
                .for_each(|open| open.batch.shrink_to_fit());
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
        self.in_session() && host.has_proxies()
    }

    /// Returns the PE that carries out an operation on these segments of `pe` if it is batched.
    #[inline]
    pub(super) fn proxy(&self, host: &dyn Host, pe: Pe, segments: &[Segment]) -> Proxy {
        match self.in_session() && segments.iter().all(|segment| *segment == Segment::Heap) {
            true => host.proxy(pe),
            false => Proxy::itself(pe),
        }
    }

    /// Returns the current maximum number of bytes of a batch.
    fn limit(&self) -> usize {
        if self.in_session() {
            self.limits.1
        } else {
            self.limits.0
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
            .is_some_and(|open| !open.batch.is_empty())
    }

    /// Returns the number of operations in all batches.
    pub(super) fn n_operations(&self) -> usize {
        self.n_operations
    }

    /// Decides whether the small operation that is being issued to a PE is lone. If so, returns
    /// true and records that its message is being sent: the caller sends it at once, and then calls
    /// [`mark_busy`](Batcher::mark_busy). Call this once for each operation.
    #[inline]
    pub(super) fn begin_lone(&mut self, pe: Pe) -> bool {
        if self.in_session() || self.has_any(pe) {
            return false;
        }
        let now = (self.clock)();
        let is_lone = self.busy_until.is_none_or(|until| now >= until);
        if is_lone {
            self.busy_until = now.checked_add(FLUSH_DELAY);
        }
        is_lone
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

    /// Returns the time of the last call of [`mark_busy`](Batcher::mark_busy).
    #[cfg(test)]
    pub(super) fn last_busy(&self) -> Option<Instant> {
        self.busy_until?.checked_sub(IDLE_AFTER)
    }

    /// Returns a number of blocks of `nbytes` bytes that fit into an empty batch as one operation,
    /// and into its results.
    pub(super) fn most_blocks(&self, nbytes: usize) -> usize {
        self.limit().min(MAX_ANSWERS).saturating_sub(STRIDED_HEAD) / nbytes.max(1)
    }

    /// Returns true if the batch for a PE has room for these operations.
    #[inline]
    pub(super) fn has_room(&self, pe: Pe, operations: &[SmallOperation<'_>]) -> bool {
        let Some(open) = self.by_pe.get(pe) else {
            return true;
        };
        let mut nbytes = (open.batch.len(), open.answers.nbytes);
        for operation in operations {
            let (batch, answers) = operation.nbytes();
            nbytes = (nbytes.0 + batch, nbytes.1 + answers);
        }
        nbytes.0 <= self.limit() && nbytes.1 <= self.limit().min(MAX_ANSWERS)
    }

    /// Adds operations, for which there is room, to the batch for a proxy. The proxy carries them
    /// out in this order.
    #[inline]
    pub(super) fn add(
        &mut self,
        Proxy { pe, place }: Proxy,
        operations: &mut [SmallOperation<'_>],
    ) {
        let nbytes = self.limit();
        let open = &mut self.by_pe[pe];
        if open.batch.is_empty() {
            if open.batch.capacity() == 0 {
                std::mem::swap(&mut open.batch, &mut self.spare);
            }
            open.batch.reserve(nbytes);
            self.pes.push(pe);
        }
        for operation in &mut *operations {
            operation.append_to(place, open);
        }
        self.n_operations += operations.len();
        self.has_grown = true;
    }

    /// Moves the batch for a PE, and the destinations of its results, into the arguments, which are
    /// empty.
    pub(super) fn take(&mut self, pe: Pe, batch: &mut Vec<u8>, answers: &mut ReplyDestinations) {
        debug_assert!(
            batch.is_empty() && answers.dests.is_empty(),
            "they are overwritten"
        );
        let open = &mut self.by_pe[pe];
        std::mem::swap(&mut open.batch, batch);
        std::mem::swap(&mut open.answers, answers);
        self.n_operations -= std::mem::take(&mut open.n_operations);
        if let Some(at) = self.pes.iter().rposition(|other| *other == pe) {
            self.pes.swap_remove(at);
        }
        self.busy_until = (self.clock)().checked_add(FLUSH_DELAY);
    }

    /// Keeps the buffer of a batch that was sent, for the next batch.
    pub(super) fn give_back(&mut self, mut batch: Vec<u8>) {
        batch.clear();
        self.spare = batch;
    }

    /// Drops all batches after a loss, with the destinations of their results.
    pub(super) fn forget(&mut self) {
        for pe in self.pes.drain(..) {
            self.by_pe[pe] = OpenBatch::default();
        }
        self.n_operations = 0;
    }
}

impl ReplyDestinations {
    fn expect(&mut self, dest: DestBuf) {
        self.nbytes += dest.nbytes();
        self.dests.push(dest);
    }

    /// Returns true if no results are expected.
    pub(super) fn is_empty(&self) -> bool {
        self.dests.is_empty()
    }

    /// Stores the results that have arrived, and expects none afterwards.
    ///
    /// # Errors
    /// When there are more or fewer bytes than expected. Then none is stored.
    pub(super) fn store(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        let is_right = bytes.len() == std::mem::take(&mut self.nbytes);
        for dest in self.dests.drain(..).take_while(|_| is_right) {
            let (answer, rest) = bytes.split_at(dest.nbytes());
            dest.store_at(0, answer);
            bytes = rest;
        }
        is_right.then_some(()).ok_or(Violation::Unrequested)
    }

    /// Forgets all destinations, so that no results are stored any more.
    pub(super) fn forget(&mut self) {
        self.dests.clear();
        self.nbytes = 0;
    }
}

#[cfg(test)]
mod tests;
