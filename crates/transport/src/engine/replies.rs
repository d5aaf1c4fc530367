//! Replies to the requests of an origin.
//!
//! The origin takes a slot for each request whose answer it needs, and the request names this slot
//! ([`AnswerSlots`]). The thread that receives a reply may not be the one that uses the origin, so
//! it passes the reply on ([`Replies`], [`ReplyTable`]).

use super::acks::Acks;
use super::message::{Answer, AwaitedSlot, Reply, SHORT};
use super::wire::TakeReply;
use crate::peers::loss::{RefusedMessage, Violation};
use crate::{DestBuf, Pe};
use rushmem_system::lock::{lock, read, write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// The local memory for the results of a request, in the order of its entries.
#[derive(Debug, Default)]
pub(super) struct ReplyDestinations {
    dests: Vec<DestBuf>,
    nbytes: usize,
}

impl ReplyDestinations {
    /// Adds the memory for the next results.
    pub(super) fn expect(&mut self, dest: DestBuf) {
        self.nbytes += dest.nbytes();
        self.dests.push(dest);
    }

    pub(super) fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Returns true if no results are expected.
    pub(super) fn is_empty(&self) -> bool {
        self.dests.is_empty()
    }

    /// Returns true if the results do not fit the head of a reply, so that they follow it.
    pub(super) fn are_long(&self) -> bool {
        self.nbytes > SHORT
    }

    /// Stores the results that have arrived, and expects none afterwards. They are in the head of
    /// the reply (`short`) if they fit it, otherwise they are the bytes that `follow` it.
    ///
    /// # Errors
    /// When there are more or fewer bytes than expected. Then none is stored.
    pub(super) fn store(&mut self, short: &[u8; SHORT], follow: &[u8]) -> Result<(), Violation> {
        let nbytes = self.nbytes;
        let mut results = match short.get(..nbytes) {
            Some(short) if follow.is_empty() => short,
            None if follow.len() == nbytes => follow,
            _ => {
                self.forget();
                return Err(Violation::Unrequested);
            }
        };

        for dest in &self.dests {
            let (result, rest) = results.split_at(dest.nbytes());
            dest.store_at(0, result);
            results = rest;
        }

        self.forget();
        Ok(())
    }

    /// Forgets all destinations, so that no results are stored any more.
    pub(super) fn forget(&mut self) {
        self.dests.clear();
        self.nbytes = 0;
    }
}

/// The slots in which answers are awaited.
#[derive(Default)]
pub(super) struct AnswerSlots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// A slot for the results of one request.
#[derive(Default)]
struct Slot {
    /// Counts how often the slot was released.
    generation: u32,
    /// The PE that answers; `None` if the slot is free.
    pe: Option<Pe>,
    results: ReplyDestinations,
}

/// One use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// The slot, which the request names.
    pub(super) slot: AwaitedSlot,
    generation: u32,
}

impl AnswerSlots {
    /// Returns the number of requests whose answers have not arrived.
    #[inline]
    pub(super) fn n_unanswered(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a slot for the results of a request to a PE; `fill` adds their destinations. Takes no
    /// slot, and returns `None`, if there are no results.
    pub(super) fn take(
        &mut self,
        pe: Pe,
        fill: impl FnOnce(&mut ReplyDestinations),
    ) -> Option<Ticket> {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });

        let slot = &mut self.slots[number as usize];
        fill(&mut slot.results);
        if slot.results.is_empty() {
            self.free.push(number);
            return None;
        }

        slot.pe = Some(pe);
        Some(Ticket {
            slot: AwaitedSlot {
                number,
                is_long: slot.results.are_long(),
            },
            generation: slot.generation,
        })
    }

    fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.pe = None;
        self.free.push(number);
    }

    /// Returns true if the answer for this use of the slot has arrived.
    pub(super) fn is_past(&self, Ticket { slot, generation }: Ticket) -> bool {
        self.slots[slot.number as usize].generation != generation
    }

    /// Stores the results of an answer that has arrived, of which long ones `follow` it. Returns
    /// the PE of the request.
    ///
    /// # Errors
    /// If the slot awaits no answer, or one of another length.
    pub(super) fn answer(&mut self, answer: &Answer, follow: &[u8]) -> Result<Pe, Violation> {
        let slot = self
            .slots
            .get_mut(answer.slot as usize)
            .ok_or(Violation::Unrequested)?;

        let pe = slot.pe.ok_or(Violation::Unrequested)?;
        let stored = slot.results.store(&answer.short, follow);
        // Also after an error: no other answer may use the slot.
        self.release(answer.slot);
        stored?;
        Ok(pe)
    }

    /// Clears all destinations after a loss, so that answers that arrive later are not stored.
    pub(super) fn forget_destinations(&mut self) {
        for slot in &mut self.slots {
            slot.results.forget();
        }
    }
}

/// The replies to one origin that have arrived, each with the results that follow it.
#[derive(Default)]
pub struct Replies {
    /// The number of replies. It changes under the lock; most polls read only this. All accesses
    /// are relaxed, since the lock orders the replies. A poll that misses one leaves it to the next
    /// poll: an origin that expects answers is polled until it has them, by a call that waits or as
    /// one of the unfinished.
    n: AtomicUsize,
    arrived: Mutex<Vec<(Reply, Vec<u8>)>>,
}

impl Replies {
    fn put(&self, reply: Reply, bytes: &[u8]) {
        let mut arrived = lock(&self.arrived);
        arrived.push((reply, bytes.to_vec()));
        self.n.store(arrived.len(), Ordering::Relaxed);
    }

    /// Removes all replies and passes them to `take`. Returns how many there were.
    ///
    /// # Errors
    /// The first reply that `take` refuses; `take` is called for the others all the same.
    #[inline]
    pub fn take(&self, take: TakeReply<'_>) -> Result<usize, RefusedMessage> {
        if self.n.load(Ordering::Relaxed) == 0 {
            return Ok(0);
        }
        self.take_all(take)
    }

    fn take_all(&self, take: TakeReply<'_>) -> Result<usize, RefusedMessage> {
        let mut arrived = lock(&self.arrived);

        let n = arrived.len();
        self.n.store(0, Ordering::Relaxed);

        let mut taken = Ok(n);
        for (reply, bytes) in arrived.drain(..) {
            if let Err(violation) = take(reply, &bytes) {
                taken = taken.and(Err(RefusedMessage::of(reply.pe, violation)));
            }
        }

        taken
    }
}

/// The replies to the requests of each origin, by its number.
#[derive(Default)]
pub struct ReplyTable(RwLock<Vec<Arc<Replies>>>);

impl ReplyTable {
    /// Adds the origin with the next number, and returns its replies.
    pub fn add(&self) -> Arc<Replies> {
        let replies = Arc::new(Replies::default());
        write(&self.0).push(Arc::clone(&replies));
        replies
    }

    /// Passes a reply, with the results that follow it, to the origin that it names. Of a reply
    /// without an answer, only the acknowledgment is recorded in `acks`.
    ///
    /// # Errors
    /// When there is no such origin or, without an answer, no such PE.
    pub fn deliver(&self, acks: &Acks, reply: Reply, bytes: &[u8]) -> Result<(), Violation> {
        if reply.answer.is_none() {
            return acks.acknowledge(reply.pe, reply.ack);
        }

        let all = read(&self.0);
        let replies = all
            .get(reply.ack.origin as usize)
            .ok_or(Violation::Unrequested)?;
        replies.put(reply, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pe;
    use crate::engine::message::Ack;

    #[test]
    fn a_reply_is_taken_once() {
        let replies = Replies::default();
        let reply = Reply {
            pe: Pe(3),
            ack: Ack {
                origin: 0,
                count: 1,
            },
            answer: Some(Answer {
                slot: 1,
                short: [7; 8],
            }),
        };

        assert_eq!(
            replies.take(&mut |_, _| unreachable!("none has come")),
            Ok(0)
        );

        replies.put(reply, b"abc");
        let mut taken = Vec::new();
        let n_taken = replies.take(&mut |reply, bytes| {
            taken.push((reply, bytes.to_vec()));
            Ok(())
        });
        assert_eq!(n_taken, Ok(1));
        assert_eq!(taken, [(reply, b"abc".to_vec())]);
        assert_eq!(replies.take(&mut |_, _| unreachable!("it is taken")), Ok(0));

        replies.put(reply, b"");
        replies.put(Reply { pe: Pe(4), ..reply }, b"");
        let refused = RefusedMessage::of(Pe(3), Violation::Unrequested);
        assert_eq!(
            replies.take(&mut |_, _| Err(Violation::Unrequested)),
            Err(refused)
        );
    }
}
