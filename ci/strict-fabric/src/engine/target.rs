//! Handles requests of peers: performs their operations on own memory, and delivers their messages
//! to receive buffers.
#![allow(unsafe_code)]

use super::{Engine, MAX_REQUESTS};
use crate::atomic::AtomicOp;
use crate::memory::store;
use crate::operation::{CompletedOp, Completions, OpKind};
use crate::remote::{TargetAccess, own_memory};
use crate::segment::{DONE, MappedSegment, RequestRef, RequestSlot, TAKEN};
use crate::slot::{read_data, remote_pieces};
use libfabric_sys as fi;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A message of a peer.
pub(super) struct Message {
    /// The segment of the peer.
    segment: Arc<MappedSegment>,
    request: RequestRef,
}

impl Message {
    fn slot(&self) -> &RequestSlot {
        self.segment.slot(&self.request)
    }
}

impl Engine {
    /// Handles requests in the inbox, a random number of them unless the profile is immediate.
    pub(super) fn handle_requests(&mut self) {
        let most = if self.profile.immediate {
            MAX_REQUESTS
        } else {
            self.random_count(MAX_REQUESTS)
        };

        let domain = Arc::clone(&self.domain);
        let inbox = &domain.segment.inboxes[self.number as usize];
        for _ in 0..most {
            let Some(request) = inbox.pop() else { break };
            self.handle(request);
        }
    }

    /// Handles a request of a peer: performs an operation on own memory, or queues a message.
    fn handle(&mut self, request: RequestRef) {
        let Ok(segment) = self.domain.segment_of(request.pid, request.fd) else {
            // The peer has ended, so it does not wait for the result.
            return;
        };
        let slot = segment.slot(&request);
        match OpKind::from_number(slot.kind.load(Ordering::Relaxed)) {
            Some(OpKind::Send) => self.unexpected.push_back(Message { segment, request }),
            Some(kind) => {
                // Nobody orders other accesses by this state: the origin only sees that the slot is
                // not free.
                slot.state.store(TAKEN, Ordering::Relaxed);
                let error = match self.perform(kind, slot, request.pid) {
                    Ok(()) => 0,
                    Err(error) => error as u32,
                };
                // The state after the results, which the origin reads once it finds the request
                // done.
                slot.error.store(error, Ordering::Relaxed);
                slot.state.store(DONE, Ordering::Release);
            }
            None => {}
        }
    }

    /// Performs a peer's operation on own memory.
    fn perform(&self, kind: OpKind, slot: &RequestSlot, pid: u32) -> Result<(), i32> {
        let order = Ordering::Relaxed;
        let nbytes = slot.nbytes.load(order) as usize;
        let access = TargetAccess {
            key: slot.key.load(order),
            address: slot.address.load(order),
            nbytes,
            rights: kind.access(),
        };
        let own = own_memory(self.profile, &self.domain.segment, self.number, access)?;

        match kind {
            OpKind::Write => {
                // SAFETY: `own_memory` has checked that the bytes are registered memory.
                unsafe { read_data(slot, pid, own, nbytes) }
            }
            OpKind::Read => {
                let mut from = own;
                for piece in remote_pieces(slot) {
                    // SAFETY: `own_memory` has checked that the bytes are registered memory; the
                    // pieces together have the length that it checked, as `write_request` stores
                    // both.
                    let stored = unsafe { store(pid, piece.address, from, piece.nbytes) };
                    stored.map_err(|_| fi::FI_ECONNRESET)?;
                    from = from.wrapping_add(piece.nbytes);
                }
                Ok(())
            }
            OpKind::Fetch => {
                let amo = AtomicOp {
                    op: slot.op.load(order),
                    width: nbytes,
                    operand: slot.operand.load(order),
                    condition: slot.condition.load(order),
                };
                if !own.addr().is_multiple_of(amo.width) {
                    self.domain.violation(
                        "alignment",
                        "an atomic operation is on a word that is not aligned",
                    );
                }
                // SAFETY: `own_memory` has checked that the word is registered memory; its
                // alignment was checked above.
                let old = unsafe { amo.perform(own) };
                slot.old.store(old, order);
                Ok(())
            }
            OpKind::Send => Ok(()),
        }
    }

    /// Delivers the first message to the first receive buffer.
    pub(super) fn deliver(&mut self, completions: &mut Completions) {
        if self.receives.is_empty() {
            return;
        }
        let Some(message) = self.unexpected.pop_front() else {
            return;
        };
        let mut receive = self.receives.pop_front().expect("there is one");

        let slot = message.slot();
        let sent_nbytes = slot.nbytes.load(Ordering::Relaxed) as usize;
        let nbytes = sent_nbytes.min(receive.piece.iov_len);
        let buffer = receive.piece.iov_base.cast();
        // SAFETY: a posted receive buffer has at least `nbytes` bytes, and is the provider's until
        // completion.
        let data = unsafe { read_data(slot, message.request.pid, buffer, nbytes) };

        // Release: the sender that sees the slot as done also sees the error, and uses the slot
        // again only after the message was read. So this is the last access to it.
        slot.error.store(0, Ordering::Relaxed);
        slot.state.store(DONE, Ordering::Release);
        if data.is_err() {
            // The sender has ended, so the message is lost.
            self.receives.push_front(receive);
            return;
        }

        receive.reuse.release(&self.domain, &mut self.contexts);
        let entry = CompletedOp {
            context: receive.context,
            flags: fi::FI_MSG | fi::FI_RECV,
            nbytes,
        };
        // A message that does not fit its buffer is cut off, which is an error (fi_msg(3)).
        if sent_nbytes > nbytes {
            completions.fail(entry, fi::FI_ETRUNC as i32);
        } else {
            completions.push(entry);
        }
    }
}
