//! The replies to an origin's requests. The thread that receives a reply adds it here, and the
//! thread that uses the origin takes it.

use super::wire::TakeReply;
use crate::kit::acks::Acks;
use crate::kit::lock::lock;
use crate::kit::message::Reply;
use crate::kit::violation::{RefusedMessage, Violation};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The replies that have arrived and were not taken yet, each with the answers to its batch.
#[derive(Default)]
pub struct Replies {
    /// Their number, which changes under the lock; most polls read only this.
    n: AtomicUsize,
    arrived: Mutex<Vec<(Reply, Vec<u8>)>>,
}

impl Replies {
    /// Adds a reply.
    fn put(&self, reply: Reply, bytes: &[u8]) {
        let mut arrived = lock(&self.arrived);
        arrived.push((reply, bytes.to_vec()));
        self.n.store(arrived.len(), Ordering::Release);
    }

    /// Gives all replies to `take`. Returns how many there were.
    ///
    /// # Errors
    /// The first that is not what was requested.
    #[inline]
    pub fn take(&self, take: TakeReply<'_>) -> Result<usize, RefusedMessage> {
        match self.n.load(Ordering::Acquire) {
            0 => Ok(0),
            _ => self.take_all(take),
        }
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
    /// Adds the place for the replies to the next origin, and returns it.
    pub fn add(&self) -> Arc<Replies> {
        let replies = Arc::new(Replies::default());
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&replies));
        replies
    }

    /// Adds a reply, with the answers to its batch, to the replies of the origin that it names. A
    /// reply that only acknowledges requests is counted in `acks` instead.
    ///
    /// # Errors
    /// When no origin has requested it.
    pub fn replied(&self, acks: &Acks, reply: Reply, bytes: &[u8]) -> Result<(), Violation> {
        if reply.old.is_none() {
            return acks.acknowledge(reply.pe, reply.ack);
        }
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let replies = all.get(reply.ack.origin as usize).ok_or(Violation::Unrequested)?;
        replies.put(reply, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pe;
    use crate::kit::acks::Ack;

    #[test]
    fn a_reply_is_taken_once() {
        let replies = Replies::default();
        let reply = Reply { pe: Pe(3), ack: Ack { origin: 0, count: 1 }, old: Some((1, 7)) };
        assert_eq!(replies.take(&mut |_, _| unreachable!("none has come")), Ok(0));
        replies.put(reply, b"abc");
        let mut taken = Vec::new();
        let take = &mut |reply, bytes: &[u8]| {
            taken.push((reply, bytes.to_vec()));
            Ok(())
        };
        assert_eq!((replies.take(take), replies.take(&mut |_, _| Ok(()))), (Ok(1), Ok(0)));
        assert_eq!(taken, [(reply, b"abc".to_vec())]);
        replies.put(reply, b"");
        replies.put(Reply { pe: Pe(4), ..reply }, b"");
        let refused = RefusedMessage::of(Pe(3), Violation::Unrequested);
        assert_eq!(replies.take(&mut |_, _| Err(Violation::Unrequested)), Err(refused));
    }
}
