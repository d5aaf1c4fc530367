//! Small operations that an origin batches for each PE, to send them in one message
//! ([`batch`]): where processors move the data, one message costs as much as a hundred of them.
//!
//! What is batched for a PE leaves
//! - when there is no room for more,
//! - ahead of anything else to that PE whose order matters,
//! - with a fence, a quiet, and a call that waits,
//! - and when a thread polls what calls left unfinished, at last the service thread; in a session
//!   to which operations are being added, once in a while.
//!
//! A lone operation is not batched, so that it takes no longer than without all this: one of an
//! origin that did something else for a while after its last small operations had left, to any PE.
//! To look at each PE alone would batch nothing for operations that are spread over many PEs.
//!
//! In a session no operation is a lone one, batches may be longer, and what goes to the heaps of
//! all PEs of a node is batched for one of them, its [`Proxy`]: memory and messages grow with the
//! number of nodes. A proxy and the PE know nothing of each other's order, so what orders or
//! completes operations on one PE in such a session does so on all.
#![allow(unsafe_code)]

use super::batch::{self, HEAD, MAX_ANSWERS, MAX_NBYTES, STRIDED_HEAD, WORD};
use super::message::Update;
use crate::peers::loss::Violation;
use crate::progress::backoff::FLUSH_DELAY;
use crate::{AmoOp, Host, LocalBuf, Pe, PeMap, Proxy, RemoteAddr, Segment, StridedBlocks, mem};
use std::time::{Duration, Instant};

/// An operation that comes so long after the last ones had left is a lone one. A reply takes
/// longer, and what a loop does between two operations less.
const IDLE_AFTER: Duration = Duration::from_micros(4);

/// In a session to which operations are being added, what is batched leaves at every 16th look of
/// another thread.
const LOOKS: u32 = 16;

/// A small operation, as its origin issues it.
#[derive(Clone, Copy, Debug)]
pub enum SmallOperation {
    /// A put of these bytes.
    Put(RemoteAddr, LocalBuf),
    /// A get of bytes that go here.
    Get(RemoteAddr, LocalBuf),
    /// Puts of these blocks.
    PutStrided(StridedBlocks),
    /// Gets of these blocks.
    GetStrided(StridedBlocks),
    /// An atomic operation. The old value goes here, unless that is null.
    Amo(Update, *mut u8),
}

/// The destinations of the answers to a batch.
#[derive(Debug, Default)]
pub struct ReplyDestinations {
    dests: Vec<LocalBuf>,
    nbytes: usize,
}

/// The operations that are batched for one PE.
#[derive(Debug, Default)]
struct OpenBatch {
    batch: Vec<u8>,
    answers: ReplyDestinations,
    n_operations: usize,
}

/// The operations that an origin has batched, for all PEs.
#[derive(Debug)]
pub struct Batcher {
    by_pe: PeMap<OpenBatch>,
    /// The PEs for which something is batched.
    pes: Vec<Pe>,
    n_operations: usize,
    /// Most bytes of a batch, outside a session and in one.
    limits: (usize, usize),
    /// The number of contexts in a session, of those that share this.
    n_sessions: usize,
    /// Something was batched since another thread last looked, and how often in a row that was so.
    grew: bool,
    looks: u32,
    /// The time until which no operation that is issued counts as a lone one.
    until: Option<Instant>,
    /// A buffer for the next batch.
    spare: Vec<u8>,
}

/// Returns true if an operation on a segment that moves `nbytes` bytes is one that is batched. One
/// on the library's own flags never is, since a thread waits for it.
#[inline]
pub fn is_small(segment: Segment, nbytes: usize) -> bool {
    nbytes <= MAX_NBYTES && segment != Segment::Internal
}

/// Returns how many blocks of this length fit into an empty batch of `limit` bytes, and into the
/// answers to one.
pub fn blocks_within(limit: usize, nbytes: usize) -> usize {
    limit.min(MAX_ANSWERS).saturating_sub(STRIDED_HEAD) / nbytes.max(1)
}

impl SmallOperation {
    /// Returns a batch of this put alone, for the PE itself.
    ///
    /// # Safety
    /// The source is valid for reads.
    pub unsafe fn put_batch(self) -> Vec<u8> {
        let mut open = OpenBatch::default();
        open.batch.reserve_exact(self.nbytes().0);
        // SAFETY: the same contract.
        unsafe { self.append_to(0, &mut open) };
        debug_assert!(open.answers.is_empty(), "only a put has no answers");
        open.batch
    }

    /// Returns the bytes that it takes in a batch, and in the answers to it.
    #[inline]
    fn nbytes(&self) -> (usize, usize) {
        match *self {
            SmallOperation::Put(_, source) => (HEAD + source.nbytes, 0),
            SmallOperation::Get(_, dest) => (HEAD, dest.nbytes),
            SmallOperation::PutStrided(StridedBlocks { local, n, .. }) => {
                (STRIDED_HEAD + n * local.nbytes, 0)
            }
            SmallOperation::GetStrided(StridedBlocks { local, n, .. }) => {
                (STRIDED_HEAD, n * local.nbytes)
            }
            SmallOperation::Amo(Update { op, width, .. }, fetched) => {
                let words = if op == AmoOp::CompareSwap { 2 } else { 1 };
                (HEAD + words * WORD, if fetched.is_null() { 0 } else { width.nbytes() })
            }
        }
    }

    /// # Safety
    /// The source of a put is valid for reads.
    #[inline]
    unsafe fn append_to(self, place: u8, open: &mut OpenBatch) {
        let OpenBatch { batch, answers, n_operations } = open;
        *n_operations += 1;
        match self {
            SmallOperation::Put(at, source) => {
                let to = batch::append_put(batch, (at, place), source.nbytes).as_mut_ptr();
                // SAFETY: as many bytes, valid by contract and just made.
                unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, source.base, source.nbytes) };
            }
            SmallOperation::Get(at, dest) => {
                batch::append_get(batch, (at, place), dest.nbytes);
                answers.expect(dest);
            }
            SmallOperation::PutStrided(blocks) => {
                let mut to = batch::append_put_strided(batch, place, &blocks).as_mut_ptr();
                for (_, LocalBuf { base, nbytes }) in blocks.each() {
                    // SAFETY: as many bytes, valid by contract and just made.
                    unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, base, nbytes) };
                    to = to.wrapping_add(nbytes);
                }
            }
            SmallOperation::GetStrided(blocks) => {
                batch::append_get_strided(batch, place, &blocks);
                blocks.each().for_each(|(_, dest)| answers.expect(dest));
            }
            SmallOperation::Amo(update, fetched) => {
                batch::append_update(batch, (&update, place), !fetched.is_null());
                if !fetched.is_null() {
                    answers.expect(LocalBuf { base: fetched, nbytes: update.width.nbytes() });
                }
            }
        }
    }
}

impl Batcher {
    /// Returns a batcher of a job of `n_pes` PEs. `limits` is the maximum length of a batch, and of
    /// its answers, outside a session and in one.
    pub fn new(n_pes: usize, limits: (usize, usize)) -> Batcher {
        let (by_pe, pes) = (PeMap::new(n_pes), Vec::new());
        let (n_operations, n_sessions, looks) = (0, 0, 0);
        let (grew, until, spare) = (false, None, Vec::new());
        Batcher { by_pe, pes, n_operations, limits, n_sessions, grew, looks, until, spare }
    }

    /// Begins or ends a session of a context that shares this. The memory of long batches is freed
    /// with the last session.
    pub fn session(&mut self, is_open: bool) {
        self.n_sessions = if is_open { self.n_sessions + 1 } else { self.n_sessions - 1 };
        if !self.in_session() {
            self.by_pe.iter_mut().for_each(|open| open.batch.shrink_to_fit());
        }
    }

    /// Returns true if a context is in a session.
    #[inline]
    pub fn in_session(&self) -> bool {
        self.n_sessions > 0
    }

    /// Returns true if something that is ordered or completed towards a PE must be so towards all,
    /// since proxies may have a part of it.
    pub fn uses_proxies(&self, host: &dyn Host) -> bool {
        self.in_session() && host.has_proxies()
    }

    /// Returns the PE or node for which an operation on these segments is batched.
    #[inline]
    pub fn proxy(&self, host: &dyn Host, pe: Pe, segments: &[Segment]) -> Proxy {
        match self.in_session() && segments.iter().all(|segment| *segment == Segment::Heap) {
            true => host.proxy(pe),
            false => Proxy::itself(pe),
        }
    }

    /// Returns the current maximum number of bytes of a batch.
    fn limit(&self) -> usize {
        if self.in_session() { self.limits.1 } else { self.limits.0 }
    }

    /// Returns the PEs for which something is batched.
    #[inline]
    pub fn pes(&self) -> &[Pe] {
        &self.pes
    }

    /// Returns true if something is batched for a PE.
    #[inline]
    pub fn has_any(&self, pe: Pe) -> bool {
        self.by_pe.get(pe).is_some_and(|open| !open.batch.is_empty())
    }

    /// Returns how many operations are batched.
    pub fn n_operations(&self) -> usize {
        self.n_operations
    }

    /// Returns true if the origin was idle, so that the next small operation to a PE is a lone one,
    /// which leaves at once. It is called once for each, and [`has_left`](Batcher::has_left) once
    /// the lone one has.
    #[inline]
    pub fn was_idle(&mut self, pe: Pe) -> bool {
        if self.in_session() || self.has_any(pe) {
            return false;
        }
        let now = Instant::now();
        let was_idle = self.until.is_none_or(|until| now >= until);
        if was_idle {
            self.until = now.checked_add(FLUSH_DELAY);
        }
        was_idle
    }

    /// Returns true if another thread that looks leaves what is batched to its owner, who will
    /// send it with more. It is called once for each look.
    pub fn may_stay(&mut self) -> bool {
        let is_growing = std::mem::take(&mut self.grew) && self.in_session();
        self.looks = if is_growing { self.looks.wrapping_add(1) } else { 0 };
        !self.looks.is_multiple_of(LOOKS)
    }

    /// Records that an operation or a batch was sent: the next operation may soon be sent alone.
    #[inline]
    pub fn has_left(&mut self) {
        self.until = Instant::now().checked_add(IDLE_AFTER);
    }

    /// Returns when the last operation was recorded to have left.
    #[cfg(test)]
    pub fn last_left(&self) -> Option<Instant> {
        self.until?.checked_sub(IDLE_AFTER)
    }

    /// Returns how many blocks of this length fit into an empty batch, and into the answers to one.
    pub fn most_blocks(&self, nbytes: usize) -> usize {
        blocks_within(self.limit(), nbytes)
    }

    /// Returns true if the batch to a PE has room for these operations; otherwise it leaves first.
    #[inline]
    pub fn has_room(&self, pe: Pe, operations: &[SmallOperation]) -> bool {
        let Some(open) = self.by_pe.get(pe) else { return true };
        let mut nbytes = (open.batch.len(), open.answers.nbytes);
        for operation in operations {
            let (batch, answers) = operation.nbytes();
            nbytes = (nbytes.0 + batch, nbytes.1 + answers);
        }
        nbytes.0 <= self.limit() && nbytes.1 <= self.limit().min(MAX_ANSWERS)
    }

    /// Adds operations, for which there is room, to what is batched for a proxy. They are carried
    /// out in this order.
    ///
    /// # Safety
    /// The sources of puts are valid for reads; what is fetched is valid for writes until the
    /// answers are stored or forgotten.
    #[inline]
    pub unsafe fn add(&mut self, Proxy { pe, place }: Proxy, operations: &[SmallOperation]) {
        let nbytes = self.limit();
        let open = &mut self.by_pe[pe];
        if open.batch.is_empty() {
            if open.batch.capacity() == 0 {
                std::mem::swap(&mut open.batch, &mut self.spare);
            }
            open.batch.reserve(nbytes);
            self.pes.push(pe);
        }
        for operation in operations {
            // SAFETY: the same contract.
            unsafe { operation.append_to(place, open) }
        }
        self.n_operations += operations.len();
        self.grew = true;
    }

    /// Takes what is batched for a PE, to be sent: the batch and where its answers go, both of
    /// which are exchanged for empty ones.
    pub fn take(&mut self, pe: Pe, batch: &mut Vec<u8>, answers: &mut ReplyDestinations) {
        debug_assert!(batch.is_empty() && answers.dests.is_empty(), "to be filled again");
        let open = &mut self.by_pe[pe];
        std::mem::swap(&mut open.batch, batch);
        std::mem::swap(&mut open.answers, answers);
        self.n_operations -= std::mem::take(&mut open.n_operations);
        if let Some(at) = self.pes.iter().rposition(|other| *other == pe) {
            self.pes.swap_remove(at);
        }
        self.until = Instant::now().checked_add(FLUSH_DELAY);
    }

    /// Gives back the buffer of a batch that was sent, for another one.
    pub fn give_back(&mut self, mut batch: Vec<u8>) {
        batch.clear();
        self.spare = batch;
    }

    /// Drops all batches after a loss: none is sent, and no memory of callers is used any more.
    pub fn forget(&mut self) {
        for pe in self.pes.drain(..) {
            self.by_pe[pe] = OpenBatch::default();
        }
        self.n_operations = 0;
    }
}

impl ReplyDestinations {
    fn expect(&mut self, dest: LocalBuf) {
        self.dests.push(dest);
        self.nbytes += dest.nbytes;
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.dests.is_empty()
    }

    /// Returns the bytes of all of them.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Stores the answers, which have come. Afterwards there are none.
    ///
    /// # Safety
    /// What was to be fetched is valid for writes.
    ///
    /// # Errors
    /// When there are more or fewer bytes than were requested, none of which is stored.
    pub unsafe fn store(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        let is_right = bytes.len() == std::mem::take(&mut self.nbytes);
        let dests = self.dests.drain(..).take_while(|_| is_right);
        for dest in dests {
            let (answer, rest) = bytes.split_at(dest.nbytes);
            // SAFETY: as many bytes, valid by contract.
            unsafe {
                mem::copy_bytes::<mem::VolatileLoads>(dest.base, answer.as_ptr(), dest.nbytes)
            };
            bytes = rest;
        }
        is_right.then_some(()).ok_or(Violation::Unrequested)
    }

    /// Forgets all destinations: what was to be fetched is wanted no more.
    pub fn forget(&mut self) {
        self.dests.clear();
        self.nbytes = 0;
    }
}

#[cfg(test)]
mod tests;
