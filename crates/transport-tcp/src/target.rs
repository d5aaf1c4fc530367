//! Carries out the requests of one peer by this CPU, and answers them in order.
#![allow(unsafe_code)]

use crate::proto::{ReplyFrame, RequestFrame};
use crate::send_queue::SendQueue;
use crate::whole_body::WholeBody;
use crate::whole_words::WholeWords;
use rushmem_transport::kit::batch;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::violation::Violation;
use rushmem_transport::mem::{AtomicLoads, VolatileLoads, copy_bytes};
use rushmem_transport::{AmoRequest, Host, LocalBuf, OldValue, RemoteAddr};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Data that an answer copies, as long as few copies wait.
const COPY_UP_TO: usize = 4 << 10;
const MAX_COPIED: usize = 64 << 10;
/// Data that an answer always copies: a range sent by reference takes a system call of its own.
const COPY_ALWAYS: usize = 64;

/// The most bytes that wait for room with the answers to a peer: more than those to all requests
/// that it may have unanswered.
const MAX_WAITING: usize = 1 << 20;

/// The state of the peer's requests to this PE.
pub(crate) struct Target {
    /// The number of requests that were carried out.
    pub(crate) done: u64,
    /// The words of the put whose body is being received.
    words: WholeWords,
    /// The batch that is being received.
    batch: WholeBody,
    /// It has the heaps of this PE's node, for batches.
    host: Arc<dyn Host>,
    pub(crate) replies: SendQueue,
    /// This PE's memory was changed.
    pub(crate) changed: bool,
}

impl Target {
    pub(crate) fn new(host: Arc<dyn Host>) -> Target {
        Target {
            done: 0,
            words: WholeWords::default(),
            batch: WholeBody::default(),
            host,
            replies: SendQueue::new(),
            changed: false,
        }
    }

    /// Refuses a peer that does not take its answers but asks for more: it cannot make this PE hold
    /// more than a buffer's worth.
    pub(crate) fn check_waiting(&self) -> Result<(), Violation> {
        match self.replies.own_bytes() {
            ..=MAX_WAITING => Ok(()),
            _ => Err(Violation::TooMany),
        }
    }

    /// Carries out what came of a request, which was not checked so far: the bytes of its body that
    /// follow the first `done`.
    pub(crate) fn take(
        &mut self,
        segments: &Segments,
        request: RequestFrame,
        done: usize,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        match request {
            RequestFrame::Put { dest, nbytes, in_parts } => {
                let rest = range(segments, dest, nbytes as usize)?.skip(done);
                if in_parts {
                    // SAFETY: as many bytes of a segment as there are.
                    unsafe { copy_bytes::<VolatileLoads>(rest.base, bytes.as_ptr(), bytes.len()) };
                } else {
                    self.write(rest, bytes);
                }
                self.placed(bytes.len() == rest.nbytes);
                return Ok(());
            }
            RequestFrame::Batch { nbytes } => {
                return self.take_batch(segments, nbytes as usize, bytes);
            }
            RequestFrame::Get { source, nbytes, in_parts } => {
                let from = range(segments, source, nbytes as usize)?;
                self.done += 1;
                self.push_data(from, in_parts);
            }
            RequestFrame::Amo { dest, op, width, fetch } => {
                self.done += 1;
                let (operand, condition) = operands(bytes);
                let old = OldValue::Ignored;
                let request = AmoRequest { dest, width, op, operand, condition, old };
                let old = segments.apply(&request).ok_or(Violation::Address(dest.offset))?;
                self.changed = true;
                if fetch {
                    self.replies.push(&ReplyFrame::Value(old).encode());
                }
            }
            RequestFrame::Sync => {
                self.done += 1;
                self.replies.push(&ReplyFrame::Ack { seq: self.done }.encode());
            }
            RequestFrame::Bye => {}
        }
        Ok(())
    }

    /// Writes the next bytes of a put to the rest of its destination, a range of a segment.
    fn write(&mut self, rest: LocalBuf, bytes: &[u8]) {
        // The data that came earlier are seen before these.
        fence(Ordering::Release);
        // SAFETY: within a segment.
        unsafe { self.words.write(rest, bytes) };
    }

    /// Records that a part of the body of a put was written, perhaps the last one.
    pub(crate) fn placed(&mut self, is_last: bool) {
        self.changed = true;
        self.done += u64::from(is_last);
    }

    /// Answers a get.
    fn push_data(&mut self, from: LocalBuf, in_parts: bool) {
        let nbytes = from.nbytes as u32;
        self.replies.push(&ReplyFrame::Data { seq: self.done, nbytes }.encode());
        let few = self.replies.own_bytes() < MAX_COPIED;
        if from.nbytes <= COPY_ALWAYS || from.nbytes <= COPY_UP_TO && few {
            // SAFETY: in a segment.
            unsafe { self.replies.push_copy::<AtomicLoads>(from) };
        } else if in_parts {
            // SAFETY: in a segment, which outlives the connection.
            unsafe { self.replies.push_memory(from) };
        } else {
            // SAFETY: in a segment, which outlives the connection.
            unsafe { self.replies.push_shared(from) };
        }
    }

    /// Takes the next bytes of a batch, which were not checked before.
    #[inline(never)]
    fn take_batch(
        &mut self,
        segments: &Segments,
        nbytes: usize,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let mut batch = std::mem::take(&mut self.batch);
        let done = batch.take(nbytes, bytes, |batch| {
            self.done += 1;
            self.carry_out_batch(segments, batch)
        });
        self.batch = batch;
        done.unwrap_or(Ok(()))
    }

    fn carry_out_batch(&mut self, segments: &Segments, batch: &[u8]) -> Result<(), Violation> {
        let mut answers = Vec::new();
        self.changed = true;
        batch::carry_out(batch, segments, &*self.host, &mut answers)?;
        if !answers.is_empty() {
            let nbytes = answers.len() as u32;
            self.replies.push(&ReplyFrame::Data { seq: self.done, nbytes }.encode());
            self.replies.push_all(&answers);
        }
        self.check_waiting()
    }
}

/// A host that knows of no other PE of its node.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) struct LoneHost;

#[cfg(any(test, feature = "fuzzing"))]
impl Host for LoneHost {}

/// Returns a range of a segment.
pub(crate) fn range(
    segments: &Segments,
    at: RemoteAddr,
    nbytes: usize,
) -> Result<LocalBuf, Violation> {
    segments.bytes(at, nbytes).ok_or(Violation::Address(at.offset))
}

/// Returns the operand and the condition.
fn operands(body: &[u8]) -> (u64, u64) {
    let mut words = [[0; 8]; 2];
    for (word, bytes) in words.iter_mut().zip(body.chunks_exact(8)) {
        word.copy_from_slice(bytes);
    }
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::Segment;

    #[test]
    fn words_are_copied_however_many_answers_wait() {
        let mut words = vec![0u64; 512];
        let (segments, base) = (Segments::default(), words.as_mut_ptr().cast());
        let memory = LocalBuf { base, nbytes: 4096 };
        // SAFETY: the vector outlives the segments.
        assert_eq!(unsafe { segments.register(Segment::Heap, memory, ()) }, Ok(()));
        let get = |nbytes| RequestFrame::Get {
            source: RemoteAddr { segment: Segment::Heap, offset: 0 },
            nbytes,
            in_parts: false,
        };
        let mut target = Target::new(Arc::new(LoneHost));
        for _ in 0..10_000 {
            target.take(&segments, get(8), 0, &[]).expect("within the segment");
        }
        assert_eq!((target.replies.n_unsent(), target.replies.own_bytes()), (1, 10_000 * 24));
        target.take(&segments, get(4096), 0, &[]).expect("within the segment");
        assert_eq!(target.replies.n_unsent(), 2, "a large answer goes by reference then");
    }
}
